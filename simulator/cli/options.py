"""Command-line options: the settings of runs, and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, Literal, ParamSpec, final, get_type_hints

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.cli import completion

if TYPE_CHECKING:
    from longspan.simulator.suite.grid import Grid

__all__ = ["GridOptions", "JsonOption", "MaxTokens", "OtelOption", "RepliesOption", "RunsArgument", "SpecOption", "TimeLimit", "takes_grid"]

P = ParamSpec("P")

SpecOption = Annotated[
    str, typer.Option(help="The agent, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.complete_agents)
]

RunsArgument = Annotated[
    list[Path], typer.Argument(help="Run folders, or folders of runs.", metavar="RUN", autocompletion=completion.complete_runs)
]

OtelOption = Annotated[bool, typer.Option("--otel", help="Export OpenTelemetry traces to your collector (docs/guides/tracing.md).")]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]

RepliesOption = Annotated[
    Path | None, typer.Option(help="Cache models' replies in this file; request only those that are missing.", metavar="FILE")
]

TESTS = integer_parser(1, 10_000)


def parse_size_option(text: str) -> int:
    """Parse a number of tokens, for Typer."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.sizes import parse_size

    try:
        return parse_size(text)
    except InputError as error:
        raise ValueError(str(error)) from None


MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens-total", help="Maximum tokens that models read and write in total.", parser=parse_size_option, metavar="N"),
]
"""The option for a token limit, the counterpart of --max-cost."""


