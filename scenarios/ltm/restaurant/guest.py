"""Read a restaurant guest's words with rules: dishes that are ordered, declined or discussed, and errors noticed or drinks recalled.

A guest closes each reply with a line `Order: ...`, which leaves no doubt. Free text is read for guests who omit it, and for recorded
visits of the LTM benchmark. There, an LLM read the replies and mistook discussed dishes for ordered ones (GoodAI, section 5). Here, a
reply is split into sentences, and the last phrase before an item's name decides how the item is meant. Every function accepts any text,
never raises, and runs in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from longspan.scenarios.ltm.restaurant import guest_phrases as phrases
from longspan.scenarios.ltm.restaurant.menu import Item, Mention, Menu, drop_plural
from longspan.scenarios.ltm.restaurant.speaker import CLOSING, MAX_CHARACTERS, guest_words, without_quotation
from longspan.simulator.base.words import plain

__all__ = ["GuestReading", "Talk", "join_names", "nothing_ordered", "read_complaint", "read_recall", "read_talk"]

Tone = str
"""How an item is mentioned: "ordered", "bare" (name only), "soft" (praised), "discussed", "rejected", "claimed" (as ordered before)."""

_PIECES: Final = re.compile(r"[^.!?;\n]{1,800}[.!?;\n]*")
_BREAKS: Final = re.compile(r"\s[-\u2013]{1,3}\s|[,:\u2014()\"\u201c\u201d]")


@final
class NamedItem(NamedTuple):
    """An item in a sentence, how it is meant, and whether only its kind is named."""

    item: Item
    tone: Tone
    vague: bool


@final
@dataclass(frozen=True, slots=True)
class GuestSentence:
    """A sentence in plain words. `,` stands for any break inside it. `refers`: whether it orders "it" or "that", named before."""

    text: str
    words: Sequence[str]
    asks: bool
    mentions: Sequence[Mention]
    named: Sequence[NamedItem]
    refers: bool


def _sentences(menu: Menu, reply: str) -> list[GuestSentence]:
    """Return the sentences of a reply, without stage directions and speakers' names."""
    pieces = [(_plain(_BREAKS, piece), "?" in piece) for piece in _PIECES.findall(guest_words(menu, reply))]
    return [_sentence(menu, text, asks) for text, asks in pieces if text]


def _plain(breaks: re.Pattern[str], text: str) -> str:
    return " , ".join(filter(None, map(plain, breaks.split(text))))


def _sentence(menu: Menu, text: str, asks: bool) -> GuestSentence:
    text = menu.correct_typos(text)
    words = text.split()
    mentions = menu.mentions([word if word == "," else drop_plural(word) for word in words])
    starts = [0]  # the start of each word and, last, of a hypothetical next one
    for word in words:
        starts.append(starts[-1] + len(word) + 1)
    spans = [(starts[mention.start], starts[mention.end]) for mention in mentions]
    cues = [cue for cue in phrases.CUE.finditer(text) if not any(begin <= cue.start() and cue.end() < end for begin, end in spans)]
    places = {at for mention in mentions for at in range(mention.start, mention.end)}
    named = [NamedItem(mention.item, _tone(text, words, mention, places, starts, cues, asks), mention.vague) for mention in mentions]
    refers = any(cue.lastgroup == "ordered" and phrases.IT.match(text, cue.end()) for cue in cues)
    return GuestSentence(text, words, asks, mentions, named, refers)


def _tone(
    text: str, words: Sequence[str], mention: Mention, named: Set[int], starts: Sequence[int], cues: Sequence[re.Match[str]], asks: bool
) -> Tone:
    """Return how `mention` is meant, given the last cue before it and the words after it."""
    begin = starts[mention.start]
    mode = _mode(text, cues, begin)
    rest = text[starts[mention.end] :] if mention.end < len(words) else ""
    if phrases.AFTER_OFF.match(rest) and not asks:
        return "rejected"
    if mode is not None:
        return mode
    if phrases.AFTER_ORDER.match(rest):
        return "ordered"
    if not phrases.AFTER_PRAISE.match(rest) and _bare(words, mention, named):
        return "soft" if asks else "bare"
    return "discussed" if asks else "soft"


