"""The card of a run: what it shows, in which formats, in light and dark, and that any run can be drawn."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from longspan.simulator.cli import main
from longspan.simulator.pages.report.card import DARK, draw_card
from longspan.simulator.results.graded_runs import load_runs
from tests.made_runs import made_run
from tests.report.pages import played
from tests.report.test_figures import HOSTILE


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("runs"), "colours", "jokes", "locations", agent="notebook")


def card(folder: Path) -> str:
    ((graded,), _) = load_runs([folder])
    return draw_card(graded, "svg").decode()


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - matplotlib has just written it


def texts(svg: str) -> list[str]:
    """The words in a drawn SVG: matplotlib draws outlines, and puts the words in comments."""
    return re.findall(r"<!-- (.*?) -->", svg)


def test_it_shows_agent_score_interval_lanes_and_commitment(run: Path) -> None:
    svg, ((graded,), _) = card(run), load_runs([run])
    written = texts(svg)
    assert written[:3] == ["longspan · ltm at 2,000 tokens", "notebook", f"{(graded.result.score or 0) / 3:.0%}"]
    assert any(text.startswith("95% interval ") for text in written)
    assert any("of " in text and "needles" in text for text in written)
    assert {"colours", "jokes", "locations"} <= set(written)
    assert written[-1] == f"commitment {graded.manifest.commitment}"
    assert (
        parsed(svg).findtext("{http://www.w3.org/2000/svg}title")
        == f"notebook: {graded.result.score / 3:.0%} ({graded.result.score:.2f} of 3) in ltm at 2,000 tokens; {written[-1]}"
    )
    assert svg == card(run), "the same run gives the same bytes"


def test_every_colour_has_another_where_the_screen_is_dark(run: Path) -> None:
    svg = card(run)
    used = {colour for style in re.findall(r'style="([^"]*)"', svg) for colour in re.findall(r"(?:fill|stroke): (#\w+)", style)}
    assert {"#14548f", "#990f3d"} <= used <= DARK.keys()
    for colour in used:
        assert f'[style*="fill: {colour}"]{{fill:{DARK[colour]}!important}}' in svg


def test_the_command_draws_the_card_of_one_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for out in ("card.svg", "card.png"):
        with pytest.raises(SystemExit, match="0"):
            main(["plot", str(run), "--figure", "card", "--out", f"{tmp_path}/{out}"])
    assert (tmp_path / "card.svg").read_text("utf-8") == card(run)
    assert Image.open(io.BytesIO((tmp_path / "card.png").read_bytes())).width > 1200
    capsys.readouterr()
    made_run(run.parent, "another", lambda scenario, number: 1.0)
    with pytest.raises(SystemExit, match="2"):
        main(["plot", str(run.parent), "--figure", "card", "--out", f"{tmp_path}/two.svg"])
    assert capsys.readouterr().err.count("--figure card: draws one run, not 2; name the folder of one run\n") == 1


def test_a_run_without_turns_and_with_any_name_can_be_drawn(tmp_path: Path) -> None:
    for agent in ("".join(HOSTILE), "x" * 500):
        folder = made_run(tmp_path, agent, lambda scenario, number: None, imported={"kind": "x", "file": "y", "sha256": "0" * 64})
        svg = card(folder)
        parsed(svg)
        assert "0% to 100%" in texts(svg)
        assert "0.00 to 11.00 of 11 points" in texts(svg)
        assert texts(svg)[-1] == "an imported conversation, without a commitment"
