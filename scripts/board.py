"""The board of results: a row for each agent in results/, with what its runs show and what their files record.

    python -m scripts.board                   # prints the board, and fails if a run is rejected
    python -m scripts.board results/windows   # only this sweep

Each run is played again from its journal, without its agent: the tests of its seed, event by event, and then the grades. A run is rejected
if anything differs. The introduction names what files cannot prove, such as the number of deleted runs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple, final

import trio
from scripts.panel import describe_score, render_table

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.journal.events import Reply
from longspan.simulator.journal.run_folder import INCIDENTS, JOURNAL, MANIFEST, RESULT
from longspan.simulator.results.graded_runs import Column, GradedRun, load_runs, without_ungraded
from longspan.simulator.results.measures.reach import pool_reach
from longspan.simulator.running.runner import replay_run
from longspan.simulator.running.sweeps.sweep import read_sweep
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "results"
FILES: Final = {MANIFEST, RESULT, INCIDENTS, JOURNAL, f"{JOURNAL}.gz"}
UNSAVED: Final = ("spending",)
"""What a result has from files that results/ does not keep."""

OUTSIDE: Final = ("python:", "runnable:", "exec:", "http:", "https:", "a2a:", "acp:", "mcp:")

INTRODUCTION: Final = """\
# Board

