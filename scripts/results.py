"""The runs in results/: adds finished ones, grades all again, and writes the tables and the figure that rest on them.

    python -m scripts.results                          # fails if a page or the figure differs from the runs
    python -m scripts.results --write
    python -m scripts.results --add FOLDER/windows     # copies a sweep's finished runs

results/NAME.yaml is a sweep, and results/NAME has its runs, without what longspan can write again.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import yaml
from scripts.panel import (
    Panel,
    count_minutes,
    guessed_share,
    make_agreement,
    make_reliability,
    make_scores,
    make_weaving,
    name_memory,
    render_table,
)

from longspan.simulator.base.files.packed import pack_journal
from longspan.simulator.filler.draws import join_words
from longspan.simulator.journal.run_folder import INCIDENTS, RESULT
from longspan.simulator.journal.transcript import PlayedTurn
from longspan.simulator.journal.turns_shown import turns_of
from longspan.simulator.pages.report.figures import INK, render_figure
from longspan.simulator.pages.report.styles import COLOURS
from longspan.simulator.results.graded_runs import GradedRun, load_runs
from longspan.simulator.results.measures.reach import place_rungs, pool_reach
from longspan.simulator.results.reach_result import Extent, Kind, ReachResult, Stage
from longspan.simulator.running.scoring import RunScorer
from longspan.simulator.subject.prompt_log import read_prompts
from longspan.simulator.suite.agent_spec import AgentSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "results"
PAGES: Final = (ROOT / "docs" / "reference" / "validity.md", ROOT / "docs" / "reference" / "results.md")
PICTURE: Final = ROOT / "docs" / "pictures" / "validity.svg"

TABLE: Final = re.compile(
    r"<!-- (?P<kind>known|scores|agreement|reliability|weaving): (?P<sweeps>[\w =;,-]+) -->\n.*?<!-- end -->", re.DOTALL
)
"""The place of a table in a page: its kind, and the sweeps that it shows. A column of a panel is `sweep` or `head = sweep ...`."""

HOUR: Final = 3600
SHARES: Final = ("share", "far")
LIMITS: Final[Mapping[Kind, str]] = {"token window": "tokens", "time window": "hours", "message window": "messages", "decay": ""}
"""The unit of each kind of limit."""

WHATS: Final = {"reach": "reach", "drop": "drop", "far": "recall beyond it", "share": "share"}
WORDS: Final = {"tokens": "{:,.0f} tokens", "hours": "{:.0f} hours", "share": "{:.0%}"}


# ---- the truth


@final
class Truth(NamedTuple):
    """What a memory kept: a distance in `tokens` or `hours`, or a `share` of the facts.

    For a window, `low` and `high` are the ends of the range in which it varies (see `find_window`).
    """

    unit: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        text = WORDS[self.unit]
        return text.format(self.value) + (f" ({self.low:,.0f} to {self.high:,.0f})" if self.low < self.high else "")


@final
class Check(NamedTuple):
    """A reported interval and the truth. `extent` is None if nothing was reported."""

    stage: Stage
    what: str
    extent: Extent | None
    truth: float

    @property
    def contains(self) -> bool:
        """Whether the interval contains the truth, with shares in whole percent, as reports print them.

        Otherwise no interval would contain a share of exactly 0. A high end of None lies beyond the furthest question.
        """
        if self.extent is None:
            return False
        low, high = self.extent.low or 0.0, self.extent.high
        if self.what in SHARES:
            low, high = round(low, 2), round(high or 0.0, 2)
        return low <= self.truth and (high is None or self.truth <= high)


def find_truths(runs: Sequence[GradedRun]) -> list[Truth]:
    """Return what a memory with known losses kept in some of its runs. Empty for a memory that lost nothing, or has no known losses."""
    options = AgentSpec.parse(runs[0].manifest.agent).options
    if "drop" in options:
        kept = round(1 - float(options["drop"]), 2)
        return [Truth("share", kept, kept, kept)]
    facts = [each for run in runs for each in place_rungs(run.result.tests)]
    if "hours" in options:
        hours = float(options["hours"])
        return [Truth("hours", hours, hours, hours)]
    placed = [each for run in runs for each in place_statements(run)]
    if all(each.kept for each in placed):
        return []
    return [find_window([Statement(each.tokens, bool(each.found)) for each in facts], placed)]


@final
class Statement(NamedTuple):
    """A statement at the time of a later question: its distance in tokens, and whether it was in the question's prompt."""

    distance: int
    kept: bool


