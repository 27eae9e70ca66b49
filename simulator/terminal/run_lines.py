"""Lists the runs of a folder, one per line. Values that all runs share are printed once above; unusual settings are explained below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, final

from rich.cells import cell_len

from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.terminal import as_line
from longspan.simulator.terminal.compact import assign_letters

__all__ = ["RunLine", "elide_names", "run_lines"]

GAP: Final = 2
"""The number of characters between two columns."""

RIGHT: Final = ("score", "span", "seed", "cost", "age")
"""The right-aligned columns."""

UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))
"""The units of ages, with their lengths in seconds."""

LEAST: Final = 16
"""The fewest columns that keep a shortened name recognisable."""

OLD: Final = 30
"""The age in days of a run whose line has a date instead of an age."""


@final
class RunLine(NamedTuple):
    """A run in a list. `score` is its score or its state, and `plays` its suite. `changed` lists settings that differ from the defaults.

    `why` is the reason why the run cannot be read, or "".
    """

    name: str
    score: str
    plays: str = ""
    span: str = ""
    agent: str = ""
    seed: str = ""
    changed: Sequence[str] = ()
    cost: str = ""
    created: datetime | None = None
    why: str = ""


def run_lines(runs: Sequence[RunLine], width: int | None, now: datetime) -> Iterator[str]:
    """Yield the lines of the list: values that all runs share, a heading, a line for each run with its name last, and footnotes.

    `width` is the terminal's width in columns. With None, for programs, everything is written in full. Only names are ever cut, in the
    middle, and only if they stay distinct.
    """
    readable = [run for run in runs if not run.why]
    agents = list(dict.fromkeys(run.agent for run in readable))
    names = short_names(agents) if width is not None else None
    called = {agent: as_line(agent) for agent in agents} if names is None else dict(names.names)
    by_letter = assign_letters(list(called.values())) if width is not None and len(called) > 1 else {}
    said = [] if names is None else [*names.legend(by_letter), names.describe_omissions(by_letter)]
    called = {agent: by_letter.get(name, name) for agent, name in called.items()}
    always = [each for each in readable[0].changed if all(each in run.changed for run in readable)] if readable else []
    marks: dict[str, str] = {}

    def mark(run: RunLine) -> str:
        text = run.why or ", ".join(each for each in run.changed if width is None or each not in always)
        return text if width is None else marks.setdefault(text, f"*{len(marks) + 1}") if text else ""

    cells: dict[str, Callable[[RunLine], str]] = {
        "score": lambda run: run.score,
        "agent": lambda run: called.get(run.agent, ""),
        "plays": lambda run: run.plays,
        "span": lambda run: run.span,
        "seed": lambda run: run.seed,
        "cost": lambda run: run.cost,
        "age" if width is not None else "date": lambda run: _age(run.created, now) if width is not None else _date(run.created),
        "note" if width is not None else "changed": mark,
    }
    columns = {head: [as_line(cell(run)) for run in runs] for head, cell in cells.items()}
    alike = [head for head in ("agent", "plays", "span", "seed") if len({as_line(cells[head](run)) for run in readable}) == 1]
    same = alike if width is not None and len(readable) > 1 else []
    common = {head: as_line(cells[head](readable[0])) for head in same}
    once = [text if head == "plays" else f"{head} {text}" for head, text in common.items() if text]
    if width is not None and (once or always):
        yield f"All runs: {', '.join([*once, *map(as_line, always)])}."
    yield from filter(None, said)
    shown = {head: column for head, column in columns.items() if head not in same and any(column)}
    widths = {head: max(map(cell_len, (head, *column))) for head, column in shown.items()}
    room = None if width is None else width - sum(widths.values()) - GAP * len(widths)
    plain = [as_line(run.name) for run in runs]
    last = plain if room is None else elide_names(plain, room)
    yield "  ".join([*(_pad(head, widths[head], head) for head in shown), "run"])
    for number, name in enumerate(last):
        yield "  ".join([*(_pad(column[number], widths[head], head) for head, column in shown.items()), name])
    for text, sign in marks.items():
        yield f"{sign}  {as_line(text)}"


def elide_names(names: Sequence[str], width: int) -> list[str]:
    """Return names cut in the middle to `width` columns with an ellipsis. Return them unchanged if they would not stay distinct."""
    for tail in sorted(range(1, width - 1) if width >= LEAST else (), key=lambda size: abs(size - width // 2)):
        head = width - tail - 1
        found = [name if cell_len(name) <= width else f"{name[:head]}\N{HORIZONTAL ELLIPSIS}{name[-tail:]}" for name in names]
        if len(set(found)) == len(set(names)) and all(cell_len(name) <= width for name in found):
            return found
    return list(names)


def _pad(text: str, width: int, head: str) -> str:
    space = " " * (width - cell_len(text))
    return f"{space}{text}" if head in RIGHT else f"{text}{space}"


def _age(created: datetime | None, now: datetime) -> str:
    """Return the age of a run in its largest unit, or its date if it is old."""
    if created is None:
        return ""
    seconds = (now - created).total_seconds()
    if not 0 <= seconds < OLD * 86_400:
        return f"{created:%Y-%m-%d}"
    unit, size = next((each for each in UNITS if seconds >= each[1]), ("s", 1))
    return f"{seconds / size:.0f} {unit}"


def _date(created: datetime | None) -> str:
    return "" if created is None else f"{created.astimezone(UTC):%Y-%m-%d %H:%M}"
