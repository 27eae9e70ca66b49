"""Access to folders that longspan owns: runs, sweeps, calibrations, arenas and written data.

Such a folder may come from an untrusted source. So nothing in it is reached through a link, only regular files are opened, and opening a
named pipe does not block. The folder itself may be a link, because the user named it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal

from longspan.simulator.base.errors import JournalError

__all__ = ["check_file", "list_subfolders", "open_file", "path_inside", "read_file", "remove_folder", "walk_folder"]


def path_inside(root: Path, *names: str) -> Path:
    """Return the path of a folder below `root`. It may not exist.

    Raises JournalError if a part of the path below `root` is a link or not a folder.
    """
    path = root
    for name in names:
        path = path / name
        _check(path, stat.S_ISDIR, "a folder")
    return path


def check_file(path: Path) -> None:
    """Raise JournalError if the path exists and is not a regular file, for example a link."""
    _check(path, stat.S_ISREG, "a regular file")


def open_file(path: Path, mode: Literal["rb", "ab", "r+b"], buffering: int = -1) -> BinaryIO:
    """Open a regular file. Raises OSError, and JournalError for a link or anything else that is not a regular file."""
    return open(path, mode, buffering, opener=_open)


def _open(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError:
        check_file(Path(path))  # raises a more specific error if it can
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _other_than("a regular file", path)
    return handle


def read_file(path: Path, max_bytes: int | None = None) -> bytes:
    """Return the content of a regular file. Raises the errors of `open_file`, and JournalError if the file is larger than `max_bytes`."""
    with open_file(path, "rb") as file:
        if max_bytes is not None and os.fstat(file.fileno()).st_size > max_bytes:
            raise JournalError(f"{path}: is larger than any that longspan writes; restore it from a copy, or move it away")
        return file.read()


def list_subfolders(root: Path, *names: str) -> list[Path]:
    """Return the subfolders of a folder below `root`, sorted by name. Return an empty list if the folder does not exist.

    Raises JournalError if a subfolder or a part of the path is a link.
    """
    folder = path_inside(root, *names)
    found = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()) if folder.is_dir() else []
    return [path_inside(folder, name) for name in found]


def walk_folder(folder: Path) -> Iterator[Path]:
    """Yield the regular files and folders at any depth below a folder, in an order that depends only on their names.

    Raises OSError, and JournalError for anything but regular files and folders.
    """
    left = [folder]  # a stack instead of recursion: the folders may be nested very deeply on purpose
    while left:
        for entry in sorted(os.scandir(left.pop()), key=lambda entry: entry.name):
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                left.append(path)
            else:
                check_file(path)
            yield path


def remove_folder(folder: Path) -> None:
    """Delete a folder and its content. Links in it are deleted, not followed. Does nothing if `folder` is not a folder; ignores errors."""
    if not folder.is_symlink() and folder.is_dir():  # rmtree would open a named pipe, and wait for its other end
        with suppress(RecursionError):  # too deeply nested
            shutil.rmtree(folder, ignore_errors=True)


def _check(path: Path, wanted: Callable[[int], bool], kind: str) -> None:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
    if stat.S_ISLNK(mode):
        raise JournalError(f"{path}: is a symbolic link; longspan follows no links inside its folders: replace it by what it points to")
    if not wanted(mode):
        raise _other_than(kind, path)


def _other_than(kind: str, path: Path | str) -> JournalError:
    return JournalError(f"{path}: is not {kind}; move it elsewhere")
