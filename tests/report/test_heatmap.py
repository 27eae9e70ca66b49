"""Heatmaps: which tables become one, and that they are reproducible."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import trio
from PIL import Image

from longspan.simulator.base.tables import Table
from longspan.simulator.cli import main
from longspan.simulator.pages.report.figures import FORMATS
from longspan.simulator.pages.report.heatmap import draw_heatmaps, find_heatmaps
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite


def table(rows: int, columns: int, *, name: str = "Scores") -> Table:
    """A table whose first column has the rows' labels. All others but the last are shaded, except for one cell."""
    shades: list[list[float | None]] = [[None, *((row + at) % 5 / 4 for at in range(columns)), None] for row in range(rows)]
    if rows:
        shades[0][1] = None
    cells = [[f"{row},000", *("" if shade is None else f"{shade:g}" for shade in line[1:-1]), "mean"] for row, line in enumerate(shades)]
    return Table(title=name, columns=["context", *map(str, range(1, columns + 1)), "all"], rows=cells, shades=shades)


def test_tables_with_three_shaded_columns_become_heatmaps() -> None:
    plain = Table(title="plain", columns=["a", "b"], rows=[["1", "2"]])
    blank = Table(title="blank", columns=["a", "b", "c", "d"], rows=[["1", "2", "3", "4"]], shades=[[None] * 4])
    large = table(4, 3)
    assert find_heatmaps([plain, blank, table(4, 2), large, table(0, 9)]) == [large]


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_tables_give_the_same_bytes(format: str) -> None:
    tables = [table(2, 3), table(5, 8, name="名字 $a$ <b>")]
    first, again = (draw_heatmaps(tables, format) for _ in range(2))  # type: ignore[arg-type]  # one of the three
    assert first == again
    if format == "png":
        assert Image.open(io.BytesIO(first)).width > 500


def test_a_large_heatmap_is_drawn_in_a_figure_of_bounded_size() -> None:
    picture = Image.open(io.BytesIO(draw_heatmaps([table(128, 1024)], "png")))
    assert max(picture.size) < 3000


def test_the_command_draws_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, settings in {"stars": ["variant=4-3", "max_context=1k"], "colours": []}.items():
        suite = load_suite("counting-stars" if settings else "ltm").apply_changes(settings, [], [] if settings else ["colours"], None)
        trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=2000, seed=0, agent="oracle"), tmp_path / name)])
    for arguments, code in (
        (["stars", "--figure", "heatmap", "--out", "one.svg"], "0"),
        (["stars", "--out", "all"], "0"),
        (["colours", "--figure", "heatmap", "--out", "none.svg"], "2"),
    ):
        with pytest.raises(SystemExit, match=code):
            main(["plot", *arguments])
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "all/heatmap.svg").read_bytes()
    assert "--figure heatmap: no scenario of these runs has a shaded table" in capsys.readouterr().err


def test_the_command_draws_what_was_published_with_a_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"answer": "[3, 9]", "reference_counting_results": [3, 5, 9], "model_name": "somebody's"}
    raw = tmp_path / "raw.txt"
    raw.write_text("".join(json.dumps(line | {"sky_size": size}) + "\n" for size in (1000, 2000, 3000)), "utf-8")
    drawn, again = tmp_path / "one.svg", tmp_path / "two.svg"
    for path in (drawn, again):
        with pytest.raises(SystemExit, match="0"):
            main(["counting-stars", "reproduce", str(raw), "--heatmap", str(path)])
    assert drawn.read_bytes() == again.read_bytes()
    assert capsys.readouterr().out.endswith(f"{again}\n")
    for wrong, said in (
        (["counting-stars", "reproduce", str(raw), "--heatmap", str(tmp_path / "all")], "the name must end in .svg, .png, .pdf"),
        (["cream", "reproduce", "--heatmap", str(tmp_path / "no.svg")], "have no shaded table"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(wrong)
        shown = capsys.readouterr()
        assert said in shown.err
        assert "│" not in shown.out, "nothing is printed before it fails"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.svg", "raw.txt", "two.svg"]
