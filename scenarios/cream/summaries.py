"""Read summaries from JSON lines files and from runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.file_io import MAX_BYTES, read_packed
from longspan.simulator.base.files.folders import path_inside
from longspan.simulator.contract.graded_record import MAX_CHARACTERS, readable_part
from longspan.simulator.journal.run_folder import MANIFEST, RunFolder
from longspan.simulator.reading.matching import join_some

__all__ = ["Summary", "SummaryCollection", "gather_summaries"]

TASKS: Final = ("summary", "minutes")
"""Tasks whose last reply is a summary."""

Name = Annotated[str, Field(min_length=1, max_length=500)]


@final
class Summary(BaseModel):
    """A line of a file: a `system`'s summary of a `source`. `document` is the source's text. Faithfulness needs it, but one line of a
    source is enough."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    source: Name
    system: Name
    summary: str
    document: str | None = None


@final
class _Read(NamedTuple):
    """A summary and where it was read from."""

    summary: Summary
    where: str


@final
@dataclass(frozen=True)
class SummaryCollection:
    """Summaries by source and system, both in order of first appearance. Each source has at least two.

    `systems` lists all systems. `notes` list omissions and truncations.
    """

    sources: dict[str, dict[str, Summary]]
    systems: list[str]
    notes: list[str]

    def document(self, source: str, system: str) -> str | None:
        """Return the document that a system summarised: from its own line, else from another line of the source, or None."""
        summaries = self.sources[source]
        documents = (summary.document for summary in (summaries[system], *summaries.values()))
        return next((document for document in documents if document is not None), None)


def gather_summaries(paths: Sequence[Path]) -> SummaryCollection:
    """Read the summaries in JSON lines files, runs and folders of runs.

    In a run, a test counts if its facts name a `source` and, if they name a `task`, one of TASKS. The agent is the system, its reply to the
    test's last question the summary, and the test's messages the document. Raises InputError if something cannot be read, or if nothing can
    be compared.
    """
    files = [path for path in paths if not path.is_dir()]
    runs = list(dict.fromkeys(run for path in paths if path.is_dir() for run in _runs(path)))
    notes: list[str] = []
    read = [*(entry for file in dict.fromkeys(files) for entry in _lines(file)), *_from_runs(runs, notes)]
    sources: dict[str, dict[str, Summary]] = {}
    for summary, where in read:
        by_system = sources.setdefault(summary.source, {})
        if summary.system in by_system:
            raise InputError(f"{where}: duplicate summary of {summary.source!r:.80} by {summary.system!r:.80}; remove one")
        by_system[summary.system] = _truncate(summary, notes)
    alone = [source for source, by_system in sources.items() if len(by_system) < 2]
    if alone:
        notes.append(f"{len(alone)} of {len(sources)} sources have only one summary and are left out: {join_some(alone)}")
    sources = {source: by_system for source, by_system in sources.items() if len(by_system) > 1}
    if not sources:
        raise InputError(f"{join_some(map(str, paths))}: no source has summaries by two systems; found {len(read)} summaries")
    return SummaryCollection(sources, list(dict.fromkeys(system for by_system in sources.values() for system in by_system)), notes)


def _truncate(summary: Summary, notes: list[str]) -> Summary:
    if len(summary.summary) <= MAX_CHARACTERS:
        return summary
    length = f"the first {MAX_CHARACTERS:,} of {len(summary.summary):,} characters are judged"
    notes.append(f"{join_some([summary.system])} on {join_some([summary.source])}: {length}")
    return summary.model_copy(update={"summary": readable_part(summary.summary)})


# ---- files


def _lines(path: Path) -> Iterator[_Read]:
    for number, line in enumerate(BytesIO(read_packed(path, MAX_BYTES, "name a JSON lines file or a run's folder")), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield _Read(_line(line, where), where)


def _line(line: bytes, where: str) -> Summary:
    try:
        return Summary.model_validate_json(line)
    except ValidationError as error:
        form = '{"source": ..., "system": ..., "summary": ...}'
        raise InputError(f"{where}: {first_problem(error)}; expected {form}, optionally with a document") from None


# ---- runs


def _runs(path: Path) -> Iterable[Path]:
    if (path / MANIFEST).exists():
        return [path.resolve()]
    names = sorted(manifest.parent.name for manifest in path.glob(f"*/{MANIFEST}") if not manifest.parent.name.startswith("."))
    if not names:
        raise InputError(f"{path}: no runs found; name a run's folder, a folder of runs, or a JSON lines file")
    return [path_inside(path, name).resolve() for name in names]


def _from_runs(paths: Sequence[Path], notes: list[str]) -> Iterator[_Read]:
    """Yield the summaries in runs. Runs of the same agent are distinguished by their folders."""
    runs = [RunFolder(path) for path in paths]
    agents = Counter(run.manifest.labelled for run in runs)
    for run in runs:
        agent = run.manifest.labelled
        system = agent if agents[agent] == 1 else f"{agent} ({run.path.name})"
        summaries = list(_of_run(run, system))
        if not summaries:
            notes.append(f"{run.path.name}: none of its finished tests asks for a summary of a source")
        yield from summaries


def _of_run(run: RunFolder, system: str) -> Iterator[_Read]:
    for transcript in run.transcripts().values():
        for test in transcript.tests.values():
            source = (test.definition.facts or {}).get("source")
            asked = [exchange for exchange in test.exchanges if exchange.asks]
            task = (test.definition.facts or {}).get("task", TASKS[0])
            if test.status != "played" or not isinstance(source, str) or not source or task not in TASKS or not asked:
                continue
            document = "\n\n".join(exchange.text for exchange in test.exchanges[: test.exchanges.index(asked[-1]) + 1])
            summary = Summary(source=source[:500], system=system[:500] or "(no name)", summary=asked[-1].reply, document=document)
            yield _Read(summary, f"{run.path}, test {test.id}")
