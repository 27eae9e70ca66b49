"""Whether runs are worse than a baseline: the sentence, the exit codes, how often it is wrong and what it finds; and what CI reads."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray
from scripts import output_schema

import longspan
from longspan.simulator.api.playing import plan_runs
from longspan.simulator.cli import main
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.analysis.baseline import detectable_fall, measure_fall
from longspan.simulator.results.analysis.pairing import pair_tests
from longspan.simulator.results.analysis.statistics import Difference, fall_p, paired_permutation_p
from longspan.simulator.results.graded_runs import GradedRun, load_runs
from longspan.simulator.results.result import read_result
from tests.made_runs import made_run


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exiting:
        main(list(map(str, arguments)))
    assert isinstance(exiting.value.code, int)
    return exiting.value.code


def falls(seeds: int, drop: float, random: np.random.Generator) -> list[Difference]:
    """Two agents in ten scenarios of three tests; one scores 0.7, the other less by a share `drop`. Tests differ in how hard they are,
    and conversations in how well they go."""
    hard = random.beta(2.8, 1.2, size=(seeds, 10, 3))
    old, new = (random.random(hard.shape) < (hard + random.normal(0, 0.1, size=(seeds, 1, 1))).clip(0, 1) * (1 - d) for d in (0, drop))
    apart = old.astype(float) - new
    return [Difference(str(place[1]), place[0], float(value)) for place, value in np.ndenumerate(apart)]


@pytest.mark.parametrize(("seeds", "power"), [(5, 0.33), (10, 0.79), (20, 0.97)])
def test_false_alarms_are_as_rare_as_is_said_and_a_fall_by_a_fifth_is_found_as_often(seeds: int, power: float) -> None:
    """The powers equal the figures in docs/reference/statistics.md."""
    random = np.random.default_rng(seeds)
    alarms = fmean(fall_p(falls(seeds, 0.0, random)) < 0.05 for _ in range(400))
    assert 0.015 < alarms < 0.075
    planted = [falls(seeds, 0.2, random) for _ in range(300)]
    assert fmean(fall_p(each) < 0.05 for each in planted) == pytest.approx(power, abs=0.06)


def test_a_fall_that_is_tolerated_raises_no_more_alarms() -> None:
    random = np.random.default_rng(7)
    made = [falls(12, 0.2, random) for _ in range(300)]  # the true fall is 0.7 * 0.2
    assert fmean(fall_p(each, 0.14) < 0.05 for each in made) < 0.075


def shown(seeds: int, samples: int) -> float:
    """How often the fall that one pilot is told to be shown in four of five cases is shown."""
    random = np.random.default_rng(seeds)
    told = [detectable_fall(falls(seeds, 0.2, random), 0.0, 10) for _ in range(samples)]
    return fmean(fall_p(falls(seeds, fall / 0.7, random)) < 0.05 for fall in told if fall is not None)


@pytest.mark.parametrize("seeds", [5, 8])
def test_the_fall_that_is_told_is_shown_in_four_of_five_cases(seeds: int) -> None:
    assert shown(seeds, 600) == pytest.approx(0.8, abs=0.05)  # three standard deviations of the simulation


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 6, 7, 8, 10, 14])
def test_the_fall_that_is_told_is_shown_in_four_of_five_cases_with_any_number_of_seeds(seeds: int) -> None:
    samples, error = (4_000, 0.03) if os.environ.get("LONGSPAN_SEEDS") == "all" else (300, 0.07)
    assert shown(seeds, samples) == pytest.approx(0.8, abs=error)


def test_equal_agents_raise_no_more_alarms_from_several_seeds_of_recorded_histories(tmp_path: Path) -> None:
    """Each agent answers a history's question alike from every seed. There are ten histories, and four seeds."""
    options: dict[str, Any] = {"scenarios": ("colours",), "tests": 10, "isolated": True, "recorded": lambda number: f"{number:064}"}
    for seed in range(4):
        for agent in ("old", "new"):
            made_run(tmp_path / agent, agent, lambda scenario, number: 0.0, seed=seed, **options)
    runs = {agent: load_runs([tmp_path / agent])[0] for agent in ("old", "new")}

    def scored(run: GradedRun, scores: NDArray[np.float64]) -> GradedRun:
        tests = [test.model_copy(update={"score": score}) for test, score in zip(run.result.tests, scores.tolist(), strict=True)]
        return replace(run, result=run.result.model_copy(update={"tests": tests}))

    random = np.random.default_rng(1)
    worse = differ = 0
    for _ in range(300):
        old, new = ([scored(run, right) for run in runs[agent]] for agent in runs for right in [random.integers(0, 2, 10).astype(float)])
        found = measure_fall(new, old)
        assert (found.conversations, found.tests) == (10, 10)
        worse += found.verdict == "worse"
        differ += paired_permutation_p([each.difference for each in pair_tests(old, new)]) < 0.05
    assert worse <= 0.07 * 300
    assert differ <= 0.07 * 300


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., Path]:
    """Make runs of an agent whose score in seed n is the n-th of `scores`."""

    def made(name: str, scores: list[float | None], **options: Any) -> Path:
        for seed, score in enumerate(scores):
            made_run(tmp_path / name, name, lambda scenario, number, score=score: score, seed=seed, **options)  # type: ignore[misc]
        return tmp_path / name

    return made


