"""longspan calibrate: compare a judge with human labels."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.cli import completion

if TYPE_CHECKING:
    from longspan.simulator.base.tables import Table
    from longspan.simulator.results.judging.calibration import Calibration

__all__ = ["calibrate"]


def calibrate(
    judge: Annotated[
        str,
        typer.Option(
            help="The model that judges, such as openai/gpt-4o.",
            metavar="SPEC",
            autocompletion=completion.complete_agents,
        ),
    ],
    labels: Annotated[list[Path], typer.Option(help="Human labels: CSV with a header, or JSON lines. Repeatable.", metavar="FILE")],
    rubric: Annotated[
        str,
        typer.Option(
            help="The judge's question: {longspan.rubrics} (docs/guides/calibration.md).",
            metavar="NAME",
            autocompletion=completion.rubrics,
        ),
    ] = "statement",
    out: Annotated[Path, typer.Option(help="The folder of runs, for calibrations/, which reports mention.", metavar="DIR")] = Path("runs"),
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars for the judge this time.", min=0, metavar="USD")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Only print the calibration, as JSON.")] = False,
) -> int:
    """Compare a judge with human labels.

    Shows agreement, correlation, weighted kappa, and bias by length. Each row of the labels has a label, the rubric's columns
    (statement and text, or question, reference and response), and optionally an annotator. Several rows about the same item are
    several labels. Rubrics of published benchmarks also accept answers that were published with verdicts.
    """
    import trio

    from longspan.simulator.results.judging.calibrate import calibrate_judge
    from longspan.simulator.terminal.counter import Counter

    limit = inf if max_cost is None else max_cost
    with Counter("answers") as counter:
        calibration, path = trio.run(lambda: calibrate_judge(judge, labels, rubric, out=out, max_cost=limit, on_progress=counter.update))
    _print(calibration, path, json_)
    return 1 if calibration.failed == calibration.items else 0


def _print(calibration: Calibration, path: Path, json_: bool) -> None:
    from longspan.simulator.base.terminal import say_json
    from longspan.simulator.terminal.console import wide_console
    from longspan.simulator.terminal.printed_tables import print_table

    if json_:
        say_json(calibration.model_dump(mode="json"))
        return
    console = wide_console()
    for table in _tables(calibration):
        print_table(console, table)
    console.say(f"saved   {path}")


def _tables(calibration: Calibration) -> list[Table]:
    from longspan.simulator.base.tables import Table

    interval = (
        ""
        if calibration.bias_low is None or calibration.bias_high is None
        else f" ({calibration.bias_low:+.2f} to {calibration.bias_high:+.2f})"
    )
    rows = [
        ["items", f"{calibration.items:,}"],
        ["not judged", f"{calibration.failed:,}"],
        ["agreement", _share(calibration.agreement)],
        *([["within one step", _share(calibration.near)]] if calibration.near is not None else []),
        ["Pearson's correlation", _figure(calibration.pearson)],
        ["Spearman's correlation", _figure(calibration.spearman)],
        ["weighted kappa", _figure(calibration.kappa)],
        ["mean of people, mean of judge", f"{_figure(calibration.people_mean)}, {_figure(calibration.judge_mean)}"],
        ["bias", "-" if calibration.bias is None else f"{calibration.bias:+.2f}{interval}"],
        ["bias with length (correlation)", _figure(calibration.length_correlation)],
        *([["reliability of people's mean (ICC)", _figure(calibration.people)]] if calibration.people is not None else []),
    ]
    note = "Bias: how much higher the judge scores than people, with its 95% interval. Kappa has quadratic weights."
    lengths = [[f"{group.shortest:,} to {group.longest:,}", f"{group.items:,}", f"{group.bias:+.2f}"] for group in calibration.by_length]
    return [
        Table(
            title=f"{calibration.judge} by {calibration.rubric}, against {calibration.labels}", columns=["", "value"], rows=rows, note=note
        ),
        Table(title="Bias by length", columns=["words", "items", "bias"], rows=lengths),
    ]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
