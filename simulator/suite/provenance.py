"""Where a run comes from: when it was made, and the commit of its agent's code. Both are recorded, and decide nothing."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

__all__ = ["commit_of", "now"]

TIMEOUT: Final = 10.0
"""Seconds that git may take. A run goes without its commit then."""


def now() -> datetime:
    """Return the date and time, in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def commit_of(file: Path) -> str | None:
    """Return the commit of the git repository that a file is part of, with "-dirty" if files of it have changed since.

    None if it is part of none, or if there is no git.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", "--", file.name) is None:
        return None
    return _git(file.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, or None if it fails. It is not told of a repository by the environment, as it is in its own hooks."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"GIT_OPTIONAL_LOCKS": "0"}
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace").strip() or None
    return None
