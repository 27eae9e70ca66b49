"""Read a digest: which decisions a reply lists as current, and which it marks as earlier, reversed or never made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.reading.matching import json_values
from longspan.simulator.reading.replies.layout import drop_asides, drop_markup, flatten_layout
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.mentions import is_correction
from longspan.simulator.reading.replies.splitting import SENTENCE_END, split_clauses
from longspan.simulator.reading.replies.values import Values, correct_typos

__all__ = ["read_decisions"]

_ASIDE: Final = re.compile(
    r"[(\[][^()\[\]]{0,300}[)\]]|\b(?:leaving out|excluding|without|omitting|except|apart from|not counting|other than|not including)\b.*",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile('["\u201c][^"\u201c\u201d\n]{25,400}["\u201d]')
_QUOTE: Final = re.compile('["\u201c][^"\u201c\u201d\n]{1,400}["\u201d]')
_BOLD: Final = re.compile(r"^\s{0,9}\*\*([^*\n]{1,80}?):?\*\*:?\s*$", re.MULTILINE)
"""A line in bold, which counts as a heading."""
_ITEM: Final = re.compile(r"(?P<indent>[^\S\n]*)(?:[-*\u2022+]|\(?\d{1,3}[.):])[^\S\n]+(?=\S)")
_CLAUSES: Final = re.compile(
    r"[.;!?()\[\]:\u2014\u2013]|\s-+\s|,?\s\b(?=(?:but|although|though|while|whereas|however|which)\b)|,\s\b(?=(?:not|never|only)\b)",
    re.IGNORECASE,
)
_STATUS: Final = re.compile(r"\n[^\S\n]+(?:status|state|note):[^\S\n]*([^\n]{1,80})", re.IGNORECASE)
"""The line of a record that gives the status of its decision."""
_STANDS: Final = re.compile(r"\b(?:stands?|standing|decided|active|valid|in force|current)\b")
_LEFT_ALONE: Final = re.compile(r"\bleav(?:e|es|ing) [^.;:!?\n]{1,60}? (?:alone|be|as it is|as they are)\b", re.IGNORECASE)
"""A phrase that reverses a decision: "leave the sandpit alone after all"."""
_DEED: Final = re.compile(
    r"(?:(?:we|you) (?:ll|will) )?(?:also )?(?:to )?"
    r"(?!(?:that|this|for|in|on|at|with|of|by|is|was|are|be|it|all|leave|keep)\b)[a-z]{3,12}(?: (?:up|out|in|off|down|away|apart))?"
    r" (?:the|a|an|our|your|new|some|another) (?!(?:rest|list|week|household|family|others|following|decisions|same)\b)"
    r"[a-z]{3,20}(?: [a-z]{2,20}){0,3}"
)
"""Form of a possible household decision: "repaint the kitchen"."""
_WAS_TALK: Final = re.compile(
    r"\b(?:ideas?|talk|talked about|discuss\w*|consider\w*|suggest\w*|propos\w*|mentioned|floated|mulled\w*|brought up|came up)\b"
    r"(?: (?!not\b|never\b|nothing\b|un\w|yet\b|without\b)\w+){0,6} (?:decided|agreed|settled|confirmed|approved|adopted)\b"
)
"""A phrase by which an idea became a decision: "the idea of a shed was approved"."""
_ADDS: Final = re.compile(r"\b(?:forgot|forgotten|missed|missing|overlooked|left out|omitted|add|added|belongs|also)\b")
"""Words of a correction that adds a decision."""
_LABEL: Final = re.compile(r"\W{0,3}\w+\s+[-\u2013\u2014]\s+|\W{0,3}\w+\s?[\u2013\u2014]\s?")
"""A word before a dash at the beginning of a line: "RESCINDED - "."""
LONGEST: Final = 8
"""Maximum number of words in an item of a list without bullets."""
SLIPPED: Final = 5, 7
"""Minimum length of a word that is recognised despite one wrong letter: in an item of a few words, and in other text."""
SEVERAL: Final = 2
"""Minimum number of lines in a list."""
_LONGEST_LEAD: Final = 300
"""Maximum number of characters to read before a colon. Without it, a reply full of colons would take quadratic time."""
_LEAST: Final = 3
"""Minimum number of words in a list item that can be a decision."""


@final
class _Entry(NamedTuple):
    """A line of a reply or a string of its JSON; whether a heading marks it, and whether it is a list item."""

    text: str
    marked: bool
    item: bool


def read_decisions(reply: str) -> tuple[list[str], list[str]]:
    """Return the decisions that a reply lists as current, and the list items that are not known decisions.

    A decision is not current if the reply calls it earlier, reversed, undecided or an idea: in the same clause, in a remark after it, or
    in the heading above it. A separate line may correct the list. Runs in linear time and never raises.
    """
    reply = drop_asides(reply)
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
            unknown += _find_enumerated(entry.text)
    return list(there), unknown


def _corrects(text: str) -> bool:
    """Return whether a line begins by correcting the lines before it."""
    return any(map(is_correction, split_clauses(f"({text[:_LONGEST_LEAD]}")[:2]))


def _find_enumerated(text: str) -> list[str]:
    """Return the parts of a sentence that are enumerated like its decisions but are not known decisions."""
    parts = split_clauses(text)
    return [
        part.raw
        for before, part in pairwise(parts)
        if part.link == "joint"
        and _find_decisions(before.text)
        and not _find_decisions(part.text)
        and _DEED.fullmatch(part.text)
        and not _is_marked(part.text)
    ]


def _entries(reply: str) -> Iterator[_Entry]:
    """Yield the entries of a reply: the strings of its JSON if they name a decision, otherwise its lines."""
    in_json = [entry for value in json_values(reply) for entry in _values(value, False)]
    if any(_find_decisions(entry.text) for entry in in_json):
        yield from in_json
        return
    below, bullets = False, None
    text = _STATUS.sub(r" (\1)", drop_markup(_BOLD.sub(r"\1:", _drop_quotations(reply))))
    lines = _find_conclusion(_apply_changes(text.splitlines()))
    alone = sum(_is_bare(line) and bool(_find_decisions(line)) for line in lines) >= SEVERAL and not any(map(_ITEM.match, lines))
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


def _drop_quotations(text: str) -> str:
    """Return `text` without long quotations, except in lines that consist of quotations only."""
    return "\n".join(line if plain(_QUOTE.sub(" ", line)) in ("", "and") else _QUOTED.sub(" ", line) for line in text.split("\n"))


def _apply_changes(lines: list[str]) -> list[str]:
    """Return the lines left by a list of changes in diff notation: a line with a plus stays unless a later minus removes it."""
    if not any(line.startswith("+") for line in lines):
        return lines
    last = {plain(line): line[:1] for line in lines if line[:1] in ("+", "-")}
    return [line for line in lines if line[:1] not in ("+", "-") or (line[:1] == "+" and last[plain(line)] == "+")]


def _is_bare(line: str) -> bool:
    """Return whether a line without a bullet may be a list item."""
    return len(line.split()) <= LONGEST and not _CLAUSES.search(line)


def _find_conclusion(lines: list[str]) -> list[str]:
    """Return the list below the last concluding heading ("So:"), if there is one. The lines before it only show the reasoning."""
    for at in range(len(lines) - 1, -1, -1):
        heading = SENTENCE_END.split(lines[at].strip())[-1]
        said = plain(heading)
        if _heads(heading, heading) and (LEXICON.has("concluded", said) or LEXICON.has("what is left", said)):
            return lines[at + 1 :] if sum(bool(_find_decisions(line)) for line in lines[at + 1 :]) >= SEVERAL else lines
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
            naming = [isinstance(each, str) and bool(_find_decisions(each)) for each in value.values()]
            beside = any(naming)  # strings that name nothing are remarks then
            for (key, each), named in zip(value.items(), naming, strict=True):
                if named or not (beside and isinstance(each, str)):
                    yield from _values(each, marked or _heading_marks(str(key)))


def _field_marks(key: str, value: Any) -> bool:
    """Return whether a JSON field marks its decision as not current: "status": "reversed", "stands": false."""
    if isinstance(value, bool):
        return _heading_marks(key) if value else _STANDS.search(plain(key.replace("_", " "))) is not None
    return isinstance(value, str) and not _find_decisions(value) and _is_marked(value)


def _heads(line: str, text: str) -> bool:
    """Return whether a line is a heading."""
    return (text.endswith(":") or line.strip().startswith("#")) and not _find_decisions(text)


def _heading_marks(heading: str) -> bool:
    """Return whether a heading marks its list as undecided or outdated: "Earlier decisions", "Not decided yet"."""
    return _is_marked(_ASIDE.sub(" ", heading.replace("_", " ")))


def _is_marked(text: str) -> bool:
    said = _WAS_TALK.sub(" ", LEXICON.pattern("standing").sub(" ", plain(flatten_layout(text))))
    return LEXICON.has("not standing", said) and not LEXICON.has("decided now", said)


def _mentions(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the decisions that a line names, each with whether it is marked as not current.

    The mark may be in the same clause, in words before a colon, or in a remark after the decision.
    """
    text = _LEFT_ALONE.sub(" ", text)
    waiting: list[str] = []
    marked = leads = False
    at = begun = 0
    for end, following in _cuts(text):
        clause = text[at:end]
        at = following
        if named := _find_decisions(clause):
            yield from ((deed, marked) for deed in waiting)
            waiting, marked = named, leads or _is_marked(clause)
        elif text[end:following] == ":" or (not begun and _LABEL.fullmatch(text[:following])):
            lead = text[max(begun, end - _LONGEST_LEAD) : end]
            leads = not _find_decisions(lead) and _heading_marks(lead)
        elif waiting and _is_marked(clause):
            yield from ((deed, marked) for deed in waiting[:-1])
            waiting, marked = waiting[-1:], True
        if text[end:following] in (".", "!", "?"):
            yield from ((deed, marked) for deed in waiting)
            waiting, marked, begun = [], False, following
    yield from ((deed, marked) for deed in waiting)


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the end of each clause of `text` and the start of the next one."""
    for cut in _CLAUSES.finditer(text):
        yield cut.start(), cut.end()
    yield len(text), len(text)


def _find_decisions(text: str) -> list[str]:
    """Return the decisions that `text` names, in order. Tolerates one wrong letter a word."""
    said, (decisions, names) = plain(text), _decisions()
    few = len(said.split()) <= LONGEST
    found = decisions.find(said) or decisions.find(correct_typos(said, names, SLIPPED[not few]))
    return list(dict.fromkeys(each.value for each in found))


@cache
def _decisions() -> tuple[Values, Sequence[str]]:
    """Return a matcher that recognises each decision by any of its names, and the names. "dining table" also matches "table for dining"."""
    known: Sequence[Mapping[str, Any]] = load_words("decisions")
    names = {name: each["deed"] for each in known for name in each["names"]}
    pairs = [(*name.split(), deed) for name, deed in names.items() if name.count(" ") == 1]
    others = {f"{noun} {joint} {whose}": deed for whose, noun, deed in pairs for joint in ("for", "for the", "of", "of the")}
    return Values((each["deed"] for each in known), others | names), tuple(names)
