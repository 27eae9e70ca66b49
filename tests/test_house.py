"""Design rules that can be checked automatically."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from scripts import docs_outputs, import_graph

import longspan

ROOT = Path(__file__).parents[1]

PUBLIC = (
    *("BaseAgent", "Message", "Reply", "Usage", "AgentError", "InputError"),  # for agents
    *("Memory", "MemoryItem"),  # for memories
    *("Scenario", "Script", "Line", "Segment", "Stage", "Record", "Grade", "Item", "Marked", "Table", "grading", "queries", "rehearse"),
    *("run", "run_async", "resume", "load", "check", "Results", "read_journal"),  # for programs that play
)
EVENTS = {"begin", "open", "message", "reply", "jump", "award", "verdict", "snapshot", "end", "scenario_error", "close"}
"""The types of journal events."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_is_clean() -> None:
    done = run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout
    done = run(sys.executable, "-m", "ruff", "format", "--check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


def test_mypy_strict_is_clean_of_longspan_and_the_scenarios_of_the_guides(tmp_path: Path) -> None:
    environment = os.environ | {"MYPYPATH": str(docs_outputs.workshop(tmp_path))}
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "-p", "longspan", "-m", "lending", "-m", "haggling"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def imports(package: str) -> list[tuple[Path, str]]:
    """Return the modules that a package imports, each with the importing file."""
    modules = []
    for path in (ROOT / package).rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Import):
                modules += [(path, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules.append((path, node.module or ""))
    return modules


def test_the_engine_imports_neither_scenarios_nor_agents() -> None:
    assert [(path, name) for path, name in imports("simulator") if name.startswith(("longspan.scenarios", "longspan.agents"))] == []


ORDINARY_WORDS = {"histories", "history", "memory", "reach", "shared"}
"""Names of suites and their folders that are also words. The engine uses the words, such as the agent's memory."""

DEFAULT_SUITE = {
    "api/checking": {"ltm"},
    "api/playing": {"ltm"},
    "cli/options": {"ltm"},
    "suite/grid": {"ltm"},
    "results/analysis/comparable": {"name only runs of the same tests, such as RUNS/ltm-32k-*"},
    "running/planning": {
        ": it cannot be resumed or played with another agent; `longspan run ltm --definitions DIR --agent SPEC` plays its tests"
    },
}
"""The engine's only strings that name a suite: ltm is played if none is named, and examples of commands play it."""


def names_of_benchmarks() -> set[str]:
    """Return the names of the suites, of their folders, and of the papers, writers, importers and commands that they register."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    registered = {name for group in ("papers", "writers", "imports", "definitions") for name in points[f"longspan.{group}"]}
    registered |= {name.partition(".")[0] for name in points["longspan.commands"]} | {"chapterbreak"}  # a scenario named after a paper
    folders = {path.parent.name for path in (ROOT / "scenarios").glob("*/__init__.py")}
    return (registered | folders | {path.stem for path in (ROOT / "simulator" / "suites").glob("*.yaml")}) - ORDINARY_WORDS


def descriptions(path: Path) -> set[ast.AST]:
    """Return the strings of a file that are statements of their own: docstrings, and those below constants."""
    return {node.value for node in nodes(path) if isinstance(node, ast.Expr)}


def test_the_engine_names_no_benchmark() -> None:
    """No string of its code names one, whole or as a word: not in messages, not in help. Docstrings and comments may cite papers. That the
    engine imports nothing from their folders is tested above."""
    names = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, sorted(names_of_benchmarks())))})(?![a-z])", re.IGNORECASE)
    found: dict[str, set[str]] = {}
    for path in (ROOT / "simulator").rglob("*.py"):
        for node in set(nodes(path)) - descriptions(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and names.search(node.value):
                found.setdefault(path.relative_to(ROOT / "simulator").with_suffix("").as_posix(), set()).add(node.value)
    assert found == DEFAULT_SUITE


def test_the_engine_has_few_rooms_on_few_floors() -> None:
    rooms = {path.parent.name for path in (ROOT / "simulator").glob("*/__init__.py")}
    floors = [rooms.intersection(floor) for floor in import_graph.FLOORS]
    assert rooms == set().union(*floors)
    assert len(rooms) <= 16
    assert sum(map(bool, floors)) <= 10


BESIDE_THE_ENGINE = {"scenarios": {"base", "contract", "filler", "reading"}, "agents": {"base", "contract", "subject"}}
"""The rooms that the classes of scenarios and of agents may import from."""


@pytest.mark.parametrize("kind", BESIDE_THE_ENGINE)
def test_scenarios_and_agents_stand_near_the_ground(kind: str) -> None:
    assert import_graph.rooms()[kind] <= BESIDE_THE_ENGINE[kind]


def test_a_scenario_sees_no_clock_and_no_event_loop() -> None:
    files = {import_graph.modules()[name] for name in import_graph.scenario_modules()}
    forbidden = {"time", "trio", "longspan.simulator.base.clock"}
    found = {path.relative_to(ROOT / "scenarios").as_posix() for path, name in imports("scenarios") if path in files and name in forbidden}
    assert found == {"summhay/retrieval.py"}, "it embeds documents in a thread, while the facts of a test are made"


def checks_type(node: ast.AST) -> bool:
    """Return whether code distinguishes events by their types."""

    def event_type(part: ast.AST) -> bool:
        return isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "events"

    match node:
        case ast.MatchClass(cls=cls):
            return event_type(cls)
        case ast.Call(func=ast.Name("isinstance"), args=[_, types]):
            return any(map(event_type, ast.walk(types)))
        case ast.Compare(left=ast.Attribute(attr="type"), comparators=values):
            return any(isinstance(value, ast.Constant) and value.value in EVENTS for value in values)
    return False


def test_only_the_transcript_and_what_writes_events_examine_their_types() -> None:
    modules = (path for folder in ("simulator", "scenarios", "agents", "scripts") for path in (ROOT / folder).rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix() for path in modules if any(map(checks_type, nodes(path)))}
    assert found == {f"simulator/{name}.py" for name in ("journal/transcript", "journal/journal", "play/respondents")}


PRINTING = {
    "simulator/base/terminal.py",
    "agents/outside/bridge.py",
    *(f"agents/models/gguf/{name}.py" for name in ("trial", "template_process")),
}
"""The modules that print: the one that all others print through, and three that run in a process of their own, whose output is read."""


def prints(node: ast.AST) -> bool:
    """Return whether code prints, or reads typed input, without the module `terminal`."""
    match node:
        case ast.Call(func=ast.Name("print" | "input")):
            return True
        case ast.Attribute(value=ast.Name("typer" | "click"), attr="echo" | "secho" | "confirm" | "prompt"):
            return True
        case ast.Attribute(value=ast.Name("sys"), attr="stdout" | "stderr"):
            return True
        case ast.ImportFrom(module="rich" | "rich.console", names=names):
            return any(alias.name in ("Console", "console", "print") for alias in names)
    return False


def test_all_that_is_printed_goes_through_one_module() -> None:
    modules = (path for folder in ("simulator", "scenarios", "agents") for path in (ROOT / folder).rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix() for path in modules if any(map(prints, nodes(path)))}
    assert found == PRINTING | {"simulator/terminal/console.py"}, "the last is Rich's console with the same filter"


EXECUTORS = {
    "make_agent": "suite/agent_spec running/asking running/player running/prepared_agents running/runner cli/chat "
    "results/judging/cached_model running/preflight/checkup running/preflight/estimate",
    "inspect_agent": "cli/runs running/planning running/runner running/sweeps/ray/driver running/sweeps/ray/node "
    "running/preflight/estimate",
    "CachedModel": "scenarios/cream/evaluate cli/runs running/data_writers results/judging/calibrate running/player",
    "check_model": "scenarios/cream/evaluate running/data_writers results/judging/calibrate running/planning running/runner",
    "scenario_class": "cli/listing suite/trust scenarios/goodai/logs contract/plugins suite/suite pages/view/annotating",
    "make_scenario": "results/gradebook/gradebook running/imports running/planning contract/plugins suite/suite",
    "scenarios_in": "suite/definitions suite/suite",
    "read_definitions": "cli/importing suite/definitions suite/grid running/planning",
    "Trivia": "running/planning",
    "Plan": "running/planning",
    "admit_manifest": "cli/runs api/playing running/sweeps/sweep",
    "vouch_for": "suite/trust running/given_answers running/planning running/sweeps/processes running/sweeps/ray/node",
    "allow": "suite/trust",
}
"""The places where things named in strings are run, called or read, and where that is allowed. Each gets its string from the user's own
settings or from a Plan, or has it cleared by the gate (simulator/suite/trust.py). Make sure of that before you add a place."""


def called(node: ast.AST) -> str:
    """Return the name of the function that code calls, or nothing."""
    match node:
        case ast.Call(func=ast.Name(name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def test_what_a_text_names_is_made_in_few_places() -> None:
    found: dict[str, set[str]] = {name: set() for name in EXECUTORS}
    for path in [*(ROOT / "simulator").rglob("*.py"), *(ROOT / "scenarios").rglob("*.py")]:
        for name in found.keys() & set(map(called, nodes(path))):
            found[name].add(path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("simulator/"))
    assert found == {name: set(places.split()) for name, places in EXECUTORS.items()}


PYTHONS_OWN = {"_asdict", "_exit", "_fields", "_make", "_repr_html_", "_replace"}
"""Names with an underscore that Python's library or notebooks have made public."""


def private(node: ast.AST) -> list[str]:
    """Return the private names that code takes from modules and other objects, directly or by a string."""
    names: list[str] = []
    match node:
        case ast.ImportFrom(module=str(module), names=imported) if module.startswith("longspan"):
            names = [name.name for name in imported]
        case ast.Attribute(value=ast.Name("self" | "cls")):
            pass
        case ast.Attribute(attr=name):
            names = [name]
        case ast.Call(func=ast.Name("getattr") | ast.Attribute(attr="setattr" | "delattr"), args=[_, ast.Constant(str(name)), *_]):
            names = [name]
        case ast.Constant(str(text)) if "longspan" in text:  # code for another process, or an attribute to replace
            names = re.findall(r"(?<=\.)_[a-z]\w*|(?<=import )_[a-z]\w*", text)
    return [name for name in names if re.match("_[a-z]", name) and name not in PYTHONS_OWN]


def test_no_test_uses_a_private_name() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert [f"{path.relative_to(ROOT)}: {name}" for path in files for node in nodes(path) for name in private(node)] == []


OWN_RENDERERS = {
    "api/results": {"experiments", "meaning", "reach"},  # `results.experiments`, `results.meaning`
    "cli/plot": {"own_figures"},  # heatmaps
    "cli/run": {"reach"},  # the gate
    "terminal/scores": {"kinds"},
    "pages/report/__init__": {"kinds", "memory_losses"},
    "pages/report/card": {"memory_losses"},
    "pages/report/comparison": {"memory_losses"},
    "pages/report/figures": {"trends"},
    "pages/report/memory_pictures": {"memory_losses"},
    "pages/report/run_view": {"memory_losses"},
    "pages/report/side_by_side": {"memory_losses"},
    "pages/report/story": {"memory_losses"},
    "pages/report/timeline": {"memory_losses"},
    "pages/report/verdict": {"memory_losses"},
    "pages/view/pages": {"trends"},  # whether the list links to one
    "running/runner": {"ingestion"},  # checks that nothing was billed twice
}
"""Modules that draw what no document holds, and the measures whose types they know."""


def test_no_other_renderer_names_a_measure() -> None:
    shared = {"against", "cells", "comparing", "group_tables", "leading", "measure", "pair_tables"}
    measures = {path.stem for path in (ROOT / "simulator" / "results" / "measures").glob("*.py")} - shared - {"__init__"}
    found: dict[str, set[str]] = {}
    for path in (ROOT / "simulator").rglob("*.py"):
        name = path.relative_to(ROOT / "simulator").with_suffix("").as_posix()
        if not name.startswith("results/measures/"):
            for module in re.findall(r"longspan\.simulator\.results\.measures\.(\w+)", path.read_text("utf-8")):
                if module in measures:
                    found.setdefault(name, set()).add(module)
    assert found == OWN_RENDERERS
    templates = "".join(path.read_text("utf-8") for path in (ROOT / "simulator" / "pages" / "report" / "templates").glob("*.j2"))
    assert not re.findall(r"result\.(?:twins|lesions|control|meaning|refused|leaks)", templates)


def callers(*names: str) -> set[str]:
    """Return the modules that call functions or methods of these names."""
    modules = [path for folder in ("simulator", "scenarios", "agents") for path in (ROOT / folder).rglob("*.py")]
    found = {path for path in modules if not set(names).isdisjoint(map(called, nodes(path)))}
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_folders_are_deleted_in_one_place() -> None:
    assert callers("rmtree") == {"simulator/base/files/folders.py"}


def test_what_handles_folders_that_longspan_owns_opens_files_in_one_place() -> None:
    """Another module may be added here only if what it opens was named by the user, is longspan's own, or is being made."""
    named = {"results/gradebook/commitment", "filler/trivia", "base/files/labels", "suite/suite"}
    own = {
        "base/installed",  # what packages have registered
        "base/own_installation",
        "cli/new",
        "suite/provenance",
        "base/cache",
        "reading/replies/lexicon",
        "filler/draws",
        "filler/wordnet",
        "pages/report/page",
        "base/terminal",
        "base/tokens",
        "pages/view/pages",
    }
    made = {
        "results/analysis/export",
        "cli/compare",
        "cli/plot",
        "cli/reproduce",
        "base/files/file_io",
        "pages/report/outcome",
        "subject/snapshots",
        "running/sweeps/ray/node",
    }
    openers = callers("open", "open_regular", "read_bytes", "read_text", "read_packed", "write_bytes")
    found = {path for path in openers if path.startswith("simulator/")}
    assert found == {f"simulator/{name}.py" for name in named | own | made | {"base/files/folders"}}


def test_the_transcript_does_not_import_grading() -> None:
    flat = [(path, name) for path, name in imports("simulator") if path.name in ("transcript.py", "run_folder.py")]
    assert [(path, name) for path, name in flat if name.startswith("longspan.simulator.reading")] == []


def test_no_two_modules_import_each_other() -> None:
    left = import_graph.graph()
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert sorted(left) == [], "these stand in a circle, imports inside functions counted, or above one"


def test_a_room_imports_from_lower_floors_only() -> None:
    level = {name: number for number, floor in enumerate(import_graph.FLOORS) for name in floor}
    up = [
        (module, other)
        for module, others in import_graph.graph().items()
        for other in others
        if (here := import_graph.room(module)) != (there := import_graph.room(other)) and level[here] <= level[there]
    ]
    assert up == []


def test_every_module_has_a_room() -> None:
    flat = [path.name for path in (ROOT / "simulator").glob("*.py")]
    assert flat == ["__init__.py"]


def test_the_picture_of_the_rooms_is_that_of_the_code() -> None:
    drawn = (ROOT / "docs" / "internals" / "import-graph.svg").read_text("utf-8")
    assert drawn == import_graph.draw(), "python scripts/import_graph.py docs/internals/import-graph.svg"


def test_every_dependency_is_pinned_and_no_address_is_in_the_constraints() -> None:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    assert "://" not in constraints
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in constraints.splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(requirement for extra in project["optional-dependencies"].values() for requirement in extra)]
    names = {requirement.partition("[")[0].partition(">")[0].partition("=")[0].lower() for requirement in wanted} - {"longspan"}
    assert names <= pinned


def test_the_lock_has_the_pinned_versions_with_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in lock
    entries = [entry.split() for entry in lock.replace("\\\n", " ").splitlines() if not entry.startswith("#")]
    assert all(sum(word.startswith("--hash=sha256:") for word in entry) >= 1 for entry in entries)
    locked = {entry[0].lower().replace("_", "-") for entry in entries}
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.lower().replace("_", "-") for line in pins if "==" in line}
    elsewhere = {"appnope", "colorama", "httpx2-jsfetch", "pyreadline3", "pywin32"}
    """Needed on other systems only, on which constraints.txt was not tried."""
    assert {pin for pin in locked - pinned if pin.partition("==")[0] not in elsewhere} == set()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(requirement for extra in project["optional-dependencies"].values() for requirement in extra)]
    names = {re.split(r"[\[>=]", requirement)[0].lower() for requirement in wanted} - {"longspan"}
    assert names <= {pin.partition("==")[0] for pin in locked}


