"""Answers of models, stored in a folder so that none is paid for twice."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.base.errors import InputError, JournalError, first_problem
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.base.files.locks import lock_folder
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.journal.run_folder import INCIDENTS, MANIFEST, RunFolder

__all__ = ["AnswerStore", "StoredAnswer"]


@final
class StoredAnswer(BaseModel):
    """A model's answer to a query, with its cost.

    `key` identifies the query and the model together, `about` the query alone. `answer` is None if the reply could not be parsed. `dropped`
    lists what the model's server rejected in the request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    about: str
    by: str
    answer: dict[str, Any] | None
    why: str = ""
    usage: dict[str, int] | None = None
    cost_usd: dict[str, float | None] | None = None
    dropped: list[str] = []


@final
class AnswerStore:
    """The answers in a `judgements.jsonl`, in a run's folder (`of`) or in a separate folder (`create`)."""

    def __init__(self, folder: Path, owner: Owner | None = None) -> None:
        self.folder = folder
        self._owner = owner
        self._answers = JsonLines(folder / "judgements.jsonl", owner)

    @classmethod
    def of(cls, run: RunFolder) -> AnswerStore:
        """Return the store of a run's judge. Every method raises JournalError if the file belongs to another run."""
        return cls(run.path, run.owner())

    @classmethod
    def create(cls, folder: Path) -> AnswerStore:
        """Return the store in a separate folder, which is created if necessary.

        Raises InputError if the folder cannot be created or belongs to a run.
        """
        if (folder / MANIFEST).exists():
            raise InputError(f"{folder}: this is a run's folder; choose another with --out")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot create the folder: {error.strerror}; choose another with --out") from error
        return cls(folder)

    def lock(self, what: str) -> AbstractContextManager[int]:
        """Lock the folder. `what` names its content in errors. Raises InputError if another process holds the lock."""
        return lock_folder(self.folder, what)

    def entries(self) -> list[dict[str, Any]]:
        """Return the answers without validating them. Raises DamageError for a damaged line."""
        return self._answers.read()

    def answers(self) -> list[StoredAnswer]:
        """Return the answers. Raises JournalError for an invalid entry."""
        try:
            return [StoredAnswer.model_validate(entry) for entry in self.entries()]
        except ValidationError as error:
            raise JournalError(f"{self._answers.path}: not a judgement: {first_problem(error)}; move the file away") from None

    def add(self, answer: StoredAnswer) -> None:
        """Store an answer. Raises JournalError if it cannot be written."""
        self._answers.append(answer.model_dump(mode="json"))

    def record_failure(self, about: str, error: str) -> None:
        """Record in the folder's incidents that a query got no answer. Ignores write errors: the caller has an error to report already."""
        with suppress(JournalError):
            JsonLines(self.folder / INCIDENTS, self._owner).append(
                {"conversation": "", "type": "judge_error", "about": about, "error": error}
            )
