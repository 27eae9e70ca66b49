"""Readers of histories by name, as used before `=` in `--data locomo=FILE`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories import beam, locomo, longmemeval, personamem
from longspan.scenarios.histories.formats.reading import read_log
from longspan.scenarios.histories.history import History
from longspan.simulator.base.errors import InputError

__all__ = ["READERS", "read_histories"]

READERS: Final[Mapping[str, Callable[..., Iterator[History]]]] = {
    "locomo": locomo.read_locomo,
    "longmemeval": longmemeval.read_longmemeval,
    "beam": beam.read_beam,
    "personamem": personamem.read_personamem,
    "history": read_log,
}


def read_histories(name: str, path: Path | str, **options: Any) -> tuple[History, ...]:
    """Return the histories at a path: a file, folder, zip or tar. `name` is its format, see READERS. `options`: of the reader.

    Raises InputError in one line that names the fault and its file, line, conversation or question.
    """
    if name not in READERS:
        raise InputError(f"unknown reader {name!r:.80}; use one of {', '.join(READERS)}")
    try:
        found = tuple(READERS[name](Path(path), **options))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not found:
        raise InputError(f"{path}: has no conversations")
    twice = next((id for id, count in Counter(history.id for history in found).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{path}: two conversations have the id {twice!r:.80}")
    return found
