"""The result of a measure, for any medium: sentences, tables, and data for programs. The medium decides how they look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, final

from longspan.simulator.base.tables import Table

__all__ = ["MORE_RUNS", "Band", "Chapter", "Curve", "CurvePoint", "Data", "Document", "Section", "Sentence", "Tone", "merged"]

Tone = Literal["plain", "warning"]


MORE_RUNS: Final = "more runs"
"""The label of a sentence that asks for more runs. It is left out where contrasts were stated: they have the runs they were stated with."""


@final
class Sentence(NamedTuple):
    """A sentence. `label` is a word before it: in the margin of a line, in bold in a notice. A `warning` is coloured. `command` is what to
    type next, after the sentence."""

    text: str
    label: str = ""
    tone: Tone = "plain"
    command: str = ""


@final
class Section(NamedTuple):
    """A table under a heading, with a sentence that says what the table shows and one that explains how it was computed."""

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
    """A group of `questions` at a mean distance: the share that is right, with its 95% interval. `text` describes the group."""

    distance: float
    share: float
    low: float
    high: float
    questions: int
    text: str


@final
class Band(NamedTuple):
    """A distance with its 95% interval and a label. A `high` of None is further than any question."""

    low: float
    value: float
    high: float | None
    label: str


@final
class Curve(NamedTuple):
    """A share by distance. Media draw it on a logarithmic axis.

    It is that of an `agent`'s runs, which `note` describes, such as "at 8k, 2 runs". `brief` is the result in a few words, and `sentence`
    in one or two sentences. `start` is a group at no distance at all. `fitted` are the corners of a fitted line, as (distance, share).
    `levels` are named shares to compare with. `tables` belong beside the curve.
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
    """Rows for programs. `columns` gives the names and types of the columns (str, int, float or bool). A row may leave out all but the
    columns in `always`, which are null where they do not apply. A value may be a mapping."""

    name: str
    columns: Mapping[str, type]
    rows: Sequence[Mapping[str, Any]]
    always: Sequence[str] = ()


@final
class Document(NamedTuple):
    """Everything that measures say about one run, or about several runs side by side.

    `curves` lead pages and pictures, where there are some. For one run, `opening` comes first in every medium. `notices` stand next to its
    score in every medium, `lines` below it where a medium has room for a line each, `tables` where it has room for no more, and `chapters`
    where there is room for pages. `closing` sentences end the output of a terminal.

    For runs side by side, `verdicts` name the best, above everything else. The `first` tables come before the scores where they decide the
    ranking, and right below the scores elsewhere. Then come the `leading` tables, and `tables` below the tables of scenarios and pairs.
    `leading_data` and `data` are the same for programs.
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


def merged(documents: Sequence[Document]) -> Document:
    """Return one document that holds all of these, in their order."""
    return Document(*(tuple(each for part in parts for each in part) for parts in zip(*documents, strict=True)))
