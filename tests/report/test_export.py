"""Exported tables: they hold what the runs hold, in every format."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.analysis.export import export_runs
from longspan.simulator.results.analysis.rows import TESTS, TURNS
from longspan.simulator.results.analysis.spreadsheet import write_csv
from longspan.simulator.results.graded_runs import load_runs
from tests.report.pages import altered, journal, played, replying

HOSTILE = '=HYPERLINK("http://x")\n<script>\x00\x1b, "quoted"; 1'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run of `silent`, and one of isolated tests."""
    folder = tmp_path_factory.mktemp("runs")
    return [played(folder, "colours", "prospective_memory", agent="silent"), played(folder, "colours", agent="oracle", isolated=True)]


def exported(runs: Sequence[Path], format: Any, out: Path) -> Path:
    assert export_runs(load_runs(runs)[0], format, out) == []
    return out


def read(folder: Path, format: str, table: str) -> list[dict[str, Any]]:
    """The rows of a table, with numbers as numbers and empty cells as None."""
    path = folder / f"{table}.{format}"
    if format == "parquet":
        return pyarrow.parquet.read_table(path).to_pylist()  # type: ignore[no-any-return]
    if format == "jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    kinds = TESTS if table == "tests" else TURNS
    kinds = {name: {bool: lambda text: text == "true"}.get(kind, kind) for name, kind in kinds.items()}
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: kinds[name](value) if value else None for name, value in row.items()} for row in csv.DictReader(file)]


FORMATS = ["csv", "jsonl", "parquet"]


@pytest.mark.parametrize("format", FORMATS)
def test_there_is_a_row_for_each_test_and_each_turn_with_every_column_in_order(format: str, runs: list[Path], tmp_path: Path) -> None:
    out = exported(runs, format, tmp_path / "out")
    tests, turns = read(out, format, "tests"), read(out, format, "turns")
    assert {tuple(row) for row in tests} == {tuple(TESTS)}
    assert {tuple(row) for row in turns} == {tuple(TURNS)}
    results = [json.loads((run / "result.json").read_text()) for run in runs]
    graded = [(run.name, test["id"]) for run, result in zip(runs, results, strict=True) for test in result["tests"]]
    assert [(row["run"], row["test"]) for row in tests] == graded
    messages = [
        (run.name, id, entry["turn"])
        for run in runs
        for id in RunFolder(run).manifest.conversations
        for entry in journal(run, id)
        if entry["type"] == "message"
    ]
    assert [(row["run"], row["conversation"], row["turn"]) for row in turns] == messages


@pytest.mark.parametrize("format", FORMATS)
def test_the_rows_hold_what_the_results_and_the_journal_say(format: str, runs: list[Path], tmp_path: Path) -> None:
    out = exported(runs, format, tmp_path / "out")
    for run in runs:
        result = json.loads((run / "result.json").read_text())
        rows = {row["test"]: row for row in read(out, format, "tests") if row["run"] == run.name}
        for test in result["tests"]:
            row = rows[test["id"]]
            assert (row["agent"], row["span"], row["seed"]) == (result["agent"], 2_000, 0)
            assert (row["score"], row["machine_score"], row["status"]) == (test["score"], test["machine_score"], test["status"])
            assert row["chance"] == pytest.approx(test["chance"], abs=1e-6)
            assert (row["certified"], row["at_distance"], row["exempt"]) == (test["certified"], test["at_distance"], test["exempt"])
            distances = [pair["tokens"] for pair in test["evidence"]]
            assert (row["evidence"], row["evidence_nearest"], row["evidence_furthest"]) == (len(distances), min(distances), max(distances))
            assert row["distance"] == max(pair["tokens"] for pair in test["evidence"] if pair["needed"])
            assert row["skills"] == "; ".join(test["skills"])
            assert row["reason"] == test["reason"]
    turns = [row for row in read(out, format, "turns") if row["run"] == runs[0].name]
    entries = journal(runs[0])
    for row, message in zip(turns, (entry for entry in entries if entry["type"] == "message"), strict=True):
        reply = next(entry for entry in entries if entry["type"] == "reply" and entry["turn"] == message["turn"])
        assert (row["message"], row["reply"]) == (message["text"], reply["text"])
        assert (row["kind"], row["test"], row["needle"], row["start"], row["end"]) == (
            *(message["kind"], message.get("test"), message["needle"], message["start"]),
            reply["end"],
        )
        assert (row["asked"], row["sent_at"]) == (reply["asked"], message["sent_at"])
        assert row["latency_s"] == (None if not reply.get("measured") else pytest.approx(reply["measured"]["latency_s"], abs=1e-6))
    assert {row["scenario"] for row in turns} == {None, "colours", "prospective_memory"}


@pytest.mark.parametrize("format", FORMATS)
def test_a_hostile_reply_is_exported_unchanged(format: str, runs: list[Path], tmp_path: Path) -> None:
    folder = altered(runs[0], tmp_path / "runs", replying(HOSTILE))
    out = exported([folder], format, tmp_path / "out")
    replies = [row["reply"] for row in read(out, format, "turns")]
    assert replies[1] == (f"'{HOSTILE}" if format == "csv" else HOSTILE)
    assert replies[0] == "OK."


