"""Recorded histories as tests: LoCoMo, LongMemEval, BEAM, PersonaMem, people's own logs, and histories that are made up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated, Any, ClassVar, Final, final

from pydantic import Field, model_validator

from longspan.scenarios.histories import made_up
from longspan.scenarios.histories.asking import AskedQuestion, Wording, ask, chance, first_option
from longspan.scenarios.histories.corrections import NEEDED, Audit, Gold, audit_of, ceiling
from longspan.scenarios.histories.delivery import DELIVERIES, Delivery, DeliveryName
from longspan.scenarios.histories.grading import GRADINGS, MEASURES, Grading, graded
from longspan.scenarios.histories.history import History, Question
from longspan.scenarios.histories.loading import load
from longspan.scenarios.histories.picked import PickedHistory, PickedQuestion
from longspan.scenarios.histories.summaries import echoes, figures, labels, tables_of
from longspan.scenarios.histories.telling import digest
from longspan.scenarios.histories.token_f1 import locomo_gold
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Exchange, Grade, Marked, Record
from longspan.simulator.contract.scenario import Measure, Scenario, Skill
from longspan.simulator.contract.script import Script
from longspan.simulator.grading.matching import some

__all__ = ["Beam", "Histories", "LoCoMo", "LongMemEval", "OwnLog", "PersonaMem"]

MADE_UP: Final = "made_up"
"""The name that the facts of a made-up history give its benchmark."""
LONGEST: Final = 30
"""Characters of a history's id in the ids of its tests."""

UPDATED: Final = frozenset({"knowledge-update", "knowledge_update"})
"""The kinds of questions about a fact that changed, as LongMemEval and BEAM call them."""

_NOT_IN_IDS: Final = re.compile(r"[^a-z0-9_-]+")


