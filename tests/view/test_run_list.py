"""The list of runs: their states, filters, and that nothing outside the folder is read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from threading import Event, Thread

import pytest

from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.base.files.locks import is_locked, lock_folder
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.arranging import in_order
from longspan.simulator.pages.view.run_list import ListedRun, MissingError, RunList, filter_runs
from longspan.simulator.results.analysis.changes import list_changed_options, list_chosen_scenarios
from longspan.simulator.suite.suite import load_suite
from tests.sealing import change_json
from tests.view.conftest import ISOLATED, ORACLE, SILENT


def states(run_list: RunList) -> dict[str, str]:
    return {entry.name: entry.state for entry in run_list.entries()}


def entry(run_list: RunList, name: str) -> ListedRun:
    (entry,) = (entry for entry in run_list.entries() if entry.name == name)
    return entry


def test_runs_are_listed_with_their_scores_the_most_recent_first(runs: Path) -> None:
    for number, name in enumerate((SILENT, ORACLE, ISOLATED)):
        for path in (runs / name).rglob("*.json*"):
            os.utime(path, (1000 + number, 1000 + number))
    entries = RunList(runs).entries()
    assert [entry.name for entry in entries] == [ISOLATED, ORACLE, SILENT]
    assert [(entry.state, entry.score, entry.max_score) for entry in entries] == [
        ("finished", 0, 1),
        ("finished", 2, 2),
        ("finished", 0, 2),
    ]
    assert entries[0].changed == 1002


def test_other_files_and_folders_are_not_listed(runs: Path) -> None:
    (runs / "README.md").write_text("runs")
    (runs / "notes").mkdir()
    (runs / ".hidden").mkdir()
    shutil.copy(runs / ORACLE / "manifest.json", runs / ".hidden")
    assert set(states(RunList(runs))) == {ORACLE, SILENT, ISOLATED}


def test_results_older_than_the_journal_do_not_count(runs: Path) -> None:
    run_list = RunList(runs)
    assert states(run_list)[ORACLE] == "finished"
    journal = runs / ORACLE / "conversations" / "main" / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content[: content.rindex(b'"type":"reply"') - 60])
    touch_later(journal, runs / ORACLE / "result.json")
    assert states(run_list)[ORACLE] == "stopped"
    (runs / SILENT / "result.json").unlink()
    assert states(run_list)[SILENT] == "stopped"


def test_whether_a_run_is_being_played_is_read_from_its_lock(runs: Path) -> None:
    run_list, run = RunList(runs), RunFolder(runs / ORACLE)
    (runs / ORACLE / "result.json").unlink()
    with run.lock():
        playing = entry(run_list, ORACLE)
        assert (playing.state, playing.ended, playing.tests) == ("running", 4, 4)
    assert entry(run_list, ORACLE).state == "stopped"
    shutil.rmtree(runs / ORACLE / "conversations")
    assert entry(run_list, ORACLE).state == "stopped"
    with lock_folder(runs, "sweep"):
        assert entry(run_list, ORACLE).state == "waiting"


def test_looking_at_a_lock_never_keeps_a_run_from_being_played(tmp_path: Path) -> None:
    over = Event()

    def look() -> None:
        while not over.is_set():
            is_locked(tmp_path)

    looking = Thread(target=look)
    looking.start()
    try:
        for _ in range(500):
            with lock_folder(tmp_path, "run"):
                pass
    finally:
        over.set()
        looking.join()


def test_progress_counts_the_tests_that_have_ended_as_the_journal_grows(runs: Path) -> None:
    (runs / ORACLE / "result.json").unlink()
    journal = runs / ORACLE / "conversations" / "main" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if b'"type":"end"' in line]
    run_list, found = RunList(runs), []
    for last in (ends[0], ends[1] + 1, len(lines)):
        journal.write_bytes(b"".join(lines[:last]))
        found.append(entry(run_list, ORACLE).ended)
    assert found == [0, 2, 4]


def test_what_differs_from_the_suite_is_told(made: Path) -> None:
    manifest = RunFolder(made / ISOLATED).manifest
    assert list_chosen_scenarios(manifest) == ["colours"]
    assert list_changed_options(manifest) == ["isolated", "2 tests each"]
    scenarios = load_suite("ltm").scenarios | {"colours": {"changes": 8}}
    whole = manifest.model_copy(update={"suite": load_suite("ltm").model_copy(update={"scenarios": scenarios}), "judge": "x" * 99})
    assert list_chosen_scenarios(whole) == []
    assert list_changed_options(whole) == ["isolated", f"judge {'x' * 59}…", "colours.changes 8"]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("run", ["a2", "a10"]),
        ("-run", ["a10", "a2"]),
        ("seed", ["a10", "a2"]),
        ("cost", ["a2", "a10"]),
        ("changed", ["a2", "a10"]),
        ("nonsense", ["a10", "a2"]),
    ],
)
def test_orders(made: Path, order: str, names: list[str]) -> None:
    manifest = RunFolder(made / ORACLE).manifest
    entries = [
        ListedRun("a10", "stopped", 1.0, manifest.model_copy(update={"seed": 1})),
        ListedRun("a2", "stopped", 2.0, manifest.model_copy(update={"seed": 3}), cost=0.5),
    ]
    assert [entry.name for entry in in_order(entries, order)] == names


def touch_later(journal: Path, than: Path) -> None:
    later = than.stat().st_mtime_ns + 1
    os.utime(journal, ns=(later, later))


@pytest.mark.parametrize("block", [2**18, 7])
def test_a_copied_run_with_other_dates_stays_finished(runs: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.simulator.pages.view.run_list.BLOCK", block)
    for name in (ORACLE, ISOLATED):
        for journal in (runs / name).rglob("journal.jsonl"):
            touch_later(journal, runs / name / "result.json")
    assert set(states(RunList(runs)).values()) == {"finished"}
    with (runs / ORACLE / "conversations" / "main" / "journal.jsonl").open("ab") as file:
        file.write(b'{"seq":9999,"type":"reply","turn":9')  # a line being written
    touch_later(runs / ORACLE / "conversations" / "main" / "journal.jsonl", runs / ORACLE / "result.json")
    assert states(RunList(runs))[ORACLE] == "finished"


def test_an_interrupted_run_is_listed_as_such(runs: Path) -> None:
    path = runs / ORACLE / "result.json"
    change_json(path, lambda result: result["tests"][0].update(status="unfinished"))
    assert states(RunList(runs))[ORACLE] == "interrupted"


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("manifest.json", b"{", "it has no checksum"),
        ("manifest.json", b"\xff\x00" * 1000, "it has no checksum"),
        ("result.json", b"[]", "it has no checksum"),
        ("result.json", b"1" * 100_000, "it has no checksum"),
        ("conversations/main/journal.jsonl", b"{}\n", "damaged at line 1: it has no checksum"),
    ],
)
def test_a_damaged_run_is_listed_as_such(runs: Path, file: str, content: bytes, why: str) -> None:
    (runs / ORACLE / file).write_bytes(content)
    os.utime(runs / ORACLE / file)
    damaged = entry(RunList(runs), ORACLE)
    assert damaged.state == "damaged"
    assert why in damaged.why
    assert states(RunList(runs))[SILENT] == "finished"


def test_results_of_another_run_are_damage(runs: Path) -> None:
    shutil.copy(runs / SILENT / "result.json", runs / ORACLE / "result.json")
    assert "result.json: it is of another run, '" in entry(RunList(runs), ORACLE).why


@pytest.mark.parametrize("file", ["manifest.json", "result.json", "incidents.jsonl", "conversations", "conversations/main"])
def test_links_are_not_followed(runs: Path, tmp_path: Path, file: str) -> None:
    path = runs / ORACLE / file
    elsewhere = tmp_path / "elsewhere"
    if path.exists():
        shutil.move(path, elsewhere)
    else:
        elsewhere.write_text("{}\n")
    path.symlink_to(elsewhere)
    run_list = RunList(runs)
    with pytest.raises(JournalError, match="is a symbolic link"):
        run_list.run(ORACLE)
    assert states(run_list)[ORACLE] == "damaged"


def test_a_journal_that_is_a_link_is_not_followed(runs: Path, tmp_path: Path) -> None:
    path = runs / ORACLE / "conversations" / "main" / "journal.jsonl"
    shutil.move(path, tmp_path / "journal.jsonl")
    path.symlink_to(tmp_path / "journal.jsonl")
    with pytest.raises(JournalError, match=r"journal\.jsonl: is a symbolic link"):
        RunList(runs).run(ORACLE)


def test_a_link_to_a_run_is_not_listed(runs: Path, tmp_path: Path) -> None:
    shutil.move(runs / ORACLE, tmp_path / "elsewhere")
    (runs / ORACLE).symlink_to(tmp_path / "elsewhere")
    assert ORACLE not in states(RunList(runs))
    with pytest.raises(MissingError):
        RunList(runs).run(ORACLE)


def test_a_name_that_is_not_unicode_is_damage(runs: Path) -> None:
    (runs / ORACLE).rename(runs / os.fsdecode(b"\xff"))
    (damaged,) = (entry for entry in RunList(runs).entries() if entry.state == "damaged")
    assert damaged.why == r"'\udcff': a run's name must be valid Unicode; rename its folder"


def test_a_named_pipe_is_not_read(runs: Path) -> None:
    (runs / ORACLE / "manifest.json").unlink()
    os.mkfifo(runs / ORACLE / "manifest.json")
    assert "is not a regular file" in entry(RunList(runs), ORACLE).why


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../runs", f"{ORACLE}/..", f"../{ORACLE}", "/etc", "nothing", "a\0b", f"{ORACLE}/conversations"]
)
def test_no_name_leads_out_of_the_folder(made: Path, name: str) -> None:
    with pytest.raises(MissingError, match="no such"):
        RunList(made).run(name)


def test_the_folder_must_exist_and_not_be_a_run(made: Path) -> None:
    with pytest.raises(InputError, match="folder does not exist"):
        RunList(made / "nothing")
    with pytest.raises(InputError, match="is a run; give the folder that contains it"):
        RunList(made / ORACLE)


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
def test_filters(runs: Path, wanted: dict[str, str], names: set[str]) -> None:
    (runs / "broken").mkdir()
    (runs / "broken" / "manifest.json").touch()
    given = {"suite": "", "span": "", "agent": "", "text": ""} | wanted
    assert {entry.name for entry in filter_runs(RunList(runs).entries(), **given)} == names
