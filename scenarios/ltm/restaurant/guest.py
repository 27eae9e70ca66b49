"""Reads a restaurant guest's words by rules: what is ordered, declined or only discussed, noticed and recalled.

The LTM benchmark had an LLM read them, which took discussed dishes for ordered ones (GoodAI, section 5). Here a reply is
cut into sentences; within a sentence the last phrase before an item's name says how it is meant. Every function accepts
any text, never raises, and takes time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, final

from longspan.scenarios.ltm.restaurant.guest_phrases import (
    AFTER_OFF,
    AFTER_ORDER,
    AFTER_PRAISE,
    ALSO,
    CHANGE,
    CONTENT,
    CONTRAST,
    CUE,
    DENIED,
    IT,
    MISTAKE,
    NEVER_ORDERED,
    POLITE,
    VERBS,
)
from longspan.scenarios.ltm.restaurant.menu import Item, Mention, Menu, stem
from longspan.scenarios.ltm.restaurant.speaker import spoken
from longspan.simulator.grading.matching import plain

__all__ = ["Complaint", "Recall", "Sentence", "Talk", "read_complaint", "read_recall", "read_talk"]

Tone = Literal["ordered", "soft", "discussed", "rejected", "claimed"]
"""How an item is mentioned: ordered, praised ("soft"), asked about, declined, or claimed to have been ordered before."""

_PIECES = re.compile(r"[^.!?;\n]+[.!?;\n]*")
_BREAKS = re.compile(r"\s[-\u2013]{1,3}\s|[,:\u2014()\"\u201c\u201d]")


@final
class Named(NamedTuple):
    """An item that a sentence names, and how it is meant."""

    item: Item
    tone: Tone


@final
@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in plain words. `,` is any break inside it."""

    text: str
    words: tuple[str, ...]
    asks: bool
    named: tuple[Named, ...] = ()
    refers: bool = False
    """Whether it orders "it" or "that", which was named before."""
    unclear: tuple[str, ...] = ()


def sentences(menu: Menu, reply: str) -> list[Sentence]:
    """Return the sentences of a reply, without stage directions and speakers' names."""
    read = []
    for piece in _PIECES.findall(spoken(menu, reply)):
        text = " , ".join(clause for clause in map(plain, _BREAKS.split(piece)) if clause)
        if text:
            read.append(_sentence(menu, text, asks="?" in piece))
    return read


def _sentence(menu: Menu, text: str, asks: bool) -> Sentence:
    words = text.split()
    stemmed = [word if word == "," else stem(word) for word in words]
    mentions = menu.mentions(stemmed)
    starts = _offsets(words)
    cues = [cue for cue in CUE.finditer(text) if not _inside(cue, mentions, starts)]
    places = {at for mention in mentions for at in range(mention.start, mention.end)}
    named = tuple(Named(mention.item, _tone(text, words, mention, places, starts, cues, asks)) for mention in mentions)
    refers = any(cue.lastgroup == "ordered" and IT.match(text, cue.end()) for cue in cues)
    return Sentence(text, tuple(words), asks, named, refers, tuple(menu.ambiguous(stemmed)))


def _offsets(words: Sequence[str]) -> list[int]:
    """Return where each word begins in the joined text and, last, where a further word would begin."""
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word) + 1)
    return offsets


def _inside(cue: re.Match[str], mentions: Sequence[Mention], starts: Sequence[int]) -> bool:
    """Return whether a cue is only part of an item's name."""
    return any(starts[mention.start] <= cue.start() and cue.end() < starts[mention.end] for mention in mentions)