_DURATION: Final = re.compile(r"([1-9][0-9]{0,6}|[0-9]{1,7}\.[0-9]{1,3})([smhd])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_duration_option(text: str) -> float:
    """Parse a duration into seconds, for Typer."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 1 <= seconds <= 366 * 86_400:
        raise ValueError(f"expected a duration from a second to a year, such as 90s, 30m, 1.5h or 2d; got {text!r:.40}")
    return seconds


TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        help="Stop after the first turn that ends past this time, such as 90m or 2h.",
        parser=parse_duration_option,
        metavar="TIME",
    ),
]
"""The option for a time limit. A run that it stops can be resumed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridOptions:
    """The settings of a Grid as command-line options, with the same defaults."""

    suite: Annotated[
        str, typer.Argument(help="A suite's name or YAML file; A+B plays both.", metavar="SUITE", autocompletion=completion.complete_suites)
    ] = "ltm"
    span: Annotated[
        list[str] | None,
        typer.Option(
            help="The memory span of each test in tokens, such as 32k; 2k,32k is two.",
            metavar="S",
            show_default="the suite's",
            autocompletion=completion.complete_spans,
        ),
    ] = None
    agent: Annotated[
        list[str],
        typer.Option(
            help="The agent under test, such as openai/gpt-4o; notebook needs no model.",
            metavar="SPEC",
            autocompletion=completion.complete_agents,
        ),
    ] = field(default_factory=lambda: ["notebook"])
    seed: Annotated[list[str], typer.Option(help="The seed of the tests; 0-9 or 1,4,7 is several.", metavar="N", show_default="0")] = field(
        default_factory=lambda: ["0"]
    )
    tests: Annotated[int | None, typer.Option(help="Tests per scenario.", parser=TESTS, metavar="N", show_default="the suite's")] = None
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this scenario, by name or as python:MODULE:CLASS.", metavar="NAME", autocompletion=completion.complete_scenarios
        ),
    ] = None
    isolated: Annotated[bool, typer.Option("--isolated", help="Play each test in its own conversation, without filler.")] = False
    placement: Annotated[
        Literal["spread", "uniform", "early"] | None,
        typer.Option(
            help="Where to place needles: at random in the span, evenly (as in the paper), or in its first tenth.",
            show_default="spread; uniform with --rules paper or --definitions",
        ),
    ] = None
    tokenizer: Annotated[
        Literal["cl100k_base", "o200k_base"], typer.Option(help="Counts tokens: cl100k_base or o200k_base.", metavar="NAME")
    ] = "cl100k_base"
    filler: Annotated[Path | None, typer.Option(help="A TriviaQA file (JSON or .gz) instead of our own questions.", metavar="FILE")] = None
    filler_size: Annotated[
        int, typer.Option(help="Maximum tokens of a filler message.", parser=integer_parser(100, 100_000), metavar="N")
    ] = 2000
    definitions: Annotated[Path | None, typer.Option(help="Play these published tests instead of generated ones.", metavar="DIR")] = None
    rules: Annotated[Literal["longspan", "paper"], typer.Option(help="Grade by longspan's rules or by the paper's.")] = "longspan"
    gold: Annotated[
        Literal["published", "corrected"], typer.Option(help="Grade by a benchmark's gold answers as published or as corrected.")
    ] = "published"
    prompts: Annotated[
        Path | None, typer.Option(help="Play the prompts in this file, such as a paper's, instead of ours.", metavar="FILE")
    ] = None
    pace: Annotated[float, typer.Option(help="Virtual seconds per turn.", min=0, max=86_400, metavar="SECONDS")] = 30
    starts_at: Annotated[str, typer.Option(help="The virtual time of the first turn.", metavar="DATE")] = "2024-01-01T09:00"
    judge: Annotated[
        str | None,
        typer.Option(
            help="The model that grades what rules cannot, such as openai/gpt-4o.",
            metavar="SPEC",
            autocompletion=completion.complete_agents,
        ),
    ] = None
    branch: Annotated[
        Literal["on", "off", "retell"],
        typer.Option(
            help="Ask each question about a history from a snapshot at its end (on), one after another (off), or after a replay (retell)."
        ),
    ] = "on"
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            help="Play tests a second time: twins=N without their needles, lesion=S with only the last S tokens, control in a conversation "
            "to themselves; may be repeated.",
            metavar="NAME[=VALUE]",
        ),
    ] = None
    nights: Annotated[
        int,
        typer.Option(
            help="Virtual nights in every span, when an agent may consolidate its memory.", parser=integer_parser(0, 100), metavar="N"
        ),
    ] = 0
    score_farewells: Annotated[
        bool, typer.Option("--score-farewells", help="Ask again after each farewell; show the answers that the agent still gives.")
    ] = False
    label: Annotated[str | None, typer.Option(help="Tells these runs from others of the same agent.", metavar="TEXT")] = None
    keep_prompts: Annotated[bool, typer.Option("--keep-prompts", help="Keep what models are sent, turn by turn.")] = False
    data: Annotated[list[str] | None, typer.Option(help="Your own data, such as history=FILE.", metavar="NAME=PATH")] = None
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a parameter of all scenarios or of one (SCENARIO.NAME=VALUE).", metavar="NAME=VALUE"),
    ] = None
    trust: Annotated[bool, typer.Option("--trust", help="Allow code that a suite file names (python:).")] = False

    def grid(self) -> Grid:
        """Return the requested runs as a Grid. Raises InputError for invalid values and for untrusted code."""
        from pydantic import ValidationError

        from longspan.simulator.base.errors import InputError, first_problem
        from longspan.simulator.suite.grid import Grid
        from longspan.simulator.suite.suite import load_suite
        from longspan.simulator.suite.trust import admit_file

        admit_file(self.suite, load_suite(self.suite).scenarios, self.scenario or [], trust=self.trust)
        listed = {"suites": self.suite, "agents": self.agent, "seeds": self.seed, "scenarios": self.scenario or []}
        listed |= {"spans": self.span or [], "set": self.set_ or [], "data": self._data()}
        listed |= self._experiments()
        single = {each.name: getattr(self, each.name) for each in fields(self) if each.name in Grid.model_fields.keys() - listed.keys()}
        single = {name: value for name, value in single.items() if name != "placement" or value is not None}
        try:
            return Grid.model_validate(listed | single)
        except ValidationError as error:
            problem = re.sub(r"^(seed|span|agent|suite|scenario)s(\.\d+)?(?=:)", r"\1", first_problem(error))
            raise InputError(f"--{problem.replace('_', '-', 1)}") from None

    def _experiments(self) -> dict[str, Any]:
        """Return the settings of the experiments. Raises InputError."""
        from longspan.simulator.base.errors import InputError

        parsers: dict[str, Callable[[str], Any]] = {"twins": integer_parser(1, 10_000), "lesion": parse_size_option}
        found: dict[str, Any] = {}
        for given in self.experiment or []:
            name, equals, value = given.partition("=")
            if name in found:
                raise InputError(f"--experiment {name} is given twice")
            if given == "control":
                found[name] = True
            elif name in parsers and equals:
                try:
                    found[name] = parsers[name](value)
                except ValueError as error:
                    raise InputError(f"--experiment {name}: {error}") from None
            else:
                raise InputError(
                    f"--experiment: must be twins=N, such as twins=20, lesion=S, such as lesion=8k, or control, got {given!r:.60}"
                )
        return found

    def _data(self) -> list[str]:
        return [*(self.data or []), *([f"prompts={self.prompts}"] if self.prompts else [])]


def takes_grid(command: Callable[Concatenate[GridOptions, P], int]) -> Callable[..., int]:
    """Replace a command's first parameter, a GridOptions, with its fields: Typer makes an option from each parameter."""
    hints = get_type_hints(GridOptions, include_extras=True)
    defaults = GridOptions()
    options = {each.name: getattr(defaults, each.name) for each in fields(GridOptions)}

    @wraps(command)
    def spread(**given: Any) -> int:
        chosen = GridOptions(**{name: given.pop(name) for name in options})
        return command(chosen, **given)  # type: ignore[call-arg]

    _, *others = signature(command, eval_str=True).parameters.values()
    options_ = [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]) for name, default in options.items()]
    spread.__signature__ = signature(command).replace(parameters=[*options_, *others])  # type: ignore[attr-defined]
    return spread
