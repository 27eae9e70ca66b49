"""Errors about files name them."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from longspan.simulator.base.errors import JournalError
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.base.files.file_io import write_json, write_text
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.cli import main


def full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("before")
    monkeypatch.setattr("os.fsync", full)  # as a write to a full disk, it raises without a name
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(tmp_path / "file", "after")
    assert caught.value.filename == str(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert leaving.value.code == 1
    return capsys.readouterr().err


def test_a_full_disk_behind_the_output_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output = Path("/dev/full").open("w")  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", output)
    error = failed(capsys, "list", "suites")
    sys.stdout.close()
    with suppress(OSError):
        output.close()
    assert error == "longspan: standard output: cannot be read or written: No space left on device\n"


def test_lines_that_do_not_fit_on_the_disk_name_their_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "incidents.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(JournalError, match=r"incidents.jsonl: cannot be written: File too large"):
            JsonLines(path).append({"error": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # it is replaced when a command fails
    error = failed(capsys, "estimate", "--scenario", "colours", "--tests", "1")
    sys.stdout.close()
    assert error.startswith("longspan: /nowhere/tmp")
    assert error.endswith(": cannot be read or written: No such file or directory\n")


class Row(BaseModel):
    name: str
    parts: list[dict[str, Any]]


class Content(BaseModel):
    rows: list[Row]
    groups: dict[str, list[Row]]
    nothing: list[str]
    interval: tuple[float, float]
    text: str


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ROWS = st.lists(
    st.builds(Row, name=TEXTS, parts=st.lists(st.dictionaries(TEXTS, st.integers() | TEXTS | st.none()), max_size=2)), max_size=3
)


@given(
    rows=ROWS, groups=st.dictionaries(TEXTS, ROWS, max_size=2), interval=st.tuples(st.floats(0, 1), st.floats(allow_nan=False)), text=TEXTS
)
def test_a_row_of_a_file_is_one_line_and_is_read_as_it_was(
    rows: list[Row], groups: dict[str, list[Row]], interval: tuple[float, float], text: str
) -> None:
    content = Content(rows=rows, groups=groups, nothing=[], interval=interval, text=text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content.json"
        write_json(path, content)
        written = verify_checksum(path.read_bytes(), path, "")
        assert json.loads(written) == json.loads(content.model_dump_json())
        lines = path.read_text("utf-8").split("\n")
    assert len([line for line in lines if line.startswith('  {"name":')]) == len(rows)
    assert len([line for line in lines if line.startswith('   {"name":')]) == sum(map(len, groups.values()))
