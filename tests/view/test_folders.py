"""Sweeps and other folders below the list of runs: what is listed, what can be opened, and that nothing outside is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from longspan.simulator.base.errors import InputError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.arranging import columns_in_names
from longspan.simulator.pages.view.folder_list import MAX_DEPTH, FolderList
from longspan.simulator.pages.view.following import lengths_of
from longspan.simulator.pages.view.run_list import ListedRun, MissingError, RunList
from longspan.simulator.play.dry_run import dry_run
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import replan_run, setting_of
from tests.report.pages import played
from tests.view.conftest import ISOLATED, ORACLE, SILENT
from tests.view.serving import Server, serving


@pytest.fixture(scope="module")
def tree(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, a sweep of two, a folder with a folder of runs, and folders that are not to be found."""
    root = tmp_path_factory.mktemp("tree")
    runs = root / "runs"
    shutil.copytree(made / ISOLATED, runs / ISOLATED)
    for name in (ORACLE, SILENT):
        shutil.copytree(made / name, runs / "night & <b>" / name)
        shutil.copytree(made / name, runs / "older" / "may" / name)
    (runs / "night & <b>" / "sweep.json").write_text("[]")
    shutil.copytree(made / ORACLE, root / "outside" / ORACLE)
    shutil.copytree(made / ORACLE, runs / ".hidden" / ORACLE)
    shutil.copytree(made / ORACLE, runs / "/".join("deep"[: MAX_DEPTH + 1]) / "er" / ORACLE)
    (runs / "linked").symlink_to(root / "outside")
    (runs / "older" / "up").symlink_to(root)
    (runs / "empty").mkdir()
    return runs


@pytest.fixture(scope="module")
def below(tree: Path) -> Iterator[Server]:
    with serving(tree) as server:
        yield server


def test_folders_with_runs_are_listed_in_one_row_each(tree: Path) -> None:
    night, older = FolderList(RunList(tree)).entries()
    assert (night.name, night.sweep, night.runs, night.own, night.graded) == ("night & <b>", True, 2, 2, 2)
    assert (night.suites, night.spans, night.agents) == (["ltm"], [2000], ["oracle", "silent"])
    assert (older.name, older.sweep, older.runs, older.own) == ("older", False, 2, 0)
    (may,) = FolderList(RunList(tree)).entries("older")
    assert (may.name, may.short, may.own) == ("older/may", "may", 2)


def test_a_damaged_manifest_and_one_that_is_a_link_are_counted_and_not_read(tree: Path, tmp_path: Path) -> None:
    runs = Path(shutil.copytree(tree / "older" / "may", tmp_path / "runs" / "may")).parent
    (runs / "may" / ORACLE / "manifest.json").write_text("{")
    shutil.move(runs / "may" / SILENT / "manifest.json", tmp_path)
    (runs / "may" / SILENT / "manifest.json").symlink_to(tmp_path / "manifest.json")
    (may,) = FolderList(RunList(runs)).entries()
    assert (may.runs, may.suites, may.agents) == (2, [], [])


@pytest.mark.parametrize(
    "folder",
    ["..", ".", "older/..", "older/../..", "/etc", "older//may", "older/", "linked", "older/up", ".hidden", ISOLATED, "a\0b", "no"],
)
def test_no_name_of_a_folder_leads_out_of_the_list(tree: Path, folder: str) -> None:
    runs = RunList(tree)
    for opened in (runs.entries, FolderList(runs).entries, lambda name: runs.run(f"{name}/{ORACLE}")):
        with pytest.raises(MissingError):
            opened(folder)


def test_a_sweep_leads_to_its_results_and_a_folder_to_its_runs(below: Server) -> None:
    listed = below.get("/").text
    assert '<a class="name" href="/compare?in=night%20%26%20%3Cb%3E">night &amp; &lt;b&gt;</a>' in listed
    assert '<a class="name" href="/?in=older">older</a>' in listed
    assert not any(name in listed for name in (".hidden", "linked", "outside"))
    compared = below.get("/compare?in=night%20%26%20%3Cb%3E")
    assert compared.status == 200
    assert "<h1>night &amp; &lt;b&gt;: ltm: 2 agents compared</h1>" in compared.text
    inside = below.get("/?in=older/may").text
    assert f'href="/runs/older/may/{ORACLE}/report"' in inside
    assert '<li><a href="/?in=older">older</a></li>' in inside


def test_runs_in_folders_are_opened_and_lead_back(below: Server) -> None:
    report = below.get(f"/runs/older/may/{ORACLE}/report")
    assert report.status == 200
    assert '<a href="/?in=older%2Fmay">All runs</a>' in report.text
    assert below.get(f"/runs/older%2Fmay%2F{ORACLE}/live").status == 200
    beside = below.get(f"/side-by-side?run=older/may/{ORACLE}&run=older/may/{SILENT}&test=colours-1")
    assert f'href="/runs/older/may/{ORACLE}/report#test-colours-1"' in beside.text


