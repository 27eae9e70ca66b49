"""Try memory systems, each in an environment of its own, and write their table in docs/memory.md.

    python -m scripts.memory_systems locomo10.json FOLDER [NAME ...]

For each system: makes its environment, unless it is there, has `longspan check` try it, and plays LoCoMo's first conversation without an
answerer. Environments, checks and runs that are finished are kept, so the command may be given again after an interruption.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from longspan.simulator.archive.run_folder import MANIFEST, RESULT, RunFolder
from longspan.simulator.base.errors import LongspanError
from longspan.simulator.preflight import checkup as checkup_module
from longspan.simulator.preflight.checkup import checkup
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan
from longspan.simulator.running.runner import play
from longspan.simulator.suite.agent_spec import AgentSpec, begun
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

PAGE: Final = Path(__file__).parents[1] / "docs" / "memory.md"
BEGIN, END = "<!-- table: scripts/memory_systems.py -->", "<!-- end of table -->"

ENTITIES: Final = '{"entities": [{"name": "{turn}", "entityType": "turn", "observations": ["{text}"]}]}'


class System(NamedTuple):
    """A memory. `spec` has places for the environment's folder. `packages` are installed there, by pip or, if it is JavaScript, by npm."""

    name: str
    spec: str
    packages: tuple[str, ...] = ()
    npm: bool = False

    @property
    def package(self) -> str:
        """The package whose version is told."""
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
"""How many seconds the checks may take: nobody waits for them here, and the machine may be busy."""

EMBEDDER: Final = "local"
"""The embedder that they have, all the same."""

LENT: Final = ("langgraph", "langchain", "llamaindex", "langmem", "txtai", "semantic-kernel", "mem0", "chroma")
"""The memories that are given an embedder."""


def main() -> None:
    """Try what is named, or all, and write the table of all that have been played."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locomo", type=Path, help="locomo10.json, or the same compressed")
    parser.add_argument("folder", type=Path, help="the folder for environments and runs")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the systems to try")
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
            _try(system, environments, runs, data)
    _write(list(_rows(runs)))


def _try(system: System, environments: Path, runs: Path, data: Path) -> None:
    """Make the environment, check the memory and play it, as far as that has not been done."""
    kept = runs / f"{system.name}.json"
    known: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    folder = environments / system.name
    try:
        if system.packages:
            _install(system, folder)
        spec = f"memory/{system.spec.format(env=folder)}"
        spec += f"{'&' if '?' in spec else '?'}answerer=none" + (f"&embedder={EMBEDDER}" if system.name in LENT else "")
        known["version"] = _version(system, folder)
        if "bad" not in known:
            known["bad"] = trio.run(_bad, spec)
            kept.write_text(json.dumps(known), "utf-8")
        if "run" not in known:
            known["run"] = _play(spec, runs, data)
    except (LongspanError, subprocess.CalledProcessError) as error:
        known["problem"] = str(error)
    kept.write_text(json.dumps(known), "utf-8")
    print(system.name, known, file=sys.stderr, flush=True)


def _install(system: System, folder: Path) -> None:
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


def _version(system: System, folder: Path) -> str:
    """Return the version of a system's package; nothing for longspan's own memories."""
    if system.npm:
        found = folder / "node_modules" / system.package / "package.json"
        return str(json.loads(found.read_text("utf-8"))["version"])
    package = system.package if system.packages else OURS.get(system.name)
    if package is None:
        return ""
    python = folder / "bin" / "python" if system.packages else sys.executable
    ask = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    return subprocess.run([python, "-c", ask, package], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


async def _bad(spec: str) -> list[str]:
    """Return the names of the checks that find something bad."""
    return [finding.check async for finding in checkup(begun(AgentSpec.parse(spec))) if finding.verdict == "bad"]


def _play(spec: str, runs: Path, data: Path) -> str:
    """Play LoCoMo's first conversation. Return the name of the run's folder. Raises LongspanError."""
    suite = load_suite("locomo").model_copy(update={"scenarios": {"locomo": {"data": str(data.resolve())}}})
    (outcome,) = trio.run(play, [plan(RunSettings(suite=suite, span=32_000, agent=spec), runs)])
    if outcome.error is not None:
        raise outcome.error
    return outcome.folder.name


class Row(NamedTuple):
    """A line of the table."""

    name: str
    known: Mapping[str, Any]
    result: Result | None
    day: str


def _rows(runs: Path) -> Iterator[Row]:
    for system in SYSTEMS:
        kept = runs / f"{system.name}.json"
        if kept.exists():
            known = json.loads(kept.read_text("utf-8"))
            folder = runs / known.get("run", "-")
            played = (folder / MANIFEST).exists() and (folder / RESULT).exists()
            created = RunFolder(folder).manifest.created if played else None
            yield Row(system.name, known, read_result(RunFolder(folder)) if played else None, f"{created:%Y-%m-%d}" if created else "")


def _write(rows: Sequence[Row]) -> None:
    """Put the table into its place in the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + "\n".join([BEGIN, "", *_table(rows), "", END]) + after, "utf-8")


def _table(rows: Iterable[Row]) -> Iterator[str]:
    heads = ["memory", "version", "`check`", "stored", "@5", "@10", "@20", "add, s per 1k", "search, s", "paid tokens", "played"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for name, known, result, day in rows:
        bad = ", ".join(known.get("bad", ())) or ("ok" if "bad" in known else "-")
        figures = ["-"] * 7
        if result is not None:
            of = result.metrics
            keys = ("evidence_stored", "evidence_recall@5", "evidence_recall@10", "evidence_recall@20")
            figures = [f"{of[key]:.3f}" if key in of else "not told" for key in keys]
            figures += [f"{of.get('add_seconds_per_1k', 0.0):.3f}", f"{of.get('search_seconds', 0.0):.3f}"]
            figures.append(f"{sum(each.input_tokens + each.output_tokens for each in result.costs.values()):,}")
        yield f"| {' | '.join([f'`{name}`', known.get('version') or '', bad, *figures, day])} |"


if __name__ == "__main__":
    main()
