"""docs/guides/python.md and the notebook beside it, run as their readers would."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripts.docs_outputs import DOCS, blocks
from tests.threads import asyncio_run, in_thread

import longspan
from longspan.simulator.api.results import SCORES

PAGE = DOCS / "guides" / "python.md"


def test_the_pages_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.language == "sh" or block.text.startswith("# log_to_"):  # for another environment: test_recipes_outside.py
            continue
        assert block.language == "python"
        code = compile(block.text, PAGE.name, "exec")
        in_thread(lambda code=code: exec(code, names))  # type: ignore[misc]  # noqa: S102
    printed = capsys.readouterr().out
    shown = re.findall(r"^print\(results\) +# (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert printed.splitlines()[:1] == shown
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "report.html"}


def test_the_notebooks_cells_run_where_a_loop_is_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [
        cell["source"] for cell in json.loads((DOCS / "guides" / "python.ipynb").read_text("utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    names: dict[str, Any] = {}
    shown = []

    async def kernel() -> None:
        for number, source in enumerate(cells):
            tree = ast.parse(source)
            if isinstance(tree.body[-1], ast.Expr):  # what a cell ends with is shown
                tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
                ast.fix_missing_locations(tree)
            code = compile(tree, f"cell {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            names["_"] = None
            result = eval(code, names)  # noqa: S307
            if inspect.isawaitable(result):
                await result
            shown.append(names["_"])

    asyncio_run(kernel)
    pages = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    assert len(pages) == 5
    assert all(re.match("<(pre|table|div|iframe)", page.strip()) for page in pages)
    assert shown[-1] == 0


def test_every_parameter_attribute_and_column_is_described() -> None:
    text = PAGE.read_text("utf-8")
    described = {name for cell in re.findall(r"^\| (.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)", cell)}
    parameters = set(inspect.signature(longspan.run).parameters) - {"settings"}
    attributes = {name for name in vars(longspan.Results) if not name.startswith("_")}
    assert parameters | attributes | set(SCORES) <= described
