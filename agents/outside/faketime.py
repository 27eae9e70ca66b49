"""A program's own clock, set to the conversation's virtual time by libfaketime.

Benchmarks that let time pass cannot usually reach an agent that asks the system what time it is (GoodAI, section 6). With
libfaketime before the C library it is told another time: that of the message it was sent, running on from there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from longspan.agents.base import InputError

__all__ = ["FakeClock"]

LIBRARY: Final = "faketime/libfaketime.so.1"
PLACES: Final = (*sorted(Path("/usr/lib").glob("*-linux-gnu*")), Path("/usr/lib"), Path("/usr/local/lib"))
"""Where Debian's package libfaketime puts its library, by architecture; and where others do."""

SHARED: Final = ("faketime_shm_{}", "sem.faketime_sem_{}")
"""What libfaketime leaves behind of a process that is killed. A later one with the same number could not start."""


@final
class FakeClock:
    """The clock of one program. `set` it before each message; `close` removes what it leaves on the disk.

    The program's time zone is UTC, so that its local time and its UTC are both the virtual time. Raises InputError where
    libfaketime is missing.
    """

    def __init__(self) -> None:
        self._library = _find()
        self._folder: Path | None = None

    def environment(self) -> Mapping[str, str]:
        """The environment of a program that has this clock."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="longspan-clock-"))
            self.set(None)
        preloaded = os.environ.get("LD_PRELOAD", "")
        kept = {name: value for name, value in os.environ.items() if name not in ("FAKETIME", "FAKETIME_SHARED")}
        return kept | {
            "TZ": "UTC",
            "LD_PRELOAD": f"{self._library}:{preloaded}".rstrip(":"),
            "FAKETIME_TIMESTAMP_FILE": str(self._folder / "now"),
            "FAKETIME_NO_CACHE": "1",
        }

    def set(self, now: datetime | None) -> None:
        """Set the clock to a virtual time; None: to the machine's."""
        if self._folder is None:
            return
        ahead = now.replace(tzinfo=UTC).timestamp() - time.time() if now is not None else 0.0
        partial = self._folder / "partial"
        partial.write_text(f"{ahead:+.6f}\n", "ascii")
        partial.replace(self._folder / "now")  # whole at once: it is read whenever the program asks for the time

    def close(self, pids: Iterable[int]) -> None:
        """Remove what the programs of these numbers, which have ended, have left behind."""
        for pid in pids:
            for name in SHARED:
                with suppress(OSError):
                    Path("/dev/shm", name.format(pid)).unlink()  # noqa: S108
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _find() -> Path:
    for place in PLACES:
        if (place / LIBRARY).is_file():
            return place / LIBRARY
    if sys.platform != "linux":
        raise InputError("exec: faketime=true works on Linux alone")
    raise InputError("exec: faketime=true needs the library libfaketime: on Debian, apt install libfaketime")