def _bare(words: Sequence[str], mention: Mention, named: Set[int]) -> bool:
    """Return whether `mention` is surrounded by little but names (at `named`) and polite words, up to the next commas."""
    begin = next((at + 1 for at in range(mention.start - 1, -1, -1) if words[at] == ","), 0)
    end = next((at for at in range(mention.end, len(words)) if words[at] == ","), len(words))
    chatter = [words[at] for at in range(begin, end) if at not in named and words[at] not in phrases.POLITE]
    return len(chatter) <= 2 and not phrases.VERBS.intersection(chatter)


def _mode(text: str, cues: Sequence[re.Match[str]], begin: int) -> Tone | None:
    """Return the tone that the cues before `begin` set for the words there; None if they set none."""
    mode: Tone | None = None
    since, exchanging = 0, False
    for cue in cues:
        if cue.start() >= begin:
            break
        exchanging = cue.lastgroup == "exchange" or (exchanging and cue.lastgroup == "rejected")
        mode, since = {"exchange": "rejected", "reset": None}.get(cue.lastgroup or "", cue.lastgroup), cue.end()
    if exchanging and re.search(r"\b(?:for|to|with|by) (?:the |a |an |your )?$", text[since:begin]):
        return "ordered"
    if mode == "rejected" and "," in text[since:begin] and not re.match(r"[^,]*\b(?:or|nor)\b", text[begin:]):
        return None
    return mode


@final
@dataclass(frozen=True, slots=True)
class Talk:
    """A guest's statement about the drinks or the dishes: names in order of first occurrence.

    `maybe`: praised, or dishes ordered by their kind alone, so that rules cannot decide. `foreign`: ordered, but not on the menu.
    `unknown`: other things in a closing line. `before`: the words before that line, None if the reply has none.
    """

    ordered: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    discussed: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    before: str | None = None


def read_talk(menu: Menu, reply: str, *, drinks: bool) -> Talk:
    """Return what a reply says about drinks or dishes, in its closing line or else in free text.

    The last firm statement about an item counts.
    """
    if line := _parse_closing_line(menu, reply, drinks=drinks):
        return line
    read = _sentences(menu, reply)
    hesitates = any(phrases.HESITATES.search(sentence.text) for sentence in read)
    meant: dict[Tone, Tone] = {"claimed": "soft", "bare": "discussed" if hesitates else "ordered"}
    tones: dict[Item, Tone] = {}
    before: list[Item] = []
    asks = False
    for sentence in read:
        named = [(item, meant.get(tone, tone)) for item, tone, _ in sentence.named if item.drink == drinks]
        firm = any(tone == "ordered" for _, tone in named)
        if firm and phrases.CHANGE.search(sentence.text) and not phrases.ALSO.search(sentence.text):
            tones = {item: "rejected" if tone == "ordered" else tone for item, tone in tones.items()}
        for item, tone in named:
            if tone in ("ordered", "rejected") or tones.get(item, "soft") in ("discussed", "soft"):
                tones[item] = tone
        before = [item for item, tone in named if tone in ("soft", "discussed")] or before
        if sentence.refers and not firm and (len(before) == 1 or re.search(r"\b(?:both|them|those)\b", sentence.text)):
            tones |= dict.fromkeys(before, "ordered")
        asks = asks or (sentence.asks and not firm and all(tone != "soft" for _, tone in named))
        before = [item for item, tone in named if tone != "rejected"] or before
    if asks or hesitates:  # praise is not an order if the guest still asks or hesitates
        tones = {item: "discussed" if tone == "soft" else tone for item, tone in tones.items()}
    return _talk(menu, tones, [named for sentence in read for named in sentence.named])


