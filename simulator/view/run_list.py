"""The runs in a folder, as they are listed: what each is, how it came out or how far it is, and nothing that lies elsewhere."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, final

from longspan.simulator.analysis.graded_runs import Graded, load
from longspan.simulator.errors import InputError, LongspanError
from longspan.simulator.manifest import Manifest
from longspan.simulator.run_folder import MANIFEST, RunFolder

__all__ = ["Entry", "MissingError", "Shelf", "State", "fitting", "has_results"]

State = Literal["finished", "broken off", "no results yet", "damaged"]
"""How a run stands. One without results is being played, or was killed: nobody but its process knows."""

FILES: Final = ("result.json", "incidents.jsonl", "corrections.jsonl", "annotations.jsonl", "judgements.jsonl")
"""A run's own files that pages are made of, besides the manifest and the journals."""

LARGEST: Final = 64 * 2**20
"""Bytes of a manifest or a result beyond which nobody wrote it with longspan."""

BLOCK: Final = 2**18
"""Bytes of a journal that are read in one go, from its end."""


@final
class MissingError(LongspanError):
    """There is no run of that name."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the list. `changed` is when a journal or the results last changed, in seconds since 1970; `why` it is damaged."""

    name: str
    state: State
    changed: float
    manifest: Manifest | None = None
    score: float | None = None
    bounds: tuple[float, float] = (0.0, 0.0)
    most: int = 0
    why: str = ""


@final
class Shelf:
    """The folder `root` that runs land in."""

    def __init__(self, root: Path) -> None:
        """Raises InputError for a folder that does not exist, or is a run's own."""
        if not root.is_dir():
            raise InputError(f"{root}: there is no such folder; name the folder that runs land in (--out of longspan run)")
        if (root / MANIFEST).exists():
            raise InputError(f"{root}: is a run's folder; name the folder that it lies in, {root.resolve().parent}")
        self.root = root.resolve()
        self._known: dict[str, tuple[object, Entry]] = {}

    def entries(self) -> list[Entry]:
        """All runs, the last changed first."""
        names = [each.name for each in os.scandir(self.root) if _is_run(Path(each.path))]
        found = [self._entry(name) for name in names]
        self._known = {name: known for name, known in self._known.items() if name in names}
        return sorted(found, key=lambda entry: (-entry.changed, entry.name))

    def run(self, name: str) -> RunFolder:
        """The run called `name`. Raises MissingError where there is none, InputError for one that is damaged or has links in it."""
        path = self.root / name
        if name in ("", ".", "..") or "/" in name or "\0" in name or not _is_run(path):
            raise MissingError(f"{name:.80}: there is no such run")
        if name != name.encode(errors="replace").decode():
            raise InputError(f"{name!r}: a run's name has to be text; rename its folder")
        _plain_file(path / MANIFEST)
        run = RunFolder(path)
        for file in FILES:
            _plain_file(path / file)
        for id in run.manifest.conversations:
            journal = run.journal(id)
            for folder in (journal.parent.parent, journal.parent):
                if folder.is_symlink():
                    raise InputError(f"{folder}: is a link; what lies elsewhere is not shown")
            _plain_file(journal)
        return run

    def graded(self, name: str) -> Graded:
        """A run with its results. Raises MissingError and InputError like `run`, also where it has none."""
        (found,), _ = load([self.run(name).path])
        return found

    def _entry(self, name: str) -> Entry:
        try:
            run = self.run(name)
            files = [run.path / MANIFEST, run.path / "result.json", *map(run.journal, run.manifest.conversations)]
            state = tuple((each.st_mtime_ns, each.st_size) if each else None for each in map(_status, files))
            if self._known.get(name, (None,))[0] != state:
                self._known[name] = (state, self._read(name, run, max(each[0] for each in state if each) / 1e9))
            return self._known[name][1]
        except (LongspanError, OSError) as error:
            return Entry(name, "damaged", 0.0, why=str(error))

    def _read(self, name: str, run: RunFolder, changed: float) -> Entry:
        if not has_results(run):
            return Entry(name, "no results yet", changed, run.manifest)
        result = self.graded(name).result
        broken = any(test.status in ("unfinished", "agent_error") for test in result.tests)
        state: State = "broken off" if broken else "finished"
        return Entry(name, state, changed, run.manifest, result.score, result.score_bounds, result.max_score)


def has_results(run: RunFolder) -> bool:
    """Whether there are results that are of the journals as they are: none were written to since.

    Dates tell, mostly; those of files that were copied may not. Then the results count that speak of as many tokens.
    """
    results = _status(run.path / "result.json")
    if results is None:
        return False
    journals = [status for status in map(_status, journals_of(run)) if status is not None]
    if all(journal.st_mtime_ns <= results.st_mtime_ns for journal in journals):
        return True
    try:
        tokens = json.loads((run.path / "result.json").read_bytes())["tokens"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return True  # to be told as damage
    return bool(tokens == sum(map(_tokens, journals_of(run))))


def _tokens(journal: Path) -> int:
    """Where the last reply of a journal ends; 0 before there is one."""
    try:
        with journal.open("rb") as file:
            for line in _backwards(file):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("type") == "reply" and isinstance(entry.get("end"), int):
                    return int(entry["end"])
    except (OSError, ValueError, RecursionError):
        return 0
    return 0


def _backwards(file: BinaryIO) -> Iterator[bytes]:
    """The whole lines of a file, the last one first."""
    at = file.seek(0, os.SEEK_END)
    rest = b""
    torn = True  # what stands after the last line end
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
    return map(run.journal, run.manifest.conversations)


def fitting(entries: Iterable[Entry], *, suite: str, span: str, agent: str, text: str) -> list[Entry]:
    """The entries with this suite, span and agent, and with `text` in one of their names; an empty one fits all."""

    def fits(entry: Entry) -> bool:
        if entry.manifest is None:
            return not (suite or span or agent) and text.lower() in entry.name.lower()
        manifest = entry.manifest
        given = [(suite, manifest.suite.name), (span, str(manifest.span)), (agent, manifest.agent)]
        words = f"{entry.name} {manifest.suite.title} {manifest.agent}".lower()
        return all(not wanted or wanted == value for wanted, value in given) and text.lower() in words

    return [entry for entry in entries if fits(entry)]


def _is_run(path: Path) -> bool:
    """Whether a folder of its own, and no link, holds something called a manifest."""
    return not path.name.startswith(".") and not path.is_symlink() and path.is_dir() and os.path.lexists(path / MANIFEST)


def _plain_file(path: Path) -> None:
    """Raises InputError for what is there but is no plain file, or one too large to be ours."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is {'a link' if stat.S_ISLNK(status.st_mode) else 'no file'}; what lies elsewhere is not shown")
    if path.suffix == ".json" and status.st_size > LARGEST:
        raise InputError(f"{path}: is larger than longspan writes it")


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None
