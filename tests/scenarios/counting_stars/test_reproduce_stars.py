"""The published figures of Counting-Stars again, from raw output files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import check_output

from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main
from longspan.simulator.results.papers import find_paper

LINE = {"answer": '{"owl": [3, 9]}', "reference_counting_results": [3, 5, 9], "sky_size": 4000, "model_name": "somebody's"}


def written(folder: Path, name: str, *lines: Any) -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)}\n" for line in lines), "utf-8")
    return file


def test_the_published_file_comes_out_as_published(counting_stars: Path) -> None:
    file = counting_stars / "stone_kimi_32_16.txt.gz"
    for given in (file, counting_stars):  # the folder has other files too
        found = find_paper("counting-stars")([given], "paper")
        cells = {(cell.table, cell.row, cell.column): cell for cell in found.cells}
        member, slot = (cells["raw", file.name, column] for column in ("membership", "slot"))
        assert len(cells) == 2
        assert (member.ours, member.published, member.n) == (round(433 / 512, 6), 0.846, 512)
        assert (slot.ours, slot.published) == (round(358 / 512, 6), None)
        raw = found.tables[0]
        assert raw.rows == [[file.name, "16", "433/512", "0.846", "0.846", "0.699"]]
        heatmap = found.tables[1]
        assert heatmap.title == f"Stars found: moonshot-v1-128k ({file.name}), 0.846"
        assert heatmap.columns == ["star", *(f"{length:,}" for length in range(8_000, 136_000, 8_000)), "mean"]
        lost = found.tables[-1]
        assert float(lost.rows[1][-1]) < 0.01 < float(lost.rows[0][-1])


def test_files_of_any_model_are_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blank = LINE | {"answer": None, "sky_size": 8000}
    file = written(tmp_path, "EN_some_3_2.jsonl", LINE, "", blank)
    (member, slot) = find_paper("counting-stars")([file], "longspan").cells
    assert (member.row, member.ours, member.published, member.n) == ("EN_some_3_2.jsonl", round(2 / 6, 6), None, 6)
    assert slot.ours == round(1 / 6, 6)
    with pytest.raises(SystemExit):
        main(["counting-stars", "reproduce", str(file), "--rules", "longspan", "--json"])
    assert [cell["ours"] for cell in check_output("counting-stars-reproduce", capsys.readouterr().out)] == [member.ours, slot.ours]


def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a", "raw.txt", LINE), written(tmp_path / "b", "raw.txt", LINE)
    rows = {cell.row for cell in find_paper("counting-stars")([one, other, one], "paper").cells}
    assert rows == {str(one), str(other)}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["nothing of the kind"], "line 1: not a JSON object"),
        ([LINE, [1, 2]], "line 2: not a JSON object"),
        (["[" * 100_000], "line 1: not a JSON object"),
        ([{"answer": "[]"}], "line 1: reference_counting_results must be a list of whole numbers"),
        ([LINE | {"reference_counting_results": [True, "3"]}], "must be a list of whole numbers"),
        ([LINE | {"reference_counting_results": []}], "must be a list of whole numbers"),
        ([LINE | {"sky_size": "long"}], "sky_size must be a whole number"),
        ([{"reference_counting_results": [3], "question": "..."}], "answer is missing; a file of questions has none"),
        ([], "the file is empty"),
    ],
)
def test_what_is_no_raw_output_is_refused(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_paper("counting-stars")([written(tmp_path, "raw.txt", *lines)], "paper")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress((json.dumps(LINE) + "\n").encode() * 1000)
    (tmp_path / "cut.txt.gz").write_bytes(whole[:-20])
    (tmp_path / "damaged.txt.gz").write_bytes(whole[:20] + b"\x00" * 20 + whole[40:])
    for name in ("cut.txt.gz", "damaged.txt.gz"):
        with pytest.raises(InputError, match=f"{name}.*(cannot be read|not a JSON object)"):
            find_paper("counting-stars")([tmp_path / name], "paper")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no raw output"):
        find_paper("counting-stars")([tmp_path / "empty"], "paper")
