"""The command line. A command imports its modules when it runs, so that the other commands start fast."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import copy
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from longspan.simulator.base.address_space import free_address_space
from longspan.simulator.base.closing import end_all, report_failure, take_failures
from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.hard_exit import end_process, report_crashes
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.base.pydantic_errors import problem_of
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.base.terminal import can_rewrite_line, complain, give_up_output, prepare_streams, quote_command, reserve_stdout, say
from longspan.simulator.cli import (
    ask,
    calibrate,
    check,
    compare,
    confirm,
    convert,
    estimate,
    export,
    importing,
    listing,
    new,
    plot,
    prune,
    publishing,
    run,
    runs,
    schema,
    show,
    sweep,
    view,
    write,
)
from longspan.simulator.cli.completion import words_to_complete
from longspan.simulator.cli.suite_commands import command_groups, commands_of, describe_commands, name_moved

__all__ = ["main", "run_command", "whole_app"]


HELP_ALL: Final = "--help-all"
MANY: Final = 25
COMMON: Final = frozenset(
    "suite span agent seed tests scenario data judge experiment max_cost time_limit out fail_under fail_under_reach json_ help".split()
)
"""The options that the first help of a command with MANY options shows."""


class _PlainHelp:
    """Help that leaves out the ranges of numbers and the types of arguments and flags, and at first the options that few people use.

    An entry-point group in braces, such as {longspan.rubrics}, stands for the names that are installed.
    """

    shows_all = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from typer import rich_utils

        rich_utils.RANGE_STRING = ""
        params = self.get_params(ctx)  # type: ignore[attr-defined]
        if len(params) > MANY and not self.shows_all:
            for param in params:
                param.hidden = param.name not in COMMON
            vars(self)["epilog"] = f"`{ctx.command_path} {HELP_ALL}` shows all {len(params)} options."
        for param in params:
            if param.param_type_name == "argument" or param.is_flag:
                param.display_type_rich = lambda ctx: ""
            if "{longspan." in (param.help or ""):
                param.help = re.sub(r"\{(longspan\.\w+)\}", lambda group: ", ".join(find_entry_points(group[1])), param.help)
            if isinstance(param.show_default, str):  # in words, so not in brackets of its own
                param._get_default_string = lambda *, words=param.show_default, **_: words
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class _Command(_PlainHelp, TyperCommand):
    pass


class _Group(_PlainHelp, TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        if self.epilog:  # the epilog lists the options instead, so the help can begin with the commands
            for param in self.get_params(ctx):
                param.hidden = True  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # Typer would turn a bare one into an exit code, without a message
            raise BaseExceptionGroup("interrupted", [error]) from None


app = typer.Typer(
    name="longspan",
    cls=_Group,
    help="Test the memory of conversational agents in one very long conversation.",
    epilog="`longspan COMMAND --help` shows a command's options. `longspan --version` shows the version. After "
    "`longspan --install-completion`, the Tab key completes commands, agents and runs; `--show-completion` prints what it installs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from longspan.simulator.suite.provenance import describe_version

        say(f"longspan {describe_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")] = False,
) -> None:
    """Options of `longspan` itself."""


COMMANDS: Final[dict[str, dict[str, Callable[..., int | None]]]] = {
    "Start here": {"run": run.run, "check": check.check, "show": show.show, "compare": compare.compare},
    "Play": {
        "sweep": sweep.sweep,
        "resume": runs.resume,
        "replay": runs.replay,
        "ask": ask.ask,
        "estimate": estimate.estimate,
    },
    "Look": {"view": view.view, "plot": plot.plot},
    "Judge": {
        "score": runs.score,
        "calibrate": calibrate.calibrate,
    },
    "Write your own": {"new": new.new},
    "Data": {
        "convert": convert.convert,
        "write": write.write,
        "confirm": confirm.confirm,
        "import": importing.import_,
        "export": export.export,
        "publish": publishing.publish,
        "prune": prune.prune,
    },
}
"""The commands by panel of the help. The first panel has all that a newcomer needs."""

MOVED_OPTIONS: Final = {
    "--twins": "--experiment twins=N",
    "--lesion": "--experiment lesion=S",
    "--control": "--experiment control",
    "--paper": "`longspan BENCHMARK reproduce FILE --heatmap OUT`",
}
"""What to say of options that were merged into others in this release."""

MOVED: Final = {
    old: f"`longspan {old}` is now `longspan {new}`"
    for old, new in {
        "rerun": "replay RUN --only-failed",
        "correct": "score RUN --correct TEST=SCORE --why TEXT",
        "chat": "ask --agent SPEC",
        "verify": "publish RUN --verify FILE",
        "cite": "list citations",
        "schema": "list schema",
    }.items()
}
"""What to say of commands that were merged into others in this release."""


def _unwrap_help(text: str) -> str:
    """Return a docstring with each paragraph on one line, so that the help wraps at the terminal's width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for _group, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, cls=_Command, help=_unwrap_help(_command.__doc__ or ""), rich_help_panel=_group)(_command)
