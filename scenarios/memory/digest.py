"""Digest: sum up the latest decisions after weeks of talk. Some decisions were reversed, and some were mere ideas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.memory.decisions_listed import read_decisions
from longspan.scenarios.memory.spoken_dates import PLACEHOLDER_DATE, say_date
from longspan.scenarios.memory.wording import Wording
from longspan.scenarios.shared.deck import Deck
from longspan.scenarios.shared.timed import play_timed
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.contract.stage import Stage
from longspan.simulator.reading.matching import join_some

__all__ = ["Digest"]

BELONG: Final = ("decided", "decided after talk")
TRAPS: Final = ("older", "reversed", "talk")
"""Kinds of statements: decisions that belong in the digest, and traps that do not."""
EARLIER: Final = timedelta(days=2)
BREAK: Final = timedelta(days=9)
LATELY: Final = timedelta(hours=20)
"""Virtual time between two messages before the digest's first day, around it and after it. They add up to more than a fortnight."""
PLACEHOLDER: Final = ("9999", PLACEHOLDER_DATE)
"""Placeholders for a number of days and a date that are known only when the question is asked. No real values have more tokens."""


@final
class Digest(Scenario):
    """State `decisions` decisions that a digest of the last week must include, with an equal number of distractors and one trap.

    The distractors are older decisions and one that was later reversed; the trap is a mere idea. One of the decisions of the last week
    was an idea before. Each correct decision in the digest earns an equal share of the score, and each wrong item, stated or invented,
    costs the same share. So a list of everything scores 0. An item that the reply marks as older, reversed or undecided is not counted
    as listed.

    The digest begins the day before the first recent decision. The number of days since then is known only while the test is played,
    since other tests may wait for days in the meantime. So the question gives both the number of days and the date.
    """

    name: ClassVar[str] = "digest"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "episodic memory", "conflicting information", "information integration")
    compounded: ClassVar[bool] = True
    topics: ClassVar[frozenset[str]] = frozenset({"decisions"})

    decisions: int = Field(default=4, ge=2, le=12)

    def make(self, random: Random) -> Script:
        return self._script(random, Deck(random, load_words("decisions")))

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield tests about different decisions, as long as there are enough."""
        deck = Deck(Random(f"{seed}/decisions"), load_words("decisions"))
        for number in range(1, tests + 1):
            yield str(number), self._script(Random(f"{seed}/{number}"), deck)

    def _script(self, random: Random, deck: Deck[Mapping[str, Any]]) -> Script:
        wording = Wording(self.name)
        kinds = ["decided"] * (self.decisions - 1) + ["decided after talk"] + ["older"] * (self.decisions - 1) + ["reversed", "talk"]
        deeds: list[str] = []
        while len(deeds) < len(kinds):
            deeds += [deed for deed in [deck.deal()["deed"]] if deed not in deeds]
        said = {"older": "decided", "talk": "idea"}
        earlier = [(said[kind], deed) for kind, deed in zip(kinds, deeds, strict=True) if kind == "older"]
        earlier += [("idea", deed) for kind, deed in zip(kinds, deeds, strict=True) if kind == "decided after talk"]
        lately = [(said.get(kind, "decided"), deed) for kind, deed in zip(kinds, deeds, strict=True) if kind != "older"]
        random.shuffle(earlier)
        random.shuffle(lately)
        reversed_ = ("dropped", deeds[kinds.index("reversed")])
        lately.insert(random.randint(lately.index(("decided", reversed_[1])) + 1, len(lately)), reversed_)
        pauses = [timedelta(0), *[EARLIER] * (len(earlier) - 1), BREAK, *[LATELY] * len(lately)]
        lines = [
            Line(wording.say(random, macro, deed=deed), pause=pause)
            for (macro, deed), pause in zip([*earlier, *lately], pauses, strict=False)
        ]
        belong = [deed for _, deed in lately if kinds[deeds.index(deed)] in BELONG]
        days, day = PLACEHOLDER
        question = wording.say(random, "question", days=days, date=day)
        ideal = "\n".join(f"{deed[0].upper()}{deed[1:]}." for deed in belong)
        lines.append(Line(question, ideal=ideal, asks=True, pause=LATELY))
        facts = {"told": [[deed, kind] for deed, kind in zip(deeds, kinds, strict=True)], "first": len(earlier)}
        return Script(facts=facts, lines=lines)

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of naming one random decision: a second one would more likely cost than earn."""
        return 1 / len(load_words("decisions"))

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return the statements since the digest's first day. Older ones may be forgotten."""
        return [(at,) for at in range(facts["first"], len(needles))]

    def guess(self, message: str) -> str | None:
        asked = Wording(self.name).read("question", message) is not None
        return f"{Random(message).choice(load_words('decisions'))['deed'].capitalize()}." if asked else None

    async def play(self, stage: Stage) -> None:
        def question(line: Line, times: Sequence[datetime]) -> str:
            since = times[stage.facts["first"]].date() - timedelta(days=1)
            days, day = PLACEHOLDER
            return line.text.replace(f"{days} days", f"{(stage.now.date() - since).days} days").replace(day, say_date(since))

        await play_timed(stage, question)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        answer = record.answer
        kinds = dict(facts["told"])
        there, unknown = read_decisions(answer.reply)
        belong = [deed for deed, kind in kinds.items() if kind in BELONG]
        found = [deed for deed in belong if deed in there]
        astray = [deed for deed in there if deed not in belong]
        items = [_item(deed, kind, deed in there, bool(found), answer.turn) for deed, kind in kinds.items()]
        notes = [f"missing: {join_some(deed for deed in belong if deed not in there)}"] if len(found) < len(belong) else []
        wrong = [f"{deed} ({kinds.get(deed, 'never told')})" for deed in astray] + [f"{text} (never told)" for text in unknown]
        notes += [f"does not belong there: {join_some(wrong)}"] if wrong else []
        return Grade(
            # Wrong items cost as much as right ones earn, so that a list of everything earns nothing.
            score=max(0, len(found) - len(astray) - len(unknown)) / len(belong),
            reason="; ".join([f"{len(found)} of {len(belong)} decisions are there", *notes]),
            turns=(answer.turn,),
            items=tuple(items),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return, for each kind of statement, the share that the digests contain."""
        items = [item for test in tests for item in test.items]
        there = {kind: [item.numbers["there"] for item in items if item.labels["kind"] == kind] for kind in (*BELONG, *TRAPS)}
        return {f"{kind}, there": fmean(shares) for kind, shares in there.items() if shares}


def _item(deed: str, kind: str, there: bool, answers: bool, turn: int) -> Item:
    """Grade one statement: 1 if the digest rightly includes it, or rightly leaves it out and `answers` with some decision."""
    # An empty or evasive reply leaves everything out, so it must not earn the traps.
    right = there if kind in BELONG else answers and not there
    return Item(name=deed, score=float(right), labels={"kind": kind}, numbers={"there": float(there)}, turn=turn)