class Histories(Scenario):
    """Questions about a recorded history: the base class of the benchmarks.

    `delivery`: each turn of the history is told once, and each question is asked from the state at its end (told); all of it is in the
    question's message (context); or its sessions are woven into a long conversation with other tests (weave). `questions`: how many about
    each history are asked, drawn by the seed; None for all, or five that are woven. `kinds`: only questions of these kinds. `grading`:
    rules, or rules and a judge by the benchmark's own procedure; by default as the benchmark's authors grade. Without `data` histories are
    made up, of `tokens` tokens.
    """

    skills: ClassVar[tuple[Skill, ...]] = ("recall", "episodic memory", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"history"})

    delivery: DeliveryName = "told"
    questions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    kinds: tuple[str, ...] | None = None
    grading: Grading | None = None
    tokens: Annotated[Tokens, Field(ge=made_up.MIN_TOKENS, le=made_up.MAX_TOKENS)] | None = None
    data: Path | None = None

    @model_validator(mode="after")
    def _sound(self) -> Histories:
        if self.data is not None and self.tokens is not None:
            raise ValueError("tokens is the length of made-up histories: those of data have their own")
        if self.kinds is not None and not self.kinds:
            raise ValueError("kinds must name a kind of question at least")
        if self.grading is not None and self.grading not in GRADINGS[self._benchmark]:
            what = f"made-up histories, which rules grade; --data {self.name}=FILE names others" if self.data is None else self.name
            raise ValueError(f"grading={self.grading} is not for {what}: use {' or '.join(GRADINGS[self._benchmark])}")
        return self

    @property
    def measure(self) -> Measure:
        return Measure(*MEASURES.get(self._grading, Measure()[:2]), self.data is None)

    @property
    def _delivery(self) -> Delivery:
        return DELIVERIES[self.delivery]

    @property
    def _benchmark(self) -> str:
        return MADE_UP if self.data is None else self.name

    @property
    def _paper(self) -> bool:
        """Whether questions are asked in the words of the benchmark's authors."""
        return False

    @property
    def _grading(self) -> Grading:
        return self.grading or GRADINGS[self._benchmark][0]

    # ---- which histories

    def make(self, random: Random) -> Script:
        """Make a test of one history: all in one conversation, with one question unless it is woven. Raises InputError."""
        seed = str(random.random())
        [(_, picked)] = self._picked(1, seed)
        return self._delivery.one(picked, random)

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield the tests about `tests` histories, or all if there are fewer.

        A history is a test that tells it, called by its id, and one for each question, `ID-qNUMBER`; or those alone, where it stands
        in their messages; or one test, where it is woven. Raises InputError for data that cannot be read.
        """
        for id, picked in self._picked(tests, seed):
            yield from self._delivery.series(picked, id)

    def _picked(self, tests: int, seed: str) -> Iterator[tuple[str, PickedHistory]]:
        """Yield some histories, with an id each and the questions that are asked about them."""
        if self.data is None:
            length = self.tokens or self._delivery.tokens
            found = [made_up.write(f"{seed}/{number}", length) for number in range(1, tests + 1)]
        else:
            found = list(load(self.name, self.data))
        able = [history for history in found if any(map(self._wanted, history.questions))]
        if not able:
            kinds = sorted({question.kind for history in found for question in history.questions})
            raise InputError(f"scenario {self.name}: no question is of the kinds {some(self.kinds or ())}; there are {', '.join(kinds)}")
        if len(able) > tests:
            able = [able[number] for number in sorted(Random(f"{seed}/histories").sample(range(len(able)), tests))]
        names = _ids(history.id if self.data else f"made-up-{number}" for number, history in enumerate(able, 1))
        for id, history in zip(names, able, strict=True):
            yield id, self._pick(history, Random(f"{seed}/{history.id}/questions"))

    def _wanted(self, question: Question) -> bool:
        return self.kinds is None or question.kind in self.kinds

    def _pick(self, history: History, random: Random) -> PickedHistory:
        numbers = [number for number, question in enumerate(history.questions) if self._wanted(question)]
        limit = self.questions or self._delivery.questions or len(numbers)
        if limit < len(numbers):
            numbers = sorted(random.sample(numbers, limit))
        picked = [(number, history.questions[number]) for number in numbers]
        asked = [PickedQuestion(number, one, self._ask(history, one, random), self._counts(one)) for number, one in picked]
        facts = {
            "benchmark": self._benchmark,
            "history": history.id,
            "sha256": digest(history),
            "delivery": self.delivery,
            "grading": self._grading,
            "sessions": len(history.sessions),
            "turns": len(history.turns),
            "remarks": list(history.remarks),
        }
        return PickedHistory.of(history, asked, facts, made_up=self.data is None)

    def _ask(self, history: History, question: Question, random: Random) -> AskedQuestion:
        return ask(question, None if self.data else made_up.rivals(history, question))

    def _counts(self, question: Question) -> bool:
        """Return whether a question is part of the score."""
        return True

    # ---- grading

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return what choosing options blindly scores; an open question has no chance."""
        each = _questions(facts)
        counted = [one for one in each if one["counts"]] or each
        return fmean(map(chance, counted)) if counted else 0.0

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return all evidence, or the newest of a fact that was updated: its earlier values may be forgotten."""
        if _questions(facts)[number]["kind"] in UPDATED:
            return [(len(needles) - 1,)]
        return super().needed(facts, number, question, needles)

    def changed(self, facts: Mapping[str, Any]) -> Sequence[str]:
        remarks = facts.get("remarks")
        return [f"{facts.get('history')}: {remark}" for remark in remarks] if isinstance(remarks, list) else []

    def guess(self, message: str) -> str | None:
        return first_option(message)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Grade a test by the mean over its questions that count, each an item. The score is None if one of these has none."""
        if "questions" not in facts:
            return _labelled(facts, graded(facts, record, paper=self._paper))
        each = [
            _labelled(one, graded(one, replace(record, exchanges=(answer,)), paper=self._paper))
            for one, answer in zip(_questions(facts), record.answers, strict=True)
        ]
        counted = [grade for one, grade in zip(facts["questions"], each, strict=True) if one["counts"]] or each
        scores = [grade.score for grade in counted if grade.score is not None]
        asked = [one for one in facts["questions"] if one["counts"]] or facts["questions"]
        chances = [chance(one) if grade.chance is None else grade.chance for one, grade in zip(asked, counted, strict=True)]
        below = [grade.items[0].name for grade in counted if grade.score != 1]
        reason = f"{len(counted) - len(below)} of {len(counted)} answers have full marks" + (f"; not {some(below)}" if below else "")
        return Grade(
            score=fmean(scores) if len(scores) == len(counted) else None,
            reason=reason,
            turns=tuple(turn for grade in each for turn in grade.turns),
            asks=tuple(query for grade in each for query in grade.asks),
            items=tuple(item for grade in each for item in grade.items),
            chance=fmean(chances) if any(grade.chance is not None for grade in counted) else None,
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        return figures(tests)

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        # the kinds of a single run's tests are told by their tags
        return [] if len(runs) == 1 and self.delivery != "weave" else tables_of(self.name, runs)


@final
class LoCoMo(Histories):
    """Questions about conversations between two people over months (LoCoMo).

    `wording`: questions are asked as they stand (plain), or with the authors' additions (paper): short phrases and dates are asked for, and
    adversarial questions have two choices; by default plain, and paper with delivery=context. `gold`: published, or corrected by an audit
    of the gold answers, which `locomo_audit` names or which lies beside the data. Adversarial questions do not count.
    """

    name: ClassVar[str] = "locomo"

    wording: Wording | None = None
    gold: Gold = "published"
    locomo_audit: Path | None = None

    @model_validator(mode="after")
    def _audited(self) -> LoCoMo:
        if self.data is None and (self.gold, self.locomo_audit) != ("published", None):
            raise ValueError("gold=corrected and locomo_audit are for LoCoMo's conversations: --data locomo=FILE names them")
        return self

    @property
    def _paper(self) -> bool:
        return (self.wording or ("paper" if self.delivery == "context" and self.data else "plain")) == "paper"

    @property
    def _audit(self) -> Audit | None:
        """The audit, if it is asked for. One that merely lies beside the data changes no run."""
        if self.data is None or (self.gold, self.locomo_audit) == ("published", None):
            return None
        audit = audit_of(self.data, self.locomo_audit)
        if audit is None:
            raise InputError(f"scenario {self.name}: {NEEDED}")
        return audit

    def _ask(self, history: History, question: Question, random: Random) -> AskedQuestion:
        audit = self._audit
        if audit and self.gold == "corrected":
            question = audit.corrected(history, question)
        rivals = None if self.data else made_up.rivals(history, question)
        asked = ask(question, rivals, paper=self._paper, trap_first=random.random() < 0.5)
        best = locomo_gold(question.kind, asked.ideal) if self._grading == "f1" else asked.ideal
        label = {"gold": audit.label(history, question)} if audit else {}
        return asked._replace(ideal=best, facts=asked.facts | label)

    def _counts(self, question: Question) -> bool:
        return question.kind != "adversarial" or self.kinds == ("adversarial",)

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the means, and what right answers score by the published gold answers, if an audit says which of them are wrong."""
        highest = ceiling([item for test in tests for item in test.items if item.labels.get("counts") == "yes"])
        return figures(tests) | ({} if highest is None else {"ceiling": highest})

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        return [*echoes(runs), *super().tables(runs)]


@final
class LongMemEval(Histories):
    """A question about many conversations of a user with an assistant (LongMemEval)."""

    name: ClassVar[str] = "longmemeval"


@final
class Beam(Histories):
    """Questions about a long chat of a user with an assistant (BEAM)."""

    name: ClassVar[str] = "beam"


@final
class PersonaMem(Histories):
    """Multiple-choice questions about a user's preferences, which change over many conversations (PersonaMem)."""

    name: ClassVar[str] = "personamem"


@final
class OwnLog(Histories):
    """Questions about your own log of a conversation, in JSON lines."""

    name: ClassVar[str] = "history"


def _ids(names: Iterable[str]) -> list[str]:
    """Return unique ids for tests, as close to the names as they can be."""
    dealt: Counter[str] = Counter()
    ids = []
    for name in names:
        id = _NOT_IN_IDS.sub("-", name.casefold()).strip("-_")[:LONGEST] or "history"
        dealt[id] += 1
        while dealt[id] > 1:
            id = f"{id[: LONGEST - 5]}-{dealt[id]}"
            dealt[id] += 1
        ids.append(id)
    return ids


def _questions(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the facts of each question of a test, together with its history's facts."""
    if "questions" not in facts:
        return [facts] if "question" in facts else []
    common = {name: value for name, value in facts.items() if name != "questions"}
    return [common | one for one in facts["questions"]]


def _labelled(facts: Mapping[str, Any], grade: Grade) -> Grade:
    """Return the grade of a question, with the labels that its item is counted by."""
    of = labels(facts["benchmark"], facts["history"], facts["kind"], counts=facts["counts"], answerable=facts["answerable"])
    items = [item.model_copy(update={"name": f"{facts['history']}/{facts['id']}", "labels": item.labels | of}) for item in grade.items]
    return grade.model_copy(update={"items": tuple(items)})
