"""A program's clock, set to the conversation's virtual time by libfaketime.

A benchmark with simulated time usually cannot deceive an agent that reads the system clock (GoodAI, section 6). With libfaketime preloaded,
the clock starts at the current message's time and runs on from there.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from longspan.agents.base import AgentError, InputError
from longspan.simulator.base.files.folders import remove_folder

__all__ = ["FakeClock"]

LIBRARY: Final = "faketime/libfaketime.so.1"
FOLDERS: Final = (*sorted(Path("/usr/lib").glob("*-linux-gnu*")), Path("/usr/lib"), Path("/usr/local/lib"))
"""The library folders of Debian's package libfaketime, by architecture, and other locations."""


@final
class FakeClock:
    """The clock of one program. Call `set` before each message; `close` removes its files.

    The program's time zone is UTC, so local time and UTC both equal the virtual time. Raises InputError without libfaketime.
    """

    def __init__(self) -> None:
        self._library = _find()
        self._folder: Path | None = None

    def environment(self) -> Mapping[str, str]:
        """Return the environment for a program with this clock."""
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
        """Set the clock to a virtual time, or with None to the machine's time."""
        if self._folder is None:
            return
        offset = now.replace(tzinfo=UTC).timestamp() - time.time() if now is not None else 0.0
        partial = self._folder / "partial"
        try:
            partial.write_text(f"{offset:+.6f}\n", "ascii")
            partial.replace(self._folder / "now")  # atomic: the program may read it at any moment
        except OSError as error:
            raise AgentError(f"{partial}: the program's clock cannot be written: {error.strerror}") from error

    def close(self, pids: Iterable[int]) -> None:
        """Remove the files of the ended processes with these ids."""
        for pid in pids:
            for path in find_leftovers(pid):
                with suppress(OSError):
                    path.unlink()
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None


def find_leftovers(pid: int) -> list[Path]:
    """Return the files that libfaketime leaves behind when a process is killed.

    They would stop a later process with this id from starting.
    """
    return [Path("/dev/shm", f"{name}_{pid}") for name in ("faketime_shm", "sem.faketime_sem")]  # noqa: S108


def _find() -> Path:
    for folder in FOLDERS:
        if (folder / LIBRARY).is_file():
            return folder / LIBRARY
    if sys.platform != "linux":
        raise InputError("faketime=true only works on Linux")
    raise InputError("faketime=true needs the library libfaketime: on Debian, apt install libfaketime")
