"""docs/reference/reproduction.md tells what the commands find: a script writes it, and every table and figure of the papers has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts import reproduction
from tests.conftest import PEER_DATA, skip

from longspan.scenarios.elitr.marks import format_figure
from longspan.simulator.results.papers import find_paper

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reproduction.md"

ITEMS = {
    "GoodAI: the LTM benchmark": (5, 1),
    "Counting-Stars": (14, 1),
    "ELITR-Bench": (8, 13),
    "Summary of a Haystack": (3, 3),
    "CREAM": (2, 5),
}
"""How many figures and tables each paper has."""


def parts() -> dict[str, str]:
    """The text under each paper's heading."""
    found = re.split(r"^## (.*)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def rows(text: str) -> dict[str, list[str]]:
    """The cells of all table rows in `text`, by first cell; later tables win."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in found}


def numbers(text: str) -> list[int]:
    """The numbers in "3, 4" and "8 to 13"."""
    text = re.sub(r"(\d+) to (\d+)", lambda found: " ".join(map(str, range(int(found[1]), int(found[2]) + 1))), text)
    return [int(each) for each in re.findall(r"\d+", text)]


@pytest.mark.parametrize("title", ITEMS)
def test_every_table_and_figure_has_a_row_that_says_what_can_be_done(title: str) -> None:
    named: dict[str, set[int]] = {"Figure": set(), "Table": set()}
    for item, (_, *status) in ((item, row) for item, row in rows(parts()[title]).items() if len(row) == 2):
        for kind, those in re.findall(r"(Figure|Table)s? (\d+(?:(?:,? and|,| to) \d+)*)", item):
            named[kind] |= set(numbers(those))
            assert re.match(r"(half )?reproduced|with your data|not reproducible|as Table", status[0]), f"{item}: {status}"
    figures, tables = ITEMS[title]
    assert (named["Figure"], named["Table"]) == (set(range(1, figures + 1)), set(range(1, tables + 1)))


@pytest.fixture(scope="module")
def data() -> Path:
    folder = PEER_DATA.resolve()
    if missing := [name for name in ("goodai-ltm", "counting-stars", "elitr", "summhay") if not (folder / name).exists()]:
        skip(f"there is no published data at {folder / missing[0]}; LONGSPAN_PEER_DATA names another place")
    return folder


@pytest.mark.parametrize("page", reproduction.PAGES)
def test_the_pages_are_what_the_command_writes(data: Path, page: str) -> None:
    assert (PAGE.parent / page).read_text("utf-8") == reproduction.pages(data)[page], "python scripts/reproduction.py DATA docs/reference"


def test_the_guides_figures_of_counting_stars_are_those_of_the_command(data: Path) -> None:
    text = " ".join((PAGE.parent / "counting-stars.md").read_text("utf-8").split())
    found = find_paper("counting-stars")([data / "counting-stars" / "stone_kimi_32_16.txt.gz"], "paper").tables
    (raw,), (middle, tail) = found[0].rows, found[-1].rows
    there, elsewhere, p = float(tail[1]), float(tail[2]), float(tail[-1])
    assert f"{raw[2].replace('/', ' of ')} stars are in the answers: {raw[3]}" in text
    assert f"slot by slot it would be {raw[5]}" in text
    assert f"In the tail, {there:.2f} of the stars are found, against {elsewhere:.2f} elsewhere (p = {p:.3f})" in text
    assert f"in the middle, {float(middle[1]):.2f} against {float(middle[2]):.2f}" in text


def test_what_the_page_says_is_reproduced_comes_out_as_printed(data: Path) -> None:
    """The recorded sums of the LTM benchmark, ELITR-Bench's counts and its dev column, the stars found: all that was kept."""
    goodai = reproduction.Found("goodai-ltm", [data / "goodai-ltm" / "results"])
    for table in ("scores", "spread"):
        printed = [cell for cell in goodai.of(table) if cell.published is not None]
        assert len(printed) == 22
        for cell in printed:
            assert goodai(f"recorded_{table}", cell.row, cell.column).ours == pytest.approx(cell.published, abs=0.0501)
    elitr = reproduction.Found("elitr-bench", [data / "elitr"])
    assert [cell.ours for cell in elitr.of("table1")] == [cell.published for cell in elitr.of("table1")]
    dev = [cell for cell in elitr.of("table2") if cell.published is not None]
    assert len(dev) == 25
    assert [format_figure(cell.ours or 0) for cell in dev] == [f"{cell.published:.2f}" for cell in dev]
    (stars,) = reproduction.Found("counting-stars", [data / "counting-stars" / "stone_kimi_32_16.txt.gz"]).of("raw", "membership")
    assert round(stars.ours or 0, 3) == stars.published
