"""ELITR-Bench (Thonet et al., 2024): questions about the transcript of a meeting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated, Any, ClassVar, Final, Literal, final

from pydantic import Field, model_validator

from longspan.scenarios.elitr.corpus import Meeting, MeetingQuestion, cut_parts
from longspan.scenarios.elitr.files import Mode, Setting, Split
from longspan.scenarios.elitr.grading import grade_answers
from longspan.scenarios.elitr.made_up import write_meeting
from longspan.scenarios.elitr.rubrics import Rubric
from longspan.scenarios.elitr.tables import tables_of
from longspan.scenarios.elitr.transcripts import read_meetings
from longspan.scenarios.shared.own_prompts import Places, fill_prompt, read_prompts
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Grade, Marked, Record
from longspan.simulator.contract.queries import template
from longspan.simulator.contract.scenario import Measure, Scenario, Skill
from longspan.simulator.contract.script import Line, Script

__all__ = ["Elitr"]

HERE: Final = Path(__file__).parent / "templates"

PLACES: Final[Places] = {
    "first": ("transcript", "question"),
    "next": ("question",),
    "judge": ("question", "response", "reference"),
}
"""The prompts that a user may supply: the message with the transcript, the following ones (default: the question), and the judge's."""

CZECH: Final = frozenset("ěščřžůťďň")
"""Letters that occur in no English question and in most Czech ones."""


