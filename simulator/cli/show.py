"""longspan show: print a run's tests, or one of them as it was played."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from longspan.simulator.base.shares import percent
from longspan.simulator.base.terminal import say_json, typed
from longspan.simulator.cli import completion
from longspan.simulator.cli.options import JsonOption
from longspan.simulator.cli.runs import RunArgument

if TYPE_CHECKING:
    from longspan.simulator.cli.console import Console
    from longspan.simulator.cli.outputs import ShownTurn
    from longspan.simulator.report.excerpts import Excerpt
    from longspan.simulator.report.reading import ConversationView, TestView, TurnView
    from longspan.simulator.results.graded_runs import Graded

__all__ = ["print_test", "show"]

FOUND: Final = 5
"""The number of memories shown that were found for a question."""

LINES: Final = 40
"""The number of tests listed by default if the output is not a terminal."""

INDENT: Final = 8
"""The indentation of a turn's text, so that nothing in it can look like the next turn."""


def show(
    run: RunArgument,
    test: Annotated[
        str | None,
        typer.Argument(help="A test, such as jokes-2.", metavar="TEST", show_default="a line for each", autocompletion=completion.tests),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="List all of the run's tests, and not just a page of the worst.")] = False,
    json_: JsonOption = False,
) -> int:
    """Print a test as it was played: its needles, its questions, what a memory found, the replies and the reason of its grade.

    Without TEST, a line for each of the run's worst tests, as many as a page has, the worst last.
    """
    from longspan.simulator.archive.run_folder import RunFolder
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.suggestions import meant
    from longspan.simulator.cli.console import Console
    from longspan.simulator.report.reading import Reading, TestView
    from longspan.simulator.results.graded_runs import load

    _ = RunFolder(run).manifest  # so that a folder of runs is an error
    (graded,), _ = load([run])
    if test is None:
        if json_:
            say_json({"folder": str(run)} | graded.result.model_dump(mode="json"))
        else:
            _print_tests(graded, run, Console(), all_)
        return 0
    found = next((each for each in graded.result.tests if each.id == test), None)
    if found is None and (about := next((planned.id for _, planned in graded.manifest.graded if planned.trunk == test), None)):
        raise InputError(f"{run}: {test} tells a history and is not graded; show one of the tests about it, such as {about}")
    if found is None:
        ids = [each.id for each in graded.result.tests]
        raise InputError(f"{run} has no test {test!r:.60}{meant(test, ids, '`' + typed('longspan', 'show', run) + '` lists them')}")
    played = TestView.of(found, Reading.of(graded.folder).conversations)
    if json_:
        say_json({"folder": str(run), "test": found.model_dump(mode="json"), "turns": [_turn(turn, played) for turn in played.turns]})
    else:
        print_test(graded, played, Console())
    return 0


def _turn(turn: TurnView, test: TestView) -> ShownTurn:
    """Return a turn of a test as JSON, with the memories found for it if it is a question."""
    from longspan.simulator.cli.found import found_at

    return {
        "turn": turn.number,
        "test": turn.message.test,
        "kinds": turn.kinds,
        "sent_at": turn.message.sent_at.isoformat(),
        "text": _whole(turn.text),
        "reply": _whole(turn.reply) if turn.reply is not None else None,
        "asked": turn.asked,
        "ideal": _whole(test.expected[turn.number]) if turn.number in test.expected else None,
        "found": [{"rank": rank, "text": text, "turns": turns, "needed": needed} for rank, text, turns, needed in found_at(test, turn)],
    }