def _tone(
    text: str,
    words: Sequence[str],
    mention: Mention,
    named: Set[int],
    starts: Sequence[int],
    cues: Sequence[re.Match[str]],
    asks: bool,
) -> Tone:
    """Return how `mention` is meant, by the last cue before it and by what follows it."""
    begin = starts[mention.start]
    mode = _mode(text, cues, begin)
    rest = text[starts[mention.end] :] if mention.end < len(words) else ""
    if AFTER_OFF.match(rest) and not asks:
        return "rejected"
    if mode in ("rejected", "claimed"):
        return "rejected" if mode == "rejected" else "claimed"
    if mode == "ordered":
        return "ordered"
    if AFTER_ORDER.match(rest) and mode != "discussed":
        return "ordered"
    if mode == "discussed":
        return "discussed"
    if AFTER_PRAISE.match(rest):
        return "soft"
    if _bare(words, mention, named):
        return "soft" if asks else "ordered"
    return "discussed" if asks else "soft"


def _bare(words: Sequence[str], mention: Mention, named: Set[int]) -> bool:
    """Return whether there is (almost) nothing but names (at `named`) and polite words between the commas around `mention`."""
    begin = next((at + 1 for at in range(mention.start - 1, -1, -1) if words[at] == ","), 0)
    end = next((at for at in range(mention.end, len(words)) if words[at] == ","), len(words))
    chatter = [words[at] for at in range(begin, end) if at not in named and words[at] not in POLITE]
    return len(chatter) <= 2 and not VERBS.intersection(chatter)


def _mode(text: str, cues: Sequence[re.Match[str]], begin: int) -> str | None:
    """Return the tone that the cues before `begin` give to what is there; None if they give none."""
    mode: str | None = None
    since = 0
    exchanging = False
    for cue in cues:
        if cue.start() >= begin:
            break
        name = cue.lastgroup or ""
        exchanging = name == "exchange" or (exchanging and name == "rejected")
        mode = {"reset": None, "exchange": "rejected"}.get(name, name)
        since = cue.end()
    if exchanging and re.search(r"\b(?:for|to|with|by) (?:the |a |an |your )?$", text[since:begin]):
        return "ordered"
    if mode == "rejected" and "," in text[since:begin] and not re.match(r"[^,]*\b(?:or|nor)\b", text[begin:]):
        return None
    return mode


@final
@dataclass(frozen=True, slots=True)
class Talk:
    """What a guest says about the items of the menu: their names, in the order in which they first occur.

    `maybe`: praised or half ordered, so that rules cannot decide. `unclear`: words that fit several items. `request`:
    whether the guest asks for something, on the menu or not.
    """

    ordered: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    discussed: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    request: bool = False


@final
@dataclass(slots=True)
class _Order:
    """The tones of items over a reply. The last firm statement about an item counts."""

    tones: dict[str, Tone] = field(default_factory=dict)

    def hear(self, name: str, tone: Tone) -> None:
        before = self.tones.get(name)
        if before is None or tone in ("ordered", "rejected") or before in ("discussed", "soft"):
            self.tones[name] = tone

    def withdraw(self) -> None:
        for name, tone in self.tones.items():
            if tone == "ordered":
                self.tones[name] = "rejected"

    def all(self, *tones: Tone) -> tuple[str, ...]:
        return tuple(name for name, tone in self.tones.items() if tone in tones)


def read_talk(menu: Menu, reply: str, *, drinks: bool) -> Talk:
    """Return what the reply says about the menu's drinks or, if not `drinks`, its dishes."""
    order = _Order()
    before: list[str] = []
    unclear: dict[str, None] = {}
    request = False
    for sentence in sentences(menu, reply):
        named = [(item, tone) for item, tone in sentence.named if item.drink == drinks]
        firm = any(tone == "ordered" for _, tone in named)
        if firm and CHANGE.search(sentence.text) and not ALSO.search(sentence.text):
            order.withdraw()
        for item, tone in named:
            order.hear(item.name, "soft" if tone == "claimed" else tone)
        if sentence.refers and not firm and before:
            for name in before if len(before) == 1 or re.search(r"\b(?:both|them|those)\b", sentence.text) else ():
                order.hear(name, "ordered")
        request = request or any(cue.lastgroup == "ordered" for cue in CUE.finditer(sentence.text)) or "please" in sentence.words
        unclear |= dict.fromkeys(sentence.unclear)
        before = [item.name for item, tone in named if tone != "rejected"] or before
    return Talk(order.all("ordered"), order.all("soft"), order.all("discussed"), order.all("rejected"), tuple(unclear), request)


