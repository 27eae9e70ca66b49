"""Rich's console, for text from outside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, Final, final

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from longspan.simulator.base.terminal import as_line, visible

__all__ = ["Console", "wide_console"]

WIDTH: Final = 160
"""The width of a line in columns if the output is not a terminal."""


@final
class Console(console.Console):
    """A console where only Rich itself writes control sequences: all other text has passed through `visible`. In a notebook it writes to
    its file as well, and not into a cell.

    Markup, emoji codes and highlighting are off. Text is best given as str: from a `Text`, Rich silently drops some control characters.
    """

    def __init__(self, file: IO[str] | None = None, **options: Any) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False, force_jupyter=False, **options)

    def say(self, text: str, style: str | None = None, *, mark: str = "", mark_style: str = "") -> None:
        """Print text as one line, however long it is, after a mark in a style of its own."""
        self.print(Text.assemble((mark, mark_style), as_line(text)), style=style, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def wide_console(file: IO[str] | None = None) -> Console:
    """Return a console on `file`, or else standard output, as wide as the terminal, or WIDTH columns wide if it is not a terminal."""
    made = Console(file)
    return made if made.file.isatty() else Console(file, width=WIDTH)
