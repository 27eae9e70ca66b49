"""The site: it is built strictly, and nothing on it leads nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from scripts.site_hooks import describe_api, describe_commands
from tests.conftest import skip
from tests.docs.test_docs import COMMANDS
from tests.environments import PROJECT, ROOT

import longspan


class Page(HTMLParser):
    """A page's links, the files that it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("img", "script", "link") and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded += [given[name] for name in ("src", "href") if name in given]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The pages of the site by their paths."""
    if find_spec("material") is None:
        skip("mkdocs-material is not installed: the extra `site`")
    out = tmp_path_factory.mktemp("site").resolve()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", out],  # -q would silence what --strict counts
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Page(path) for path in out.rglob("*.html") if path.name != "404.html"}


def find_broken(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the links, files and anchors of a page that are not on the site."""
    for link in [*page.links, *page.loaded]:
        parts = urlsplit(link)
        if parts.scheme and link not in page.loaded:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        anchored = not parts.fragment or target not in pages or parts.fragment in pages[target].anchors
        if parts.scheme or not target.is_file() or not anchored:  # nothing is loaded from other hosts
            yield f"{path.name}: {link}"


def test_nothing_on_the_site_leads_nowhere(built: dict[Path, Page]) -> None:
    assert [broken for path, page in built.items() for broken in find_broken(path, page, built)] == []


def test_links_to_other_files_lead_to_the_repository(built: dict[Path, Page]) -> None:
    home = next(line.split()[1] for line in (ROOT / "mkdocs.yml").read_text("utf-8").splitlines() if line.startswith("repo_url"))
    assert PROJECT.get("urls", {}).get("Repository", home) == home
    inside = {link.partition("#")[0] for page in built.values() for link in page.links if link.startswith(f"{home}/")}
    assert len(inside) > 10
    for link in inside:
        kind, _, path = link.removeprefix(f"{home}/").partition("/HEAD/")
        assert (ROOT / path).is_dir() if kind == "tree" else (ROOT / path).is_file(), link


def test_every_page_and_every_name_can_be_found(built: dict[Path, Page]) -> None:
    (root,) = (path.parent for path in built if path.name == "contents.html")
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    generated = {Path(name) for name in ("index.html", "board.html", "reference/commands.html", "reference/python-api.html")}
    assert {path.relative_to(root) for path in built} == pages | generated
    found = {entry["location"].partition("#")[0] for entry in json.loads((root / "search" / "search_index.json").read_text())["docs"]}
    assert {page.as_posix() for page in pages | generated} <= found
    listed = {link for link in built[root / "index.html"].links if link.endswith(".html")}
    assert {page.as_posix() for page in pages | generated} - listed <= {"index.html"}
    assert [name for name in COMMANDS if f"## longspan {name}\n" not in "\n".join(describe_commands())] == []
    assert [name for name in longspan.__all__ if f"## {name}\n" not in "\n".join(describe_api())] == []


def test_the_board_shows_every_sweep(built: dict[Path, Page]) -> None:
    (board,) = (page for path, page in built.items() if path.name == "board.html")
    assert {path.name for path in (ROOT / "results").iterdir() if path.is_dir()} <= board.anchors
