"""The pytest plugin: a fixture, and with `--longspan` a test for each memory test. Heavy modules are imported only when used."""

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
    group.addoption("--longspan-at-least", type=float, default=1.0, metavar="SCORE", help="The score that passes; 1 by default.")
    group.addoption("--longspan-replies", type=Path, default=None, metavar="FILE", help="Keep models' replies in this file.")
    group.addoption("--longspan-out", type=Path, default=None, metavar="DIR", help="The folder for the runs; a temporary one by default.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "longspan: a memory test that --longspan plays")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the memory tests, so that they can be selected like others."""
    if config.getoption("--longspan"):
        from longspan.simulator.api.pytest_items import memory_tests

        items += memory_tests(session)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give each memory test the duration of the agent's replies in it, because the first test plays the whole suite."""
    report = yield
    if call.when == "call" and item.config.getoption("--longspan"):
        from longspan.simulator.api.pytest_items import MemoryTest

        if isinstance(item, MemoryTest) and item.seconds is not None:
            report.duration = item.seconds
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let all workers of xdist share the runs."""
    if node.config.getoption("--longspan"):
        from longspan.simulator.api.pytest_items import folder_of

        node.workerinput["longspan"] = str(folder_of(node.config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what agents have left while the interpreter still can. A session whose agents cannot be closed fails."""
    closing = sys.modules.get("longspan.simulator.base.closing")
    if closing is None or not session.config.getoption("--longspan"):
        return
    closing.end_all()
    for problem in closing.take_failures():
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        session.config.get_terminal_writer().line(f"\nlongspan: {problem}")


@pytest.fixture
def longspan_check(tmp_path: Path, pytestconfig: pytest.Config) -> Callable[..., Results]:
    """`longspan.check`, with its runs in the test's temporary folder. The agent defaults to `--longspan-agent`, and the file of replies to
    `--longspan-replies`."""
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
