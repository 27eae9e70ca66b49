"""Runs to report on, with changes made to their files, and a strict parser for pages."""

from __future__ import annotations

import json
import shutil
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import trio

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report, write_report
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from tests.sealing import change_lines

VOID = {"meta", "br", "wbr", "link", "img", "input", "hr", "base"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    inside: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.inside)

    @property
    def words(self) -> str:
        """Its text with white space collapsed."""
        return " ".join(self.text.split())

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """The elements in it, in order. `class_` matches one of several classes: `all("li", class_="turn")`."""
        return [element for element in self.walk() if tag in ("", element.tag) and all(element.has(*pair) for pair in attributes.items())]

    def one(self, tag: str = "", **attributes: str) -> Element:
        (element,) = self.all(tag, **attributes)
        return element

    def has(self, name: str, value: str) -> bool:
        if name == "class_":
            return value in self.attributes.get("class", "").split()
        return self.attributes.get(name) == value

    def walk(self) -> Iterator[Element]:
        for part in self.inside:
            if isinstance(part, Element):
                yield part
                yield from part.walk()

    @property
    def skeleton(self) -> list[tuple[str, str, str]]:
        """Its elements, without any text and the places where one may be broken."""
        elements = (child for child in self.walk() if child.tag != "wbr")
        return [(child.tag, child.attributes.get("id", ""), child.attributes.get("class", "")) for child in elements]


class Page(HTMLParser):
    """A strict parser: every element must be closed, in order."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text("utf-8")
        self.root = Element("")
        self.comments: list[str] = []
        self._open = [self.root]
        self.feed(self.source)
        self.close()
        assert self._open == [self.root], "an element was left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(attrs) == len(element.attributes), "an attribute is given twice"
        self._open[-1].inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].inside.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def played(out: Path, *scenarios: str, agent: str = "oracle", isolated: bool = False, tests: int = 2) -> Path:
    suite = load_suite("ltm").apply_changes([], [], list(scenarios), tests)
    planned = plan_run(RunSettings(suite=suite, span=2000, seed=0, agent=agent, isolated=isolated), out)
    (outcome,) = trio.run(lambda: play_plans([planned], pages=Report))
    return outcome.folder


def played_diaries(out: Path, entries: int, tests: int, agent: str = "notebook") -> Path:
    """A run of diaries of so many days, each told once and asked about every third day."""
    suite = Suite(name="diary", tests=tests, scenarios={"python:tests.diary:Diary": {"entries": entries}})
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, seed=4, agent=agent), out)]))
    assert outcome.error is None
    return outcome.folder


def report(folder: Path, change: Callable[[Manifest, Result], tuple[Manifest, Result]] = lambda m, r: (m, r)) -> Page:
    """The report of a run, after changing its manifest and result."""
    run = RunFolder(folder)
    manifest, result = change(run.manifest, grade_run(run))
    run.manifest = manifest  # a cached property: the file stays as it is
    return Page(write_report(run, result))


def journal(folder: Path, conversation: str = "main") -> list[dict[str, Any]]:
    path = folder / "conversations" / conversation / "journal.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def altered(folder: Path, to: Path, change: Callable[[list[dict[str, Any]]], Any]) -> Path:
    """A copy of a run with `change` made to the entries of its main journal."""
    copy = to / folder.name
    shutil.copytree(folder, copy)
    change_lines(copy / "conversations" / "main" / "journal.jsonl", change)
    return copy


def replying(text: str, turn: int = 1) -> Callable[[list[dict[str, Any]]], None]:
    """The same conversation with another reply in one turn, by default to a needle, which is not graded."""

    def change(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["type"] == "reply" and entry["turn"] == turn)["text"] = text

    return change


def question(folder: Path, test: str = "colours-1") -> int:
    """The turn of a test's last question."""
    return [entry["turn"] for entry in journal(folder) if entry.get("test") == test and entry.get("kind") == "question"][-1]


def answering(folder: Path, to: Path, text: str) -> Page:
    """The report of a copy of a run, with the same results, but another reply to the question of colours-1."""
    result = grade_run(RunFolder(folder))
    return report(altered(folder, to, replying(text, question(folder))), lambda manifest, _: (manifest, result))


def data_of(page: Page, conversation: str = "main") -> dict[str, Any]:
    """The JSON of a conversation in the report."""
    sections = page.root.all("section", class_="conversation")
    plain = [script.text for section in sections for script in section.all("script", type="application/json")]
    packed = [script.text for section in sections for script in section.all("script", class_="deflated")]
    deflated = [zlib.decompress(b64decode(text), -15) for text in packed]
    found = [each for data in map(json.loads, [*plain, *deflated]) for each in (data, *data.pop("branches"))]
    (data,) = (data for data in found if data["id"] == conversation)
    return data


def lanes_of(page: Page) -> list[dict[str, Any]]:
    """The JSON of the timeline's panels in the report."""
    script = page.root.one("div", id="lanes").one("script")
    text = zlib.decompress(b64decode(script.text), -15).decode() if script.has("class_", "deflated") else script.text
    found: list[dict[str, Any]] = json.loads(text)
    return found


def reply_of(page: Page, turn: int = 1, conversation: str = "main") -> Any:
    """A reply in that JSON: a text, or the start, the end and the length of one."""
    return data_of(page, conversation)["turns"][turn]["reply"]
