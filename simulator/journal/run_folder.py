"""A run's folder: its files, and the lock that allows only one process to write them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import InputError, JournalError, first_problem
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.base.files.file_io import write_json
from longspan.simulator.base.files.folders import path_inside, read_file
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.base.files.locks import lock_folder
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.base.files.packed import PACKED
from longspan.simulator.base.keys import redact_json
from longspan.simulator.journal.events import Begin, Event
from longspan.simulator.journal.journal import check_journal, last_sum, read_journal, read_shared
from longspan.simulator.journal.transcript import Change, Transcript, Transcripts
from longspan.simulator.subject.spending_record import SpendingRecord
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import remember_trust

__all__ = ["Correction", "CorrectionEntry", "Failure", "RunFolder"]

MANIFEST = "manifest.json"

RESULT = "result.json"

INCIDENTS = "incidents.jsonl"

AGENT_LOG = "agent.log"

PROMPTS = "prompts.jsonl"

JOURNAL: Final = "journal.jsonl"

MAX_BYTES: Final = 64 * 2**20
"""The largest manifest or result to read, in bytes. longspan never writes larger ones."""

RESULTS = (RESULT, "report.html")
"""Files that every scoring of a run replaces."""


class CorrectionEntry(BaseModel):
    """A line of corrections.jsonl: a correction of a test, or without a score the removal of earlier ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    test: str
    score: float | None = Field(ge=0, le=1)
    why: str = Field(min_length=1)
    by: str = Field(min_length=1)


@final
class Correction(CorrectionEntry):
    """A person's score for a test, which overrides the automatic one. `by` is the person's name and `why` the reason."""

    score: float = Field(ge=0, le=1)


@final
class Failure(NamedTuple):
    """An agent's failure: the error, and the traceback of the exception or the end of the agent's standard error."""

    error: str
    details: str


