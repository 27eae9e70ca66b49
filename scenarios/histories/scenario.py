"""Histories as tests: LoCoMo, LongMemEval, BEAM, PersonaMem, users' own logs, and generated histories."""

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
from longspan.scenarios.histories.corrections import NEEDED, Audit, Gold, audit_of, score_ceiling
from longspan.scenarios.histories.delivery import DELIVERIES, Delivery, DeliveryName
from longspan.scenarios.histories.grading import GRADINGS, MEASURES, Grading, grade_question
from longspan.scenarios.histories.history import History, Question
from longspan.scenarios.histories.loading import load_histories
from longspan.scenarios.histories.picked import PickedHistory, PickedQuestion
from longspan.scenarios.histories.posed_questions import AskedQuestion, Wording, first_option, guess_score, pose_question
from longspan.scenarios.histories.question_figures import echo_tables, item_labels, mean_scores, tables_of
from longspan.scenarios.histories.telling import hash_history
from longspan.scenarios.histories.token_f1 import locomo_gold
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Exchange, Grade, Marked, Record
from longspan.simulator.contract.scenario import Measure, Scenario, Skill
from longspan.simulator.contract.script import Script
from longspan.simulator.reading.matching import join_some

__all__ = ["Beam", "Histories", "LoCoMo", "LongMemEval", "OwnLog", "PersonaMem"]

MADE_UP: Final = "made_up"
"""Benchmark name in the facts of a generated history."""
LONGEST: Final = 30
"""Maximum length of a history's id within the ids of its tests."""

UPDATED: Final = frozenset({"knowledge-update", "knowledge_update"})
"""Kinds of questions about a changed fact, as LongMemEval and BEAM name them."""

_NOT_IN_IDS: Final = re.compile(r"[^a-z0-9_-]+")


