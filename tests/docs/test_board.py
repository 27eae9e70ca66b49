"""The board of results: attacks on submitted runs are rejected or visible."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scripts.board import FILES, make_board, read_rows

import longspan
from longspan.simulator.base.files.checksums import RunningSum, add_checksum
from longspan.simulator.journal.run_folder import RunFolder

SWEEP = "suites: [reach]\nspans: [2k]\nseeds: [0, 1, 2]\nagents: [notebook, oracle, stateless, python:cheat:Cheat]\n"

CHEAT = """
import json
from pathlib import Path

class Cheat:
    known = json.loads(Path(__file__).with_name("answers.json").read_text())

    def reply(self, message):
        return self.known.get(message.text, "Noted.")
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with two seeds of `notebook`, and one of `oracle` and of an agent that has the expected answers."""
    out = tmp_path_factory.mktemp("board")
    (out / "mine.yaml").write_text(SWEEP, "utf-8")
    runs = longspan.run("reach", span="2k", seeds="0-1", agent="notebook", out=out / "mine").folders
    (oracle,) = longspan.run("reach", span="2k", agent="oracle", out=out / "mine").folders
    turns = [event for event in RunFolder(oracle).events("main") if event.type in ("message", "reply")]
    texts = {event.text: reply.text for event, reply in zip(turns[::2], turns[1::2], strict=True)}
    (out / "answers.json").write_text(json.dumps(texts), "utf-8")
    (out / "cheat.py").write_text(CHEAT, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(out)
        patch.chdir(out)
        runs = [*runs, oracle, *longspan.run("reach", span="2k", agent="python:cheat:Cheat", out=out / "mine").folders]
    for path in [path for run in runs for path in run.rglob("*") if path.is_file() and path.name not in FILES]:
        path.unlink()
    return out


@pytest.fixture
def sweep(played: Path, tmp_path: Path) -> Path:
    """A copy of the sweep's folder, to attack."""
    shutil.copytree(played, tmp_path, dirs_exist_ok=True)
    return tmp_path / "mine"


def row_of(sweep: Path, agent: str) -> str:
    """The row of an agent, as it is written, after checking that no run is rejected."""
    rows, rejected = read_rows(sweep)
    assert rejected == []
    (row,) = (row for row in rows if row.agent == agent)
    return " | ".join(row.cells)


def find(sweep: Path, agent: str, seed: int = 0) -> Path:
    return sweep / f"reach-2k-{agent}-seed{seed}"