listed = typer.Typer(
    help="List scenarios, agents, memories, suites, runs, formats of logs, citations, or the schema of JSON output.", no_args_is_help=True
)
for _command in (
    listing.scenarios,
    listing.agents,
    listing.memories,
    listing.suites,
    listing.runs,
    listing.formats,
    listing.citations,
    schema.schema,
):
    listed.command(cls=_Command)(_command)
app.add_typer(listed, name="list", cls=_Group, rich_help_panel="Look")


def _add_benchmark(to: typer.Typer, benchmark: str, *, load: bool) -> None:
    """Add a benchmark's commands to an app. Without `load`, add only its name and help: its modules are slow to import."""
    group = typer.Typer(help=describe_commands(benchmark), no_args_is_help=True)
    group.callback()(lambda: None)
    for name, command in commands_of(benchmark).items() if load else ():
        group.command(name, cls=_Command, help=_unwrap_help(command.__doc__ or ""))(command)
    to.add_typer(group, name=benchmark, cls=_Group, rich_help_panel="Benchmarks")


FULL: Final = "out of memory; play fewer runs or conversations concurrently, or pass smaller files"

UNMAPPED: Final = "failed to map segment"
"""Part of the dynamic loader's message if memory is too full to load a library."""


LOADED: Final = 250_000
"""More objects than a short run makes. Most of them live until the end, so searching them for garbage is wasted time."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit.

    Exit codes: 0 for success, 1 if the command failed or an agent could not be closed, 2 for invalid input, 130 if interrupted.
    """
    if arguments is None:  # the process is ours; callers that pass arguments keep Python's garbage collector as it is
        _collect_after_loading()
        # NumPy's threads spin for a while before they sleep. They are idle nearly all the time, so let them sleep early.
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
        if free_address_space() is not None:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # OpenBLAS reserves tens of MiB for each thread
        atexit.register(gc.freeze)  # the process is about to end, so Python need not search its memory for garbage
    with report_crashes() if arguments is None else nullcontext():
        code = run_command(arguments)
    if arguments is None and not _end_agents():
        code = code or 1
        if threading.active_count() > 1:  # a call of the agent may never return, and the interpreter would wait for its thread
            end_process(code)  # base/terminal.py flushes after each line, so no output is lost
    sys.exit(code)


def _end_agents() -> bool:
    """Close what agents have left behind. Return whether everything could be closed."""
    try:
        end_all()
    except KeyboardInterrupt:
        report_failure("interrupted while agents were being closed")
    return not take_failures()


def _collect_after_loading() -> None:
    """Postpone garbage collection until LOADED objects exist, then exempt these objects from it. Later collections run as usual.

    Collecting them would take a twentieth of the time of a short run and free next to nothing.
    """
    usual = gc.get_threshold()
    if usual[0] == LOADED:
        return

    def searching(phase: str, _: object) -> None:
        gc.callbacks.remove(searching)
        gc.freeze()
        gc.set_threshold(*usual)

    gc.callbacks.append(searching)
    gc.set_threshold(LOADED, *usual[1:])


def run_command(arguments: Sequence[str] | None) -> int:
    prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    _PlainHelp.shows_all = HELP_ALL in given
    given = ["--help" if argument == HELP_ALL else argument for argument in given]
    with reserve_stdout() if "--json" in given else nullcontext():
        return _run_command(given)


