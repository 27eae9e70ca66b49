"""Review proposed questions: the file itself records what a person has confirmed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, final

from pydantic import ValidationError

from longspan.scenarios.histories.formats.own import NamedQuestion
from longspan.scenarios.histories.formats.questions import read_named
from longspan.scenarios.histories.formats.reading import read_conversations
from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.file_io import MAX_BYTES, read_packed, write_text
from longspan.simulator.contract.question_files import Proposal

__all__ = ["LOG_NOTE", "REJECTED", "ProposalReview", "dump_question"]

SHOWN: Final = 500
"""Maximum length of a turn on the screen, in characters."""
REJECTED: Final = ".rejected.jsonl"
"""What follows a file's name in the name of the file of rejected and dropped questions."""
NEVER: Final = "(never stated)"
"""The shown answer of a question without one."""
LOG_NOTE: Final = ".answers/log.txt"
"""What follows a file's name in the name of the file that names the log."""


@final
class ProposalReview:
    """Questions of a file in JSON lines, with the turns of their evidence. Raises InputError if the file or its log cannot be read."""

    def __init__(self, file: Path, log: Path | None = None) -> None:
        self._file = file
        self._rejected = file.with_name(file.name + REJECTED)
        self._questions = [question for _, question in read_named(file, set())]
        self._read = file.read_bytes()
        if log is None:
            try:
                log = Path(_read_text(file.parent / (file.name + LOG_NOTE)))
            except InputError:
                raise InputError(f"{file}: its log is not known; name it with --from LOG") from None
        conversations = read_conversations(log)
        self._only = conversations[0].id if len(conversations) == 1 else ""
        self._turns = {
            (each.id, turn.id): f"{f'[{part.at:%Y-%m-%d}] ' if part.at else ''}{turn.speaker}: {turn.text[:SHOWN]}"
            for each in conversations
            for part in each.parts
            for turn in part.turns
        }
        self._at = 0
        self._dropped = 0

    @property
    def summary(self) -> str:
        """The numbers of questions by state."""
        kept = sum(question.confirmed for question in self._questions)
        return f"{kept} confirmed, {len(self._questions) - kept} left, {self._dropped} dropped this time"

    def find_next(self) -> Proposal | None:
        """Return the next question that nobody has confirmed, or None."""
        while self._at < len(self._questions) and self._questions[self._at].confirmed:
            self._at += 1
        if self._at == len(self._questions):
            return None
        question = self._questions[self._at]
        answer = question.answer if question.answerable else NEVER
        evidence = [self._turns.get((self._only or question.conversation, label), label)[:SHOWN] for label in question.evidence]
        return Proposal(
            self._at + 1, len(self._questions), question.kind, evidence, question.question, answer or "; ".join(question.rubric)
        )

    def keep(self, answer: str | None = None) -> None:
        """Confirm the question, with another answer if one is given."""
        changes: dict[str, Any] = {"confirmed": True} | ({} if answer is None else {"answer": answer, "answerable": True})
        try:
            self._questions[self._at] = NamedQuestion.model_validate(dump_question(self._questions[self._at]) | changes)
        except ValidationError as error:
            raise InputError(f"the question cannot be saved: {first_problem(error)}") from None
        self._save()

    def drop(self, reason: str) -> None:
        """Move the question to the file of rejected ones."""
        self._require_unchanged()
        # The rejected file first: an interruption in between leaves the question in both files rather than in none.
        gone = dump_question(self._questions[self._at]) | {"reason": f"dropped by a person: {reason}" if reason else "dropped by a person"}
        before = _read_text(self._rejected) if self._rejected.exists() else ""
        line = json.dumps(gone, ensure_ascii=False) + "\n"
        self._write(self._rejected, before if before.endswith(line) else before + line)
        del self._questions[self._at]
        self._dropped += 1
        self._save()

    def _require_unchanged(self) -> None:
        """Raise InputError if another program has added to the file, or changed it, since it was read."""
        if not self._file.is_file() or self._file.read_bytes() != self._read:
            raise InputError(f"{self._file}: has changed meanwhile; start again: the earlier decisions are saved")

    def _save(self) -> None:
        self._require_unchanged()
        text = "".join(f"{json.dumps(dump_question(each), ensure_ascii=False)}\n" for each in self._questions)
        self._write(self._file.resolve(), text)  # a link stays one
        self._read = text.encode()

    def _write(self, path: Path, text: str) -> None:
        try:
            write_text(path, text)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}; the earlier keys are saved") from error


def _read_text(path: Path) -> str:
    try:
        return read_packed(path, MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8; move it away") from None


def dump_question(question: NamedQuestion) -> dict[str, Any]:
    """Return a question as an object of a questions' file."""
    return question.model_dump(mode="json", exclude_defaults=True)
