"""The options that say what to play, declared once for the commands that take them; and the refusal that --trust lifts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal, ParamSpec, final, get_type_hints

import typer

if TYPE_CHECKING:
    from longspan.simulator.grid import Grid

__all__ = ["GridOptions", "refuse_code", "takes_grid"]

P = ParamSpec("P")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridOptions:
    """A Grid as it is given on the command line, with the same defaults."""

    suite: Annotated[str, typer.Argument(help="A suite's name or YAML file; A+B: both.", metavar="SUITE")] = "ltm"
    span: Annotated[
        list[str] | None,
        typer.Option(help="Tokens a test stretches over: 2k, 32k, 120k, 200k, 500k or any other.", metavar="S", show_default="the suite's"),
    ] = None
    agent: Annotated[list[str], typer.Option(help="Who is tested: KIND/MODEL?option=value&...", metavar="SPEC")] = field(
        default_factory=lambda: ["notebook"]
    )
    seed: Annotated[list[int], typer.Option(help="What the tests are made from.", metavar="N")] = field(default_factory=lambda: [0])
    tests: Annotated[
        int | None, typer.Option(help="Tests of each scenario.", min=1, max=10_000, metavar="N", show_default="the suite's: 3")
    ] = None
    scenario: Annotated[list[str] | None, typer.Option(help="Play only this scenario; also python:module:Class.", metavar="NAME")] = None
    isolated: Annotated[bool, typer.Option("--isolated", help="Each test in a conversation of its own, without filler.")] = False
    placement: Annotated[
        Literal["uniform", "early"], typer.Option(help="Spread needles over the span, or put them all in its first tenth.")
    ] = "uniform"
    tokenizer: Annotated[
        Literal["cl100k_base", "o200k_base"], typer.Option(help="What tokens are counted with, cl100k_base or o200k_base.", metavar="NAME")
    ] = "cl100k_base"
    filler: Annotated[Path | None, typer.Option(help="TriviaQA's JSON (or .gz) instead of the almanac.", metavar="FILE")] = None
    filler_size: Annotated[int, typer.Option(help="Most tokens of a filler message.", min=100, max=100_000, metavar="N")] = 2000
    definitions: Annotated[
        Path | None, typer.Option(help="Published tests to play instead of generated ones, at the span they name.", metavar="DIR")
    ] = None
    rules: Annotated[
        Literal["longspan", "paper"], typer.Option(help="Grade by longspan's rules, or as the paper does where that differs.")
    ] = "longspan"
    pace: Annotated[float, typer.Option(help="Virtual seconds that a turn takes.", min=0, max=86_400, metavar="SECONDS")] = 30
    starts_at: Annotated[datetime, typer.Option(help="The virtual date and time at which conversations start.", metavar="DATE")] = datetime(
        2024, 1, 1, 9, 0
    )
    judge: Annotated[str | None, typer.Option(help="The model that decides what rules cannot, such as openai/gpt-4o.", metavar="SPEC")] = (
        None
    )
    data: Annotated[list[str] | None, typer.Option(help="Data of your own, such as chapterbreak=FILE.", metavar="NAME=PATH")] = None
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter: NAME=VALUE, or SCENARIO.NAME=VALUE.", metavar="NAME=VALUE")
    ] = None
    trust: Annotated[bool, typer.Option("--trust", help="Run code that only a suite file names (python:).")] = False

    def grid(self) -> Grid:
        """The runs that are asked for. Raises InputError for what is wrong, and for code that nobody trusts."""
        from pydantic import ValidationError

        from longspan.simulator.errors import InputError, first_problem
        from longspan.simulator.grid import Grid
        from longspan.simulator.sizes import parse_size
        from longspan.simulator.suite import load_suite

        refuse_code(self.suite, load_suite(self.suite).scenarios, self.scenario or [], self.trust)
        listed = {"suites": self.suite, "agents": self.agent, "seeds": self.seed, "scenarios": self.scenario or []}
        listed |= {"spans": [parse_size(each) for each in self.span or []], "set": self.set_ or [], "data": self.data or []}
        single = {each.name: getattr(self, each.name) for each in fields(self) if each.name in Grid.model_fields.keys() - listed.keys()}
        try:
            return Grid.model_validate(listed | single)
        except ValidationError as error:
            raise InputError(f"--{first_problem(error).replace('_', '-', 1)}") from None


def takes_grid(command: Callable[Concatenate[GridOptions, P], int]) -> Callable[..., int]:
    """Let a command whose first parameter is GridOptions be called with their fields: Typer makes an option of each."""
    hints = get_type_hints(GridOptions, include_extras=True)
    defaults = GridOptions()
    options = {each.name: getattr(defaults, each.name) for each in fields(GridOptions)}

    @wraps(command)
    def spread(**given: Any) -> int:
        chosen = GridOptions(**{name: given.pop(name) for name in options})
        return command(chosen, **given)  # type: ignore[call-arg]

    _, *others = signature(command, eval_str=True).parameters.values()
    ours = [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]) for name, default in options.items()]
    spread.__signature__ = signature(command).replace(parameters=[*ours, *others])  # type: ignore[attr-defined]
    return spread


def refuse_code(where: str | Path, named: Iterable[str], here: Iterable[str], trust: bool) -> None:
    """Refuse code to run, and addresses to call, that only a file names, and nobody here has named or trusted. Raises InputError."""
    from longspan.simulator.agent_spec import needs_trust
    from longspan.simulator.errors import InputError

    foreign = [each for each in named if needs_trust(each) and each not in here]
    if foreign and not trust:
        code = any(re.match(r"\s*(python|exec)\b", each) for each in foreign)
        what, does = ("code to run", "runs") if code else ("an address to call", "calls")
        raise InputError(f"{where} names {what}: {', '.join(foreign)}; --trust {does} it, if you trust who made it")
