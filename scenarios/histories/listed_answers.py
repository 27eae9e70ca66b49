"""Find the items of a gold answer such as "Fiona and Bruno" in a reply that lists them in its own way."""

from __future__ import annotations

import re
from typing import Final

from longspan.simulator.base.words import plain
from longspan.simulator.reading.abstentions import find_names
from longspan.simulator.reading.replies.layout import flatten_layout

__all__ = ["ITEM", "KEY", "replace_list"]

ITEM: Final = 4
"""Maximum number of words in a list item."""
KEY: Final = "thelistedanswer"
"""The word that stands for a list of exactly the items of the answer."""

_NESTED: Final = re.compile(r"(?: and |&).*,")
"""A comma after an "and" separates no items: "Paris, Texas and London, Ontario"."""
_COMMA: Final = re.compile(r",? and |,? ?&|,")
_LEADS: Final = re.compile(r"\A(?:a|an|the|both) ", re.IGNORECASE)
_BETWEEN: Final = (
    r"[^\w,;&+/\n.!?:]{0,9}(?:[,;&+/\n]|\b(?:and|plus|as well as)\b)"
    r"(?:(?<=\n)\d\d?[.)]|[^\w.!?:]|\b(?:and|plus|also|a|an|the)\b){0,9}"
)
"""What separates items in a reply: a comma, a word, or a new line with a bullet or a number."""
_WITH: Final = re.compile(r"\W{0,3}with\b", re.IGNORECASE)
_ENDS: Final = re.compile(r"[.!?:\n]")
_ORDERED: Final = re.compile(r"\b(?:and|order|sequence|first|last|rank\w*|respectively)\b|&", re.IGNORECASE)
"""Words of questions whose answers may have a fixed order: "What are my cat and my dog called?"."""


def replace_list(question: str, answer: str, reply: str) -> str:
    """Return a reply with KEY instead of a list of exactly the answer's items, in any order unless the question may imply one.

    The reply is unchanged if the answer is no plain list, or if the reply lists fewer or other items or contains other names.
    """
    items = [_LEADS.sub("", item.strip(" .")).casefold() for item in _COMMA.split(answer)]
    if len(items) < 2 or _NESTED.search(answer):
        return reply
    if any(len(item.split()) > ITEM or not re.search(r"[^\W\d_]", item) for item in items):  # "2024" is a part of a date
        return reply
    text = flatten_layout(reply)
    one = f"(?<![\\w$€£¥-])(?:{'|'.join(re.escape(item) for item in sorted(items, key=len, reverse=True))})(?!\\w|['\u2019\u2032]\\w)"
    found = re.search(rf"{one}(?:{_BETWEEN}{one}){{{len(items) - 1}}}", text, re.IGNORECASE)
    known = f" {plain(f'{question} {answer}')} "
    if found is None or any(f" {plain(name)} " not in known for name in find_names(text)):
        return reply
    listed = [item.casefold() for item in re.findall(one, found[0], re.IGNORECASE)]
    same = listed == items if _ORDERED.search(question) else sorted(listed) == sorted(items)
    before, after = text[: found.start()], text[found.end() :]
    again = re.search(one, f"{before}\n{after}", re.IGNORECASE)
    return reply if not same or again or _continues(before, -1) or _continues(after, 0) else f"{before}{KEY}{after}"


def _continues(beside: str, end: int) -> bool:
    """Return whether the text before a list (`end` is -1) or after it (0) has another short item, next to a separator."""
    if end == 0 and _WITH.match(beside):
        return True
    parts = re.split(_BETWEEN, beside)
    if len(parts) < 2 or re.search(r"\w", parts[end]):
        return False
    return 0 < len(_ENDS.split(parts[-2 if end else 1])[end].split()) <= ITEM
