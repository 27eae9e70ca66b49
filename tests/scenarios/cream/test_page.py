"""An arena's page: who has which fact, whatever the texts in it are."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.browser import PHONE, Open
from tests.report.pages import Page

from longspan.scenarios.cream.arena_page import POLICY, as_html
from longspan.scenarios.cream.arena_result import ArenaResult, Check, Comparison, Rules, Side
from longspan.scenarios.cream.ranking import rank_systems

NASTY = "</td></table></details></script><script>alert(1)</script>\x1b\u202e'\"><img src=x onerror=alert(1)>{{ 7*7 }}"


def result(text: str = "plain", *, undecided: str = "") -> ArenaResult:
    """Two systems on a source: one has both facts, the other one of two; with a text wherever somebody else's can stand."""
    names = (f"one {text}", f"other {text}")
    sides = [Side(system=names[0], cited=[[1], [1, 2]]), Side(system=names[1], cited=[None, []])]
    compared = [
        Comparison(source=f"s {text}", systems=names, facts=[f"first {text}", f"second {text}"], sides=sides),
        Comparison(source=f"s {text}", systems=names[::-1], facts=[text] if undecided else [], undecided=undecided or f"failed {text}"),
    ]
    written = {f"s {text}": {names[0]: [f"A {text}", f"B {text}", f"C {text}"], names[1]: [f"D {text}"]}}
    pairs = [(f"s {text}", names)]
    rules = Rules(metric="completeness", facts=16, orders=5)
    return rank_systems(rules, judge=f"j {text}", systems=names, sentences=written, pairs=pairs, comparisons=compared, notes=[text])


def read(found: ArenaResult) -> Page:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(as_html(found), "utf-8")
        return Page(path)


def test_it_shows_side_by_side_what_each_summary_has_and_lacks() -> None:
    page = read(result())
    rows = [[cell.words for cell in row.all("th") + row.all("td")] for row in page.root.one("table", class_="facts").all("tr")]
    assert rows == [
        ["key fact", "one plain", "other plain"],
        ["first plain", "✓ 1", "✗ missing"],
        ["second plain", "✓ 1, 2", "✓ included"],
    ]
    unused = [each.words for each in page.root.all("details")[0].all("li", class_="unused")]
    assert unused == ["C plain", "D plain"]
    assert "undecided" in page.root.all("details")[1].words
    assert "failed plain" in page.root.all("details")[1].words
    assert any("one plain" in row.words and "100.0%" in row.words for row in page.root.all("tr"))


def test_it_is_closed_to_everything_outside() -> None:
    page = read(result())
    assert page.root.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"] == POLICY
    assert "script-src 'none'" in POLICY
    assert not page.root.all("script")


@settings(max_examples=30)
@given(text=st.text(max_size=60) | st.just(NASTY))
def test_no_text_changes_it(text: str) -> None:
    # A name that is only white space at its end is still another name.
    changed, plain = read(result(f"-{text}-")), read(result("-"))
    assert changed.root.skeleton == plain.root.skeleton
    assert not changed.comments
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", changed.source)


def test_checked_sentences_are_shown_with_what_is_wrong() -> None:
    written = {"s": {"a": ["It rained."], "b": ["It snowed.", "It rained."]}}
    checks = [Check(source="s", system="a", undecided="failed"), Check(source="s", system="b", errors=["it did not snow", None])]
    rules = Rules(metric="faithfulness", facts=16, orders=5)
    found = rank_systems(rules, judge="j", systems=["a", "b"], sentences=written, pairs=[("s", ("a", "b"))], checks=checks)
    first, second = read(found).root.all("details")
    assert "undecided" in first.words
    assert "1 error" in second.words
    assert [each.words for each in second.all("li")] == ["It snowed. ✗ it did not snow", "It rained."]


def test_it_opens_without_a_fault(visit: Open, tmp_path: Path) -> None:
    path = tmp_path / "arena.html"
    path.write_text(as_html(result(NASTY)), "utf-8")
    seen = visit(path)
    seen.picture("arena", whole=True)
    assert seen.faults() == []
    phone = visit(path, viewport=PHONE, is_mobile=True)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    phone.picture("arena-phone", whole=True)
