"""The pytest plugin: a fixture, and with `--longspan` an item for each memory test.

pytest imports this module in every session, so heavy modules are imported only when they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from longspan.simulator.api.results import Results


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("longspan", "longspan: the memory of conversational agents")
    group.addoption("--longspan", action="append", default=[], metavar="SUITE[@SPAN]", help="Play a suite: each of its tests is a test.")
    group.addoption("--longspan-agent", action="append", default=[], metavar="SPEC", help="The agent, such as python:module:Class.")
    group.addoption(
        "--longspan-seed", action="append", default=[], metavar="N", help="A seed of the tests, or several, such as 0-4; 0 by default."
    )
    group.addoption("--longspan-scenario", action="append", default=[], metavar="NAME", help="Only this scenario.")
    group.addoption("--longspan-data", action="append", default=[], metavar="NAME=PATH", help="Your own data, such as history=FILE.")
    group.addoption("--longspan-at-least", type=float, default=1.0, metavar="SCORE", help="The score that passes; 1 by default.")
    group.addoption("--longspan-replies", type=Path, default=None, metavar="FILE", help="Keep models' replies in this file.")
    group.addoption("--longspan-out", type=Path, default=None, metavar="DIR", help="The folder for the runs; a temporary one by default.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "longspan: a memory test that --longspan plays")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the memory tests first, so that pytest can select among them like other tests."""
    if config.getoption("--longspan"):
        from longspan.simulator.api.pytest_items import memory_tests

        items += memory_tests(session)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say which data are played: without --longspan-data, suites about histories make them up."""
    if not config.getoption("--longspan"):
        return []
    from longspan.simulator.api.pytest_items import DATA

    return config.stash.get(DATA, [])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report the duration of the agent's replies for each memory test: the first test to run plays the whole suite."""
    report = yield
    if call.when == "call" and item.config.getoption("--longspan"):
        from longspan.simulator.api.pytest_items import MemoryTest

        if isinstance(item, MemoryTest) and item.seconds is not None:
            report.duration = item.seconds
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Make all xdist workers share the runs."""
    if node.config.getoption("--longspan"):
        from longspan.simulator.api.pytest_items import folder_of

        node.workerinput["longspan"] = str(folder_of(node.config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close the agents that are left, while the interpreter is still alive. The session fails if one cannot be closed."""
    closing = sys.modules.get("longspan.simulator.base.closing")
    if closing is None or not session.config.getoption("--longspan"):
        return
    closing.end_all()
    for problem in closing.take_failures():
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        session.config.get_terminal_writer().line(f"\nlongspan: {problem}")


@pytest.fixture
def longspan_check(tmp_path: Path, pytestconfig: pytest.Config) -> Callable[..., Results]:
    """`longspan.check` with the runs in the test's temporary folder. The defaults of its agent and its file of replies are the values of
    `--longspan-agent` and `--longspan-replies`."""
    from longspan.simulator.api.checking import check

    def checked(agent: Any = None, **settings: Any) -> Results:
        __tracebackhide__ = True
        if agent is None:
            given = pytestconfig.getoption("--longspan-agent")
            if len(given) != 1:
                raise pytest.UsageError("longspan_check: give an agent, or one by --longspan-agent")
            agent = given[0]
        replies = pytestconfig.getoption("--longspan-replies")
        return check(agent, **{"out": tmp_path, "replies": replies} | settings)

    return checked