def _print_tests(graded: Graded, run: Path, console: Console, all_: bool) -> None:
    from longspan.simulator.cli.scores import by_recall, failed_lines, found_lines, print_opening
    from longspan.simulator.measures import shown as said

    rows = print_opening(said(graded.manifest, graded.result), console)
    _print_title(graded, console)
    searched, tests = graded.result.searched, sorted(graded.result.tests, key=lambda test: -test.lowest)
    if searched is not None:
        tests = by_recall(tests, searched.k or 0)
        console.say(graded.result.headline)
    page = (console.height - rows if console.is_terminal else LINES) - 4
    if left := 0 if all_ else max(0, len(tests) - page):
        console.say(f"{left:,} better ones: {typed('longspan', 'show', run, '--all')}", "dim")
    shown, width = tests[left:], console.width
    for line in failed_lines(shown, width) if searched is None else found_lines(shown, searched.k or 0, width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    console.say(f"one of them as it was played: {typed('longspan', 'show', run, tests[-1].id)}", "dim")


def _print_title(graded: Graded, console: Console) -> None:
    from longspan.simulator.base.terminal import as_line

    manifest = graded.manifest
    span = "" if manifest.alone else f" at {manifest.span:,} tokens"
    console.print(as_line(f"{manifest.suite.name}{span} · {manifest.labelled} · seed {manifest.seed}"), style="bold")


def print_test(graded: Graded, test: TestView, console: Console) -> None:
    """Print a test as it was played."""
    result = test.result
    _print_title(graded, console)
    score = "no score" if result.score is None else percent(result.score)
    console.say(f"{result.id}: {score}, {result.status.replace('_', ' ')}", "bold")
    _print_text("reason", result.reason, console)
    if result.correction is not None:
        machine = "no score" if result.machine_score is None else percent(result.machine_score)
        _print_text("by", f"{result.correction.by}: {result.correction.why}; the machine gave {machine}", console)
    for effect, lacking in (
        (graded.result.twins, "without its needles"),
        (graded.result.lesions, "with the last tokens alone"),
        (graded.result.control, "in a conversation to itself"),
    ):
        for row in effect.tests if effect is not None else ():
            if row.test == result.id:
                score = "no score" if row.score_without is None else percent(row.score_without)
                _print_text("again", f"{lacking}: {score}; {row.reason}", console)
    if result.farewell is not None:
        told = "no score" if result.farewell.score is None else percent(result.farewell.score)
        _print_text("after", f"asked again after its farewell: {told}; {result.farewell.reason}", console)
    if test.causes:
        lost = ", ".join(f"{cause.lost} of {cause.known} needles {cause.stage}" for cause in test.causes)
        _print_text("lost", lost, console)
    before: TurnView | None = None
    for turn in test.turns:
        if before is not None and turn.number > before.number + 1:
            between = turn.number - before.number - 1
            tokens = turn.message.start - before.message.start - before.message.tokens - before.reply_tokens
            whose = "of others" if result.trunk is None else "of the history"
            console.print(f"   ... {between:,} turn{'s' * (between > 1)} {whose}, {tokens:,} tokens", style="dim")
        if test.conversation is not None:
            _print_nights(test.conversation, before, turn, console)
        _print_turn(turn, test, console)
        before = turn
    if before is None:
        console.print("It was not started.")


def _print_nights(conversation: ConversationView, before: TurnView | None, turn: TurnView, console: Console) -> None:
    """Print the nights between two turns of a test, or those directly before its first."""
    first = turn.number if before is None else before.number + 1
    for each in (
        conversation.turns[first - conversation.first : turn.number + 1 - conversation.first] if first >= conversation.first else ()
    ):
        for night in each.nights:
            console.say(night, "dim")


def _print_turn(turn: TurnView, test: TestView, console: Console) -> None:
    from longspan.simulator.analysis.distances import needs

    own = turn.message.test == test.result.id
    kinds = ", ".join(turn.kinds) if own or turn.number in test.evidence else "another's"
    asked = next((each for each in test.asked if each.turn == turn.number), None)
    several = sum(need.turn == turn.number for need in needs(test.result)) > 1
    distance = f", its {'furthest ' * several}needle {asked.tokens:,} tokens back" if asked is not None else ""
    proof = ", proves the grade" if turn.number in test.proof else ""
    console.print(f"\nturn {turn.number}, {turn.message.sent_at:%a %d %b %Y %H:%M}: {kinds}{distance}{proof}", style="bold")
    _print_text("user", _whole(turn.text), console)
    if turn.reply is None:
        _print_text("agent", "(no reply: the conversation was interrupted)", console)
    elif turn.asked or turn.reply.length:  # a history of a conversation between two people has no replies
        _print_text("agent" if turn.asked else "told", _whole(turn.reply), console)
    if (ideal := test.expected.get(turn.number)) is not None:
        _print_text("ideal", _whole(ideal), console)
    if asked is not None or (own and "question" in turn.kinds):
        _print_found(test, turn, console)


def _print_found(test: TestView, turn: TurnView, console: Console) -> None:
    """Print the memories found for a question, and the ranks of the question's needles."""
    from longspan.simulator.cli.found import found_at, places

    for line in places(test, turn):
        _print_text("found", line, console)
    found = found_at(test, turn)
    shown = [each for each in found if each.rank <= FOUND or each.needed]
    for each in shown:
        origin = f" (turn {', '.join(f'{number:,}' for number in each.turns)})" if each.turns else ""
        _print_text(f"{'*' * each.needed}{each.rank}", f"{each.text}{origin}", console)
    if left := len(found) - len(shown):
        _print_text("", f"... {left:,} more", console)


def _print_text(label: str, text: str, console: Console) -> None:
    """Print several lines of text after a label, all of them indented."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=INDENT - 1, style="dim", justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(label, text)
    console.print(grid)


def _whole(text: Excerpt) -> str:
    """Return the whole excerpt, with a note at the cut if it is very long."""
    if not text.left_out:
        return text.head
    return f"{text.head}\n... {text.left_out:,} characters left out ...\n{text.tail}"
