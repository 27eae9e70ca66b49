"""Check who speaks in a reply that should be a restaurant guest's, and extract the guest's own words."""

from __future__ import annotations

import re
from typing import Final

from longspan.scenarios.ltm.restaurant.guest_phrases import REFUSAL, WAITERS_WORDS
from longspan.scenarios.ltm.restaurant.menu import Menu, plural_free_words
from longspan.simulator.base.words import plain

__all__ = ["CLOSING", "MAX_CHARACTERS", "guest_words", "out_of_role", "without_quotation"]

MAX_CHARACTERS: Final = 10_000
"""Maximum number of characters to read. A guest who talks longer has left the role long before."""

CLOSING: Final = re.compile(r"\border\b[\"'*_`]{0,4}\s{0,3}[:\uff1a=](?:\W{0,5}order\b\W{0,4})?(?P<value>[^\n]{0,500})", re.IGNORECASE)
"""The line that closes a guest's reply."""
_WAITERS = "waiter|waitress|server"
_GUESTS = "customer|guest|diner|patron"
_TURN = re.compile(
    rf"(?:^|(?<=[.!?\"\u201d*)\]\n])[ \t]{{0,9}})[\W_]{{0,4}}(?:\w{{1,20}} (?:\(|as ){{0,2}}(?:the )?)?(?P<who>{_WAITERS}|{_GUESTS})"
    r"(?:'?s)?(?: (?:response|reply|says?|replies))?[\W_]{0,4}:",
    re.IGNORECASE | re.MULTILINE,
)
"""A speaker's name before the words: "Waiter:", "**Guest**:", "*Waiter response:*", "Assistant (as Customer):"."""
_FIRST_TURN = re.compile(
    r"^[\W_]{0,4}(?:as|in the role of|playing|speaking as|for the sake of staying in character)?,?\s?(?:as )?(?:the |a )?"
    rf"(?:{_GUESTS}|waiter)\b[\W_]{{0,3}}[:,]",
    re.IGNORECASE,
)
_DIRECTION = re.compile(
    r"(?<![*\w])\*(?!\*)([^*\n]{1,300})\*(?!\*)|\(([^()\n]{1,300})\)|\[([^\[\]\n]{1,300})\]|(?<!\w)_([^_\n]{1,300})_(?!\w)"
)
_ACTING = re.compile(r"\W{0,3}[a-z]{1,20}(?:s|ing)\b")
_QUOTATION = re.compile(
    r"[\"\u201c\u00ab][^\"\u201c\u201d\u00ab\u00bb\n]{15,400}[\"\u201d\u00bb]\s{0,3}[-\u2013\u2014]{1,2}\s{0,2}"
    r"(?:[A-Z]\. ?){0,3}[^\n.?!]{2,60}\.?\s{0,9}\Z"
)
"""A quotation with its author at the end of a reply. The prospective memory test asks for it, so it may follow an order."""


def without_quotation(text: str) -> str:
    """Return `text` without a quotation at its end."""
    return _QUOTATION.sub("", text.rstrip())


def out_of_role(reply: str) -> str | None:
    """Return the reason why the reply is not a guest's, or None if it is one.

    It may be empty, not a guest's at all, or also speak for the waiter. A reply with a closing line is always a guest's.
    """
    if CLOSING.search(reply[-MAX_CHARACTERS:]):
        return None
    text = without_quotation(reply[:MAX_CHARACTERS])
    words = plain(text)
    if not words:
        return "the reply is empty"
    if refusal := REFUSAL.search(words):
        return f'the reply is not a guest\'s ("{refusal[0]}")'
    turns = list(_TURN.finditer(text))
    waiters = [turn for turn in turns if turn["who"].casefold() in _WAITERS.split("|")]
    if waiters and not (len(turns) == 1 and waiters[0].start() == 0):  # a single "Waiter:" at the very beginning may address the waiter
        return "the reply speaks for the waiter too"
    if waiter := WAITERS_WORDS.search(words):
        return f'the reply speaks for the waiter ("{waiter[0]}")'
    return None


def guest_words(menu: Menu, reply: str) -> str:
    """Return the guest's own words, without a quotation at the end, speakers' names and stage directions.

    Marked text that names an item ("*Lemon tart*") is not a stage direction, unless it describes an action ("*looks at the tart*").
    """
    text = without_quotation(reply[:MAX_CHARACTERS].replace("\u2019", "'"))

    def keep(match: re.Match[str]) -> str:
        inner = next(group for group in match.groups() if group is not None)
        words = plural_free_words(inner)
        acted = bool(words) and _ACTING.match(inner) and not any(words[0] in item.words for item in menu.items)
        return f" {inner} " if menu.mentions(words) and not acted else " "

    return _DIRECTION.sub(keep, _FIRST_TURN.sub("", text.strip()))
