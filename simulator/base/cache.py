"""The user's own folders: a cache for slow computations (compiled templates, unpacked token ranks and facts), and a record of trust.

The cache is in LONGSPAN_CACHE_DIR, or else in `longspan` below XDG_CACHE_HOME or ~/.cache. Trust decisions are stored in the folder
`trusted` in LONGSPAN_STATE_DIR, or else in `longspan` below XDG_STATE_HOME or ~/.local/state.

Python runs cached templates as bytecode, so a folder or file is used only if the user owns it and no other user may write to it. Nothing
here raises: an entry that cannot be read, verified or written is computed again, or the user is asked again.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

__all__ = ["read_cached", "read_or_make", "write_cached"]

Kind = Literal["cache", "trusted"]

OWN: Final[dict[Kind, str]] = {"cache": "LONGSPAN_CACHE_DIR", "trusted": "LONGSPAN_STATE_DIR"}
"""The environment variables that name the folders."""

DIGEST: Final = sha256().digest_size
"""The number of bytes of the checksum at the start of each file."""


def read_or_make(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the content of the file `name`. If it does not exist, call `make` and store its result."""
    content = read_cached(name)
    if content is None:
        content = make()
        write_cached(name, content)
    return content


def read_cached(name: str, kind: Kind = "cache") -> bytes | None:
    """Return the content of the file `name`, or None if it is missing, damaged or writable by other users."""
    try:
        folder = _folder(kind)
        if not _is_private(folder.lstat(), stat.S_ISDIR):
            return None
        # O_NONBLOCK, because opening a named pipe would wait for its other end.
        file = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as opened:
            if not _is_private(os.fstat(file), stat.S_ISREG):
                return None
            digest, content = opened.read(DIGEST), opened.read()
    except (OSError, RuntimeError, ValueError):
        return None
    return content if sha256(content).digest() == digest else None


def write_cached(name: str, content: bytes, kind: Kind = "cache") -> None:
    """Write the file `name` atomically. Safe if other processes write the same file."""
    with suppress(OSError, RuntimeError, ValueError):
        folder = _folder(kind)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder.lstat(), stat.S_ISDIR):
            return
        file, partial = tempfile.mkstemp(prefix=".", dir=folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(sha256(content).digest() + content)
            os.replace(partial, folder / name)  # noqa: PTH105
        except OSError:
            os.unlink(partial)  # noqa: PTH108


def _folder(kind: Kind) -> Path:
    """Return the folder's path. Raises RuntimeError if the user has no home folder."""
    if folder := os.environ.get(OWN[kind]):
        path = Path(folder)
    else:
        from platformdirs.unix import Unix  # use the same folders on a Mac

        user = Unix("longspan")
        path = user.user_state_path if kind == "trusted" else user.user_cache_path
    return path / "trusted" if kind == "trusted" else path


def _is_private(state: os.stat_result, kind: Callable[[int], bool]) -> bool:
    """Return whether a file or folder has this kind, belongs to the user, and is not writable by other users."""
    return kind(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
