"""A run's folder: what lies in it, who may write to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.errors import InputError, JournalError, first_problem
from longspan.simulator.events import Event
from longspan.simulator.files import write_json
from longspan.simulator.journal import read_journal
from longspan.simulator.json_lines import JsonLines
from longspan.simulator.locks import locked
from longspan.simulator.manifest import Manifest
from longspan.simulator.transcript import Change, Transcript

__all__ = ["Correction", "RunFolder"]

MANIFEST = "manifest.json"

INCIDENTS = "incidents.jsonl"


@final
class Correction(BaseModel):
    """A person's score for a test, beside the machine's: `by` whom, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    test: str
    score: float = Field(ge=0, le=1)
    why: str = Field(min_length=1)
    by: str = Field(min_length=1)


@final
class RunFolder:
    """The folder of a run that exists. Raises InputError for a folder that is none, at the first look at its manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, out: Path, name: str, manifest: Manifest) -> RunFolder:
        """Make a folder for a run in `out`, with its manifest. A name that is taken gets a number."""
        number = 1
        while True:
            path = out / (name if number == 1 else f"{name}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                number += 1
                continue
            except OSError as error:
                raise InputError(f"{path}: cannot make the run's folder: {error.strerror}; choose another with --out") from error
            try:
                write_json(path / MANIFEST, manifest)
            except OSError as error:
                shutil.rmtree(path, ignore_errors=True)
                raise InputError(f"{path}: cannot write the manifest: {error.strerror}; choose another place with --out") from error
            return cls(path)

    @cached_property
    def manifest(self) -> Manifest:
        path = self.path / MANIFEST
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}; name a run's folder, such as runs/NAME") from error
        try:
            return Manifest.model_validate_json(content)
        except ValidationError as error:
            raise InputError(f"{path}: not a manifest: {first_problem(error)}") from None

    def journal(self, conversation: str) -> Path:
        """Where a conversation's journal lies."""
        return self.path / "conversations" / conversation / "journal.jsonl"

    def snapshots(self, conversation: str) -> Path:
        """Where the snapshots of a conversation's agent lie."""
        return self.path / "conversations" / conversation / "snapshots"

    def events(self, conversation: str) -> Iterator[Event]:
        """What a conversation's journal holds; nothing where it was not begun. Raises JournalError for a damaged journal."""
        path = self.journal(conversation)
        return read_journal(path) if path.exists() else iter(())

    def fold(self, conversation: str, add: Callable[[Event], Change]) -> Iterator[Change]:
        """What each event of a conversation's journal changed, as `add` says. Raises JournalError for a damaged journal."""
        for number, event in enumerate(self.events(conversation), 1):
            try:
                yield add(event)
            except JournalError as error:
                raise JournalError(f"{self.journal(conversation)}, line {number}: {error}") from error

    def transcripts(self, heard: Callable[[str, Transcript, Change], None] | None = None) -> dict[str, Transcript]:
        """The transcripts of the conversations that have begun. `heard` is told of each conversation's changes on the way. Raises
        JournalError for a damaged journal."""
        found = {id: Transcript() for id in self.manifest.conversations if self.journal(id).exists()}
        for id, transcript in found.items():
            for change in self.fold(id, transcript.add):
                if heard is not None:
                    heard(id, transcript, change)
        return found

    def lock(self) -> AbstractContextManager[int]:
        """Hold the run alone. The lock dies with the process. Raises InputError where another process holds it."""
        return locked(self.path, "run")

    def incident(self, **entry: str) -> None:
        """Note what went wrong around the run, beside its journals. A disk that refuses is let be: it is told anyway."""
        with suppress(JournalError):
            self._lines(INCIDENTS).append(entry)

    def incidents(self) -> list[dict[str, Any]]:
        return self._lines(INCIDENTS).objects()

    def correct(self, correction: Correction) -> None:
        """Add a person's correction. The last one of a test counts."""
        self._lines("corrections.jsonl").append(correction.model_dump())

    def corrections(self) -> dict[str, Correction]:
        """The corrections that count, by test. Raises JournalError for a file that is not what `correct` wrote."""
        try:
            found = [Correction.model_validate(entry) for entry in self._lines("corrections.jsonl").read()]
        except ValidationError as error:
            raise JournalError(f"{self.path / 'corrections.jsonl'}: not a correction: {first_problem(error)}") from None
        return {correction.test: correction for correction in found}

    def grades(self) -> list[dict[str, Any]]:
        """All lines of grades.jsonl, every round of grading."""
        return self._lines("grades.jsonl").objects()

    def add_grades(self, entries: list[dict[str, Any]]) -> None:
        self._lines("grades.jsonl").append(*entries)

    def add_annotation(self, entry: dict[str, Any]) -> None:
        """Keep what a person said of a claim."""
        self._lines("annotations.jsonl").append(entry)

    def annotations(self) -> list[Any]:
        """All lines of annotations.jsonl."""
        return self._lines("annotations.jsonl").read()

    def _lines(self, name: str) -> JsonLines:
        return JsonLines(self.path / name)