def test_a_short_run_loads_and_computes_no_more_than_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run does not import scipy, matplotlib or a provider's library, and a second run uses what the first has cached."""
    monkeypatch.setenv("LONGSPAN_CACHE_DIR", str(tmp_path / "cache"))
    code = """
import lzma, sys
from jinja2 import Environment
from longspan.simulator.cli import main

if sys.argv[1] == "second":
    del lzma.decompress, Environment.compile
try:
    main(["run", "ltm", "--agent", "silent", "--out", sys.argv[2]])
finally:
    print(*sorted(sys.modules))
"""
    for number in ("first", "second"):
        done = run(sys.executable, "-c", code, number, str(tmp_path / "runs"))
        assert done.returncode == 0, done.stderr
        loaded = set(done.stdout.splitlines()[-1].split())
        assert "longspan.simulator.pages.report" in loaded
        assert loaded.isdisjoint({"scipy", "matplotlib", "genai_prices", "openai", "httpx2", "unittest", "numpy.f2py"})


def test_public_names_are_few_and_documented() -> None:
    assert longspan.__all__ == sorted(PUBLIC)
    assert len(PUBLIC) <= 32
    assert [name for name in PUBLIC if not getattr(longspan, name).__doc__] == []
    assert set(PUBLIC) <= set(dir(longspan))


@pytest.mark.parametrize(("statement", "limit"), [("import longspan", 12), ("from longspan.simulator.cli import app", 250)])
def test_large_packages_are_imported_late(statement: str, limit: int) -> None:
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    loaded = set(run(sys.executable, "-c", code).stdout.split())
    assert loaded.isdisjoint({"trio", "tiktoken", "pydantic", "jinja2", "numpy", "scipy", "matplotlib"})
    assert len(loaded) < limit
