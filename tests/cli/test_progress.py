"""The progress of runs at the terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path
from threading import Event

import pytest
import trio

from longspan.agents.base import Message
from longspan.simulator.journal import events
from longspan.simulator.results.gradebook import run_status
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.player import RunEvent
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal import progress as progress_module
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.progress import Progress
from longspan.simulator.terminal.standings import format_duration

HEIGHT, WIDTH = 24, 100


def planned(out: Path, runs: int, agent: str = "silent") -> list[Plan]:
    suite = load_suite("ltm").apply_changes([], [], ["colours", "chapterbreak"], 1)
    return [plan_run(RunSettings(suite=suite, span=2000, seed=seed, agent=agent), out) for seed in range(runs)]


def frame(out: Path, runs: int, width: int, agent: str = "silent") -> list[str]:
    """The lines of the table once all runs have started."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=HEIGHT)
    plans = planned(out, runs, agent)
    shown = Console(file=io.StringIO(), width=width, height=HEIGHT)
    frames: list[str] = []
    with Progress(plans, console) as progress:

        def heard(event: RunEvent) -> None:
            progress.take_event(event)
            if len(progress.standings) == len(plans) and not frames:
                with shown.capture() as capture:
                    shown.print(progress.table())
                frames.append(capture.get())

        trio.run(lambda: play_plans(plans, listener=heard))
    return frames[0].rstrip().splitlines()


def test_unfinished_runs_come_first_and_runs_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    lines = frame(tmp_path, 30, WIDTH)
    assert len(lines) <= HEIGHT
    assert all(len(line) <= WIDTH for line in lines)
    assert sum("ltm-2k-silent-seed" in line for line in lines) == HEIGHT - 7
    assert "13 more runs, 0 finished" in lines[-1]


@pytest.mark.parametrize(
    ("width", "figures"),
    [
        (50, ["tests", "score"]),
        (60, ["tests", "left", "score"]),
        (80, ["tests", "done", "elapsed", "left", "turn", "score"]),
        (90, ["tests", "done", "elapsed", "left", "turn", "tokens", "score"]),
        (120, ["tests", "done", "elapsed", "left", "turn", "tokens", "virtual time", "open", "score"]),
    ],
)
def test_a_narrow_terminal_shows_fewer_columns_and_cuts_none(width: int, figures: list[str], tmp_path: Path) -> None:
    lines = frame(tmp_path, 2, width, "notebook?window=4000")
    assert all(len(line) <= width for line in lines)
    head = next(line for line in lines if "tests" in line)
    assert re.split(r"\s{2,}", head.strip()) == ["run", *figures]
    rows = [line.split() for line in lines if "-seed" in line]
    assert [row[0][-6:] for row in rows] == ["-seed0", "-seed1"]
    assert "…" not in "".join(cell for row in rows for cell in row[1:]), "long names are cut, and nothing else"


@pytest.mark.parametrize(("cost", "told"), [(12.34567, "$12.3457"), (None, "1.2M tok")])
def test_eighty_columns_have_room_for_time_and_money(
    cost: float | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = run_status.RunStatus.figures
    known = {"used": True, "cost": cost, "model_tokens": 1_234_567, "share": 0.5, "left": 3_599}
    monkeypatch.setattr(run_status.RunStatus, "figures", lambda self: figures(self)._replace(**known))
    head, _, row = (re.split(r"\s{2,}", line.strip()) for line in frame(tmp_path, 1, 80, "notebook?window=4000") if line.strip())
    assert head == ["run", "tests", "elapsed", "left", "cost", "turn", "score"]
    assert row[3:5] == ["1.0 h", told]


def test_a_note_about_all_runs_is_printed_once_in_one_line(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=40)
    with Progress(planned(tmp_path, 3), console):
        pass
    (line,) = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert line.startswith("3 runs: chapterbreak-1 is left out")


def test_without_a_terminal_progress_is_printed_in_lines(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=40)
    plans = planned(tmp_path, 2)
    with Progress(plans, console) as progress:
        trio.run(lambda: play_plans(plans, listener=progress.take_event))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in printed
    assert printed.count(": 1 test to play") == 2
    assert "ltm-2k-silent-seed1: 1/1 tests" in printed
    assert "% done" not in printed, "replies took no time"


class Waits:
    """Replies when a second line about its run has been printed, or never."""

    printed = Event()

    def reply(self, message: Message) -> str:
        assert Waits.printed.wait(120)
        return "OK."

    def observe(self, message: Message, reply: str) -> None:
        pass


class Listening(io.StringIO):
    def write(self, text: str) -> int:
        if "tests, " in text:
            Waits.printed.set()
        return super().write(text)


def test_without_a_terminal_a_long_wait_is_not_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "EVERY", 0.01)
    file = Listening()
    plans = planned(tmp_path, 1, f"python:{__name__}:Waits")
    with Progress(plans, Console(file=file, width=40)) as progress:
        trio.run(lambda: play_plans(plans, listener=progress.take_event))
    assert "0/1 tests, " in file.getvalue(), "it was said while a reply was awaited"


def test_how_far_a_run_is_and_how_long_it_still_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_status, "MIN_SECONDS", 0)
    suite = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "restaurant"], 2)
    plans = [plan_run(RunSettings(suite=suite, span=4000, agent="silent"), tmp_path)]
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=HEIGHT)
    shown = Console(file=io.StringIO(), width=80, height=HEIGHT)
    rows: list[str] = []
    with Progress(plans, console) as progress:

        def heard(event: RunEvent) -> None:
            progress.take_event(event)
            if isinstance(event.event, events.Reply | events.Close):
                with shown.capture() as capture:
                    shown.print(progress.table())
                rows.append(next(line for line in capture.get().splitlines() if "-seed" in line))

        trio.run(lambda: play_plans(plans, listener=heard))
    assert all(len(row) <= 80 for row in rows)
    cells = [re.split(r"\s{2,}", row.strip()) for row in rows]
    shares = [int(row[2].removesuffix("%")) for row in cells]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (3, 100), "a reply of 30 or so has been given, and then all"
    assert re.fullmatch(r"\d+ s", cells[len(cells) // 2][4])
    assert cells[-1][4] == "0 s"


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0 s"), (59.4, "59 s"), (59.9, "1 min"), (3599, "1.0 h"), (5400, "1.5 h"), (2e5, "2.3 d")]
)
def test_a_time_to_wait_is_told_in_its_largest_unit(seconds: float, told: str) -> None:
    assert format_duration(seconds) == told
