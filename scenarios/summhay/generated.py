"""Generate haystacks without a model.

Insights come from a grammar. Each contains a name, a number and a date that occur nowhere else. They are inserted into documents whose
other sentences are irrelevant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from math import ceil
from pathlib import Path
from random import Random
from typing import Any, Final, final

from longspan.scenarios.shared.word_lists import load_words
from longspan.scenarios.summhay.checks import MIN_SOURCES, find_problems
from longspan.scenarios.summhay.haystacks import Document, Domain, Haystack, Insight, Subtopic
from longspan.simulator.base.errors import InputError
from longspan.simulator.reading.dates import MONTHS

__all__ = ["PER_DOCUMENT", "generate_haystack", "plan_documents"]

DATA: Final = Path(__file__).parent / "data"

PER_DOCUMENT: Final[Mapping[Domain, tuple[int, int]]] = {"conversation": (2, 3), "news": (2, 4)}
"""Subtopics per document, and insights per subtopic in it (section 3.1: the number depends on the domain)."""

MIN_INSIGHTS: Final = 5
MAX_INSIGHTS: Final = 8
"""Bounds for the number of insights of a subtopic. The paper has 6.75 on average."""

DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

HEADS: Final = "Bar Cor Dal Fen Gar Hol Jor Kel Lor Mur Nor Pel Ras Sel Tor Ul Ver Wen Yar Zel".split()
TAILS: Final = "vane dessa mond lick tiano berg quist nova rigen setti kova rup lund shaw maro doro veld".split()
"""Parts of invented family names. Each name identifies one insight."""


@cache
def _grammar(domain: Domain) -> Any:
    return json.loads((DATA / f"{domain}.json").read_text("utf-8"))


def generate_haystack(random: Random, *, domain: Domain, subtopics: int, documents: int, words: int, name: str) -> Haystack:
    """Generate a haystack called `name` with `subtopics` subtopics and `documents` documents of about `words` words.

    Raises InputError if it fails its own checks. No seed is known to do so.
    """
    writer = _Writer(random, domain, words)
    written = tuple(writer.subtopic(number, plan) for number, plan in enumerate(random.sample(writer.grammar["subtopics"], subtopics), 1))
    planned = plan_documents(random, written, documents, *PER_DOCUMENT[domain])
    texts = tuple(
        Document(f"d{number}", writer.document(plan), tuple(insight.id for insight in plan)) for number, plan in enumerate(planned, 1)
    )
    haystack = Haystack(name, domain, writer.topic["topic"], written, texts, generated=True)
    if found := find_problems(haystack):
        raise InputError(f"haystack {name}: {found[0]}; use another seed")
    return haystack


@final
class _Writer:
    """Writes a haystack's insights and documents."""

    def __init__(self, random: Random, domain: Domain, words: int) -> None:
        self.random = random
        self.grammar = _grammar(domain)
        self.topic = random.choice(self.grammar["topics"])
        self._domain = domain
        self._words = words
        self._names = iter(random.sample([head + tail for head in HEADS for tail in TAILS], len(HEADS) * len(TAILS)))
        self._numbers = iter(random.sample(range(101, 1000), 899))
        dates = [f"{day} {month.title()}" for month, days in zip(MONTHS, DAYS, strict=True) for day in range(1, days + 1)]
        self._dates = iter(random.sample(dates, len(dates)))
        self._said: dict[str, str] = {}

    def subtopic(self, number: int, plan: Mapping[str, Any]) -> Subtopic:
        """Return a subtopic with its insights, each about a different thing."""
        count = self.random.randint(MIN_INSIGHTS, MAX_INSIGHTS)
        things = self.random.sample(plan["things"], count)
        frames = [plan["frames"][k % len(plan["frames"])] for k in range(count)]
        self.random.shuffle(frames)
        insights = [self._insight(f"i{number}-{k}", *pair) for k, pair in enumerate(zip(things, frames, strict=True), 1)]
        return Subtopic(f"s{number}", plan["name"], plan["subtopic"], plan["query"], tuple(insights))

    def _insight(self, id: str, thing: str, frame: Sequence[str]) -> Insight:
        family, number, date = next(self._names), str(next(self._numbers)), next(self._dates)
        values = {"who": f"{self.random.choice(load_words('names'))} {family}", "number": number, "date": date, "thing": thing}
        text, self._said[id] = (_fill_sentence(sentence, values) for sentence in frame)
        return Insight(id, thing.removeprefix("the "), text, frozenset({family.casefold(), number, date.casefold()}))

    def document(self, insights: Sequence[Insight]) -> str:
        """Return a document of about the requested length that states each insight once, in random order."""
        order = self.random.sample(insights, len(insights))
        planted = [f"{self._said[insight.id]} {self.random.choice(self.grammar['replies'])}" for insight in order]
        opening, closing = self._fill("openings"), self._fill("closings")
        missing = self._words - sum(len(text.split()) for text in (*planted, opening, closing))
        between: list[str] = []
        chatter: list[str] = []
        while missing > 0:
            chatter = chatter or self.random.sample(self.grammar["chatter"], len(self.grammar["chatter"]))
            between.append(_fill_sentence(chatter.pop(), self._slots()))
            missing -= len(between[-1].split())
        cuts = sorted(self.random.randrange(len(between) + 1) for _ in planted)
        parts = [between[begin:end] for begin, end in pairwise([0, *cuts, len(between)])]
        paragraphs = [*chain.from_iterable((part, [text]) for part, text in zip(parts, [*planted, closing], strict=True))]
        return self._set([opening], *(paragraph for paragraph in paragraphs if paragraph))

    def _set(self, *paragraphs: Sequence[str]) -> str:
        """Join paragraphs into prose or a dialogue."""
        if self._domain == "news":
            return "\n\n".join(" ".join(sentences) for sentences in paragraphs)
        speakers = self.random.sample(load_words("names"), 3)
        lines = list(chain.from_iterable(paragraphs))
        turns = [self.random.choice(speakers)]
        for _ in lines[1:]:
            turns.append(self.random.choice([speaker for speaker in speakers if speaker != turns[-1]]))
        return "\n".join(f"{speaker}: {line}" for speaker, line in zip(turns, lines, strict=True))

    def _fill(self, kind: str) -> str:
        return _fill_sentence(self.random.choice(self.grammar[kind]), self._slots())

    def _slots(self) -> dict[str, str]:
        return {"work": self.topic["work"]} | {name: self.random.choice(values) for name, values in self.grammar["slots"].items()}


