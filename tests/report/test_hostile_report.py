"""No text from an agent or a run's files changes the structure of the report."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest
from tests.report.pages import Page, altered, answering, question, reply_of, report

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]></script >",
    "</dd></dl></li></ol></main><h1>Score 11 of 11</h1>",
    '"><img src=x onerror=alert(1)>',
    "' onclick='alert(1)",
    "<!-- ",
    "--> ]]> <![CDATA[",
    "</style></title></textarea><style>*{display:none}</style>",
    "<plaintext>",
    "{{ 7 * 7 }}{% for x in y %}{# comment",
    "&lt;b&gt; &amp; &#0; &bogus \\u003c \\",
    "javascript:alert(1)",
    "# Heading\n\n```json\n{}\n```\n\ttabbed",
    "\u2028 line \u2029 separators",
    "שלום, a reply that mixes directions مرحبا",
    "a\u0300" * 300,
    "x" * 700,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reply_is_shown_unchanged_and_changes_nothing_else(woven: Path, page: Page, tmp_path: Path, text: str) -> None:
    changed = answering(woven, tmp_path, text)
    assert reply_of(changed, question(woven)) == text
    assert changed.root.one("tbody", id="test-colours-1").one("dd", class_="reply").text == text
    assert changed.root.skeleton == page.root.skeleton
    assert not changed.comments


@settings(deadline=None, max_examples=40)
@given(text=st.text(max_size=300))
def test_no_reply_changes_the_page(woven: Path, page: Page, text: str) -> None:
    text = f"-{text}-"
    with TemporaryDirectory() as folder:
        changed = answering(woven, Path(folder), text)
    assert changed.root.skeleton == page.root.skeleton
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", changed.source)
    assert reply_of(changed, question(woven)).startswith("-")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a[U+0000]b"),
        ("\x1b[31mred\x1b[0m", "[U+001B][31mred[U+001B][0m"),
        ("bell\x07 delete\x7f", "bell[U+0007] delete[U+007F]"),
        ("next\x85line", "next[U+0085]line"),
        ("user\u202etxt.exe", "user[U+202E]txt.exe"),
        ("\u2066hidden\u2069", "[U+2066]hidden[U+2069]"),
        ("not a character: \uffff", "not a character: [U+FFFF]"),
    ],
)
def test_invisible_characters_are_made_visible(woven: Path, tmp_path: Path, text: str, shown: str) -> None:
    changed = answering(woven, tmp_path, text)
    assert reply_of(changed, question(woven)) == shown
    assert shown in changed.root.one("tbody", id="test-colours-1").text


@pytest.mark.parametrize(("text", "shown"), [("", "(empty)"), (" \n\t ", "(white space)")])
def test_an_empty_reply_is_labelled(woven: Path, tmp_path: Path, text: str, shown: str) -> None:
    changed = answering(woven, tmp_path, text)
    assert reply_of(changed, question(woven)) == text
    assert shown in changed.root.one("tbody", id="test-colours-1").words


def test_a_reply_of_ten_megabytes_is_shortened_and_its_length_shown(woven: Path, page: Page, tmp_path: Path) -> None:
    text = "begin " + "<b>" * 3_333_330 + " the end"
    changed = answering(woven, tmp_path, text)
    head, tail, length = reply_of(changed, question(woven))
    assert head.startswith("begin <b><b>")
    assert tail.endswith("<b> the end")
    assert (len(head) + len(tail), length) == (20_000, len(text))
    assert len(changed.source) < len(page.source) + 200_000
    test = changed.root.one("tbody", id="test-colours-1")
    assert f"{len(text) - 800:,} of {len(text):,} characters left out; turn #{question(woven)} has more" in test.words


def test_a_trace_is_shown_as_text_and_shortened(woven: Path, page: Page, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        reply = next(entry for entry in entries if entry["type"] == "reply" and entry["turn"] == 1)
        reply["trace"] = {"</script>\u202e": ["<b>" * 20_000]}

    changed = report(altered(woven, tmp_path, change))
    assert changed.root.skeleton == page.root.skeleton
    assert len(changed.source) < len(page.source) + 200_000


def test_no_other_text_of_a_run_breaks_the_page(woven: Path, page: Page, tmp_path: Path) -> None:
    nasty = "</p></article></script><script>\x1b\u202e'\"><"

    def facts(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["type"] == "open")["facts"][nasty] = [nasty]

    def change(manifest: Manifest, result: Result) -> tuple[Manifest, Result]:
        tests = [test.model_copy(update={"reason": nasty, "skills": [f"{skill}{nasty}" for skill in test.skills]}) for test in result.tests]
        suite = manifest.suite.model_copy(update={"title": nasty, "scenarios": {nasty: {nasty: nasty}}})
        return (
            manifest.model_copy(update={"suite": suite, "filler": nasty, "versions": {nasty: nasty}}),
            result.model_copy(update={"tests": tests, "agent": nasty, "suite": nasty}),
        )

    changed = report(altered(woven, tmp_path / "first", facts), change)
    assert changed.root.skeleton == page.root.skeleton
    assert changed.source.count("<script") == page.source.count("<script")
    assert "\x1b" not in changed.source
    assert "\u202e" not in changed.source
    assert {reason.text for reason in changed.root.all("p", class_="reason")} == {"</p></article></script><script>[U+001B][U+202E]'\"><"}
    assert any("[U+202E]" in block.text for block in changed.root.all("pre"))
