"""The origin of a run: its creation time, and the commits of its agent's code and of longspan. They do not affect the run."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

import longspan

__all__ = ["commit_of", "describe_version", "own_commit", "utc_now"]

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


@cache
def own_commit() -> str | None:
    """Return the commit of longspan's own code: the one that the package was built from, or else the clone's. None if it is unknown."""
    package = Path(longspan.__file__).parent
    built = (package / "commit.txt").read_text("utf-8").strip()
    return commit_of(package / "__init__.py") if built.startswith("$") else built


def describe_version() -> str:
    """Return longspan's version and commit, such as `0.4.0 (commit 1f2e3d4c5b6a, modified)`."""
    commit, dirty, _ = (own_commit() or "unknown").partition("-dirty")
    return f"{longspan.__version__} (commit {commit[:12]}{', modified' if dirty else ''})"


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
