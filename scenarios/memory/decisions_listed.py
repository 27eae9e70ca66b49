"""Reads a digest: which decisions a reply lists as standing, and which it marks as earlier, reversed or not taken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.matching import json_values, plain
from longspan.simulator.grading.reading.layout import answering, laid_out, unmarked
from longspan.simulator.grading.reading.lexicon import LEXICON
from longspan.simulator.grading.reading.mentions import corrects
from longspan.simulator.grading.reading.splitting import clauses
from longspan.simulator.grading.reading.values import Values, mended

__all__ = ["listed"]

_ASIDE: Final = re.compile(
    r"[(\[][^()\[\]]{0,300}[)\]]|\b(?:leaving out|excluding|without|omitting|except|apart from|not counting|other than|not including)\b.*",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile('["\u201c][^"\u201c\u201d\n]{25,400}["\u201d]')
_QUOTE: Final = re.compile('["\u201c][^"\u201c\u201d\n]{1,400}["\u201d]')
_BOLD: Final = re.compile(r"^\s{0,9}\*\*([^*\n]{1,80}?):?\*\*:?\s*$", re.MULTILINE)
"""A line in bold, which is a heading."""
_ITEM: Final = re.compile(r"(?P<indent>[^\S\n]*)(?:[-*\u2022+]|\(?\d{1,3}[.):])[^\S\n]+(?=\S)")
_CLAUSES: Final = re.compile(
    r"[.;!?()\[\]:\u2014\u2013]|\s-+\s|,?\s\b(?=(?:but|although|though|while|whereas|however|which)\b)|,\s\b(?=(?:not|never|only)\b)",
    re.IGNORECASE,
)
_FULL_STOP: Final = re.compile(r"[.!?](?:\s+|$)")
_STATUS: Final = re.compile(r"\n[^\S\n]+(?:status|state|note):[^\S\n]*([^\n]{1,80})", re.IGNORECASE)
"""The line of a record that says how its decision stands."""
_STANDS: Final = re.compile(r"\b(?:stands?|standing|decided|active|valid|in force|current)\b")
_LEFT_ALONE: Final = re.compile(r"\bleav(?:e|es|ing) [^.;:!?\n]{1,60}? (?:alone|be|as it is|as they are)\b", re.IGNORECASE)
"""What says that a decision was reversed: "leave the sandpit alone after all"."""
_DEED: Final = re.compile(
    r"(?:(?:we|you) (?:ll|will) )?(?:also )?(?:to )?"
    r"(?!(?:that|this|for|in|on|at|with|of|by|is|was|are|be|it|all|leave|keep)\b)[a-z]{3,12}(?: (?:up|out|in|off|down|away|apart))?"
    r" (?:the|a|an|our|your|new|some|another) (?!(?:rest|list|week|household|family|others|following|decisions|same)\b)"
    r"[a-z]{3,20}(?: [a-z]{2,20}){0,3}"
)
"""What a household may decide to do: "repaint the kitchen"."""
_WAS_TALK: Final = re.compile(
    r"\b(?:ideas?|talk|talked about|discuss\w*|consider\w*|suggest\w*|propos\w*|mentioned|floated|mulled\w*|brought up|came up)\b"
    r"(?: (?!not\b|never\b|nothing\b|un\w|yet\b|without\b)\w+){0,6} (?:decided|agreed|settled|confirmed|approved|adopted)\b"
)
"""What says that an idea has become a decision since."""
_ADDS: Final = re.compile(r"\b(?:forgot|forgotten|missed|missing|overlooked|left out|omitted|add|added|belongs|also)\b")
"""Words of a correction that adds a decision."""
_LABEL: Final = re.compile(r"\W{0,3}\w+\s+[-\u2013\u2014]\s+|\W{0,3}\w+\s?[\u2013\u2014]\s?")
"""A word before a dash, at the beginning of a line: "RESCINDED - "."""
LONGEST: Final = 8
"""The most words of an item of a list without marks."""
SLIPPED: Final = 5, 7
"""Letters of the shortest word that is recognised with a slip of one of them, in an item of a few words and in other text."""
SEVERAL: Final = 2
"""The fewest lines of a list."""
_LONGEST_LEAD: Final = 300
"""The most characters that are read of what leads up to a colon, so that many colons take no longer than one."""
_LEAST: Final = 3
"""The words of the shortest item of a list that can be a decision."""


@final
class _Entry(NamedTuple):
    """A line of a reply or a string of its JSON; whether a heading marks it, and whether it is an item of a list."""

    text: str
    marked: bool
    item: bool


def listed(reply: str) -> tuple[list[str], list[str]]:
    """Return the decisions of the list that a reply says stand, and the items of its list that are none of these.

    An item does not stand if the reply calls it earlier, reversed, undecided or an idea, in the clause, a remark behind it or the heading
    above it. What a line of its own corrects counts as corrected. Takes time linear in the reply and never raises.
    """
    reply = answering(reply)
    there: dict[str, None] = {}
    unknown: list[str] = []
    for entry in _entries(reply):
        mentions = list(_mentions(entry.text))
        if there and not entry.item and mentions and _corrects(entry.text):
            adds = _ADDS.search(plain(entry.text)) is not None
            there |= dict.fromkeys(deed for deed, marked in mentions if adds or not marked)
            there = {deed: None for deed in there if adds or (deed, True) not in mentions}
            continue
        if not entry.marked:
            there |= dict.fromkeys(deed for deed, marked in mentions if not marked)
        if entry.item and not mentions and not entry.marked and len(plain(entry.text).split()) >= _LEAST and not _is_marked(entry.text):
            unknown.append(entry.text)
        elif len(mentions) >= SEVERAL and not entry.marked:
            unknown += _enumerated(entry.text)
    return list(there), unknown


def _corrects(text: str) -> bool:
    """Return whether a line begins by taking back what was said before it."""
    return any(map(corrects, clauses(f"({text[:_LONGEST_LEAD]}")[:2]))


def _enumerated(text: str) -> list[str]:
    """Return what a sentence enumerates like its decisions, and is none."""
    parts = clauses(text)
    return [
        part.raw
        for before, part in pairwise(parts)
        if part.link == "joint"
        and _named(before.text)
        and not _named(part.text)
        and _DEED.fullmatch(part.text)
        and not _is_marked(part.text)
    ]


def _entries(reply: str) -> Iterator[_Entry]:
    """Yield the entries of a reply: its JSON if it has any that names something, or else its lines."""
    in_json = [entry for value in json_values(reply) for entry in _values(value, False)]
    if any(_named(entry.text) for entry in in_json):
        yield from in_json
        return
    below, bullets = False, None
    text = _STATUS.sub(r" (\1)", unmarked(_BOLD.sub(r"\1:", _unquoted(reply))))
    lines = _concluding(_applied(text.splitlines()))
    alone = sum(_is_bare(line) and bool(_named(line)) for line in lines) >= SEVERAL and not any(map(_ITEM.match, lines))
    for line in lines:
        mark = _ITEM.match(line)
        text = (line[mark.end() :] if mark else line).strip("> \t")
        if _heads(line, text):
            below, bullets = _heading_marks(text), None
        elif text:
            bullets = mark is not None if bullets is None else bullets
            below = below and bullets == (mark is not None)
            yield _Entry(text, below, not mark["indent"] if mark else alone and _is_bare(line))
        elif bullets is False:
            below = False


def _unquoted(text: str) -> str:
    """Return `text` without long quotations in lines that have words beside quotations."""
    return "\n".join(line if plain(_QUOTE.sub(" ", line)) in ("", "and") else _QUOTED.sub(" ", line) for line in text.split("\n"))


def _applied(lines: list[str]) -> list[str]:
    """Return the lines that a list of changes leaves: of those with a plus or a minus, each with a plus that no later minus takes back."""
    if not any(line.startswith("+") for line in lines):
        return lines
    last = {plain(line): line[:1] for line in lines if line[:1] in ("+", "-")}
    return [line for line in lines if line[:1] not in ("+", "-") or (line[:1] == "+" and last[plain(line)] == "+")]


def _is_bare(line: str) -> bool:
    """Return whether a line without a mark may be the item of a list."""
    return len(line.split()) <= LONGEST and not _CLAUSES.search(line)


def _concluding(lines: list[str]) -> list[str]:
    """Return the lines below the last heading of a conclusion ("So:"), if they are a list: what comes before is how it was found."""
    for at in range(len(lines) - 1, -1, -1):
        heading = _FULL_STOP.split(lines[at].strip())[-1]
        said = plain(heading)
        if _heads(heading, heading) and (LEXICON.has("concluded", said) or LEXICON.has("what is left", said)):
            return lines[at + 1 :] if sum(bool(_named(line)) for line in lines[at + 1 :]) >= SEVERAL else lines
    return lines


def _values(value: Any, marked: bool) -> Iterator[_Entry]:
    match value:
        case str():
            yield _Entry(value, marked, item=True)
        case list():
            for each in value:
                yield from _values(each, marked)
        case dict():
            marked = marked or any(_field_marks(key, each) for key, each in value.items())
            naming = [isinstance(each, str) and bool(_named(each)) for each in value.values()]
            beside = any(naming)  # strings that name nothing are remarks then
            for (key, each), named in zip(value.items(), naming, strict=True):
                if named or not (beside and isinstance(each, str)):
                    yield from _values(each, marked or _heading_marks(str(key)))


def _field_marks(key: str, value: Any) -> bool:
    """Return whether a field of an object says that its decision does not stand: "status": "reversed", "stands": false."""
    if isinstance(value, bool):
        return _heading_marks(key) if value else _STANDS.search(plain(key.replace("_", " "))) is not None
    return isinstance(value, str) and not _named(value) and _is_marked(value)


def _heads(line: str, text: str) -> bool:
    """Return whether a line is the heading of the lines after it."""
    return (text.endswith(":") or line.strip().startswith("#")) and not _named(text)


def _heading_marks(heading: str) -> bool:
    """Return whether a heading says that its list is not decided or no longer so: "Earlier decisions", "Not decided yet"."""
    return _is_marked(_ASIDE.sub(" ", heading.replace("_", " ")))


def _is_marked(text: str) -> bool:
    said = _WAS_TALK.sub(" ", LEXICON.pattern("standing").sub(" ", plain(laid_out(text))))
    return LEXICON.has("not standing", said) and not LEXICON.has("decided now", said)


def _mentions(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the decisions that a line names, each with whether it is marked: by its clause, by what leads up to it with a colon, or by a
    remark behind it."""
    text = _LEFT_ALONE.sub(" ", text)
    waiting: list[str] = []
    marked = leads = False
    at = begun = 0
    for end, following in _cuts(text):
        clause = text[at:end]
        at = following
        if named := _named(clause):
            yield from ((deed, marked) for deed in waiting)
            waiting, marked = named, leads or _is_marked(clause)
        elif text[end:following] == ":" or (not begun and _LABEL.fullmatch(text[:following])):
            lead = text[max(begun, end - _LONGEST_LEAD) : end]
            leads = not _named(lead) and _heading_marks(lead)
        elif waiting and _is_marked(clause):
            yield from ((deed, marked) for deed in waiting[:-1])
            waiting, marked = waiting[-1:], True
        if _FULL_STOP.search(text[end:following]):
            yield from ((deed, marked) for deed in waiting)
            waiting, marked, begun = [], False, following
    yield from ((deed, marked) for deed in waiting)


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each clause of `text` ends and where the next begins."""
    for cut in _CLAUSES.finditer(text):
        yield cut.start(), cut.end()
    yield len(text), len(text)


def _named(text: str) -> list[str]:
    """Return the decisions that `text` names, in the order of its words, with slips of a letter or without."""
    said, (decisions, names) = plain(text), _decisions()
    few = len(said.split()) <= LONGEST
    found = decisions.find(said) or decisions.find(mended(said, names, SLIPPED[not few]))
    return list(dict.fromkeys(each.value for each in found))


@cache
def _decisions() -> tuple[Values, Sequence[str]]:
    """Return the decisions by all their names, and these: "dining table" is also the "table for dining"."""
    known: Sequence[Mapping[str, Any]] = words("decisions")
    names = {name: each["deed"] for each in known for name in each["names"]}
    pairs = [(*name.split(), deed) for name, deed in names.items() if name.count(" ") == 1]
    others = {f"{noun} {joint} {whose}": deed for whose, noun, deed in pairs for joint in ("for", "for the", "of", "of the")}
    return Values((each["deed"] for each in known), others | names), tuple(names)
