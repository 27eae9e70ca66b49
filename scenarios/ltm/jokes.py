"""Jokes (GoodAI, section 3.2): some jokes, told hours apart; which one was told so long ago?"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.matching import plain
from longspan.simulator.queries import statement
from longspan.simulator.record import Grade, Record
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import Line, Script
from longspan.simulator.stage import Stage

__all__ = ["Jokes", "ago", "longest_question"]

SHORTEST, LONGEST = 30, 240
"""How many minutes pass at least, and at most, after each joke. Other tests and each turn move the clock on as well."""


@final
class Jokes(Scenario):
    """`jokes` are told with time in between, then one is asked for by how long ago it was told, which only the play can know."""

    name: ClassVar[str] = "jokes"
    skills: ClassVar[tuple[Skill, ...]] = ("episodic memory",)
    topics: ClassVar[frozenset[str]] = frozenset({"joke"})

    jokes: int = Field(default=4, ge=1, le=40)

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        told = random.sample(words("jokes"), self.jokes)
        asked = random.randrange(self.jokes)
        pauses = [timedelta(0), *(timedelta(minutes=random.randint(SHORTEST, LONGEST)) for _ in told)]
        lines = [Line(wording.say(random, "joke", text=text), pause=pause) for text, pause in zip(told, pauses, strict=False)]
        lines.append(Line(longest_question(), ideal=told[asked], asks=True, needs=(asked,), pause=pauses[-1]))
        return Script(facts={"jokes": told, "asked": asked}, lines=lines, farewell=wording.say(random, "farewell"))

    async def play(self, stage: Stage) -> None:
        told: list[datetime] = []
        for line, at in stage.cues():
            if at is not None:
                await stage.wait(span=at, time=line.pause or None)
            if line.asks:
                since = stage.now - told[stage.facts["asked"]]
                question = Wording(self.name).say(stage.random, "question", ago=ago(since))
                await stage.ask(question, needs=line.needs, ideal=line.ideal)
            else:
                told.append(stage.now)
                await stage.say(line.text, needle=line.needle, ideal=line.ideal)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """The reply must tell the right joke and no other: neither another of the test nor another of our list.

        `facts`: "jokes", the texts told; "asked", the number of the right one, from 0. What counts as telling: see `_told`.
        """
        answer = record.answer
        jokes = [str(joke) for joke in facts["jokes"]]
        others = [joke for joke in words("jokes") if joke not in jokes]
        told = _told(answer.reply, jokes, others)
        found = " and ".join(f'"{joke}"' for joke in told[:3]) or "none of the jokes"
        more = f" and {len(told) - 3} more" if len(told) > 3 else ""
        wanted = jokes[facts["asked"]]
        right = told == [wanted]
        reason = f'expected "{wanted}", the reply tells {"that one and no other" if right else found + more}'
        grade = Grade(score=float(right), reason=reason, turns=(answer.turn,))
        if told:
            return grade
        # A joke told in other words is none that the rules know.
        return grade.unless(record, statement(f'The text tells or names this joke, and no other: "{wanted}"', answer.reply))


def longest_question() -> str:
    """The longest that the question can be: it stands for what `play` asks, which depends on the time that has passed."""
    return max(Wording(Jokes.name).all("question", ago=ago(timedelta(days=29, hours=23, minutes=59))), key=len)


def ago(since: timedelta) -> str:
    """A span of time in days, hours and minutes, to the nearest minute and without what is zero: "2 days and 10 minutes"."""
    minutes = max(1, round(since / timedelta(minutes=1)))
    sizes = {"day": minutes // 1440, "hour": minutes // 60 % 24, "minute": minutes % 60}
    parts = [f"{size} {unit}{'s' if size > 1 else ''}" for unit, size in sizes.items() if size]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# ---- which jokes a reply tells

ENOUGH = 0.5
"""The share of a joke's own words that tells it."""

RUN = 4
"""So many of its words in a row quote a joke."""

TERSE = 12
"""A reply of no more words than this is nothing but an answer."""

_COMMON = frozenset(
    """a about after again ago all also always am an and another any are as ask asked at back be because been before being both but by
    can come could day days did do does each either else even ever every few first for found from gave get give go going gone good
    got had happy has have he hear heard help her here him his hour hours how i if in into is it its joke jokes just keep kept
    kind know last let like little long lost made make many may me mean mention mentioned minute minutes month more morning most
    much my name need never new next no not nothing now of off old on once one only or other our out over own part play plays
    people please pun put question really recall recount remember right said same say saying says see she should shared since so
    some somebody someone something soon still such sure take talk tell than that the their them then there these they thing
    things think this those time times to told too tried try two under until up us use used very want wanted was way we went were
    what when whenever where which while who whoever why will with word words work would yes yesterday yet you your evening
    conversation memory""".split()
)
"""Words that tell no joke from another, or that replies use of themselves."""

