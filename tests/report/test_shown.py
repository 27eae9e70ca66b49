"""What the model that answers was shown is told beside each agent, and at the end of a run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import trio

from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.comparison_tables import as_rows, comparison_tables
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.scores import print_scores

AGENT = """
class Teller:
    def __init__(self, context="2k", more="0"):
        self.asked, self.more = 0, int(more)

    def reply(self, message):
        self.asked += 1
        return {"text": "OK.", "trace": {"prompt_tokens": self.more + 100 * self.asked}}

    def observe(self, message, reply):
        pass
"""
TITLE = "Input of the answering model"


def test_mean_and_most_tokens_of_prompts_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "teller_of_prompts.py").write_text(AGENT)
    suite = load_suite("ltm").model_copy(update={"tests": 1, "scenarios": {"colours": {}}})
    agents = ["python:teller_of_prompts:Teller?context=2k", "python:teller_of_prompts:Teller?context=4k&more=900", "silent"]
    plans = [plan_run(RunSettings(suite=suite, span=2000, agent=agent), tmp_path / "runs") for agent in agents]
    outcomes = trio.run(play_plans, plans)
    replies = {}
    for agent, outcome in zip(agents, outcomes, strict=True):
        assert outcome.error is None
        run = RunFolder(outcome.folder)
        asked = [each for each in run.events("main") if isinstance(each, events.Reply) and each.trace]
        replies[agent] = len(asked)
        metrics = read_result(run).metrics
        more = 900 if "more" in agent else 0
        if agent == "silent":
            assert "prompt_tokens_mean" not in metrics
            continue
        assert metrics["prompt_tokens_mean"] == pytest.approx(more + 100 * (len(asked) + 1) / 2)
        assert metrics["prompt_tokens_most"] == more + 100 * len(asked)
        on = io.StringIO()
        print_scores(run.manifest, read_result(run), Console(file=on, width=200))
        mean, most, context = metrics["prompt_tokens_mean"], metrics["prompt_tokens_most"], "4.0k" if more else "2.0k"
        said = f"input of the answering model: {mean:,.0f} tokens a reply on average, {most:,.0f} at most (context {context})"
        assert said in on.getvalue()
    comparison = load_comparison([tmp_path / "runs"])
    (table,) = (table for table in comparison_tables(comparison) if table.title == TITLE)
    rows = {row[0]: row[1:] for row in table.rows}
    number = replies[agents[0]]
    assert rows == {
        "Teller?context=2k": ["2k", "–", "2.0k", f"{50 * (number + 1):,.0f}", f"{100 * number:,}"],
        "Teller?context=4k&more=900": ["2k", "–", "4.0k", f"{900 + 50 * (number + 1):,.0f}", f"{900 + 100 * number:,}"],
    }
    data = {row["agent"]: row for row in as_rows(comparison) if row["table"] == "shown"}
    assert {agent: (row["context"], row["prompt_tokens_most"]) for agent, row in data.items()} == {
        agents[0]: (2_000, 100 * number),
        agents[1]: (4_000, 900 + 100 * number),
    }
