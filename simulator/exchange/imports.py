"""Imports recorded conversations as runs. Importers are found by entry point."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Literal, Protocol, final

from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.tokens import EncodingName
from longspan.simulator.contract.script import Script
from longspan.simulator.files.folders import remove
from longspan.simulator.files.reading import digest, resolved
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.report import Report
from longspan.simulator.running.coherence import check_coherence
from longspan.simulator.running.scoring import score
from longspan.simulator.suite.definitions import Definitions
from longspan.simulator.suite.manifest import ImportSource, Manifest, PlannedTest, commit, versions
from longspan.simulator.suite.plugins import load, make_scenario, scenario_class
from longspan.simulator.suite.suite import Suite, load_suite, make_test

__all__ = ["IMPORTERS", "ImportOptions", "Imported", "Importer", "import_run", "opening"]

IMPORTERS: Final = "longspan.imports"
"""The entry-point group of importers. It maps a name to an `Importer`."""

UNSEEDED: Final = "0" * 64
"""The nonce of a run without a commitment."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The user's options for an import: the `definitions` of the tests, their `span` in tokens, the `agent` that played (None if not
    given), and whose `rules` grade."""

    definitions: Definitions | None = None
    span: int | None = None
    agent: str | None = None
    rules: Literal["longspan", "paper"] = "longspan"

    def suite(self, scenarios: Iterable[str]) -> Suite:
        """Return the suite for grading tests of `scenarios`, with an entry for each test."""
        counts = Counter(sorted(scenarios))
        adjustable = [name for name in counts if self.rules == "paper" and "rules" in scenario_class(name).model_fields]
        return load_suite("ltm").changed([f"{name}.rules=paper" for name in adjustable], [], list(counts), max(counts.values()))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One conversation: the `events` of its journal from `begin`, in tokens of `tokenizer`, and the `suite` for grading its tests.

    `left_out` says why some defined tests are missing, `notes` what could not be imported unchanged.
    """

    suite: Suite
    agent: str
    tokenizer: EncodingName
    events: Sequence[events.Event]
    left_out: Sequence[str] = ()
    notes: Sequence[str] = ()


def opening(suite: Suite, scenario: str, id: str, script: Script | None, facts: Mapping[str, Any] | None = None) -> events.Open:
    """Return the `open` event of the suite's test `id` of `scenario`, at position 0.

    It contains the script that was played or, without one, the `facts`; None if the expected answers are unknown. Raises InputError for an
    invalid script.
    """
    scenario_ = make_scenario(scenario, suite.scenarios[scenario])
    common: dict[str, Any] = {"skills": list(scenario_.skills), "uninterrupted": scenario_.uninterrupted, "position": 0}
    if script is not None:
        return events.Open(**common, **make_test(scenario_, id, 0, 0, script).definition(), chance=scenario_.chance(script.facts))
    return events.Open(
        **common,
        test=f"{scenario_.name}-{id}",
        scenario=scenario_.name,
        parameters=scenario_.model_dump(mode="json"),
        facts=dict(facts) if facts is not None else None,
        lines=[],
        outline=[],
        chance=scenario_.chance(facts) if facts is not None else 0.0,
    )


class Importer(Protocol):
    """Reads files of one format."""

    def __call__(self, file: Path, options: ImportOptions) -> Imported:
        """Read the conversation in a file. Raises InputError for another format and for a damaged file."""
        ...


def import_run(kind: str, file: Path, out: Path, options: ImportOptions) -> Imported:
    """Import a file with the importer `kind` as the run `out`, graded and with its report.

    The folder is created atomically. Raises InputError for invalid input and if `out` exists, and JournalError if the run cannot be
    written.
    """
    importer: Importer = load(IMPORTERS, "kind of file to import", kind)
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: already exists; name another folder with --out")
    imported = importer(file, options)
    manifest = _manifest(kind, file, imported, options)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".import-", dir=out.parent))
    except OSError as error:
        raise InputError(f"{out}: cannot create the run's folder: {error.strerror}; choose another with --out") from error
    try:
        run = RunFolder.create(partial, "run", manifest)
        _write(run, imported)
        run.path.replace(out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}; choose another with --out") from error
    finally:
        remove(partial)
    return imported


def _write(run: RunFolder, imported: Imported) -> None:
    (conversation,) = run.manifest.conversations
    with Journal(run.journal(conversation)) as journal:
        begin, *rest = imported.events
        for event in (begin.model_copy(update={"run": run.manifest.run_name}), *rest):
            journal.write(event)
        journal.sync()
    for note in imported.notes:
        run.incident(conversation=conversation, type="import", error=note)
    check_coherence(run)
    score(run, Report)


def _manifest(kind: str, file: Path, imported: Imported, options: ImportOptions) -> Manifest:
    transcript = Transcript.of(imported.events)
    begin = transcript.begin
    if begin is None:
        raise LongspanError(f"the importer {kind} gives no events; the error is in an installed package")
    definitions = options.definitions
    return Manifest(
        suite=imported.suite,
        span=begin.span,
        seed=0,
        agent=imported.agent,
        placement=begin.placement,
        isolated=begin.isolated,
        tokenizer=imported.tokenizer,
        definitions=definitions.folder if definitions else None,
        definitions_sha256=definitions.sha256 if definitions else None,
        imported=ImportSource(kind=kind, file=_text(resolved(file)), sha256=digest(file)),
        starts_at=begin.starts_at,
        pace_s=begin.pace_s,
        conversations={begin.conversation: [_planned(test.definition) for test in transcript.tests.values()]},
        left_out=list(imported.left_out),
        late=[],
        nonce=UNSEEDED,
        commitment=commit(UNSEEDED, 0, []),
        versions=versions(),
        run_nonce=token_hex(16),
    )


def _planned(event: events.Open) -> PlannedTest:
    return PlannedTest(id=event.test, scenario=event.scenario, skills=event.skills, chance=event.chance)


def _text(path: Path) -> str:
    """Return a path as a string, with invalid Unicode replaced."""
    return str(path).encode("utf-8", "replace").decode()
