"""Journals of finished runs, compressed with gzip. All code that reads journals opens them here, compressed or not."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from longspan.simulator.base.errors import JournalError
from longspan.simulator.base.files.file_io import partial_of
from longspan.simulator.base.files.folders import open_file

__all__ = ["PACKED", "is_packed", "open_journal", "pack_journal"]

PACKED: Final = ".gz"
"""The suffix of a packed journal's name."""

NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
"""The errors that file systems without hard links raise."""

BLOCK: Final = 2**20
"""The number of bytes read in one go."""

MAX_BYTES: Final = 2**32
"""The largest journal to pack, and the largest size of a packed journal after unpacking."""


def is_packed(path: Path) -> bool:
    return path.suffix == PACKED


@contextmanager
def open_journal(path: Path) -> Iterator[BinaryIO]:
    """Open a journal for reading. A packed journal is unpacked into an anonymous temporary file.

    Raises OSError. Raises JournalError for a link, for a packed journal that is not gzip, and for one that expands to more than MAX_BYTES.
    """
    if not is_packed(path):
        with open_file(path, "rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as unpacked:
        with open_file(path, "rb") as file:
            for block in _blocks(path, file):
                unpacked.write(block)
        unpacked.seek(0)
        yield cast(BinaryIO, unpacked)


def pack_journal(path: Path) -> int:
    """Pack a complete journal, compare the result with the original, and delete the original. The caller must hold the run's lock.

    Returns the number of bytes freed. Raises OSError. Raises JournalError if the packed file's name is taken, unless by an earlier packed
    copy of the same journal.
    """
    done = path.with_name(path.name + PACKED)
    partial = partial_of(done)
    partial.unlink(missing_ok=True)
    if os.path.lexists(done):  # a previous call was killed between its last two steps
        with open_file(path, "rb") as file:
            _compare(file, done, "is in the way of the packed journal; move it elsewhere")
            freed = os.fstat(file.fileno()).st_size - done.stat().st_size
        path.unlink()
        return freed
    try:
        with open_file(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size > MAX_BYTES:
                raise JournalError(f"{path}: larger than {MAX_BYTES:,} bytes; it stays as it is")
            with open_file(partial, "ab") as raw:
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    shutil.copyfileobj(file, packed, BLOCK)
                raw.flush()
                os.fsync(raw.fileno())
            file.seek(0)
            _compare(file, partial, "differs from the journal: it was changed meanwhile")
        os.utime(partial, ns=(status.st_atime_ns, status.st_mtime_ns))
        freed = status.st_size - partial.stat().st_size
        _publish(partial, done)
    finally:
        partial.unlink(missing_ok=True)
    path.unlink()
    return freed


def _publish(partial: Path, done: Path) -> None:
    """Rename a file without replacing another. Raises JournalError if the name is taken."""
    try:
        os.link(partial, done)  # a rename would silently replace an existing file
    except FileExistsError:
        raise JournalError(f"{done}: is in the way of the packed journal; move it elsewhere") from None
    except OSError as error:
        if error.errno not in NO_LINKS or os.path.lexists(done):
            raise
        partial.rename(done)


def _compare(journal: BinaryIO, packed: Path, problem: str) -> None:
    """Compare a journal with a packed copy. Raises JournalError with `problem` if they differ."""
    try:
        with open_file(packed, "rb") as file:
            same = all(block == journal.read(len(block)) for block in _blocks(packed, file))
    except JournalError:
        same = False
    if not same or journal.read(1):
        raise JournalError(f"{packed}: {problem}")


def _blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the unpacked content of a packed journal in blocks."""
    size = 0
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            while block := packed.read(BLOCK):
                size += len(block)
                if size > MAX_BYTES:
                    raise JournalError(f"{path}: expands to more than {MAX_BYTES:,} bytes; restore it from a copy")
                yield block
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise JournalError(f"{path}: damaged gzip: {error}; restore it from a copy") from None
