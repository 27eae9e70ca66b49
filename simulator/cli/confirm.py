"""longspan confirm: review proposed questions, one key each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from longspan.simulator.base.terminal import prompt_user, say

if TYPE_CHECKING:
    from longspan.simulator.contract.question_files import Review

__all__ = ["confirm"]

KEYS: Final = "[y] keep  [e] edit the answer  [n] drop  [q] stop:"


def confirm(
    file: Annotated[Path, typer.Argument(help="A questions' file, such as `longspan write` writes.", metavar="FILE")],
    from_: Annotated[
        Path | None, typer.Option("--from", help="The log. Default: the one that the questions were written about.", metavar="LOG")
    ] = None,
) -> int:
    """Review proposed questions with their evidence, one key each.

    y keeps a question, e asks for another answer, n drops it with a reason, and q stops. FILE is saved after each key, and the command
    continues where it stopped. Dropped questions move to FILE.rejected.jsonl. Keys may come from a pipe, one a line.
    """
    from longspan.simulator.contract.question_files import open_review

    review = open_review(file, from_)
    try:
        while (proposal := review.find_next()) is not None:
            say()
            say(f"{proposal.number} of {proposal.total}  {proposal.kind}")
            for turn in proposal.evidence:
                say(f"  {turn}")
            say(f"Q: {proposal.question}")
            say(f"A: {proposal.answer}")
            _take_decision(review)
    except EOFError:
        say()
    say(review.summary)
    return 0


def _take_decision(review: Review) -> None:
    """Apply one key. Raises EOFError to stop."""
    key = _read_key(KEYS)
    if key == "y":
        review.keep()
    elif key == "e":
        if answer := prompt_user("answer:").strip():
            review.keep(answer)
    elif key == "n":
        review.drop(prompt_user("reason:").strip())
    elif key == "q":
        raise EOFError


def _read_key(prompt: str) -> str:
    """Return the key that the user presses, or the first character of a line if standard input is no terminal. Raises EOFError."""
    import termios
    import tty

    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError, termios.error):  # a pipe, or a closed stream
        return prompt_user(prompt).strip()[:1].casefold()
    say(prompt)
    try:
        tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)  # keys typed ahead count
        key = sys.stdin.read(1)
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
    if not key or key == "\x04":
        raise EOFError
    return key.casefold()