@final
class Elitr(Scenario):
    """Ask questions about the transcript of a meeting, or ask for its minutes.

    `setting`: questions that are self-contained (qa), or that refer back to earlier ones (conv). `mode`: one question per test (single),
    or all questions of a meeting in order (multi); conv is always multi. `delivery`: send the transcript in one message of a separate
    conversation (message), or in parts in the long conversation, with the questions a span later (interleave). `rubric`: rules, or a
    judge's points out of ten or five; by default rules, or ten for the published questions. Without `data`, meetings of `tokens` tokens,
    or 5k to 18k, are generated. `prompts`: a file with other prompts for the messages and the judge.
    """

    name: ClassVar[str] = "elitr"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"meeting"})

    task: Literal["questions", "minutes"] = "questions"
    setting: Setting = "qa"
    mode: Mode | None = None
    split: Split = "dev"
    delivery: Literal["message", "interleave"] = "message"
    rubric: Literal["rules", "ten", "five"] | None = None
    markers: bool = False
    tokens: Annotated[Tokens, Field(ge=3000, le=100_000)] | None = None
    data: Path | None = None
    questions: Path | None = None
    prompts: Path | None = None

    @model_validator(mode="after")
    def _sound(self) -> Elitr:
        if self.setting == "conv" and self.mode == "single":
            raise ValueError("setting=conv asks questions that refer back to earlier ones: use mode=multi, or setting=qa")
        if self._published and self.rubric == "rules":
            raise ValueError("rubric=rules cannot grade the published answers, which are free text: use ten or five, and --judge")
        if self._published and self.tokens is not None:
            raise ValueError("tokens is the size of made-up meetings and cannot be combined with published ones")
        if self.prompts is not None and (self.task, self.delivery) != ("questions", "message"):
            raise ValueError("prompts are for task=questions and delivery=message")
        return self

    @property
    def _published(self) -> bool:
        return self.data is not None or self.questions is not None

    @property
    def measure(self) -> Measure:
        return Measure(made_up=not self._published)

    @property
    def _mode(self) -> Mode:
        return self.mode or ("multi" if self.setting == "conv" or self.delivery == "interleave" else "single")

    @property
    def _rubric(self) -> Literal["rules"] | Rubric:
        return self.rubric or ("ten" if self._published else "rules")

    def make(self, random: Random) -> Script:
        """Make a test of one meeting with one or all of its questions. Raises InputError for unreadable data."""
        if self._published:
            meeting = random.choice(read_meetings(self.data, self.questions, self.split, 10_000))
        else:
            meeting = write_meeting(random, f"made_{self.split}", self.tokens)
        return self._script(meeting, [random.choice(meeting.questions)] if self._mode == "single" else meeting.questions)

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield the tests of `tests` meetings: one for each meeting, or one for each of its questions.

        With delivery=interleave and mode=single, it is one question about each meeting.
        """
        for number, meeting in enumerate(self._meetings(tests, seed), 1):
            if self.task == "minutes" or self._mode == "multi":
                yield f"{number:03}", self._script(meeting, meeting.questions)
            elif self.delivery == "interleave":
                asked = Random(f"{seed}/asked/{number}").choice(meeting.questions)
                yield f"{number:03}", self._script(meeting, [asked])
            else:
                for place, asked in enumerate(meeting.questions, 1):
                    yield f"{number:03}-{place:02}", self._script(meeting, [asked])

    def _meetings(self, count: int, seed: str) -> Iterable[Meeting]:
        if self._published:
            return read_meetings(self.data, self.questions, self.split, count)
        names = ((number, f"made_{self.split}_{number:03}") for number in range(1, count + 1))
        return (write_meeting(Random(f"{seed}/{self.split}/{number}"), name, self.tokens) for number, name in names)

    # ---- script

    def _script(self, meeting: Meeting, asked: Sequence[MeetingQuestion]) -> Script:
        own = read_prompts(self.prompts, PLACES, ("first",)) if self.prompts else {}
        if not own and 2 * sum(not CZECH.isdisjoint(question.qa.casefold()) for question in meeting.questions) > len(meeting.questions):
            raise InputError(
                f"scenario elitr: the questions about {meeting.id} are in Czech, and the prompts in English: --prompts FILE names a "
                "file with Czech ones"
            )
        facts: dict[str, Any] = {
            "task": self.task,
            "source": meeting.id,
            "sha256": meeting.sha256,
            "setting": self.setting,
            "mode": self._mode,
            "split": self.split,
            "rubric": self._rubric,
            "questions": [meeting.facts(question, self.setting) for question in asked] if self.task == "questions" else [],
        }
        if "judge" in own:
            facts["judge"] = own["judge"]
        if self.delivery == "interleave":
            return self._interleave(meeting, asked, facts)
        if own:
            requests = [replace(line, text=fill_prompt(own.get("next", "{{question}}"), question=line.text)) for line in self._bare(asked)]
            first = fill_prompt(own["first"], transcript=meeting.text, question=self._mark_question(asked[0].wording(self.setting)))
        else:
            requests = self._requests(asked, "this meeting", woven=False)
            first = _text("transcript", transcript=meeting.text, request=requests[0].text)
        lines = [Line(first, ideal=requests[0].ideal, asks=True), *requests[1:]]
        return Script(facts=facts | {"text_lines": [0, 1]}, lines=lines, alone=True, recorded=self._recorded(meeting))

    def _interleave(self, meeting: Meeting, asked: Sequence[MeetingQuestion], facts: Mapping[str, Any]) -> Script:
        """Return the transcript in parts, then the questions together. Each needs the parts with its evidence."""
        name = f"the meeting {meeting.id}"
        pieces = cut_parts(meeting.lines)
        lines = [
            Line(_text("part", meeting=name, number=number, parts=len(pieces), text="\n".join(meeting.lines[part.start : part.stop])))
            for number, part in enumerate(pieces, 1)
        ]
        needs = (
            [_parts_needed(meeting, question, pieces) for question in asked] if self.task == "questions" else [tuple(range(len(pieces)))]
        )
        requests = self._requests(asked, name, woven=True)
        lines += [replace(line, needs=wanted, together=bool(at)) for at, (line, wanted) in enumerate(zip(requests, needs, strict=True))]
        facts, farewell = {**facts, "text_lines": [0, len(pieces)]}, _text("farewell", meeting=name)
        return Script(facts=facts, lines=lines, farewell=farewell, recorded=self._recorded(meeting))

    def _recorded(self, meeting: Meeting) -> str | None:
        return meeting.sha256 if self._published else None

    def _requests(self, asked: Sequence[MeetingQuestion], meeting: str, *, woven: bool) -> list[Line]:
        """Return the lines that ask. The first one names the subject."""
        if self.task == "minutes":
            ideal = "\n".join(f"- {question.qa} {question.answer}" for question in asked)
            return [Line(_text("minutes", meeting=meeting), ideal=ideal, asks=True)]
        first, *others = self._bare(asked)
        return [replace(first, text=_text("asked", meeting=meeting, woven=woven, question=first.text)), *others]

    def _bare(self, asked: Sequence[MeetingQuestion]) -> list[Line]:
        """Return the questions themselves, line by line."""
        return [
            Line(self._mark_question(question.wording(self.setting)), ideal=question.answer, asks=True, together=at > 0)
            for at, question in enumerate(asked)
        ]

    def _mark_question(self, question: str) -> str:
        return f"QUESTION: {question}\nANSWER:" if self.markers else question

    # ---- grading

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the minimum score of any answer: the lowest level of a judge's scale, or 0 by rules."""
        if self.task == "minutes":
            return 0.0
        return {"rules": 0.0, "ten": 0.1, "five": 0.2}[facts["rubric"]]

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        return grade_answers(facts, record)

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        points = [item.numbers["points"] for test in tests for item in test.items if item.score is not None and "points" in item.numbers]
        return {"points": fmean(points)} if points else {}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        return tables_of(runs)


def _parts_needed(meeting: Meeting, asked: MeetingQuestion, pieces: Sequence[range]) -> tuple[int, ...]:
    """Return the parts that a question needs: those with its evidence, or its third of the meeting; all parts for several passages."""
    if asked.evidence:
        return tuple(at for at, part in enumerate(pieces) if any(line in part for line in asked.evidence))
    if asked.place == "S":
        return tuple(range(len(pieces)))
    third = "BME".index(asked.place)
    lines = len(meeting.lines)
    within = range(third * lines // 3, max(third * lines // 3 + 1, (third + 1) * lines // 3))
    return tuple(at for at, part in enumerate(pieces) if part.start < within.stop and within.start < part.stop)


def _text(name: str, **values: Any) -> str:
    return template(HERE, name).render(**values).strip()
