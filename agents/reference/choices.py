"""Choices: what a message offers, what to choose when asked to, and keeping to what was chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from longspan.agents.reference.language import WORD, content, enclosed, near, options, sentences

__all__ = ["Offer", "answer", "choice", "offers", "speaker"]

CHAT = 1000
"""A longer message is no talk across a table, in characters."""
LONGEST = 4000
"""A longer one is no menu."""

_WISH = re.compile(
    r"\b(?:(?:would|will|do|did|may|can|could|shall|should|might) (?:you|i|we)|your (?:choice|order|pleasure)|ready to order"
    r"|what'll|anything|any|what (?:are|about)|you(?:['’]d| would) (?:like|prefer|love|fancy)|you (?:want|prefer|fancy|decided|chosen)"
    r"|made up your mind|care for|fancy|tempt|how about|something else)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:my|mine|json|ago)\b|\bi (?:like|love|told|said|have|had|am|was|live|ordered|did|want|prefer|would|gave|asked|go|went)\b"
    r"|\bcall(?:ed)? me\b",
    re.IGNORECASE,
)
"""Asks about whoever asks, or for something else than a wish."""
_HANDED = re.compile(
    r"(?:^|[.!*)\]:]\s*)(?:and )?(?:here(?:['’]s| is| are| comes?| you (?:are|go)))\b.*\b(?:enjoy|your?)\b|\bbon app[eé]tit\b"
    r"|\bas (?:you )?ordered\b|\byour (?:order|meal|food|drink)\b",
    re.IGNORECASE | re.DOTALL,
)
_GONE = re.compile(
    r"\b(?:out of|(?:ran|run|sold) out|not available|unavailable|no longer (?:have|serve)|no more|none left|isn['’]t any|finished|all gone"
    r"|(?:don['’]t|do not|can(?:not|['’]t)) (?:have|do|offer|serve|make|prepare))\b",
    re.IGNORECASE,
)
_ELSE = re.compile(r"\b(?:instead|else|other|another|sorry|afraid|unfortunately|apolog\w+|regret)\b", re.IGNORECASE)
"""Says with a question that something is not to be had."""
_ONCE_MORE = re.compile(
    r"\b(?:again|same|another|refill|top up|once more|before|was|were|had|remind|first|earlier|previous|last time|beginning|started)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"I would like (.{1,200}), please\.")
_OFFERING = re.compile(r"\b(?:menu|we (?:have|serve|offer)|you (?:can|may) (?:choose|have|order))\b", re.IGNORECASE)
_LEAD = re.compile(r"^(?:(?:the|a|an|some|our|either|both|and|or)\s+)+", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•–]+|\d{1,2}[.)])\s*")
_PRICE = re.compile(r"[\s.,:–-]*\(?[$€£]?\s?\d+(?:[.,]\d{1,2})?\s?(?:[$€£]|usd|eur|dollars|euros)?\)?\s*$", re.IGNORECASE)
_HEADED = re.compile(r"(?P<title>[^:,\n]{2,80}?)\s*(?P<mark>:|\s[-–—]+\s)\s*(?P<rest>.+)")
_LABEL = re.compile(r"^\s*(?:[\[(<*]{1,3}([A-Z]\w{1,20})[\])>*:]{1,4}|([A-Z]\w{1,20}):)(?=\s)", re.MULTILINE)


class Offer(NamedTuple):
    """One thing that is offered, and the heading it stands under."""

    heading: str
    item: str


def offers(text: str) -> tuple[Offer, ...]:
    """What a message offers: lines of "heading: a, b, c", or a list of four short lines or more, under headings or not; or in prose."""
    if len(text) > LONGEST or enclosed(text) or options(text):
        return ()
    found: list[Offer] = []
    heading = ""
    for line in text.split("\n"):
        bare = _BULLET.sub("", line).strip("*#_ \t")
        headed = _HEADED.fullmatch(bare)
        items = _items(headed["rest"]) if headed else []
        if headed and _is_heading(headed) and len(items) >= 2 and all(0 < len(WORD.findall(item)) <= 7 for item in items):
            found += [Offer(sentences(headed["title"])[-1], item) for item in items]
        elif _is_item(line) and (item := _PRICE.sub("", re.split(r" [-–—] |\.{3}|\t", bare)[0]).strip("*_ ")) and len(item.split()) <= 8:
            found.append(Offer(heading, item))
        elif bare and len(bare.split()) <= 5 and bare[-1] not in ".!?,":
            heading = bare.strip(":*_ ")
    listed = len(found) >= 4 and (len({offer.heading for offer in found}) > 1 or any(_is_item(line) for line in text.split("\n")))
    return tuple(found) if listed else _in_prose(text)


def _is_heading(headed: re.Match[str]) -> bool:
    """Whether a few words stand before the colon, or a word or two before the dash, of a line."""
    return len(sentences(headed["title"])[-1].split()) <= (8 if headed["mark"] == ":" else 2) if headed["title"].strip() else False


def _items(text: str) -> list[str]:
    """The things in a list, between commas."""
    pieces = re.split(r",\s*(?:and\s|or\s)?(?!\d)|;", text)
    return [_PRICE.sub("", piece.strip(" .*_")) for piece in pieces if piece.strip(" .*_")]


def _in_prose(text: str) -> tuple[Offer, ...]:
    """What sentences or clauses that list three things or more offer, where a message lists two times so."""
    if len(text) > CHAT or not _OFFERING.search(text):
        return ()
    found: list[Offer] = []
    lists = 0
    for part in re.split(r"[;.!?]\s|\n", text):
        items = [_LEAD.sub("", item).strip(" .;") for item in re.split(r",\s*(?:and\s|or\s)?", part)]
        if len(items) >= 3 and all(0 < len(WORD.findall(item)) <= 7 for item in items[1:]):
            lead = re.match(
                r".*\b(?:there(?:['’]s| is| are)|have|offer|serve|choose|of|from|between|are|is)\s+(?:the |a |an )?(.+)", items[0], re.I
            )
            found += [Offer(items[0], _PRICE.sub("", item)) for item in [*([_LEAD.sub("", lead[1])] if lead else []), *items[1:]]]
            lists += 1
    return tuple(found) if lists >= 2 else ()


def _is_item(line: str) -> bool:
    """Whether a line is marked as one of a list, or priced."""
    return bool(_BULLET.match(line) or re.search(r"[$€£]\s?\d|\d\s?[$€£]", line))


def speaker(text: str) -> str:
    """The name that a message gives to whoever speaks in it, as plays do ("Clerk: ..."), where it also says so; "" for none."""
    labels = [label[0] or label[1] for label in _LABEL.findall(text[:LONGEST])]
    return next((label for label in labels if text.count(label) > 1), "")


def choice(reply: str) -> str | None:
    """What a reply of one's own chose."""
    match = _CHOICE.search(reply[:CHAT])
    return match[1] if match else None


