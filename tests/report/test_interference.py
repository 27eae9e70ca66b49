"""Interference: what similar facts do to agents whose memory is known in closed form is found out, within its interval."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import trio
from PIL import Image

from longspan.simulator.cli import main
from longspan.simulator.results.analysis.interference import Interference, describe_planted, measure_interference
from longspan.simulator.results.analysis.rows import rows_of
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.report.confused import P
from tests.report.pages import report

AGENTS = {name: f"python:tests.report.confused:{name}" for name in ("Newest", "Keeps", "Sometimes")}


def played(out: Path, agent: str, settings: list[str], *, tests: int, scenarios: tuple[str, ...] = ("colours",), seed: int = 0) -> Path:
    """The folder of a run where each test has a conversation to itself, without filler."""
    suite = load_suite("ltm").apply_changes(settings, [], scenarios, tests)
    made = plan_run(RunSettings(suite=suite, span=2_000, seed=seed, agent=agent, isolated=True), out)
    (outcome,) = trio.run(lambda: play_plans([made]))
    return Path(outcome.folder)


def plotted(runs: Path, out: Path) -> object:
    """The exit code of drawing the figure."""
    with pytest.raises(SystemExit) as leaving:
        main(["plot", str(runs), "--figure", "interference", "--out", str(out)])
    return leaving.value.code


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interference")
    for name, agent in AGENTS.items():
        for similar in (0, 3, 8):
            played(folder, agent, [f"similar={similar}"], tests=40 if name == "Sometimes" else 10, seed=similar)
    return folder


@pytest.fixture(scope="module")
def found(runs: Path) -> dict[str, Interference]:
    graded, _ = load_runs([runs])
    by_agent = measure_interference(graded)
    return {name: by_agent[agent] for name, agent in AGENTS.items()}


def test_an_agent_that_takes_the_newest_colour_of_anybody_falls_and_one_that_keeps_whose_it_is_does_not(
    found: dict[str, Interference],
) -> None:
    newest, keeps = found["Newest"].effects["similar"], found["Keeps"].effects["similar"]
    assert [(level.number, level.score) for level in newest.levels] == [(0, 1), (3, 0), (8, 0)]
    assert [(level.number, level.score) for level in keeps.levels] == [(0, 1), (3, 1), (8, 1)]
    assert newest.fall.low > 0.5
    assert keeps.fall.value == 0
    assert keeps.fall.low < 0 < keeps.fall.high
    assert "a fall of 100% [" in newest.sentence
    assert newest.sentence.endswith("(colours)")
    assert "no fall [" in keeps.sentence


def test_confusion_of_a_known_probability_is_recovered(found: dict[str, Interference]) -> None:
    effect = found["Sometimes"].effects["similar"]
    for level in effect.levels:
        assert level.interval is not None
        assert level.interval.low <= (1 - P) ** level.number <= level.interval.high
    assert effect.fall.low <= 1 - (1 - P) ** 8 <= effect.fall.high
    assert effect.fall.low > 0


def test_updates_are_an_effect_of_their_own_and_only_scenarios_with_the_same_numbers_are_pooled(tmp_path: Path) -> None:
    for changes, names in ((1, 2), (4, 2), (4, 6)):
        settings = [f"colours.changes={changes}", f"name_list.names={names}"]
        played(tmp_path, "oracle", settings, tests=2, scenarios=("colours", "name_list", "shopping"))
    (each,) = measure_interference(load_runs([tmp_path])[0]).values()
    assert list(each.effects) == ["updates"]
    effect = each.effects["updates"]
    assert (list(effect.scenarios), list(effect.left_out)) == (["name_list"], ["colours"])
    assert [(level.number, level.tests) for level in effect.levels] == [(1, 4), (5, 2)]
    assert effect.sentence.endswith("(name_list; colours left out, which had other numbers)")
    rows = {(row.scenario, *row.numbers.items()) for row in each.planted}
    assert ("colours", ("similar", 0), ("updates", 3)) in rows
    assert len(rows) == 5


def test_rows_the_report_and_the_figure_tell_what_was_planted(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded, _ = load_runs([runs])
    run = next(run for run in graded if run.manifest.suite.scenarios["colours"]["similar"] == 8)
    assert [(row["similar"], row["updates"]) for row in rows_of("run", run).tests[:1]] == [(8, 2)]
    page = report(run.folder.path)
    assert "8 similar facts, 2 updates" in page.root.text
    assert describe_planted({"similar": 1, "updates": 1, "else": 3}) == "1 similar fact, 1 update"

    out = tmp_path / "interference.png"
    assert plotted(runs, out) == 0
    assert "Newest: 100% [" in capsys.readouterr().out
    assert Image.open(io.BytesIO(out.read_bytes())).size[0] > 1_200
    again = tmp_path / "again.png"
    assert plotted(runs, again) == 0
    assert again.read_bytes() == out.read_bytes()


def test_runs_that_tell_nothing_are_refused_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = played(tmp_path, "oracle", [], tests=1)
    assert plotted(run, tmp_path / "no.svg") == 2
    assert "--set similar=0, --set similar=8" in capsys.readouterr().err
    assert not (tmp_path / "no.svg").exists()
