"""longspan calibrate: a judge against people's labels."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from longspan.simulator.judging.calibration import Calibration
    from longspan.simulator.tables import Table

__all__ = ["calibrate"]


def calibrate(
    judge: Annotated[str, typer.Option(help="The model that judges, as for run, such as openai/gpt-4o.", metavar="SPEC")],
    labels: Annotated[Path, typer.Option(help="People's labels: CSV with a header, or JSON lines.", metavar="FILE")],
    rubric: Annotated[str, typer.Option(help="What the judge is asked: statement, elitr-ten or elitr-five.", metavar="NAME")] = "statement",
    out: Annotated[
        Path, typer.Option(help="Where runs are: it lands in calibrations/ there, and their reports name it.", metavar="DIR")
    ] = Path("runs"),
    max_cost: Annotated[
        float | None, typer.Option(help="Dollars that the judge may cost this time; stops before.", min=0, metavar="USD")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the calibration as JSON and nothing else.")] = False,
) -> int:
    """Compare a judge with people: agreement, correlation, weighted kappa, and bias by length.

    A row of FILE needs the rubric's columns (statement and text, or question, reference and response) and a label; several rows
    about the same are several labels, with an annotator if that is known.
    """
    import trio

    from longspan.simulator.cli.counter import Counting
    from longspan.simulator.judging.calibrate import calibrate as compare

    most = inf if max_cost is None else max_cost
    with Counting("answers", quiet=json_) as counting:
        found, path = trio.run(lambda: compare(judge, labels, rubric, out=out, most=most, heard=counting.heard))
    _tell(found, path, json_)
    return 1 if found.failed == found.items else 0


def _tell(found: Calibration, path: Path, json_: bool) -> None:

    from longspan.simulator.cli.tables import print_table, wide_console

    if json_:
        print(found.model_dump_json(indent=1))
        return
    console = wide_console()
    for table in _tables(found):
        print_table(console, table)
    console.print(f"kept    {path}", soft_wrap=True, highlight=False, markup=False)


def _tables(found: Calibration) -> list[Table]:
    from longspan.simulator.tables import Table

    interval = "" if found.bias_low is None or found.bias_high is None else f" ({found.bias_low:+.2f} to {found.bias_high:+.2f})"
    rows = [
        ["items", f"{found.items:,}"],
        ["without a value", f"{found.failed:,}"],
        ["agreement", _share(found.agreement)],
        *([["within a step", _share(found.near)]] if found.near is not None else []),
        ["Pearson's correlation", _figure(found.pearson)],
        ["Spearman's correlation", _figure(found.spearman)],
        ["weighted kappa", _figure(found.kappa)],
        ["mean of people, of the judge", f"{_figure(found.people_mean)}, {_figure(found.judge_mean)}"],
        ["bias", "-" if found.bias is None else f"{found.bias:+.2f}{interval}"],
        ["bias with length (correlation)", _figure(found.length_correlation)],
        *([["reliability of people's mean (ICC)", _figure(found.people)]] if found.people is not None else []),
    ]
    note = "Bias: how much more the judge gives than people do, with its 95 % interval. Kappa has quadratic weights."
    lengths = [[f"{each.shortest:,} to {each.longest:,}", f"{each.items:,}", f"{each.bias:+.2f}"] for each in found.by_length]
    return [
        Table(title=f"{found.judge} by {found.rubric}, against {found.labels}", columns=["", "figure"], rows=rows, note=note),
        Table(title="Bias by length", columns=["words", "items", "bias"], rows=lengths),
    ]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
