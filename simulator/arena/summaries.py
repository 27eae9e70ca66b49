"""Who summarised what: read from files of JSON lines, and from runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.errors import InputError, first_problem
from longspan.simulator.grading.matching import some
from longspan.simulator.run_folder import MANIFEST, RunFolder

__all__ = ["LONGEST", "Gathered", "Summary", "gather"]

LONGEST: Final = 100_000
"""Characters of a summary that are judged."""

TASKS: Final = ("summary", "minutes")
"""Tasks whose last reply is a summary."""

Name = Annotated[str, Field(min_length=1, max_length=500)]


@final
class Summary(BaseModel):
    """A line of a file: what a `system` made of a `source`. `document` is the source's text, for faithfulness; it may stand in one
    of a source's lines only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    source: Name
    system: Name
    summary: str
    document: str | None = None


@final
class _Read(NamedTuple):
    """A summary and where it was found."""

    summary: Summary
    where: str


@final
@dataclass(frozen=True)
class Gathered:
    """Summaries by source and system, both in the order in which they were first met; at least two of each source, and two systems.

    `systems`: all of them. `notes`: what was left out or cut, in words.
    """

    sources: dict[str, dict[str, Summary]]
    systems: list[str]
    notes: list[str]

    def document(self, source: str, system: str) -> str | None:
        """What a system was given to summarise: the text beside its summary, else beside another's of the source; None without any."""
        summaries = self.sources[source]
        given = (each.document for each in (summaries[system], *summaries.values()))
        return next((document for document in given if document is not None), None)


def gather(paths: Sequence[Path]) -> Gathered:
    """The summaries in files of JSON lines, runs' folders, and folders of runs.

    A run's tests whose facts name a `source` count, unless they name a `task` that is none of TASKS: the agent is the system, its
    reply to the test's last question the summary, and all that the test said the document. Raises InputError for what cannot be
    read, and where nothing can be compared.
    """
    files = [path for path in paths if not path.is_dir()]
    runs = list(dict.fromkeys(run for path in paths if path.is_dir() for run in _runs(path)))
    notes: list[str] = []
    read = [*(each for file in dict.fromkeys(files) for each in _lines(file)), *_from_runs(runs, notes)]
    sources: dict[str, dict[str, Summary]] = {}
    for summary, where in read:
        by_system = sources.setdefault(summary.source, {})
        if summary.system in by_system:
            raise InputError(f"{where}: there is already a summary of {summary.source!r:.80} by {summary.system!r:.80}; each has one")
        by_system[summary.system] = _cut(summary, notes)
    alone = [source for source, by_system in sources.items() if len(by_system) < 2]
    if alone:
        notes.append(f"{len(alone)} of {len(sources)} sources have one summary only and are left out: {some(alone)}")
    sources = {source: by_system for source, by_system in sources.items() if len(by_system) > 1}
    if not sources:
        raise InputError(f"{some(map(str, paths))}: no source has summaries by two systems; there are {len(read)} summaries in all")
    return Gathered(sources, list(dict.fromkeys(system for by_system in sources.values() for system in by_system)), notes)


def _cut(summary: Summary, notes: list[str]) -> Summary:
    if len(summary.summary) <= LONGEST:
        return summary
    length = f"of {len(summary.summary):,} characters the first {LONGEST:,} are judged"
    notes.append(f"{some([summary.system])} on {some([summary.source])}: {length}")
    return summary.model_copy(update={"summary": summary.summary[:LONGEST]})


# ---- files


def _lines(path: Path) -> Iterator[_Read]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    where = f"{path}, line {number}"
                    yield _Read(_line(line, where), where)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; name a file of JSON lines, or a run's folder") from error


def _line(line: bytes, where: str) -> Summary:
    try:
        return Summary.model_validate_json(line)
    except ValidationError as error:
        form = '{"source": ..., "system": ..., "summary": ...}'
        raise InputError(f"{where}: {first_problem(error)}; a line is {form}, perhaps with a document") from None


# ---- runs


def _runs(path: Path) -> Iterable[Path]:
    if (path / MANIFEST).exists():
        return [path.resolve()]
    found = sorted(each.parent.resolve() for each in path.glob(f"*/{MANIFEST}") if not each.parent.name.startswith("."))
    if not found:
        raise InputError(f"{path}: there is no run in it; name a run's folder, one that holds runs, or a file of JSON lines")
    return found


def _from_runs(paths: Sequence[Path], notes: list[str]) -> Iterator[_Read]:
    """The summaries of runs. Runs of the same agent are told apart by their folders."""
    runs = [RunFolder(path) for path in paths]
    agents = Counter(run.manifest.agent for run in runs)
    for run in runs:
        agent = run.manifest.agent
        system = agent if agents[agent] == 1 else f"{agent} ({run.path.name})"
        found = list(_of_run(run, system))
        if not found:
            notes.append(f"{run.path.name}: none of its tests that were played to their end asks for a summary of a source")
        yield from found


def _of_run(run: RunFolder, system: str) -> Iterator[_Read]:
    for transcript in run.transcripts().values():
        for test in transcript.tests.values():
            source = (test.definition.facts or {}).get("source")
            asked = [exchange for exchange in test.exchanges if exchange.asks]
            task = (test.definition.facts or {}).get("task", TASKS[0])
            if test.status != "played" or not isinstance(source, str) or not source or task not in TASKS or not asked:
                continue
            document = "\n\n".join(exchange.text for exchange in test.exchanges[: test.exchanges.index(asked[-1]) + 1])
            made = Summary(source=source[:500], system=system[:500] or "(no name)", summary=asked[-1].reply, document=document)
            yield _Read(made, f"{run.path}, test {test.id}")
