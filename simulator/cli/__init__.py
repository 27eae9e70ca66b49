"""The command line. One module per group of commands; whatever a command needs is imported when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from copy import copy
from typing import Annotated, Final

import typer

from longspan.simulator.cli import (
    annotate,
    arena,
    calibrate,
    chat,
    check,
    compare,
    estimate,
    export,
    importing,
    listing,
    plot,
    publishing,
    reproduce,
    run,
    runs,
    sweep,
    view,
    write,
)
from longspan.simulator.errors import InputError, LongspanError

__all__ = ["main"]

app = typer.Typer(
    name="longspan",
    help="Test the memory of conversational agents in one very long conversation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"longspan {version('longspan')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and leave.")] = False,
) -> None:
    """What holds for all commands."""


COMMANDS: Final[dict[str, dict[str, Callable[..., int | None]]]] = {
    "Play": {
        "run": run.run,
        "sweep": sweep.sweep,
        "resume": runs.resume,
        "replay": runs.replay,
        "estimate": estimate.estimate,
        "check": check.check,
        "chat": chat.chat,
    },
    "Look": {"view": view.view, "plot": plot.plot, "export": export.export},
    "Compare": {
        "compare": compare.compare,
        "arena": arena.arena,
        "reproduce": reproduce.reproduce,
        "publish": publishing.publish,
        "verify": publishing.verify,
    },
    "Judge": {
        "score": runs.score,
        "correct": runs.correct,
        "annotate": annotate.annotate,
        "calibrate": calibrate.calibrate,
    },
    "Data": {"import": importing.import_, "write": write.write},
}
"""The commands, in the groups that the help shows."""


def _unwrapped(text: str) -> str:
    """A docstring with each paragraph in one line: a terminal breaks lines where its own width ends."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for _group, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, help=_unwrapped(_command.__doc__ or ""), rich_help_panel=_group)(_command)
app.add_typer(listing.app, name="list", rich_help_panel="Look")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 0 done, 1 something failed while running, 2 something given is wrong."""
    sys.exit(_main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _only(given)(args=given, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.Abort:
        return _say("nothing was done: there was no answer; --yes goes on without asking", 1)
    except typer.TyperException as error:
        said: str = error.format_message() if hasattr(error, "format_message") else str(error)
        return _say(said.replace(": Value error, ", ": "), 2)
    except OSError as error:  # a pipe whose reader has gone, a full disk behind it: the runs themselves raise errors of ours
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
        return 1 if isinstance(error, BrokenPipeError) else _say(f"cannot write: {error.strerror}", 1)
    except (KeyboardInterrupt, LongspanError, BaseExceptionGroup) as error:
        cause = _cause(error)
        match cause:
            case KeyboardInterrupt():
                return _say("interrupted; what was played is kept in the run's folder", 130)
            case InputError():
                return _say(str(cause), 2)
            case LongspanError():
                return _say(str(cause), 1)
        raise


def _only(given: Sequence[str]) -> typer.Typer:
    """The app with nothing but the command that is given, if one is: Typer works out the options of all it has."""
    named = [command for command in app.registered_commands if [command.name] == given[:1]]
    if not named:
        return app
    only = copy(app)
    only.registered_commands, only.registered_groups = named, []
    return only


def _cause(error: BaseException) -> BaseException:
    """The error that a group of them comes down to: an interruption first, then an error of ours, else the group."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found: BaseException | None = error.subgroup(KeyboardInterrupt) or error.subgroup(LongspanError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or error


def _say(message: str, code: int) -> int:
    """Print an error as one line. Without a message, the help has said it all."""
    if message.strip():
        print(f"longspan: {' '.join(message.split())}", file=sys.stderr)
    return code
