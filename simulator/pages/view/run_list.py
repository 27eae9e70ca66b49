"""The runs in a folder and in its subfolders, with their states and scores. Nothing outside the folder is read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Literal, final

from longspan.simulator.base.errors import InputError, JournalError, LongspanError
from longspan.simulator.base.files.folders import check_file, read_file
from longspan.simulator.base.files.locks import is_locked
from longspan.simulator.base.files.packed import open_journal
from longspan.simulator.journal.run_folder import MANIFEST, MAX_BYTES, RESULT, RunFolder
from longspan.simulator.pages.report.curve import CurveLayout, lay_out
from longspan.simulator.results import measures
from longspan.simulator.results.analysis.matrix import natural_sort_key
from longspan.simulator.results.graded_runs import GradedRun, load_runs
from longspan.simulator.results.result import read_result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["ListedRun", "MissingError", "RunList", "State", "filter_runs", "has_results", "is_folder", "is_run"]

State = Literal["finished", "interrupted", "running", "stopped", "waiting", "damaged"]
"""A run's state.

`running`: a process holds its lock. `stopped`: no process does, and the run has no results. `interrupted`: it has results, but was not
played to its end. `waiting`: it has not begun, and a process such as a sweep holds the lock on the folder of runs.
"""

ENDS: Final = (b'"type":"end"', b'"type":"scenario_error"')
HEAD: Final = 64
"""The number of bytes at the beginning of a journal's line that are searched for ENDS, the types of events that end a test."""

FILES: Final = ("result.json", "incidents.jsonl", "corrections.jsonl", "annotations.jsonl", "judgements.jsonl")
"""Files of a run that pages read, in addition to its manifest and journals."""

BLOCK: Final = 2**18
"""The number of bytes of a journal read in one step, from its end."""


@final
class MissingError(LongspanError):
    """No run has this name."""