def place_statements(run: GradedRun) -> Iterator[Statement]:
    """Yield each statement before each question about a plain fact. Yield none for a memory without a window, which searches instead."""
    turns = {turn.number: turn for turn in turns_of(run.folder, "main")}
    numbers = {turn.message.turn_id: number for number, turn in turns.items()}
    for placed in place_rungs(run.result.tests):
        question = turns[placed.needle.question_turn]
        trace = _trace(question)
        if trace.get("read"):
            return
        since = trace.get("recent", {}).get("since")
        oldest = question.number if since is None else numbers[since]
        for number, turn in turns.items():
            if turn.message.needle and number < question.number:
                yield Statement(_distance(turn, question), number >= oldest)


def find_window(facts: Sequence[Statement], placed: Sequence[Statement]) -> Truth:
    """Return the distance that best separates the facts in the prompts of their questions from the others.

    A window has no fixed length in tokens of the conversation, since dates and the model's template add to each message. `low` is the
    nearest of all statements `placed` that was not in a prompt, and `high` the furthest that was.
    """
    edges = [fmean(pair) for pair in pairwise(sorted({each.distance for each in facts}))]
    wrong = {edge: sum((each.distance < edge) is not each.kept for each in facts) for edge in edges}
    edge = median(edge for edge in edges if wrong[edge] == min(wrong.values()))
    lost, kept = ([each.distance for each in placed if each.kept is which] for which in (False, True))
    return Truth("tokens", edge, min(edge, *lost), max(edge, *kept))


def _trace(turn: PlayedTurn) -> Mapping[str, Any]:
    return (turn.reply and turn.reply.trace) or {}


def _distance(stated: PlayedTurn, question: PlayedTurn) -> int:
    return question.message.start - stated.message.start - stated.message.tokens


def compare(stages: Sequence[ReachResult], truths: Sequence[Truth]) -> Iterator[Check]:
    """Yield the intervals that some truths are about.

    A share is compared where nothing but the memory decides: not in answers, which the model may also get wrong.
    """
    for each in stages:
        if each.stage == "stored" and not any(truth.unit == "share" for truth in truths):
            continue
        for truth in truths:
            if truth.unit == "share":
                if each.stage != "answered":
                    yield Check(each.stage, "share", each.share, truth.value)
                continue
            scale = HOUR if truth.unit == "hours" else 1
            for what, found in (("reach", each.reach), ("drop", each.drop)):
                extent = found and found.get("seconds" if truth.unit == "hours" else "tokens")
                yield Check(each.stage, what, extent, truth.value * scale)
            yield Check(each.stage, "far", each.far, 0.0)


# ---- the runs


def add_runs(sweep: Path) -> Iterator[str]:
    """Copy a sweep's finished runs to results/, unless they are there, and yield their names.

    Raises ValueError if a prompt that was sent contradicts the run's traces.
    """
    for run in _load(sweep):
        goal = RESULTS / sweep.name / run.name
        if goal.exists() or run.result.interrupted:
            continue
        if run.manifest.keep_prompts:
            check_prompts(run)
        for id in run.manifest.conversations:
            journal = run.folder.journal(id)
            copy = goal / journal.relative_to(run.folder.path)
            copy.parent.mkdir(parents=True)
            shutil.copyfile(journal, copy)
            pack_journal(copy)
        for name in ("manifest.json", RESULT, INCIDENTS):
            if (run.folder.path / name).exists():
                shutil.copyfile(run.folder.path / name, goal / name)
        yield f"{sweep.name}/{run.name}"


def check_prompts(run: GradedRun) -> None:
    """Raise ValueError if a fact was in the prompt of its question although the traces say that it was not, or the other way round."""
    texts = {turn.number: turn.message.text for turn in turns_of(run.folder, "main")}
    prompts = {prompt.turn: prompt.messages for prompt in read_prompts(run.folder.prompts("main")) if prompt.purpose == "reply"}
    for placed in place_rungs(run.result.tests):
        stated, question = placed.needle.needle_turn, placed.needle.question_turn
        if any(texts[stated] in message.text for message in prompts[question]) is not placed.found:
            raise ValueError(f"{run.folder.path}: turn {question}: the prompt and the trace disagree about turn {stated}")


def _load(folder: Path) -> list[GradedRun]:
    return sorted(load_runs([folder])[0], key=lambda run: (run.manifest.agent, run.manifest.seed)) if folder.exists() else []


def regrade(runs: Iterable[GradedRun]) -> list[str]:
    """Grade runs again, and return the names of those whose results differ."""
    graded = [(run, RunScorer(run.folder).grade()) for run in runs]
    return [run.name for run, again in graded if (again.tests, again.reach) != (run.result.tests, run.result.reach)]


