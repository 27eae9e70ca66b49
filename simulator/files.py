"""Atomic file writes, reading files that may be gzipped, and detecting changes."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel

from longspan.simulator.checksums import sealed
from longspan.simulator.errors import InputError, one_line
from longspan.simulator.folders import remove

__all__ = ["partial_of", "read_packed", "replacing", "stamp", "write_json", "write_text", "writing", "writing_folder"]

GZIP = b"\x1f\x8b"


def partial_of(path: Path) -> Path:
    """Return the path at which a file or folder is written before it is renamed to `path`."""
    return path.with_name(f".{path.name}.partial")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` at the end. Raises OSError."""
    partial = partial_of(path)
    partial.unlink(missing_ok=True)  # never write through a link that was left there
    try:
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` at the end. Raises InputError if `path` already exists or cannot be written."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists; choose another file with --out")
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another with --out") from error


@contextmanager
def writing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `path` at the end. Raises InputError as `writing` does."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists; choose another folder with --out")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        partial.chmod(0o755)
    except OSError as error:
        raise InputError(f"{path}: cannot create the folder: {error.strerror}; choose another with --out") from error
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another with --out") from error
    finally:
        remove(partial)


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a text, given whole or in pieces, and replace an older file. Raises OSError and then leaves the older file unchanged."""
    with replacing(path) as partial, partial.open("x", encoding="utf-8") as file:
        file.writelines([text] if isinstance(text, str) else text)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, model: BaseModel) -> None:
    """Write a pydantic model as a JSON file with a checksum, see `checksums`. Raises OSError as `write_text` does."""
    write_text(path, sealed(model.model_dump_json(indent=1)))


def read_packed(path: Path, max_bytes: int, remedy: str = "") -> bytes:
    """Return a file's content, decompressed if it is gzip.

    Raises InputError with the remedy if the file cannot be read or its content is larger than `max_bytes`, because a few
    kilobytes of gzip can expand to any size.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or f"damaged gzip: {one_line(error)}"
        raise InputError(f"{path}: cannot be read: {why}{remedy and f'; {remedy}'}") from error
    if len(content) > max_bytes:
        raise InputError(f"{path}: larger than {max_bytes:,} bytes; {remedy or 'split it'}")
    return content


def stamp(path: Path, remedy: str) -> tuple[int, int]:
    """Return a file's modification time in ns and size in bytes, by which a cache can tell that it changed.

    Raises InputError with the remedy if the file cannot be read.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    return state.st_mtime_ns, state.st_size
