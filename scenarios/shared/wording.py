"""Message templates of a suite: one Jinja template for each scenario, with one macro for each kind of message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from jinja2 import Environment
from jinja2.environment import TemplateModule

from longspan.simulator.base.templating import make_environment

__all__ = ["Wording"]


@cache
def _environment(folder: Path) -> Environment:
    return make_environment(folder, trim_blocks=True, lstrip_blocks=True)


class Wording:
    """A scenario's messages. Each line of a macro is one way to phrase the message; `say` picks one.

    The template `<scenario>.j2` is read from `folder`, by default the folder of the suite. Another folder gives the same tests in
    different words.
    """

    folder: ClassVar[Path]

    def __init__(self, scenario: str, folder: Path | None = None) -> None:
        self._macros = _environment(folder or self.folder).get_template(f"{scenario}.j2").module

    def say(self, random: Random, macro: str, /, **values: Any) -> str:
        """Return one of the macro's lines, chosen by `random`, with `values` filled in."""
        return random.choice(self.all(macro, **values))

    def all(self, macro: str, /, **values: Any) -> Sequence[str]:
        """Return all of the macro's lines with `values` filled in. `<br>` becomes a line break in the message."""
        return _lines(getattr(self._macros, macro)(**values)) if values else _macro_lines(self._macros, macro)

    def read(self, macro: str, /, message: str) -> dict[str, str] | None:
        """Return the filled-in values by name if `message` matches one of the macro's lines, else None."""
        for pattern in _patterns(self._macros, macro):
            if match := pattern.fullmatch(message):
                return match.groupdict()
        return None


@cache
def _macro_lines(macros: TemplateModule, macro: str) -> Sequence[str]:
    """Return a macro's lines without values. They never change, so they are cached."""
    return _lines(getattr(macros, macro)())


@cache
def _patterns(macros: TemplateModule, macro: str) -> Sequence[re.Pattern[str]]:
    """Return a pattern for each of a macro's lines. Each value is a named group within one line of the message."""
    template = getattr(macros, macro)
    return [_pattern(line) for line in _lines(template(**{name: f"\0{name}\0" for name in template.arguments}))]


def _pattern(line: str) -> re.Pattern[str]:
    texts = line.split("\0")  # every second one is the name of a value
    seen: set[str] = set()
    for k in range(1, len(texts), 2):
        name = texts[k]
        texts[k] = f"(?P={name})" if name in seen else f"(?P<{name}>.+?)"
        seen.add(name)
    texts[::2] = map(re.escape, texts[::2])
    return re.compile("".join(texts))


def _lines(text: str) -> Sequence[str]:
    return [re.sub(r"\s*<br>\s*", "\n", line.strip()) for line in text.splitlines() if line.strip()]
