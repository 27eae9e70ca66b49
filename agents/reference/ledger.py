"""Amounts: what a message adds to, takes from or sets on a list of things with quantities, and what that comes to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, final

from longspan.agents.reference.language import WORD, amount, stem

__all__ = ["Change", "changes", "total"]

ON_LIST = re.compile(r"\b(?:list|basket|cart|trolley|inventory|shopping|buy|purchase|grocer\w+)\b", re.IGNORECASE)
_ADDS = re.compile(
    r"\b(?:add|put|include|insert|append|write|note|jot|throw|toss|buy|get|grab|need|purchase|pick up|increase|raise|more"
    r"|another|also|extra)\b",
    re.IGNORECASE,
)
_TAKES = re.compile(
    r"\b(?:remove|delete|drop|scratch|cross|strike|cancel|reduce|decrease|lower|subtract|cut|erase|omit|skip|minus|fewer|less"
    r"|off|get rid|take (?:out|away|back)|can go|too (?:many|much)|no need|no longer|any ?more|minus"
    r"|not need\w*|(?:don['’]?t|won['’]?t|do not|will not|needn['’]t) (?:need|want|buy|get|add|require|have to)|forget|leave out)\b",
    re.IGNORECASE,
)
_SPARED = re.compile(r"\balready (?:have|got|own|bought)\b|\b(?:enough|plenty)\b", re.IGNORECASE)
"""Says that what is named need not be there; a number with it does not count."""
_EXACT = re.compile(
    r"\b(?:instead of|rather than|make (?:that|it)|only need|need only|in total|altogether"
    r"|(?:reduc|increas|bring|rais|lower|cut|set|chang|updat|adjust|bump)\w*\b.{1,40}\bto(?= \w+))\b",
    re.IGNORECASE,
)
"""Says that a number is the new amount, not a difference."""
_BARE = re.compile(r"^(?:(?:and|also|then|plus|oh|with|as well as|another|\+)\W+)*(\w+)(?:\s[\w'’-]+){1,4}\W*$", re.IGNORECASE)
"""A number and hardly more."""
_TRADE = re.compile(r"\b(?:replace|swap|exchange|trade)\b", re.IGNORECASE)
_FRESH = re.compile(r"\b(?:clear|empty|scrap|wipe|reset|discard|start over|forget|disregard)\b.{0,60}\blists?\b", re.IGNORECASE)
_STARTS = re.compile(
    r"\b(?:add|put|include|insert|append|write|note|jot|throw in|toss in|buy|grab|purchase|pick up|need)\b(?: down| in| also)*\s+"
    r"(?:(?:also|some|the|my|more|any)\s+)*(?=\w)"
    r"|^(?:and|also|plus)\s+(?:some\s+)?(?=\w)",
    re.IGNORECASE,
)
"""Words after which the name of a thing comes even without a number."""
_STOP = frozenset(
    """to from on onto off in into for at as by and or but because so since that which is are was were if when while please now also
    too then instead anymore today tomorrow already i we my the it them this these those you your more me us with still additional
    extra longer back again out up over after before only just actually rather altogether entirely completely anyway either than
    should must many fewer less could would will can need needed down list lists shopping good enough of all everything things thing there
    here not no any some add remove be have has""".split()
)
"""Words that are no part of a thing's name, and end it; after a container "of" is."""
_CONTAINERS = frozenset(
    map(
        stem,
        """bottle box bag can jar carton pack packet loaf loaves slice bunch piece tin tub tube bar block pound kilo gram litre liter
        gallon pint dozen head clove roll sheet set pair case crate cup unit""".split(),
    )
)
_NOT_THINGS = frozenset(
    map(
        stem,
        """second minute hour day week month year time km kilometre kilometer metre meter mile m block step street reply response answer
        message turn word sentence people person""".split(),
    )
)


@final
@dataclass(frozen=True, slots=True)
class Change:
    """One change of an amount. `count` None: all of the thing (take) or one (add). `thing` "": the one changed last.

    `kind` "drop": all of whatever is named in `thing`, a whole clause, and known by then. `context`: what else was said.
    """

    kind: Literal["add", "take", "set", "drop", "clear"]
    count: float | None
    thing: str
    context: str = ""


def changes(text: str) -> list[Change]:
    """The changes that a message tells, clause by clause: numbers with the names of things, and whether they come or go."""
    if len(text) > 1000:
        return []
    if _FRESH.search(text):
        return [Change("clear", None, "")]
    bare = _BARE.match(text)
    listed = bool(ON_LIST.search(text)) or bool(bare and amount(bare[1]))
    if not any((listed, _ADDS.search(text), _TAKES.search(text), _EXACT.search(text), _TRADE.search(text))):
        return []
    clauses = re.split(r"[.!?;:]\s|\bbut\b|,(?=\s*(?:so|we|i|take|add|remove|drop|make)\b)|\n", text)
    told = [change for clause in clauses for change in _clause(clause, listed, text)]
    if not listed:  # "a" and "another" count nothing where no list is spoken of
        told = [change for change in told if change.kind != "add" or (change.count or 0) > 1 or re.search(r"\b(?:1|one)\b", text, re.I)]
    counted = [change for change in told if change.kind != "drop"]
    return told if any(_TRADE.search(clause) for clause in clauses) else counted or told