def answer(text: str, offered: Sequence[Offer], chosen: Sequence[str], by: str) -> str | None:
    """The answer to one who offers, asks, serves or takes back; None to any other message.

    `offered` is what was offered last, `chosen` what was chosen of it, `by` the name its speaker goes by, if any:
    a message of another speaker is not about it.
    """
    here = offers(text)
    asks = "?" in text or bool(re.search(r"\b(?:your order|let me know|tell me)\b", text[:CHAT], re.IGNORECASE))
    asked = " ".join(one for one in sentences(text) if one.endswith("?")) or text[-CHAT:]
    if here:
        return _choose(here, asked, []) if asks and _WISH.search(text) else None
    named_speaker = _LABEL.match(text)
    if not offered or len(text) > CHAT or (by and (named_speaker is None or by not in named_speaker[0])):
        return None
    named = [offer for offer in offered if _means(text, offer.item)]
    about = [offer for offer in named if offer.item in chosen]
    if about and (_GONE.search(text) or (asks and _ELSE.search(text))):
        return _choose(offered, about[-1].heading, chosen)
    if about and len(about) == len(named):
        return "Thank you." if by else None
    handed = (_HANDED.search(text) and not asks) or (named and (by or re.search(r"\byour?\b", text, re.IGNORECASE)))
    if chosen and handed:
        return f"Excuse me, that is not what I ordered. I ordered {' and '.join(chosen[-3:])}."
    if not asks or (_OWN.search(text) and not by):
        return None
    if not by and not _WISH.search(asked) and not any(_fits(asked, offer) for offer in offered):
        return None
    had = [offer.item for offer in offered if offer.item in chosen and _fits(text, offer)]
    return f"I had {had[0]}." if had and _ONCE_MORE.search(text) else _choose(offered, asked, chosen)


def _choose(offered: Sequence[Offer], asked: str, chosen: Sequence[str]) -> str | None:
    """Choose the first thing that fits what is asked for and was not chosen before.

    What stands under a heading that is asked for fits, else what stands under one that nothing was chosen from yet.
    """
    used = {offer.heading for offer in offered if offer.item in chosen}
    fitting = [offer for offer in offered if _fits(asked, offer)]
    fitting = fitting or [offer for offer in offered if offer.heading not in used] or list(offered)
    fresh = next((offer.item for offer in fitting if offer.item not in chosen), None)
    return f"I would like {fresh}, please." if fresh else None


def _fits(text: str, offer: Offer) -> bool:
    """Whether a text asks for what stands under the heading of an offer."""
    return not {other for one in content(text) for other in (one, *near(one))}.isdisjoint(content(offer.heading))


def _means(text: str, item: str) -> bool:
    """Whether a text speaks of an item: it has at least half of its words."""
    words = set(content(item))
    return bool(words) and 2 * len(words & set(content(text))) >= len(words)
