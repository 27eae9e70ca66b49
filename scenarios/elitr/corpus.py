"""Meetings with their questions, generated or published."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.elitr.files import Place, QuestionType, Setting
from longspan.simulator.base.tokens import Tokenizer

__all__ = ["Meeting", "MeetingQuestion", "Rule", "count_tokens", "cut_parts"]

PART_TOKENS: Final = 1000
"""The approximate length of a transcript's delivered parts."""


@final
class Rule(NamedTuple):
    """A rule's standard for answers.

    `kind`: names, phrases, or numbers. `expected`: the values that a right answer names. `values`: for each value that an answer could
    name, right or wrong, the ways to say it; empty for numbers. `besides`: values that a right answer may also name, such as the terms
    of a sum.
    """

    kind: str
    expected: Sequence[str]
    values: Mapping[str, Sequence[str]]
    besides: Sequence[str] = ()


@final
class MeetingQuestion(NamedTuple):
    """A question about a meeting. `evidence`: the lines of the transcript that answer it; if empty, only `place` is known."""

    id: str
    type: QuestionType
    place: Place
    qa: str
    conv: str
    answer: str
    rule: Rule | None = None
    evidence: Sequence[int] = ()

    def wording(self, setting: Setting) -> str:
        return self.qa if setting == "qa" else self.conv

    @property
    def differs(self) -> bool:
        return self.qa != self.conv


@final
class Meeting(NamedTuple):
    """A transcript, line by line, with its questions. `id` is unique across corpora."""

    id: str
    lines: Sequence[str]
    questions: Sequence[MeetingQuestion]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    def facts(self, asked: MeetingQuestion, setting: Setting) -> dict[str, Any]:
        """Return what grading an answer needs, as JSON values."""
        rule = asked.rule
        facts: dict[str, Any] = {
            "id": asked.id,
            "type": asked.type,
            "position": asked.place,
            "differs": asked.differs,
            "question": asked.qa,
            "asked": asked.wording(setting),
            "answer": asked.answer,
            "rule": None,
        }
        if rule is not None:
            values = {value: list(ways) for value, ways in rule.values.items()}
            facts["rule"] = {"kind": rule.kind, "expected": list(rule.expected), "values": values, "besides": list(rule.besides)}
        return facts


def count_tokens(text: str) -> int:
    """Count tokens in cl100k_base, regardless of the run's tokenizer, because a corpus is the same for every run."""
    return Tokenizer("cl100k_base").count(text)


def cut_parts(lines: Sequence[str], size: int = PART_TOKENS) -> list[range]:
    """Cut lines into parts of about `size` tokens; return the parts as ranges of line numbers. A line is never cut."""
    sizes = [count_tokens(line + "\n") for line in lines]
    number = max(1, round(sum(sizes) / size))
    ranges: list[range] = []
    begin, done = 0, 0
    for at, tokens in enumerate(sizes):
        done += tokens
        if done >= sum(sizes) * (len(ranges) + 1) / number - 0.5 or at == len(sizes) - 1:
            ranges.append(range(begin, at + 1))
            begin = at + 1
    return ranges