def _clause(clause: str, listed: bool, text: str) -> Iterator[Change]:
    """The changes in one clause of a text. One that says neither that things come nor that they go counts where the text is of a list."""
    takes = bool(_TAKES.search(clause) or (not _ADDS.search(clause) and _TAKES.search(text)))
    if _TRADE.search(clause):
        old, _, clause = re.sub(r"\b(?:with|for|by)\b", "\n", clause, count=1).partition("\n")
        yield Change("drop", None, old)
        takes = False
    elif _SPARED.search(clause):
        yield Change("drop", None, clause)
        return
    elif (exact := _EXACT.search(clause)) and not re.search(r"\b(?:more|extra|additional)\b", clause):
        start = exact.end() if exact[0].casefold().endswith("to") else 0
        kept = [
            (count, thing)
            for at, count, thing in _counted(clause)
            if start or not exact[0].casefold().endswith((" of", "than")) or at < exact.start()
        ]
        for count, thing in kept[-1:] if start else kept[:1]:
            yield Change("set", count, thing, text)
        if kept:
            return
    elif not (takes or listed or _ADDS.search(clause)):
        return
    counted = list(_counted(clause)) or ([(0, 1.0, "")] if takes and re.search(r"\bone\b", clause, re.IGNORECASE) else [])
    for _, count, thing in counted:
        yield Change("take" if takes else "add", count, thing, text)
    if not counted and takes:
        yield Change("drop", None, text if re.search(r"\b(?:it|them|that|those|they)\b", clause, re.IGNORECASE) else clause)
    elif not takes and (listed or re.match(r"\W*(?:please )?(?:add|buy|put|throw|include)\b", clause, re.IGNORECASE)):
        for start_at in list(_STARTS.finditer(clause))[:1]:
            for piece in re.split(r",|\band\b", clause[start_at.end() :]):
                if not list(_counted(piece)) and (thing := _thing(piece.strip())):
                    yield Change("add", None, thing)


def _counted(clause: str) -> Iterator[tuple[int, float, str]]:
    """The numbers in a clause with the things they count: where, how many, and the name, "" for "2 of them" and "by 2"."""
    skip = 0
    for word in re.finditer(r"[\w-]+(?:\.\d+)?", clause):
        if word.start() < skip or (count := amount(word[0])) is None:
            continue
        rest = re.sub(r"^(?:\s+(?:more|extra|additional|another|further|other|of|the|my|our|those|these))+\b", "", clause[word.end() :])
        thing = _thing(rest)
        skip = word.end() + max(0, clause[word.end() :].find(thing)) + len(thing)
        if WORD.findall(thing) and stem(WORD.findall(thing)[0]) in _NOT_THINGS:
            continue
        if thing or word[0][0].isdigit() or word[0].casefold() not in ("a", "an", "one", "once", "single"):
            yield word.start(), count, thing
    if not skip and (other := re.search(r"\banother\s+(?=[a-z])", clause, re.IGNORECASE)) and (thing := _thing(clause[other.end() :])):
        yield other.start(), 1, thing


def _thing(text: str) -> str:
    """The name of a thing that a text begins with."""
    end, last = 0, ""
    for count, word in enumerate(re.finditer(r"[\w'’-]+", text)):
        lower = word[0].casefold()
        if count > 4 or re.search(r"[,;:.!?(]", text[end : word.start()]) or amount(lower) is not None:
            break
        if lower in _STOP and not (lower == "of" and stem(last) in _CONTAINERS):
            break
        end, last = word.end(), lower
    return text[:end].strip()


def total(all_changes: Iterable[Change]) -> dict[str, float]:
    """What the changes come to: the things that are left, as they were first named, with their amounts."""
    names: dict[frozenset[str], str] = {}
    counts: dict[frozenset[str], float] = {}
    key: frozenset[str] = frozenset()
    for change in all_changes:
        if change.kind == "clear":
            names, counts = {}, {}
            continue
        if change.kind == "drop":
            stems = {stem(word) for word in WORD.findall(change.thing)}
            for gone in [one for one in counts if one <= stems]:
                del counts[gone], names[gone]
            continue
        named = _key(change.thing)
        if named - _CONTAINERS:
            key = _same(named, counts)
        else:
            stems = {stem(word) for word in WORD.findall(change.context)}
            key = next((one for one in reversed(counts) if one <= stems), named or key)
        if not key:
            continue
        before = counts.get(key, 0)
        count = change.count or 1
        if change.kind == "take" and not before:
            continue
        names.setdefault(key, change.thing)
        counts[key] = count if change.kind == "set" else before + count if change.kind == "add" else before - count
        if counts[key] <= 0:
            del counts[key], names[key]
    return {names[key]: count for key, count in counts.items()}


def _key(thing: str) -> frozenset[str]:
    """What names a thing, whatever its number and container."""
    stems = [stem(word) for word in WORD.findall(thing) if word.casefold() not in _STOP]
    return frozenset([one for one in stems if one not in _CONTAINERS] or stems)


def _same(key: frozenset[str], counts: dict[frozenset[str], float]) -> frozenset[str]:
    """The thing that `key` names: one that is there, even where it was named in fewer or more words."""
    if key in counts:
        return key
    alike = [other for other in counts if key and (key < other or other < key)]
    return alike[-1] if len(alike) == 1 else key
