"""The audit of LoCoMo's gold answers, `errors.json`: which ones are wrong, and the right answers.

A third party published it: https://github.com/dial481/locomo-audit. 99 of its entries change the answer to one of the 1,540 questions
that are not adversarial. So an agent that answers all of these correctly scores only 0.9357 by the published gold answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, final

from longspan.scenarios.histories.data_files import find_only
from longspan.scenarios.histories.history import History, Question
from longspan.scenarios.histories.locomo_answers import CONVERSATIONS, Correction, is_audit, read_corrections
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import file_stamp
from longspan.simulator.contract.graded_record import Item

__all__ = ["AUDIT", "NEEDED", "Audit", "Gold", "audit_of", "score_ceiling"]

Gold = Literal["published", "corrected"]
"""The gold answers to grade by: published or corrected."""

AUDIT: Final = "errors.json"
NEEDED: Final = (
    f"gold=corrected needs the audit of LoCoMo's gold answers, {AUDIT}: put it next to the data, or use --data locomo_audit=FILE"
)


@final
class Audit:
    """An audit's verdicts on gold answers."""

    def __init__(self, where: str, wrong: Mapping[str, Correction]) -> None:
        self._where, self._wrong = where, wrong

    def __len__(self) -> int:
        return len(self._wrong)

    def correct_question(self, history: History, question: Question) -> Question:
        """Return a question with its corrected gold answer. Raises InputError if the audit is for another version of the questions."""
        found = self._of(history, question)
        return replace(question, answer=found.answer) if found and found.answer else question

    def label(self, history: History, question: Question) -> str:
        """Return the audit's verdict on a question's published gold answer: right or wrong."""
        return "wrong" if self._of(history, question) else "right"

    def _of(self, history: History, question: Question) -> Correction | None:
        if history.id not in CONVERSATIONS:
            return None
        found = self._wrong.get(f"{CONVERSATIONS.index(history.id)}/{question.id}")
        if found is not None and found.question != question.text:
            where = f"{self._where}: corrects question {question.id} of {history.id}, {found.question!r:.80}"
            raise InputError(f"{where}, but the data asks {question.text!r:.80}; name the audit of the same version")
        return found


def audit_of(data: Path, audit: Path | None) -> Audit | None:
    """Return the audit at a path, or the one in the folder of LoCoMo's data or its parent, or None. Raises InputError."""
    places = [folder / name for folder in (data.parent, data.parent.parent) for name in (AUDIT, f"{AUDIT}.gz")]
    path = audit or next((place for place in places if place.is_file()), None)
    return None if path is None else _read(path, file_stamp(path, f"name the audit, {AUDIT}"))


@lru_cache(maxsize=2)
def _read(path: Path, changed: tuple[int, int]) -> Audit:
    source = find_only(path, ".json", f"the audit, {AUDIT}")
    value = source.json()
    if not is_audit(value):
        raise InputError(f"{path}: not the audit of LoCoMo's gold answers: expected a list of entries with question_id and error_type")
    return Audit(str(path), read_corrections(source, value))


def score_ceiling(items: Sequence[Item]) -> float | None:
    """Return the share of items whose published gold answer is right, or None without an audit.

    It is the score of perfect answers that are graded by the published gold answers.
    """
    labels = [item.labels["gold"] for item in items if "gold" in item.labels]
    return labels.count("right") / len(labels) if labels else None
