"""longspan annotate: a person judges a run's summaries, insight by insight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, final

import typer

from longspan.simulator.cli.runs import RunArgument, TrustOption

if TYPE_CHECKING:
    from longspan.simulator.judging.annotation import Level
    from longspan.simulator.judging.sheets import Sheet
    from longspan.simulator.run_folder import RunFolder

__all__ = ["annotate"]


def annotate(
    run: RunArgument,
    test: Annotated[list[str] | None, typer.Option(help="Only this test, such as summhay-1-2. May be repeated.", metavar="TEST")] = None,
    by: Annotated[str | None, typer.Option(help="Who judges; by default the user's name.", metavar="NAME")] = None,
    again: Annotated[bool, typer.Option("--again", help="Ask also what this person has judged already.")] = False,
    agreement: Annotated[bool, typer.Option("--agreement", help="Ask nothing: only show how far all agree so far.")] = False,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the agreement as JSON and nothing else; asks nothing.")] = False,
) -> int:
    """Judge a run's summaries yourself: whether each insight is covered, and by which bullet.

    The grader's own answers are not shown. Ctrl-D or q leaves; started again, it goes on where it was left. At the end it says
    how far people and grader agree. Grades stay as they are.
    """
    from rich.console import Console

    from longspan.simulator.cli.runs import open_run, user
    from longspan.simulator.cli.tables import print_table
    from longspan.simulator.errors import InputError
    from longspan.simulator.judging.annotation import agreements, open_claims, said_by, sheets

    folder = open_run(run, trust, [], agents=False)
    known = sheets(folder)
    if unknown := [each for each in test or [] if each not in known]:
        raise InputError(f"{run} has no test {unknown[0]!r:.60} with a summary; it has {', '.join(known) or 'none'}")
    if not (json_ or agreement):
        who = (by or user()).strip()[:100] or "somebody"
        done = {} if again else said_by(folder).get(who, {})
        chosen = {id: sheet for id, sheet in known.items() if not test or id in test}
        _Asking(folder, chosen, who).ask(open_claims(chosen, done))
    found = agreements(folder)
    if json_:
        print(found.model_dump_json(indent=1))
    elif found.rows:
        print_table(Console(), found)
    else:
        typer.echo("nobody has judged anything yet")
    return 0


@final
class _LeftError(Exception):
    """The person has left."""


@final
class _Asking:
    """Asks a person about claims, one after the other, and keeps each answer at once."""

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
                self._one(test, claim, sheet, f"{number} of {len(claims)}")
        except _LeftError:
            typer.echo("\nleft; `longspan annotate` goes on from here")

    def _one(self, test: str, claim: str, sheet: Sheet, where: str) -> None:
        from longspan.simulator.judging.annotation import Annotation
        from longspan.simulator.judging.annotation import annotate as keep

        typer.echo(f"\n{where}: {_plain(sheet.claims[claim])}")
        coverage = _level() if sheet.bullets else "none"
        if coverage is None:
            return
        bullet = None if coverage == "none" else _number(len(sheet.bullets))
        keep(self._folder, self._sheets, Annotation(test=test, claim=claim, coverage=coverage, bullet=bullet, by=self._by))


def _level() -> Level | None:
    """What the person says of a claim; None to skip it."""
    answers: dict[str, Level | None] = {"f": "full", "p": "partial", "n": "none", "s": None}
    while True:
        said = _said("covered fully, partly, not at all, or skip? [f/p/n/s, q leaves]").lower()[:1]
        if said in answers:
            return answers[said]


def _number(most: int) -> int:
    """The bullet that the person names."""
    if most == 1:
        return 1
    while True:
        said = _said(f"by which bullet? [1-{most}]")
        if said.isascii() and said.isdigit() and len(said) < 9 and 1 <= int(said) <= most:
            return int(said)


def _said(prompt: str) -> str:
    try:
        said = input(f"{prompt} ").strip()
    except (EOFError, KeyboardInterrupt):
        raise _LeftError from None
    if said.lower() in ("q", "quit"):
        raise _LeftError
    return said


def _show(test: str, sheet: Sheet) -> None:
    typer.echo(f"\n{test}: {_plain(sheet.question)}")
    for number, bullet in enumerate(sheet.bullets, 1):
        typer.echo(f"  {number:>2}. {_plain(bullet)}")
    if not sheet.bullets:
        typer.echo("  the summary is empty: nothing is covered")


def _plain(text: str) -> str:
    """A text of an agent's or a file's in one line, without what a terminal would obey."""
    from longspan.simulator.report.excerpts import visible

    return visible(" ".join(text.split()))