def reseal(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a file's object and write its checksum again, as somebody does who knows the format."""
    content = json.loads(path.read_text("utf-8"))
    del content["sum"]
    change(content)
    path.write_text(add_checksum(json.dumps(content, indent=1)), "utf-8")


def rewrite_journal(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the events of a journal, and write all checksums again."""
    path = run / "conversations" / "main" / "journal.jsonl"
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    running, lines = RunningSum(), []
    for event in events:
        del event["sum"]
        change(event)
        lines.append(running.seal(json.dumps(event, separators=(",", ":"), ensure_ascii=False)[:-1].encode()))
    path.write_bytes(b"".join(lines))


def test_honest_runs_have_a_row_with_what_is_recorded(sweep: Path) -> None:
    row = row_of(sweep, "notebook")
    assert "seeds without a run: 2" in row
    assert "2 (seeds 0, 1)<br>0 resumed" in row
    assert re.search(r"\*\*\d+% \(\d+% to \d+%\)\*\*", row), row
    assert "word for word" not in row
    board, rejected = make_board([sweep])
    assert rejected == []
    assert "longspan sweep results/mine.yaml" in board


# Attacks that are rejected.


def edit_score(sweep: Path) -> None:
    reseal(find(sweep, "notebook") / "result.json", lambda result: result.update(score=1.0, score_bounds=[1.0, 1.0]))


def edit_a_message(sweep: Path) -> None:
    """Ask an easier question than the seed does."""
    rewrite_journal(find(sweep, "notebook"), lambda event: event.get("turn") == 3 and event.update(text="OK."))


def borrow_a_journal(sweep: Path) -> None:
    shutil.copytree(find(sweep, "oracle") / "conversations", find(sweep, "notebook") / "conversations", dirs_exist_ok=True)


def borrow_a_run(sweep: Path) -> None:
    """Present oracle's run as notebook's."""
    reseal(find(sweep, "oracle") / "manifest.json", lambda manifest: manifest.update(agent="notebook"))


def swap_the_judge(sweep: Path) -> None:
    reseal(find(sweep, "notebook") / "manifest.json", lambda manifest: manifest.update(judge="openai/kind"))


def bring_judgements(sweep: Path) -> None:
    (find(sweep, "notebook") / "judgements.jsonl").write_text("", "utf-8")


def correct_by_hand(sweep: Path) -> None:
    RunFolder(find(sweep, "notebook")).add_annotation({"test": "reach-1"})
    (find(sweep, "notebook") / "annotations.jsonl").rename(find(sweep, "notebook") / "corrections.jsonl")


def play_only_failures_again(sweep: Path) -> None:
    reseal(find(sweep, "notebook") / "manifest.json", lambda manifest: manifest.update(parent="reach-2k-notebook-seed1"))


def choose_a_seed_of_ten(sweep: Path) -> None:
    longspan.run("reach", span="2k", seeds=7, agent="notebook", out=sweep)
    for path in [path for path in find(sweep, "notebook", 7).iterdir() if path.is_file() and path.name not in FILES]:
        path.unlink()


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (edit_score, r"played again from its journal, it differs in .*score"),
        (edit_a_message, "journal"),
        (borrow_a_journal, "another run"),
        (borrow_a_run, "another run"),
        (swap_the_judge, "graded by openai/kind"),
        (bring_judgements, "it has judgements.jsonl"),
        (correct_by_hand, "it has corrections.jsonl"),
        (play_only_failures_again, "only tests that had failed in reach-2k-notebook-seed1"),
        (choose_a_seed_of_ten, "no sweep of this name plays it"),
    ],
)
def test_an_attack_is_rejected(attack: Callable[[Path], None], why: str, sweep: Path) -> None:
    attack(sweep)
    rows, rejected = read_rows(sweep)
    assert len(rejected) == 1, rejected
    assert re.search(why, rejected[0].why), rejected[0].why
    assert "\n" not in rejected[0].why
    assert sum(len(row.runs) for row in rows) == len(list(sweep.iterdir())) - 1


@pytest.mark.parametrize(
    ("content", "why"), [(None, "cannot be read"), ("seeds: [a\n", "YAML"), ("agents: 3\n", "agents"), ("x: 1\n", "x")]
)
def test_a_folder_without_a_sweep_is_rejected(content: str | None, why: str, sweep: Path) -> None:
    if content is None:
        sweep.with_suffix(".yaml").unlink()
    else:
        sweep.with_suffix(".yaml").write_text(content, "utf-8")
    rows, (rejected,) = read_rows(sweep)
    assert rows == []
    assert "mine.yaml" in rejected.why
    assert why in rejected.why
    assert "\n" not in rejected.why


# Attacks that are visible.


def test_an_agent_with_the_expected_answers_is_marked(sweep: Path) -> None:
    assert "**is given the expected replies**" in row_of(sweep, "oracle")
    cheat = row_of(sweep, "python:cheat:Cheat")
    assert "**answers as expected, word for word** (seeds 0)" in cheat
    assert "code of its own, commit unknown" in cheat


def test_failures_that_are_played_until_they_pass_are_counted(sweep: Path) -> None:
    """A second run of a seed counts as the first does, and a run that was continued after failures says so."""
    alone = row_of(sweep, "notebook")
    again = sweep / "reach-2k-notebook-seed1-run2"
    (played,) = longspan.run("reach", span="2k", seeds=1, agent="notebook", out=sweep).folders
    assert played == again
    for path in [path for path in again.iterdir() if path.is_file() and path.name not in FILES]:
        path.unlink()
    RunFolder(again).incident(type="agent_error", conversation="main", error="timeout")
    row = row_of(sweep, "notebook")
    assert "seed 1 was played 2 times" in row
    assert "3 (seeds 0, 1, 1)<br>1 resumed" in row
    assert row.rsplit("`", 2)[1] != alone.rsplit("`", 2)[1], "the hash"


def test_a_run_that_replaces_a_deleted_one_is_younger_than_the_others(sweep: Path) -> None:
    day = datetime(2026, 11, 28, tzinfo=UTC)
    for seed in (0, 1):
        later = day.replace(hour=seed * 20).isoformat()
        reseal(find(sweep, "notebook", seed) / "manifest.json", lambda manifest, later=later: manifest.update(created=later))
    assert "2026-11-28 00:00 to 2026-11-28 20:00" in row_of(sweep, "notebook")


def test_a_sweep_of_a_chosen_seed_shows_which_are_missing(sweep: Path) -> None:
    choose_a_seed_of_ten(sweep)
    for run in sweep.glob("*-seed[01]*"):
        shutil.rmtree(run)
    sweep.with_suffix(".yaml").write_text(SWEEP.replace("0, 1, 2", "7"), "utf-8")
    assert "seeds without a run: 0, 1, 2, 3, 4, 5, 6" in row_of(sweep, "notebook")
