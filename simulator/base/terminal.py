"""Text on the terminal. Most of it comes from outside, so every command prints, complains and asks through these functions, which redact
keys."""

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

from longspan.simulator.base.keys import redacted, redacted_in

__all__ = [
    "as_line",
    "ask",
    "complain",
    "confirm",
    "give_up_output",
    "prepare",
    "printing_aside",
    "prints_to_terminal",
    "rewritable",
    "say",
    "say_json",
    "typed",
    "visible",
]

_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]|\r(?!\n)")
"""Characters that control a terminal, that HTML forbids, that cannot be encoded, or that change the direction of text after them."""

_RESULTS: Final[ContextVar[IO[str] | None]] = ContextVar("results")
"""Where `say_json` writes, if that is not standard output."""

_PLAIN: Final = bytes([*b"\t\n", *range(0x20, 0x7F)])

_LINE_ENDS: Final = re.compile("(?:\r\n|[\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")


def visible(text: str) -> str:
    """Replace characters that are invisible, control a terminal or are forbidden in HTML by their code points, as in [U+001B]."""
    if text.isascii() and not text.encode().translate(None, _PLAIN):  # much faster than the pattern
        return text
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def as_line(text: str) -> str:
    """Return `visible` text on one line, with line ends replaced by spaces."""
    return visible(_LINE_ENDS.sub(" ", text))


def typed(*words: object) -> str:
    """Return a command as a person would type its words in a shell."""
    return shlex.join(map(str, words))


def prepare() -> None:
    """Set up the standard streams to replace characters that they cannot read or show instead of raising, and show tracebacks as plain
    text."""
    sys.excepthook = _complain_of
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def give_up_output() -> None:
    """Discard pending output, because standard output is broken."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123


def say(text: str = "", *, lines: bool = False) -> None:
    """Print a line on standard output, or several with `lines`."""
    text = redacted(text)
    _write(sys.stdout, f"{visible(text) if lines else as_line(text)}\n")


def complain(text: str = "", *, rewritten: bool = False) -> None:
    """Print a line on standard error: a failure, a warning, progress. A closed stream is not an error.

    On a terminal, a `rewritten` line is replaced by the next one.
    """
    with suppress(OSError, ValueError):
        line = as_line(redacted(text))
        _write(sys.stderr, f"\r{line}" if rewritten else f"{line}\n")


def rewritable() -> bool:
    """Return whether standard error is a terminal, where a line can be replaced."""
    return sys.stderr is not None and sys.stderr.isatty()


def prints_to_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def printing_aside() -> Iterator[None]:
    """Leave standard output to `say_json`. All else that is printed there goes to standard error, as what an agent's code prints, and the
    processes that it starts."""
    with ExitStack() as stack:
        results = sys.stdout
        with suppress(OSError):  # a program can be started without standard output
            kept = os.dup(1)
            stack.callback(os.close, kept)
            if _is_standard_output(results):
                results = stack.enter_context(_leaving(os.fdopen(os.dup(kept), "w", encoding=results.encoding, errors=results.errors)))
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        stack.callback(_RESULTS.reset, _RESULTS.set(results))
        stack.enter_context(redirect_stdout(sys.stderr))
        yield


def _is_standard_output(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.fileno() == 1
    except (OSError, ValueError):  # it is closed, or no file
        return False


@contextmanager
def _leaving(stream: IO[str]) -> Iterator[IO[str]]:
    """Close a stream at the end. What could not be written was an error before."""
    try:
        yield stream
    finally:
        with suppress(OSError):
            stream.close()


def say_json(value: Any) -> None:
    """Print a value as JSON on standard output. Characters that `visible` would replace are escaped, so nothing is lost."""
    value = redacted_in(value)
    text = json.dumps(value, ensure_ascii=False, indent=1)
    stream = _RESULTS.get(sys.stdout)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8", "surrogatepass")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=1)
    _write(stream, _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def ask(prompt: str) -> str:
    """Print a prompt and return the line that the user types. Raises EOFError at the end of the input, or if a standard stream is
    missing."""
    if None in (sys.stdin, sys.stdout, sys.stderr):  # `input` needs all three
        raise EOFError
    _write(sys.stdout, f"{as_line(prompt)} ")
    return input()


def confirm(question: str) -> bool:
    """Ask a question: `y` or `yes` means yes, anything else means no. Raises EOFError at the end of the input."""
    return ask(f"{question} [y/N]:").strip().lower() in ("y", "yes")


def _complain_of(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for line in "".join(format_exception(kind, error, trace)).splitlines():
        complain(line)


def _write(stream: IO[str] | None, text: str) -> None:
    if stream is not None:  # a program can be started without one
        stream.write(text)
        stream.flush()
