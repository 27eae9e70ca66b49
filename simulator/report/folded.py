"""What the rows of a page fold: in the page as it is or, if there is much of it, as data that the page's script makes it from.

What we render has escaped every text of others, and is taken apart here into elements and texts. So the script creates elements and text
nodes, and nothing is ever read as HTML again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any, Final, NamedTuple, final

from markupsafe import Markup

from longspan.simulator.report.excerpts import embedded, script_list

__all__ = ["Folded", "fold"]

FOLDED_FROM: Final = 300_000
"""Characters of folded rows from which on a page has them as data: they repeat each other, and few of them are ever opened."""


@final
class Folded(NamedTuple):
    """What rows fold, by their names: as it is, or all of them in a `script` in their order."""

    rows: Mapping[str, Markup]
    script: Markup = Markup()


def fold(rows: Iterable[tuple[str, str]]) -> Folded:
    """Return what rows fold: the rendered template of each, by its name."""
    folded = dict(rows)
    if sum(map(len, folded.values())) < FOLDED_FROM:
        return Folded({name: Markup(row) for name, row in folded.items()})  # noqa: S704
    return Folded({}, embedded(script_list(map(_nodes, folded.values())), deflated=True))


def _nodes(html: str) -> list[Any]:
    """Return what a template rendered: texts, and for each element a list of its tag, its attributes and what is in it."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found


@final
class _Reader(HTMLParser):
    """Takes apart what our own templates render, in which every element is closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Any] = []
        self._open = [self.found]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = [tag, {name: value or "" for name, value in attrs}]
        self._open[-1].append(element)
        if tag != "wbr":
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].append(data)