def _talk(
    menu: Menu, tones: Mapping[Item, Tone], named: Iterable[NamedItem], unknown: tuple[str, ...] = (), before: str | None = None
) -> Talk:
    clear = {item for item, _, vague in named if not vague or item.drink}
    heard: dict[str, list[str]] = {}
    for item, tone in tones.items():
        known = tone if item in menu.served or tone != "ordered" else "foreign"
        heard.setdefault("soft" if known == "ordered" and item not in clear else known, []).append(item.name)
    ordered, maybe, discussed, rejected, foreign = (
        tuple(heard.get(name, ())) for name in ("ordered", "soft", "discussed", "rejected", "foreign")
    )
    return Talk(ordered, maybe, discussed, rejected, foreign, unknown, before)


@final
class GuestReading(NamedTuple):
    """Whether a guest does what a part of the visit requires; None if rules cannot decide. `lean`: the best guess."""

    right: bool | None
    lean: bool
    why: str


def read_complaint(menu: Menu, reply: str, *, served: str, order: Sequence[str]) -> GuestReading:
    """Return whether the reply objects to the dish `served`, which is one of `order` or was brought instead of one."""
    wrong = served not in order
    line = _parse_closing_line(menu, reply, drinks=False)
    if line and (wants := (*line.ordered, *line.maybe, *line.foreign)):
        false = any(name not in order for name in wants)  # a guest who asks for a dish not ordered has not noticed the mix-up
        objects = not false if wrong else false and served not in wants
        return GuestReading(objects, objects, f"the guest wants {join_names(wants)}")
    read = _sentences(menu, reply if not line else line.before or "")
    whole = " , ".join(sentence.text for sentence in read)
    objection = next((phrase for sentence in read if (phrase := _objection(sentence.text))), None)
    tones = _tones(read, drinks=False)
    refused = "rejected" in tones.get(served, ())
    claimed = [name for name, heard in tones.items() if {"claimed", "ordered"} & set(heard)]
    right = [name for name in claimed if name in order]
    content = phrases.CONTENT.search(whole)
    if not wrong:
        objects = bool(objection or refused) and served not in claimed and not (content and not phrases.AGAIN.search(whole))
        return GuestReading(objects, objects, f"the reply {'objects to' if objects else 'accepts'} the right dish")
    others = [name for name, heard in tones.items() if name not in order and "claimed" in heard]
    if others and not right:
        return GuestReading(False, False, f"the reply claims to have ordered {join_names(others)}, which was not the order")
    if objection or (refused and right):
        return GuestReading(True, True, f'the reply objects ("{objection or f"not {served}"}")')
    missed = [name for name in order if "rejected" in tones.get(name, ())]
    if right or missed:
        sure = not content or (right and phrases.CONTRAST.search(whole))
        why = f"asks for {join_names(right)}" if right else f"says it is not {join_names(missed)}"
        return GuestReading(True if sure else None, bool(sure or missed), f"the reply {why}")
    return GuestReading(None if refused else False, refused, f"the reply {'declines' if refused else 'does not object to'} {served}")


def _objection(text: str) -> str | None:
    if never := phrases.NEVER_ORDERED.search(text):
        return never[0]
    mistakes = phrases.MISTAKE.finditer(text)
    return next((found[0] for found in mistakes if not phrases.DENIED.search(text[max(0, found.start() - 40) : found.start()])), None)


def read_recall(menu: Menu, reply: str, *, drinks: Sequence[str]) -> GuestReading:
    """Return whether the reply names (one of) `drinks` as the drink that the guest had, and no other."""
    line = _parse_closing_line(menu, reply, drinks=True)
    named = [*line.ordered, *line.foreign] if line else []
    if not named:
        read = _sentences(menu, (line and line.before) or ("" if line else reply))
        tones = _tones(read, drinks=True)
        named = [name for name, heard in tones.items() if set(heard) != {"rejected"}]
        if not any(re.search(r"\bor\b", sentence.text) for sentence in read):
            named = [name for name in named if "claimed" in tones[name]] or named
    right = bool(named) and set(named) <= set(drinks)
    why = f"the reply names {join_names(named)}" if named else f"the reply names no drink on the menu{_instead(menu, reply, drinks=True)}"
    return GuestReading(right, right, why)


