"""Runs that stay tidy: labels and where a run comes from."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.made_runs import made_run
from tests.sealing import change_json

from longspan.simulator.api.playing import plan_runs
from longspan.simulator.cli import main
from longspan.simulator.journal.journal_tail import MAX_LINES, JournalTail
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.run_list import RunList, has_results
from longspan.simulator.results.analysis.rows import rows_of
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.terminal.run_lines import RunLine, elide_names, run_lines

AGENT = """
class Parrot:
    def reply(self, message):
        return "Polly."
"""


def constant(value: float) -> Callable[[str, int], float]:
    return lambda scenario, number: value


def called(*arguments: str) -> int:
    """Run a command in this process, and return its exit code."""
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    return int(exit.value.code or 0)


def git(where: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *settings, *arguments], cwd=where, capture_output=True, text=True, check=True).stdout.strip()


def test_a_run_tells_its_label_its_date_and_the_commit_of_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))  # as in a hook of another repository
    (tmp_path / "parrot_of_a_repository.py").write_text(AGENT)
    play = ("run", "--scenario", "colours", "--tests", "1", "--agent", "python:parrot_of_a_repository:Parrot", "--failed", "0")
    assert called(*play) == 0
    monkeypatch.delenv("GIT_DIR")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "parrot_of_a_repository.py")
    git(tmp_path, "commit", "-q", "-m", "A parrot")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert called(*play, "--label", "new prompt") == 0
    (tmp_path / "parrot_of_a_repository.py").write_text(AGENT + "\n")
    assert called(*play, "--label", "Größer/../x") == 0
    monkeypatch.delenv("GIT_DIR")
    head = git(tmp_path, "rev-parse", "HEAD")
    found = {path.name: RunFolder(path).manifest for path in (tmp_path / "runs").iterdir()}
    base = "ltm-2k-python-parrot_of_a_repository-Parrot".replace("_", "-")
    told = {name: (manifest.label, manifest.agent_commit) for name, manifest in found.items()}
    assert told == {
        f"{base}-seed0": (None, None),
        f"{base}-new-prompt-seed0": ("new prompt", head),
        f"{base}-Groer-..-x-5fb01c36-seed0": ("Größer/../x", f"{head}-dirty"),
    }
    for manifest in found.values():
        assert manifest.created is not None
        assert timedelta(0) <= datetime.now(UTC) - manifest.created + timedelta(seconds=1) < timedelta(hours=1)
    assert "parrot_of_a_repository:Parrot [new prompt] · seed 0" in capsys.readouterr().out
    (graded,), _ = load_runs([tmp_path / "runs" / f"{base}-new-prompt-seed0"])
    assert rows_of("run", graded).tests[0]["label"] == "new prompt"
    assert called("replay", f"runs/{base}-new-prompt-seed0", "--agent", "silent", "--json") == 0
    again = RunFolder(tmp_path / "runs" / "ltm-2k-silent-seed0").manifest
    assert (again.label, again.agent_commit) == (None, None)


def test_no_two_long_specs_have_the_same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    options = "&".join(f"header.x{number}=value-{number}" for number in range(6))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    agents = [f"openai/gpt-4o-mini?base_url=http://127.0.0.1:9/v1&{options}&header.last={last}" for last in ("a", "b")]
    names = {each.name for each in plan_runs("ltm@2k", agent=agents, scenarios=["colours"], tests=1, label="x" * 40)}
    assert len(names) == 2
    assert all(len(name) < 200 and name.isascii() for name in names)


def test_labels_that_are_not_ascii_have_folders_that_can_be_told_apart() -> None:
    labels = ["größe", "grosse", "日本語", "日本", "größer", "plain", "кот", "кит"]
    names = {label: plan_runs("ltm@2k", agent="silent", scenarios=["colours"], tests=1, label=label)[0].name for label in labels}
    assert len(set(names.values())) == len(labels)
    assert all(re.fullmatch(r"ltm-2k-silent-[A-Za-z0-9.-]+-seed0", name) for name in names.values())
    assert names["plain"] == "ltm-2k-silent-plain-seed0"


@pytest.mark.parametrize("label", ["", " ", "a ", "a\nb", "\x1b[31m", "a [b]", "x" * 41, "\u202eabc", "\ud800"])
def test_a_label_is_one_short_line(label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert called("run", "--scenario", "colours", "--label", label) == 2
    error = capsys.readouterr().err
    assert error.startswith("longspan: --label: a label must be one line of 1 to 40 characters")
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()
    manifest = json.loads((made_run(tmp_path, "one", constant(1.0)) / "manifest.json").read_text())
    with pytest.raises(ValidationError):
        Manifest.model_validate(manifest | {"label": label})


def test_runs_with_other_labels_are_of_other_agents(tmp_path: Path) -> None:
    for label, score in ((None, 0.2), ("old", 0.4), ("new", 0.8)):
        for seed in range(2):
            made_run(tmp_path, "notebook?window=8k", constant(score), seed=seed, label=label)
    comparison = load_comparison([tmp_path])
    assert comparison.agents == ["notebook?window=8k [new]", "notebook?window=8k [old]", "notebook?window=8k"]
    assert not pooled(comparison.warnings)


def test_runs_of_the_same_tests_that_count_as_one_agents_are_told(tmp_path: Path) -> None:
    more: dict[str, Any]
    for more in ({"seed": 0}, {"seed": 0}, {"seed": 1}, {"seed": 1, "span": 4000}, {"seed": 1, "isolated": True}):
        made_run(tmp_path, "bot", constant(0.5), label="v1", **more)
    (warning,) = pooled(load_comparison([tmp_path]).warnings)
    assert warning.startswith("bot [v1] has several runs of the same tests at 2k (2 of seed 0), which count as one agent's")


def pooled(warnings: list[str]) -> list[str]:
    return [warning for warning in warnings if "several runs of the same tests" in warning]


def test_the_list_of_runs_tells_them_apart_within_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich takes the output for a terminal's
    monkeypatch.setenv("NO_COLOR", "1")
    agent = "openai/gpt-4o-mini?context=16k&base_url=http://127.0.0.1:9/a-gateway-with-a-long-name/v1&temperature=0.25&end=here"
    name = "a-name-that-is-as-long-as-the-options-that-somebody-has-given-" + "x" * 60
    when = {"created": "2026-05-01T08:09:10Z"}
    made_run(tmp_path, agent, constant(0.5), name=name, label="reranked", cost=1.25, placement="spread", branch="retell", **when)
    made_run(tmp_path, "notebook", constant(0.5), name="other", scenarios=("colours",), pace_s=5.0)
    assert called("list", "runs", str(tmp_path)) == 0
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    head = next(number for number, line in enumerate(lines) if line.endswith("  run"))
    assert all(len(line) <= 80 for line in lines[head:]), "a line a run"
    runs = lines[head + 1 : head + 3]
    assert [line.split()[-1] for line in runs] == [f"{name[:12]}…{name[-12:]}", "other"] or runs[0].endswith("x")
    assert [line.split()[:2] for line in runs] == [["50%", "A"], ["50%", "B"]]
    above, below = lines[:head], lines[head + 3 :]
    assert any(line.startswith("A  ") and line.endswith(" [reranked]") for line in above)
    assert f"{agent} [reranked]" in " ".join(above), "nothing of what tells runs apart is cut"
    assert [part for part in ("branch retell", "placement uniform", "only colours", "pace_s 5.0") if part not in " ".join(below)] == []
    assert "$1.25" in runs[0]
    assert "2026-05-01" in runs[0]


def test_a_list_of_runs_that_is_piped_has_everything_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a-name-" + "x" * 90
    made_run(tmp_path, "memory/bm25?answerer=none", constant(0.5), name=name, created="2026-05-01T08:09:10Z", branch="retell")
    made_run(tmp_path, "memory/full?answerer=none", constant(0.5), name="other")
    assert called("list", "runs", str(tmp_path)) == 0
    _, head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["score", "agent", "plays", "span", "seed", "date", "changed", "run"]
    assert first.split() == [*("50%", "memory/bm25?answerer=none", "ltm", "2k", "0", "2026-05-01", "08:09"), *first.split()[7:-1], name]
    assert "branch retell" in first
    assert "memory/full?answerer=none" in second


@given(st.lists(st.text("abc", min_size=1, max_size=40), min_size=1, max_size=8, unique=True), st.integers(1, 50))
def test_names_are_cut_in_their_middle_only_where_they_stay_distinct(names: list[str], width: int) -> None:
    found = elide_names(names, width)
    assert len(set(found)) == len(names)
    for name, each in zip(names, found, strict=True):
        start, cut, end = each.partition("…")
        assert name == each if not cut else name.startswith(start) and name.endswith(end) and len(each) <= width


def test_what_is_the_same_in_all_runs_is_said_once_above_them() -> None:
    now = datetime(2026, 11, 26, 12, tzinfo=UTC)
    ages = [timedelta(seconds=30), timedelta(minutes=5), timedelta(hours=3), timedelta(days=2), timedelta(days=40)]
    runs = [
        RunLine(f"run{number}", f"{number}%", "ltm", "2k", "notebook", str(number), ["2 tests each"], created=now - age)
        for number, age in enumerate(ages)
    ]
    lines = list(run_lines([*runs, RunLine("bad", "damaged", why="not a manifest")], 80, now))
    assert lines == [
        "All runs: agent notebook, ltm, span 2k, 2 tests each.",
        "  score  seed         age  note  run",
        "     0%     0        30 s        run0",
        "     1%     1       5 min        run1",
        "     2%     2         3 h        run2",
        "     3%     3         2 d        run3",
        "     4%     4  2026-10-17        run4",
        "damaged                    *1    bad",
        "*1  not a manifest",
    ]


def test_only_what_no_result_needs_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert called("run", "--scenario", "colours", "--tests", "2", "--agent", "notebook", "--json") == 0
    first = tmp_path / "runs" / "ltm-2k-notebook-seed0"
    for name in ("newer", "unfinished", "linked", "mine", "playing"):
        shutil.copytree(first, first.with_name(name))
        change_json(first.with_name(name) / "manifest.json", lambda content: content.update(created="2999-01-01T00:00:00Z"))
    journal = tmp_path / "runs" / "unfinished" / "conversations" / "main" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    outside = tmp_path / "outside"
    (first.with_name("linked") / "conversations" / "main" / "snapshots").rename(outside)
    (first.with_name("linked") / "conversations" / "main" / "snapshots").symlink_to(outside)
    (first.with_name("mine") / "notes.txt").write_text("keep me")
    before = files(tmp_path)
    assert any("snapshots" in path for path in before)
    capsys.readouterr()

    assert called("prune") == 0
    shown = capsys.readouterr()
    assert files(tmp_path) == before, "without --yes nothing is deleted"
    assert "runs/linked: kept: " in shown.err
    assert [line.split(":")[0] for line in shown.out.splitlines()[:-1]] == [
        f"runs/{name}" for name in ("ltm-2k-notebook-seed0", "mine", "newer", "playing")
    ]
    with RunFolder(first.with_name("playing")).lock():
        assert called("prune", "--yes") == 1
    assert "another process is playing this run" in capsys.readouterr().err
    kept = {path for path in before if "/snapshots/" not in path or path.split("/")[1] in ("unfinished", "linked", "playing")}
    assert files(tmp_path) == kept
    assert called("replay", "runs/newer") == 0
    assert called("resume", "runs/newer") == 0
    assert called("resume", "runs/unfinished") == 0

    assert called("run", "--scenario", "colours", "--tests", "2", "--agent", "notebook", "--json") == 0
    change_json(first.with_name(f"{first.name}-run2") / "manifest.json", lambda content: content.update(created="2999-01-02T00:00:00Z"))
    capsys.readouterr()
    assert called("prune", "--replicates", "--yes") == 0
    left = capsys.readouterr().err
    assert "is a copy of it, so it is unclear which one is needed" in left, "tests/attack/test_pruning.py has the rest"
    assert first.exists()
    assert (first.with_name("mine") / "notes.txt").exists()
    assert len(list(outside.iterdir())) > 0
    assert called("prune", "runs/mine", "--yes") == 0
    assert "nothing to delete" in capsys.readouterr().out


def files(folder: Path) -> set[str]:
    """The files below a folder, but for locks, reached without links."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path for path in found if not path.startswith("outside") and "/linked/conversations/main/snapshots/" not in f"/{path}"}