def test_a_test_side_by_side_names_agents_by_what_distinguishes_them(tmp_path: Path) -> None:
    names = [played(tmp_path, "colours", agent=f"memory/{name}?answerer=none", tests=1).name for name in ("bm25", "recent")]
    with serving(tmp_path) as server:
        text = server.get(f"/side-by-side?run={names[0]}&run={names[1]}&test=colours-1").text.replace("<wbr>", "")
    for name in ("bm25", "recent"):
        assert text.count(f"<bdi>{name}</bdi>") > 2, "a reply in each turn"
        assert f">{name}: ltm-2k-memory-{name}" in text, "the choice of a run begins with it"
        assert text.count(f"<bdi>memory/{name}?answerer=none</bdi>") == 1, "the whole spec is in the result"


@pytest.mark.parametrize(
    "path",
    [
        *("/?in=..", "/?in=linked", "/?in=.hidden", "/compare?in=linked", "/compare?in=../outside", "/compare?in=no", "/compare.csv?in=.."),
        *(f"/runs/linked/{ORACLE}/report", f"/runs/older/up/outside/{ORACLE}/report", f"/runs/.hidden/{ORACLE}/result.json"),
        *(f"/runs/older/may/{ORACLE}/manifest.json", f"/runs/{ISOLATED}/conversations/report", "/compare.exe?in=older/may"),
    ],
)
def test_nothing_else_of_a_folder_is_served(below: Server, path: str) -> None:
    assert below.get(path).status == 404


def test_figures_are_downloaded_as_csv_and_json(below: Server, tree: Path) -> None:
    query = f"run=older/may/{ORACLE}&run=older/may/{SILENT}"
    table = below.get(f"/compare.csv?{query}")
    assert (table.headers["content-type"], table.text.partition(",")[0]) == ("text/csv; charset=utf-8", "table")
    assert table.headers["content-disposition"] == 'attachment; filename="comparison.csv"'
    figures = json.loads(below.get(f"/compare.json?{query}").body)
    assert (figures["suite"], figures["agents"], figures["runs"]) == ("ltm", ["oracle", "silent"], 2)
    results = below.get(f"/runs/{ISOLATED}/result.json")
    assert results.headers["content-disposition"] == f'attachment; filename="{ISOLATED}.json"'
    assert Result.model_validate_json(results.body).score == 0
    card = below.get(f"/runs/{ISOLATED}/card.svg")
    assert (card.headers["content-type"], card.headers["content-disposition"]) == (
        "image/svg+xml",
        f'attachment; filename="{ISOLATED}.svg"',
    )
    for answer in (table, results, card):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_run_that_is_being_played_leads_from_its_report_to_its_live_page(made: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = RunFolder(Path(shutil.copytree(made / ORACLE, runs / ORACLE)))
    with serving(runs) as server, run.lock():
        assert f'<a class="live" href="/runs/{ORACLE}/live">Running: follow it</a>' in server.get(f"/runs/{ORACLE}/report").text
        (run.path / "result.json").unlink()
        answer = server.get(f"/runs/{ORACLE}/report")
        assert (answer.status, answer.headers["location"]) == (303, f"/runs/{ORACLE}/live")


def test_the_lengths_of_a_played_runs_conversations_are_those_of_the_terminal(made: Path) -> None:
    manifest = RunFolder(made / ORACLE).manifest
    planned = replan_run(manifest, "silent", made)
    assert lengths_of(manifest) == {id: dry_run(setting_of(manifest, id), tests) for id, tests in planned.tests.items()}


def test_no_code_and_no_file_that_a_manifest_names_is_used_to_measure_it(made: Path) -> None:
    manifest = RunFolder(made / ORACLE).manifest
    suite = manifest.suite.model_copy(update={"scenarios": {"python:evil:Evil": {}}})
    assert lengths_of(manifest.model_copy(update={"suite": suite})) is None
    assert lengths_of(manifest.model_copy(update={"filler": Path("/etc/passwd")})) is None
    with pytest.raises(InputError):
        lengths_of(manifest.model_copy(update={"seed": 7}))


def test_columns_that_the_names_tell_are_left_out(made: Path) -> None:
    manifest = RunFolder(made / ORACLE).manifest
    named = ListedRun(f"may/{ORACLE}", "finished", 1.0, manifest)
    assert columns_in_names([named]) == {"suite", "span", "seed", "agent"}
    assert columns_in_names([named, ListedRun("ltm-2k-oracle-seed10", "finished", 1.0, manifest)]) == {"suite", "span", "agent"}
    assert columns_in_names([ListedRun("mine", "finished", 1.0, manifest)]) == set()
    vectors = manifest.model_copy(update={"agent": "memory/bm25?answerer=words"})
    assert "agent" in columns_in_names([ListedRun("ltm-2k-memory-bm25-answerer-words-seed0", "finished", 1.0, vectors)])
