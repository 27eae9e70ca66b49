"""The histories that a run is about, read once for each state of their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from longspan.scenarios.histories.history import History
from longspan.scenarios.histories.registry import read
from longspan.simulator.files.reading import stamp

__all__ = ["load"]

REMEDY: Final = "docs/histories.md says what it should be"
MOST: Final = 10_000
"""How many files' states are compared."""


def load(name: str, path: Path) -> tuple[History, ...]:
    """Return the histories at a path as `read` does, which is called again only if a file there has changed. Raises InputError."""
    return _read(name, str(path), (stamp(path, REMEDY), *(stamp(file, REMEDY) for file in islice(_files(path), MOST))))


@lru_cache(maxsize=4)
def _read(name: str, path: str, changed: tuple[tuple[int, int], ...]) -> tuple[History, ...]:
    return read(name, path)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files that are read with a path: those in the folder, or those beside a file whose names begin as a partner's would."""
    if path.is_dir():
        for place, folders, names in os.walk(path):
            folders.sort()
            yield from (file for name in sorted(names) if (file := Path(place, name)).is_file())
    else:
        for pattern in ("shared_contexts_*", "documents_*"):  # PersonaMem's conversations lie beside its questions
            yield from sorted(path.parent.glob(pattern))
