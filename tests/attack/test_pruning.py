"""`longspan prune` against everything that can come between: nothing is lost that a result, a person or another run needs."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.cli import main
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.pruning import Prunable, find_prunable, knows_code
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.attack import sample, tried
from tests.sealing import change_json, change_lines

OLD, NEW, OTHER = "old", "new", "other"
JOURNAL: Final = "conversations/main/journal.jsonl"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished replicates of a run with snapshots, an old and a new one, and a run of another seed."""
    out = tmp_path_factory.mktemp("made")
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 2)
    plans = [plan_run(RunSettings(suite=suite, span=2_000, seed=seed, agent="notebook"), out) for seed in (1, 1, 2)]
    outcomes = trio.run(lambda: play_plans(plans, pages=Report))
    for name, outcome in zip((OLD, NEW, OTHER), outcomes, strict=True):
        assert outcome.error is None
        outcome.folder.rename(out / name)
    _manifest(OLD, created="2000-01-01T00:00:00Z")(out)
    assert any((out / OLD / "conversations" / "main" / "snapshots").iterdir())
    return out


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


def pruned(runs: Path, *more: str) -> tuple[int, str]:
    """Run the command. Return its exit code and what it printed."""
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as leaving:
        main(["prune", str(runs), "--replicates", "--yes", *more])
    return int(leaving.value.code or 0), said.getvalue()


