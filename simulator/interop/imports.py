"""Conversations that others have played, as runs of ours. What knows their files is found by entry point."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, final

from longspan.simulator import events
from longspan.simulator.coherence import check_coherence
from longspan.simulator.definitions import Definitions
from longspan.simulator.errors import InputError, LongspanError
from longspan.simulator.journal import Journal
from longspan.simulator.manifest import ImportSource, Manifest, PlannedTest, commit, versions
from longspan.simulator.plugins import load, make_scenario, scenario_class
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.scoring import score
from longspan.simulator.script import Script
from longspan.simulator.suite import Suite, load_suite, make_test
from longspan.simulator.tokens import EncodingName
from longspan.simulator.transcript import Transcript

__all__ = ["IMPORTERS", "Imported", "Importer", "Wanted", "import_run", "opening"]

IMPORTERS: Final = "longspan.imports"
"""The entry-point group of importers: a name, and an `Importer`."""

UNSEEDED: Final = "0" * 64
"""The nonce of a run that nobody committed to."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is said about a file beside it: the `definitions` of its tests, their `span` in tokens and who the `agent` was,
    each None where nobody says; and whose `rules` grade."""

    definitions: Definitions | None = None
    span: int | None = None
    agent: str | None = None
    rules: Literal["longspan", "paper"] = "longspan"

    def suite(self, scenarios: Iterable[str]) -> Suite:
        """The suite that grades tests of `scenarios`, which are named once for each test."""
        counts = Counter(sorted(scenarios))
        takers = [name for name in counts if self.rules == "paper" and "rules" in scenario_class(name).model_fields]
        return load_suite("ltm").changed([f"{name}.rules=paper" for name in takers], [], list(counts), max(counts.values()))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One conversation: the `events` of its journal, `begin` first, counted with `tokenizer`, and the `suite` of scenarios that
    grade its tests.

    `left_out`: why tests that are defined are not in it; `notes`: what could not be taken as it stood in the file.
    """

    suite: Suite
    agent: str
    tokenizer: EncodingName
    events: Sequence[events.Event]
    left_out: Sequence[str] = ()
    notes: Sequence[str] = ()


def opening(suite: Suite, scenario: str, id: str, script: Script | None, facts: Mapping[str, Any] | None = None) -> events.Open:
    """What opens the suite's test `id` of `scenario`, at position 0: the script that it was played from or, where there is none,
    the `facts` that are known; None where nobody knows what was expected. Raises InputError for a script that is odd."""
    made = make_scenario(scenario, suite.scenarios[scenario])
    common: dict[str, Any] = {"skills": list(made.skills), "uninterrupted": made.uninterrupted, "position": 0}
    if script is not None:
        return events.Open(**common, **make_test(made, id, 0, 0, script).definition(), chance=made.chance(script.facts))
    return events.Open(
        **common,
        test=f"{made.name}-{id}",
        scenario=made.name,
        parameters=made.model_dump(mode="json"),
        facts=dict(facts) if facts is not None else None,
        lines=[],
        outline=[],
        chance=made.chance(facts) if facts is not None else 0.0,
    )


class Importer(Protocol):
    """Reads one form of file."""

    def __call__(self, file: Path, wanted: Wanted) -> Imported:
        """The conversation in a file. Raises InputError for a file of another form, or one that is damaged."""
        ...


def import_run(kind: str, file: Path, out: Path, wanted: Wanted) -> Imported:
    """Make the run `out` of a file that the importer `kind` reads, graded and with its report.

    The folder is there as a whole or not at all. Raises InputError, also where there is an `out` already, and JournalError
    where the disk refuses.
    """
    importer: Importer = load(IMPORTERS, "kind of file to import", kind)
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: exists already; name another folder with --out")
    found = importer(file, wanted)
    manifest = _manifest(kind, file, found, wanted)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".import-", dir=out.parent))
    except OSError as error:
        raise InputError(f"{out}: cannot make the run's folder: {error.strerror}; choose another with --out") from error
    try:
        run = RunFolder.create(partial, "run", manifest)
        _write(run, found)
        run.path.replace(out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}; choose another with --out") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return found


def _write(run: RunFolder, found: Imported) -> None:
    (conversation,) = run.manifest.conversations
    with Journal(run.journal(conversation)) as journal:
        for event in found.events:
            journal.write(event)
        journal.sync()
    for note in found.notes:
        run.incident(conversation=conversation, type="import", error=note)
    check_coherence(run)
    score(run)


def _manifest(kind: str, file: Path, found: Imported, wanted: Wanted) -> Manifest:
    transcript = Transcript.of(found.events)
    begin = transcript.begin
    if begin is None:
        raise LongspanError(f"the importer {kind} gives no events; an installed package is at fault")
    definitions = wanted.definitions
    return Manifest(
        suite=found.suite,
        span=begin.span,
        seed=0,
        agent=found.agent,
        placement=begin.placement,
        isolated=begin.isolated,
        tokenizer=found.tokenizer,
        definitions=definitions.folder if definitions else None,
        definitions_sha256=definitions.sha256 if definitions else None,
        imported=ImportSource(kind=kind, file=_text(file.resolve()), sha256=_sha256(file)),
        starts_at=begin.starts_at,
        pace_s=begin.pace_s,
        conversations={begin.conversation: [_planned(test.definition) for test in transcript.tests.values()]},
        left_out=list(found.left_out),
        late=[],
        nonce=UNSEEDED,
        commitment=commit(UNSEEDED, 0, []),
        versions=versions(),
    )


def _planned(event: events.Open) -> PlannedTest:
    return PlannedTest(id=event.test, scenario=event.scenario, skills=event.skills, chance=event.chance)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _text(path: Path) -> str:
    """A path as text; names that are no valid Unicode are marked."""
    return str(path).encode("utf-8", "replace").decode()
