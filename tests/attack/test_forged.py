"""Forged manifests: no command runs, calls or reads what a stranger's folder names, in whatever disguise."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pytest
import trio

from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.files.locks import lock_folder
from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.annotating import can_be_judged
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.judging.annotation import read_sheets
from longspan.simulator.running.planning import Plan, replan_run, setting_of
from longspan.simulator.running.runner import check_limit, play_runs, resume_run
from longspan.simulator.running.sweeps.processes import play_in_processes
from longspan.simulator.running.sweeps.ray.node import Order, play_order
from longspan.simulator.running.sweeps.ray.segment_store import SegmentStore
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import UNLIMITED
from longspan.simulator.suite import definitions
from tests.attack import sample, tried
from tests.sealing import change_json

CANARY = """
import pathlib
pathlib.Path("touched").touch()
from longspan import BaseAgent, Reply, Scenario
class Canary(BaseAgent):
    async def reply(self, message):
        return Reply("OK.")
class Song(Scenario):
    name = "colours"
    skills = ("recall",)
    def make(self, random):
        raise ValueError
"""

SPECS = (
    "python:canary:Canary",
    "python/canary:Canary",
    " python:canary:Canary",
    "\u00a0\n\tpython:canary:Canary ",
    "python:canary%3ACanary",
    "python:%63anary:Canary?x=1",
    "python:canary:Canary?interpreter={python}",
    "Python:canary:Canary",
    "PYTHON:canary:Canary",
    "exec:touch touched",
    "exec/touch touched",
    "\nexec:touch touched",
    "exec:touch%20touched",
    "exec:sh -c 'touch touched'",
    "exec:touch touched?timeout=5&faketime=true",
    "exec:%74ouch touched",
    "mcp:touch touched?model=openai/m",
    "http://{address}/",
    "http:%2F%2F{address}",
    "http:/%2F{address}/path?timeout=3",
    "https://{address}/",
    " http://{address}/",
    "openai/m?base_url=http://{address}/v1",
    "openai/m?base_url=http:%2F%2F{address}",
    "openai/m?base_url=%68%74tp%3A//{address}",
    "openai:m?temperature=0&base_url=HTTP://{address}",
    "anthropic/m?base_url=http://{address}",
    "google/m?base_url=http://{address}",
    "ltm/openai/m?base_url=http://{address}",
    "ltm:openai/m?memory=text&base_url=http:%2f%2f{address}",
    "ltm/openai%2Fm?base_url=http://{address}",
    "ltm/openai/m?embedder=openai/e&embedder_url=http://{address}",
    "ltm/openai/m?chroma_url=http://{address}",
    "ltm/gguf/{here}/pipe",
    "gguf/{here}/pipe",
    "gguf:pipe?threads=1",
    "cohere/m?base_url=http://{address}",
)
"""Agents and judges that run code, call an address or load a file."""

SOURCES: tuple[dict[str, Any], ...] = (
    {"filler": "{here}/pipe", "filler_sha256": "0" * 64},
    {"filler": "pipe"},
    {"filler": "/dev/zero"},
    {"definitions": "{here}", "definitions_sha256": "0" * 64},
    {"suite": {"scenarios": {"chapterbreak": {"data": "{here}/pipe"}}}},
    {"suite": {"scenarios": {"chapterbreak": {"data": "pipe"}}}},
    {"suite": {"scenarios": {"summhay": {"data": "{here}/pipe"}}}},
    {"suite": {"scenarios": {"summhay": {"retriever": "vect", "embedder": "openai/e"}}}},
    {"suite": {"scenarios": {"summhay": {"retriever": "rerank", "reranker": "cohere/r"}}}},
    {"suite": {"scenarios": {"summhay": {"retriever": "vect", "embedder": "openai/http://{address}"}}}},
    {"suite": {"scenarios": {"counting_stars": {"sky": "{here}/pipe"}}}},
    {"suite": {"scenarios": {"elitr": {"questions": "pipe"}}}},
    {"suite": {"scenarios": {"colours": {"changes": "http://{address}"}}}},
)
"""Settings that name files to read, or models to ask, when tests and filler are made."""

SCENARIOS = ("python:canary:Song", "python:canary:Song.name", " python:canary:Song", "PYTHON:canary:Song", "python%3Acanary:Song")
"""Names of scenarios that are code. The kind of the last three is unknown."""

FINISHED: dict[str, list[str]] = {
    "replay": ["replay", "{run}"],
    "replay --agent": ["replay", "{run}", "--agent", "silent", "--out", "again"],
    "score": ["score", "{run}"],
    "correct": ["score", "{run}", "--correct", "colours-1=1", "--why", "so", "--by", "Ada"],
    "annotate": ["summhay", "annotate", "{run}", "--agreement"],
    "publish": ["publish", "{run}", "--out", "published.json"],
    "verify": ["publish", "{run}", "--verify", "known.json"],
    "list": ["list", "runs", "runs"],
    "compare": ["compare", "runs"],
    "plot": ["plot", "runs", "--figure", "bars", "--out", "bars.svg"],
    "export": ["export", "runs", "--format", "csv", "--out", "exported"],
    "prune": ["prune", "runs", "--replicates", "--pack", "--yes"],
    "rerun": ["replay", "{run}", "--only-failed"],
    "arena": ["cream", "arena", "runs", "--judge", "openai/gpt-4o"],
}
UNFINISHED: dict[str, list[str]] = {
    "resume": ["resume", "{run}", "--yes"],
    "resume --json": ["resume", "{run}", "--yes", "--json", "--max-cost", "1"],
    "sweep": ["sweep", "s.yaml", "--out", "runs"],
    "sweep --jobs": ["sweep", "s.yaml", "--out", "runs", "--jobs", "2"],
    "sweep --trust": ["sweep", "s.yaml", "--out", "runs", "--trust", "--max-cost", "1"],
}
COMMANDS = FINISHED | UNFINISHED

ASKS = {
    "agent": {"resume", "resume --json"},
    "judge": {"resume", "resume --json", "replay --agent"},
    "scenario": {"resume", "resume --json", "replay", "replay --agent", "score", "correct", "annotate", "publish", "verify"},
    "sources": {"resume", "resume --json", "replay", "replay --agent", "verify"},
}
"""The commands that need what a field names, and therefore say what it is and that --trust would allow it."""

SWEEPS = {"sweep", "sweep --jobs", "sweep --trust"}

CASES = [
    *(("agent", spec, command) for spec in SPECS for command in COMMANDS),
    *(("judge", spec, command) for spec in SPECS for command in COMMANDS),
    *(("scenario", name, command) for name in SCENARIOS for command in COMMANDS),
    *(("sources", change, command) for change in SOURCES for command in COMMANDS),
]


@final
@dataclass(frozen=True)
class Prey:
    """A folder with a run of `silent` and its sweep, finished and not, where what must not happen would be seen."""

    here: Path
    finished: Path
    unfinished: Path
    server: socket.socket

    def fill(self, value: Any) -> Any:
        """Replace the names in braces by what they stand for."""
        if isinstance(value, dict):
            return {self.fill(name): self.fill(inner) for name, inner in value.items()}
        if not isinstance(value, str):
            return value
        address = "{}:{}".format(*self.server.getsockname())
        return value.replace("{here}", str(self.here)).replace("{address}", address).replace("{python}", sys.executable)

    def lay(self, command: str, change: Callable[[dict[str, Any]], None]) -> Path:
        """Lay out the run that a command gets, with a changed manifest."""
        for name in ("runs", "again", "exported", "published.json", "bars.svg"):
            path = self.here / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        shutil.copytree(self.unfinished if command in UNFINISHED else self.finished, self.here / "runs")
        (run,) = (path.parent for path in (self.here / "runs").glob("*/manifest.json"))
        forge(run, change)
        return run

    def check_untouched(self) -> None:
        assert not (self.here / "touched").exists(), "code was run"
        assert "canary" not in sys.modules, "code was imported"
        with pytest.raises(BlockingIOError):  # nobody has connected
            self.server.accept()


def forge(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a run's manifest as somebody would who knows longspan."""
    change_json(run / "manifest.json", change)


