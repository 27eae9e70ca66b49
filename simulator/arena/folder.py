"""An arena's folder: what its judge has answered, so that nothing is paid for twice, its results and its pages."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, final

from longspan.simulator.arena.results import Result
from longspan.simulator.errors import InputError
from longspan.simulator.manifest import write_json
from longspan.simulator.run_folder import MANIFEST, RunFolder, locked

__all__ = ["ArenaFolder"]


@final
class ArenaFolder:
    """A folder that is made where there is none. Raises InputError for one that cannot be, and for a run's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if (path / MANIFEST).exists():
            raise InputError(f"{path}: is a run's folder; choose another with --out")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path}: cannot make the folder: {error.strerror}; choose another with --out") from error
        self._files = RunFolder(path)  # answers and incidents are kept as a run keeps them

    def lock(self) -> AbstractContextManager[int]:
        """Hold the arena alone. Raises InputError where another process holds it."""
        return locked(self.path, "arena")

    def judgements(self) -> list[dict[str, Any]]:
        """What the judge has answered so far, each once."""
        return self._files.judgements()

    def judged(self, entry: dict[str, Any]) -> None:
        """Keep an answer of the judge's."""
        self._files.judged(entry)

    def incident(self, **entry: Any) -> None:
        """Note that an answer failed."""
        self._files.incident(**entry)

    def write(self, result: Result, page: str) -> tuple[Path, Path]:
        """Write a result and its page, each whole or not at all, over those of the same metric and number of facts. Returns their
        paths. Raises InputError where the disk refuses."""
        facts = "" if result.rules.metric == "faithfulness" else f"-{result.rules.facts}"
        found, shown = (self.path / f"{result.rules.metric}{facts}.{ending}" for ending in ("json", "html"))
        try:
            write_json(found, result)
            partial = shown.with_name(f".{shown.name}.partial")
            partial.unlink(missing_ok=True)  # never through a link that somebody left there
            with partial.open("x", encoding="utf-8") as file:
                file.write(page)
            partial.replace(shown)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}; choose another place with --out") from error
        return found, shown
