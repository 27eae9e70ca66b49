"""The copy of the current folder for the nodes of a Ray cluster that do not have it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from longspan.simulator.base.errors import InputError

__all__ = ["pack_folder"]

MAX_BYTES: Final = 100_000_000
"""The maximum size of the copy. Every node unpacks it, and the cluster's head keeps it in memory."""

SECRET: Final = re.compile(
    r"(?i)(.*\.(pem|key|p12|pfx|jks|keystore|kdbx|env)|id_(rsa|dsa|ecdsa|ed25519).*|_?netrc|.*(credential|secret)s?\b.*\.(json|ya?ml|toml|ini|txt))"
)
"""Names of files that usually contain keys."""

BULK: Final = {"__pycache__", "node_modules"}


def pack_folder(folder: Path, out: Path, archive: Path) -> None:
    """Write the files of `folder` to a zip archive, except those in the sweep's folder `out`.

    Left out are names that begin with a dot, links, virtual environments, runs, and files that look like keys.
    Raises InputError if the files exceed MAX_BYTES, or one cannot be read.
    """
    size = 0
    with ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as packed:
        for path in _files(folder, out.resolve()):
            try:
                size += path.stat().st_size
                if size > MAX_BYTES:
                    raise InputError(
                        f"{folder}: more than {MAX_BYTES // 10**6} MB to send to the nodes of the Ray cluster; start the sweep in a folder "
                        "with only what it needs, or add --no-ship if the nodes have the folder"
                    )
                packed.write(path, path.relative_to(folder))
            except OSError as error:
                raise InputError(
                    f"{path}: cannot be sent to the nodes of the Ray cluster: {error.strerror}; --no-ship sends no files"
                ) from error


def _files(folder: Path, out: Path) -> Iterator[Path]:
    for name, folders, files in os.walk(folder):
        here = Path(name)
        folders[:] = sorted(each for each in folders if not (each.startswith(".") or each in BULK or _is_left_out(here / each, out)))
        for each in sorted(files):
            path = here / each
            if not each.startswith(".") and not SECRET.fullmatch(each) and path.is_file() and not path.is_symlink():
                yield path


def _is_left_out(folder: Path, out: Path) -> bool:
    """Return whether a folder is the sweep's, another sweep, a run or a virtual environment."""
    is_run = (folder / "manifest.json").is_file() and (folder / "conversations").is_dir()
    return is_run or folder.resolve() == out or any((folder / name).is_file() for name in ("sweep.json", "pyvenv.cfg"))
