"""The folded contents of rows: part of the page or, if they are long, data from which the page's script builds them.

The output of our own templates is split into elements and strings here. The templates have already escaped all untrusted text. So the
script only creates elements and text nodes, and no text is parsed as HTML again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any, Final, NamedTuple, final

from markupsafe import Markup

from longspan.simulator.pages.report.excerpts import embed_json, script_list

__all__ = ["FoldedRows", "fold_rows"]

FOLDED_FROM: Final = 300_000
"""Folded rows with this many characters or more are put on the page as data, since they repeat each other and few are ever opened."""


@final
class FoldedRows(NamedTuple):
    """The folded contents of rows by name; or, if they are long, all of them in order in a `script`."""

    rows: Mapping[str, Markup]
    script: Markup = Markup()


def fold_rows(rows: Iterable[tuple[str, str]]) -> FoldedRows:
    """Fold rows, given as names and rendered templates."""
    folded = dict(rows)
    if sum(map(len, folded.values())) < FOLDED_FROM:
        return FoldedRows({name: Markup(row) for name, row in folded.items()})  # noqa: S704
    return FoldedRows({}, embed_json(script_list(map(_nodes, folded.values())), deflated=True))


def _nodes(html: str) -> list[Any]:
    """Return the nodes of a rendered template: strings, and for each element a list of its tag, its attributes and its contents."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found


@final
class _Reader(HTMLParser):
    """Splits the output of our own templates, where every element is closed."""

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
