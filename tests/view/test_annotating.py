"""Judging summaries in the browser: what `longspan view` writes, and which requests it refuses."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from playwright.sync_api import expect

from longspan.simulator.base.errors import JournalError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.judging.annotation import annotations_by, read_sheets
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.browser import PHONE, Open
from tests.sealing import change_json, change_lines
from tests.view.serving import Server, serving

NAME = "summhay-made-up-oracle-seed0"
PATH = f"/runs/{NAME}/annotate"
GOOD = {"by": "Ada", "test": "summhay-1-1", "claim": "i1-1", "coverage": "full", "bullet": "1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    small = load_suite("summhay").apply_changes(["documents=20", "words=100", "subtopics=1"], [], [], None)
    colours = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=2000, seed=0, agent="oracle"), out) for suite in (small, colours)])
    return out


@pytest.fixture(scope="module")
def server(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(made) as server:
        yield server


@pytest.fixture(autouse=True)
def unjudged(made: Path) -> None:
    (made / NAME / "annotations.jsonl").unlink(missing_ok=True)


def post(server: Server, form: dict[str, str] | bytes, path: str = PATH, **headers: str | None) -> tuple[int, str]:
    """The status, and the location or the text of the response."""
    return server.post(path, form, **headers)


def judged(made: Path) -> list[tuple[str, str, int | None]]:
    return [
        (answer.claim, answer.coverage, answer.bullet)
        for answers in annotations_by(RunFolder(made / NAME)).values()
        for answer in answers.values()
    ]


def test_the_answer_in_a_form_is_saved(server: Server, made: Path) -> None:
    assert post(server, GOOD) == (303, f"{PATH}?by=Ada")
    assert post(server, GOOD | {"claim": "i1-2", "coverage": "none", "skip": "2"}) == (303, f"{PATH}?by=Ada&skip=2")
    assert judged(made) == [("i1-1", "full", 1), ("i1-2", "none", None)]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": None}, 405),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://evil.example", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_forms_from_other_sites_are_refused(server: Server, made: Path, headers: dict[str, str | None], status: int) -> None:
    assert post(server, GOOD, **headers)[0] == status
    assert judged(made) == []


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"by": " "}, "by: must not be empty"),
        ({"claim": "i9-9"}, "has no claim"),
        ({"test": "../x"}, "has no claim"),
        ({"bullet": "99"}, "bullet 99 does not exist"),
        ({"bullet": "one"}, "a bullet is required for coverage full and partial"),
        ({"coverage": "most"}, "go back and choose an answer"),
        (b"\xff\xfe=1", "the form is invalid"),
        (b"&".join(b"a=%d" % number for number in range(50)), "the form is invalid"),
        (b"by=" + b"x" * 20_000, "more than 10,000 bytes"),
    ],
)
def test_an_invalid_answer_is_refused(server: Server, made: Path, form: dict[str, str] | bytes, words: str) -> None:
    status, text = post(server, GOOD | form if isinstance(form, dict) else form)
    assert status == 422
    assert words in text
    assert judged(made) == []


def test_only_runs_with_summaries_can_be_judged(server: Server, made: Path) -> None:
    listed = server.get("/").text
    assert f'href="{PATH}"' in listed
    assert listed.count("/annotate") == 1
    assert server.get("/runs/ltm-2k-oracle-seed0/annotate").status == 422
    assert post(server, GOOD, "/runs/ltm-2k-oracle-seed0/annotate")[0] == 422
    assert post(server, GOOD, "/runs/nothing/annotate")[0] == 404
    assert post(server, GOOD, "/runs/..%2f..%2fx/annotate")[0] == 405


def test_a_run_that_names_code_cannot_be_judged_and_nothing_is_written_through_a_link(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "runs")
    run = tmp_path / "runs" / NAME

    def evil(manifest: dict[str, Any]) -> None:
        manifest["suite"]["scenarios"] = {"python:evil:Evil": {}} | manifest["suite"]["scenarios"]

    target = tmp_path / "elsewhere"
    (run / "annotations.jsonl").symlink_to(target)
    with serving(tmp_path / "runs") as server:
        assert post(server, GOOD)[0] == 422
        (run / "annotations.jsonl").unlink()
        change_json(run / "manifest.json", evil)
        status, text = post(server, GOOD)
        assert status == 422
        assert "none of its tests has a sheet to annotate; its manifest names code, which is not run here" in text
    assert not target.exists()


def test_a_summary_that_cannot_be_shown_is_told(made: Path, tmp_path: Path) -> None:
    def strip(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["type"] == "open")["facts"] = {}

    run = RunFolder(Path(shutil.copytree(made / NAME, tmp_path / NAME)))
    change_lines(run.journal("summhay-1-1"), strip)
    with pytest.raises(JournalError, match=r"summhay-1-1 cannot be annotated: KeyError: 'insights' \(.*\.py:\d+\)"):
        read_sheets(run)


def test_judging_needs_the_token(server: Server, made: Path) -> None:
    assert post(server, GOOD, Cookie=None)[0] == 403
    assert judged(made) == []


def test_a_person_in_the_browser(server: Server, made: Path, visit: Open) -> None:
    known = read_sheets(RunFolder(made / NAME))["summhay-1-1"]
    visited = visit(server.at())
    page = visited.page
    page.get_by_role("link", name=f"judge {NAME}").click()
    page.get_by_label("Your name").fill("Ada & Ben")
    page.get_by_role("button", name="Begin").click()
    claims = list(known.claims.items())
    visited.picture("annotate")
    assert visited.faults() == []
    for number, (name, text) in enumerate(claims, 1):
        expect(page.get_by_role("heading", level=2)).to_have_text(text)
        if name == "i1-1":
            expect(page.locator(".bullet").first).to_have_text(re.compile(r"^\s*1\.\s+\w"))
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.get_by_role("button", name="Fully covered").click()
            expect(page.get_by_role("alert")).to_contain_text("a bullet is required")
            expect(page.get_by_role("heading", level=2)).to_have_text(text)
            visited.complaints = [told for told in visited.complaints if "422" not in told]  # the browser's own word about the response
        if name == "i1-2":
            page.get_by_role("link", name="Skip", exact=True).click()
            continue
        page.get_by_role("radio").nth(number - 1).check()
        page.get_by_role("button", name="Fully covered").click()
    expect(page.get_by_role("status")).to_contain_text("All done. Thank you, Ada & Ben.")
    expect(page.get_by_role("rowheader", name="Ada & Ben and the grader")).to_be_visible()
    assert visited.faults() == []
    page.get_by_role("button", name="Judge").click()
    expect(page.get_by_role("heading", level=2)).to_have_text(known.claims["i1-2"])
    assert len(judged(made)) == len(claims) - 1