@pytest.fixture(scope="module")
def prey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prey]:
    here = tmp_path_factory.mktemp("prey")
    with pytest.MonkeyPatch.context() as patched, socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        patched.chdir(here)
        patched.setattr(sys, "path", [*sys.path])
        for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "COHERE_API_KEY", "LONGSPAN_AGENT_KEY"):
            patched.setenv(key, "canary-4711")
        (here / "canary.py").write_text(CANARY)
        os.mkfifo(here / "pipe")  # reading it would block until the test's time is over
        (here / "s.yaml").write_text("{agents: [silent], scenarios: [colours], tests: 1, spans: [1500], filler_size: 500}")
        assert command(["sweep", "s.yaml", "--out", "finished"]) == 0
        (run,) = (path.parent for path in here.glob("finished/*/manifest.json"))
        assert command(["publish", str(run), "--out", "known.json"]) == 0
        shutil.copytree(here / "finished", here / "unfinished")
        for name in ("result.json", "report.html", "grades.jsonl"):
            (here / "unfinished" / run.name / name).unlink()
        journal = here / "unfinished" / run.name / "conversations" / "main" / "journal.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))
        yield Prey(here, here / "finished", here / "unfinished", server)


def command(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert isinstance(exited.value.code, int)
    return exited.value.code


def changed(field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return what changes a manifest so that it names something."""

    def change(manifest: dict[str, Any]) -> None:
        if field == "scenario":
            manifest["suite"]["scenarios"] = {value: {}} | manifest["suite"]["scenarios"]
        elif field == "sources":
            for name, content in value.items():
                if name == "suite":
                    manifest["suite"]["scenarios"] |= content["scenarios"]
                else:
                    manifest[name] = content
        else:
            manifest[field] = value

    return change


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_runs_calls_or_reads_what_a_manifest_names(name: str, prey: Prey, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [(field, value) for field, value, command in CASES if command == name]
    for field, value in (picked := [case[:2] for case in sample(CASES) if case[2] == name] or cases[:1]):
        filled = prey.fill(value)
        run = prey.lay(name, changed(field, filled))
        code = command([part.replace("{run}", str(run)) for part in COMMANDS[name]])
        shown = capsys.readouterr()
        case = f"{field} {filled!r}: exit code {code}\n{shown.out}{shown.err}"
        prey.check_untouched()
        assert "Traceback" not in shown.out + shown.err, case
        if name in ASKS[field] and not is_unknown(filled):
            assert code == 2, case
            assert "--trust" in shown.err, case
            assert f"{run} names " in shown.err, case
            assert not (prey.here / "again").exists(), case
        elif name in SWEEPS:
            assert code == 1, case
            assert "but the sweep's file says" in shown.err, case
    tried("forged manifests", len(picked))


def is_unknown(value: Any) -> bool:
    """Whether it is a scenario of a kind that does not exist, whose error may come first."""
    return value in SCENARIOS[-1:]


def test_a_manifest_that_names_nothing_is_played_and_graded_by_every_command(prey: Prey) -> None:
    """The commands above reach what they would run: without the forgery, nothing stops them."""
    for name in ("resume", "replay --agent", "replay", "score", "publish", "verify", "sweep"):
        run = prey.lay(name, lambda manifest: None)
        assert command([part.replace("{run}", str(run)) for part in COMMANDS[name]]) == 0, name


def test_a_sweep_does_not_take_over_a_finished_run_of_something_else(prey: Prey, capsys: pytest.CaptureFixture[str]) -> None:
    run = prey.lay("score", changed("agent", "oracle"))
    assert command(["sweep", "s.yaml", "--out", "runs"]) == 1
    assert "agent is 'oracle', but the sweep's file says 'silent'" in capsys.readouterr().err
    assert json.loads((prey.here / "runs" / "sweep.json").read_bytes())["runs"][0]["state"] == "interrupted"
    assert run.exists()


def on_a_cluster(planned: Plan, run: RunFolder) -> LongspanError | None:
    """Have a node of a cluster play a run."""
    store = SegmentStore({run.path.name: run.path})
    lease, manifest = store.grant(run.path.name, None), planned.manifest.model_dump_json()
    order = Order(run.path.name, lease, manifest, UNLIMITED, str(run.path), str(Path.cwd()), ())
    answer = copy_context().run(play_order, Coordinator(store), order)  # it sets the limits that its process shares with others
    store.release(run.path.name)
    return LongspanError(answer["error"]) if answer["error"] is not None else None


def in_a_process(planned: Plan, run: RunFolder) -> LongspanError | None:
    """Have another process play a run."""
    with lock_folder(run.path.parent, "sweep") as lock:
        return trio.run(lambda: play_in_processes([(planned, run)], 1, lock=lock, ledger=Ledger()))[0].error


@pytest.mark.parametrize(
    ("field", "spec", "played"),
    [
        ("agent", "exec:touch touched", on_a_cluster),
        ("agent", "exec:touch touched", in_a_process),
        ("judge", "openai/m?base_url=http://{address}", on_a_cluster),
    ],
)
def test_a_worker_plays_what_the_sweeps_file_says(
    field: str, spec: str, played: Callable[[Plan, RunFolder], LongspanError | None], prey: Prey
) -> None:
    """A manifest that is exchanged after the sweep has checked it does not reach the workers."""
    run = RunFolder(prey.lay("resume", lambda manifest: None))
    planned = replan_run(run.manifest, "silent", run.path.parent)
    forge(run.path, changed(field, prey.fill(spec)))
    assert played(planned, run) is None
    assert json.loads((run.path / "result.json").read_bytes())["agent"] == "silent"
    prey.check_untouched()
    tried("forged manifests")


@final
class Coordinator:
    """A store with the interface of Ray's actors, in this process."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        class Remote:
            def remote(self, *arguments: Any) -> Any:
                return self

            def future(self) -> Future[Any]:
                return self.made

        def remote(*arguments: Any) -> Any:
            made = Remote()
            made.made = Future()  # type: ignore[attr-defined]
            made.made.set_result(method(*arguments))  # type: ignore[attr-defined]
            return made

        called = Remote()
        called.remote = remote  # type: ignore[method-assign]
        return called


PLACES: dict[str, tuple[str, Callable[[RunFolder], object]]] = {
    "replan": ("agent", lambda run: replan_run(run.manifest, run.manifest.agent, run.path.parent)),
    "replan of the sources": ("filler", lambda run: replan_run(run.manifest, "oracle", run.path.parent)),
    "tests_of": ("scenario", lambda run: definitions.tests_of(run.manifest)),
    "Gradebook": ("scenario", lambda run: Gradebook(run.manifest)),
    "sheets": ("scenario", read_sheets),
    "setting_of": ("filler", lambda run: setting_of(run.manifest, "main")),
    "play_runs": (
        "judge",
        lambda run: trio.run(play_runs, [(replan_run(run.manifest, "oracle", run.path.parent), run)], Ledger()),
    ),
    "a limit": ("judge", lambda run: check_limit([replan_run(run.manifest, "oracle", run.path.parent)], 1.0)),
    "resume": ("judge", lambda run: trio.run(resume_run, run, "oracle")),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_takes_a_manifest_refuses_it_even_if_a_command_forgot_to_ask(place: str, prey: Prey) -> None:
    field, use = PLACES[place]
    value = {"agent": "exec:touch touched", "filler": "/dev/zero", "scenario": "python:canary:Song", "judge": "exec:touch touched"}[field]
    run = prey.lay("replay", changed(field, value))
    with pytest.raises(InputError, match="--trust"):
        use(RunFolder(run))
    prey.check_untouched()


def test_the_pages_offer_no_judging_of_what_is_code(prey: Prey) -> None:
    run = prey.lay("replay", changed("scenario", "python:canary:Song"))
    assert not can_be_judged(RunFolder(run).manifest)
    prey.check_untouched()
