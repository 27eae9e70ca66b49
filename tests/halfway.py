"""What a kill leaves: a run that ended halfway through writing an event."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from longspan.simulator.journal import events
from longspan.simulator.journal.journal import Journal

Seen = Callable[[Journal, int, events.Event | None], None]
"""Is told of a journal that ends with half an event, the number of events that came before it, and the last of them."""


@contextmanager
def halfway(seen: Seen) -> Iterator[None]:
    """Write each new event of any journal in two parts, and call `seen` between them."""
    write = Journal.write
    written: list[events.Event] = []

    def in_parts(journal: Journal, event: events.Event) -> None:
        if journal.replaying:
            write(journal, event)
            return
        start = journal.path.stat().st_size
        write(journal, event)
        with journal.path.open("r+b") as file:
            file.seek(start)
            line = file.read()
            file.truncate(start + len(line) // 2)
            seen(journal, len(written), written[-1] if written else None)
            file.seek(0, os.SEEK_END)
            file.write(line[len(line) // 2 :])
        written.append(event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "write", in_parts)
        yield


@contextmanager
def killed_at(number: int | None) -> Iterator[None]:
    """Kill this process halfway through writing an event, counted from 0; None: never."""

    def kill(journal: Journal, written: int, last: events.Event | None) -> None:
        if written == number:
            os.kill(os.getpid(), signal.SIGKILL)

    with halfway(kill):
        yield
