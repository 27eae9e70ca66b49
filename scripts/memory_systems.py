"""Try memory systems, each in an environment of its own, and write their table in docs/guides/memory-systems.md.

    python -m scripts.memory_systems locomo10.json FOLDER [NAME ...]

For each system: creates its environment if it does not exist, runs `longspan check`, and plays LoCoMo's first conversation without an
answerer; then, with a local model as answerer, some of its questions and the suite `memory`. Finished environments, checks and runs are
kept, so the command can be repeated after an interruption. `--unanswered` skips the answerer.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import trio
from scripts.results import minutes

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.journal.run_folder import MANIFEST, RESULT, RunFolder
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight import checkup as checkup_module
from longspan.simulator.running.preflight.checkup import check_agent
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, pin_defaults
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

PAGE: Final = Path(__file__).parents[1] / "docs" / "guides" / "memory-systems.md"
BEGIN, END = "<!-- table: scripts/memory_systems.py -->", "<!-- end of table -->"
ANSWERED, END_ANSWERED = "<!-- answers: scripts/memory_systems.py -->", "<!-- end of answers -->"

ENTITIES: Final = '{"entities": [{"name": "{turn}", "entityType": "turn", "observations": ["{text}"]}]}'


class System(NamedTuple):
    """A memory.

    `spec` has placeholders for the environment's folder. `packages` are installed there with pip or, if `npm`, with npm.
    """

    name: str
    spec: str
    packages: tuple[str, ...] = ()
    npm: bool = False

    @property
    def package(self) -> str:
        """The package whose version is reported."""
        return self.packages[0].partition("[")[0]


def _python(name: str, *packages: str) -> System:
    return System(name, f"{name}?interpreter={{env}}/bin/python", packages)


SYSTEMS: Final = (
    System("full", "full"),
    System("bm25", "bm25"),
    System("chroma", "chroma"),
    System("langgraph", "langgraph"),
    System("langchain", "langchain"),
    _python("haystack", "haystack-ai"),
    _python("llamaindex", "llama-index-core"),
    _python("langmem", "langmem"),
    _python("txtai", "txtai"),
    _python("semantic-kernel", "semantic-kernel"),
    _python("mem0", "mem0ai"),
    _python("autogen", "autogen-core", "autogen-agentchat", "autogen-ext"),
    System(
        "server-memory",
        "mcp:env MEMORY_FILE_PATH={{folder}}/memory.json node {env}/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
        f"?add=create_entities&search=search_nodes&add_args={ENTITIES.replace('{', '{{').replace('}', '}}')}&unchecked=true",
        ("@modelcontextprotocol/server-memory",),
        npm=True,
    ),
    System("none", "none"),
)

OURS: Final = {"langgraph": "langgraph", "langchain": "langchain-core"}
"""The packages of systems that run in longspan's own environment."""

PATIENCE: Final = 600.0
"""The seconds that the checks may take. It is long because they run unattended, and the machine may be busy."""

EMBEDDER: Final = "local"
"""The embedder of all memories that take one, so that they differ in nothing else."""

ANSWERER: Final = "answerer=local&answerer.max_tokens=32&answerer.threads=1&k=5&context=2k"
"""The answerer of all memories, and the size of its prompt."""

QUESTIONS: Final = 50
"""The number of the conversation's questions that it answers. The seed draws the same questions for all memories."""

LENT: Final = ("langgraph", "langchain", "llamaindex", "langmem", "txtai", "semantic-kernel", "mem0", "chroma")
"""The memories that take an embedder."""


def main() -> None:
    """Try the named systems, or all, and write the tables of all systems played so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locomo", type=Path, help="locomo10.json, or the same compressed")
    parser.add_argument("folder", type=Path, help="the folder for environments and runs")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the systems to try")
    parser.add_argument("--unanswered", action="store_true", help="skip the runs with an answerer")
    given = parser.parse_args()
    checkup_module.DEADLINE = PATIENCE
    environments, runs = (given.folder.resolve() / name for name in ("environments", "runs"))
    runs.mkdir(parents=True, exist_ok=True)
    data = runs / "locomo-first.json"
    if not data.exists():
        opened = gzip.open if given.locomo.suffix == ".gz" else open
        with opened(given.locomo, "rt", encoding="utf-8") as file:
            data.write_text(json.dumps(json.load(file)[:1]), "utf-8")
    for system in SYSTEMS:
        if not given.names or system.name in given.names:
            _try(system, environments, runs, data, () if given.unanswered else tuple(ANSWERED_PARTS))
    _write(list(_rows(runs)))


def _try(system: System, environments: Path, runs: Path, data: Path, answered: Iterable[str]) -> None:
    """Create the environment, check the memory and play it, unless that has been done."""
    kept = runs / f"{system.name}.json"
    known: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    folder = environments / system.name
    try:
        if system.packages:
            install_system(system, folder)
        spec = f"memory/{system.spec.format(env=folder)}"
        spec += ("&" if "?" in spec else "?") + (f"embedder={EMBEDDER}&" if system.name in LENT else "")
        known["version"] = find_version(system, folder)
        if "bad" not in known:
            known["bad"] = trio.run(find_failed_checks, f"{spec}answerer=none")
            kept.write_text(json.dumps(known), "utf-8")
        if "run" not in known:
            known["run"] = _play("LoCoMo", f"{spec}answerer=none", runs, data)
            kept.write_text(json.dumps(known), "utf-8")
        for part in answered:
            if part not in known:
                known[part] = _play(part, f"{spec}{ANSWERER}", runs, data)
                kept.write_text(json.dumps(known), "utf-8")
    except (LongspanError, subprocess.CalledProcessError) as error:
        known["problem"] = str(error)
    kept.write_text(json.dumps(known), "utf-8")
    print(system.name, known, file=sys.stderr, flush=True)


def install_system(system: System, folder: Path) -> None:
    """Create a system's environment, unless that has been done."""
    done = folder / "installed"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if system.npm:
        subprocess.run(["npm", "install", "--silent", "--prefix", folder, *system.packages], check=True)  # noqa: S603, S607
    else:
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *system.packages], check=True)  # noqa: S603
    done.touch()


