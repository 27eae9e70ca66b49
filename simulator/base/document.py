"""The result of a measure, independent of the medium: sentences, tables, and data for programs. The medium decides how to show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, final

from longspan.simulator.base.tables import Table

__all__ = ["MORE_RUNS", "Band", "Chapter", "Curve", "CurvePoint", "Data", "Document", "Section", "Sentence", "Tone", "merge_documents"]

Tone = Literal["plain", "warning"]


MORE_RUNS: Final = "more runs"
"""The label of a sentence that asks for more runs. It is omitted for stated contrasts, whose number of runs is fixed."""


@final
class Sentence(NamedTuple):
    """A sentence. `label` is a word before it: in the margin of a line, in bold in a notice. `tone` sets its colour. `command` is what to
    type next, and follows the sentence."""

    text: str
    label: str = ""
    tone: Tone = "plain"
    command: str = ""


@final
class Section(NamedTuple):
    """A table under a heading. `sentence` says what the table shows, and `explained` how it was computed."""

    heading: str
    sentence: str
    explained: str
    table: Table


@final
class Chapter(NamedTuple):
    """A chapter of a page: a heading, an introductory sentence, and sections."""

    heading: str
    about: str
    sections: Sequence[Section]


@final
class CurvePoint(NamedTuple):
    """A group of `questions` at a mean distance: the share answered correctly with its 95% interval. `text` describes the group."""

    distance: float
    share: float
    low: float
    high: float
    questions: int
    text: str


@final
class Band(NamedTuple):
    """A distance with its 95% interval and a label. `high` is None if it lies beyond all questions."""

    low: float
    value: float
    high: float | None
    label: str


@final
class Curve(NamedTuple):
    """A share by distance, to be drawn on a logarithmic axis.

    It belongs to the runs of `agent`, which `note` describes, such as "at 8k, 2 runs". `brief` is the result in a few words, `sentence` in
    one or two sentences. `start` is a group at distance 0. `fitted` lists the corners of a fitted line as (distance, share). `levels` are
    named shares to compare with. `tables` appear next to the curve.
    """

    agent: str
    note: str
    brief: str
    sentence: str
    points: Sequence[CurvePoint]
    start: CurvePoint | None = None
    fitted: Sequence[tuple[float, float]] = ()
    band: Band | None = None
    levels: Mapping[str, float] = {}
    tables: Sequence[Table] = ()


@final
class Data(NamedTuple):
    """Rows for programs. `columns` maps column names to types (str, int, float or bool).

    A row may omit columns, except those in `always`, which are null if they do not apply. A value may be a mapping.
    """

    name: str
    columns: Mapping[str, type]
    rows: Sequence[Mapping[str, Any]]
    always: Sequence[str] = ()


@final
class Document(NamedTuple):
    """All that measures report about one run, or about several runs side by side.

    `curves` come first on pages and in pictures. For one run, every medium shows `opening` first and `notices` next to the score. `lines`
    appear below the score where there is room for a line each, `tables` in terminals and the like, and `chapters` on pages. `closing`
    sentences end a terminal's output.

    For runs side by side, `verdicts` come first and name the best. The `first` tables come before the scores if they decide the ranking,
    and otherwise right below the scores. The `leading` tables follow. `tables` come below the tables of scenarios and pairs. `leading_data`
    and `data` are the counterparts for programs.
    """

    opening: Sequence[Sentence] = ()
    notices: Sequence[Sentence] = ()
    lines: Sequence[Sentence] = ()
    chapters: Sequence[Chapter] = ()
    closing: Sequence[Sentence] = ()
    verdicts: Sequence[Sentence] = ()
    first: Sequence[Table] = ()
    leading: Sequence[Table] = ()
    tables: Sequence[Table] = ()
    leading_data: Sequence[Data] = ()
    data: Sequence[Data] = ()
    curves: Sequence[Curve] = ()


def merge_documents(documents: Sequence[Document]) -> Document:
    """Return one document with the content of all of these, in order."""
    return Document(*(tuple(each for part in parts for each in part) for parts in zip(*documents, strict=True)))
