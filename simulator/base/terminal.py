"""Input and output on the terminal. Much of the text is untrusted, so every command prints and asks through these functions. They redact
keys and replace control characters."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from traceback import format_exception
from types import TracebackType
from typing import IO, Any, Final

from longspan.simulator.base.keys import redact, redact_json

__all__ = [
    "as_line",
    "can_rewrite_line",
    "complain",
    "confirm_question",
    "escape_invisible",
    "give_up_output",
    "prepare_streams",
    "prints_to_terminal",
    "prompt_user",
    "quote_command",
    "reserve_stdout",
    "say",
    "say_json",
]

_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]|\r(?!\n)")
"""Characters that control a terminal, that HTML forbids, that cannot be encoded, or that change the direction of later text."""

_RESULTS: Final[ContextVar[IO[str] | None]] = ContextVar("results")
"""The stream for `say_json`, if it is not standard output."""

_PLAIN: Final = bytes([*b"\t\n", *range(0x20, 0x7F)])

_LINE_ENDS: Final = re.compile("(?:\r\n|[\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")


def escape_invisible(text: str) -> str:
    """Replace characters that are invisible, control a terminal or are forbidden in HTML with their code points, as in [U+001B]."""
    if text.isascii() and not text.encode().translate(None, _PLAIN):  # a shortcut, much faster than the pattern
        return text
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def as_line(text: str) -> str:
    """Return text as `escape_invisible` does, on one line, with spaces for line ends."""
    return escape_invisible(_LINE_ENDS.sub(" ", text))


def quote_command(*words: object) -> str:
    """Return a command line with its words quoted for a shell."""
    return shlex.join(map(str, words))


def prepare_streams() -> None:
    """Make the standard streams replace characters that they cannot encode or decode, and print tracebacks as plain text."""
    sys.excepthook = _complain_of
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def give_up_output() -> None:
    """Discard pending output after standard output has failed."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123


def say(text: str = "", *, lines: bool = False) -> None:
    """Print a line on standard output, or several with `lines`."""
    text = redact(text)
    _write(sys.stdout, f"{escape_invisible(text) if lines else as_line(text)}\n")


def complain(text: str = "", *, rewritten: bool = False) -> None:
    """Print a line on standard error: a failure, a warning or progress. A closed stream is ignored.

    On a terminal, the next line replaces a `rewritten` one.
    """
    with suppress(OSError, ValueError):
        line = as_line(redact(text))
        _write(sys.stderr, f"\r{line}" if rewritten else f"{line}\n")


def can_rewrite_line() -> bool:
    """Return whether standard error is a terminal, where a line can be replaced."""
    return sys.stderr is not None and sys.stderr.isatty()


def prints_to_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def reserve_stdout() -> Iterator[None]:
    """Reserve standard output for `say_json`. All other output goes to standard error, also from an agent's code and processes."""
    with ExitStack() as stack:
        results = sys.stdout
        with suppress(OSError):  # a program may be started without standard output
            kept = os.dup(1)
            stack.callback(os.close, kept)
            if _is_standard_output(results):
                results = stack.enter_context(_close_stream(os.fdopen(os.dup(kept), "w", encoding=results.encoding, errors=results.errors)))
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        stack.callback(_RESULTS.reset, _RESULTS.set(results))
        stack.enter_context(redirect_stdout(sys.stderr))
        yield


def _is_standard_output(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.fileno() == 1
    except (OSError, ValueError):  # the stream is closed, or has no file
        return False


@contextmanager
def _close_stream(stream: IO[str]) -> Iterator[IO[str]]:
    """Close a stream when the context ends. Errors are ignored, because a failed write has been reported already."""
    try:
        yield stream
    finally:
        with suppress(OSError):
            stream.close()


def say_json(value: Any) -> None:
    """Print a value as JSON on standard output. Characters that `escape_invisible` would replace are escaped, so no information is lost."""
    value = redact_json(value)
    text = json.dumps(value, ensure_ascii=False, indent=1)
    stream = _RESULTS.get(sys.stdout)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8", "surrogatepass")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=1)
    _write(stream, _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def prompt_user(prompt: str) -> str:
    """Print a prompt and return the line that the user types. Raises EOFError at the end of input, or without a standard stream."""
    if None in (sys.stdin, sys.stdout, sys.stderr):  # `input` needs all three
        raise EOFError
    _write(sys.stdout, f"{as_line(prompt)} ")
    return input()


def confirm_question(question: str) -> bool:
    """Ask a yes/no question. Only `y` and `yes` mean yes. Raises EOFError at the end of input."""
    return prompt_user(f"{question} [y/N]:").strip().lower() in ("y", "yes")


def _complain_of(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for line in "".join(format_exception(kind, error, trace)).splitlines():
        complain(line)


def _write(stream: IO[str] | None, text: str) -> None:
    if stream is not None:  # a program may be started without standard streams
        stream.write(text)
        stream.flush()
