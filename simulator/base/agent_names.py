"""Short names of agents: the parts of their specs that distinguish them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from longspan.simulator.base.terminal import escape_invisible

__all__ = ["ShortNames", "short_names"]

_SPEC: Final = re.compile(r"[A-Za-z][\w-]*(?:[/:?].*)?", re.DOTALL)
_LABELLED: Final = re.compile(r"(?P<spec>.*?)(?P<label> \[[^\[\]]*\])?", re.DOTALL)
_SEGMENT: Final = re.compile(r"[^/:]*[/:]+|[^/:]+")

LEFT_OUT: Final = "\N{HORIZONTAL ELLIPSIS}"
"""Replaces the distinguishing part of a spec in a pattern."""


@final
class ShortNames(NamedTuple):
    """The short names of agents. `names` maps each agent to a unique name.

    `meant` maps what names leave out to the names that leave it out. The key is a pattern that several names share, such as
    memory/…?answerer=none, or a whole spec for a single name.
    """

    names: Mapping[str, str]
    meant: Mapping[str, Sequence[str]]

    def legend(self, called: Mapping[str, str]) -> list[str]:
        """Return a line for each letter in `called` with its name, or with the whole spec if no other name leaves out the same parts."""
        alone = {names[0]: pattern for pattern, names in self.meant.items() if len(names) == 1}
        return [f"{letter}  {alone.get(name, name)}" for name, letter in called.items()]

    def describe_omissions(self, called: Mapping[str, str] | None = None) -> str:
        """Return a sentence that lists what the names leave out, or "". `called` maps names to letters, whose legend is not repeated."""
        shown = {name: (called or {}).get(name, name) for name in self.names.values()}
        parts = []
        for pattern, names in self.meant.items():
            if called and len(names) == 1:
                continue
            whose = [shown[name] for name in names]
            are = (
                "all are" if len(whose) == len(shown) else f"{', '.join(whose[:-1])} and {whose[-1]} are" if whose[1:] else f"{whose[0]} is"
            )
            parts.append(f"{are} {pattern}")
        return f"Short names: {'; '.join(parts)}." if parts else ""


@final
class _Agent(NamedTuple):
    """An agent's spec in parts: the segments before the options, each with the `/` or `:` that ends it, the options, and the label in
    brackets."""

    segments: tuple[str, ...]
    options: tuple[str, ...]
    label: str

    @property
    def kind(self) -> str:
        return self.segments[0].rstrip("/:") if self.segments else ""


def short_names(agents: Sequence[str]) -> ShortNames:
    """Return short names for agents. An agent is a spec, optionally followed by a label in brackets.

    A name has the trailing segments of the spec that make it unique, the options that are not shared by all agents of its kind, and
    the label if labels differ. A single agent keeps its spec, and so does an agent whose short name would not be unique. Names have one
    line.
    """
    given = {agent: escape_invisible(" ".join(agent.split())) for agent in agents}
    lines = list(dict.fromkeys(given.values()))
    parsed = {line: _parse_name(line) for line in lines}
    short = {line: _short(agent, list(parsed.values())) for line, agent in parsed.items()} if len(lines) > 1 else {}
    counts = Counter(short.values())
    short = {line: line if counts[short.get(line, "")] != 1 else short[line] for line in lines}
    if len(set(short.values())) < len(short):  # a short name equals another agent's whole spec
        short = {line: line for line in lines}
    return ShortNames(_number_duplicates({agent: short[line] for agent, line in given.items()}), _group_by_pattern(parsed, short))


def _parse_name(line: str) -> _Agent:
    match = _LABELLED.fullmatch(line)
    spec, label = (match["spec"], match["label"] or "") if match else (line, "")
    if not _SPEC.fullmatch(spec):  # an imported run's agent may have any name
        return _Agent((spec,), (), label)
    head, mark, query = spec.partition("?")
    return _Agent(tuple(_SEGMENT.findall(head)), tuple(query.split("&")) if mark else (), label)


def _short(agent: _Agent, all_agents: Sequence[_Agent]) -> str:
    options = [option for option in agent.options if option not in _common_options(agent, all_agents)]
    label = "" if all(other.label == agent.label for other in all_agents) else agent.label
    return f"{_head(agent.segments, {other.segments for other in all_agents})}{'?' * bool(options)}{'&'.join(options)}{label}"


def _common_options(agent: _Agent, all_agents: Sequence[_Agent]) -> set[str]:
    """Return the options shared by all agents of the same kind."""
    return set.intersection(*(set(other.options) for other in all_agents if other.kind == agent.kind))


def _head(segments: tuple[str, ...], heads: set[tuple[str, ...]]) -> str:
    """Return the fewest trailing segments, with at least one letter, that are not the end of another head."""
    for number in range(1, len(segments)):
        last = segments[-number:]
        name = "".join(last)
        if any(letter.isalpha() for letter in name) and not any(other[-number:] == last for other in heads if other != segments):
            return name
    return "".join(segments)


def _number_duplicates(names: Mapping[str, str]) -> dict[str, str]:
    """Return unique names, even for specs that differ only in spaces or in invisible characters, by numbering repeated ones."""
    taken: set[str] = set()
    found = {}
    for agent, name in names.items():
        own, number = name, 1
        while own in taken:
            number += 1
            own = f"{name} ({number})"
        taken.add(own)
        found[agent] = own
    return found


def _group_by_pattern(parsed: Mapping[str, _Agent], short: Mapping[str, str]) -> dict[str, list[str]]:
    """Group names by what they leave out: a pattern if several leave out the same, else the whole spec."""
    groups: dict[str, list[str]] = {}
    for line, name in short.items():
        if name != line:
            groups.setdefault(_pattern(parsed[line], name, list(parsed.values())), []).append(line)
    return {pattern if len(lines) > 1 else lines[0]: [short[line] for line in lines] for pattern, lines in groups.items()}


def _pattern(agent: _Agent, name: str, all_agents: Sequence[_Agent]) -> str:
    """Return what a short name leaves out of the spec, with an ellipsis in its place."""
    head = "".join(agent.segments)
    kept = _head(agent.segments, {other.segments for other in all_agents})
    shared = _common_options(agent, all_agents)
    options = [option for option in agent.options if option in shared]
    label = agent.label if agent.label and not name.endswith(agent.label) else ""
    return f"{head.removesuffix(kept)}{LEFT_OUT}{'?' * bool(options)}{'&'.join(options)}{label}"
