"""Recorded histories as tests: LoCoMo, LongMemEval, BEAM, PersonaMem, people's own logs, and histories that are made up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, final

from pydantic import Field, model_validator

from longspan.scenarios.histories import made_up
from longspan.scenarios.histories.asking import AskedQuestion, Wording, ask, chance, first_option
from longspan.scenarios.histories.corrections import NEEDED, Audit, Gold, audit_of, ceiling
from longspan.scenarios.histories.grading import GRADINGS, MEASURES, Grading, graded
from longspan.scenarios.histories.history import History, Question
from longspan.scenarios.histories.loading import load
from longspan.scenarios.histories.summaries import figures, labels, tables_of
from longspan.scenarios.histories.telling import Told, as_text, between_people, digest, places, tell, written
from longspan.scenarios.histories.token_f1 import locomo_gold
from longspan.scenarios.shared.digests import digest as recorded
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Exchange, Grade, Marked, Record
from longspan.simulator.contract.scenario import Measure, Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.grading.matching import some

__all__ = ["Beam", "Histories", "LoCoMo", "LongMemEval", "OwnLog", "PersonaMem"]

Delivery = Literal["told", "context", "weave"]

WOVEN: Final = 5
"""How many questions about a woven history are asked, unless a number is set."""
MADE_UP: Final = "made_up"
"""The name that the facts of a made-up history give its benchmark."""
TOKENS: Final = 20_000
WOVEN_TOKENS: Final = 6_000
"""The lengths of made-up histories, and of those that are woven."""
UNDATED: Final = timedelta(days=1)
"""The time between sessions of a history without dates."""
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

    delivery: Delivery = "told"
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
        if self.delivery == "weave":
            return self._woven(picked)
        one = random.choice(picked.asked)
        picked = picked.only(one)
        if self.delivery == "context":
            return self._in_context(picked, one)
        question = Line(one.asked.text, ideal=one.asked.ideal, asks=True, needs=picked.needs(one))
        return self._row(picked, one, [*picked.lines(), question])

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield the tests about `tests` histories, or all if there are fewer.

        A history is a test that tells it, called by its id, and one for each question, `ID-qNUMBER`; or those alone, where it stands
        in their messages; or one test, where it is woven. Raises InputError for data that cannot be read.
        """
        for id, picked in self._picked(tests, seed):
            if self.delivery == "weave":
                yield id, self._woven(picked)
                continue
            if self.delivery == "told":
                yield id, Script(facts=picked.facts, lines=picked.lines(), alone=True, recorded=picked.recorded)
            for one in picked.asked:
                name = f"{id}-q{one.number:03}"
                yield name, self._in_context(picked, one) if self.delivery == "context" else self._branch(picked, one, id)

    def _picked(self, tests: int, seed: str) -> Iterator[tuple[str, _Picked]]:
        """Yield some histories, with an id each and the questions that are asked about them."""
        if self.data is None:
            length = self.tokens or (WOVEN_TOKENS if self.delivery == "weave" else TOKENS)
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

    def _pick(self, history: History, random: Random) -> _Picked:
        numbers = [number for number, question in enumerate(history.questions) if self._wanted(question)]
        limit = self.questions or (WOVEN if self.delivery == "weave" else len(numbers))
        if limit < len(numbers):
            numbers = sorted(random.sample(numbers, limit))
        asked = [_One(number, history.questions[number], self._ask(history, history.questions[number], random)) for number in numbers]
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
        return _Picked.of(history, tell(history), asked, facts)

    def _ask(self, history: History, question: Question, random: Random) -> AskedQuestion:
        return ask(question, None if self.data else made_up.rivals(history, question))

    # ---- scripts

    def _branch(self, picked: _Picked, one: _One, trunk: str) -> Script:
        question = Line(one.asked.text, ideal=one.asked.ideal, asks=True, needs=picked.needs(one), sent_at=one.question.at)
        return replace(self._row(picked, one, [question]), trunk=trunk)

    def _in_context(self, picked: _Picked, one: _One) -> Script:
        what = "a conversation" if between_people(picked.history) else "your earlier conversations with me"
        text = f"This is the record of {what}, with the dates of its sessions.\n\n{as_text(picked.history)}\n\n{one.asked.text}"
        return self._row(picked, one, [Line(text, ideal=one.asked.ideal, asks=True, needs=(), sent_at=one.question.at)])

    def _row(self, picked: _Picked, one: _One, lines: Sequence[Line]) -> Script:
        """Return the script of a test with one question."""
        tags = (one.question.kind,) if one.question.kind else ()
        facts, counts = picked.facts | self._facts(one), self._counts(one.question)
        return Script(facts=facts, lines=lines, alone=True, tags=tags, counts=counts, recorded=picked.recorded)

    def _woven(self, picked: _Picked) -> Script:
        """Return a history's sessions, each a segment, and its questions together at the end."""
        about = _about(picked.history)
        first, *others = [Line(one.asked.text, ideal=one.asked.ideal, asks=True, needs=picked.needs(one)) for one in picked.asked]
        opening = replace(first, text=f"I have some questions about {about}. {first.text}")
        lines = [*picked.lines(dated=True), opening, *(replace(line, together=True) for line in others)]
        facts = picked.facts | {"questions": [self._facts(one) for one in picked.asked]}
        farewell = f"That was all about {about}. Please disregard them from now on."
        tags = tuple(dict.fromkeys(one.question.kind for one in picked.asked if one.question.kind))
        return Script(facts=facts, lines=lines, farewell=farewell, tags=tags, recorded=picked.recorded)

    def _facts(self, one: _One) -> dict[str, Any]:
        return one.asked.facts | {"counts": self._counts(one.question)}

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
        below = [grade.items[0].name for grade in counted if grade.score != 1]
        reason = f"{len(counted) - len(below)} of {len(counted)} answers have full marks" + (f"; not {some(below)}" if below else "")
        return Grade(
            score=fmean(scores) if len(scores) == len(counted) else None,
            reason=reason,
            turns=tuple(turn for grade in each for turn in grade.turns),
            asks=tuple(query for grade in each for query in grade.asks),
            items=tuple(item for grade in each for item in grade.items),
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


class _One(NamedTuple):
    """A question that is asked: its number in its history, from 0, and how it is asked."""

    number: int
    question: Question
    asked: AskedQuestion


def _needles(at: Mapping[str, int], asked: Sequence[_One]) -> Mapping[int, int]:
    needed = sorted({at[turn] for one in asked for turn in one.question.evidence})
    return {place: number for number, place in enumerate(needed)}


class _Picked(NamedTuple):
    """A history as it is told, with the questions that are asked about it.

    `at`: the place where each of its turns is told. `needles`: the number of each place with evidence, from 0 in the order told.
    `recorded`: a digest of the history; None if it is made up, since a seed identifies it then.
    """

    history: History
    told: Sequence[Told]
    asked: Sequence[_One]
    facts: dict[str, Any]
    at: Mapping[str, int]
    needles: Mapping[int, int]
    recorded: str | None

    @classmethod
    def of(cls, history: History, told: Sequence[Told], asked: Sequence[_One], facts: dict[str, Any]) -> _Picked:
        parts = (part for turn in told for part in (turn.message, turn.reply, str(turn.at)))
        digest = None if facts["benchmark"] == MADE_UP else recorded(parts)
        return cls(history, told, asked, facts, at := places(told), _needles(at, asked), digest)

    def only(self, one: _One) -> _Picked:
        """Return the history with one of its questions."""
        return self._replace(asked=[one], needles=_needles(self.at, [one]))

    def lines(self, *, dated: bool = False) -> list[Line]:
        """Return the turns that are told. Needles are those that a question needs. `dated`: sessions begin with their dates."""
        undated = all(told.at is None for told in self.told)
        lines = []
        for place, told in enumerate(self.told):
            follows = place > 0 and self.told[place - 1].session == told.session
            pause = UNDATED if undated and place > 0 and not follows else timedelta(0)
            text = f"({written(told.at)}) {told.message}" if dated and told.at else told.message
            needle = place in self.needles
            lines.append(Line(text, reply=told.reply, sent_at=told.at, needle=needle, together=follows, pause=pause))
        return lines

    def needs(self, one: _One) -> tuple[int, ...]:
        """Return the numbers of the needles with a question's evidence."""
        return tuple(sorted({self.needles[self.at[turn]] for turn in one.question.evidence}))


def _about(history: History) -> str:
    """Return the name of a history in questions about it."""
    if not between_people(history):
        return "our earlier conversations, of which you were told"
    names = list(dict.fromkeys(turn.speaker for turn in history.turns))
    return f"the conversations of {' and '.join(names[:2])}{' and others' if len(names) > 2 else ''}, of which you were told"


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
