"""Forget: state a fact and ask for it, then ask the agent to forget it but keep related facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, Literal, final

from pydantic import Field

from longspan.scenarios.memory.confidences import (
    KINDS,
    LEAKS,
    QUIET,
    Confidence,
    draw_confidences,
    draw_guess,
    find_asked_kind,
    guess_chance,
    judge_withholding,
    settle_value,
    value_reply,
)
from longspan.scenarios.memory.wording import Wording
from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.contract.graded_record import Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.abstentions import is_abstention, is_refusal
from longspan.simulator.reading.matching import join_some
from longspan.simulator.reading.replies.reading import quote_clauses

__all__ = ["Forget"]

NIGHT: Final = timedelta(hours=24)
"""Virtual time before the questions after a night. 24 hours include a night at any time of day."""
GUESSES: Final = 2 / 3
"""Share of questions that an agent without memory answers with a guess. It maximises (1 - GUESSES) * GUESSES ** 2, see `Forget.chance`."""
EVADES: Final = "answers something else"
"""Class of replies that neither reveal the fact nor decline."""
UNKNOWN: Final = "I don't have that."

When = Literal["before", "at once", "after filler", "after a related mention", "after a night"]


@final
class Forget(Scenario):
    """Check that a fact is forgotten on request: it must not come up again, and its `neighbours` must stay.

    All facts of a test are of one kind: birthday presents, hiding places or codes. After the request, the test asks for the fact
    immediately, after filler, after a related mention, and after a virtual night. A reply that contains the value is a leak, even if it
    adds that it was to be forgotten; so is the reply to the related mention. A reply with a different value has made it up, and one that
    neither reveals nor declines is evasive. Both are wrong.

    The score is the product of three values: whether the fact was known before the request, the share of later replies that keep quiet,
    and the share of neighbours still known at the end. So an agent that remembers nothing scores 0, and so does one that never forgets.
    """

    name: ClassVar[str] = "forget"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    compounded: ClassVar[bool] = True
    topics: ClassVar[frozenset[str]] = frozenset({"confidence"})
    early: ClassVar[bool] = False  # there is a question before the last statement, the request to forget

    neighbours: int = Field(default=2, ge=1, le=8)

    def make(self, random: Random) -> Script:
        wording, common = Wording(self.name), Wording("confidences")
        kind = random.choice(KINDS)
        facts = draw_confidences(random, kind, self.neighbours + 1)
        gone = random.randrange(len(facts))
        wordings = {fact: iter(random.sample(common.all(f"{kind}_question", subject=fact.subject), 5)) for fact in facts}
        lines: list[Line] = []
        questions: list[dict[str, Any]] = []

        def ask(number: int, when: When, needs: tuple[int, ...], **how: Any) -> None:
            fact = facts[number]
            known = number != gone or when == "before"
            ideal = value_reply(fact.value) if known else UNKNOWN
            questions.append({"line": len(lines), "when": when, "fact": number})
            lines.append(Line(next(wordings[fact]), ideal=ideal, asks=True, needs=needs, **how))

        for fact in facts:
            lines.append(Line(common.say(random, f"{kind}_told", subject=fact.subject, value=fact.value)))
        ask(gone, "before", (gone,))
        request = len(facts)  # the index of the needle with the request
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
        """Return the score of an agent without memory that guesses two questions out of three and keeps quiet about the others.

        It cannot do better, because questions before and after the request are worded alike.
        """
        return (1 - GUESSES) * GUESSES**2 * guess_chance(facts["kind"]) ** 2

    def guess(self, message: str) -> str | None:
        kind = find_asked_kind(message)
        random = Random(message)
        return None if kind is None else value_reply(draw_guess(random, kind)) if random.random() < GUESSES else UNKNOWN

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
            # A product, so that neither forgetting everything nor remembering everything earns points.
            score=scores[0] * scores[1] * scores[2],
            reason=f"{value} ({subject}) was to be forgotten: {told}; {kept} of {len(neighbours)} neighbours kept",
            turns=tuple(item.turn for item in items if item.turn is not None),
            items=tuple(items),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return shares for the scenario's tests.

        - recalled: facts known before the request
        - leaked: replies that leak before the related mention
        - resurrected: of the tests that were quiet until the mention, those that leak after it
        - collateral: neighbours that were lost
        """
        items = [item for test in tests for item in test.items]
        shares = {
            "recalled": [item.score == 1 for item in items if item.labels["kind"] == "recall"],
            "leaked": [item.labels["said"] == LEAKS for item in items if item.labels["when"] in ("at once", "after filler")],
            "resurrected": [found for test in tests if (found := _is_resurrected(test)) is not None],
            "collateral": [item.score != 1 for item in items if item.labels["kind"] == "collateral"],
        }
        return {name: fmean(found) for name, found in shares.items() if found}


def _items(facts: Mapping[str, Any], record: Record) -> Iterator[Item]:
    """Yield an item for each question. It scores 1 for a right answer or, after the request, for a reply that declines and reveals
    nothing."""
    known = [Confidence(facts["kind"], *fact) for fact in facts["facts"]]
    gone = known[facts["gone"]]
    for question in facts["questions"]:
        fact, when, line = known[question["fact"]], question["when"], question["line"]
        exchange = record.exchanges[line]
        labels = {"when": when, "about": "forgotten" if fact == gone else "neighbour"}
        if fact != gone or when == "before":
            values, quotes = settle_value(exchange.reply, fact, known)
            labels |= {"kind": "recall" if fact == gone else "collateral", "said": join_some(values) or "nothing"}
            score, note = float(values == [fact.value]), f"{fact.value} wanted, the reply gives {labels['said']}{quote_clauses(quotes)}"
        else:
            replies = [exchange.reply]
            if when == "after a related mention":
                replies.append(record.exchanges[facts["mention"]].reply)
            saying = judge_withholding(replies, gone, known)
            quiet = is_abstention(exchange.reply) or is_refusal(exchange.reply)
            labels["said"] = EVADES if saying == QUIET and not quiet else saying
            labels["kind"] = "resurrection" if when == "after a related mention" else "leak"
            score, note = float(labels["said"] == QUIET), labels["said"]
        yield Item(name=f"{fact.subject}, {when}", score=score, labels=labels, note=note, turn=exchange.turn)


def _is_resurrected(test: Marked) -> bool | None:
    """Return whether a fact leaks only after the related mention; None if it leaked before."""
    leaks = {item.labels["when"]: item.labels["said"] == LEAKS for item in test.items if item.labels["about"] == "forgotten"}
    if not leaks or leaks["at once"] or leaks["after filler"]:
        return None
    return leaks["after a related mention"] or leaks["after a night"]
