"""The report of a run as a page: its structure, its policy, its colours."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.pages import Element, Page, data_of, report


def test_its_structure_is_accessible(page: Page) -> None:
    root = page.root
    assert page.source.startswith("<!doctype html>")
    assert root.one("html").attributes["lang"] == "en"
    assert "ltm at 2,000 tokens · oracle · seed 0" in root.one("title").text
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    references = {name for element in root.all() for name in element.attributes.get("aria-labelledby", "").split()}
    assert references <= set(ids)
    assert root.one("body").all("a")[0].words.startswith("Skip")
    labels = [element.attributes["aria-labelledby"] for element in root.all("section")]
    assert len(labels) == len(set(labels))
    levels = [int(element.tag[1]) for element in root.all() if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(cell.attributes.get("scope") in ("col", "row", "rowgroup") for cell in root.all("th"))
    firsts = [next(part for part in element.inside if isinstance(part, Element)) for element in root.all("details")]
    assert {first.tag for first in firsts} == {"summary"}
    assert all(label.words for label in root.one("form").all("label"))


def test_every_link_has_a_target(page: Page, isolated: Path) -> None:
    for checked, conversations in ((page, ["main"]), (report(isolated), ["colours-1", "colours-2"])):
        places = {element.attributes.get("id") for element in checked.root.all()}
        places |= {f"t-{id}-{turn['number']}" for id in conversations for turn in data_of(checked, id)["turns"]}
        links = [element.attributes["href"] for element in checked.root.all("a")]
        assert len(links) > 20
        assert [link for link in links if not link.startswith("#")] == ["result.json"], "which is beside the page"
        assert all(link[1:] in places for link in links if link.startswith("#"))


def test_it_loads_nothing_and_runs_only_its_own_scripts(page: Page) -> None:
    head = [element for element in page.root.one("head").inside if isinstance(element, Element)]
    assert head[0].attributes == {"charset": "utf-8"}
    assert head[1].attributes["http-equiv"] == "Content-Security-Policy"
    policy = dict(part.strip().split(" ", 1) for part in head[1].attributes["content"].split(";"))
    assert {name: policy[name] for name in ("default-src", "base-uri", "form-action")} == dict.fromkeys(
        ["default-src", "base-uri", "form-action"], "'none'"
    )
    scripts = [element for element in page.root.all("script") if element.attributes.get("type") != "application/json"]
    assert policy["script-src"].split() == [hashed(element.text) for element in scripts]
    assert policy["style-src"].split() == [hashed(element.text) for element in page.root.all("style")]
    assert not {element.tag for element in page.root.all()} & {"link", "img", "iframe", "object", "embed", "base"}
    attributes = {name for element in page.root.all() for name in element.attributes}
    assert not {name for name in attributes if name in ("src", "srcset", "action", "style") or name.startswith("on")}
    code = "".join(element.text for element in (*scripts, *page.root.all("style")))
    assert not re.search(r"url\(|@import|@font-face|innerHTML|\beval\b|\bfetch\b|https?:|</", code)
    assert "http://" not in page.source
    assert "https://" not in page.source


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_colours_contrast_enough_to_be_read(page: Page, scheme: str) -> None:
    style = "".join(element.text for element in page.root.all("style"))
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    palette = dict(re.findall(r"--([\w-]+): (#\w+)", blocks[0]))
    if scheme == "dark":
        palette |= dict(re.findall(r"--([\w-]+): (#\w+)", blocks[1]))

    def light(name: str) -> float:
        digits = palette[name].lstrip("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    def contrast(one: str, other: str) -> float:
        low, high = sorted((light(one), light(other)))
        return (high + 0.05) / (low + 0.05)

    texts = [(text, ground) for text in ("ink", "soft", "link", "part", "full", "low") for ground in ("page", "card", "target")]
    texts += [(badge, f"{badge}-page") for badge in ("full", "part", "low")] + [
        ("ink", "none-page"),
        ("ink", "highlight"),
        ("ink", "track"),
    ]
    assert {pair for pair in texts if contrast(*pair) < 4.5} == set(), "WCAG 2.2, 1.4.3"
    marks = [("got", "track"), ("mark", "page"), ("mark", "track"), ("line", "card"), ("line", "page")]
    marks += [(grade, "card") for grade in ("full", "part", "low", "soft")]
    assert {pair for pair in marks if contrast(*pair) < 3} == set(), "WCAG 2.2, 1.4.11"


def test_the_same_run_gives_the_same_report(woven: Path) -> None:
    assert report(woven).source == report(woven).source
