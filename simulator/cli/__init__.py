"""The command line. A command imports what it needs when it runs, so that the others start fast."""

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

from longspan.simulator.base.address_space import room
from longspan.simulator.base.closing import end_all, report_failure, take_failures
from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.hard_exit import end_process, report_crashes
from longspan.simulator.base.pydantic_errors import problem_of
from longspan.simulator.base.suggestions import meant
from longspan.simulator.base.terminal import complain, give_up_output, prepare, printing_aside, rewritable, say, typed
from longspan.simulator.cli import (
    annotate,
    arena,
    ask,
    calibrate,
    chat,
    check,
    cite,
    compare,
    estimate,
    export,
    importing,
    listing,
    plot,
    prune,
    publishing,
    reproduce,
    run,
    runs,
    schema,
    show,
    sweep,
    view,
    write,
)
from longspan.simulator.cli.completion import words_to_complete

__all__ = ["main", "run_command"]


class _PlainHelp:
    """Help that leaves out the ranges of numbers and the types of arguments and flags."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from typer import rich_utils

        rich_utils.RANGE_STRING = ""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            if param.param_type_name == "argument" or param.is_flag:
                param.display_type_rich = lambda ctx: ""
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
        if self.epilog:  # it tells the options, so that the help begins with the commands
            for param in self.get_params(ctx):
                param.hidden = True  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # Typer turns a bare one into an exit code, without a word
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
        from importlib.metadata import version

        say(f"longspan {version('longspan')}")
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
        "rerun": runs.rerun,
        "ask": ask.ask,
        "estimate": estimate.estimate,
        "chat": chat.chat,
    },
    "Look": {"view": view.view, "plot": plot.plot},
    "Benchmarks": {"arena": arena.arena, "reproduce": reproduce.reproduce},
    "Judge": {
        "score": runs.score,
        "correct": runs.correct,
        "annotate": annotate.annotate,
        "calibrate": calibrate.calibrate,
    },
    "Data": {
        "import": importing.import_,
        "export": export.export,
        "publish": publishing.publish,
        "verify": publishing.verify,
        "cite": cite.cite,
        "schema": schema.schema,
        "write": write.write,
        "prune": prune.prune,
    },
}
"""The commands, by the panels of the help. A newcomer needs only the first panel."""


def _unwrapped(text: str) -> str:
    """Return a docstring with each paragraph on one line, so that the help is wrapped to the terminal's width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for _group, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, cls=_Command, help=_unwrapped(_command.__doc__ or ""), rich_help_panel=_group)(_command)
listed = typer.Typer(help="List scenarios, agents, memories, suites or runs.", no_args_is_help=True)
for _command in (listing.scenarios, listing.agents, listing.memories, listing.suites, listing.runs):
    listed.command(cls=_Command)(_command)
app.add_typer(listed, name="list", cls=_Group, rich_help_panel="Look")


FULL: Final = "the memory is full; play fewer runs or conversations at once, or give smaller files"

UNMAPPED: Final = "failed to map segment"
"""The dynamic loader's message if memory is too full for a library."""


LOADED: Final = 250_000
"""More objects than a short run makes. Most of them stay, so Python need not search them for garbage meanwhile."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: with code 0 if it succeeded, 1 if it failed or an agent could not be closed, 2 if its input is invalid, 130
    if it was interrupted."""
    if arguments is None:  # the process is ours; callers that pass arguments keep Python's own way of finding garbage
        _collect_after_loading()
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # NumPy's threads sleep when they have nothing to do, which is nearly always
        if room() is not None:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # it reserves tens of MiB for each of its threads
        atexit.register(gc.freeze)  # memory is about to be given back as a whole, so Python need not search it for garbage
    with report_crashes() if arguments is None else nullcontext():
        code = run_command(arguments)
    if arguments is None and not _end_agents():
        code = code or 1
        if threading.active_count() > 1:  # a call may never return, and the interpreter would wait for its thread
            end_process(code)  # all that was printed has been flushed (base/terminal.py)
    sys.exit(code)


def _end_agents() -> bool:
    """End what agents have left. Return whether everything could be closed."""
    try:
        end_all()
    except KeyboardInterrupt:
        report_failure("interrupted while agents were being closed")
    return not take_failures()