HALF: list[float | None] = [0.5] * 6


@pytest.mark.parametrize(
    ("scores", "options", "code", "sentence"),
    [
        (HALF, [], 0, "not shown to be worse than the baseline: 50.0% of full marks, 50.0% before, in 198 tests of 6 paired conversations"),
        (
            [0.4] * 6,
            [],
            1,
            "worse than the baseline: 40.0% of full marks, 50.0% before, in 198 tests of 6 paired conversations (p = 0.016, o",
        ),
        ([0.4] * 6, ["--margin", "0.2"], 0, "not shown to be worse by more than 20.0% of full marks than the baseline: 40.0%"),
        ([0.1] * 6, ["--margin", "0.2"], 1, "worse by more than 20.0% of full marks than the baseline: 10.0%"),
        ([0.9] * 6, [], 0, "not shown to be worse than the baseline: 90.0% of full marks, 50.0% before"),
        (
            [0.1] * 4,
            [],
            3,
            "undecided: 4 paired conversations cannot show a fall; 5 would do, that is 1 more seed in both; 8 are recommended (10.0%",
        ),
        (
            [None] * 5,
            [],
            1,
            "worse than the baseline: 0.0% of full marks, 50.0% before, in 165 tests, 165 of them without a score in one or the other",
        ),
    ],
)
def test_the_gate_says_what_it_found_and_an_undecided_one_is_never_green(
    scores: list[float | None],
    options: list[str],
    code: int,
    sentence: str,
    runs: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = runs("old", HALF), runs("new", scores)
    assert run("compare", new, "--baseline", old, *options, "--fail-if-worse") == code
    assert run("compare", new, "--baseline", new, "--fail-if-worse") == (3 if code == 3 else 0)
    assert "several runs" not in capsys.readouterr().out
    assert run("compare", new, "--baseline", old, *options, "--fail-if-worse") == code
    assert capsys.readouterr().out.splitlines()[-1].startswith(sentence)
    assert run("compare", new, "--baseline", old, *options) == 0
    found = longspan.load(new).compare(longspan.load(old), margin=float(options[1]) if options else 0)
    assert str(found).startswith(sentence)


def test_seeds_that_only_one_has_count_for_nothing_and_none_in_common_is_undecided(
    runs: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old, new = runs("old", HALF), runs("new", [0.5] * 6 + [0.0] * 9)
    assert run("compare", new, "--baseline", old, "--fail-if-worse") == 0
    out = capsys.readouterr().out
    assert "198 tests of 6 paired conversations" in out
    assert "the seeds differ at 2k" in out
    for seed in range(20, 26):
        made_run(tmp_path / "others", "new", lambda scenario, number: 0.0, seed=seed)
    assert run("compare", tmp_path / "others", "--baseline", old, "--fail-if-worse") == 3
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == "undecided: 0 paired conversations cannot show a fall; 5 would do, that is 5 more seeds in both; 8 are recommended"


def test_questions_that_branch_from_one_history_are_one_witness(tmp_path: Path) -> None:
    results = longspan.run("history", agent="silent", tests=1, out=tmp_path)
    found = results.compare(results)
    assert (found.conversations, found.tests) == (1, len(results.tests))
    assert found.tests > 10
    (plan,) = plan_runs("history", agent="silent", tests=1)  # what pytest would make tests of
    assert {test.id for _, test in plan.manifest.graded} == set(results.tests["test"])


@pytest.mark.parametrize("format", [[], ["--format", "markdown"]])
def test_a_brief_comparison_fits_one_screen_with_the_largest_falls_first(
    format: list[str], runs: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tuple(f"s{number:02}" for number in range(40))
    old = runs("old", HALF, scenarios=names)
    for seed in range(6):
        made_run(tmp_path / "new", "x" * 60, lambda scenario, number: 0.4 - int(scenario[1:]) / 100, seed=seed, scenarios=names)

    def compare(*compared: str | Path) -> list[str]:
        capsys.readouterr()
        assert run("compare", *compared, "--brief", *format) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 23
        assert format or max(map(len, lines)) <= 80
        return lines

    sentence, *falls, cut = compare(tmp_path / "new", "--baseline", old)
    assert sentence.startswith("worse than the baseline: 20.5% of full marks, 50.0% before")
    shown = [found[0] for line in falls if (found := re.search(r"s\d\d", line))]
    assert shown == [*reversed(names)][: len(shown)]
    assert len(shown) > 10
    assert re.fullmatch(r"\d+ more lines: leave out --brief", cut)
    assert any("is better than" in line for line in compare(tmp_path / "new", old))


OTHERS = "leave out --out and other formats"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["old", "--fail-if-worse"], "--fail-if-worse: requires older runs to compare with: --baseline RUN"),
        (["old", "--margin", "0.1"], "--margin: requires older runs to compare with: --baseline RUN"),
        (["old", "--baseline", "old", "--out", "x.md"], f"--baseline: prints a sentence and a table, or Markdown; {OTHERS}"),
        (["old", "--baseline", "old", "--format", "csv"], f"--baseline: prints a sentence and a table, or Markdown; {OTHERS}"),
        *(
            (
                ["old", "--brief", *more],
                "--brief: prints one screen of text or Markdown; leave out --json, --contrasts, --out and other formats",
            )
            for more in (["--json"], ["--out", "x.md"], ["--format", "html"], ["--contrasts", "x.yaml"])
        ),
        (["old", "new", "--baseline", "old"], "the new runs are of 2 agents (new, old): name the runs of one"),
        (["old", "--baseline", "old", "--baseline", "new"], "the baseline are of 2 agents (new, old): name the runs of one"),
        (["old", "--baseline", "nowhere"], "--baseline: no run has agent 'nowhere'; there are old"),
    ],
)
def test_what_cannot_be_asked_is_an_error(
    arguments: list[str],
    error: str,
    runs: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs("old", HALF)
    runs("new", HALF)
    monkeypatch.chdir(tmp_path)
    assert run("compare", *arguments) == 2
    assert capsys.readouterr().err == f"longspan: {error}\n"


def test_a_run_below_what_is_wanted_fails_and_its_tests_are_in_the_junit_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit = tmp_path / "junit.xml"
    wanted = ["run", "ltm", "--span", "2k", "--scenario", "colours", "--scenario", "shopping", "--out", tmp_path / "runs", "--junit", junit]
    assert run(*wanted, "--fail-under", "0.9") == 1
    assert capsys.readouterr().err.endswith("% of full marks, less than --fail-under 0.9\n")
    (folder,) = (tmp_path / "runs").iterdir()
    result = read_result(RunFolder(folder))
    (suite,) = ElementTree.parse(junit).getroot()  # noqa: S314
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert {test.id for test in result.tests} == cases.keys()
    for test in result.tests:
        failures = cases[test.id].findall("failure")
        assert len(failures) == (test.score != 1)
        if failures:
            assert failures[0].get("message") == test.reason
            assert all(f"\n{what}" in (failures[0].text or "") for what in ("needle, turn ", "question, turn ", "reply: ", "ideal: "))
    assert suite.get("failures") == str(sum(test.score != 1 for test in result.tests))
    took: Counter[str | None] = Counter()
    told: dict[int, str | None] = {}
    for event in RunFolder(folder).events("main"):
        if isinstance(event, events.Message):
            told[event.turn] = event.test
        elif isinstance(event, events.Reply):
            took[told[event.turn]] += (event.measured or {})["latency_s"]
    assert {name: float(case.get("time") or -1) for name, case in cases.items()} == {
        name: pytest.approx(took[name], abs=0.001) for name in cases
    }
    assert float(suite.get("time") or -1) == pytest.approx(took.total(), abs=0.001)

    assert run(*wanted, "--agent", "oracle", "--fail-under", "1") == 0
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "0"  # noqa: S314
    assert run(*wanted[:-1], tmp_path) == 2
    assert "is a folder; name a file" in capsys.readouterr().err

    schema = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json").read_text("utf-8"))
    found = json.loads((folder / "result.json").read_text("utf-8"))
    jsonschema.validate(found, schema)
    for broken in (found | {"sum": "x"}, found | {"score": "much"}, {key: value for key, value in found.items() if key != "tests"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def test_the_published_schema_is_that_of_the_code() -> None:
    for path, text in output_schema.texts().items():
        assert path.read_text("utf-8") == text, "python -m scripts.output_schema"