def nothing_ordered(menu: Menu, reply: str, *, drinks: bool) -> str:
    """Return the reason that no drink or dish is ordered, quoting the closing line."""
    return f"no {'drink' if drinks else 'dish'} on the menu is ordered{_instead(menu, reply, drinks=drinks)}"


def _instead(menu: Menu, reply: str, *, drinks: bool) -> str:
    """Return what a reply orders instead of a drink or dish, or its closing line; "" if it has neither."""
    if other := read_talk(menu, reply, drinks=not drinks).ordered:
        return f", but the {'dish' if drinks else 'drink'} {join_names(other)}"
    lines = list(CLOSING.finditer(without_quotation(reply.rstrip()[-MAX_CHARACTERS:])))
    said = " ".join(lines[-1][0].split())[:QUOTED] if lines else ""
    return f': its last line is "{said}"' if said else ""


def _tones(read: Iterable[GuestSentence], *, drinks: bool) -> dict[str, list[Tone]]:
    """Return every tone of each drink's mentions, or of each dish's if `drinks` is false."""
    tones: dict[str, list[Tone]] = {}
    for item, tone, _ in (named for sentence in read for named in sentence.named):
        if item.drink == drinks:
            tones.setdefault(item.name, []).append("ordered" if tone == "bare" else tone)
    return tones


QUOTED: Final = 60
"""Maximum number of characters quoted from a closing line."""

_LISTED: Final = re.compile(r"(?:[^\n\w]{0,9}\n[^\n\w]{0,9}\w[^\n]{0,200}){1,9}")
_ASIDE: Final = re.compile(r"\([^()\n]{0,200}\)")
_NEXT: Final = re.compile(r"[,;/&+\n.]")
_ADDS: Final = frozenset({",", "and", "plus", "or"})
_DECLINES: Final = frozenset("no not none nothing with without nil na n that thats i as same still extra unchanged".split())
"""First words of phrases that are not items: "nothing else", "no dessert", "as before", "with extra cream"."""


def _parse_closing_line(menu: Menu, reply: str, *, drinks: bool) -> Talk | None:
    """Return the order in the reply's last line `Order: ...`, which may continue as a list below it; None without such a line."""
    text = without_quotation(reply.rstrip()[-MAX_CHARACTERS:])
    lines = list(CLOSING.finditer(text))
    if not lines:
        return None
    value, before = _ASIDE.sub("", lines[-1]["value"]), text[: lines[-1].start()]
    if not plain(value):
        value = below[0] if (below := _LISTED.match(text, lines[-1].end())) else lines[-1]["value"]
    said = _sentence(menu, _plain(_NEXT, value), asks=False)
    inside = {at for mention in said.mentions for at in range(mention.start, mention.end)}
    ends = [at for at, word in enumerate((*said.words, ",")) if word in _ADDS and at not in inside]
    parts = [range(begin + 1, end) for begin, end in zip([-1, *ends], ends, strict=False)]
    others = [said.words[part.start : part.stop] for part in parts if part and inside.isdisjoint(part)]
    unknown = tuple(" ".join(other) for other in others if other[0] not in _DECLINES and set(other) - phrases.POLITE)
    items = dict.fromkeys(item for item, tone, _ in said.named if item.drink == drinks and tone != "rejected")
    choice = len(items) > 1 and any(said.words[at] == "or" for at in ends[:-1])
    return _talk(menu, dict.fromkeys(items, "discussed" if choice else "ordered"), said.named, unknown, before)


def join_names(names: Iterable[str]) -> str:
    """Return names as a list in prose."""
    return " and ".join(names)
