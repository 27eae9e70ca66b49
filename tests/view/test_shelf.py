"""The runs in a folder: found, told apart, filtered; and nothing read that lies elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from longspan.simulator.errors import InputError
from longspan.simulator.view.run_list import Entry, MissingError, Shelf, fitting
from tests.view.conftest import ISOLATED, ORACLE, SILENT


def states(shelf: Shelf) -> dict[str, str]:
    return {entry.name: entry.state for entry in shelf.entries()}


def entry(shelf: Shelf, name: str) -> Entry:
    (found,) = (entry for entry in shelf.entries() if entry.name == name)
    return found


def test_runs_are_listed_with_their_scores_the_last_changed_first(runs: Path) -> None:
    for number, name in enumerate((SILENT, ORACLE, ISOLATED)):
        for path in (runs / name).rglob("*.json*"):
            os.utime(path, (1000 + number, 1000 + number))
    found = Shelf(runs).entries()
    assert [entry.name for entry in found] == [ISOLATED, ORACLE, SILENT]
    assert [(entry.state, entry.score, entry.most) for entry in found] == [("finished", 0, 1), ("finished", 2, 2), ("finished", 0, 2)]
    assert found[0].changed == 1002


def test_other_things_in_the_folder_are_no_runs(runs: Path) -> None:
    (runs / "README.md").write_text("runs")
    (runs / "notes").mkdir()
    (runs / ".hidden").mkdir()
    shutil.copy(runs / ORACLE / "manifest.json", runs / ".hidden")
    assert set(states(Shelf(runs))) == {ORACLE, SILENT, ISOLATED}


def test_a_run_without_results_of_its_journals_as_they_are_has_none(runs: Path) -> None:
    shelf = Shelf(runs)
    assert states(shelf)[ORACLE] == "finished"
    journal = runs / ORACLE / "conversations" / "main" / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content[: content.rindex(b'"type":"reply"') - 60])
    touched_later(journal, runs / ORACLE / "result.json")
    assert states(shelf)[ORACLE] == "no results yet"
    (runs / SILENT / "result.json").unlink()
    assert states(shelf)[SILENT] == "no results yet"


def touched_later(journal: Path, than: Path) -> None:
    later = than.stat().st_mtime_ns + 1
    os.utime(journal, ns=(later, later))


@pytest.mark.parametrize("block", [2**18, 7])
def test_a_copy_whose_files_have_other_dates_is_as_finished_as_it_was(runs: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.simulator.view.run_list.BLOCK", block)
    for name in (ORACLE, ISOLATED):
        for journal in (runs / name).rglob("journal.jsonl"):
            touched_later(journal, runs / name / "result.json")
    assert set(states(Shelf(runs)).values()) == {"finished"}
    with (runs / ORACLE / "conversations" / "main" / "journal.jsonl").open("ab") as file:
        file.write(b'{"seq":9999,"type":"reply","turn":9')  # being written
    touched_later(runs / ORACLE / "conversations" / "main" / "journal.jsonl", runs / ORACLE / "result.json")
    assert states(Shelf(runs))[ORACLE] == "finished"


def test_a_run_that_was_broken_off_is_told(runs: Path) -> None:
    path = runs / ORACLE / "result.json"
    path.write_text(path.read_text().replace('"status": "scored"', '"status": "unfinished"', 1))
    assert states(Shelf(runs))[ORACLE] == "broken off"


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("manifest.json", b"{", "not a manifest"),
        ("manifest.json", b"\xff\x00" * 1000, "not a manifest"),
        ("result.json", b"[]", "not results of this version"),
        ("result.json", b"1" * 100_000, "not results of this version"),
    ],
)
def test_a_damaged_run_is_listed_as_such_and_the_others_as_ever(runs: Path, file: str, content: bytes, why: str) -> None:
    (runs / ORACLE / file).write_bytes(content)
    os.utime(runs / ORACLE / file)
    found = entry(Shelf(runs), ORACLE)
    assert found.state == "damaged"
    assert why in found.why
    assert states(Shelf(runs))[SILENT] == "finished"


def test_results_of_another_run_are_damage(runs: Path) -> None:
    shutil.copy(runs / SILENT / "result.json", runs / ORACLE / "result.json")
    assert "its result.json is not of its manifest" in entry(Shelf(runs), ORACLE).why


@pytest.mark.parametrize("file", ["manifest.json", "result.json", "incidents.jsonl", "conversations", "conversations/main"])
def test_what_is_a_link_is_not_followed(runs: Path, tmp_path: Path, file: str) -> None:
    path = runs / ORACLE / file
    elsewhere = tmp_path / "elsewhere"
    if path.exists():
        shutil.move(path, elsewhere)
    else:
        elsewhere.write_text("{}\n")
    path.symlink_to(elsewhere)
    shelf = Shelf(runs)
    with pytest.raises(InputError, match="is a link; what lies elsewhere is not shown"):
        shelf.run(ORACLE)
    assert states(shelf)[ORACLE] == "damaged"


def test_a_journal_that_is_a_link_is_not_followed(runs: Path, tmp_path: Path) -> None:
    path = runs / ORACLE / "conversations" / "main" / "journal.jsonl"
    shutil.move(path, tmp_path / "journal.jsonl")
    path.symlink_to(tmp_path / "journal.jsonl")
    with pytest.raises(InputError, match=r"journal\.jsonl: is a link"):
        Shelf(runs).run(ORACLE)


def test_a_run_that_is_a_link_is_no_run(runs: Path, tmp_path: Path) -> None:
    shutil.move(runs / ORACLE, tmp_path / "elsewhere")
    (runs / ORACLE).symlink_to(tmp_path / "elsewhere")
    assert ORACLE not in states(Shelf(runs))
    with pytest.raises(MissingError):
        Shelf(runs).run(ORACLE)


def test_a_name_that_is_no_text_is_told(runs: Path) -> None:
    (runs / ORACLE).rename(runs / os.fsdecode(b"\xff"))
    (found,) = (entry for entry in Shelf(runs).entries() if entry.state == "damaged")
    assert found.why == r"'\udcff': a run's name has to be text; rename its folder"


def test_a_pipe_is_not_waited_for(runs: Path) -> None:
    (runs / ORACLE / "manifest.json").unlink()
    os.mkfifo(runs / ORACLE / "manifest.json")
    assert "is no file" in entry(Shelf(runs), ORACLE).why


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../runs", f"{ORACLE}/..", f"../{ORACLE}", "/etc", "nothing", "a\0b", f"{ORACLE}/conversations"]
)
def test_a_name_leads_to_a_run_in_the_folder_or_nowhere(made: Path, name: str) -> None:
    with pytest.raises(MissingError, match="there is no such run"):
        Shelf(made).run(name)


def test_the_folder_has_to_be_one_that_runs_land_in(made: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        Shelf(made / "nothing")
    with pytest.raises(InputError, match="is a run's folder; name the folder that it lies in"):
        Shelf(made / ORACLE)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, {ORACLE, SILENT, ISOLATED, "broken"}),
        ({"agent": "silent"}, {SILENT, ISOLATED}),
        ({"agent": "silent", "text": "ISOLATED"}, {ISOLATED}),
        ({"span": "2000", "suite": "ltm"}, {ORACLE, SILENT, ISOLATED}),
        ({"span": "32000"}, set()),
        ({"suite": "other"}, set()),
        ({"text": "woven"}, {ORACLE, SILENT, ISOLATED}),
        ({"text": "brok"}, {"broken"}),
    ],
)
def test_filters_leave_what_is_asked_for(runs: Path, wanted: dict[str, str], names: set[str]) -> None:
    (runs / "broken").mkdir()
    (runs / "broken" / "manifest.json").touch()
    given = {"suite": "", "span": "", "agent": "", "text": ""} | wanted
    assert {entry.name for entry in fitting(Shelf(runs).entries(), **given)} == names
