"""Scoring of a run: grades its events, and writes the grades, the results and an optional page to its folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, final

from longspan.simulator.base.errors import DamageError, JournalError
from longspan.simulator.base.files.file_io import write_json
from longspan.simulator.base.files.packed import open_journal
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.run_folder import RESULT, RunFolder
from longspan.simulator.journal.transcript import Change, Transcript
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.results.result import Result, TestResult

__all__ = ["Page", "Pages", "RunScorer", "score_run"]


class Page(Protocol):
    """A run's page. It reads the events of the run's conversations together with the gradebook, and is written once the run is graded."""

    def take_change(self, conversation: str, transcript: Transcript, change: Change) -> None:
        """Add the next event's change to a conversation's transcript."""

    def forget(self, conversation: str) -> None:
        """Drop everything that was added to a conversation, before it is read again."""

    def write(self, result: Result) -> None:
        """Write the page with these results. Raises JournalError for a damaged file, and OSError if the page cannot be written."""


Pages = Callable[[RunFolder], Page]
"""Makes the page of a run."""


@final
class RunScorer:
    """Collects a run's results from its events as they are played or read, and its page, if any. Each event is processed once.

    With `before_damage`, a damaged journal is read up to the damage, without the branches at its end, and the results report that.
    """

    def __init__(self, run: RunFolder, pages: Pages | None = None, *, before_damage: bool = False) -> None:
        self._before_damage = before_damage
        self.gradebook = Gradebook(run.manifest)
        self.worker = GradingWorker(self.gradebook)
        self._run = run
        self._page = pages(run) if pages is not None else None

    def add(self, conversation: str, event: Event) -> Change:
        """Add a conversation's next event. Raises JournalError if it contradicts earlier events."""
        change = self.gradebook.add(conversation, event)
        if self._page is not None and conversation in self._run.manifest.conversations:
            self._page.take_change(conversation, self.gradebook.transcripts[conversation], change)
        return change

    def read(self) -> None:
        """Read the journals that have events not yet added. Raises DamageError for a damaged journal, unless `before_damage`."""
        manifest = self._run.manifest
        trunks = {**manifest.trunks, **{id: experiment.conversation for id, experiment in manifest.experiments.items()}}
        for id in manifest.played:
            if trunks.get(id) in self.gradebook.damage:  # the sentence about the trunk says so
                continue
            transcript = self.gradebook.transcripts.get(id)
            if transcript is None or transcript.events - transcript.shared != _lines(self._run.journal(id)):
                self.gradebook.forget(id)
                if self._page is not None and id in manifest.conversations:
                    self._page.forget(id)
                try:
                    for _ in self._run.fold(id, partial(self.add, id)):
                        pass
                except DamageError as error:
                    if not self._before_damage:
                        raise
                    branches = sum(trunk == id for trunk in trunks.values())
                    left_out = f", and its {branches:,} branch{'es are' if branches > 1 else ' is'} left out" if branches else ""
                    self.gradebook.damage[id] = f"the journal of {id} is damaged at line {error.line}: it is graded up to there{left_out}"

    def write(self) -> Result:
        """Grade the run and write its results; see `grade` and `save`."""
        result = self.grade()
        self.save(result)
        return result

    def grade(self) -> Result:
        """Return the run's results, without writing anything. Raises JournalError for a damaged journal."""
        self.read()
        return self.gradebook.result(self._run)

    def save(self, result: Result) -> None:
        """Write result.json, the page and, if a grade is new, another round to grades.jsonl.

        Earlier rounds are kept. Raises JournalError for a damaged file or a disk error.
        """
        run = self._run
        known = run.grades()
        latest = {str(entry.get("id")): {key: value for key, value in entry.items() if key != "round"} for entry in known}
        grades = [_grade_line(test) for test in result.tests]
        if any(latest.get(line["id"]) != line for line in grades):
            number = max((round for entry in known if isinstance(round := entry.get("round"), int)), default=0) + 1
            run.add_grades([{"round": number} | line for line in grades])
            for (test, _), fault in self.gradebook.faults.items():
                run.incident(conversation=fault.conversation, type="grader_error", test=test, error=fault.reason, traceback=fault.traceback)
        try:
            write_json(run.path / RESULT, result)
            if self._page is not None:
                self._page.write(result)
        except OSError as error:
            raise JournalError(
                f"{run.path}: the results cannot be written: {error.strerror}; `longspan score` writes them again"
            ) from error


def score_run(run: RunFolder, pages: Pages | None = None) -> Result:
    """Score a run from its journals; see `RunScorer.write`."""
    return RunScorer(run, pages).write()


def _lines(journal: Path) -> int:
    """Return the number of complete lines in a journal, or -1 if it cannot be read."""
    try:
        with open_journal(journal) as file:
            return sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 2**20), b""))
    except OSError:  # reported when the journal is read
        return 0 if not journal.exists() else -1


def _grade_line(test: TestResult) -> dict[str, Any]:
    names = {"id", "conversation", "status", "score", "machine_score", "reason", "turns"}
    line: dict[str, Any] = test.model_dump(mode="json", include=names)
    return line
