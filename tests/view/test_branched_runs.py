"""Runs of histories in the view: listed, and followed while they are played."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.following import LiveRun
from longspan.simulator.pages.view.run_list import RunList
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.gradebook.run_status import RunStatus
from longspan.simulator.results.gradebook.worker import GradingWorker
from tests.browser import Open
from tests.report.pages import played_diaries
from tests.sealing import change_json, change_lines
from tests.view.serving import serving
from tests.view.test_following import watch

ENTRIES, TESTS = 12, 2
"""Days of a diary, and diaries; four questions are asked about each."""


@pytest.fixture(scope="module")
def diaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played_diaries(tmp_path_factory.mktemp("diaries"), ENTRIES, TESTS)


def test_a_copied_run_with_other_dates_stays_finished(diaries: Path, tmp_path: Path) -> None:
    """Its results have the tokens of its journals, counting each trunk once."""
    copy = Path(shutil.copytree(diaries, tmp_path / "run"))
    for journal in copy.rglob("journal.jsonl"):
        os.utime(journal, (journal.stat().st_atime, (copy / "result.json").stat().st_mtime + 1))
    (entry,) = RunList(tmp_path).entries()
    assert entry.state == "finished"
    change_json(copy / "result.json", lambda result: result.update(tokens=result["tokens"] - 1))
    (entry,) = RunList(tmp_path).entries()
    assert (entry.state, entry.ended) == ("stopped", 8), "what tells a history is no test that has ended"


def test_turns_of_branches_are_followed_with_their_trunk(diaries: Path) -> None:
    run = RunFolder(diaries)

    async def look(live: LiveRun) -> None:
        while not (live.status and json.loads(live.status)["closed"]):
            await live.changes()
        turns = [json.loads(news.data) for news in live.turns(0)]
        assert len(turns) == TESTS * (ENTRIES + 4)
        branched = {(turn["conversation"], turn.get("trunk"), turn.get("first")) for turn in turns}
        assert {("diary-d1", None, None), ("diary-d2-q3", "diary-d2", ENTRIES)} <= branched
        assert json.loads(live.status)["results"]

    watch(run, look)


def test_the_score_so_far_leaves_out_what_does_not_count(tmp_path: Path) -> None:
    run = RunFolder(played_diaries(tmp_path, 6, 1))

    def forget(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["type"] == "reply")["text"] = "I forgot."

    change_lines(run.journal("diary-d1-q3"), forget)
    gradebook = Gradebook(run.manifest)
    worker, status = GradingWorker(gradebook), RunStatus(gradebook)

    async def main() -> None:
        for id in run.manifest.conversations:
            for event in run.events(id):
                change = gradebook.add(id, event)
                await worker.on_change(id, change)
                status.add(id, change)

    trio.run(main)
    assert [(test.score, test.counts) for test in grade_run(run).tests] == [(1, True), (0, False)]
    assert (status.figures().score, status.figures().ended) == (1, 2)


def test_a_link_to_a_needle_leads_to_the_turn_of_the_trunk(visit: Open, diaries: Path) -> None:
    with serving(diaries.parent) as server:
        seen = visit(server.at(f"runs/{diaries.name}/live"))
        needle = seen.page.locator("#t-diary-d2-q9-12").get_by_role("link", name="#9")
        needle.click()
        assert seen.page.url.endswith("#t-diary-d2-9")
        assert seen.page.locator(".lanes > li").count() == 8
        assert seen.page.locator("#t-diary-d2-9").count() == 1
        assert seen.faults() == []
        seen.leave()