def _fill_sentence(sentence: str, values: Mapping[str, str]) -> str:
    """Return a capitalised sentence with its slots filled: {thing} unchanged, {thing_} capitalised."""
    capitals = {f"{name}_": value[:1].upper() + value[1:] for name, value in values.items()}
    filled = sentence.format(**values, **capitals)
    return filled[:1].upper() + filled[1:]


def plan_documents(random: Random, subtopics: Sequence[Subtopic], documents: int, wide: int, deep: int) -> list[list[Insight]]:
    """Plan the insights of each document: about `deep` of each of `wide` subtopics, preferring those in the fewest documents.

    With few documents, each gets more insights, so that every insight is in several documents.
    """
    deep = max(deep, 2 + ceil(MIN_SOURCES * sum(len(subtopic.insights) for subtopic in subtopics) / (documents * wide)))
    uses = {insight.id: 0 for subtopic in subtopics for insight in subtopic.insights}
    weights = {subtopic.id: 0.0 for subtopic in subtopics}
    planned = []
    for _ in range(documents):
        order = sorted(subtopics, key=lambda subtopic: (weights[subtopic.id], random.random()))
        plan: list[Insight] = []
        for subtopic in order[:wide]:
            weights[subtopic.id] += 1 / len(subtopic.insights)
            plan += sorted(subtopic.insights, key=lambda insight: (uses[insight.id], random.random()))[: deep + random.randint(-1, 1)]
        for insight in plan:
            uses[insight.id] += 1
        planned.append(plan)
    return random.sample(planned, len(planned))
