"""longspan run: plays a suite."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from longspan.simulator.interop.definitions import Definitions
    from longspan.simulator.runner import Outcome, Plan

__all__ = ["exit_code", "finish", "refuse_code", "run"]

Value = TypeVar("Value")


def run(
    suite: Annotated[str, typer.Argument(help="A suite's name or YAML file; A+B: both.", metavar="[SUITE]", show_default=True)] = "ltm",
    span: Annotated[
        list[str] | None,
        typer.Option(help="Tokens a test stretches over: 2k, 32k, 120k, 200k, 500k or any other.", metavar="S", show_default="the suite's"),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Who is tested: KIND/MODEL?option=value&...", metavar="SPEC", show_default="notebook"),
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="What the tests are made from.", metavar="N", show_default="0")] = None,
    tests: Annotated[
        int | None, typer.Option(help="Tests of each scenario.", min=1, max=10_000, metavar="N", show_default="the suite's: 3")
    ] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Play only this scenario; also python:module:Class.", metavar="NAME")] = None,
    isolated: Annotated[bool, typer.Option("--isolated", help="Each test in a conversation of its own, without filler.")] = False,
    placement: Annotated[
        Literal["uniform", "early"], typer.Option(help="Spread needles over the span, or put them all in its first tenth.")
    ] = "uniform",
    tokenizer: Annotated[Literal["cl100k_base", "o200k_base"], typer.Option(help="What tokens are counted with.")] = "cl100k_base",
    filler: Annotated[Path | None, typer.Option(help="TriviaQA's JSON (or .gz) instead of the almanac.", metavar="FILE")] = None,
    filler_size: Annotated[int, typer.Option(help="Most tokens of a filler message.", min=100, max=100_000, metavar="N")] = 2000,
    definitions: Annotated[
        Path | None, typer.Option(help="Published tests to play instead of generated ones, at the span they name.", metavar="DIR")
    ] = None,
    rules: Annotated[
        Literal["longspan", "paper"], typer.Option(help="Grade by longspan's rules, or as the paper does where that differs.")
    ] = "longspan",
    pace: Annotated[float, typer.Option(help="Virtual seconds that a turn takes.", min=0, max=86_400, metavar="SECONDS")] = 30,
    starts_at: Annotated[datetime, typer.Option(help="The virtual date and time at which conversations start.", metavar="DATE")] = datetime(
        2024, 1, 1, 9, 0
    ),
    judge: Annotated[
        str | None, typer.Option(help="The model that decides what rules cannot, such as openai/gpt-4o.", metavar="SPEC")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Dollars that all runs together may cost; stops before.", min=0, metavar="USD")
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help="Data of your own, such as chapterbreak=FILE.", metavar="NAME=PATH")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter: NAME=VALUE, or SCENARIO.NAME=VALUE.", metavar="NAME=VALUE")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where runs land.", metavar="DIR")] = Path("runs"),
    trust: Annotated[bool, typer.Option("--trust", help="Run code that only a suite file names (python:).")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of the results and nothing else.")] = False,
) -> int:
    """Play a suite against an agent and grade it.

    --span, --agent, --seed, --scenario, --data and --set may be repeated. Several spans, agents or seeds make several
    runs, played concurrently.
    """
    from itertools import product

    import trio

    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.interop.definitions import read_definitions
    from longspan.simulator.runner import plan, play
    from longspan.simulator.sizes import parse_size
    from longspan.simulator.suite import load_suite

    loaded = load_suite(suite)
    refuse_code(suite, loaded.scenarios, scenario or [], trust)
    defined = read_definitions(definitions) if definitions else None
    settings = [*(set_ or []), *(["rules=paper"] if rules == "paper" else [])]
    chosen = loaded.changed(settings, data or [], scenario or [], tests or (defined.most if defined else None))
    spans = [parse_size(each) for each in span or []] or [_span_of(defined, chosen.span)]
    plans: list[Plan] = [
        plan(
            chosen,
            span=each_span,
            seed=each_seed,
            agent=each_agent,
            out=out,
            isolated=isolated,
            placement=placement,
            tokenizer=tokenizer,
            filler=filler,
            filler_size=filler_size,
            definitions=defined,
            judge=judge,
            starts_at=starts_at,
            pace=timedelta(seconds=pace),
        )
        for each_span, each_agent, each_seed in product(_once(spans), _once(agent or ["notebook"]), _once(seed or [0]))
    ]
    with Progress([] if json_ else plans) as progress:
        heard = None if json_ else progress.heard
        outcomes = trio.run(lambda: play(plans, listener=heard, signals=True, most=inf if max_cost is None else max_cost))
    return finish(outcomes, json_)


def refuse_code(where: str | Path, named: Iterable[str], here: Iterable[str], trust: bool) -> None:
    """Refuse code to run, and addresses to call, that only a file names, and nobody here has named or trusted. Raises InputError."""
    from longspan.simulator.agent_spec import reaches_out
    from longspan.simulator.errors import InputError

    foreign = [each for each in named if reaches_out(each) and each not in here]
    if foreign and not trust:
        code = any(re.match(r"\s*(python|exec)\b", each) for each in foreign)
        what, does = ("code to run", "runs") if code else ("an address to call", "calls")
        raise InputError(f"{where} names {what}: {', '.join(foreign)}; --trust {does} it, if you trust who made it")


def finish(outcomes: list[Outcome], json_: bool) -> int:
    """Print what came out of runs, and return the exit code."""
    from longspan.simulator.cli.progress import tell

    if json_:
        _print_json(outcomes)
    else:
        for outcome in outcomes:
            tell(outcome)
    if json_:
        for error in (outcome.error for outcome in outcomes if outcome.error is not None):
            print(f"longspan: {error}", file=sys.stderr)
    return exit_code(outcomes)


def exit_code(outcomes: list[Outcome]) -> int:
    """130 where a run was stopped, 1 where one failed or a scenario did, else 0."""
    from longspan.simulator.errors import StoppedError

    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if any(isinstance(error, StoppedError) for error in errors):
        return 130
    failed = [test for outcome in outcomes if outcome.result for test in outcome.result.tests if test.status == "scenario_error"]
    return 1 if errors or failed else 0


def _span_of(defined: Definitions | None, suite: int) -> int:
    """The span in tokens where --span gives none: that of the definitions, or else the suite's."""
    from longspan.simulator.errors import InputError

    if defined is None:
        return suite
    if defined.span is None:
        raise InputError(f"definitions {defined.folder}: they name no span; --span gives one")
    return defined.span


def _once(values: list[Value]) -> list[Value]:
    """The values without repetitions: the same run twice is the same run."""
    return list(dict.fromkeys(values))


def _print_json(outcomes: list[Outcome]) -> None:
    import json

    found = [{"folder": str(outcome.folder)} | (outcome.result.model_dump(mode="json") if outcome.result else {}) for outcome in outcomes]
    print(json.dumps(found, ensure_ascii=False, indent=1))
