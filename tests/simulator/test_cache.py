"""The user's cache folder: a file is used only if it is intact and nobody else can have written it."""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jinja2 import Environment

from longspan.simulator.base import cache
from longspan.simulator.base.templating import make_environment


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that does not exist yet."""
    monkeypatch.setenv("LONGSPAN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def never() -> bytes:
    raise AssertionError("it was made anew")


def test_cached_content_is_not_computed_again(folder: Path) -> None:
    assert cache.read_or_make("ranks", lambda: b"content") == b"content"
    assert cache.read_or_make("ranks", never) == b"content"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["ranks"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "home/.cache/longspan"),
        ({"XDG_CACHE_HOME": "{tmp}/xdg"}, "xdg/longspan"),
        ({"XDG_CACHE_HOME": "relative"}, "home/.cache/longspan"),
        ({"XDG_CACHE_HOME": "{tmp}/xdg", "LONGSPAN_CACHE_DIR": "{tmp}/own"}, "own"),
    ],
)
def test_the_folders_place(variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LONGSPAN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    cache.write_cached("ranks", b"content")
    assert (tmp_path / expected / "ranks").is_file()


@pytest.mark.parametrize("home", ["", "relative"])
def test_the_folder_is_never_below_the_current_one(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are run: a folder that came with somebody's data must not become the user's own."""
    for name in ("LONGSPAN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)
    user = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda id: type(user)((*user[:5], str(tmp_path / "home"), user.pw_shell)))
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    cache.write_cached("ranks", b"content")
    assert (tmp_path / "home/.cache/longspan/ranks").is_file()
    assert not list((tmp_path / "current").iterdir())


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:-1], lambda content: content[:20], lambda content: content[:-1] + b"!"],
    ids=["empty", "cut off", "no whole checksum", "changed"],
)
def test_damaged_content_is_computed_again(damage: Callable[[bytes], bytes], folder: Path) -> None:
    cache.write_cached("ranks", b"content")
    (folder / "ranks").write_bytes(damage((folder / "ranks").read_bytes()))
    assert cache.read_cached("ranks") is None
    assert cache.read_or_make("ranks", lambda: b"made anew") == b"made anew"
    assert cache.read_cached("ranks") == b"made anew"


def _link_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _link_file(folder: Path) -> None:
    (folder / "ranks").rename(folder.with_name("elsewhere"))
    (folder / "ranks").symlink_to(folder.with_name("elsewhere"))


def _pipe(folder: Path) -> None:
    (folder / "ranks").unlink()
    os.mkfifo(folder / "ranks")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: folder.chmod(0o770),
        lambda folder: folder.chmod(0o702),
        lambda folder: (folder / "ranks").chmod(0o620),
        lambda folder: (folder / "ranks").chmod(0o602),
        _link_folder,
        _link_file,
        _pipe,
    ],
    ids=["group's folder", "everybody's folder", "group's file", "everybody's file", "linked folder", "linked file", "pipe"],
)
def test_content_that_others_could_have_written_is_not_used(change: Callable[[Path], None], folder: Path) -> None:
    cache.write_cached("ranks", b"theirs")
    change(folder)
    assert cache.read_cached("ranks") is None
    assert cache.read_or_make("ranks", lambda: b"made anew") == b"made anew"


def test_another_users_folder_is_neither_read_nor_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_cached("ranks", b"theirs")
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert cache.read_or_make("ranks", lambda: b"made anew") == b"made anew"
    monkeypatch.undo()
    monkeypatch.setenv("LONGSPAN_CACHE_DIR", str(folder))
    assert cache.read_cached("ranks") == b"theirs"


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/longspan", "{tmp}/file", "{tmp}/\0"])
def test_without_a_cache_everything_is_computed_again(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(os, "environ", {**os.environ, "LONGSPAN_CACHE_DIR": place.format(tmp=tmp_path)})
    assert cache.read_or_make("ranks", lambda: b"content") == b"content"
    assert cache.read_or_make("ranks", lambda: b"again") == b"again"


def test_a_full_disk_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert cache.read_or_make("ranks", lambda: b"content") == b"content"
    assert list(folder.iterdir()) == []


def test_concurrent_writers_never_read_half_a_file(folder: Path) -> None:
    code = """
import sys
from longspan.simulator.base import cache

for number in range(100):
    content = bytes([int(sys.argv[1])]) * 200_000
    cache.write_cached("ranks", content)
    found = cache.read_cached("ranks")
    assert found is not None and len(found) == 200_000 and len(set(found)) == 1, number
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert [path.name for path in folder.iterdir()] == ["ranks"]


# Templates.


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "greet.j2").write_text("{% if name %}\nHello {{ name }}{% endif %}")
    return tmp_path / "templates"


def rendered(*folders: Path, **options: object) -> str:
    return make_environment(*folders, **options).get_template("greet.j2").render(name="<you>")


@pytest.mark.usefixtures("folder")
def test_a_template_is_compiled_once(templates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendered(templates) == "\nHello <you>"
    with monkeypatch.context() as patched:
        patched.setattr(Environment, "compile", never)
        assert rendered(templates) == "\nHello <you>"
    (templates / "greet.j2").write_text("Good day {{ name }}")
    assert rendered(templates) == "Good day <you>"


@pytest.mark.usefixtures("folder")
def test_a_template_compiled_with_other_options_has_its_own_file(templates: Path) -> None:
    assert rendered(templates) == "\nHello <you>"
    assert rendered(templates, trim_blocks=True) == "Hello <you>"
    assert rendered(templates, autoescape=True) == "\nHello &lt;you&gt;"


def test_a_damaged_template_is_compiled_again(templates: Path, folder: Path) -> None:
    rendered(templates)
    (kept,) = folder.iterdir()
    kept.write_bytes(b"\0" * 100)
    assert rendered(templates) == "\nHello <you>"
    cache.write_cached(kept.name, b"no bytecode, with a checksum that is right")
    assert rendered(templates) == "\nHello <you>"