def test_failed_tests_are_played_again_as_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    play = ("--scenario", "colours", "--scenario", "shopping", "--tests", "2", "--agent", "notebook", "--label", "one")
    assert called("run", *play, "--json") == 0
    run = tmp_path / "runs" / "ltm-2k-notebook-one-seed0"
    (graded,), _ = load_runs([run])
    failed = sorted(test.id for test in graded.result.tests if test.score != 1)
    assert 0 < len(failed) < 4
    assert called("replay", str(run), "--only-failed", "--json") == 0
    (again,), _ = load_runs([tmp_path / "runs" / "ltm-2k-rerun-notebook-one-seed0"])
    assert sorted(test.id for test in again.result.tests) == failed
    assert (again.manifest.parent, again.manifest.label) == (run.name, "one")
    assert called("replay", str(again.folder.path)) == 0
    assert called("resume", str(again.folder.path)) == 0
    assert called("run", *play[:4], "--tests", "1", "--agent", "oracle", "--json") == 0
    capsys.readouterr()
    assert called("replay", "runs/ltm-2k-oracle-seed0", "--only-failed") == 2
    assert "no test lost points" in capsys.readouterr().err


SLOW = """
import time
class Slow:
    def reply(self, message):
        time.sleep(1.1)
        return "OK."
    def observe(self, message, reply):
        pass
"""


