"""Rich's console, made safe for untrusted text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, Final, final

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from longspan.simulator.base.terminal import as_line, escape_invisible

__all__ = ["Console", "wide_console"]

WIDTH: Final = 160
"""The width of a line, in columns, if the output is not a terminal."""


@final
class Console(console.Console):
    """A console where only Rich writes control sequences: all other text goes through `escape_invisible`.

    In a notebook it writes to its file, not into the cell. Markup, emoji codes and highlighting are off. Pass text as str: from a `Text`,
    Rich silently drops some control characters.
    """

    def __init__(self, file: IO[str] | None = None, **options: Any) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False, force_jupyter=False, **options)

    def say(self, text: str, style: str | None = None, *, mark: str = "", mark_style: str = "") -> None:
        """Print text as one line of any length. A `mark` before it has its own style."""
        self.print(Text.assemble((mark, mark_style), as_line(text)), style=style, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escape_invisible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_invisible(segment.text), segment.style)


def wide_console(file: IO[str] | None = None) -> Console:
    """Return a console on `file` or standard output. It is as wide as the terminal, or WIDTH columns without a terminal."""
    made = Console(file)
    return made if made.file.isatty() else Console(file, width=WIDTH)
