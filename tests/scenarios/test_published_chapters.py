"""Reading ChapterBreak's published data: its shapes, and the error for any other file."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Any

import pytest

from longspan.scenarios.ltm.chapterbreak.published_chapters import read_examples
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.own_installation import install_extra


def example(name: str = "a") -> dict[str, Any]:
    return {"ctx": f"context {name}", "pos": f"right {name}", "negs": [f"wrong {name} {number}" for number in range(5)]}


def write(folder: Path, content: Any) -> Path:
    path = folder / "chapters.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (
            {"pg19": {"1342": [example("a"), example("b")], "11": [example("c")]}, "ao3": {"7": [example("d")]}},
            ["pg19/1342/0", "pg19/1342/1", "pg19/11/0", "ao3/7/0"],
        ),
        ({"ao3": {"7": [example("d")]}, "pg19": {}}, ["ao3/7/0"]),
        ({"1342": [example("a")]}, ["1342/0"]),
        ({"pg19": [example("a"), example("b")]}, ["pg19/0", "pg19/1"]),
        ({"pg19": {"1342": example("a")}}, ["pg19/1342"]),
        ([example("a"), example("b")], ["0", "1"]),
        (example("a"), [""]),
        ([example("a") | {"title": "more than is needed"}], ["0"]),
        ([example("a") | {"pos": "  "}, example("b")], ["1"]),
    ],
)  # fmt: skip
def test_examples_are_found_in_any_of_the_shapes(tmp_path: Path, content: Any, names: list[str]) -> None:
    found = read_examples(write(tmp_path, content))

    assert [each.where for each in found] == names
    assert all(each.right.startswith("right") and len(each.wrong) == 5 for each in found)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("null", "at the top: expected an example, or works with examples, got null"),
        ("3", "got a number"),
        ('"text"', "got a string"),
        ({}, "no examples found"),
        ({"pg19": {}}, "no examples found"),
        ({"pg19": {"1": [3]}}, "at pg19/1/0: expected an example, or works with examples, got a number"),
        ({"pg19": {"1": [{"a": {"b": {"c": [example()]}}}]}}, "expected an example"),
        ([{"ctx": "a", "pos": "b"}], "at 0: the example has no 'negs'; it needs ctx, pos and negs"),
        ([{"pos": "b", "negs": []}], "the example has no 'ctx'"),
        ([example() | {"ctx": ["a"]}], "'ctx' must be a string, got a list"),
        ([example() | {"pos": None}], "'pos' must be a string, got null"),
        ([example() | {"negs": "abcde"}], "'negs' must be a list of 5 strings, got a string"),
        ([example() | {"negs": ["a"] * 4}], "'negs' must be a list of 5 strings, got 4 values"),
        ([example() | {"negs": ["a"] * 4 + [True]}], "'negs' must be a list of 5 strings"),
        ([example() | {"ctx": " \n"}], "every example has a blank text"),
    ],
)
def test_errors_are_one_line_and_say_where(tmp_path: Path, content: Any, complaint: str) -> None:
    path = write(tmp_path, content)

    with pytest.raises(InputError) as raised:
        read_examples(path)

    assert complaint in str(raised.value)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_examples(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="is a folder"):
        read_examples(tmp_path)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "chapters.json"
    path.write_bytes(b"\xff\xfe\x00{")

    with pytest.raises(InputError, match="not JSON"):
        read_examples(path)


def test_zst_is_unpacked(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(json.dumps({"ao3": {"7": [example()]}}).encode())
    for name in ("chapters.zst", "chapters.json"):  # whatever the file is called
        path = tmp_path / name
        path.write_bytes(packed)
        assert [each.where for each in read_examples(path)] == ["ao3/7/0"]

    path = tmp_path / "broken.zst"
    path.write_bytes(packed[:20])
    with pytest.raises(InputError, match=r"broken\.zst: not zst, or damaged|not JSON"):
        read_examples(path)
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match="not zst"):
        read_examples(path)


def test_without_zstandard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "zstandard":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    path = tmp_path / "chapters.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd....")

    with pytest.raises(InputError, match=re.escape(f"needs the zstandard package: {install_extra('zst')}")):
        read_examples(path)


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path, [example("a")])

    assert read_examples(path) is read_examples(path)
    path.write_text(json.dumps([example("a"), example("b")]), "utf-8")
    assert len(read_examples(path)) == 2
