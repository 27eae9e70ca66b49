"""Real local models with different memories: the sweep that plays the suites, and the tables of docs/reference/results.md.

    python -m scripts.results sweep --model SmolLM2-135M=local --locomo locomo10.json >results.yaml
    longspan sweep results.yaml --jobs 8
    python -m scripts.results tables runs/results

Finished runs are kept, so the first two commands can be repeated after an interruption, or with another model.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import yaml

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.suite.agent_spec import AgentSpec

SEEDS: Final = [0, 1, 2]
AGENTS: Final = {
    "the model alone": "{model}?{options}",
    "full": "memory/full?answerer={model}&{answerer}",
    "recent": "memory/recent?tokens=1k&answerer={model}&{answerer}",
    "BM25": "memory/bm25?answerer={model}&k=10&{answerer}",
    "MiniLM": "memory/chroma?embedder=local&answerer={model}&k=10&{answerer}",
    "BM25 and MiniLM": "memory/python:hybrid_memory:Hybrid?answerer={model}&k=10&{answerer}",
    "`ltm`": "ltm/{model}?embedder=local&context=4k&{options}",
}
"""The agents of the tables. All memories have the same answerer and retrieve the same number of memories."""

PARTS: Final[dict[str, dict[str, Any]]] = {
    "`ltm` at 2k, woven": {"suites": ["ltm"], "spans": ["2k"]},
    "`memory` at 2k": {"suites": ["memory"], "spans": ["2k"]},
    "LoCoMo": {"suites": ["locomo"], "tests": 3, "set": ["locomo.questions=50"]},
    "`ltm` at 2k, isolated": {"suites": ["ltm"], "spans": ["2k"], "isolated": True},
    "`ltm` at 8k, woven": {"suites": ["ltm"], "spans": ["8k"]},
    "`ltm` at 8k, isolated": {"suites": ["ltm"], "spans": ["8k"], "isolated": True},
}
"""The parts of the tables. The most informative come first, so that an interrupted sweep has those."""

LONG: Final = {"suites": ["ltm"], "spans": ["32k"], "seeds": [0]}
"""Played once, by the first model with the first memory that searches, because a longer span takes hours on a CPU."""


class Key(NamedTuple):
    """A cell of the tables."""

    part: str
    agent: str
    model: str


def spec(agent: str, model: str, options: Mapping[str, str]) -> str:
    """Return an agent's spec with a model and the model's options."""
    own = "&".join(f"{name}={value}" for name, value in options.items())
    answerer = "&".join(f"answerer.{name}={value}" for name, value in options.items())
    return AGENTS[agent].format(model=model, options=own, answerer=answerer).rstrip("?&")


def sweep(models: Mapping[str, str], options: Mapping[str, str], locomo: str | None) -> dict[str, Any]:
    """Return the sweep of all parts, agents and models. Without LoCoMo's file, its suite is omitted, since made-up data is not LoCoMo."""
    first, *_ = models.values()
    runs: list[dict[str, Any]] = [{**LONG, "agents": [spec("BM25", first, options)]}]
    for part, settings in PARTS.items():
        if part == "LoCoMo" and locomo is None:
            continue
        data = {"data": [f"locomo={locomo}"], "seeds": [0]} if part == "LoCoMo" else {}
        agents = [spec(agent, model, options) for model in models.values() for agent in AGENTS]
        runs.append({**settings, **data, "agents": agents})
    return {"seeds": SEEDS, "runs": runs}


def played(folder: Path) -> Iterator[tuple[RunFolder, Result]]:
    """Yield the finished runs of a folder with their results."""
    for path in sorted(folder.glob("*/result.json")):
        run = RunFolder(path.parent)
        result = read_result(run)
        if not result.interrupted:
            yield run, result


def key_of(run: RunFolder, models: Mapping[str, str], options: Mapping[str, str]) -> Key | None:
    """Return a run's cell; None for a run of another sweep."""
    manifest = run.manifest
    mine = AgentSpec.parse(manifest.agent)
    for part, settings in PARTS.items():
        same_span = settings.get("spans", [f"{manifest.span // 1000}k"]) == [f"{manifest.span // 1000}k"]
        if settings["suites"] == [manifest.suite.name] and same_span and settings.get("isolated", False) == manifest.isolated:
            for agent in AGENTS:
                for name, model in models.items():
                    if AgentSpec.parse(spec(agent, model, options)) == mine:
                        return Key(part, agent, name)
    return None


def minutes(run: RunFolder) -> float:
    """Return the minutes that a run's agent took for its replies."""
    events = (event for conversation in run.manifest.conversations for event in run.events(conversation))
    return fsum((event.measured or {}).get("latency_s", 0.0) for event in events) / 60


def tables(folder: Path, models: Mapping[str, str], options: Mapping[str, str]) -> str:
    """Return the tables in Markdown: for each part, agents in rows and the models' figures in columns."""
    cells: defaultdict[Key, list[tuple[Result, float]]] = defaultdict(list)
    for run, result in played(folder):
        if (key := key_of(run, models, options)) is not None:
            cells[key].append((result, minutes(run)))
    return "\n\n".join(_part(part, cells, list(models)) for part in PARTS if any(key.part == part for key in cells))


def _part(part: str, cells: Mapping[Key, Sequence[tuple[Result, float]]], models: Sequence[str]) -> str:
    of_part = [result for key, each in cells.items() if key.part == part for result, _ in each]
    maximum, chance = of_part[0].max_score, fmean(result.chance for result in of_part)
    lines = [f"### {part}", "", f"Maximum score {maximum}; guessing scores {chance:.2f}.", ""]
    heads = ["memory", *(f"{model}: {head}" for model in models for head in ("score", "runs", "found", "minutes"))]
    lines += [_row(heads), _row(["---", *(["---:"] * (len(heads) - 1))])]
    for agent in AGENTS:
        row = [agent]
        for model in models:
            row += _figures(cells.get(Key(part, agent, model), []))
        if any(row[1:]):
            lines.append(_row(row))
    return "\n".join(lines)


def _figures(played: Sequence[tuple[Result, float]]) -> list[str]:
    if not played:
        return ["", "", "", ""]
    scores = [result.score_bounds[0] for result, _ in played]
    spread = f" ({min(scores):.2f} to {max(scores):.2f})" if len(scores) > 1 else ""
    found = [result.metrics["evidence_recall@10"] for result, _ in played if "evidence_recall@10" in result.metrics]
    times = fmean(time for _, time in played)
    return [f"{fmean(scores):.2f}{spread}", f"{len(scores)}", f"{fmean(found):.2f}" if found else "", f"{times:.1f}"]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


def main() -> None:
    """Print the sweep, or the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sweep", "tables"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/results"), help="the sweep's folder, for tables")
    parser.add_argument("--model", type=_pair, action="append", required=True, help="NAME=SPEC: a model and its name in the tables")
    parser.add_argument("--option", type=_pair, action="append", default=[], help="NAME=VALUE: an option of all models")
    parser.add_argument("--locomo", help="locomo10.json; without it, LoCoMo is left out")
    given = parser.parse_args()
    models, options = dict(given.model), dict(given.option)
    if given.what == "sweep":
        yaml.safe_dump(sweep(models, options, given.locomo), sys.stdout, sort_keys=False, width=200)
    else:
        print(tables(given.folder, models, options))


if __name__ == "__main__":
    main()