# ---- the tables


@final
class Row(NamedTuple):
    """The runs of one agent at one span, with what is known about its memory, the intervals that were reported, and the kinds of limit."""

    runs: Sequence[GradedRun]
    truths: Sequence[Truth]
    checks: Sequence[Check]
    kinds: Sequence[Kind]

    @classmethod
    def of(cls, runs: Sequence[GradedRun]) -> Row:
        """Compare each run that lost a fact, and all together if there are several."""
        truths = find_truths(runs)
        shares = any(truth.unit == "share" for truth in truths)
        losing = [run for run in runs if shares or any(each.found is False for each in place_rungs(run.result.tests))]
        reports = [run.result.reach for run in losing] + [pool_reach(runs)] * (len(runs) > 1)
        kinds = [stage.kind for stages in reports for stage in stages if truths and stage.stage != "stored" and stage.kind in LIMITS]
        return cls(runs, truths, [check for stages in reports for check in compare(stages, truths)], kinds)

    @property
    def right(self) -> int:
        """The number of kinds that are right. A memory that drops a share has no limit."""
        return sum(LIMITS[kind] == truth.unit for kind in self.kinds for truth in self.truths)

    @property
    def cells(self) -> list[str]:
        """The cells of a table: the memory, what it keeps, the report, the intervals that are right, the score and what was played."""
        (pooled,) = pool_reach(self.runs)
        contained = f"{sum(check.contains for check in self.checks)} of {sum(check.extent is not None for check in self.checks)}"
        known = ", ".join(map(str, self.truths)) or "everything"
        results = [run.result for run in self.runs]
        scores = [result.score / result.max_score for result in results if result.score is not None]
        found = [result.metrics[name] for result in results if (name := max(filter(RECALL.match, result.metrics), default=""))]
        return [
            name_memory(self.runs[0].manifest.agent),
            known,
            pooled.sentence,
            contained if self.checks else "–",
            _mean(scores),
            f"{guessed_share(self.runs):.0%}",
            _mean(found),
            f"{len(results)}",
            f"{fmean(map(count_minutes, self.runs)):.1f}",
        ]


def _mean(shares: Sequence[float]) -> str:
    """Return the mean of some runs' shares, with the lowest and the highest."""
    if not shares:
        return "–"
    low, high = (f"{end:.0%}" for end in (min(shares), max(shares)))
    return f"{fmean(shares):.0%}" + (f" ({low} to {high})" if low != high else "")


RECALL: Final = re.compile(r"evidence_recall@1")
"""The metric with the evidence among the first 10 memories."""

HEADS: Final = ["memory", "what it keeps", "report", "intervals", "score", "guessing", "found", "runs", "minutes"]


def read_rows(sweeps: Iterable[str]) -> list[Row]:
    """Return the rows of some sweeps, in the order of their agents."""
    return [Row.of(runs) for sweep in sweeps for runs in _group([sweep]).values()]


def _group(sweeps: Iterable[str]) -> dict[str, list[GradedRun]]:
    """Return the runs of some sweeps by agent, in the order of the sweeps and their agents."""
    groups: dict[str, list[GradedRun]] = {}
    for sweep in sweeps:
        order = [str(agent) for agent in yaml.safe_load((RESULTS / f"{sweep}.yaml").read_text("utf-8"))["agents"]]
        for run in sorted(_load(RESULTS / sweep), key=lambda run: order.index(run.manifest.agent)):
            groups.setdefault(run.manifest.agent, []).append(run)
    return groups


def make_table(sweeps: Sequence[str]) -> str:
    """Return the table of some sweeps in Markdown, with the number of intervals that contain the truth below."""
    rows = read_rows(sweeps)
    text = render_table(HEADS, [row.cells for row in rows])
    checks = [check for row in rows for check in row.checks]
    reported = [check for check in checks if check.extent is not None]
    if not reported:
        return text
    named = {check.what: [each for each in reported if each.what == check.what] for check in reported}
    parts = join_words([f"{sum(each.contains for each in those)} of {len(those)} for the {WHATS[what]}" for what, those in named.items()])
    contained, kinds = sum(check.contains for check in reported), sum(len(row.kinds) for row in rows)
    text += f"\nOf {len(reported)} intervals, {contained} contain the truth: {parts}. {len(checks) - len(reported)} were not reported. "
    return f"{text}Of {kinds} kinds of limit that were named, {sum(row.right for row in rows)} are right.\n"


