"""The built-in source of filler: facts about the real world, small tasks, and small talk about people who are in no test.

The forms are in data/questions.json and data/talk.json. Adding to them changes the conversation of every seed. Nothing is about the user,
because tests are about the user. No name here occurs in a test: see tests/simulator/test_filler.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import accumulate
from typing import Final, final

from longspan.simulator.filler.draws import Draws, fill_slots, read_word_list
from longspan.simulator.filler.filler import Pair
from longspan.simulator.filler.questions import KINDS
from longspan.simulator.filler.tasks import TASKS
from longspan.simulator.filler.wordnet import load_wordnet

__all__ = ["Talk", "line_of", "talk_nearby"]

NEAR: Final = 0.12
"""The share of questions that are close to the topics of tests: other people's colours, names, jokes, errands."""
ASKING: Final = 0.4
"""The share of lines of chat that ask for a task or an answer, and get a reply."""

STORIES: Final = 0.12
"""The share of lines of chat that are a short story."""


@final
class Talk:
    """Endless questions and chat that depend only on the seed."""

    def __init__(self, seed: int | str) -> None:
        self._seed = seed

    def reseed(self, seed: str) -> Talk:
        return Talk(seed)

    def pairs(self) -> Iterator[Pair]:
        draw = Draws(f"{self._seed}/questions")
        kinds = list(read_word_list("questions"))
        weights = list(accumulate(weight for weight, _ in read_word_list("questions").values()))
        near = _kinds("near")
        while True:
            if draw.random.random() < NEAR:
                yield talk_nearby(draw, draw.random.choice(near))
            else:
                yield _question(draw, draw.random.choices(kinds, cum_weights=weights)[0])

    def chat(self) -> Iterator[Pair]:
        draw = Draws(f"{self._seed}/chat")
        kinds, tasks = _kinds("chat"), list(TASKS)
        while True:
            chosen = draw.random.random()
            if chosen < ASKING:
                yield TASKS[draw.random.choice(tasks)](draw)
            elif chosen < ASKING + STORIES:
                yield line_of(draw, "story")
            else:
                yield line_of(draw, draw.random.choice(kinds))


def _kinds(section: str) -> list[str]:
    return list(read_word_list("talk")[section])


def _question(draw: Draws, kind: str) -> Pair:
    _, forms = read_word_list("questions")[kind]
    slots = KINDS[kind](draw)
    answer = slots["answer"]
    return fill_slots(draw.random.choice(forms), slots), fill_slots("{answer}", {"answer": answer}) if answer.startswith("a ") else answer


def talk_nearby(draw: Draws, kind: str) -> Pair:
    question, answer = draw.random.choice(read_word_list("talk")["near"][kind])
    slots = _Drawn(draw)
    return fill_slots(question, slots), fill_slots(answer, slots)


def line_of(draw: Draws, kind: str) -> Pair:
    return fill_slots(draw.random.choice(read_word_list("talk")["chat"][kind]), _Drawn(draw)), ""


class _Drawn(dict[str, str]):
    """Slots that are drawn on first use: {town} and {town2} are two towns."""

    def __init__(self, draw: Draws) -> None:
        super().__init__()
        self._draw = draw

    def __missing__(self, slot: str) -> str:
        word = _draw(self._draw, slot.rstrip("0123456789"))
        if slot in ("name", "name2", "name3") or "{" not in word:
            self[slot] = word
        else:
            self[slot] = word.format_map(_Drawn(self._draw))
        return self[slot]


def _draw(draw: Draws, name: str) -> str:
    if name in NUMBERS:
        return _number(draw, name)
    return draw.of(f"slot {name}", partial(_list, name))


NUMBERS: Final = {"count": range(2, 31), "nth": range(2, 31), "degrees": range(-9, 34), "price": range(2, 900), "clock": range(1440)}


def _number(draw: Draws, name: str) -> str:
    number = draw.random.choice(NUMBERS[name])
    if name == "clock":
        return f"{number // 60}:{number % 60:02}"
    if name == "nth":
        return f"{number}{'th' if 10 < number < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
    return str(number)


@cache
def _list(name: str) -> list[str]:
    """Return the words that can fill a slot."""
    facts = load_wordnet()
    if name in read_word_list("talk")["kinds"]:
        group, kinds = read_word_list("talk")["kinds"][name]
        return sorted({word for kind in kinds for word in facts.kinds[group][kind]})
    if name == "thing":
        return sorted({word for words in facts.kinds["things"].values() for word in words})
    if name == "adjective":
        return sorted({word for words in facts.similar.values() for word in words})
    if name == "word":
        return sorted({word for pair in facts.synonyms for word in pair})
    if name == "town":
        return [place for place, what, _ in facts.places if what in ("city", "town")]
    if name == "person":
        return [person for person, _ in facts.people]
    words: list[str] = read_word_list("talk")["lists"][name]
    return words
