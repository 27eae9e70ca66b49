"""The origin of a run: its creation time, and the commit of its agent's code. Neither affects the run."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

__all__ = ["commit_of", "utc_now"]

TIMEOUT: Final = 10.0
"""The most seconds that git may take. After that, the run has no commit."""


def utc_now() -> datetime:
    """Return the current date and time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def commit_of(file: Path) -> str | None:
    """Return the commit of the git repository that contains a file, with "-dirty" if it has uncommitted changes.

    Returns None if the file is in no repository, or if git is missing.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", "--", file.name) is None:
        return None
    return _git(file.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *arguments: str) -> str | None:
    """Return git's output, or None if git fails.

    Ignores environment variables that name a repository: git sets them in its hooks, where they name the wrong one.
    """
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
