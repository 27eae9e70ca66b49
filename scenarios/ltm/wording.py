"""Where the sentences of the suite `ltm` live: one Jinja template per scenario, a macro per kind of message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, final

from jinja2 import Environment
from jinja2.environment import TemplateModule

from longspan.simulator.templating import environment

__all__ = ["Wording"]


@cache
def _environment(folder: Path) -> Environment:
    return environment(folder, trim_blocks=True, lstrip_blocks=True)


@final
class Wording:
    """A scenario's sentences. A macro holds one way to say it per line; `say` picks one.

    `folder` (of the class, unless one is given) is where `<scenario>.j2` is looked up: another folder gives the same tests in other words.
    """

    folder: Path = Path(__file__).parent / "templates"

    def __init__(self, scenario: str, folder: Path | None = None) -> None:
        self._macros = _environment(folder or self.folder).get_template(f"{scenario}.j2").module

    def say(self, random: Random, macro: str, /, **values: Any) -> str:
        """One of the macro's lines, picked by `random`, with `values` filled in."""
        return random.choice(self.all(macro, **values))

    def all(self, macro: str, /, **values: Any) -> Sequence[str]:
        """All of the macro's lines. A line may hold `<br>` where the message breaks its line."""
        return _lines(getattr(self._macros, macro)(**values)) if values else _unfilled(self._macros, macro)


@cache
def _unfilled(macros: TemplateModule, macro: str) -> Sequence[str]:
    """The lines of a macro without values: they are always the same."""
    return _lines(getattr(macros, macro)())


def _lines(text: str) -> Sequence[str]:
    return [re.sub(r"\s*<br>\s*", "\n", line.strip()) for line in text.splitlines() if line.strip()]
