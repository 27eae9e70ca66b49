"""longspan score --answers: score answers that a system gave elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from longspan.simulator.base.terminal import complain

__all__ = ["score_answers"]

OWN: Final = "history"
"""The suite about users' own logs."""


def score_answers(
    answers: Path,
    questions: str,
    data: Sequence[str],
    settings: Sequence[str],
    agent: str | None,
    judge: str | None,
    out: Path,
    json_: bool,
) -> int:
    """Make a run from answers, and print its scores. Raises InputError."""
    import trio
    from pydantic import ValidationError

    from longspan.simulator.base.errors import InputError, first_problem
    from longspan.simulator.cli.run import print_outcomes
    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.given_answers import plan_given, play_given
    from longspan.simulator.suite.grid import Grid
    from longspan.simulator.terminal.progress import Progress

    suite, pairs = _name_data(questions, data)
    name = agent if agent is not None else answers.name.removesuffix(".gz").rpartition(".")[0] or answers.name
    name = " ".join(name.encode("utf-8", "replace").decode().split())
    try:
        (chosen,) = Grid(suites=[suite], data=pairs, set=list(settings), judge=judge).runs()
    except ValidationError as error:
        raise InputError(f"--{first_problem(error)}") from None
    given = plan_given(chosen, answers, name, out)
    for note in given.matched.notes:
        complain(f"note: {note}")
    with Progress([given.plan]) as progress:
        outcome = trio.run(lambda: play_given(given, listener=progress.take_event, pages=Report))
    complain(f"note: not played by longspan: the answers are those in {answers}")
    return print_outcomes([outcome], json_)


def _name_data(questions: str, data: Sequence[str]) -> tuple[str, list[str]]:
    """Return the suite that asks the questions, and its data as NAME=PATH."""
    from longspan.simulator.base.installed import installed_suites

    name, equals, _ = questions.partition("=")
    if equals and name in installed_suites() and not Path(questions).exists():
        return name, [questions, *data]
    return (OWN, [f"questions={questions}", *data]) if data else (OWN, [f"{OWN}={questions}"])