@final
class RunFolder:
    """The folder of an existing run, which may come from an untrusted source.

    Reading `manifest` raises InputError if the folder has no run. Every method raises JournalError if a path that it needs is a link or
    leads through one.

    Every file except the manifest names its run. Methods that raise JournalError for a damaged file also raise it for a file of another
    run.

    Nothing that a manifest from the folder names may be run, called or read without permission (see `trust`). Pass `manifest` if it has
    been read already.
    """

    def __init__(self, path: Path, manifest: Manifest | None = None) -> None:
        self.path = path
        if manifest is not None:
            self.manifest = manifest

    @classmethod
    def create(cls, out: Path, name: str, manifest: Manifest) -> RunFolder:
        """Create a run's folder in `out`, with its manifest. If the name is taken, a number is appended.

        The user's permissions for everything that the manifest names are stored, so that resuming the run does not ask again.
        """
        number = 1
        while True:
            path = out / (name if number == 1 else f"{name}-run{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                number += 1
                continue
            except OSError as error:
                raise InputError(f"{path}: cannot create the run's folder: {error.strerror}; choose another with --out") from error
            try:
                write_json(path / MANIFEST, manifest)
            except OSError as error:
                with suppress(OSError):
                    path.rmdir()
                raise InputError(f"{path}: cannot write the manifest: {error.strerror}; choose another folder with --out") from error
            remember_trust(path, manifest)
            return cls(path, manifest)

    @cached_property
    def manifest(self) -> Manifest:
        path = self.path / MANIFEST
        try:
            content = read_file(path, MAX_BYTES)
        except OSError as error:
            if runs := sorted(self.path.glob(f"*/{MANIFEST}")):
                raise InputError(f"{self.path} is a folder of runs, not a run; name one of them, such as {runs[0].parent}") from None
            raise InputError(f"{path}: cannot be read: {error.strerror}; give a run's folder, such as runs/NAME") from error
        try:
            return Manifest.read(self.path, verify_checksum(content, path, "restore it from a copy"))
        except ValidationError as error:
            raise InputError(f"{path}: not a manifest: {first_problem(error)}") from None

    def owner(self, conversation: str | None = None) -> Owner:
        """Return the owner that the files of the run, or of one conversation, must name."""
        return Owner(self.manifest.run_name, conversation)

    def journal(self, conversation: str) -> Path:
        """Return the path of a conversation's journal, or of the packed journal if only that exists."""
        plain = path_inside(self.path, "conversations", conversation) / JOURNAL
        packed = plain.with_name(JOURNAL + PACKED)
        return packed if os.path.lexists(packed) and not os.path.lexists(plain) else plain

    def snapshots(self, conversation: str) -> Path:
        """Return the folder of a conversation's snapshots."""
        return path_inside(self.path, "conversations", conversation, "snapshots")

    def agent_log(self, conversation: str) -> Path:
        """Return the path of the file with the standard error of a conversation's agent."""
        return self.journal(conversation).with_name(AGENT_LOG)

    def prompts(self, conversation: str) -> Path:
        """Return the path of the file with the prompts sent to a conversation's models."""
        return self.journal(conversation).with_name(PROMPTS)

    def events(self, conversation: str) -> Iterator[Event]:
        """Yield the events of a conversation. Yields nothing if it has not begun.

        For an experiment, the events that it shares with another conversation come first, and its own first event is left out. Raises
        JournalError for a damaged journal, and for a branch whose trunk has changed.
        """
        path = self.journal(conversation)
        for event in read_journal(path, self.owner(conversation)) if path.exists() else ():
            if isinstance(event, Begin):
                self._check_trunk(conversation, event)
            yield event
            if isinstance(event, Begin) and event.experiment is not None and event.trunk is not None:
                trunk = event.trunk.conversation
                yield from read_shared(self.journal(trunk), event.trunk.sum, self.owner(trunk))

    def fold(self, conversation: str, add: Callable[[Event], Change]) -> Iterator[Change]:
        """Pass each of a conversation's `events` to `add`, and yield the changes. Raises JournalError if reading the events or `add`
        does."""
        for number, event in enumerate(self.events(conversation), 1):
            try:
                yield add(event)
            except JournalError as error:
                where = f", line {number}" if conversation in self.manifest.conversations else ""
                raise JournalError(f"{self.journal(conversation)}{where}: {error}") from error

    def _check_trunk(self, conversation: str, begin: Begin) -> None:
        """Raise JournalError if a conversation's trunk is not the one in its manifest, or has changed."""
        point, trunk = begin.trunk, self.manifest.trunks.get(conversation)
        named = point.conversation if point is not None else None
        experiment = self.manifest.experiments.get(conversation)
        if experiment is not None and not experiment.shares:
            experiment = None  # its journal is like any other
        if begin.experiment != experiment or (experiment is not None and named != experiment.conversation):
            raise JournalError(
                f"{self.journal(conversation)}: its experiment differs from the one in the manifest; restore both from a copy"
            )
        if experiment is not None:
            return  # changes to the trunk are detected when it is read up to this point
        if named != trunk or (trunk is not None and point is not None and last_sum(self.journal(trunk)) != point.sum):
            what = f"{trunk} as it is in {self.journal(trunk)}" if trunk is not None else "nothing"
            raise JournalError(f"{self.journal(conversation)}: it does not branch from {what}; restore both from a copy")

    def check(self) -> None:
        """Verify the journals' checksums. Raises DamageError for a changed line, and JournalError for another run's journal."""
        for id in self.manifest.played:
            if self.journal(id).exists():
                check_journal(self.journal(id), self.owner(id))

    def transcripts(self, on_change: Callable[[str, Transcript, Change], None] | None = None, *, experiments: bool = False) -> Transcripts:
        """Return the transcripts of all conversations that have begun, by id. `experiments`: whether to include experiments.

        `on_change` is called with the id, the transcript and each change. Raises JournalError for a damaged journal.
        """
        transcripts = Transcripts()
        for id in self.manifest.played if experiments else self.manifest.conversations:
            for change in self.fold(id, partial(transcripts.add, id)):
                if on_change is not None:
                    on_change(id, transcripts[id], change)
        return transcripts

    @property
    def spending(self) -> SpendingRecord:
        """The record of the run's spending."""
        return SpendingRecord(self.path, self.owner())

    def lock(self) -> AbstractContextManager[int]:
        """Lock the run. The lock ends with the process. Raises InputError if another process holds it."""
        return lock_folder(self.path, "run")

    def incident(self, **entry: str) -> None:
        """Record an incident in the run's folder, with keys redacted. Ignores write errors: the caller reports the incident as well."""
        with suppress(JournalError, InputError):
            self._lines(INCIDENTS).append(redact_json(entry))

    def incidents(self) -> list[dict[str, Any]]:
        return self._lines(INCIDENTS).read()

    def failures(self) -> dict[str, Failure]:
        """Return the agent's last failure in each conversation, in the order of the incidents."""
        found: dict[str, Failure] = {}
        for entry in self.incidents():
            if entry.get("type") == "agent_error":
                conversation = str(entry.get("conversation"))
                found.pop(conversation, None)
                found[conversation] = Failure(str(entry.get("error")), str(entry.get("traceback") or entry.get("stderr") or ""))
        return found

    def correct(self, correction: CorrectionEntry) -> None:
        """Add a person's correction of a test, or its removal. It replaces earlier ones."""
        self._lines("corrections.jsonl").append(correction.model_dump())

    def corrections(self) -> dict[str, Correction]:
        """Return the last correction of each test by test id, unless it was removed. Raises JournalError for an invalid file."""
        try:
            entries = [CorrectionEntry.model_validate(entry) for entry in self._lines("corrections.jsonl").read()]
        except ValidationError as error:
            raise JournalError(f"{self.path / 'corrections.jsonl'}: not a correction: {first_problem(error)}") from None
        last = {entry.test: entry for entry in entries}
        return {test: Correction(**entry.model_dump()) for test, entry in last.items() if entry.score is not None}

    def grades(self) -> list[dict[str, Any]]:
        """Return all lines of grades.jsonl, from every round of grading."""
        return self._lines("grades.jsonl").read()

    def add_grades(self, entries: list[dict[str, Any]]) -> None:
        self._lines("grades.jsonl").append(*entries)

    def add_annotation(self, entry: dict[str, Any]) -> None:
        """Store a person's annotation."""
        self._lines("annotations.jsonl").append(entry)

    def annotations(self) -> list[dict[str, Any]]:
        """Return all lines of annotations.jsonl."""
        return self._lines("annotations.jsonl").read()

    def _lines(self, name: str) -> JsonLines:
        return JsonLines(self.path / name, self.owner())
