"""longspan BENCHMARK write: generate a scenario's data with a model. longspan write: write questions about a log."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.base.terminal import complain, say
from longspan.simulator.cli import completion

__all__ = ["bind_write", "write"]

MaxCost = Annotated[float | None, typer.Option(help="Maximum dollars this time.", min=0, metavar="USD")]


def bind_write(scenario: str) -> Callable[..., int]:
    """Return the command `write` for a benchmark. Its writer must be registered under the scenario's name."""

    def write(
        writer: Annotated[
            str,
            typer.Option(help="The model that writes, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.complete_agents),
        ],
        out: Annotated[Path, typer.Option(help="The folder for the data, which longspan run takes with --data.", metavar="DIR")],
        set_: Annotated[list[str] | None, typer.Option("--set", help="Set a parameter; may be repeated.", metavar="NAME=VALUE")] = None,
        max_cost: MaxCost = None,
    ) -> int:
        """Generate a scenario's data with a model.

        The data is checked. Data that fails is written again, or left out with a message. The model's answers are stored in the folder, so
        the same command continues after an interruption.
        """
        import trio

        from longspan.simulator.running.data_writers import find_writer, settings_of, write_data
        from longspan.simulator.suite.suite import read_setting

        data_writer = find_writer(scenario)
        settings = settings_of(data_writer, dict(map(read_setting, set_ or [])))
        limit = inf if max_cost is None else max_cost
        files, written = trio.run(lambda: write_data(data_writer, settings, writer, out, max_cost=limit, log=say))
        for note in written.notes:
            say(note)
        for path in files:
            say(f"wrote   {path}")
        return 0

    return write


def write(
    scenario: Annotated[str, typer.Argument(help="The scenario that asks the questions, such as history.", metavar="SCENARIO")],
    from_: Annotated[Path, typer.Option("--from", help="The log, in a format of `longspan list formats`.", metavar="LOG")],
    model: Annotated[
        str, typer.Option(help="The model that proposes and checks.", metavar="SPEC", autocompletion=completion.complete_agents)
    ],
    out: Annotated[Path, typer.Option(help="The questions' file, which must not exist.", metavar="FILE")],
    questions: Annotated[int, typer.Option(help="Number of questions to accept.", parser=integer_parser(1, 10_000), metavar="N")] = 40,
    seed: Annotated[int, typer.Option(help="Chooses the passages.", parser=integer_parser(0, 2**63 - 1), metavar="N")] = 0,
    max_cost: MaxCost = None,
) -> int:
    """Propose questions about a log with a model, and check each one.

    A question is accepted if its evidence has the answer, the model finds it there and does not know it otherwise, and nothing later
    changes it. FILE.rejected.jsonl lists the rejected ones with reasons. The model's answers are stored in the folder FILE.answers, so the
    same command continues after an interruption. Review the result with `longspan confirm FILE`, and ask it with --data questions=FILE.
    The exit status is 1 if fewer questions than wanted were accepted.
    """
    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.running.data_writers import QUESTION_WRITERS, find_writer, settings_of, write_data

    writer = find_writer(scenario, QUESTION_WRITERS)
    settings = settings_of(writer, {"log": from_, "out": out.name, "questions": questions, "seed": seed})
    if out.exists():
        raise InputError(f"{out}: exists already; choose another file with --out")
    answers = out.with_name(f"{out.name}.answers")
    limit = inf if max_cost is None else max_cost
    files, written = trio.run(lambda: write_data(writer, settings, model, out.parent, answers=answers, max_cost=limit, log=complain))
    for note in written.notes:
        say(note)
    for path in files:
        say(f"wrote   {path}")
    return 0 if written.complete else 1
