"""longspan summhay annotate: judge a run's summaries by hand, insight by insight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, final

import typer

from longspan.simulator.base.terminal import prompt_user, say, say_json
from longspan.simulator.cli.runs import RunArgument, TrustOption

if TYPE_CHECKING:
    from longspan.simulator.contract.sheets import Sheet
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.results.judging.annotation import Level

__all__ = ["annotate"]


def annotate(
    run: RunArgument,
    test: Annotated[list[str] | None, typer.Option(help="Only this test, such as summhay-1-2; may be repeated.", metavar="TEST")] = None,
    by: Annotated[str | None, typer.Option(help="Who judges.", metavar="NAME", show_default="the user's name")] = None,
    again: Annotated[bool, typer.Option("--again", help="Ask again what this person has judged.")] = False,
    agreement: Annotated[bool, typer.Option("--agreement", help="Only show the agreement so far.")] = False,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print the agreement, as JSON.")] = False,
) -> int:
    """Judge a run's summaries yourself.

    Asks for each insight whether a bullet covers it, and which one, without showing the grader's answers. Ctrl-D or q quits; the next
    start continues there. At the end it shows how far people and grader agree. Grades do not change.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.runs import open_run, user_name
    from longspan.simulator.results.judging.annotation import agreement_table, annotations_by, open_claims, read_sheets
    from longspan.simulator.terminal.console import Console
    from longspan.simulator.terminal.printed_tables import print_table

    folder = open_run(run, trust)
    known = read_sheets(folder)
    if unknown := [id for id in test or [] if id not in known]:
        raise InputError(f"{run} has no test {unknown[0]!r:.60} with a summary; it has {', '.join(known) or 'none'}")
    if not (json_ or agreement):
        who = (by or user_name()).strip()[:100] or "unknown"
        done = {} if again else annotations_by(folder).get(who, {})
        chosen = {id: sheet for id, sheet in known.items() if not test or id in test}
        _AnnotationDialogue(folder, chosen, who).ask(open_claims(chosen, done))
    table = agreement_table(folder)
    if json_:
        say_json(table.model_dump(mode="json"))
    elif table.rows:
        print_table(Console(), table)
    else:
        say("no summary has been judged yet")
    return 0


@final
class _QuitError(Exception):
    """The user quit."""


@final
class _AnnotationDialogue:
    """Asks about claims one by one, and saves each answer immediately."""

    def __init__(self, folder: RunFolder, sheets: dict[str, Sheet], by: str) -> None:
        self._folder = folder
        self._sheets = sheets
        self._by = by

    def ask(self, claims: list[tuple[str, str]]) -> None:
        shown = ""
        try:
            for number, (test, claim) in enumerate(claims, 1):
                sheet = self._sheets[test]
                if test != shown:
                    shown = test
                    _show(test, sheet)
                self._ask_one(test, claim, sheet, f"{number} of {len(claims)}")
        except _QuitError:
            say()
            say("quit; `longspan summhay annotate` continues here")

    def _ask_one(self, test: str, claim: str, sheet: Sheet, where: str) -> None:
        from longspan.simulator.results.judging.annotation import Annotation, save_annotation

        say()
        say(f"{where}: {_plain(sheet.claims[claim])}")
        coverage = _level() if sheet.bullets else "none"
        if coverage is None:
            return
        bullet = None if coverage == "none" else _number(len(sheet.bullets))
        save_annotation(self._folder, self._sheets, Annotation(test=test, claim=claim, coverage=coverage, bullet=bullet, by=self._by))


def _level() -> Level | None:
    """Ask how well a claim is covered; None skips it."""
    answers: dict[str, Level | None] = {"f": "full", "p": "partial", "n": "none", "s": None}
    while True:
        answer = _input("covered fully, partly or not at all, or skip? [f/p/n/s, q quits]").lower()[:1]
        if answer in answers:
            return answers[answer]


def _number(count: int) -> int:
    """Ask for the number of a bullet, from 1 to `count`."""
    if count == 1:
        return 1
    while True:
        answer = _input(f"by which bullet? [1-{count}]")
        if answer.isascii() and answer.isdigit() and len(answer) < 9 and 1 <= int(answer) <= count:
            return int(answer)


def _input(prompt: str) -> str:
    try:
        answer = prompt_user(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        raise _QuitError from None
    if answer.lower() in ("q", "quit"):
        raise _QuitError
    return answer


def _show(test: str, sheet: Sheet) -> None:
    say()
    say(f"{test}: {_plain(sheet.question)}")
    for number, bullet in enumerate(sheet.bullets, 1):
        say(f"  {number:>2}. {_plain(bullet)}")
    if not sheet.bullets:
        say("  the summary is empty: nothing is covered")


def _plain(text: str) -> str:
    """Return text with single spaces."""
    return " ".join(text.split())
