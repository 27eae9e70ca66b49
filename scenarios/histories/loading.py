"""Load the histories of a run, rereading them only when their files change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories.history import History
from longspan.scenarios.histories.registry import read_histories
from longspan.simulator.base.files.file_io import file_stamp

__all__ = ["load_histories"]

REMEDY: Final = "docs/guides/histories.md says what it should be"
MOST: Final = 10_000
"""Maximum number of files whose state is compared."""


def load_histories(name: str, path: Path, **options: Any) -> tuple[History, ...]:
    """Return the histories at a path as `read_histories` does, from the cache unless a file has changed. Raises InputError."""
    files = [path, *islice(_files(path), MOST), *(each for each in options.values() if isinstance(each, Path))]
    return _read(name, str(path), tuple(file_stamp(file, REMEDY) for file in files), **options)


@lru_cache(maxsize=4)
def _read(name: str, path: str, changed: tuple[tuple[int, int], ...], **options: Any) -> tuple[History, ...]:
    return read_histories(name, path, **options)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files that are read with a path: those in a folder, or those next to a file whose names match a companion's."""
    if path.is_dir():
        for place, folders, names in os.walk(path):
            folders.sort()
            yield from (file for name in sorted(names) if (file := Path(place, name)).is_file())
    else:
        for pattern in ("shared_contexts_*", "documents_*", "users.json"):  # PersonaMem's conversations, and the names in a Slack export
            yield from sorted(path.parent.glob(pattern))
