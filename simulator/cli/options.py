"""The options of the commands that plan runs, and options shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, Literal, ParamSpec, final, get_type_hints

import typer

from longspan.simulator.base.integers import whole
from longspan.simulator.cli import completion

if TYPE_CHECKING:
    from longspan.simulator.suite.grid import Grid

__all__ = ["GridOptions", "JsonOption", "MaxTokens", "OtelOption", "RepliesOption", "RunsArgument", "SpecOption", "TimeLimit", "takes_grid"]

P = ParamSpec("P")

SpecOption = Annotated[str, typer.Option(help="The agent, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.agents)]

RunsArgument = Annotated[
    list[Path], typer.Argument(help="Folders of runs, or folders that contain some.", metavar="RUN", autocompletion=completion.runs)
]

OtelOption = Annotated[bool, typer.Option("--otel", help="Export OpenTelemetry traces to your collector (docs/tracing.md).")]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]

RepliesOption = Annotated[
    Path | None, typer.Option(help="Keep models' replies in this file, and ask for those alone that are not in it.", metavar="FILE")
]

TESTS = whole(1, 10_000)


def size(text: str) -> int:
    """Read a number of tokens, for typer."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.sizes import parse_size

    try:
        return parse_size(text)
    except InputError as error:
        raise ValueError(str(error)) from None


MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens-total", help="Maximum tokens that models read and write in all.", parser=size, metavar="N")
]
"""The option for a limit in tokens, like the one for dollars."""


_DURATION: Final = re.compile(r"([1-9][0-9]{0,6}|[0-9]{1,7}\.[0-9]{1,3})([smhd])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration(text: str) -> float:
    """Read a length of time in seconds, for typer."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 1 <= seconds <= 366 * 86_400:
        raise ValueError(f"expected a length of time from a second to a year, such as 90s, 30m, 1.5h or 2d; got {text!r:.40}")
    return seconds


TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit", help="Stop after the first turn that ends past this time, such as 90m or 2h.", parser=duration, metavar="TIME"
    ),
]
"""The option for a limit in time. A run that is stopped can be resumed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridOptions:
    """A Grid on the command line, with the same defaults."""

    suite: Annotated[
        str, typer.Argument(help="A suite's name or YAML file; A+B plays both.", metavar="SUITE", autocompletion=completion.suites)
    ] = "ltm"
    span: Annotated[
        list[str] | None,
        typer.Option(
            help="Tokens that each test may stretch over, such as 32k; 2k,32k is two.",
            metavar="S",
            show_default="the suite's",
            autocompletion=completion.spans,
        ),
    ] = None
    agent: Annotated[
        list[str],
        typer.Option(
            help="The agent under test, such as openai/gpt-4o; notebook needs no model.", metavar="SPEC", autocompletion=completion.agents
        ),
    ] = field(default_factory=lambda: ["notebook"])
    seed: Annotated[list[str], typer.Option(help="The seed of the tests; 0-9 or 1,4,7 is several.", metavar="N", show_default="0")] = field(
        default_factory=lambda: ["0"]
    )
    tests: Annotated[int | None, typer.Option(help="Tests per scenario.", parser=TESTS, metavar="N", show_default="the suite's")] = None
    scenario: Annotated[
        list[str] | None,
        typer.Option(help="Only this scenario, by name or as python:MODULE:CLASS.", metavar="NAME", autocompletion=completion.scenarios),
    ] = None
    isolated: Annotated[bool, typer.Option("--isolated", help="Play each test in its own conversation, without filler.")] = False
    placement: Annotated[
        Literal["spread", "uniform", "early"] | None,
        typer.Option(
            help="Where needles go: at random places of the span, evenly (as in the paper), or in its first tenth.",
            show_default="spread; uniform with --rules paper or --definitions",
        ),
    ] = None
    tokenizer: Annotated[
        Literal["cl100k_base", "o200k_base"], typer.Option(help="Counts tokens: cl100k_base or o200k_base.", metavar="NAME")
    ] = "cl100k_base"
    filler: Annotated[Path | None, typer.Option(help="A TriviaQA file (JSON or .gz) instead of our own questions.", metavar="FILE")] = None
    filler_size: Annotated[int, typer.Option(help="Maximum tokens of a filler message.", parser=whole(100, 100_000), metavar="N")] = 2000
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
            help="The model that grades what rules cannot, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.agents
        ),
    ] = None
    branch: Annotated[
        Literal["on", "off", "retell"],
        typer.Option(help="Ask each question about a history from the state at its end, one after another (off), or after a new telling."),
    ] = "on"
    twins: Annotated[
        int, typer.Option(help="Play so many tests a second time without their needles.", parser=whole(0, 10_000), metavar="N")
    ] = 0
    lesion: Annotated[
        int | None,
        typer.Option(help="Ask tests' last questions again with only the last N tokens, such as 8k.", parser=size, metavar="N"),
    ] = None
    control: Annotated[bool, typer.Option("--control", help="Also play each test in a conversation to itself, and compare the scores.")] = (
        False
    )
    nights: Annotated[
        int, typer.Option(help="Virtual nights in every span; an agent may consolidate in them.", parser=whole(0, 100), metavar="N")
    ] = 0
    score_farewells: Annotated[
        bool, typer.Option("--score-farewells", help="Ask once more after a farewell; show answers still told beside the scores.")
    ] = False
    label: Annotated[str | None, typer.Option(help="Tells these runs from others of the same agent.", metavar="TEXT")] = None
    keep_prompts: Annotated[bool, typer.Option("--keep-prompts", help="Keep what models are sent, turn by turn.")] = False
    data: Annotated[list[str] | None, typer.Option(help="Your own data, such as chapterbreak=FILE.", metavar="NAME=PATH")] = None
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a parameter of all scenarios or of one (SCENARIO.NAME=VALUE).", metavar="NAME=VALUE"),
    ] = None
    trust: Annotated[bool, typer.Option("--trust", help="Allow the code that a suite file names (python:).")] = False

    def grid(self) -> Grid:
        """Return the requested runs. Raises InputError for invalid values and for untrusted code."""
        from pydantic import ValidationError

        from longspan.simulator.base.errors import InputError, first_problem
        from longspan.simulator.suite.grid import Grid
        from longspan.simulator.suite.suite import load_suite
        from longspan.simulator.suite.trust import admit_file

        admit_file(self.suite, load_suite(self.suite).scenarios, self.scenario or [], trust=self.trust)
        listed = {"suites": self.suite, "agents": self.agent, "seeds": self.seed, "scenarios": self.scenario or []}
        listed |= {"spans": self.span or [], "set": self.set_ or [], "data": self._data()}
        single = {each.name: getattr(self, each.name) for each in fields(self) if each.name in Grid.model_fields.keys() - listed.keys()}
        single = {name: value for name, value in single.items() if name != "placement" or value is not None}
        try:
            return Grid.model_validate(listed | single)
        except ValidationError as error:
            problem = re.sub(r"^(seed|span|agent|suite|scenario)s(\.\d+)?(?=:)", r"\1", first_problem(error))
            raise InputError(f"--{problem.replace('_', '-', 1)}") from None

    def _data(self) -> list[str]:
        return [*(self.data or []), *([f"prompts={self.prompts}"] if self.prompts else [])]


def takes_grid(command: Callable[Concatenate[GridOptions, P], int]) -> Callable[..., int]:
    """Replace a command's first parameter, a GridOptions, by its fields, so that Typer makes an option from each."""
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
