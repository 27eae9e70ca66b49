"""A model that refuses in the middle of a run: the run is finished, also after a crash, and says how often."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Act, Say, Server

from longspan.simulator.base.errors import AgentError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results import measures
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal.scores import print_scores

FILTERED = ("09:17:00] ", "09:20:30] ")
"""The times of turns 34, a question, and 41, a line, with which their messages begin."""


def filtered(text: str) -> str | Act:
    """The reply of a server whose content filter blocks these turns, and says nothing."""
    return Say("", ends="content_filter") if any(time in text for time in FILTERED) else "Blue."


@pytest.fixture
def filtering() -> Iterator[Server]:
    with Server(reply=filtered).running() as server:
        yield server


def played(agent: str, out: Path) -> Outcome:
    suite = load_suite("ltm").model_copy(update={"scenarios": {"colours": {}, "name_list": {}}, "tests": 3})
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2000, agent=agent), out)], pages=Report))
    return outcome


def events(run: RunFolder) -> list[dict[str, Any]]:
    """The journal without measurements, and without figures that a provider may count differently when it is asked again."""
    entries = [json.loads(line) for line in run.journal("main").read_text("utf-8").splitlines()]
    return [{key: value for key, value in entry.items() if key not in ("measured", "sum", "usage", "trace")} for entry in entries]


@pytest.mark.parametrize("memory", ["", "ltm/"])
def test_a_run_whose_model_refuses_in_the_middle_is_finished_and_says_so(
    memory: str, filtering: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "&memory=semantic&embedder=hash" if memory else ""
    agent = f"{memory}{filtering.model()}{more}"
    outcome = played(agent, tmp_path)
    assert outcome.error is None
    run = RunFolder(outcome.folder)
    result = read_result(run)
    assert {test.status for test in result.tests} == {"scored"}
    refused = [event for event in events(run) if event.get("refused")]
    assert [(event["turn"], event["text"], event["tokens"]) for event in refused] == [
        (34, "(no reply: content filter)", 6),
        (41, "(no reply: content filter)", 6),
    ]
    assert {test.id: test.refused for test in result.tests if test.refused} == {"name_list-2": 1, "name_list-3": 1}
    told = "2 replies are refusals by the agent's model, in name_list-2 (1) and name_list-3 (1)"
    notices = measures.document_run(run.manifest, result.model_copy(update={"refused": 5})).notices
    assert [notice.text.endswith("in name_list-2 (1), name_list-3 (1) and filler (3)") for notice in notices].count(True) == 1
    print_scores(run.manifest, result)
    assert told in " ".join(capsys.readouterr().out.split())
    assert told in unescape((run.path / "report.html").read_text("utf-8"))

    crashed = tmp_path / "crashed"
    shutil.copytree(run.path, crashed)
    resumed = RunFolder(crashed)
    lines = resumed.journal("main").read_bytes().splitlines(keepends=True)
    resumed.journal("main").write_bytes(b"".join(lines[: refused[1]["seq"]]))  # the refused message is the last
    resumed.manifest.allow([agent])
    assert trio.run(resume_run, resumed, agent).error is None
    assert events(resumed) == events(run)
    assert read_result(resumed).refused == 2


def test_with_on_refusal_error_the_run_is_interrupted(filtering: Server, tmp_path: Path) -> None:
    outcome = played(f"{filtering.model()}&on_refusal=error", tmp_path)
    assert isinstance(outcome.error, AgentError)
    assert "refused to answer: content filter" in str(outcome.error)
