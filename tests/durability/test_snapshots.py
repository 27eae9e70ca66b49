"""Snapshots: whatever happens while one is saved, a good one is left, and nothing that the record does not name is loaded or deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.agents.base import BaseAgent
from longspan.simulator.base.errors import AgentError, JournalError
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.subject.snapshots import Snapshots

FOREIGN = ("20240617", "00000025", ".20240617.partial")
"""Folders that are named like snapshots and are none."""


class Keeper(BaseAgent):
    """Keeps its text in two files."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    async def reply(self, message: Message) -> Reply:
        return Reply("OK.")

    async def save(self, folder: Path) -> None:
        for name in ("one", "more/two"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(self.text)

    async def load(self, folder: Path) -> None:
        self.text = (folder / "one").read_text()
        if (folder / "more" / "two").read_text() != self.text:
            raise AgentError("half of it is missing")


class Killed(BaseException):
    """The process is killed."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Raise Killed at one of the calls that change files."""
    calls = count(1)

    def dying(original: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(calls) == step:
                raise Killed
            return original(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("open", "mkdir", "rename", "rmdir", "unlink", "fsync"):
            patch.setattr(os, name, dying(getattr(os, name)))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Snapshots before turns 10 and 20, among folders that look like others."""
    folder = tmp_path / "main" / "snapshots"
    for turn in (10, 20):
        trio.run(Snapshots(folder).save, Keeper(str(turn)), turn)
    for name in FOREIGN:
        (folder / name).mkdir()
        (folder / name / "one").write_text("a photo")
    return folder


def restored(folder: Path, turn: int = 99) -> tuple[int, str]:
    agent = Keeper()
    return trio.run(Snapshots(folder).restore, agent, turn), agent.text


@pytest.mark.parametrize("turn", [20, 30])
def test_killed_at_any_step_of_saving_it_leaves_a_good_snapshot(turn: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    for step in count(1):
        copy = folder.parent.with_name(str(step)) / "snapshots"
        shutil.copytree(folder.parent, copy.parent)
        with killed_at(step, monkeypatch):
            try:
                trio.run(Snapshots(copy).save, Keeper("new"), turn)
                break
            except Killed:
                steps += 1
        found = restored(copy)
        assert found in [(20, "20"), (turn, "new"), *([(10, "10")] if turn == 20 else [])], f"killed at step {step}"
        trio.run(Snapshots(copy).save, Keeper("newer"), 40)
        assert restored(copy) == (40, "newer")
        assert {path.name for path in copy.iterdir() if not path.name.isdecimal()} == {FOREIGN[2]}
        assert all((copy / name / "one").read_text() == "a photo" for name in FOREIGN)
    assert steps > 15


def test_only_what_the_record_names_is_loaded_or_deleted(folder: Path) -> None:
    assert restored(folder, 27) == (20, "20")
    assert restored(folder, 15) == (10, "10")
    assert sorted(path.name for path in folder.iterdir()) == sorted(["00000010", *FOREIGN])
    with pytest.raises(JournalError, match=r"00000025: is in the way of a snapshot, and snapshots\.jsonl does not name it"):
        trio.run(Snapshots(folder).save, Keeper(), 25)
    assert (folder / "00000025" / "one").read_text() == "a photo"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "one").write_text("21"),
        lambda path: (path / "one").rename(path / "three"),
        lambda path: (path / "more" / "two").unlink(),
        lambda path: (path / "three").touch(),
        lambda path: (path / "three").symlink_to(path / "one"),
        lambda path: os.mkfifo(path / "three"),
    ],
)
def test_a_snapshot_that_is_not_as_it_was_saved_counts_as_damaged(damage: Callable[[Path], object], folder: Path) -> None:
    damage(Snapshots(folder).path(20))
    assert restored(folder) == (10, "10")
    assert not Snapshots(folder).path(20).exists()


def test_a_snapshot_with_deeply_nested_folders_counts_as_damaged(folder: Path) -> None:
    depth = Snapshots(folder).path(20)
    here = os.open(depth, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    try:
        (depth / "three").touch()
        assert restored(folder) == (10, "10")
    finally:
        subprocess.run(["rm", "-rf", depth], check=True)


@pytest.mark.parametrize("content", [b"[]\n", b'{"turn": -1}\n', b'{"turn": 10, "path": ".."}\n', b'{"turn": "10"}\n', b"no\n"])
def test_a_damaged_record_is_told_with_the_remedy(content: bytes, folder: Path) -> None:
    with (folder.parent / "snapshots.jsonl").open("ab") as file:
        file.write(content)
    with pytest.raises(JournalError, match=r"snapshots\.jsonl.*; delete it and snapshots/ next to it; the agent will then read every turn"):
        restored(folder)


def test_an_agent_that_saves_a_link_is_told(tmp_path: Path) -> None:
    class Linker(Keeper):
        async def save(self, folder: Path) -> None:
            (folder / "latest").symlink_to(tmp_path)

    with pytest.raises(JournalError, match="latest: is a symbolic link"):
        trio.run(Snapshots(tmp_path / "snapshots").save, Linker(), 10)
