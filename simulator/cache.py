"""What takes a while to make, kept in the user's cache folder: compiled templates and unpacked token ranks.

The folder is LONGSPAN_CACHE_DIR, else `longspan` in XDG_CACHE_HOME or ~/.cache. Templates are kept as bytecode that Python
will run, so a folder or file counts only if it is the user's own and nobody else may write to it. Nothing here ever fails: what
cannot be read, checked or written is made anew.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = ["cached", "read", "write"]

DIGEST: Final = sha256().digest_size
"""Bytes of the checksum that each file begins with."""


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """The content of the file `name`, made and kept if it is not there."""
    content = read(name)
    if content is None:
        content = make()
        write(name, content)
    return content


def read(name: str) -> bytes | None:
    """The content of the file `name`; None if there is none that can be trusted, or it is damaged."""
    try:
        folder = _folder()
        if not _ours(folder.lstat(), stat.S_ISDIR):
            return None
        file = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a named pipe would wait
        with os.fdopen(file, "rb") as opened:
            if not _ours(os.fstat(file), stat.S_ISREG):
                return None
            digest, content = opened.read(DIGEST), opened.read()
    except (OSError, RuntimeError, ValueError):
        return None
    return content if sha256(content).digest() == digest else None


def write(name: str, content: bytes) -> None:
    """Keep the content of the file `name`, whole or not at all, even if other processes do so at the same time."""
    with suppress(OSError, RuntimeError, ValueError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _ours(folder.lstat(), stat.S_ISDIR):
            return
        file, partial = tempfile.mkstemp(prefix=".", dir=folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(sha256(content).digest() + content)
            os.replace(partial, folder / name)  # noqa: PTH105
        except OSError:
            os.unlink(partial)  # noqa: PTH108


def _folder() -> Path:
    """Where the cache is or would be. Raises RuntimeError if the user has no home."""
    if own := os.environ.get("LONGSPAN_CACHE_DIR"):
        return Path(own)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "longspan"


def _ours(state: os.stat_result, kind: Callable[[int], bool]) -> bool:
    """Whether it is of this kind, belongs to the user, and nobody else may write to it."""
    return kind(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