_KINDS = frozenset("joke jokes one gag pun story".split())
_ABOUT = frozenset("about regarding concerning featuring involving with where".split())
_DENIALS = frozenset(
    """not no never dont didnt cant cannot couldnt wasnt isnt arent wont unable sorry nor neither unlike without than apologize
    apologise afraid fail failed""".split()
)
_AFFIRMS = frozenset("but sure certain however".split())
"""Words after which a sentence denies nothing any more: "not the goat but ...", "I am not sure, ..."."""

_END = "sentencesend"
"""Stands for the end of a sentence among plain words."""


def _told(reply: str, jokes: Sequence[str], others: Sequence[str]) -> list[str]:
    """The jokes that `reply` tells or names, of those told in the test (`jokes`) and those it could confuse them with (`others`).

    A joke's own words are those that no other of these jokes has (word endings aside). A reply tells a joke if, within a
    stretch about twice as long as the joke, it has half of the joke's own words and at least three of them; or if it has four
    words of it in a row with two of its own among them. It names a joke of the test if one of the joke's own words follows "the
    joke about", "the one where" and the like, stands before "joke", or stands in a reply of a few words, and nothing before it
    in the sentence denies it ("not the one about ..."). Takes time in proportion to the length of the reply.
    """
    texts = [*jokes, *others]
    own = _own_words(texts, len(jokes))
    marked = plain(re.sub(r"[.!?;\n]+", f" {_END} ", reply)).split()
    spoken = [word for word in marked if word != _END]
    found = _retold(spoken, texts, own) | _quoted(spoken, texts, own) | _named(marked, len(spoken) <= TERSE, own[: len(jokes)])
    return [texts[k] for k in sorted(found)]


def _own_words(texts: Sequence[str], told: int) -> list[frozenset[str]]:
    """Each joke's own stems. Those of the first `told` need only differ from one another, those of the rest from all."""
    stems = [frozenset(_stem(word) for word in plain(text).split() if word not in _COMMON) for text in texts]
    among_told = Counter(stem for each in stems[:told] for stem in each)
    among_all = Counter(stem for each in stems for stem in each)
    return [frozenset(stem for stem in each if (among_told if k < told else among_all)[stem] == 1) for k, each in enumerate(stems)]


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    """`word` without its ending, roughly: enough to know "impersonating" from "impersonate" as one."""
    for ending in ("ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "er", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _retold(spoken: Sequence[str], texts: Sequence[str], own: Sequence[frozenset[str]]) -> set[int]:
    """The jokes half of whose own words, and at least three, stand close together."""
    owners: dict[str, list[int]] = defaultdict(list)
    for k, stems in enumerate(own):
        for stem in stems:
            owners[stem].append(k)
    hits: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for at, word in enumerate(spoken):
        for k in owners.get(_stem(word), ()):
            hits[k].append((at, _stem(word)))
    wanted = [max(ENOUGH * len(stems), min(3, len(stems))) for stems in own]
    return {k for k, places in hits.items() if _densest(places, 2 * len(texts[k].split()) + 10) >= wanted[k]}


def _densest(places: Sequence[tuple[int, str]], width: int) -> int:
    """The most different stems within `width` words."""
    within: Counter[str] = Counter()
    most = begin = 0
    for at, stem in places:
        within[stem] += 1
        while places[begin][0] <= at - width:
            within[places[begin][1]] -= 1
            within += Counter()  # drops what is zero
            begin += 1
        most = max(most, len(within))
    return most


def _quoted(spoken: Sequence[str], texts: Sequence[str], own: Sequence[frozenset[str]]) -> set[int]:
    """The jokes of which some words in a row, with two of their own among them, are in the reply."""
    runs: dict[tuple[str, ...], int] = {}
    for k, text in enumerate(texts):
        for run in _runs(plain(text).split()):
            if len({_stem(word) for word in run} & own[k]) >= 2:
                runs[run] = k
    return {runs[run] for run in _runs(spoken) if run in runs}


def _runs(spoken: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(spoken[k:] for k in range(RUN)), strict=False)


def _named(marked: Sequence[str], terse: bool, own: Sequence[frozenset[str]]) -> set[int]:
    """The jokes that a sentence points at without telling them; in a terse reply the first sentence that can does."""
    owner = {stem: k for k, stems in enumerate(own) for stem in stems}
    found: set[int] = set()
    pointed, denied = 0, False  # pointed: how many words further on still belong to "the joke about"
    for at, word in enumerate(marked):
        before = marked[at - 1] if at else _END
        after = marked[at + 1] if at + 1 < len(marked) else _END
        if word == _END:
            pointed, denied, terse = 0, False, terse and not found
            continue
        denied = (denied or word in _DENIALS or (word in ("before", "after") and after == "the")) and word not in _AFFIRMS
        pointed = 8 if word in _ABOUT and (before in _KINDS or (word == "about" and before in ("was", "is"))) else pointed - 1
        k = owner.get(_stem(word))
        if k is not None and not denied and (pointed > 0 or terse or after in _KINDS):
            found.add(k)
    return found
