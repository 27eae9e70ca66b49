"""Results in Python: figures, tables, tests as they were played, and pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas
import polars
import pytest
from tests.made_runs import made_run

import longspan
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.summary import score_interval
from longspan.simulator.results.analysis.rows import TESTS
from longspan.simulator.results.result import read_result


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> longspan.Results:
    return longspan.run("ltm", agent="notebook", span="2k", seeds=[3], out=tmp_path_factory.mktemp("runs"), progress=False)


def test_the_figures_are_those_of_the_runs_result(played: longspan.Results) -> None:
    folder = RunFolder(*played.folders)
    result = read_result(folder)
    assert result.score is not None
    assert played.score == pytest.approx(result.score, abs=1e-5)
    assert played.chance == pytest.approx(result.chance, abs=1e-5)
    assert (played.maximum, played.share) == (result.max_score, pytest.approx(result.score / result.max_score, abs=1e-5))
    interval = score_interval(folder.manifest, result.tests)
    assert interval is not None
    assert played.interval == pytest.approx((interval.low, interval.high))
    assert played.left_out == result.left_out != []
    assert repr(played).startswith(f"notebook at 2k: {result.score / result.max_score:.0%} [")
    assert f"({result.score:.2f} of {result.max_score})" in repr(played)


def test_tests_are_rows_and_dataframes_of_either_library(played: longspan.Results) -> None:
    tests = played.tests
    assert len(tests) == len(list(tests)) == 30
    assert list(tests.columns) == list(TESTS)
    scores = tests["score"]
    frames: list[Any] = [
        tests.to_pandas(),
        tests.to_polars(),
        tests.to_arrow().to_pandas(),
        pandas.DataFrame(tests),
        polars.DataFrame(tests),
    ]
    for frame in frames:
        assert list(frame.columns) == list(TESTS)
        assert frame["score"].mean() == pytest.approx(sum(scores) / 30)
        assert list(frame["scenario"]) == tests["scenario"]
    assert str(frames[0].dtypes["span"]) == "Int64"
    assert frames[0]["corrected_by"].isna().all()
    assert frames[1]["corrected_by"].null_count() == 30
    assert [row["test"] for row in tests[:3]] == tests["test"][:3]
    with pytest.raises(KeyError, match="there is no column 'sorce'; the columns are run, suite"):
        tests["sorce"]
    assert tests._repr_html_().count("<tr>") == 21
    assert "10 more rows" in tests._repr_html_()


def test_a_library_that_is_missing_is_named(played: longspan.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(longspan.InputError, match=r"^polars is not installed: pip install polars$"):
        played.tests.to_polars()


def test_failed_tests_come_with_needles_questions_replies_and_reasons(played: longspan.Results) -> None:
    failed = played.failed()
    assert [test.score for test in failed] == sorted(score for score in played.tests["score"] if score < 1)
    test = next(test for test in failed if test.scenario == "colours" or test.scenario == "shopping")
    assert test.needles
    assert test.questions[-1].ideal
    text = str(test)
    for said in (*test.needles, *test.questions):
        assert " ".join(said.text.split()) in " ".join(text.split())
    assert test.reason in " ".join(text.split())
    assert str(played.show(test.id)) == text
    assert repr(test) == f"<{played.folders[0].name}: {test.id}: {test.score:.2f}: {test.reason}>"
    with pytest.raises(longspan.InputError, match=r"there is no test 'jokse-1'; did you mean jokes-1"):
        played.show("jokse-1")


def test_pages_are_framed_and_can_do_nothing_outside_their_frame(played: longspan.Results, tmp_path: Path) -> None:
    page = played.report()
    assert page.html == (played.folders[0] / "report.html").read_text("utf-8")
    framed = page._repr_html_()
    assert re.match(r'<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;', framed, re.IGNORECASE)
    assert framed.count('"') == 6
    assert page.save(tmp_path / "page.html").read_text("utf-8") == page.html


def test_text_of_agents_is_escaped_in_notebooks(tmp_path: Path) -> None:
    results = longspan.run(
        "ltm", agent=lambda: lambda text: "<script>alert(1)</script>\x1b[31m", scenarios=["colours"], tests=1, span="2k", out=tmp_path
    )
    (test,) = results.failed()
    for page in (test._repr_html_(), results._repr_html_(), results.tests._repr_html_(), results.report()._repr_html_()):
        assert "<script>" not in page
        assert "\x1b" not in page
    assert "[U+001B]" in str(test)


def test_several_agents_spans_and_seeds_have_rows_of_scores_and_no_one_score(tmp_path: Path) -> None:
    for seed in range(3):
        made_run(tmp_path, "good", lambda scenario, number: 1.0, seed=seed)
        made_run(tmp_path, "bad", lambda scenario, number: None if number == 1 else 0.0, seed=seed)
    results = longspan.load(tmp_path)
    rows = {row["agent"]: row for row in results.scores}
    assert (rows["good"]["score"], rows["good"]["runs"], rows["good"]["share"], rows["good"]["unscored"]) == (11, 3, 1, 0)
    assert (rows["bad"]["score"], rows["bad"]["share"], rows["bad"]["unscored"]) == (None, 0, 33)
    lines = repr(results.scores).splitlines()
    assert [line.split()[0] for line in lines] == ["agent", "bad", "good"] or [line.split()[0] for line in lines] == [
        "agent",
        "good",
        "bad",
    ]
    assert len(set(map(len, lines))) == 1
    with pytest.raises(
        longspan.InputError, match=r"a single score needs one agent at one span, and these are good at 2k; bad at 2k; see `scores`"
    ):
        _ = results.score
    with pytest.raises(longspan.InputError, match=r"6 runs have test jokes-1; there are seeds 0, 1, 2: load the folder"):
        results.show("jokes-1")
    good = longspan.load(*(folder for folder, agent in zip(results.folders, agents(results), strict=True) if agent == "good"))
    assert good.score == 11
    assert good.show("jokes-1", seed=2).seed == 2
    with pytest.raises(longspan.InputError, match=r"no run with seed 7 has test jokes-1; there are seeds 0, 1, 2"):
        good.show("jokes-1", seed=7)
    assert "<svg" in results.report().html


def agents(results: longspan.Results) -> list[str]:
    return [RunFolder(folder).manifest.agent for folder in results.folders]


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """A Jupyter kernel in `tmp_path`: runs a cell, and returns what it showed, message by message."""
    from jupyter_client.manager import KernelManager

    with TemporaryDirectory() as short:  # the name of a socket has a hundred characters at most
        manager = KernelManager(transport="ipc", connection_file=f"{short}/kernel.json")
        manager.start_kernel(cwd=str(tmp_path))
        client = manager.blocking_client()
        client.start_channels()

        def run(code: str) -> list[dict[str, Any]]:
            shown: list[dict[str, Any]] = []
            client.execute_interactive(code, output_hook=lambda message: shown.append(message["content"]))
            return [content for content in shown if not content.keys() & {"execution_state", "code"}]

        try:
            client.wait_for_ready()
            yield run
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("call", ["longspan.run", "await longspan.run_async"])
def test_in_a_notebook_there_are_bars_and_cells_print_afterwards(call: str, kernel: Callable[[str], list[dict[str, Any]]]) -> None:
    *bars, printed = kernel(f"""
import longspan
results = {call}("ltm", agent="silent", span="2k", scenarios=["colours"])
print("played")
""")
    pages = [bar["data"]["text/html"] for bar in bars]
    assert "<progress value='3' max='3'></progress>" in pages[-1]
    assert "<td>3/3</td><td>0%</td>" in pages[-1]
    assert (printed["name"], printed["text"]) == ("stdout", "played\n")
    (shown,) = kernel("print(results.failed()[0])")
    assert "turn" in shown["text"]
    assert "[U+" not in shown["text"], "Rich is told to use colours"
    (shown,) = kernel("import sys; print('a warning', file=sys.stderr)")
    assert (shown["name"], shown["text"]) == ("stderr", "a warning\n")