def test_a_csv_has_no_cell_that_a_spreadsheet_runs(runs: list[Path], tmp_path: Path) -> None:
    for number, start in enumerate([*"=+-@\t\r\n＝＋－＠", "\n=", " =", "\x00\u200b=", '"=', "\u3000＝"]):
        folder = altered(runs[0], tmp_path / f"runs-{number}", replying(f"{start}a1"))
        out = exported([folder], "csv", tmp_path / f"out-{number}")
        with (out / "turns.csv").open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert [cell for cell in cells if cell.endswith("a1") and cell[0] != "'"] == []
        assert [cell for cell in cells if cell.startswith(tuple("=+-@\t\r\n"))] == []
        for line in (out / "turns.csv").read_text("utf-8").split("\n"):  # as Excel reads it where the list separator is ";"
            assert [cell for cell in line.split(";") if cell.strip(' \x00\u200b"').startswith(tuple("=+-@＝＋－＠"))] == []


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a;=b", "a;'=b"),
        (';"=b', "';\"'=b"),
        ("a\n=b", "a\n'=b"),
        ("a\t＝b", "a\t'＝b"),
        ("-5", "-5"),
        ("-5.25", "-5.25"),
        (-5, "-5"),
        ("-5;a", "'-5;a"),
        ("2 - 3; 4 = 4", "2 - 3; 4 = 4"),
        (["=a", "b;=c"], "['=a', 'b;'=c']"),
    ],
)
def test_an_apostrophe_stands_wherever_a_formula_could_begin_and_nowhere_else(text: object, cell: str) -> None:
    file = io.StringIO()
    write_csv(file, ["value"], [{"value": text}])
    assert list(csv.reader(io.StringIO(file.getvalue(), newline=""))) == [["value"], [cell]]


def test_a_heading_is_no_formula_either() -> None:
    file = io.StringIO()
    write_csv(file, ["=a"], [])
    assert file.getvalue() == "'=a\r\n"


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_runs_give_the_same_bytes(format: str, runs: list[Path], tmp_path: Path) -> None:
    first, second = (exported(runs, format, tmp_path / name) for name in ("first", "second"))
    assert sorted(path.name for path in first.iterdir()) == [f"tests.{format}", f"turns.{format}"]
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_runs_with_the_same_name_are_named_by_their_paths(runs: list[Path], tmp_path: Path) -> None:
    shutil.copytree(runs[0], tmp_path / "elsewhere" / runs[0].name)
    out = exported([runs[0], tmp_path / "elsewhere"], "jsonl", tmp_path / "out")
    assert {row["run"] for row in read(out, "jsonl", "tests")} == {str(runs[0]), str(tmp_path / "elsewhere" / runs[0].name)}


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda entries: entries[3].update(seq=99),
        lambda entries: next(entry for entry in entries if entry["type"] == "reply").update(tokens=2**70),
        lambda entries: next(entry for entry in entries if entry["type"] == "reply").update(measured={"latency_s": float("nan")}),
        lambda entries: next(entry for entry in entries if entry["type"] == "reply").update(turn=7),
    ],
    ids=["another line", "too large", "no number", "another turn"],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_journal_is_named_and_its_run_left_out(
    spoiled: Any, format: str, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = altered(runs[0], tmp_path / "runs", spoiled)
    with pytest.raises(SystemExit, match="0"):
        main(["export", str(folder), str(runs[1]), "--format", format, "--out", f"{tmp_path}/out"])
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/out: 1 run\n"
    assert printed.err.startswith(f"left out: {folder}")
    assert printed.err.count("\n") == 1
    for table in ("tests", "turns"):
        assert {row["run"] for row in read(tmp_path / "out", format, table)} == {runs[1].name}
    with pytest.raises(SystemExit, match="2"):
        main(["export", str(folder), "--format", format, "--out", f"{tmp_path}/none"])
    assert not (tmp_path / "none").exists()
    assert f"nothing can be exported: {folder}" in capsys.readouterr().err


def test_an_interrupted_conversation_keeps_its_last_message(runs: list[Path], tmp_path: Path) -> None:
    def cut(entries: list[dict[str, Any]]) -> None:
        del entries[max(n for n, entry in enumerate(entries) if entry["type"] == "message") + 1 :]

    folder = altered(runs[0], tmp_path / "runs", cut)
    last = read(exported([folder], "jsonl", tmp_path / "out"), "jsonl", "turns")[-1]
    assert last["message"]
    assert last["reply"] is None
    assert last["asked"] is None


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_a_file_that_is_named_like_its_format_holds_the_tests_and_has_the_turns_beside_it(
    format: str, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["--out", f"{tmp_path}/e.{format}"], ["--format", format, "--out", f"{tmp_path}/folder"]):
        with pytest.raises(SystemExit, match="0"):
            main(["export", str(runs[0]), *arguments])
    for file, table in ((f"e.{format}", "tests"), (f"e-turns.{format}", "turns")):
        assert (tmp_path / file).read_bytes() == (tmp_path / "folder" / f"{table}.{format}").read_bytes()
    for arguments in (["--out", f"{tmp_path}/other"], ["--format", "inspect", "--out", f"{tmp_path}/other.{format}"]):
        with pytest.raises(SystemExit, match="2"):
            main(["export", str(runs[0]), *arguments])
        assert "name the format with --format, or as the file's ending, one of .csv, .jsonl, .parquet" in capsys.readouterr().err


def test_existing_files_are_not_overwritten(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(SystemExit, match="2"):
        main(["export", str(runs[0]), "--format", "csv", "--out", f"{tmp_path}/out"])
    assert capsys.readouterr().err == f"longspan: {tmp_path}/out: already exists; choose another folder with --out\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("format", "package"), [("parquet", "pyarrow"), ("inspect", "inspect_ai")])
def test_a_package_that_is_missing_is_named_with_its_extra(
    format: str, package: str, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match="2"):
        main(["export", str(runs[0]), "--format", format, "--out", f"{tmp_path}/out"])
    assert capsys.readouterr().err == f"longspan: --format {format} needs an extra: {install_extra(format)}\n"
    assert list(tmp_path.iterdir()) == []