def _collect_after_loading() -> None:
    """Postpone Python's search for garbage until LOADED objects have been made, and then leave them out of it.

    Searching them would take a twentieth of the time of a short run and find next to nothing. Later searches are as usual.
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
    prepare()
    given = list(sys.argv[1:] if arguments is None else arguments)
    with printing_aside() if "--json" in given else nullcontext():
        return _run_command(given)


def _run_command(given: list[str]) -> int:
    try:
        code = _only(given or words_to_complete())(args=given, prog_name="longspan", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Exit as exiting:
        return exiting.exit_code
    except typer.Abort:
        return _fail("nothing was done: there was no answer; --yes skips the question", 1)
    except typer.TyperException as error:
        return _fail(_invalid(error), 2)
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        cause = _cause(error)
        match cause:
            case KeyboardInterrupt():
                return _interrupted()
            case InputError():
                return _fail(str(cause), 2)
            case LongspanError():
                return _fail(str(cause), 1)
            case OSError():  # most OSErrors name their file; only a closed pipe or a full disk behind the output has none
                where = cause.filename or ("temporary files" if isinstance(cause, FileNotFoundError) else "standard output")
                why = cause.strerror or str(cause)
                give_up_output()
                return 1 if isinstance(cause, BrokenPipeError) else _fail(f"{where}: cannot be read or written: {why}", 1)
            case MemoryError():
                return _fail(FULL, 1)
            case ImportError() if UNMAPPED in str(cause):  # there is no room for a library that is loaded late
                return _fail(FULL, 1)
            case RecursionError():
                return _fail("something is nested too deeply to be read; look for thousands of brackets in a row in the files given", 1)
        if _hides_interrupt(cause):
            return _interrupted()
        raise


def _invalid(error: typer.TyperException) -> str:
    """Say which option or argument is invalid, and why."""
    if error.__cause__ is not None:  # pydantic's error
        from pydantic import ValidationError

        if isinstance(error.__cause__, ValidationError):
            error.message = problem_of(error.__cause__.errors(include_url=False, include_input=False)[0])
    params = getattr(getattr(error, "ctx", None), "params", {})
    if "suite" in params and (extra := re.search(r"extra arguments? \((.+)\)$|extra argument\(s\) \((.+)\)$", error.message)):
        return f"{error.message}{_option_meant(str(params['suite']), str(extra[1] or extra[2]))}"
    if near := getattr(error, "possibilities", None):  # the option does not exist
        return f"{error.message}{meant(str(getattr(error, 'option_name', '')), near)}"
    return error.format_message()


def _option_meant(suite: str, extra: str) -> str:
    """Say which option the words after the suite probably mean."""
    from longspan.simulator.base.installed import AGENTS, installed
    from longspan.simulator.base.sizes import is_size

    if is_size(extra):
        return f"; did you mean --span {extra}?"
    if re.split("[/:?]", extra)[0] in installed(AGENTS):
        return f"; did you mean {typed('--agent', extra)}?"
    return f"; did you mean {typed('--data', f'{suite}={extra}')}?"


def _only(given: Sequence[str]) -> typer.Typer:
    """Return the app with only the given command, if it exists, because Typer works out the options of every command that an app has."""
    named = [command for command in app.registered_commands if [command.name] == given[:1]]
    if not named:
        return app
    only = copy(app)
    only.registered_commands, only.registered_groups = named, []
    return only


def _cause(error: BaseException) -> BaseException:
    """Return the error that matters in a group: an interrupt, else a LongspanError, else a system error, else the group itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    kinds = (KeyboardInterrupt, LongspanError, (OSError, MemoryError, RecursionError, ImportError))
    first: BaseException | None = next((group for kind in kinds if (group := error.subgroup(kind))), None)
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first or error


def _hides_interrupt(error: BaseException) -> bool:
    """Return whether pydantic has turned Ctrl-C into an error of its own, as it does while preparing a model in the first half second."""
    from pydantic_core import SchemaError

    return isinstance(error, SchemaError) and "KeyboardInterrupt" in str(error)


def _interrupted() -> int:
    if rewritable():
        complain()  # ends the line with the ^C that the terminal shows
    return _fail("interrupted", 130)


def _fail(message: str, code: int) -> int:
    """Print an error as one line. Without a message, the help has been shown already."""
    if message.strip():
        complain(f"longspan: {' '.join(message.split())}")
    return code
