"""Memory tests as pytest items. A suite is played when the first of its tests runs, in one conversation as usual."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, Final, final

import pytest

from longspan.simulator.api.checking import describe_failure
from longspan.simulator.api.playing import plan_runs, run
from longspan.simulator.api.results import Results, load
from longspan.simulator.api.shown import ShownTest
from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.files.locks import lock_folder
from longspan.simulator.running.planning import Plan

__all__ = ["DATA", "MemoryTest", "folder_of", "memory_tests"]

FOLDER: Final = pytest.StashKey[Path]()
DATA: Final = pytest.StashKey[list[str]]()
"""A line for each suite that plays data."""

WAIT: Final = 0.2
"""Seconds before a worker checks again whether another worker has finished a run."""


def folder_of(config: pytest.Config) -> Path:
    """Return the folder for the session's runs."""
    if FOLDER not in config.stash:
        shared = getattr(config, "workerinput", {}).get("longspan")
        out: Path | None = config.getoption("--longspan-out")
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        config.stash[FOLDER] = Path(shared) if shared else Path(tempfile.mkdtemp(prefix="longspan-", dir=out))
    return config.stash[FOLDER]


def memory_tests(session: pytest.Session) -> list[pytest.Item]:
    """Return an item for each requested memory test. Raises pytest.UsageError for a suite that cannot be played."""
    option = session.config.getoption
    agents, seeds = option("--longspan-agent") or ["notebook"], option("--longspan-seed") or [0]
    found: list[pytest.Item] = []
    for number, suite in enumerate(option("--longspan")):
        asked = {
            "suite": suite,
            "agent": agents,
            "seeds": seeds,
            "scenarios": option("--longspan-scenario"),
            "data": option("--longspan-data"),
            "replies": option("--longspan-replies"),
        }
        try:
            plans = plan_runs(**asked)
        except LongspanError as error:
            raise pytest.UsageError(f"--longspan {suite}: {error}") from None
        session.config.stash.setdefault(DATA, []).extend(_describe_data(suite, plans[0]))
        collector = _Suite.from_parent(session, name=suite, nodeid=f"longspan::{suite}", asked=asked, plans=plans, number=number)
        found += collector.collect()
    return found


def _describe_data(suite: str, plan: Plan) -> list[str]:
    """Return lines that say which of a suite's data are the user's, and which are made up."""
    own = [f"longspan {suite}: plays {path}" for path in plan.manifest.suite.paths().values()]
    return [*own, *(f"longspan {suite}: {name} is made up; --longspan-data {name}=PATH plays your data" for name in plan.made_up)]


@final
class _Suite(pytest.Collector):
    """A suite that is played once for all of its tests."""

    def __init__(self, *, asked: dict[str, Any], plans: list[Plan], number: int, **node: Any) -> None:
        super().__init__(**node)
        self._asked = asked
        self._plans = plans
        self._number = number
        self._results: Results | None = None
        self._error: LongspanError | None = None
        self.add_marker("longspan")

    def collect(self) -> list[pytest.Item]:
        return [self._test(plan, test.id) for plan in self._plans for _, test in plan.manifest.graded]

    def _test(self, plan: Plan, test: str) -> pytest.Item:
        name = f"{plan.agent}::seed{plan.manifest.seed}::{test}"
        return MemoryTest.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", plan=plan, test=test)

    def show(self, plan: Plan, test: str) -> ShownTest:
        """Return a test as it was played. Raises LongspanError if the suite could not be played."""
        if self._results is None and self._error is None:
            self._play()
        if self._results is None:
            raise self._error or InputError(f"{self.name}: it was not played")
        shown = self._results.show(test, seed=plan.manifest.seed, agent=str(plan.agent))
        if shown.score is None and shown.status in ("agent_error", "unfinished") and self._error is not None:
            raise self._error
        return shown

    def _play(self) -> None:
        """Play the suite, unless another worker has done so."""
        folder = folder_of(self.config) / str(self._number)
        folder.mkdir(exist_ok=True)
        with _hold_lock(folder):
            if not any(folder.glob("*/manifest.json")):
                try:
                    run(**self._asked, out=folder, progress=False)
                except LongspanError as error:
                    self._error = error
        try:
            self._results = load(folder)
        except InputError as error:
            self._error = self._error or error


@final
class MemoryTest(pytest.Item):
    """A memory test. It passes if it gets the requested score. `seconds` is the time that the agent took, once it has been played."""

    def __init__(self, *, plan: Plan, test: str, **node: Any) -> None:
        super().__init__(**node)
        self._plan = plan
        self._test = test
        self.parent: _Suite
        self.seconds: float | None = None

    def runtest(self) -> None:
        shown = self.parent.show(self._plan, self._test)
        self.seconds = shown.seconds
        wanted: float = self.config.getoption("--longspan-at-least")
        if shown.score is None or shown.score < wanted - 1e-9:
            raise _LostError(shown)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        match excinfo.value:
            case _LostError():
                return str(excinfo.value)
            case LongspanError():
                return f"{type(excinfo.value).__name__}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        return "longspan", None, f"{self.parent.name}::{self.name}"


@final
class _LostError(AssertionError):
    """A test lost points."""

    def __init__(self, shown: ShownTest) -> None:
        super().__init__(f"{describe_failure(shown)}\nthe run: {shown.folder}")


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    """Hold a folder's lock during the context. Wait until no other worker holds it."""
    while True:
        try:
            with lock_folder(folder, "suite"):
                yield
                return
        except InputError:
            sleep(WAIT)
