"""longspan show: print a run's tests, or one of them as it was played."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from longspan.simulator.base.terminal import quote_command, say_json
from longspan.simulator.cli import completion
from longspan.simulator.cli.options import JsonOption
from longspan.simulator.cli.runs import RunArgument

if TYPE_CHECKING:
    from longspan.simulator.cli.outputs import ShownTurn
    from longspan.simulator.pages.report.run_view import TestView, TurnView
    from longspan.simulator.results.graded_runs import GradedRun
    from longspan.simulator.terminal.console import Console

__all__ = ["show"]

LINES: Final = 40
"""The number of tests listed by default if the output is not a terminal."""


def show(
    run: RunArgument,
    test: Annotated[
        str | None,
        typer.Argument(
            help="A test, such as jokes-2.", metavar="TEST", show_default="a line for each", autocompletion=completion.complete_tests
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="List all of the run's tests, and not just a page of the worst.")] = False,
    json_: JsonOption = False,
) -> int:
    """Print a test as it was played: needles, questions, retrieved memories, replies, and the reason for its grade.

    Without TEST, prints one line per test for a page of the worst tests, with the worst last.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.suggestions import suggest
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.pages.report.run_view import RunView, TestView
    from longspan.simulator.results.graded_runs import load_runs
    from longspan.simulator.terminal.console import Console
    from longspan.simulator.terminal.played_tests import print_test

    _ = RunFolder(run).manifest  # raises an error for a folder of runs
    (graded,), _ = load_runs([run])
    if test is None:
        if json_:
            say_json({"folder": str(run)} | graded.result.model_dump(mode="json"))
        else:
            _print_tests(graded, run, Console(), all_)
        return 0
    found = next((each for each in graded.result.tests if each.id == test), None)
    if found is None and (about := next((planned.id for _, planned in graded.manifest.graded if planned.trunk == test), None)):
        raise InputError(f"{run}: {test} is a history and is not graded; show a test about it, such as {about}")
    if found is None:
        ids = [each.id for each in graded.result.tests]
        raise InputError(
            f"{run} has no test {test!r:.60}{suggest(test, ids, '`' + quote_command('longspan', 'show', run) + '` lists them')}"
        )
    played = TestView.of(found, RunView.of(graded.folder).conversations)
    if json_:
        say_json({"folder": str(run), "test": found.model_dump(mode="json"), "turns": [_turn(turn, played) for turn in played.turns]})
    else:
        print_test(graded, played, Console())
    return 0


def _turn(turn: TurnView, test: TestView) -> ShownTurn:
    """Return a turn of a test for JSON, with the memories retrieved for it if it is a question."""
    from longspan.simulator.terminal.found import memories_read
    from longspan.simulator.terminal.played_tests import whole_text

    return {
        "turn": turn.number,
        "test": turn.message.test,
        "kinds": turn.kinds,
        "sent_at": turn.message.sent_at.isoformat(),
        "text": whole_text(turn.text),
        "reply": whole_text(turn.reply) if turn.reply is not None else None,
        "asked": turn.asked,
        "ideal": whole_text(test.expected[turn.number]) if turn.number in test.expected else None,
        "found": [
            {"rank": rank, "text": text, "turns": turns, "needed": needed} for rank, text, turns, needed in memories_read(test, turn)
        ],
    }


def _print_tests(graded: GradedRun, run: Path, console: Console, all_: bool) -> None:
    from longspan.simulator.results.measures import document_run
    from longspan.simulator.terminal.played_tests import print_title
    from longspan.simulator.terminal.scores import by_recall, describe_failed, describe_found, print_opening, print_resume

    rows = print_opening(document_run(graded.manifest, graded.result), console)
    print_title(graded, console)
    searched, tests = graded.result.searched, sorted(graded.result.tests, key=lambda test: -test.lowest)
    if searched is not None:
        tests = by_recall(tests, searched.k or 0)
        console.say(graded.result.headline)
    page = (console.height - rows if console.is_terminal else LINES) - 4
    if left := 0 if all_ else max(0, len(tests) - page):
        console.say(f"{left:,} more tests with better scores: {quote_command('longspan', 'show', run, '--all')}", "dim")
    shown, width = tests[left:], console.width
    for line in describe_failed(shown, width) if searched is None else describe_found(shown, searched.k or 0, width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    if graded.result.interrupted and graded.manifest.imported is None:
        print_resume(run, console)
    console.say(f"one test as it was played: {quote_command('longspan', 'show', run, tests[-1].id)}", "dim")