def _run_command(given: list[str]) -> int:
    try:
        code = _only(given or words_to_complete())(args=given, prog_name="longspan", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Exit as exiting:
        return exiting.exit_code
    except typer.Abort:
        return _fail("nothing was done: the question was not answered; --yes skips it", 1)
    except typer.TyperException as error:
        return _fail(_invalid(error), 2)
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        cause = _cause(error)
        match cause:
            case KeyboardInterrupt():
                return _report_interrupt()
            case InputError():
                return _fail(str(cause), 2)
            case LongspanError():
                return _fail(str(cause), 1)
            case OSError():  # most OSErrors name their file; those without one come from standard output: a closed pipe or a full disk
                where = cause.filename or ("temporary files" if isinstance(cause, FileNotFoundError) else "standard output")
                why = cause.strerror or str(cause)
                give_up_output()
                return 1 if isinstance(cause, BrokenPipeError) else _fail(f"{where}: cannot be read or written: {why}", 1)
            case MemoryError():
                return _fail(FULL, 1)
            case ImportError() if UNMAPPED in str(cause):  # no memory left for a library that is loaded late
                return _fail(FULL, 1)
            case RecursionError():
                return _fail("an input file is nested too deeply; look for thousands of consecutive brackets", 1)
        if _hides_interrupt(cause):
            return _report_interrupt()
        raise


def _invalid(error: typer.TyperException) -> str:
    """Return a message that names the invalid option or argument and says why it is invalid."""
    if error.__cause__ is not None:  # pydantic's error
        from pydantic import ValidationError

        if isinstance(error.__cause__, ValidationError):
            error.message = problem_of(error.__cause__.errors(include_url=False, include_input=False)[0])
    params = getattr(getattr(error, "ctx", None), "params", {})
    if "suite" in params and (extra := re.search(r"extra arguments? \((.+)\)$|extra argument\(s\) \((.+)\)$", error.message)):
        return f"{error.message}{_option_meant(str(params['suite']), str(extra[1] or extra[2]))}"
    if (now := MOVED_OPTIONS.get(str(getattr(error, "option_name", "")))) is not None:
        return f"{error.message}; it is now {now}"
    if near := getattr(error, "possibilities", None):  # an unknown option with a similar name
        return f"{error.message}{suggest(str(getattr(error, 'option_name', '')), near)}"
    return error.format_message()


def _option_meant(suite: str, extra: str) -> str:
    """Say which option the words after the suite probably mean."""
    from longspan.simulator.base.installed import AGENTS
    from longspan.simulator.base.sizes import is_size

    if is_size(extra):
        return f"; did you mean --span {extra}?"
    if re.split("[/:?]", extra)[0] in find_entry_points(AGENTS):
        return f"; did you mean {quote_command('--agent', extra)}?"
    return f"; did you mean {quote_command('--data', f'{suite}={extra}')}?"


def whole_app() -> typer.Typer:
    """Return the app with the commands of every benchmark, all of them loaded."""
    whole = copy(app)
    whole.registered_groups = list(app.registered_groups)
    for benchmark in command_groups():
        _add_benchmark(whole, benchmark, load=True)
    return whole


def _only(given: Sequence[str]) -> typer.Typer:
    """Return the app with only the given command, if it exists: Typer works out the options of every command in an app.

    Raises InputError for a command that has moved to a benchmark.
    """
    first = given[0] if given else ""
    only = copy(app)
    only.registered_groups = list(app.registered_groups)
    only.registered_commands = [command for command in app.registered_commands if command.name == first]
    if only.registered_commands:
        only.registered_groups = []
    elif first in (known := command_groups()):
        only.registered_groups = []
        _add_benchmark(only, first, load=True)
    elif not words_to_complete() and (where := MOVED.get(first) or name_moved(given)) is not None:
        raise InputError(where)
    else:
        only.registered_commands = app.registered_commands
        for benchmark in known:
            _add_benchmark(only, benchmark, load=False)
    return only


def _cause(error: BaseException) -> BaseException:
    """Return the most important error in a group: an interrupt, a LongspanError or a system error, in this order, or the group itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    kinds = (KeyboardInterrupt, LongspanError, (OSError, MemoryError, RecursionError, ImportError))
    first: BaseException | None = next((group for kind in kinds if (group := error.subgroup(kind))), None)
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first or error


def _hides_interrupt(error: BaseException) -> bool:
    """Return whether pydantic hides a Ctrl-C in its own error. It does so while it prepares a model, in the first half second."""
    from pydantic_core import SchemaError

    return isinstance(error, SchemaError) and "KeyboardInterrupt" in str(error)


def _report_interrupt() -> int:
    if can_rewrite_line():
        complain()  # ends the line where the terminal shows ^C
    return _fail("interrupted", 130)


def _fail(message: str, code: int) -> int:
    """Print an error as one line. An empty message means that Typer has shown the help already."""
    if message.strip():
        complain(f"longspan: {' '.join(message.split())}")
    return code
