"""The pictures in the documentation: each is made by the script and shown somewhere, and the script still works."""

from __future__ import annotations

import io
import re
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser
from scripts.screenshots import FOLDER, PICTURES, WINDOW, Studio

ROOT = Path(__file__).parents[2]


def test_the_documentation_shows_every_picture_that_the_script_makes_and_no_other() -> None:
    shown = {
        name
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"[(\"](?:docs/|\.\./)?pictures/([^)\"]*)[)\"]", page.read_text("utf-8"))
    }
    assert shown == PICTURES.keys()
    assert {path.name for path in FOLDER.iterdir()} == PICTURES.keys()


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_000_000


def test_a_screenshot_can_be_taken(browser: Browser, tmp_path: Path) -> None:
    studio = Studio(browser, tmp_path, span=2_000)
    picture = Image.open(io.BytesIO(PICTURES["report.png"](studio)))
    assert picture.size == WINDOW
    assert len(picture.getcolors() or []) > 10, "it is not blank"