The runs in [results](README.md), by sweep. When this page was made, each run was played again from its journal: the messages are those of
its seed, the replies are recorded, and the grades are the same. [How to add a run](../CONTRIBUTING.md#add-results-to-the-board).

- **Runs** counts all runs of the agent in the folder. All count toward the score, including several of one seed.
- **Resumed** counts failures of the agent, after which a run was continued, and turns that may have been sent twice.
- **Created** is when the first and the last run began, in UTC. A run that was deleted and played again leaves no other trace.
- **Hash** is the beginning of a SHA-256 of the runs' files.
- Notes below an agent name missing seeds, repeated seeds, code that is not part of longspan, and agents that
  were given the expected replies or answer exactly like that.

The files do not prove who wrote the replies. To check a row, play its sweep again and add the runs.
"""


@final
class Rejected(NamedTuple):
    """A run that is not on the board, and why."""

    path: Path
    why: str


@final
class Row(NamedTuple):
    """The runs of one agent in a column, and the seeds that its sweep plays."""

    agent: str
    column: Column
    runs: Sequence[GradedRun]
    planned: Sequence[int]

    @property
    def cells(self) -> list[str]:
        """The row's cells, in the order of HEAD."""
        seeds = ", ".join(str(run.manifest.seed) for run in self.runs)
        resumed = sum(map(count_resumptions, self.runs))
        reach = [stage.sentence for stage in pool_reach(self.runs)]
        return [
            "<br>".join([f"`{self.agent}` at {self.column}", *self.notes]),
            "<br>".join([*([f"**{self.score}**"] if self.score else []), *reach]),
            f"{len(self.runs)} (seeds {seeds})<br>{resumed} resumed",
            f"{self.created}<br>`{hash_files(self.runs)}`",
        ]

    @property
    def score(self) -> str:
        """The mean score as a share of full marks, with its 95% interval. Empty without scores."""
        return describe_score(without_ungraded_runs(self.runs))

    @property
    def created(self) -> str:
        """When the first and the last run were created, in UTC."""
        times = sorted(run.manifest.created for run in self.runs if run.manifest.created)
        ends = [f"{time:%Y-%m-%d %H:%M}" for time in times]
        return " to ".join(dict.fromkeys([ends[0], ends[-1]])) if ends else "unknown"

    @property
    def notes(self) -> Iterator[str]:
        """What a reader should know."""
        played = Counter(run.manifest.seed for run in self.runs)
        if missing := sorted({*self.planned, *range(max(played))} - played.keys()):
            yield f"seeds without a run: {', '.join(map(str, missing))}"
        for seed, times in sorted(played.items()):
            if times > 1:
                yield f"seed {seed} was played {times} times"
        if AgentSpec.parse(self.agent).kind == "oracle":
            yield "**is given the expected replies**"
        elif known := [str(run.manifest.seed) for run in self.runs if knows_answers(run)]:
            yield f"**answers as expected, word for word** (seeds {', '.join(known)})"
        if any(kind in self.agent for kind in OUTSIDE):
            commits = {run.manifest.agent_commit or "unknown" for run in self.runs}
            yield f"code of its own, commit {', '.join(sorted(commit[:12] + commit[40:] for commit in commits))}"


HEAD: Final = ("agent", "score and reach", "runs", "created, hash")


def without_ungraded_runs(runs: Sequence[GradedRun]) -> Sequence[GradedRun]:
    """Return the runs with a graded test. Empty without any."""
    with suppress(LongspanError):
        return without_ungraded(runs)[0]
    return []


def count_resumptions(run: GradedRun) -> int:
    """Count the agent's failures, and the turns that may have been sent twice."""
    events = (event for id in run.manifest.conversations for event in run.folder.events(id))
    return len(run.folder.incidents()) + sum(isinstance(event, Reply) and bool(event.repeated) for event in events)


def knows_answers(run: GradedRun) -> bool:
    """Whether the answers to all scripted questions are the expected ones, word for word, as those of `oracle` are."""
    tests = [test for transcript in run.folder.transcripts().values() for test in transcript.tests.values()]
    expected = {line["text"]: line["ideal"] for test in tests for line in test.definition.lines if line["asks"]}
    answers = [(each.reply, expected[each.text]) for test in tests for each in test.exchanges if each.text in expected and not each.told]
    return bool(answers) and all(reply == ideal for reply, ideal in answers)


def hash_files(runs: Sequence[GradedRun]) -> str:
    """Return the first 12 hexadecimal digits of a SHA-256 of the runs' files, by name."""
    paths = sorted(path for run in runs for path in run.folder.path.rglob("*") if path.is_file())
    digests = [f"{path.relative_to(path.parents[1])} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in paths]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:12]


def find_fault(run: GradedRun, plans: Sequence[RunSettings]) -> str | None:
    """Return why a run is rejected, or None."""
    manifest = run.manifest
    if others := sorted(
        path.name for path in run.folder.path.rglob("*") if (path.is_symlink() or not path.is_dir()) and path.name not in FILES
    ):
        return f"it has {others[0]}: only {', '.join(sorted(FILES))} are compared with the seed"
    if manifest.judge is not None:
        return f"it was graded by {manifest.judge}, whose answers cannot be repeated; grade it with rules alone"
    if manifest.imported is not None or manifest.parent is not None:
        return "it was imported" if manifest.parent is None else f"it plays only tests that had failed in {manifest.parent}"
    if not any(is_planned(manifest, plan) for plan in plans):
        return "no sweep of this name plays it: its settings, its seed or its agent differ"
    try:
        again = trio.run(replay_run, run.folder)
    except LongspanError as error:
        return str(error)
    differing = [name for name in type(again).model_fields if name not in UNSAVED and getattr(again, name) != getattr(run.result, name)]
    return f"played again from its journal, it differs in {', '.join(differing)}" if differing else None


def is_planned(manifest: Manifest, plan: RunSettings) -> bool:
    """Whether a run has the settings of a plan. Titles and the time at which the conversation begins may differ."""
    plan = plan.model_copy(update={"suite": plan.suite.with_run_settings(plan.tokenizer, plan.span)})
    fields = set(RunSettings.model_fields) - {"starts_at"}
    given, planned = (each.model_dump(include=fields, exclude={"suite": {"title"}}) for each in (manifest, plan))
    return given == planned


def find_sweeps(folder: Path) -> list[Path]:
    """Return the sweeps whose runs are in results/NAME: NAME.yaml, and NAME-*.yaml for other spans."""
    return [folder.with_name(f"{folder.name}.yaml"), *sorted(folder.parent.glob(f"{folder.name}-*.yaml"))]


def read_rows(folder: Path) -> tuple[list[Row], list[Rejected]]:
    """Read the runs in results/NAME: the rows, and the rejected runs. Without a valid sweep, the folder itself is rejected."""
    try:
        plans = [plan for path in find_sweeps(folder) for grid in read_sweep(path)[0] for plan in grid.runs()]
        runs, unusable = load_runs([folder])
    except LongspanError as error:
        return [], [Rejected(folder, str(error))]
    rejected = [Rejected(path, why) for path, why in unusable]
    faults = {run.folder.path: find_fault(run, plans) for run in runs}
    rejected += [Rejected(path, why) for path, why in faults.items() if why is not None]
    kept = sorted((run for run in runs if faults[run.folder.path] is None), key=_key)
    rows = []
    for (agent, _, column), group in groupby(kept, _key):
        planned = [plan.seed for plan in plans if (plan.agent, plan.span) == (agent, column.span)]
        rows.append(Row(agent, column, list(group), planned))
    return rows, rejected


def _key(run: GradedRun) -> tuple[str, str, Column]:
    return run.manifest.agent, run.manifest.suite.name, run.column


def make_board(folders: Sequence[Path] = ()) -> tuple[str, list[Rejected]]:
    """Return the board of some sweeps, or of all, as Markdown, and the rejected runs."""
    parts, rejected = [INTRODUCTION], []
    for folder in folders or sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        rows, faults = read_rows(folder)
        rejected += faults
        table = render_table(HEAD, ([cell.replace("|", "&#124;") for cell in row.cells] for row in rows))
        commands = [f"longspan sweep results/{path.name}" for path in find_sweeps(folder)]
        parts += [f"## {folder.name}\n", "```sh", *commands, "```\n", table]
    return "\n".join(parts), rejected


def main() -> int:
    """Print the board and the rejected runs. Return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="a sweep's folder in results/")
    board, rejected = make_board(parser.parse_args().folders)
    print(board)
    for path, why in rejected:
        print(f"rejected: {path.parent.name}/{path.name}: {why}", file=sys.stderr)
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main())