@final
@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list.

    `name` is the path of its folder below the folder of the list, with `/` as separator. `changed` is when a journal or the results last
    changed, in seconds since 1970. `max_score` is the score's maximum, `chance` the score of guessing, and `measured` the quantity that the
    score measures. `ended` is the number of tests that have ended, if the run has no results. `why` is the reason why the run is damaged.
    `ungraded`: it was interrupted before a test was graded. `recall` is the recall of a memory that only searched, so that no test has a
    score. `cost` is the run's known cost in dollars. `curves` are the curves at the top of its report.
    """

    name: str
    state: State
    changed: float
    manifest: Manifest | None = None
    score: float | None = None
    bounds: tuple[float, float] = (0.0, 0.0)
    max_score: int = 0
    chance: float = 0.0
    ended: int = 0
    measured: str = "score"
    why: str = ""
    ungraded: bool = False
    recall: str = ""
    cost: float = 0.0
    curves: list[CurveLayout] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """The lowest possible score as a share of its maximum; None without results."""
        return self.bounds[0] / self.max_score if self.max_score else None

    @property
    def tests(self) -> int:
        return len(self.manifest.graded) if self.manifest is not None else 0

    @property
    def short(self) -> str:
        """The name of its folder."""
        return self.name.rpartition("/")[2]


@final
class RunList:
    """The runs in the folder `root` and below it.

    A folder below it is named by its path, with `/` as separator. The name of `root` is empty.
    """

    def __init__(self, root: Path) -> None:
        """Raises InputError if the folder does not exist or is itself a run."""
        if not root.is_dir():
            raise InputError(f"{root}: folder does not exist; give the folder with the runs (--out of longspan run)")
        if (root / MANIFEST).exists():
            raise InputError(f"{root}: is a run; give the folder that contains it, {root.resolve().parent}")
        self.root = root.resolve()
        self._cache: dict[str, tuple[object, ListedRun]] = {}
        self._ended: dict[Path, tuple[int, int]] = {}

    def entries(self, folder: str = "") -> list[ListedRun]:
        """Return all runs in a folder, most recently changed first. Raises MissingError for an unknown folder."""
        place = self.folder(folder)
        within = f"{folder}/" if folder else ""
        names = {f"{within}{file.name}" for file in os.scandir(place) if is_run(Path(file.path))}
        sweeping = is_locked(place)
        entries = [self._entry(name, sweeping) for name in names]
        gone = [name for name in self._cache if name.rpartition("/")[0] == folder and name not in names]
        for name in gone:
            del self._cache[name]
        return sorted(entries, key=lambda entry: (-entry.changed, natural_sort_key(entry.name)))

    def folder(self, name: str) -> Path:
        """Return a folder. Raises MissingError for an unknown one, or if any part of its path is a link, hidden or a run."""
        path = self.root
        for part in name.split("/") if name else []:
            path = path / part
            if not part or part.startswith(".") or "\0" in part or not is_folder(path) or is_run(path):
                raise MissingError(f"{name:.80}: no such folder")
        return path

    def run(self, name: str) -> RunFolder:
        """Return the run called `name`. Raises MissingError for an unknown run, InputError if it is damaged, and JournalError for links."""
        within, _, last = name.rpartition("/")
        path = self.folder(within) / last
        if not last or last.startswith(".") or "\0" in name or not is_run(path):
            raise MissingError(f"{name:.80}: no such run")
        if name != name.encode(errors="replace").decode():
            raise InputError(f"{name!r}: a run's name must be valid Unicode; rename its folder")
        run = RunFolder(path)
        for file in FILES:
            check_file(path / file)
        for id in run.manifest.played:
            check_file(run.journal(id))
        return run

    def load_graded(self, name: str) -> GradedRun:
        """Return a run with its results. Raises MissingError and InputError like `run`, and InputError if it has no results."""
        (graded,), _ = load_runs([self.run(name).path])
        return graded

    def state(self, name: str) -> object:
        """Return a value that changes if anything in a run's report changes. Raises like `run`.

        It consists of the checksum of the results, whether the run is being played, and the times and sizes of its other files.
        """
        run = self.run(name)
        files = sorted([*run.path.iterdir(), *map(run.journal, run.manifest.played), *map(run.prompts, run.manifest.played)])
        others = [
            (path.name, status.st_mtime_ns, status.st_size) for path in files if path.name != "report.html" and (status := _status(path))
        ]
        result = run.path / RESULT
        return sha256(read_file(result, MAX_BYTES)).hexdigest() if result.is_file() else "", is_locked(run.path), tuple(others)

    def _entry(self, name: str, sweeping: bool) -> ListedRun:
        try:
            run = self.run(name)
            files = [run.path / MANIFEST, run.path / "result.json", *map(run.journal, run.manifest.played)]
            state = tuple((status.st_mtime_ns, status.st_size) if status else None for status in map(_status, files))
            if self._cache.get(name, (None,))[0] != state:
                self._cache[name] = (state, self._read(name, run, max(time for time, _ in filter(None, state)) / 1e9))
            entry = self._cache[name][1]
            if is_locked(run.path):
                return replace(entry, state="running", ended=self._count_ended(run))
            if entry.state != "stopped":
                return entry
            begun = any(journal.exists() for journal in journals_of(run))
            return replace(entry, state="stopped" if begun or not sweeping else "waiting", ended=self._count_ended(run))
        except (LongspanError, OSError) as error:
            return ListedRun(name, "damaged", 0.0, why=str(error))

    def _read(self, name: str, run: RunFolder, changed: float) -> ListedRun:
        run.check()
        if not has_results(run):
            return ListedRun(name, "stopped", changed, run.manifest)
        result = self.load_graded(name).result
        state: State = "interrupted" if result.interrupted else "finished"
        figures = result.score, result.score_bounds, result.max_score, result.chance
        recall = result.headline if result.searched is not None else ""
        return ListedRun(
            name,
            state,
            changed,
            run.manifest,
            *figures,
            measured=result.measured,
            ungraded=result.ungraded,
            recall=recall,
            cost=result.known_usd,
            curves=[lay_out(curve) for curve in measures.document_run(run.manifest, result).curves],
        )

    def _count_ended(self, run: RunFolder) -> int:
        """Return how many graded tests have ended according to the journals so far. Only new lines are read."""
        ended = 0
        for id, planned in run.manifest.conversations.items():
            journal = run.journal(id)
            if journal.exists():
                self._ended[journal] = _count_ends(journal, *self._ended.get(journal, (0, 0)))
            ended += max(0, self._ended.get(journal, (0, 0))[1] - sum(test.tells for test in planned))
        return ended


def _count_ends(journal: Path, offset: int, known: int) -> tuple[int, int]:
    """Return the end of a journal's last whole line, and the number of tests that have ended up to there.

    `known` is the number of tests that have ended up to `offset`.
    """
    with open_journal(journal) as file:
        if os.fstat(file.fileno()).st_size < offset:
            offset, known = 0, 0
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            offset += len(line)
            known += any(end in line[:HEAD] for end in ENDS)
    return offset, known


def has_results(run: RunFolder) -> bool:
    """Return whether the results cover the present state of the journals.

    They do if no journal is newer than the results. Copied files may have other dates; then the results count if their number of tokens
    matches the journals.
    """
    results = _status(run.path / "result.json")
    if results is None:
        return False
    journals = [status for status in map(_status, journals_of(run)) if status is not None]
    if all(journal.st_mtime_ns <= results.st_mtime_ns for journal in journals):
        return True
    try:
        ends = {id: _tokens(run.journal(id)) for id in run.manifest.conversations}
        own = sum(end - ends[run.manifest.trunks[id]] if id in run.manifest.trunks else end for id, end in ends.items() if end)
        return read_result(run).tokens == own
    except (OSError, InputError, JournalError):
        return True  # reported as damage when they are loaded


def _tokens(journal: Path) -> int:
    """Return where the last reply in a journal ends, in tokens; 0 without a reply."""
    try:
        with open_journal(journal) as file:
            for line in _backwards(file):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("type") == "reply" and isinstance(entry.get("end"), int):
                    return int(entry["end"])
    except (OSError, JournalError, ValueError, RecursionError):
        return 0
    return 0


def _backwards(file: BinaryIO) -> Iterator[bytes]:
    """Yield the complete lines of a file, last line first."""
    at = file.seek(0, os.SEEK_END)
    rest = b""
    torn = True  # the text after the last line end is an incomplete line
    while at:
        size = min(at, BLOCK)
        at -= size
        file.seek(at)
        first, *lines = (file.read(size) + rest).split(b"\n")
        yield from reversed(lines[:-1] if torn and lines else lines)
        torn = torn and not lines
        rest = first
    if not torn:
        yield rest


def journals_of(run: RunFolder) -> Iterator[Path]:
    return map(run.journal, run.manifest.played)


def filter_runs(entries: Iterable[ListedRun], *, suite: str, span: str, agent: str, text: str) -> list[ListedRun]:
    """Return the entries with this suite, span and agent, and with `text` in one of their names. Empty values match all entries."""

    def matches(entry: ListedRun) -> bool:
        if entry.manifest is None:
            return not (suite or span or agent) and text.lower() in entry.name.lower()
        manifest = entry.manifest
        pairs = [(suite, manifest.suite.name), (span, str(manifest.span)), (agent, manifest.agent)]
        words = f"{entry.name} {manifest.suite.title} {manifest.agent}".lower()
        return all(not wanted or wanted == value for wanted, value in pairs) and text.lower() in words

    return [entry for entry in entries if matches(entry)]


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder, neither hidden nor a link."""
    return not path.name.startswith(".") and not path.is_symlink() and path.is_dir()


def is_run(path: Path) -> bool:
    """Return whether `path` is such a folder, and contains an entry with the manifest's name."""
    return is_folder(path) and os.path.lexists(path / MANIFEST)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None
