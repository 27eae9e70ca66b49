"""What a figure has to say, for any medium: sentences, tables, and data for programs. A medium decides how that looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, final

from longspan.simulator.base.tables import Table

__all__ = ["Chapter", "Data", "Document", "Section", "Sentence", "Tone", "merged"]

Tone = Literal["plain", "warning"]


@final
class Sentence(NamedTuple):
    """A sentence. `label`: a word before it, in the margin if it is a line, in bold if it is a notice. A `warning` is coloured."""

    text: str
    label: str = ""
    tone: Tone = "plain"


@final
class Section(NamedTuple):
    """A table under a heading, a sentence that says what it shows, and one that explains how it came about."""

    heading: str
    sentence: str
    explained: str
    table: Table


@final
class Chapter(NamedTuple):
    """A chapter of a page: a heading, a sentence about all of it, and its sections."""

    heading: str
    about: str
    sections: Sequence[Section]


@final
class Data(NamedTuple):
    """Rows for programs. `columns`: their names and types (str, int, float or bool). A row may lack columns."""

    name: str
    columns: Mapping[str, type]
    rows: Sequence[Mapping[str, Any]]


@final
class Document(NamedTuple):
    """What is said of one run, or of runs side by side.

    Of a run: `notices` stand with its score, in every medium; `lines` below it where there is room for a line each; `chapters` where there
    is room for pages. Of runs side by side: `leading` tables come right below the scores, `tables` below those of scenarios and pairs.
    `leading_data` and `data` are the same for programs.
    """

    notices: Sequence[Sentence] = ()
    lines: Sequence[Sentence] = ()
    chapters: Sequence[Chapter] = ()
    leading: Sequence[Table] = ()
    tables: Sequence[Table] = ()
    leading_data: Sequence[Data] = ()
    data: Sequence[Data] = ()


def merged(documents: Sequence[Document]) -> Document:
    """Return documents as one, in their order."""
    return Document(*(tuple(each for part in parts for each in part) for parts in zip(*documents, strict=True)))
