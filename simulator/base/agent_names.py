"""Short names of agents: what tells them apart, without what they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from longspan.simulator.base.terminal import visible

__all__ = ["ShortNames", "short_names"]

_SPEC: Final = re.compile(r"[A-Za-z][\w-]*(?:[/:?].*)?", re.DOTALL)
_LABELLED: Final = re.compile(r"(?P<spec>.*?)(?P<label> \[[^\[\]]*\])?", re.DOTALL)
_SEGMENT: Final = re.compile(r"[^/:]*[/:]+|[^/:]+")

LEFT_OUT: Final = "\N{HORIZONTAL ELLIPSIS}"
"""Stands in a pattern for the part that differs."""


@final
class ShortNames(NamedTuple):
    """The short names of agents. `names` maps each agent to its own: no two are equal. `meant` maps what names leave out, such as
    memory/…?answerer=none, to the names that do; a name that shares this with none is mapped to by the whole spec."""

    names: Mapping[str, str]
    meant: Mapping[str, Sequence[str]]

    def legend(self, called: Mapping[str, str]) -> list[str]:
        """Return a line for each letter in `called`, with its name, or with the whole spec if no other name leaves out the same."""
        alone = {names[0]: pattern for pattern, names in self.meant.items() if len(names) == 1}
        return [f"{letter}  {alone.get(name, name)}" for name, letter in called.items()]

    def told(self, called: Mapping[str, str] | None = None) -> str:
        """Say in one sentence what the names leave out; empty if nothing. `called` has letters for them, whose legend is not repeated."""
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
    """An agent's spec in parts: the segments of what stands before the options, with the `/` or `:` that ends each; the options; the label
    in its brackets."""

    segments: tuple[str, ...]
    options: tuple[str, ...]
    label: str

    @property
    def kind(self) -> str:
        return self.segments[0].rstrip("/:") if self.segments else ""


def short_names(agents: Sequence[str]) -> ShortNames:
    """Return short names of agents, given by their specs, which a label in brackets may follow.

    A name is the last part of the spec, as much of it as tells it from the others, with the options in which agents of its kind differ, and
    the label where labels differ. An agent alone keeps its spec, and whatever would not be unique stays as it is. All are one line.
    """
    given = {agent: visible(" ".join(agent.split())) for agent in agents}
    lines = list(dict.fromkeys(given.values()))
    parsed = {line: _parsed(line) for line in lines}
    short = {line: _short(agent, list(parsed.values())) for line, agent in parsed.items()} if len(lines) > 1 else {}
    counts = Counter(short.values())
    short = {line: line if counts[short.get(line, "")] != 1 else short[line] for line in lines}
    if len(set(short.values())) < len(short):  # a whole spec is another's short name
        short = {line: line for line in lines}
    return ShortNames(_numbered({agent: short[line] for agent, line in given.items()}), _meant(parsed, short))


def _parsed(line: str) -> _Agent:
    match = _LABELLED.fullmatch(line)
    spec, label = (match["spec"], match["label"] or "") if match else (line, "")
    if not _SPEC.fullmatch(spec):  # an imported run's agent may have any name
        return _Agent((spec,), (), label)
    head, mark, query = spec.partition("?")
    return _Agent(tuple(_SEGMENT.findall(head)), tuple(query.split("&")) if mark else (), label)


def _short(agent: _Agent, all_agents: Sequence[_Agent]) -> str:
    options = [option for option in agent.options if option not in _shared(agent, all_agents)]
    label = "" if all(other.label == agent.label for other in all_agents) else agent.label
    return f"{_head(agent.segments, {other.segments for other in all_agents})}{'?' * bool(options)}{'&'.join(options)}{label}"


def _shared(agent: _Agent, all_agents: Sequence[_Agent]) -> set[str]:
    """Return the options that all agents of its kind have."""
    return set.intersection(*(set(other.options) for other in all_agents if other.kind == agent.kind))


def _head(segments: tuple[str, ...], heads: set[tuple[str, ...]]) -> str:
    """Return the fewest last segments, a letter among them, with which no other head ends."""
    for number in range(1, len(segments)):
        last = segments[-number:]
        name = "".join(last)
        if any(letter.isalpha() for letter in name) and not any(other[-number:] == last for other in heads if other != segments):
            return name
    return "".join(segments)


def _numbered(names: Mapping[str, str]) -> dict[str, str]:
    """Return names that differ even where specs differ only in their spaces or in characters that are not shown."""
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


def _meant(parsed: Mapping[str, _Agent], short: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names by what they leave out: a pattern that several have in common, else the whole spec."""
    groups: dict[str, list[str]] = {}
    for line, name in short.items():
        if name != line:
            groups.setdefault(_pattern(parsed[line], name, list(parsed.values())), []).append(line)
    return {pattern if len(lines) > 1 else lines[0]: [short[line] for line in lines] for pattern, lines in groups.items()}


def _pattern(agent: _Agent, name: str, all_agents: Sequence[_Agent]) -> str:
    """Return what a short name leaves out, with an ellipsis for the name."""
    head = "".join(agent.segments)
    kept = _head(agent.segments, {other.segments for other in all_agents})
    shared = _shared(agent, all_agents)
    options = [option for option in agent.options if option in shared]
    label = agent.label if agent.label and not name.endswith(agent.label) else ""
    return f"{head.removesuffix(kept)}{LEFT_OUT}{'?' * bool(options)}{'&'.join(options)}{label}"