@final
class Complaint(NamedTuple):
    """Whether a guest noticed that the wrong dish was brought; None if rules cannot decide. `lean`: their best guess."""

    noticed: bool | None
    lean: bool
    why: str


def read_complaint(menu: Menu, reply: str, *, wrong: str, order: Sequence[str]) -> Complaint:
    """Return whether the reply objects to `wrong`, which was brought instead of one of `order`."""
    read = sentences(menu, reply)
    objection = next((phrase for sentence in read if (phrase := _objection(sentence.text))), None)
    tones = _tones(read, drinks=False)
    refused = "rejected" in tones.get(wrong, ())
    right = [name for name, heard in tones.items() if name in order and {"claimed", "ordered"} & set(heard)]
    others = [name for name, heard in tones.items() if name not in order and name != wrong and "claimed" in heard]
    whole = " ".join(sentence.text for sentence in read)
    if objection or (refused and right):
        if others and not right:
            return Complaint(False, False, f"the reply claims to have ordered {_list(others)}, which was not the order")
        return Complaint(True, True, f'the reply objects ("{objection or f"not {wrong}"}")')
    if right:
        content, contrast = bool(CONTENT.search(whole)), bool(CONTRAST.search(whole))
        if contrast or not content:
            return Complaint(True if contrast else None, True, f"the reply asks for {_list(right)}")
        return Complaint(None, False, f"the reply names {_list(right)} without an objection")
    if refused:
        return Complaint(None, True, f"the reply declines {wrong}")
    if missed := [name for name in order if "rejected" in tones.get(name, ())]:
        return Complaint(None, True, f"the reply says it is not {_list(missed)}")
    return Complaint(False, False, "the reply does not object")


def _objection(text: str) -> str | None:
    never = NEVER_ORDERED.search(text)
    if never:
        return never[0]
    for mistake in MISTAKE.finditer(text):
        if not DENIED.search(text[max(0, mistake.start() - 40) : mistake.start()]):
            return mistake[0]
    return None


@final
class Recall(NamedTuple):
    """Whether a guest named the earlier drink; None if rules cannot decide. `lean`: their best guess."""

    right: bool | None
    lean: bool
    why: str


def read_recall(menu: Menu, reply: str, *, drinks: Sequence[str]) -> Recall:
    """Return whether the reply names (one of) `drinks` as the drink that the guest had."""
    tones = _tones(sentences(menu, reply), drinks=True)
    named = [name for name, heard in tones.items() if any(tone != "rejected" for tone in heard)]
    if not named:
        return Recall(False, False, "the reply names no drink on the menu")
    if all(name in drinks for name in named):
        return Recall(True, True, f"the reply names {_list(named)}")
    claimed = [name for name in named if "claimed" in tones[name]]
    if claimed:
        right = all(name in drinks for name in claimed)
        return Recall(right, right, f"the reply says it was {_list(claimed)}")
    if any(name in drinks for name in named):
        return Recall(None, False, f"the reply names {_list(named)}")
    return Recall(False, False, f"the reply names {_list(named)}")


def _tones(read: Iterable[Sentence], *, drinks: bool) -> dict[str, list[Tone]]:
    """Return all tones in which each drink or, if not `drinks`, each dish is mentioned."""
    tones: dict[str, list[Tone]] = {}
    for sentence in read:
        for item, tone in sentence.named:
            if item.drink == drinks:
                tones.setdefault(item.name, []).append(tone)
    return tones


def _list(names: Iterable[str]) -> str:
    return " and ".join(names)
