"""Splits text into sentences and clauses. All readers use this splitter."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections.abc import Sequence
from typing import Final, NamedTuple, final

from longspan.simulator.base.words import plain

__all__ = [
    "BRACKET",
    "COMMA",
    "LINE",
    "NONE",
    "NOTHING",
    "SENTENCE",
    "SENTENCE_END",
    "TURN",
    "Clause",
    "split_clauses",
    "undot_abbreviations",
]

NONE, BRACKET, COMMA, TURN, SENTENCE, LINE = range(6)
"""How strongly the marks between two clauses separate them, from weakest to strongest."""

SENTENCE_END: Final = re.compile(r"[.!?;\u2026]+[\"')*_\u201d]{0,4}(?:\s+|\Z)|\n+")
"""The end of a sentence: a mark before a space, so that "2.5" and "9:30" stay whole, or the end of a line."""

_DOTTED: Final = re.compile(r"\b(?:([ap])\.\s?m\.|(e)\.\s?g\.|(i)\.\s?e\.)", re.IGNORECASE)
_SECOND: Final = {"a": "m", "p": "m", "e": "g", "i": "e"}
_SHORTENED: Final = re.compile(r"\b(Mrs?|Ms|Dr|Prof|St|vs|approx|etc|cf)\.(?=[^\S\n]{0,3}[\w,])|(?<![.!?] )(?<!^)\b(Nos?)\.(?=\s?\d)")

_TIME: Final = rf"(?:\d|then|last|yesterday|the \d|that (?:day|time)|{'|'.join([*month_name[1:], *day_name])})"
"""Words after "since" in its temporal sense. Before other words it means "because" and starts a clause."""
_CUTS: Final = re.compile(
    r"(?P<joint>,(?!\d{3}\b)|(?<!\d)[/|]|[/|](?!\d)|&|->|=>|(?<=\w) > (?=\w)|[\u2192\u27a1\u21d2\u27f6\u279c\u2794]\ufe0f?|"
    r"\b(?:and|or|plus|(?<!could )(?<!might )(?<!may )also)\b)"  # between items of an enumeration
    r"|(?P<head>(?<!\d):|:(?!\d)|[\n*\u2022])"  # around titles and list items
    r"|(?<!\d)\.|\.(?!\d)|[!?;()\[\]\u2026\u2014\u2013\u00b7]|<-|\s-+\s"
    r"|\b(?:(?<!anything )but|mais|sondern|yet|however|although|though|(?<!\ba )while|whereas|because"
    rf"|since(?=\s+(?!{_TIME})\w)|(?<!\bas )if|unless|which(?=\W+\w))\b"
    r"|\bwhere(?= (?:it|you|there|the \w+|your \w+) (?:once|used|previously|formerly|had|was)\b)"
    r"|\buntil\b(?=\s+(?:you|i|we|it)\b)|(?<!back )\bwhen\b(?=\s+you\s+(?:decided|said|told|changed|chose|switched|settled|went|asked)\b)"
    r"|(?<=\bany more) |(?<=\banymore) |(?<=\bany longer) |(?<=\w) (?=(?:no wait|wait no|scratch that|i mean|sorry i mean|just kidding)\b)"
    r"|(?<=\w) (?=(?:so (?:yeah|yes|its?|that\'?s|the answer)|before (?:that|this) it)\b)"
    r"|(?=(?P<negates>rather than|anything but|other than|not|niet|nicht|et non)\b)(?<!\w)",
    re.IGNORECASE,
)
_AUXILIARY: Final = re.compile(
    r"\b(?:is|am|are|was|were|be|s|m|re|ve|do|does|did|has|have|had|can|could|will|would|should|may|might|must|d|ll) $", re.IGNORECASE
)
"""Matches before a "not" that negates its own clause ("it is not red"). Any other "not" starts a clause ("red, not blue")."""
_ENDS: Final = re.compile(r"[.!?\u2026]")
_TURNS: Final = re.compile(r"[;]|but|yet|however|though|while|whereas|because|since(?=\s+\w)|if|unless|until|when|where", re.IGNORECASE)
_JOINTS: Final = re.compile(r"[,/&|]|and|or|plus|also", re.IGNORECASE)


@final
class Clause(NamedTuple):
    """A clause in plain words.

    `raw` is the clause as written. `gap` is the text between it and the clause before. `link` is the kind of gap: "joint" between items of
    an enumeration, "head" after a heading, or "". `part` is the strength of the gap. `sentence` is the number of the clause's sentence, and
    `asks` is set if that sentence ends with a question mark.
    """

    text: str
    link: str
    gap: str
    raw: str
    part: int
    sentence: int
    asks: bool = False


NOTHING: Final = Clause("", "", "", "", NONE, 0)
"""What is before the first clause and after the last."""


def undot_abbreviations(text: str) -> str:
    """Return `text` with abbreviations without dots, which would end a sentence: "9 am sharp" for "9 a.m. sharp"."""
    if "." not in text:
        return text
    return _SHORTENED.sub(lambda match: match[0][:-1], _DOTTED.sub(_join_abbreviation, text))


def _join_abbreviation(match: re.Match[str]) -> str:
    letter = next(filter(None, match.groups()))
    ends = re.match(r"\s+[A-Z\"'(*]|\s*\Z|\s*\n", match.string[match.end() : match.end() + 20])
    return f"{letter}{_SECOND[letter.lower()]}{'.' if ends and letter.lower() in 'ap' else ''}"


def split_clauses(text: str) -> Sequence[Clause]:
    """Return the clauses of `text`, without those that have no words."""
    found: list[Clause] = []
    asking: set[int] = set()
    at, link, gap, part, sentence = 0, "", "", NONE, 0
    for cut in _CUTS.finditer(text):
        if cut["negates"] and _AUXILIARY.search(text, max(0, cut.start() - 10), cut.start()):
            continue
        raw = text[at : cut.start()]
        words = plain(raw)
        if words:
            found.append(Clause(words, link, gap, raw.strip(), part, sentence))
        kind = (cut.lastgroup or "") if cut[0] else ""
        strength = _strength(cut[0])
        if words:
            link, gap, part = kind, cut[0], strength
        else:
            link = kind if link == kind or gap in (")", "]") else "joint" if link and kind else ""
            gap, part = (gap + cut[0])[-20:], max(part, strength)
        if cut[0] == "?":
            asking.add(found[-1].sentence if found else 0)
        sentence += strength >= SENTENCE
        at = cut.end()
    if words := plain(text[at:]):
        found.append(Clause(words, link, gap, text[at:].strip(), part, sentence))
    return [clause._replace(asks=clause.sentence in asking) for clause in found] if asking else found


def _strength(mark: str) -> int:
    if not mark.strip(" "):
        return BRACKET if mark else NONE
    if mark == "\n":
        return LINE
    if _ENDS.match(mark):
        return SENTENCE
    if _TURNS.match(mark):
        return TURN
    return COMMA if _JOINTS.match(mark) else BRACKET
