"""A played test as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longspan.simulator.base.shares import format_percent

if TYPE_CHECKING:
    from longspan.simulator.pages.report.excerpts import Excerpt
    from longspan.simulator.pages.report.run_view import ConversationView, TestView, TurnView
    from longspan.simulator.results.graded_runs import GradedRun
    from longspan.simulator.terminal.console import Console

__all__ = ["print_test", "print_title", "whole_text"]

FOUND: Final = 5
"""The number of retrieved memories shown for a question."""

INDENT: Final = 8
"""The indentation of a turn's text. It keeps text in a message from looking like the next turn."""


def print_title(graded: GradedRun, console: Console) -> None:
    """Print the suite, the span, the agent and the seed of a run."""
    from longspan.simulator.base.terminal import as_line

    manifest = graded.manifest
    span = "" if manifest.alone else f" at {manifest.span:,} tokens"
    console.print(as_line(f"{manifest.suite.name}{span} · {manifest.labelled} · seed {manifest.seed}"), style="bold")


def print_test(graded: GradedRun, test: TestView, console: Console) -> None:
    """Print a test as it was played."""
    result = test.result
    print_title(graded, console)
    score = "no score" if result.score is None else format_percent(result.score)
    console.say(f"{result.id}: {score}, {result.status.replace('_', ' ')}", "bold")
    _print_text("reason", result.reason, console)
    if result.correction is not None:
        machine = "no score" if result.machine_score is None else format_percent(result.machine_score)
        _print_text("by", f"{result.correction.by}: {result.correction.why} (automatic: {machine})", console)
    for effect, lacking in (
        (graded.result.twins, "without its needles"),
        (graded.result.lesions, "with only the last tokens"),
        (graded.result.control, "in a separate conversation"),
    ):
        for row in effect.tests if effect is not None else ():
            if row.test == result.id:
                score = "no score" if row.score_without is None else format_percent(row.score_without)
                _print_text("again", f"{lacking}: {score}; {row.reason}", console)
    if result.farewell is not None:
        told = "no score" if result.farewell.score is None else format_percent(result.farewell.score)
        _print_text("after", f"asked again after its farewell: {told}; {result.farewell.reason}", console)
    if test.causes:
        lost = ", ".join(f"{cause.lost} of {cause.known} needles {cause.stage}" for cause in test.causes)
        _print_text("lost", lost, console)
    before: TurnView | None = None
    for turn in test.turns:
        if before is not None and turn.number > before.number + 1:
            between = turn.number - before.number - 1
            tokens = turn.message.start - before.message.start - before.message.tokens - before.reply_tokens
            whose = "of other tests" if result.trunk is None else "of the history"
            console.print(f"   ... {between:,} turn{'s' * (between > 1)} {whose}, {tokens:,} tokens", style="dim")
        if test.conversation is not None:
            _print_nights(test.conversation, before, turn, console)
        _print_turn(turn, test, console)
        before = turn
    if before is None:
        console.print("This test was not started.")


def _print_nights(conversation: ConversationView, before: TurnView | None, turn: TurnView, console: Console) -> None:
    """Print the nights between two turns of a test, or those just before its first turn."""
    first = turn.number if before is None else before.number + 1
    for each in (
        conversation.turns[first - conversation.first : turn.number + 1 - conversation.first] if first >= conversation.first else ()
    ):
        for night in each.nights:
            console.say(night, "dim")


def _print_turn(turn: TurnView, test: TestView, console: Console) -> None:
    from longspan.simulator.results.analysis.distances import find_needs

    own = turn.message.test == test.result.id
    kinds = ", ".join(turn.kinds) if own or turn.number in test.evidence else "another's"
    asked = next((each for each in test.asked if each.turn == turn.number), None)
    several = sum(need.turn == turn.number for need in find_needs(test.result)) > 1
    distance = f", its {'furthest ' * several}needle {asked.tokens:,} tokens back" if asked is not None else ""
    proof = ", proves the grade" if turn.number in test.proof else ""
    console.print(f"\nturn {turn.number}, {turn.message.sent_at:%a %d %b %Y %H:%M}: {kinds}{distance}{proof}", style="bold")
    _print_text("user", whole_text(turn.text), console)
    if turn.reply is None:
        _print_text("agent", "(no reply: the conversation was interrupted)", console)
    elif turn.asked or turn.reply.length:  # a recorded history between two people has no replies
        _print_text("agent" if turn.asked else "told", whole_text(turn.reply), console)
    if (ideal := test.expected.get(turn.number)) is not None:
        _print_text("ideal", whole_text(ideal), console)
    if asked is not None or (own and "question" in turn.kinds):
        _print_found(test, turn, console)


def _print_found(test: TestView, turn: TurnView, console: Console) -> None:
    """Print the memories retrieved for a question, and the ranks of its needles."""
    from longspan.simulator.terminal.found import describe_ranks, memories_read

    for line in describe_ranks(test, turn):
        _print_text("found", line, console)
    found = memories_read(test, turn)
    shown = [each for each in found if each.rank <= FOUND or each.needed]
    for each in shown:
        origin = f" (turn {', '.join(f'{number:,}' for number in each.turns)})" if each.turns else ""
        _print_text(f"{'*' * each.needed}{each.rank}", f"{each.text}{origin}", console)
    if left := len(found) - len(shown):
        _print_text("", f"... {left:,} more", console)


def _print_text(label: str, text: str, console: Console) -> None:
    """Print text next to a label, with all its lines indented."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=INDENT - 1, style="dim", justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(label, text)
    console.print(grid)


def whole_text(text: Excerpt) -> str:
    """Return the whole excerpt. A very long one has a note where it is cut."""
    if not text.left_out:
        return text.head
    return f"{text.head}\n... {text.left_out:,} characters left out ...\n{text.tail}"
