"""The dry run of a schedule: how long a conversation will be, before anything of it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.play.conductor import CHARGE
from longspan.simulator.play.dry_run import Length, dry_run
from longspan.simulator.running.planning import plan_run, setting_of
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite

LTM = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "restaurant", "prospective_memory", "trigger_response"], 3)
SCRIPTED = load_suite("ltm").apply_changes([], [], ["colours", "shopping"], 2)
ALONE = Suite(name="made", tests=1, scenarios={"python:tests.simulator.test_alone:Pages": {}})


def told_and_taken(out: Path, suite: Suite, span: int, **settings: Any) -> list[tuple[Length, Length]]:
    """The length of each conversation of a run, on paper and as played."""
    planned = plan_run(RunSettings(suite=suite, span=span, agent="silent", **settings), out)
    told = [dry_run(setting_of(planned.manifest, id), tests) for id, tests in planned.tests.items()]
    (outcome,) = trio.run(lambda: play_plans([planned]))
    run = RunFolder(outcome.folder)
    return list(zip(told, (taken(list(run.events(id))) for id in planned.tests), strict=True))


def taken(entries: list[events.Event]) -> Length:
    last = next(entry for entry in reversed(entries) if isinstance(entry, events.Message))
    replies = [entry for entry in entries if isinstance(entry, events.Reply)]
    charge = CHARGE if replies[-1].asked else replies[-1].tokens
    return Length((last.dealt or 0) + last.tokens + charge, sum(reply.asked for reply in replies))


@pytest.mark.parametrize(("span", "placement"), [(2000, "spread"), (8000, "early"), (32_000, "spread"), (32_000, "uniform")])
def test_it_is_as_long_as_the_conversation(span: int, placement: str, tmp_path: Path) -> None:
    ((told, took),) = told_and_taken(tmp_path, LTM, span, placement=placement)
    assert told.tokens == pytest.approx(took.tokens, rel=0.01)
    assert told.asked == pytest.approx(took.asked, abs=2)


@pytest.mark.parametrize(("suite", "isolated"), [(SCRIPTED, True), (ALONE, False)])
def test_without_filler_it_is_exact(suite: Suite, isolated: bool, tmp_path: Path) -> None:
    for told, took in told_and_taken(tmp_path, suite, 4000, isolated=isolated):
        assert told == took
