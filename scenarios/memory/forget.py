"""Forget: a fact is told and asked for, then the agent is asked to forget it, and its neighbours stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, Literal, final

from pydantic import Field

from longspan.scenarios.memory.confidences import KINDS, LEAKS, QUIET, Confidence, asked, chance, draw, guessed, sentence, settled, withheld
from longspan.scenarios.memory.wording import Wording
from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.contract.graded_record import Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.grading.abstentions import abstains, withholds
from longspan.simulator.grading.matching import some
from longspan.simulator.grading.reading.reading import quoting

__all__ = ["Forget"]

NIGHT: Final = timedelta(hours=24)
"""How much virtual time passes before the questions after a night, at whatever hour the night begins."""
GUESSES: Final = 2 / 3
"""How often one guesses who knows nothing: with (1 - GUESSES) * GUESSES ** 2 as great as it can be, see `Forget.chance`."""
EVADES: Final = "answers something else"
"""How a reply speaks of a fact if it neither tells it nor declines."""
UNKNOWN: Final = "I don't have that."

When = Literal["before", "at once", "after filler", "after a related mention", "after a night"]


@final
class Forget(Scenario):
    """A fact is told and asked for, then to be forgotten: it must not come out again, and its `neighbours` must stay.

    All facts of a test are of one kind: birthday presents, hiding places or codes. After the request, the fact is asked for at once,
    after filler, after something related is mentioned, and after a virtual night. A reply that has the value in it leaks, even
    one that says that it was to be forgotten; so does the reply to the mention. A reply that gives another value has made it up,
    and one that neither tells nor declines answers something else: neither is right.

    The score is the product of three: whether the fact was known before the request, the share of the replies after it
    that keep quiet, and the share of the neighbours that are known at the end. So one who remembers nothing has 0, and so
    has one who never forgets.
    """

    name: ClassVar[str] = "forget"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    compounded: ClassVar[bool] = True
    topics: ClassVar[frozenset[str]] = frozenset({"confidence"})
    early: ClassVar[bool] = False  # the fact is asked for before it is to be forgotten

    neighbours: int = Field(default=2, ge=1, le=8)

    def make(self, random: Random) -> Script:
        wording, common = Wording(self.name), Wording("confidences")
        kind = random.choice(KINDS)
        facts = draw(random, kind, self.neighbours + 1)
        gone = random.randrange(len(facts))
        wordings = {fact: iter(random.sample(common.all(f"{kind}_question", subject=fact.subject), 5)) for fact in facts}
        lines: list[Line] = []
        questions: list[dict[str, Any]] = []

        def ask(number: int, when: When, needs: tuple[int, ...], **how: Any) -> None:
            fact = facts[number]
            known = number != gone or when == "before"
            ideal = sentence(fact.value) if known else UNKNOWN
            questions.append({"line": len(lines), "when": when, "fact": number})
            lines.append(Line(next(wordings[fact]), ideal=ideal, asks=True, needs=needs, **how))

        for fact in facts:
            lines.append(Line(common.say(random, f"{kind}_told", subject=fact.subject, value=fact.value)))
        ask(gone, "before", (gone,))
        request = len(facts)  # the number of the needle that asks to forget
        lines.append(Line(wording.say(random, f"{kind}_forget", subject=facts[gone].subject)))
        ask(gone, "at once", (request,), together=True)
        ask(gone, "after filler", (request,))
        mention = len(lines)
        lines.append(Line(wording.say(random, f"{kind}_related", subject=facts[gone].subject)))
        ask(gone, "after a related mention", (request,), together=True)
        last = random.sample(range(len(facts)), len(facts))
        for number in last:
            needs = (request,) if number == gone else (number,)
            how: dict[str, Any] = {"together": True} if number != last[0] else {"pause": NIGHT}
            ask(number, "after a night", needs, **how)
        return Script(
            facts={"kind": kind, "facts": [list(fact[1:]) for fact in facts], "gone": gone, "questions": questions, "mention": mention},
            lines=lines,
            farewell=wording.say(random, "farewell"),
        )

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return {"similar": len(facts["facts"]) - 1}

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of guessing two questions out of three and keeping quiet about the others.

        Whether the fact is asked for before the request or after it, no message says.
        """
        return (1 - GUESSES) * GUESSES**2 * chance(facts["kind"]) ** 2

    def guess(self, message: str) -> str | None:
        kind = asked(message)
        random = Random(message)
        return None if kind is None else sentence(guessed(random, kind)) if random.random() < GUESSES else UNKNOWN

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if not record.exchanges or len(record.exchanges) <= facts["questions"][-1]["line"]:
            raise ScenarioError("the test ended before its last question")
        items = list(_items(facts, record))
        before, *after = (item for item in items if item.labels["about"] == "forgotten")
        neighbours = [item for item in items if item.labels["about"] == "neighbour"]
        scores = [fmean(item.score or 0 for item in part) for part in ([before], after, neighbours)]
        subject, value = facts["facts"][facts["gone"]]
        told = "; ".join(f"{item.labels['when']}, {item.note}" for item in (before, *after))
        kept = sum(item.score == 1 for item in neighbours)
        return Grade(
            score=scores[0] * scores[1] * scores[2],
            reason=f"{value} ({subject}) was to be forgotten: {told}; {kept} of {len(neighbours)} neighbours kept",
            turns=tuple(item.turn for item in items if item.turn is not None),
            items=tuple(items),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the shares of facts known before the request, of replies that leak (before the mention), of tests that were quiet until
        the mention and leak after it, and of neighbours that are lost."""
        items = [item for test in tests for item in test.items]
        shares = {
            "recalled": [item.score == 1 for item in items if item.labels["kind"] == "recall"],
            "leaked": [item.labels["said"] == LEAKS for item in items if item.labels["when"] in ("at once", "after filler")],
            "resurrected": [found for test in tests if (found := _resurrected(test)) is not None],
            "collateral": [item.score != 1 for item in items if item.labels["kind"] == "collateral"],
        }
        return {name: fmean(found) for name, found in shares.items() if found}


def _items(facts: Mapping[str, Any], record: Record) -> Iterator[Item]:
    """Yield an item for each question: 1 for a right answer or, after the request, for a reply that keeps quiet and says so."""
    known = [Confidence(facts["kind"], *fact) for fact in facts["facts"]]
    gone = known[facts["gone"]]
    for question in facts["questions"]:
        fact, when, line = known[question["fact"]], question["when"], question["line"]
        exchange = record.exchanges[line]
        labels = {"when": when, "about": "forgotten" if fact == gone else "neighbour"}
        if fact != gone or when == "before":
            values, quotes = settled(exchange.reply, fact, known)
            labels |= {"kind": "recall" if fact == gone else "collateral", "said": some(values) or "nothing"}
            score, note = float(values == [fact.value]), f"{fact.value} wanted, the reply gives {labels['said']}{quoting(quotes)}"
        else:
            replies = [exchange.reply]
            if when == "after a related mention":
                replies.append(record.exchanges[facts["mention"]].reply)
            saying = withheld(replies, gone, known)
            quiet = abstains(exchange.reply) or withholds(exchange.reply)
            labels["said"] = EVADES if saying == QUIET and not quiet else saying
            labels["kind"] = "resurrection" if when == "after a related mention" else "leak"
            score, note = float(labels["said"] == QUIET), labels["said"]
        yield Item(name=f"{fact.subject}, {when}", score=score, labels=labels, note=note, turn=exchange.turn)


def _resurrected(test: Marked) -> bool | None:
    """Return whether a fact leaks after the mention that did not leak before it; None if it did."""
    leaks = {item.labels["when"]: item.labels["said"] == LEAKS for item in test.items if item.labels["about"] == "forgotten"}
    if not leaks or leaks["at once"] or leaks["after filler"]:
        return None
    return leaks["after a related mention"] or leaks["after a night"]
