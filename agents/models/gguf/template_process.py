"""Renders a chat template in a process that can be killed: `python template_process.py SECONDS BYTES FACTOR`.

A template comes with a downloaded file, so it may loop or allocate without end, which Jinja's sandbox does not prevent. The first line of
standard input contains the template and its constants, each later line a conversation. Each conversation is answered with a line that
contains the prompt, or the error that the template raised. A rendering that takes longer than SECONDS kills the process. A rendering may
use BYTES of memory and write BYTES / FACTOR characters; both limits grow with the conversation. The process ends with its input.

It imports nothing from longspan, so that it starts quickly.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from datetime import datetime
from typing import Any

from jinja2 import Environment
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_ERROR = 1_000
"""The maximum characters of an error."""


class GenerationTag(Extension):
    """A Jinja extension that ignores the tag around a model's output, which only training needs."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.tags = {"generation"}

    def parse(self, parser: Parser) -> list[Node]:
        """Return the contents of the tag."""
        parser.stream.skip(1)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False) -> str:
    """Return JSON as in Hugging Face's Transformers, without the HTML escapes of Jinja's filter."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message: str) -> None:
    """Refuse a conversation, as templates do."""
    raise ValueError(message)


def limit_memory(most: int | None) -> None:
    """Limit this process's memory to `most` bytes, or lift the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    lower = most is not None and (hard == resource.RLIM_INFINITY or most < hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most if most is not None and lower else hard, hard))


def main() -> None:
    """Answer conversations until the input ends."""
    seconds, most, factor = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process even inside a single operation, such as a huge power
    source, constants, date = json.loads(sys.stdin.readline())
    constants |= {"strftime_now": datetime.fromisoformat(date).strftime, "raise_exception": raise_exception}
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols])
    environment.filters["tojson"] = to_json
    template = None
    for line in sys.stdin:
        room = most + factor * len(line)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            limit_memory(room)
            template = template or environment.from_string(source)
            text = template.render(messages=json.loads(line), **constants)
            answer = {"wrote": len(text)} if factor * len(text) > room else {"text": text}
            del text
        except MemoryError:
            answer = {"memory": room}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error!s:.{MAX_ERROR}}"}
        signal.setitimer(signal.ITIMER_REAL, 0)
        limit_memory(None)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
