"""Full and failing disks: whichever write fails, everything written before can be read, and the run can be resumed."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.journal.run_folder import MANIFEST, RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans, replay_run, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.sealing import nameless

AGENT = "python:tests.durability.agents:Keeper"


def planned(out: Path) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "restaurant"], 1)
    return plan_run(RunSettings(suite=suite, span=2_000, seed=1, agent=AGENT), out)


class Disk:
    """Counts all writes, syncs and renames below a folder, and makes the `broken`th one fail halfway."""

    def __init__(self, folder: Path, broken: int | None, code: int) -> None:
        self.folder = folder
        self.broken = broken
        self.code = code
        self.count = 0

    def strike(self) -> bool:
        self.count += 1
        return self.count - 1 == self.broken

    def error(self) -> OSError:
        return OSError(self.code, os.strerror(self.code))

    @contextmanager
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        synced, replaced, renamed = os.fsync, Path.replace, Path.rename
        disk = self

        def breaking(opened: Any) -> Any:
            def open_(path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
                file = opened(path, mode, *rest, **options)
                if isinstance(path, Path) and disk.folder in path.parents and mode[0] in "awx":
                    return Breaking(file, disk)
                return file

            return open_

        def step(original: Any) -> Any:
            def call(*arguments: Any) -> Any:
                if disk.strike():
                    raise disk.error()
                return original(*arguments)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", breaking(Path.open))
            patch.setattr(builtins, "open", breaking(open))  # longspan.simulator.base.files.folders.open_file
            patch.setattr(os, "fsync", step(synced))
            patch.setattr(Path, "replace", step(replaced))
            patch.setattr(Path, "rename", step(renamed))
            yield


class Breaking:
    """A file whose writes may fail after half of the bytes."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file = file
        self._disk = disk

    def write(self, data: Any) -> int:
        if self._disk.strike():
            self._file.write(data[: len(data) // 2])
            raise self._disk.error()
        written: int = self._file.write(data)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __enter__(self) -> Breaking:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def entries(run: RunFolder) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "repeated"} for entry in nameless(run.journal("main"))]


def test_whichever_write_fails_the_run_can_be_read_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tmp_path / "whole"
    disk = Disk(whole, None, errno.EIO)
    with disk.installed(monkeypatch):
        trio.run(lambda: play_plans([planned(whole)], pages=Report))
    (path,) = whole.iterdir()
    expected = entries(RunFolder(path))
    assert disk.count > 60
    failed = 0
    for broken in range(disk.count):
        out = tmp_path / f"broken-{broken}"
        with Disk(out, broken, (errno.ENOSPC, errno.EIO)[broken % 2]).installed(monkeypatch):
            try:
                (outcome,) = trio.run(lambda out=out: play_plans([planned(out)], pages=Report))
                failed += outcome.error is not None
            except LongspanError:
                failed += 1
        for path in out.iterdir():
            assert (path / MANIFEST).exists(), "no folder is left without its manifest"
            run = RunFolder(path)
            assert run.manifest.seed == 1
            run.transcripts()
            run.grades()
            run.incidents()
            assert trio.run(lambda run=run: resume_run(run, AGENT, pages=Report)).error is None
            assert entries(run) == expected, f"write {broken} failed"
            assert trio.run(lambda run=run: replay_run(run)).tests
    assert failed > 0.9 * disk.count


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Disk(tmp_path, 8, errno.ENOSPC).installed(monkeypatch):
        (outcome,) = trio.run(lambda: play_plans([planned(tmp_path)]))
    assert "No space left on device" in str(outcome.error)
    assert "\n" not in str(outcome.error)
    assert str(tmp_path) in str(outcome.error)