class Histories(Scenario):
    """Questions about a recorded history: the base class of the benchmarks.

    `delivery`: tell each turn once and ask each question from the state at the end (told); put the whole history into the question's
    message (context); or weave its sessions into a long conversation with other tests (weave). `questions`: how many to ask about each
    history, drawn by the seed; None means all, or five with weave. `kinds`: ask only questions of these kinds. `grading`: rules, or
    rules and a judge with the benchmark's own procedure; by default, grade as the benchmark's authors do. Without `data`, histories of
    `tokens` tokens are generated.
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
            raise ValueError("tokens is the length of made-up histories and cannot be combined with data")
        if self.kinds is not None and not self.kinds:
            raise ValueError("kinds must name at least one kind of question")
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
    def _reading(self) -> Mapping[str, Any]:
        """Options of the data's reader."""
        return {}

    @property
    def _paper(self) -> bool:
        """Whether to ask questions in the words of the benchmark's authors."""
        return False

    @property
    def _grading(self) -> Grading:
        return self.grading or GRADINGS[self._benchmark][0]

    # ---- which histories

    def make(self, random: Random) -> Script:
        """Make a single test from one history, with one question unless it is woven. Raises InputError."""
        seed = str(random.random())
        [(_, picked)] = self._pick_histories(1, seed)
        return self._delivery.one(picked, random)

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield the tests for `tests` histories, or for all if there are fewer.

        Depending on the delivery, a history is one test that tells it, named by its id, and one test for each question, `ID-qNUMBER`
        (told); only the latter (context); or a single test (weave). Raises InputError for unreadable data.
        """
        for id, picked in self._pick_histories(tests, seed):
            yield from self._delivery.series(picked, id)

    def _pick_histories(self, tests: int, seed: str) -> Iterator[tuple[str, PickedHistory]]:
        """Yield the selected histories with their test ids and questions."""
        if self.data is None:
            length = self.tokens or self._delivery.tokens
            found = [made_up.write_history(f"{seed}/{number}", length) for number in range(1, tests + 1)]
        else:
            found = list(self.load())
        able = [history for history in found if any(map(self._is_wanted, history.questions))]
        if not able:
            kinds = sorted({question.kind for history in found for question in history.questions})
            raise InputError(
                f"scenario {self.name}: no question of the kinds {join_some(self.kinds or ())}; the data has {', '.join(kinds)}"
            )
        if len(able) > tests:
            able = [able[number] for number in sorted(Random(f"{seed}/histories").sample(range(len(able)), tests))]
        names = _ids(history.id if self.data else f"made-up-{number}" for number, history in enumerate(able, 1))
        for id, history in zip(names, able, strict=True):
            yield id, self._pick(history, Random(f"{seed}/{history.id}/questions"))

    def load(self) -> Sequence[History]:
        """Return the histories in the data; none without data. Raises InputError."""
        return () if self.data is None else load_histories(self.name, self.data, **self._reading)

    def _is_wanted(self, question: Question) -> bool:
        return self.kinds is None or question.kind in self.kinds

    def _pick(self, history: History, random: Random) -> PickedHistory:
        numbers = [number for number, question in enumerate(history.questions) if self._is_wanted(question)]
        limit = self.questions or self._delivery.questions or len(numbers)
        if limit < len(numbers):
            numbers = sorted(random.sample(numbers, limit))
        picked = [(number, history.questions[number]) for number in numbers]
        asked = [PickedQuestion(number, one, self._ask(history, one, random), self._counts(one)) for number, one in picked]
        facts = {
            "benchmark": self._benchmark,
            "history": history.id,
            "sha256": hash_history(history),
            "delivery": self.delivery,
            "grading": self._grading,
            "sessions": len(history.sessions),
            "turns": len(history.turns),
            "remarks": list(history.remarks),
        }
        return PickedHistory.of(history, asked, facts, made_up=self.data is None)

    def _ask(self, history: History, question: Question, random: Random) -> AskedQuestion:
        return pose_question(question, None if self.data else made_up.wrong_values(history, question))

    def _counts(self, question: Question) -> bool:
        """Return whether a question counts towards the score."""
        return True

    # ---- grading

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of choosing options at random. Open questions have no chance."""
        each = _questions(facts)
        counted = [one for one in each if one["counts"]] or each
        return fmean(map(guess_score, counted)) if counted else 0.0

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return all evidence; for an updated fact, only the newest, since earlier values may be forgotten."""
        if _questions(facts)[number]["kind"] in UPDATED:
            return [(len(needles) - 1,)]
        return super().needed(facts, number, question, needles)

    def changed(self, facts: Mapping[str, Any]) -> Sequence[str]:
        remarks = facts.get("remarks")
        return [f"{facts.get('history')}: {remark}" for remark in remarks] if isinstance(remarks, list) else []

    def guess(self, message: str) -> str | None:
        return first_option(message)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Grade a test by the mean over its counting questions, one item each. The score is None if one of them has none."""
        if "questions" not in facts:
            return _label_grade(facts, grade_question(facts, record, paper=self._paper))
        each = [
            _label_grade(one, grade_question(one, replace(record, exchanges=(answer,)), paper=self._paper))
            for one, answer in zip(_questions(facts), record.answers, strict=True)
        ]
        counted = [grade for one, grade in zip(facts["questions"], each, strict=True) if one["counts"]] or each
        scores = [grade.score for grade in counted if grade.score is not None]
        asked = [one for one in facts["questions"] if one["counts"]] or facts["questions"]
        chances = [guess_score(one) if grade.chance is None else grade.chance for one, grade in zip(asked, counted, strict=True)]
        below = [grade.items[0].name for grade in counted if grade.score != 1]
        reason = f"{len(counted) - len(below)} of {len(counted)} answers have full marks" + (f"; not {join_some(below)}" if below else "")
        return Grade(
            score=fmean(scores) if len(scores) == len(counted) else None,
            reason=reason,
            turns=tuple(turn for grade in each for turn in grade.turns),
            asks=tuple(query for grade in each for query in grade.asks),
            items=tuple(item for grade in each for item in grade.items),
            chance=fmean(chances) if any(grade.chance is not None for grade in counted) else None,
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        return mean_scores(tests)

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        # a single run already groups its tests by tag, which is the kind of question
        return [] if len(runs) == 1 and self.delivery != "weave" else tables_of(self.name, runs)


@final
class LoCoMo(Histories):
    """Questions about conversations between two people over months (LoCoMo).

    `wording`: ask questions verbatim (plain), or with the authors' additions (paper), which request short phrases and dates and give
    adversarial questions two options. The default is plain, or paper with delivery=context. `gold`: grade by the published gold answers,
    or by those corrected by an audit, which is `locomo_audit` or a file in the data's folder. Adversarial questions do not count.
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
        """The audit, if it was requested. A file that merely is in the data's folder changes no run."""
        if self.data is None or (self.gold, self.locomo_audit) == ("published", None):
            return None
        audit = audit_of(self.data, self.locomo_audit)
        if audit is None:
            raise InputError(f"scenario {self.name}: {NEEDED}")
        return audit

    def _ask(self, history: History, question: Question, random: Random) -> AskedQuestion:
        audit = self._audit
        if audit and self.gold == "corrected":
            question = audit.correct_question(history, question)
        rivals = None if self.data else made_up.wrong_values(history, question)
        asked = pose_question(question, rivals, paper=self._paper, trap_first=random.random() < 0.5)
        best = locomo_gold(question.kind, asked.ideal) if self._grading == "f1" else asked.ideal
        label = {"gold": audit.label(history, question)} if audit else {}
        return asked._replace(ideal=best, facts=asked.facts | label)

    def _counts(self, question: Question) -> bool:
        return question.kind != "adversarial" or self.kinds == ("adversarial",)

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the means, and the score of perfect answers by the published gold answers if there is an audit."""
        highest = score_ceiling([item for test in tests for item in test.items if item.labels.get("counts") == "yes"])
        return mean_scores(tests) | ({} if highest is None else {"ceiling": highest})

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        return [*echo_tables(runs), *super().tables(runs)]


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
    """Questions about your own log of conversations, in any of the forms of `longspan list formats`.

    `tools`: include tool calls and their results, or leave them out (off). `questions_file`: questions about the log.
    """

    name: ClassVar[str] = "history"

    tools: bool = True
    questions_file: Path | None = None

    @model_validator(mode="after")
    def _has_log(self) -> OwnLog:
        if self.questions_file is not None and self.data is None:
            raise ValueError("questions are asked about a log: --data history=FILE names it")
        return self

    @property
    def _reading(self) -> Mapping[str, Any]:
        return {"tools": self.tools, "questions": self.questions_file}


def _ids(names: Iterable[str]) -> list[str]:
    """Return unique test ids that are as similar to the names as possible."""
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
    """Return the facts of each question of a test, merged with the facts of its history."""
    if "questions" not in facts:
        return [facts] if "question" in facts else []
    common = {name: value for name, value in facts.items() if name != "questions"}
    return [common | one for one in facts["questions"]]


def _label_grade(facts: Mapping[str, Any], grade: Grade) -> Grade:
    """Return a question's grade with labels that metrics and tables group by."""
    of = item_labels(facts["benchmark"], facts["history"], facts["kind"], counts=facts["counts"], answerable=facts["answerable"])
    items = [item.model_copy(update={"name": f"{facts['history']}/{facts['id']}", "labels": item.labels | of}) for item in grade.items]
    return grade.model_copy(update={"items": tuple(items)})
