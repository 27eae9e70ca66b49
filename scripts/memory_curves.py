"""Play the suite `memory` with memories around the reader by words, and draw their curves.

Prints the tables of docs/reference/memory-suite.md.

python -m scripts.memory_curves
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTurn
from longspan.simulator.journal.turns_shown import turns_of
from longspan.simulator.pages.report.figures import agent_lines, draw_legend, line_look, render_figure
from longspan.simulator.pages.report.styles import assign_styles
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.grid import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMORIES: Final = {
    "full": "full?",
    "recent": "recent?",
    "bm25, never forgets": "bm25?",
    "bm25, forgets": "bm25?forget=0.6&",
    "bm25, forgets much": "bm25?forget=0.3&",
}
PICTURE: Final = Path(__file__).parents[1] / "docs" / "pictures" / "memory-curves.svg"

SPANS: Final = (4_000, 8_000, 16_000, 32_000, 64_000)
SEEDS: Final = (0, 1, 2)
AFTER: Final = slice(1, 5)
"""Of a test's questions in `forget`, those after the request: the first comes before it, the last are about the neighbours."""


class Played(NamedTuple):
    """What a memory's runs at a span showed: the share of evidence found, the score, and of the scenario `forget` the shares of questions
    at which the fact was found before the request and after it, and the neighbours."""

    found: float
    score: float
    before: float
    after: float
    neighbours: float
    forget: float


def played(memory: str, span: int, folder: Path) -> Played:
    """Play a memory at a span, with each seed, unless the folder has its runs."""
    agent = f"memory/{MEMORIES[memory]}answerer=words"
    plans = [plan_run(each, folder) for each in Grid(suites=["memory"], spans=[span], agents=[agent], seeds=[*SEEDS]).runs()]
    trio.run(play_plans, [each for each in plans if not (folder / each.name).exists()])
    runs = [RunFolder(folder / each.name) for each in plans]
    results = [read_result(run) for run in runs]
    shown = [pair for run in runs for pair in _forgotten(run)]
    return Played(
        fmean(result.metrics["evidence_recall@20"] for result in results),
        fmean(result.score_bounds[0] for result in results),
        *(fmean(found for what, found in shown if what == wanted) for wanted in ("before", "after", "neighbours")),
        fmean(_score(result, "forget") for result in results),
    )


def _score(result: Result, scenario: str) -> float:
    return result.scenarios[scenario].score or 0.0


def _forgotten(run: RunFolder) -> Iterator[tuple[str, bool]]:
    """Yield for each question of the scenario `forget` what it asks about, and whether the memory found that."""
    numbers: dict[str, int] = {}
    asked: dict[str, list[PlayedTurn]] = {}
    for turn in turns_of(run, "main"):
        numbers[turn.message.turn_id] = turn.number
        if turn.reply is not None and turn.message.kind == "question" and str(turn.message.test).startswith("forget-"):
            asked.setdefault(str(turn.message.test), []).append(turn)
    for questions in asked.values():
        target = (questions[0].message.needs or [])[0]
        for place, turn in enumerate(questions):
            what = "before" if not place else "after" if turn in questions[AFTER] else "neighbours"
            needle = target if what != "neighbours" else (turn.message.needs or [])[0]
            yield what, _found((turn.reply and turn.reply.trace) or {}, needle, numbers)


def _found(trace: Mapping[str, Any], needle: int, numbers: Mapping[str, int]) -> bool:
    since = (trace.get("recent") or {}).get("since")
    read = [numbers[turn] for memory in trace.get("read", []) for turn in memory.get("turns", [])]
    return needle in read or (since is not None and numbers[since] <= needle)


def draw(figures: Mapping[str, Sequence[Played]], figure: Figure) -> None:
    """Plot the facts found against the span; for the scenario `forget`, plot neighbours found against how often the forgotten fact was
    still found.
    """
    looks = assign_styles(list(figures))
    figure.set_size_inches(9, 3.6)
    spans, forget = figure.subplots(1, 2)
    for memory, at_spans in figures.items():
        spans.plot(SPANS, [each.found for each in at_spans], linewidth=1.5, **line_look(looks[memory]))
        forget.plot(
            _mean(at_spans, "after"), _mean(at_spans, "neighbours"), **line_look(looks[memory]) | {"linestyle": "", "markersize": 9}
        )
    spans.set_xscale("log")
    spans.set_xticks(SPANS, [f"{span // 1000}k" for span in SPANS])
    spans.minorticks_off()
    spans.set_xlabel("span in tokens")
    spans.set_ylabel("evidence found")
    forget.set_xlim(-0.04, 1.04)
    forget.set_xlabel("still found after the request to forget")
    forget.set_ylabel("neighbours found")
    for axes in (spans, forget):
        axes.set_ylim(0, 1.06)
    figure.subplots_adjust(bottom=0.18, wspace=0.25)
    draw_legend(figure, figure, agent_lines(list(figures), looks), [])


def _mean(at_spans: Sequence[Played], name: str) -> float:
    return fmean(getattr(each, name) for each in at_spans)


def tables(figures: Mapping[str, Sequence[Played]]) -> Iterator[str]:
    """Yield the lines of the tables."""
    spans = [f"{span // 1000}k" for span in SPANS]
    yield f"| evidence found by | {' | '.join(spans)} | score |"
    yield f"| --- |{' --- |' * (len(spans) + 1)}"
    for memory, at_spans in figures.items():
        yield f"| {memory} | {' | '.join(f'{each.found:.2f}' for each in at_spans)} | {_mean(at_spans, 'score'):.2f} |"
    yield ""
    yield "| memory | known before | still found after the request | neighbours found | score of `forget` |"
    yield "| --- | --- | --- | --- | --- |"
    for memory, at_spans in figures.items():
        means = (_mean(at_spans, name) for name in ("before", "after", "neighbours", "forget"))
        yield f"| {memory} | {' | '.join(f'{mean:.2f}' for mean in means)} |"


def measure(folder: Path) -> dict[str, list[Played]]:
    """Play each memory at each span: minutes."""
    return {memory: [played(memory, span, folder) for span in SPANS] for memory in MEMORIES}


def picture(figures: Mapping[str, Sequence[Played]]) -> bytes:
    """Return the picture's file."""
    return render_figure(lambda figure: draw(figures, figure), "svg")


def main() -> None:
    """Write the picture, and print the tables."""
    with TemporaryDirectory() as folder:
        figures = measure(Path(folder))
    PICTURE.write_bytes(picture(figures))
    print("\n".join(tables(figures)))


if __name__ == "__main__":
    main()
