"""Meetings with their questions, wherever they come from: made up, or the published questions with the user's transcripts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.elitr.files import Place, QuestionType, Setting
from longspan.simulator.tokens import Tokenizer

__all__ = ["Asked", "Meeting", "Rule", "count", "parts"]

PART: Final = 1000
"""Tokens of a part in which a transcript is delivered, about."""


@final
class Rule(NamedTuple):
    """What a rule grades an answer by. `kind`: names, phrases, or numbers. `expected` are the values that a right answer names.

    `values`: ways to say each value that an answer could name, the right ones and those it could be mixed up with; none for
    numbers. `besides`: values that a right answer may name too, such as the terms of a sum.
    """

    kind: str
    expected: Sequence[str]
    values: Mapping[str, Sequence[str]]
    besides: Sequence[str] = ()


@final
class Asked(NamedTuple):
    """A question about a meeting. `evidence`: the lines of the transcript that it rests on; none: known by `place` alone."""

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
    """A transcript, line by line, with its questions. `id` is unique among all corpora."""

    id: str
    lines: Sequence[str]
    questions: Sequence[Asked]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    def facts(self, asked: Asked, setting: Setting) -> dict[str, Any]:
        """What grading an answer needs, as JSON."""
        rule = asked.rule
        found: dict[str, Any] = {
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
            found["rule"] = {"kind": rule.kind, "expected": list(rule.expected), "values": values, "besides": list(rule.besides)}
        return found


def count(text: str) -> int:
    """Tokens of a text by cl100k_base, whatever a run counts with: a corpus is the same for every run."""
    return Tokenizer("cl100k_base").count(text)


def parts(lines: Sequence[str], size: int = PART) -> list[range]:
    """Lines in parts of about `size` tokens each: ranges of their numbers. A line is never cut."""
    sizes = [count(line + "\n") for line in lines]
    number = max(1, round(sum(sizes) / size))
    found: list[range] = []
    begin, done = 0, 0
    for at, each in enumerate(sizes):
        done += each
        if done >= sum(sizes) * (len(found) + 1) / number - 0.5 or at == len(sizes) - 1:
            found.append(range(begin, at + 1))
            begin = at + 1
    return found