def find_version(system: System, folder: Path) -> str:
    """Return the version of a system's package; empty for longspan's own memories."""
    if system.npm:
        found = folder / "node_modules" / system.package / "package.json"
        return str(json.loads(found.read_text("utf-8"))["version"])
    package = system.package if system.packages else OURS.get(system.name)
    if package is None:
        return ""
    python = folder / "bin" / "python" if system.packages else sys.executable
    ask = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    return subprocess.run([python, "-c", ask, package], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


async def find_failed_checks(spec: str) -> list[str]:
    """Return the names of the failed checks."""
    return [finding.check async for finding in check_agent(pin_defaults(AgentSpec.parse(spec))) if finding.verdict == "bad"]


ANSWERED_PARTS: Final = {"LoCoMo": "LoCoMo, F1", "memory": "`memory` at 8k"}
"""The parts played with an answerer, and the headings of their columns."""


def _play(part: str, spec: str, runs: Path, data: Path) -> str:
    """Play LoCoMo's first conversation, or a test of each scenario of `memory`. Return the name of its folder. Raises LongspanError."""
    if part == "LoCoMo":
        asked = {} if spec.endswith("answerer=none") else {"questions": QUESTIONS}
        suite = load_suite("locomo").model_copy(update={"scenarios": {"locomo": {"data": str(data.resolve()), **asked}}})
        settings = RunSettings(suite=suite, span=32_000, agent=spec)
    else:
        settings = RunSettings(suite=load_suite("memory").model_copy(update={"tests": 1}), span=8_000, agent=spec)
    (outcome,) = trio.run(play_plans, [plan_run(settings, runs)])
    if outcome.error is not None:
        raise outcome.error
    return outcome.folder.name


class Row(NamedTuple):
    """A row of the tables. `answered` has the results of the parts played with an answerer."""

    name: str
    known: Mapping[str, Any]
    result: Result | None
    answered: Mapping[str, Result]
    minutes: float
    day: str


def _rows(runs: Path) -> Iterator[Row]:
    for system in SYSTEMS:
        kept = runs / f"{system.name}.json"
        if kept.exists():
            known = json.loads(kept.read_text("utf-8"))
            run = _finished(runs, known.get("run"))
            answered = {part: folder for part in ANSWERED_PARTS if (folder := _finished(runs, known.get(part))) is not None}
            took = fsum(minutes(folder) for folder in answered.values())
            results = {part: read_result(folder) for part, folder in answered.items()}
            day = f"{run.manifest.created:%Y-%m-%d}" if run else ""
            yield Row(system.name, known, read_result(run) if run else None, results, took, day)


def _finished(runs: Path, name: str | None) -> RunFolder | None:
    folder = runs / (name or "-")
    return RunFolder(folder) if (folder / MANIFEST).exists() and (folder / RESULT).exists() else None


def _write(rows: Sequence[Row]) -> None:
    """Put the tables into their places in the page."""
    page = PAGE.read_text("utf-8")
    for begin, end, table in ((BEGIN, END, _table(rows)), (ANSWERED, END_ANSWERED, _answers(rows))):
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = before + "\n".join([begin, "", *table, "", end]) + after
    PAGE.write_text(page, "utf-8")


def _answers(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table of answers."""
    heads = ["memory"]
    for part, head in ANSWERED_PARTS.items():
        results = [row.answered[part] for row in rows if part in row.answered]
        scale = f" (of {results[0].max_score}, guessing {fmean(each.chance for each in results):.2f})" if results else ""
        heads += [head + scale, "recall@5"]
    heads += ["tokens read", "tokens written", "minutes"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        if row.answered:
            figures: list[str] = []
            for part in ANSWERED_PARTS:
                result = row.answered.get(part)
                found = None if result is None else result.metrics.get("evidence_recall@5", result.metrics.get("evidence_recall@k"))
                figures += ["-" if result is None else f"{result.score_bounds[0]:.2f}", "-" if found is None else f"{found:.2f}"]
            costs = [result.costs["agent"] for result in row.answered.values() if "agent" in result.costs]
            tokens = sum(each.input_tokens for each in costs), sum(each.output_tokens for each in costs)
            figures += [*(f"{each:,}" for each in tokens), f"{row.minutes:.0f}"]
            yield f"| {' | '.join([f'`{row.name}`', *figures])} |"


def _table(rows: Iterable[Row]) -> Iterator[str]:
    heads = ["memory", "version", "`check`", "stored", "@5", "@10", "@20", "add, s per 1k", "search, s", "paid tokens", "played"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for name, known, result, _, _, day in rows:
        bad = ", ".join(known.get("bad", ())) or ("ok" if "bad" in known else "-")
        figures = ["-"] * 7
        if result is not None:
            of = result.metrics
            keys = ("evidence_stored", "evidence_recall@5", "evidence_recall@10", "evidence_recall@20")
            figures = [f"{of[key]:.3f}" if key in of else "unreported" for key in keys]
            figures += [f"{of.get('add_seconds_per_1k', 0.0):.3f}", f"{of.get('search_seconds', 0.0):.3f}"]
            figures.append(f"{sum(each.input_tokens + each.output_tokens for each in result.costs.values()):,}")
        yield f"| {' | '.join([f'`{name}`', known.get('version') or '', bad, *figures, day])} |"


if __name__ == "__main__":
    main()
