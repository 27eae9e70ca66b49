"""Imports recorded conversations as runs. Importers are found by entry point."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Literal, Protocol, final

from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.files.file_io import hash_file, resolve_path
from longspan.simulator.base.files.folders import remove_folder
from longspan.simulator.base.tokens import EncodingName
from longspan.simulator.contract.plugins import load_plugin, make_scenario
from longspan.simulator.contract.script import Script
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.running.coherence import check_coherence
from longspan.simulator.running.scoring import Pages, score_run
from longspan.simulator.suite.definitions import Definitions
from longspan.simulator.suite.manifest import ImportSource, Manifest, PlannedTest, commit_definitions, package_versions
from longspan.simulator.suite.suite import Suite, make_test

__all__ = [
    "IMPORTERS",
    "ImportOptions",
    "ImportedConversation",
    "Importer",
    "check_new",
    "describe_source",
    "import_run",
    "new_run",
    "open_event",
]

IMPORTERS: Final = "longspan.imports"
"""The entry-point group of importers. It maps a name to an `Importer`."""

UNSEEDED: Final = "0" * 64
"""The nonce of a run without a commitment."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The user's options for an import.

    These are the `definitions` of the tests, their `span` in tokens, the `agent` that played (None if not given), and whose `rules` grade.
    """

    definitions: Definitions | None = None
    span: int | None = None
    agent: str | None = None
    rules: Literal["longspan", "paper"] = "longspan"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """One conversation: the `events` of its journal from `begin`, in tokens of `tokenizer`, and the `suite` that grades its tests.

    `left_out` gives the reasons for missing tests, and `notes` describe changes made by the import.
    """

    suite: Suite
    agent: str
    tokenizer: EncodingName
    events: Sequence[events.Event]
    left_out: Sequence[str] = ()
    notes: Sequence[str] = ()


def open_event(suite: Suite, scenario: str, id: str, script: Script | None, facts: Mapping[str, Any] | None = None) -> events.Open:
    """Return the `open` event of the suite's test `id` of `scenario`, at position 0.

    It contains the script that was played or, without one, the `facts` (None if the expected answers are unknown). Raises InputError for an
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

    def __call__(self, file: Path, options: ImportOptions) -> ImportedConversation:
        """Read the conversation in a file. Raises InputError for another format and for a damaged file."""
        ...


def import_run(kind: str, file: Path, out: Path, options: ImportOptions, pages: Pages | None = None) -> ImportedConversation:
    """Import a file with the importer `kind` as the run `out`, graded and with its page.

    The folder is created atomically. Raises InputError for invalid input and if `out` exists, and JournalError if the run cannot be
    written.
    """
    importer: Importer = load_plugin(IMPORTERS, "kind of file to import", kind)
    check_new(out)
    imported = importer(file, options)
    manifest = _manifest(kind, file, imported, options)
    with new_run(out, manifest) as run:
        _write(run, imported, pages)
    return imported


def check_new(out: Path) -> None:
    """Raise InputError if a run's folder exists."""
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: already exists; name another folder with --out")


@contextmanager
def new_run(out: Path, manifest: Manifest) -> Iterator[RunFolder]:
    """Yield a run in a temporary folder that is renamed to `out` when the context ends. Raises InputError if `out` cannot be written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder as `out`, since a rename is atomic only within a file system.
        partial = Path(tempfile.mkdtemp(prefix=".import-", dir=out.parent))
    except OSError as error:
        raise InputError(f"{out}: cannot create the run's folder: {error.strerror}; choose another with --out") from error
    try:
        run = RunFolder.create(partial, "run", manifest)
        yield run
        run.path.replace(out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}; choose another with --out") from error
    finally:
        remove_folder(partial)


def _write(run: RunFolder, imported: ImportedConversation, pages: Pages | None) -> None:
    (conversation,) = run.manifest.conversations
    with Journal(run.journal(conversation)) as journal:
        begin, *rest = imported.events
        for event in (begin.model_copy(update={"run": run.manifest.run_name}), *rest):
            journal.write(event)
        journal.sync()
    for note in imported.notes:
        run.incident(conversation=conversation, type="import", error=note)
    check_coherence(run)
    score_run(run, pages)


def _manifest(kind: str, file: Path, imported: ImportedConversation, options: ImportOptions) -> Manifest:
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
        imported=describe_source(kind, file),
        starts_at=begin.starts_at,
        pace_s=begin.pace_s,
        conversations={begin.conversation: [_plan_test(test.definition) for test in transcript.tests.values()]},
        left_out=list(imported.left_out),
        late=[],
        nonce=UNSEEDED,
        commitment=commit_definitions(UNSEEDED, 0, []),
        versions=package_versions(),
        run_nonce=token_hex(16),
    )


def _plan_test(event: events.Open) -> PlannedTest:
    return PlannedTest(id=event.test, scenario=event.scenario, skills=event.skills, chance=event.chance)


def describe_source(kind: str, file: Path) -> ImportSource:
    """Return the source of an imported run. Invalid Unicode in the file's name is replaced."""
    return ImportSource(kind=kind, file=str(resolve_path(file)).encode("utf-8", "replace").decode(), sha256=hash_file(file))