def content_of(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder, by path, except locks and snapshots."""
    found: dict[str, bytes | str] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_file() and path.name != ".lock" and "/snapshots/" not in f"/{name}":
            found[name] = path.read_bytes()
    return found


# ---- what makes an old replicate needed


def _copied(name: str, to: str) -> Callable[[Path], object]:
    return lambda runs: shutil.copytree(runs / name, runs / to)


def _written(name: str, file: str, content: str = "mine") -> Callable[[Path], object]:
    def write(runs: Path) -> None:
        (runs / name / file).parent.mkdir(parents=True, exist_ok=True)
        (runs / name / file).write_text(content)

    return write


def _gone(name: str, file: str) -> Callable[[Path], object]:
    return lambda runs: (runs / name / file).unlink()


def _bit_flipped(name: str, file: str) -> Callable[[Path], object]:
    def flip(runs: Path) -> None:
        path = runs / name / file
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    return flip


def _manifest(name: str, **fields: Any) -> Callable[[Path], object]:
    return lambda runs: change_json(runs / name / "manifest.json", lambda content: content.update(fields))


def _corrected(runs: Path) -> None:
    RunFolder(runs / OLD).correct(Correction(test="colours-1", score=0.5, why="so", by="Ada"))


def _cut(runs: Path) -> None:
    path = runs / NEW / JOURNAL
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _played_again(runs: Path) -> None:
    """Another process makes a run of its failed tests, and has not begun to play it."""
    (runs / "rerun").mkdir()
    shutil.copy(runs / OLD / "manifest.json", runs / "rerun")
    _manifest("rerun", parent=OLD, run_nonce="0" * 32, nonce="0" * 64)(runs)


def _both_of(**fields: Any) -> Callable[[Path], object]:
    return lambda runs: [_manifest(name, **fields)(runs) for name in (OLD, NEW)]


def _copied_result(runs: Path) -> None:
    shutil.copy(runs / OLD / "result.json", runs / NEW)


def _unscored(runs: Path) -> None:
    change_json(runs / NEW / "result.json", lambda content: content.update(score=None))


def _other_grades(runs: Path) -> None:
    change_lines(runs / NEW / "grades.jsonl", lambda entries: entries[-1].update(score=0.123))


def _unreadable(runs: Path) -> None:
    (runs / "unreadable").mkdir()
    (runs / "unreadable" / "manifest.json").write_text("{}")


NEEDED: Final[dict[str, Callable[[Path], object]]] = {
    "the newer one is damaged": _bit_flipped(NEW, JOURNAL),
    "the newer one's results are damaged": _bit_flipped(NEW, "result.json"),
    "the newer one's grades are damaged": _bit_flipped(NEW, "grades.jsonl"),
    "the newer one has no results": _gone(NEW, "result.json"),
    "the newer one has no grades": _gone(NEW, "grades.jsonl"),
    "the newer one has the older one's results": _copied_result,
    "the newer one has no score": _unscored,
    "the newer one's grades are others": _other_grades,
    "the newer one was interrupted": _cut,
    "the newer one is gone": lambda runs: shutil.rmtree(runs / NEW),
    "the newer one's manifest is gone": _gone(NEW, "manifest.json"),
    "the newer one has another label": _manifest(NEW, label="other"),
    "they are of one date": _manifest(NEW, created="2000-01-01T00:00:00Z"),
    "it has no date": _manifest(OLD, created=None),
    "it is damaged": _bit_flipped(OLD, JOURNAL),
    "it is corrected": _corrected,
    "it is annotated": _written(OLD, "annotations.jsonl"),
    "a judge has read it": _written(OLD, "judgements.jsonl"),
    "it holds a note": _written(OLD, "notes.txt"),
    "a conversation of it holds a note": _written(OLD, "conversations/main/notes.txt"),
    "it holds a folder": lambda runs: (runs / OLD / "mine").mkdir(),
    "it holds a link": lambda runs: (runs / OLD / "mine").symlink_to(runs / NEW),
    "its snapshots are a link": lambda runs: _linked(runs, "conversations/main/snapshots"),
    "its conversations are a link": lambda runs: _linked(runs, "conversations"),
    "there is a copy of it": _copied(OLD, "copy"),
    "there is a copy of it before it": _copied(OLD, "a-copy"),
    "its failed tests are played again": _played_again,
    "a manifest cannot be read": _unreadable,
    "a sweep names it": lambda runs: (runs / "sweep.json").write_text(json.dumps({"runs": [{"folder": OLD}]})),
    "a sweep's index is damaged": lambda runs: (runs / "sweep.json").write_text("{}"),
    "its agent had been changed since its commit": _both_of(agent_commit="a" * 40 + "-dirty"),
}


def _linked(runs: Path, part: str) -> None:
    outside = runs.parent / "outside"
    (runs / OLD / part).rename(outside)
    (runs / OLD / part).symlink_to(outside)


def test_only_the_old_replicate_is_deleted_and_nothing_else_changes(runs: Path) -> None:
    before = content_of(runs)
    assert any(name.startswith("old/") for name in before)
    code, said = pruned(runs)
    assert code == 0
    assert f"{runs / OLD}: an old replicate, " in said
    assert content_of(runs) == {name: content for name, content in before.items() if not name.startswith("old/")}
    assert sorted(path.name for path in runs.iterdir()) == [NEW, OTHER]


def test_of_several_the_newest_that_was_graded_is_kept(runs: Path) -> None:
    shutil.copytree(runs / NEW, runs / "z-copy")  # of the same date: nobody can tell which of the two is needed
    code, said = pruned(runs)
    assert code == 0
    assert "has the same date, so neither is known to be newer" in said
    assert sorted(path.name for path in runs.iterdir()) == [NEW, OTHER, "z-copy"]


@pytest.mark.parametrize("how", sample(list(NEEDED), at_least=10))
def test_what_is_needed_is_not_deleted(how: str, runs: Path) -> None:
    NEEDED[how](runs)
    before = content_of(runs)
    pruned(runs)
    assert content_of(runs) == before
    tried("prune: what is needed")


# ---- what comes between the look and the deletion


def offered(runs: Path) -> Prunable:
    found, left = find_prunable(runs, replicates=True)
    assert not left
    (old,) = (each for each in found if each.kind == "replicate")
    return old


def _swapped(runs: Path) -> None:
    (runs / OLD).rename(runs / "elsewhere")
    (runs / OTHER).rename(runs / OLD)


def _swapped_for_a_link(runs: Path) -> None:
    (runs / OLD).rename(runs / "elsewhere")
    (runs / OLD).symlink_to(runs / OTHER)


SWAPPED: Final[dict[str, Callable[[Path], object]]] = {
    "another run is in its place": _swapped,
    "a link is in its place": _swapped_for_a_link,
    "it is moved": lambda runs: (runs / OLD).rename(runs / "elsewhere"),
}

NEWER: Final = {"it is newer now": _manifest(OLD, created="2999-01-01T00:00:00Z")}


@pytest.mark.parametrize("how", [*NEEDED, *SWAPPED, *NEWER])
def test_what_is_needed_only_after_it_was_offered_is_not_deleted(how: str, runs: Path) -> None:
    old = offered(runs)
    (NEEDED | SWAPPED | NEWER)[how](runs)
    before = content_of(runs)
    with pytest.raises((LongspanError, OSError)):
        old.prune()
    assert content_of(runs) == before
    tried("prune under races: after the offer")


@pytest.mark.parametrize("name", [OLD, NEW])
def test_a_run_that_is_being_played_is_not_deleted_and_stays_as_a_replacement(name: str, runs: Path) -> None:
    old = offered(runs)
    before = content_of(runs)
    with RunFolder(runs / name).lock(), pytest.raises(LongspanError, match="another process is playing this run"):
        old.prune()
    assert content_of(runs) == before
    tried("prune under races: after the offer")


def test_two_prunes_delete_one_run(runs: Path) -> None:
    first, second = offered(runs), offered(runs)
    assert first.prune() > 0
    before = content_of(runs)
    with pytest.raises((LongspanError, OSError)):
        second.prune()
    assert content_of(runs) == before
    assert sorted(path.name for path in runs.iterdir()) == [NEW, OTHER]
    tried("prune under races: after the offer")


INTO_IT: Final = ("it is corrected", "it holds a note", "a conversation of it holds a note", "it holds a folder", "it holds a link")


@pytest.mark.parametrize(("how", "after"), [*product(INTO_IT, [False, True]), *product(SWAPPED, [False])])
def test_what_comes_at_the_last_moment_is_moved_back(how: str, after: bool, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right before the folder is moved out of the way, or right after, through a handle that somebody had."""
    old = offered(runs)
    rename, expected = Path.rename, {}

    def interrupted(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        if after:
            moved = rename(path, target)
            rename(target, path)
            NEEDED[how](runs)
            expected.update(content_of(runs))
            return rename(path, moved)
        (NEEDED | SWAPPED)[how](runs)
        expected.update(content_of(runs))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises((LongspanError, OSError)):
        old.prune()
    assert content_of(runs) == expected
    tried("prune under races: at the last moment")


def test_what_comes_into_a_run_while_it_is_deleted_stays(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = offered(runs)
    remove = Path.rmdir

    def interrupted(folder: Path) -> None:
        (runs / ".old.pruned" / "conversations" / "notes.txt").write_text("mine")
        remove(folder)

    monkeypatch.setattr(Path, "rmdir", interrupted)
    with pytest.raises(LongspanError, match=r"\.old\.pruned: the rest cannot be deleted: Directory not empty; move its content"):
        old.prune()
    assert (runs / ".old.pruned" / "conversations" / "notes.txt").read_text() == "mine"
    monkeypatch.undo()
    assert ".old.pruned: kept: it contains files that longspan did not write" in pruned(runs)[1]
    (runs / ".old.pruned" / "conversations" / "notes.txt").unlink()
    assert pruned(runs)[0] == 0
    assert sorted(path.name for path in runs.iterdir()) == [NEW, OTHER]
    tried("prune under races: at the last moment")


def test_who_waits_for_the_lock_of_a_run_that_is_deleted_does_not_get_it(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, old = RunFolder(runs / OLD), offered(runs)
    assert run.manifest.seed == 1

    lock = fcntl.flock

    def delayed(handle: int, how: int) -> None:
        monkeypatch.undo()
        old.prune()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", delayed)
    with pytest.raises(LongspanError, match="it was moved or deleted meanwhile"), run.lock():
        pass
    assert not (runs / OLD).exists()
    tried("prune under races: after the offer")


def test_a_folder_of_somebodys_with_such_a_name_is_left_alone(runs: Path) -> None:
    _written(".photos.pruned", "beach.jpg")(runs)
    (runs / ".link.pruned").symlink_to(runs / OTHER)
    before = {name: content for name, content in content_of(runs).items() if not name.startswith("old/")}
    assert pruned(runs)[1].count("kept: it contains files that longspan did not write") == 2
    assert content_of(runs) == before
    tried("prune: what is needed", 2)


# ---- kills


STEPS: Final = ("os.remove", "os.rename", "os.rmdir", "os.link", "shutil.rmtree")
"""What a deletion consists of, as Python's audit hooks name it."""


def killed(step: int | None, *command: str) -> int:
    """Run a command in a process that is killed before it takes a step, counted from 0; None for never. Return how many it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child uses none of them
        child = os.fork()
    if child == 0:
        taken = 0

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal taken
            if event in STEPS:
                if taken == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                taken += 1

        with ExitStack() as quiet, suppress(SystemExit):
            quiet.enter_context(redirect_stdout(StringIO()))
            quiet.enter_context(redirect_stderr(StringIO()))
            sys.addaudithook(audit)
            main(command)
        os._exit(taken)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) is (step is not None)
    return os.WEXITSTATUS(status) if step is None else step


def kills(made: Path, where: Path, *command: str) -> Iterator[tuple[int, Path]]:
    """Yield a copy of the runs for each step where a command was killed, or for some of them."""
    steps = killed(None, *command, str(shutil.copytree(made, where / "counted")))
    assert steps >= 4
    for step in sample(range(steps), at_least=5):
        runs = Path(shutil.copytree(made, where / f"killed{step}"))
        killed(step, *command, str(runs))
        yield step, runs


def test_a_deletion_killed_at_any_step_leaves_the_run_or_none_and_is_finished_later(made: Path, tmp_path: Path) -> None:
    expected = {name: content for name, content in content_of(made).items() if not name.startswith("old/")}
    whole = content_of(made / OLD)
    for step, runs in kills(made, tmp_path, "prune", "--replicates", "--yes"):
        assert {name: content for name, content in content_of(runs).items() if not name.startswith(("old/", ".old.pruned/"))} == expected
        if (runs / OLD).exists():
            assert content_of(runs / OLD) == whole, f"killed at step {step}"
        assert listed(runs) == {path.name for path in runs.iterdir() if not path.name.startswith(".")}
        code, said = pruned(runs)
        assert (code, content_of(runs)) == (0, expected), said
        assert sorted(path.name for path in runs.iterdir()) == [NEW, OTHER]
        tried("prune killed")


def listed(runs: Path) -> set[str]:
    said = StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit):
        main(["list", "runs", str(runs)])
    rows = said.getvalue().partition("\n\n")[0].splitlines()[2:]  # after a heading and the names of the columns
    return {row.split()[-1] for row in rows}


def test_packing_killed_at_any_step_loses_nothing_and_is_finished_later(made: Path, tmp_path: Path) -> None:
    run = shutil.copytree(made / NEW, tmp_path / "one" / NEW)
    events = list(read_journal(RunFolder(run).journal("main")))
    for step, runs in kills(tmp_path / "one", tmp_path, "prune", "--pack", "--yes"):
        run = runs / NEW
        assert list(read_journal(RunFolder(run).journal("main"))) == events, f"killed at step {step}"
        assert pruned(runs, "--pack")[0] == 0
        assert sorted(path.name for path in (run / JOURNAL).parent.glob("*journal*")) == ["journal.jsonl.gz"]
        assert list(read_journal(RunFolder(run).journal("main"))) == events
        tried("prune killed")


def _to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


IN_THE_WAY: Final[dict[str, Callable[[Path], object]]] = {
    "a text": lambda path: path.write_text("my own backup"),
    "nothing": lambda path: path.write_bytes(b""),
    "another journal": lambda path: path.write_bytes(gzip.compress(b'{"seq":0}\n')),
    "a longer one": lambda path: path.write_bytes(gzip.compress((path.parent / "journal.jsonl").read_bytes() + b"{}\n")),
    "a folder": lambda path: path.mkdir(),
    "a link": _to("../../../other/manifest.json"),
    "a link to nothing": _to("nothing"),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("what", IN_THE_WAY)
def test_packing_never_overwrites_a_file(what: str, late: bool, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = runs / NEW / f"{JOURNAL}.gz"
    link = os.link
    if late:
        monkeypatch.setattr(os, "link", lambda *names: (IN_THE_WAY[what](path), link(*names)))
    else:
        IN_THE_WAY[what](path)
    plain = (runs / NEW / JOURNAL).read_bytes()
    code, said = pruned(runs / NEW, "--pack")
    monkeypatch.undo()
    assert code == 1
    assert "journal.jsonl.gz: is " in said
    assert (runs / NEW / JOURNAL).read_bytes() == plain
    expected = runs / NEW / "conversations" / "main" / "expected"
    IN_THE_WAY[what](expected)
    assert _shape(path) == _shape(expected)
    tried("prune: a file in the way of a packed journal")


def _shape(path: Path) -> object:
    """The content found at a path."""
    if path.is_symlink():
        return path.readlink()
    return gzip.GzipFile(path).read() if path.is_file() and path.read_bytes()[:2] == b"\x1f\x8b" else path.is_file() and path.read_bytes()


# ---- whose code it is


@pytest.mark.parametrize(
    ("agent", "commit", "known"),
    [
        ("notebook", None, True),
        ("openai/gpt-4o?temperature=0", None, True),
        ("ltm/openai/gpt-4o", None, True),
        ("memory/bm25?answerer=openai/gpt-4o", None, True),
        ("python:mine:Agent", "a" * 40, True),
        ("python:mine:Agent", "a" * 40 + "-dirty", False),
        ("python:mine:Agent", None, False),
        ("exec:./agent", None, False),
        ("http://127.0.0.1:8000", None, False),
        ("openai/m?base_url=http://127.0.0.1:8000/v1", None, False),
        ("memory/python:mine:Memory", None, False),
        ("memory/bm25?answerer=somebodys/model", None, False),
        ("gguf//models/m.gguf", None, False),
        ("ltm/gguf//models/m.gguf", None, False),
        ("mcp:./server", None, False),
        ("human", None, False),
        ("given/Agent", None, False),
        ("somebodys/plugin", None, False),
    ],
)
def test_whose_code_is_not_recorded_is_never_the_same_agent(agent: str, commit: str | None, known: bool, made: Path) -> None:
    manifest = RunFolder(made / OLD).manifest
    of: Manifest = manifest.model_copy(update={"agent": agent, "agent_commit": commit})
    assert knows_code(of) is known
    suite = manifest.suite.model_copy(update={"scenarios": {"python:mine:Scenario": {}}})
    assert not knows_code(of.model_copy(update={"suite": suite}))
    tried("prune: code that is not known", 2)
