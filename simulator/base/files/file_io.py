"""Atomic file writes, reading of files that may be gzipped, and detection of changes."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json

from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.base.files.checksums import add_checksum
from longspan.simulator.base.files.folders import remove_folder

__all__ = [
    "MAX_BYTES",
    "content_digest",
    "file_stamp",
    "hash_file",
    "open_regular",
    "parse_json",
    "partial_of",
    "read_packed",
    "replace_file",
    "resolve_path",
    "write_json",
    "write_new_file",
    "write_new_folder",
    "write_text",
]

GZIP: Final = b"\x1f\x8b"

BLOCK: Final = 1 << 20
"""The number of unpacked bytes to process in one step."""

MAX_BYTES: Final = 1 << 30
"""The largest data file that users may pass, in bytes after unpacking."""


def partial_of(path: Path) -> Path:
    """Return the temporary path to write before renaming to `path`."""
    return path.with_name(f".{path.name}.partial")


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the context ends. OSErrors name `path`."""
    partial = partial_of(path)
    partial.unlink(missing_ok=True)  # never write through a link that is already there
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # without this, the error of a full disk names no file
        raise
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def write_new_file(path: Path, remedy: str = "choose another file with --out") -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` when the context ends. Raises InputError if `path` exists or cannot be written."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists; {remedy}")
    try:
        with replace_file(path) as partial:
            yield partial
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; {remedy}") from error


@contextmanager
def write_new_folder(path: Path, choose: str = "choose another folder with --out") -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `path` when the context ends. Raises InputError as `write_new_file` does.

    `choose` says how to choose another folder.
    """
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists; {choose}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        partial.chmod(0o755)
    except OSError as error:
        raise InputError(f"{path}: cannot create the folder: {error.strerror}; {choose}") from error
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; {choose}") from error
    finally:
        remove_folder(partial)


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write text, whole or in pieces, and replace an older file. Raises OSError, and then leaves the older file unchanged."""
    with replace_file(path) as partial, partial.open("x", encoding="utf-8") as file:
        file.writelines([text] if isinstance(text, str) else text)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, model: BaseModel) -> None:
    """Write a pydantic model as a JSON file with a checksum (see `checksums`). Raises OSError as `write_text` does.

    The JSON is indented, but an object in a list takes one line.
    """
    write_text(path, add_checksum(_indent_rows(model.model_dump(mode="json"), "\n")))


def _indent_rows(value: Any, line: str) -> str:
    """Return JSON whose lines begin with `line`. An object in a list takes one line."""
    inner = f"{line} "
    if isinstance(value, dict) and value:
        fields = (f"{_json(name)}: {_indent_rows(field, inner)}" for name, field in value.items())
        return f"{{{inner}{f',{inner}'.join(fields)}{line}}}"
    if isinstance(value, list) and value:
        rows = (_json(each) if isinstance(each, dict) else _indent_rows(each, inner) for each in value)
        return f"[{inner}{f',{inner}'.join(rows)}{line}]"
    return _json(value)


def _json(value: Any) -> str:
    return to_json(value, inf_nan_mode="null").decode()


@contextmanager
def open_regular(path: Path, remedy: str = "") -> Iterator[BufferedReader]:
    """Open a regular file for reading in binary.

    Raises InputError with the remedy if it cannot be read or is not a regular file: reading a pipe may block, and a device may never end.
    """
    hint = remedy and f"; {remedy}"
    try:
        file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, not a regular file{hint}") from None
    except (OSError, ValueError) as error:  # ValueError is raised for a path with a null character
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}{hint}") from error
    try:
        with file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise InputError(f"{path}: is a {'pipe' if stat.S_ISFIFO(mode) else 'device'}, not a regular file{hint}")
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}{hint}") from error


def _open_at_once(path: str, flags: int) -> int:
    """Open a file like `os.open`, but without blocking on a pipe that has no writer."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def read_packed(path: Path, max_bytes: int, remedy: str = "") -> bytes:
    """Return a regular file's content, decompressed if it is gzip.

    Raises InputError with the remedy if the file cannot be read or its content is larger than `max_bytes`. The limit applies after
    unpacking, because a few kilobytes of gzip can expand to any size.
    """
    with open_regular(path, remedy) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            size = _count_unpacked(file, max_bytes) if packed else os.fstat(file.fileno()).st_size
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(max_bytes + 1) if size <= max_bytes else b""
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: damaged gzip: {one_line(error)}{remedy and f'; {remedy}'}") from error
    if max(size, len(content)) > max_bytes:  # the file may have grown since its size was read
        raise InputError(f"{path}: larger than {max_bytes:,} bytes; {remedy or 'split it'}")
    return content


def _count_unpacked(file: BufferedReader, max_bytes: int) -> int:
    """Return the unpacked size of a gzip file, up to a little more than `max_bytes`. The content is discarded: it may not fit in memory."""
    size = 0
    with gzip.GzipFile(fileobj=file) as packed:
        while size <= max_bytes and (block := packed.read(BLOCK)):
            size += len(block)
    file.seek(0)
    return size


def parse_json(content: str | bytes, where: str, *, unique: bool = False) -> Any:
    """Parse JSON text. Raises InputError with a message that begins with `where`. With `unique`, a duplicate key is an error."""
    try:
        return json.loads(content, object_pairs_hook=_each_once if unique else None)
    except _TwiceError as error:
        raise InputError(f"{where}: the key {error.args[0]!r:.80} stands twice in an object; leave one of them") from None
    except RecursionError as error:
        raise InputError(f"{where}: not JSON: nested too deeply") from error
    except ValueError as error:
        known = isinstance(error, json.JSONDecodeError | UnicodeDecodeError)
        raise InputError(f"{where}: not JSON: {one_line(error) if known else 'a number has thousands of digits'}") from error


class _TwiceError(ValueError):
    """An object has a duplicate key."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return found


def hash_file(path: Path, remedy: str = "") -> str:
    """Return the SHA-256, in hexadecimal, of a regular file of at most MAX_BYTES. Raises InputError with the remedy for anything else."""
    with open_regular(path, remedy) as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise InputError(f"{path}: larger than {MAX_BYTES:,} bytes{remedy and f'; {remedy}'}")
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(path: Path) -> str:
    """Return the SHA-256, in hexadecimal, of a file's unpacked content, or of the names and contents of a folder's files.

    Files whose names begin with a dot are ignored. Raises InputError if anything cannot be read.
    """
    if not path.is_dir():
        return _content_digest(path, file_stamp(path, "name another file"))
    whole = hashlib.sha256()
    for file in sorted(_inside(path)):
        whole.update(f"{content_digest(file)} {file.relative_to(path).as_posix()}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


@lru_cache(maxsize=1000)
def _content_digest(path: Path, stamp: tuple[int, int]) -> str:
    """Return the digest of a file. Cached, because a sweep plans many runs with the same files; `stamp` changes with the file."""
    return hashlib.sha256(read_packed(path, MAX_BYTES)).hexdigest()


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders. Links to folders are not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def resolve_path(path: Path) -> Path:
    """Return a user's path as an absolute path without links. Raises InputError for a loop of links or a null character."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{path}: not a path: {one_line(error)}") from error


def file_stamp(path: Path, remedy: str) -> tuple[int, int]:
    """Return a file's modification time in ns and its size in bytes, as a cache key.

    Raises InputError with the remedy if the file cannot be read.
    """
    try:
        state = path.stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}; {remedy}") from error
    return state.st_mtime_ns, state.st_size
