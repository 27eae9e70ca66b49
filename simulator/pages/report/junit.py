"""Results as JUnit XML, which CI services show: a suite for each run, a case for each test. Full marks pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import write_text
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.excerpts import Excerpt
from longspan.simulator.pages.report.run_view import RunView, TestView, TurnView
from longspan.simulator.results.result import Result, TestResult

__all__ = ["check_junit", "failure_text", "sum_seconds", "write_junit"]


def check_junit(path: Path) -> None:
    """Raise InputError if no file can be written at `path`."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--junit {path}: {'is a folder' if path.is_dir() else f'there is no folder {path.parent}'}; name a file")


def write_junit(path: Path, runs: Sequence[tuple[RunFolder, Result]]) -> None:
    """Write the results of runs to a file, replacing an older one.

    Raises InputError if it cannot be written, and JournalError for a damaged journal.
    """
    root = ElementTree.Element("testsuites")
    for run, result in runs:
        _add_suite(root, run, result)
    try:
        write_text(path, ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")
    except OSError as error:
        raise InputError(f"--junit {path}: cannot be written: {error.strerror}") from error


def _add_suite(root: ElementTree.Element, run: RunFolder, result: Result) -> None:
    conversations = RunView.of(run).conversations
    suite = ElementTree.SubElement(root, "testsuite", name=escape_invisible(run.path.name), tests=str(len(result.tests)))
    suite.set("time", f"{sum_seconds(turn for conversation in conversations.values() for turn in conversation.turns):.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="measure", value=escape_invisible(result.measured))
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for test in result.tests:
        case = ElementTree.SubElement(
            suite, "testcase", classname=escape_invisible(f"{result.suite}.{test.scenario}"), name=escape_invisible(test.id)
        )
        conversation = conversations.get(test.conversation or "")
        case.set("time", f"{sum_seconds(conversation.by_test.get(test.id, ()) if conversation is not None else ()):.3f}")
        if (outcome := _outcome(test)) is not None:
            counts[outcome] += 1
            found = ElementTree.SubElement(case, outcome, message=escape_invisible(test.reason))
            found.text = escape_invisible(failure_text(TestView.of(test, conversations), result))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))


def sum_seconds(turns: Iterable[TurnView]) -> float:
    """Return the seconds that the agent took for turns, according to the journal."""
    return sum(max(0.0, turn.seconds or 0.0) for turn in turns)


def _outcome(test: TestResult) -> str | None:
    """Return the element for a failed test; None for a passed one."""
    if test.score is None:
        return "skipped" if test.status == "unscored" else "error"
    return None if test.score == 1 else "failure"


def failure_text(test: TestView, run: Result) -> str:
    """Describe a failed test for a developer: its score in `run`, its needles, and its questions with actual and ideal replies."""
    score = "no score" if test.result.score is None else run.named(test.result.score)
    lines = [f"{score}: {test.result.reason}"]
    lines += [f"needle, turn {turn.number}: {_whole(turn.text)}" for turn in test.needles]
    for turn in test.questions:
        lines += _describe_exchange(turn, test.expected.get(turn.number))
    return "\n".join(lines)


def _describe_exchange(turn: TurnView, ideal: Excerpt | None) -> Iterable[str]:
    yield f"question, turn {turn.number}: {_whole(turn.text)}"
    yield f"reply: {_whole(turn.reply)}" if turn.reply is not None else "no reply"
    if ideal is not None:
        yield f"ideal: {_whole(ideal)}"


def _whole(text: Excerpt) -> str:
    return f"{text.head} ... {text.tail}" if text.left_out else text.head
