"""An endless story to scatter stars over: small scenes of people in a river country, in English or Chinese.

It has no digits, no stars and no one who counts, so that nothing in it can be mistaken for an answer. Its sentences and words are frozen
lists: story_en.json and story_zh.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

__all__ = ["Language", "tell_story"]

Language = Literal["en", "zh"]

SCENES_PER_CHAPTER: Final = 6

_SLOT: Final = re.compile(r"<(\w+)>")
_ARTICLE: Final = re.compile(r"\b([Aa]) (?=[aeiou]|hourglass|honest)")


def tell_story(language: Language, random: Random) -> Iterator[str]:
    """Yield the story's paragraphs, each with its line break: chapters of scenes, without end."""
    lists = _lists(language)
    while True:
        yield f"{_sentence(lists, 'title', random, random.sample(lists['people'], 2)).rstrip('.')}\n\n"
        for _ in range(SCENES_PER_CHAPTER):
            yield from _scene(lists, random)


def _scene(lists: Mapping[str, Any], random: Random) -> Iterator[str]:
    """Yield a scene of two people, in three to six paragraphs."""
    pair = random.sample(lists["people"], 2)
    paragraphs = random.randint(3, 6)
    for number in range(paragraphs):
        kinds = ["body"] * random.randint(3, 5)
        if number == 0:
            kinds.insert(0, "opening")
        if number == paragraphs - 1:
            kinds.append("closing")
        yield lists["between"].join(_sentence(lists, kind, random, pair) for kind in kinds) + "\n\n"


def _sentence(lists: Mapping[str, Any], kind: str, random: Random, pair: list[str]) -> str:
    """Return a sentence of the kind with its slots filled: `a` and `b` are the two people, in random order."""
    a, b = random.sample(pair, 2)
    known = {"a": a, "b": b}
    text = _SLOT.sub(lambda slot: known.get(slot[1]) or random.choice(lists[slot[1]]), random.choice(lists[kind]))
    text = _ARTICLE.sub(r"\1n ", text)
    return text[0].upper() + text[1:]


@cache
def _lists(language: Language) -> Any:
    return json.loads((Path(__file__).parent / f"story_{language}.json").read_text("utf-8"))