def test_a_run_stops_when_its_time_is_up_and_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow_to_reply.py").write_text(SLOW)
    play = ("run", "--scenario", "colours", "--tests", "1", "--agent", "python:slow_to_reply:Slow", "--failed", "0")
    assert called(*play, "--time-limit", "1s") == 130
    assert "the time limit is reached: stopping after the current turn" in capsys.readouterr().err
    (run,) = (tmp_path / "runs").iterdir()
    before = RunFolder(run).transcripts()["main"]
    assert not before.closed
    monkeypatch.setattr(sys.modules["slow_to_reply"].time, "sleep", lambda seconds: None)
    assert called("resume", str(run), "--yes", "--time-limit", "1h") == 0
    assert RunFolder(run).transcripts()["main"].closed
    assert "time limit" not in capsys.readouterr().err
    for text in ("0s", "2", "-1h", "1w", "0.1s", "1e9h", "9999999d"):
        assert called(*play, f"--time-limit={text}") == 2
        assert "expected a duration from a second to a year, such as 90s" in capsys.readouterr().err


def test_a_mixed_folder_is_compared_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for agent in ("one", "two"):
        for name, chosen in {
            "colours": {"scenarios": ("colours",)},
            "both": {"scenarios": ("colours", "jokes")},
            "eight": {"scenarios": ("colours",), "parameters": {"colours": {"changes": 8}}},
            "again": {"scenarios": ("colours",), "parent": "some-run"},
        }.items():
            made_run(tmp_path, agent, constant(0.5), name=f"{name}-{agent}", **chosen)  # type: ignore[arg-type]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "manifest.json").write_text("{}")
    groups = ["ltm: colours", "ltm: colours, changes 8", "ltm: colours, jokes", "ltm: colours, tests that had failed in some-run"]
    assert called("compare", ".") == 0
    printed = capsys.readouterr().out
    assert sorted(line for line in printed.splitlines() if line.startswith("ltm")) == sorted(f"{name}: 2 agents, 2 runs" for name in groups)
    assert "".join(printed.split()).count("empty/manifest.json") == 1
    assert called("compare", ".", "--format", "csv") == 2
    assert "the runs play different tests (ltm: " in capsys.readouterr().err
    assert called("compare", ".", "--out", "c.csv") == 0
    assert sorted(path.name for path in tmp_path.glob("c*.csv")) == ["c-2.csv", "c-3.csv", "c-4.csv", "c.csv"]
    assert called("compare", "colours-one", "both-two", "--out", "c.md") == 0
    assert called("compare", "colours-one", "both-two", "--out", "c.md") == 2
    assert called("compare", "both-one", "--baseline", "colours-one") == 2
    assert "cannot be compared" in capsys.readouterr().err


