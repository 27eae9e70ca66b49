"""Grading beside the event loop: signals are answered and pages are served whatever a grader does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from starlette.requests import Request

from longspan.scenarios.ltm.colours import Colours
from longspan.simulator.base.errors import StoppedError
from longspan.simulator.cli import run_command
from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTest
from longspan.simulator.pages.view.following import LiveRuns
from longspan.simulator.pages.view.pages import Pages
from longspan.simulator.pages.view.run_list import RunList
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.judging.background import judge_run
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.player import RunEvent
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite


class Blocked:
    """A grader that waits until it is released."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def grade(self, facts: Any, record: Any) -> Grade:
        self.reached.set()
        self.released.wait()
        return Grade(score=1.0, reason="released")


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocked]:
    """The grader of colours, which waits until the test ends."""
    grader = Blocked()
    monkeypatch.setattr(Colours, "grade", lambda self, facts, record: grader.grade(facts, record))
    yield grader
    grader.released.set()


def planned(out: Path, judge: str | None = None) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 2)
    return plan_run(RunSettings(suite=suite, span=2000, seed=4, agent="oracle", judge=judge), out)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path_factory.mktemp("runs"))]))
    return RunFolder(outcome.folder)


@pytest.mark.parametrize(
    ("sent", "judge"), [(signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGTERM, "openai/gpt-4o?base_url=http://127.0.0.1:9/v1")]
)
def test_signals_stop_a_run_whose_grader_does_not_return(
    sent: signal.Signals, judge: str | None, tmp_path: Path, blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never used")
    heard: list[RunEvent] = []

    async def main() -> Any:
        async with trio.open_nursery() as nursery:

            async def interrupt() -> None:
                await trio.to_thread.run_sync(blocked.reached.wait)
                for _ in range(2):
                    os.kill(os.getpid(), sent)
                    await trio.testing.wait_all_tasks_blocked()

            nursery.start_soon(interrupt)
            return await play_plans([planned(tmp_path, judge)], listener=heard.append, signals=True)

    (outcome,) = trio.run(main)
    assert isinstance(outcome.error, StoppedError)
    assert outcome.result is None
    assert not (outcome.folder / "result.json").exists()
    blocked.released.set()
    run = RunFolder(outcome.folder)
    journal = list(read_journal(run.journal("main")))
    assert [event.event for event in heard] == journal, "every event was heard, in order"
    assert grade_run(run).tests[0].reason == "released"


@pytest.fixture
def interrupted(blocked: Blocked, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interrupts this process, as Ctrl-C does, once it grades."""
    grade = blocked.grade
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore

    def interrupting(facts: Any, record: Any) -> Grade:
        os.kill(os.getpid(), signal.SIGINT)
        return grade(facts, record)

    monkeypatch.setattr(blocked, "grade", interrupting)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_ends_the_command_score_while_it_grades(played: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["score", str(played.path)]) == 130
    assert capsys.readouterr().err == "longspan: interrupted\n"


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_ends_judging_while_it_grades(played: RunFolder) -> None:
    never_asked: Any = None
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as raised:
        trio.run(judge_run, Gradebook.of(played), never_asked)
    assert not isinstance(raised.value, BaseExceptionGroup) or raised.value.subgroup(KeyboardInterrupt)


def test_the_view_answers_while_a_test_is_graded(played: RunFolder, blocked: Blocked) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            live_runs = LiveRuns(nursery)
            with live_runs.follow(played.path.name, played) as live:
                await trio.to_thread.run_sync(blocked.reached.wait)
                pages = Pages(RunList(played.path.parent), live_runs)
                page = await pages.index(Request({"type": "http", "method": "GET", "query_string": b"", "headers": []}))
                assert played.path.name.encode() in bytes(page.body)
                blocked.released.set()
                while not any("released" in event.data for event in live.tests):
                    await live.changes()

    trio.run(main)


def test_who_leaves_does_not_wait_for_a_grader(played: RunFolder, blocked: Blocked) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            with LiveRuns(nursery).follow("run", played):
                await trio.to_thread.run_sync(blocked.reached.wait)

    trio.run(main)
    assert not blocked.released.is_set()


def test_a_test_is_graded_when_its_end_is_heard(tmp_path: Path) -> None:
    grades: dict[str, Grade | None] = {}
    turns: list[tuple[int, int]] = []

    def heard(event: RunEvent) -> None:
        transcript = event.gradebook.transcripts[event.conversation]
        if isinstance(event.change, PlayedTest) and event.change.status == "played":
            grades[event.change.id] = event.gradebook.grade_so_far(event.conversation, event.change)
            turns.append((transcript.turns, len(transcript.history)))

    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path)], listener=heard))
    book = Gradebook.of(RunFolder(outcome.folder))
    tests = book.transcripts["main"].tests
    assert grades == {id: book.grade("main", test) for id, test in tests.items()}
    assert turns == sorted(turns), "no turn was played before they were graded"
