"""The answers that a model gave, kept in a folder, so that none is paid for twice."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.errors import InputError, JournalError, first_problem
from longspan.simulator.json_lines import JsonLines
from longspan.simulator.locks import locked
from longspan.simulator.run_folder import INCIDENTS, MANIFEST

__all__ = ["AnswerStore", "StoredAnswer"]


@final
class StoredAnswer(BaseModel):
    """An answer that was paid for: to which content (`key`, with the model; `about`, without), by whom, and what it cost.
    `answer` None: it could not be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    about: str
    by: str
    answer: dict[str, Any] | None
    why: str = ""
    usage: dict[str, int] | None = None
    cost_usd: dict[str, float | None] | None = None


@final
class AnswerStore:
    """The answers in a folder's `judgements.jsonl`: a run's, or one that `create` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers = JsonLines(folder / "judgements.jsonl")

    @classmethod
    def create(cls, folder: Path) -> AnswerStore:
        """The store in a folder of its own, which is made where there is none. Raises InputError where it cannot be, and for a
        run's folder."""
        if (folder / MANIFEST).exists():
            raise InputError(f"{folder}: is a run's folder; choose another with --out")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot make the folder: {error.strerror}; choose another with --out") from error
        return cls(folder)

    def lock(self, what: str) -> AbstractContextManager[int]:
        """Hold the folder alone; `what` it holds, for the error. Raises InputError where another process holds it."""
        return locked(self.folder, what)

    def entries(self) -> list[dict[str, Any]]:
        """The answers as they stand there, unchecked. Raises JournalError for a file that is not JSON lines."""
        return self._answers.objects()

    def answers(self) -> list[StoredAnswer]:
        """The answers. Raises JournalError for an entry that is none."""
        try:
            return [StoredAnswer.model_validate(entry) for entry in self.entries()]
        except ValidationError as error:
            raise JournalError(f"{self._answers.path}: not a judgement: {first_problem(error)}; move it away") from None

    def add(self, answer: StoredAnswer) -> None:
        """Keep an answer. Raises JournalError where that cannot be done."""
        self._answers.append(answer.model_dump(mode="json"))

    def failed(self, about: str, error: str) -> None:
        """Note among the folder's incidents that there is no answer. A disk that refuses is ignored: the caller has the error."""
        with suppress(JournalError):
            JsonLines(self.folder / INCIDENTS).append({"conversation": "", "type": "judge_error", "about": about, "error": error})
