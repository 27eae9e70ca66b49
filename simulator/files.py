"""Files that a command writes where a user says: new ones, whole or not at all. And what tells that one has changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longspan.simulator.errors import InputError

__all__ = ["stamp", "writing", "writing_folder"]


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, which becomes `path` at the end. Raises InputError where `path` exists already, or the
    disk refuses."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: exists already; name another with --out")
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # never through a link that somebody left there
        yield partial
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another with --out") from error
    finally:
        with suppress(OSError):
            partial.unlink()


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


def stamp(path: Path, remedy: str) -> tuple[int, int]:
    """What differs once a file's content does: its time and size, for what is read once and kept. Raises InputError where there
    is none, with the remedy."""
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    return state.st_mtime_ns, state.st_size