def test_packed_journals_are_read_by_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called("run", "--scenario", "colours", "--tests", "1", "--agent", "notebook", "--json") == 0
    run = tmp_path / "runs" / "ltm-2k-notebook-seed0"
    shutil.copytree(run, tmp_path / "unfinished" / "one")
    journal = tmp_path / "unfinished" / "one" / "conversations" / "main" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    plain = run / "conversations" / "main" / "journal.jsonl"
    content, result = plain.read_bytes(), (run / "result.json").read_bytes()
    capsys.readouterr()
    assert called("prune", "--pack") == 0
    assert plain.exists()
    assert called("prune", "--pack", "--yes") == 0
    assert called("prune", "unfinished", "--pack", "--yes") == 0
    assert "nothing to delete" in capsys.readouterr().out
    assert journal.exists()
    assert not plain.exists()
    packed = plain.with_name("journal.jsonl.gz")
    assert gzip.decompress(packed.read_bytes()) == content
    assert packed.stat().st_size < len(content) / 2

    for command in (
        ("replay", "runs/ltm-2k-notebook-seed0"),
        ("resume", "runs/ltm-2k-notebook-seed0"),
        ("score", "runs/ltm-2k-notebook-seed0"),
        ("show", "runs/ltm-2k-notebook-seed0", "colours-1"),
        ("ask", "runs/ltm-2k-notebook-seed0", "3", "--yes"),
        ("list", "runs"),
        ("compare", "runs"),
        ("export", "runs", "--format", "csv", "--out", "tables"),
        ("export", "runs", "--format", "dataset", "--out", "data"),
        ("publish", "runs/ltm-2k-notebook-seed0", "--out", "published.json"),
        ("publish", "runs/ltm-2k-notebook-seed0", "--verify", "published.json"),
        ("plot", "runs/ltm-2k-notebook-seed0", "--figure", "card", "--out", "card.svg"),
    ):
        assert called(*command) == 0, command
    assert not plain.exists()
    assert (run / "result.json").read_bytes() == result
    (entry,) = RunList(tmp_path / "runs").entries()
    assert entry.state == "finished"
    assert has_results(RunFolder(run))
    os.utime(packed)  # newer than the results, so that the tokens decide
    assert has_results(RunFolder(run))
    tail = JournalTail(packed)
    assert len(tail.read()) == min(MAX_LINES, content.count(b"\n"))


@pytest.mark.parametrize("damage", ["cut", "not gzip", "changed", "too large", "link"])
def test_a_damaged_packed_journal_is_told_in_one_line(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made_run(tmp_path, "one", constant(1.0), name="a")
    path = run / "conversations" / "main" / "journal.jsonl.gz"
    path.parent.mkdir(parents=True)
    content = gzip.compress(b'{"seq":0,"type":"begin","sum":"0123456789abcdef"}\n' * 50)
    monkeypatch.setattr("longspan.simulator.base.files.packed.MAX_BYTES", 10_000)
    path.write_bytes(
        {"cut": content[:-9], "not gzip": b"\x1f\x8bnothing", "changed": content, "too large": gzip.compress(bytes(100_000)), "link": b""}[
            damage
        ]
    )
    if damage == "link":
        path.unlink()
        path.symlink_to("/etc/hostname")
    assert called("compare", str(run)) == 2
    error = capsys.readouterr().err
    assert "journal.jsonl.gz" in error
    assert error.count("\n") == 1
