"""Files written whole or not at all, files that may be packed, and what tells that one has changed."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel

from longspan.simulator.errors import InputError, one_line

__all__ = ["partial_of", "read_packed", "replacing", "stamp", "write_json", "write_text", "writing", "writing_folder"]

GZIP = b"\x1f\x8b"


def partial_of(path: Path) -> Path:
    """Where a file or folder lies until it is whole."""
    return path.with_name(f".{path.name}.partial")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, which takes the place of `path` at the end. Raises OSError."""
    partial = partial_of(path)
    partial.unlink(missing_ok=True)  # never through a link that somebody left there
    try:
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, which becomes `path` at the end. Raises InputError where `path` exists already, or the
    disk refuses."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: exists already; name another with --out")
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another with --out") from error


@contextmanager
def writing_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path` to write into, which becomes `path` at the end. Raises InputError as `writing` does."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: exists already; name another folder with --out")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        partial.chmod(0o755)
    except OSError as error:
        raise InputError(f"{path}: cannot make the folder: {error.strerror}; choose another with --out") from error
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another with --out") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a text, whole or in pieces, over an older file. Raises OSError, and leaves the older file as it was."""
    with replacing(path) as partial, partial.open("x", encoding="utf-8") as file:
        file.writelines([text] if isinstance(text, str) else text)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, model: BaseModel) -> None:
    """Write a model as a JSON file. Raises OSError as `write_text` does."""
    write_text(path, model.model_dump_json(indent=1) + "\n")


def read_packed(path: Path, largest: int, remedy: str = "") -> bytes:
    """A file's content, unpacked where it is gzip.

    Raises InputError, with the remedy, for a file that cannot be read, and for one that has more than `largest` bytes unpacked:
    a few kilobytes of gzip can unpack to anything.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(largest + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or f"damaged gzip: {one_line(error)}"
        raise InputError(f"{path}: cannot be read: {why}{remedy and f'; {remedy}'}") from error
    if len(content) > largest:
        raise InputError(f"{path}: larger than {largest:,} bytes; {remedy or 'split it'}")
    return content


def stamp(path: Path, remedy: str) -> tuple[int, int]:
    """What differs once a file's content does: its time and size, for what is read once and kept. Raises InputError where there
    is none, with the remedy."""
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    return state.st_mtime_ns, state.st_size