TICKS: Final = (50, 100, 200, 500, 1000, 2000)

LOOKS: Final[dict[Stage, tuple[str, str]]] = {"answered": (COLOURS[0], "o"), "found": (COLOURS[1], "s"), "stored": (COLOURS[2], "D")}
"""The colour and the marker of each stage."""

APART: Final = 0.03
"""The distance between the intervals of one memory, as a share of the known value."""

NEAREST: Final = 1.0
"""A low end of 0 on a logarithmic axis."""


def draw(rows: Sequence[Row], figure: Figure) -> None:
    """Plot what each run reported against what its memory kept: distances in tokens, and shares of the facts."""
    from matplotlib.lines import Line2D

    figure.set_size_inches(8.5, 4)
    distances, shares = figure.subplots(1, 2)
    distances.set(xscale="log", yscale="log", xlim=(90, 1100), ylim=(40, 2500), xticks=TICKS[1:-1], yticks=TICKS)
    for axis in (distances.xaxis, distances.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.set_minor_formatter(lambda value, _: "")
    shares.set(xlim=(0, 1), ylim=(0, 1.02))
    for axes, unit, what, label in ((distances, "tokens", "reach", "tokens back"), (shares, "share", "share", "share of the facts")):
        axes.set(xlabel=f"known: {label}", ylabel=f"reported: {label}")
        axes.axline((0.1, 0.1), (1, 1), color=INK, dashes=(4, 3), linewidth=0.8)
        for row in rows:
            for truth in row.truths:
                if truth.unit == unit:
                    _plot(axes, truth.value, [check for check in row.checks if check.what == what and check.extent is not None])
    figure.subplots_adjust(bottom=0.22, wspace=0.28)
    lines = [Line2D([], [], color=colour, marker=marker, linestyle="") for colour, marker in LOOKS.values()]
    figure.legend(lines, [*LOOKS], loc="lower center", ncols=len(LOOKS))


def _plot(axes: Axes, truth: float, checks: Sequence[Check]) -> None:
    for number, check in enumerate(sorted(checks, key=lambda check: check.stage)):
        colour, marker = LOOKS[check.stage]
        extent = check.extent
        if extent is not None and extent.value is not None:
            at = truth * (1 + APART * (number - (len(checks) - 1) / 2))
            top = extent.value if extent.high is None else extent.high
            axes.plot([at, at], [extent.low or (NEAREST if check.what == "reach" else 0), top], color=colour, linewidth=1)
            axes.plot([at], [extent.value], color=colour, marker=marker, markersize=4)


def make_pages() -> dict[Path, bytes]:
    """Return the pages with their tables, and the figure."""
    pages = {page: page.read_text("utf-8") for page in PAGES}
    known = [
        name for text in pages.values() for found in TABLE.finditer(text) if found["kind"] == "known" for name in found["sweeps"].split()
    ]
    figure = render_figure(lambda drawn: draw(read_rows(known), drawn), "svg")
    made = {page: TABLE.sub(_fill, text).encode() for page, text in pages.items()}
    return {**made, PICTURE: figure}


def _fill(found: re.Match[str]) -> str:
    kind, sweeps = found["kind"], found["sweeps"]
    table = make_table(sweeps.split()) if kind == "known" else TABLES[kind](_read_panel(sweeps))
    return f"<!-- {kind}: {sweeps} -->\n\n{table}\n<!-- end -->"


TABLES: Final = {"scores": make_scores, "agreement": make_agreement, "reliability": make_reliability, "weaving": make_weaving}


def _read_panel(text: str) -> Panel:
    """Return the runs of each column."""
    columns = [column.partition("=")[::2] for column in text.split(";")]
    return {head.strip(): _group((names or head).split()) for head, names in columns}


def find_differences() -> list[str]:
    """Return what differs from the runs in results/: results that are graded again, pages and the figure."""
    wrong = [f"{name}: graded again, it differs" for sweep in sorted(RESULTS.glob("*/")) for name in regrade(_load(sweep))]
    return wrong + [f"{path.relative_to(ROOT)}: differs from the runs" for path, made in make_pages().items() if path.read_bytes() != made]


def main() -> int:
    """Add runs, or grade all runs again and compare or write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the pages and the figure")
    parser.add_argument("--add", type=Path, metavar="FOLDER", help="a sweep's folder, whose finished runs are copied")
    given = parser.parse_args()
    if given.add:
        print("\n".join(add_runs(given.add)))
        return 0
    if given.write:
        for path, content in make_pages().items():
            path.write_bytes(content)
    wrong = find_differences()
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
