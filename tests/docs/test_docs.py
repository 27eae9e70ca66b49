"""The documentation, run: its files, its commands and what they print, its tables of fields and options."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
import yaml
from pydantic import BaseModel
from scripts import docs_outputs
from scripts.docs_outputs import DOCS, ROOT, blocks, files, page_named
from tests.conftest import skip
from tests.environments import Environment, build, register

import longspan as longspan_itself
from longspan.simulator.cli import whole_app
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.contract.scenario import Skill
from longspan.simulator.contract.script import Line, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import Correction
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.pages.report.comparison_tables import COMMON_COLUMNS
from longspan.simulator.pages.report.figures import FIGURES
from longspan.simulator.results.analysis import contrasts
from longspan.simulator.results.analysis.rows import TESTS, TURNS
from longspan.simulator.results.effects import Effect, TestEffect
from longspan.simulator.results.measures.memory_losses import COUNTS
from longspan.simulator.results.measures.prompt_sizes import MEAN, MOST
from longspan.simulator.results.measures.stages import COLUMNS as MEMORY_COLUMNS
from longspan.simulator.results.reach_result import ReachResult
from longspan.simulator.results.result import Meaning, MemoryResult, Result, ScenarioResult, StageResult, TestResult
from longspan.simulator.running.dataset import EXPECTED, MESSAGES
from longspan.simulator.suite.experiment import Experiment
from longspan.simulator.suite.grid import Grid
from longspan.simulator.suite.manifest import Manifest, PlannedTest
from longspan.simulator.suite.suite import Suite


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with longspan's wheel and all extras installed, as users have it."""
    folder = tmp_path_factory.mktemp("site")
    made = Environment(folder / "venv", ["all"], besides=["pytest"])
    made.install(build("wheel", folder))
    return folder / "venv"


@pytest.fixture(scope="module")
def driver(site: Path) -> Iterator[docs_outputs.Driver]:
    with docs_outputs.Driver(site / "bin") as started:
        yield started


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    """A folder with all files that the guides show, except package files."""
    return docs_outputs.workshop(tmp_path)


def environment(*path: Path) -> dict[str, str]:
    """Where a command is run: in the fixture `site`, the first of `path`, with the others for Python to look in."""
    return docs_outputs.environment(path[0] / "bin", *path[1:]) | {"COLUMNS": "120"}


def longspan(folder: Path, *path: Path, arguments: Iterable[str]) -> str:
    """What the command line prints, started in `folder`."""
    done = subprocess.run(
        [path[0] / "bin" / "longspan", *arguments], cwd=folder, env=environment(*path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(folder: Path, *path: Path, arguments: Iterable[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(longspan(folder, *path, arguments=["run", *arguments, "--json"]))
    return found


# Commands.

ROOT_COMMAND: Any = typer.main.get_command(whole_app())
COMMANDS: dict[str, Any] = {
    f"{name} {inner}".strip(): command
    for name, group in ROOT_COMMAND.commands.items()
    for inner, command in getattr(group, "commands", {"": group}).items()
}
"""The commands by their words, those of benchmarks and of `list` too."""

OF_OTHERS = {
    *"--backend-store-uri --dist --force-reinstall --generate --head --junit-xml --lf --log-dir --no-binary --no-cache-dir".split(),
    *"--no-deps --parallel --message-limit --model --no-cache --time-limit --token-limit --build-arg --rm --user".split(),
}
"""Options of pip, pytest, Ray, Inspect, promptfoo, MLflow, Docker and llama.cpp that pages name."""


def options(command: Any) -> set[str]:
    """The options of a command, without `--help`."""
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("--")} - {"--help"}


@pytest.mark.parametrize("page", docs_outputs.PAGES, ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page: Path, workshop: Path, driver: docs_outputs.Driver) -> None:
    wanted = list(docs_outputs.commands(page.read_text("utf-8")))
    for command, printed in zip(wanted, driver.run(wanted, workshop), strict=True):
        remedy = f"python scripts/docs_outputs.py {page.relative_to(ROOT)}"
        assert docs_outputs.is_as_shown(command, printed), f"$ {command.text}\n{printed.text}\n{printed.code}: {remedy}"


def test_a_program_is_shown_the_virtual_time(workshop: Path, site: Path) -> None:
    if not list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")):
        skip("libfaketime is not installed: on Debian, apt install libfaketime")
    (block,) = (block for block in blocks(DOCS / "guides" / "connecting.md") if "faketime=true" in block.text)
    command, _, printed = block.text.removeprefix("$ ").partition("\n")
    done = subprocess.run(["bash", "-c", command], cwd=workshop, env=environment(site), capture_output=True, text=True, check=True)
    assert [line.rstrip() for line in done.stdout.splitlines()] == printed.splitlines()


def test_code_imports_of_longspan_what_is_public_and_nothing_else() -> None:
    pages = {page.name: page.read_text("utf-8") for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]}
    code = {name: "".join(re.findall(r"^```(?:python|diff)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)) for name, text in pages.items()}
    imports = [
        (page, line) for page, text in code.items() for line in re.findall(r"^[+-]?\s*((?:from|import) longspan\b.*)$", text, re.MULTILINE)
    ]
    assert imports
    used = {page: set(re.findall(r"(?<![\w.])longspan\.([a-z]\w*|[A-Z]\w*)", text)) for page, text in code.items()}
    for page, line in imports:
        if line == "import longspan":
            assert used[page] <= set(longspan_itself.__all__), page
            continue
        match = re.fullmatch(r"from longspan import ([\w, ]+)", line)
        assert match, f"{page}: {line}"
        assert {name.strip() for name in match[1].split(",")} <= set(longspan_itself.__all__), f"{page}: {line}"


def test_every_guide_shows_commands() -> None:
    assert [page.name for page in docs_outputs.PAGES if not list(docs_outputs.commands(page.read_text("utf-8")))] == []


def test_every_key_of_a_sweep_is_described_and_no_other() -> None:
    cells = first_cells(section("many-runs.md", "Sweeps"))
    assert {key for cell in cells for key in re.findall(r"`(\w+)`", cell)} == {*Grid.model_fields, *contrasts.KEYS}


def test_every_key_of_a_contrast_is_described() -> None:
    assert documented(section("comparing.md", "Contrasts stated beforehand")) == [*contrasts.Contrast.model_fields, *contrasts.KEYS[1:]]


@pytest.mark.parametrize(
    ("command", "page", "heading"),
    [
        ("view", "report.md", "The view"),
        ("ask", "debugging.md", "Asking a turn again"),
        ("compare", "comparing.md", "Comparing"),
        ("plot", "comparing.md", "Figures"),
        ("export", "exports.md", "Export"),
        ("cream arena", "arena.md", "Options"),
    ],
)
def test_a_table_of_options_has_every_option_and_no_other(command: str, page: str, heading: str) -> None:
    described = {option for cell in first_cells(section(page, heading)) for option in re.findall(r"--[a-z-]+", cell)}
    assert described == options(COMMANDS[command])


def test_pages_name_no_option_that_there_is_not() -> None:
    known = {"--help"}.union(OF_OTHERS, options(ROOT_COMMAND), *map(options, COMMANDS.values()))
    of_others = {
        DOCS / "internals" / "performance.md",
        DOCS / "reference" / "stability.md",
    }  # they name options of the benchmarks and of earlier releases
    pages = {ROOT / "README.md", *DOCS.rglob("*.md")} - of_others
    named = {(page.name, name) for page in pages for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text("utf-8"))}
    assert len(named) > 100
    assert sorted((page, name) for page, name in named if name not in known and not name.startswith("--longspan")) == []


def test_every_command_is_described() -> None:
    text = "".join(page.read_text("utf-8") for page in DOCS.rglob("*.md"))
    assert [name for name in COMMANDS if f"longspan {name}" not in text] == []


# Examples.


LONGEST = {"lending.py": 40, "haggling.py": 60, "diary.py": 30, "diary_server.py": 33, "diary_program.py": 17}


@pytest.mark.parametrize(("path", "limit"), LONGEST.items())
def test_examples_are_as_short_as_is_said(path: str, limit: int) -> None:
    assert len(files()[path].content.splitlines()) <= limit


def test_the_example_scenarios_are_sound(workshop: Path, site: Path) -> None:
    limits = {"oracle": (1, 1), "silent": (0, 0), "notebook": (0, 0.99)}
    both = ["--scenario", "python:lending:Lending", "--scenario", "python:haggling:Haggling"]
    agents = [argument for agent in limits for argument in ("--agent", agent)]
    found = results(workshop, site, arguments=[*both, "--seed", "0-2", "--span", "2k", *agents])
    assert Counter(result["agent"] for result in found) == dict.fromkeys(limits, 3)
    for result in found:
        least, most = limits[result["agent"]]
        assert set(result["scenarios"]) == {"lending", "haggling"}
        assert all(least <= scenario["score"] <= most for scenario in result["scenarios"].values()), (result["agent"], result["seed"])
        assert result["certified"] == result["at_distance"] == 1
        assert {test["status"] for test in result["tests"]} == {"scored"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package that the guides show, in a folder of its own, known by its entry points, and installed nowhere."""
    folder = tmp_path / "lending-kit"
    found = files()
    project = tomllib.loads(found["pyproject.toml"].content)["project"]
    register(project, folder)
    (folder / "lending_kit").mkdir()
    (folder / "lending_kit" / "__init__.py").touch()
    for path, block in found.items():
        if path.startswith("lending_kit/"):
            (folder / path).write_text(block.content, "utf-8")
    (changes,) = (block for block in blocks(DOCS / "guides" / "scenarios.md") if block.language == "diff")
    assert changes.file is not None
    (folder / changes.file).write_text(patched(found["lending.py"].content, changes.text), "utf-8")
    return folder


def patched(source: str, changes: str) -> str:
    """`source` with the lines after `-` replaced by the lines after `+` that follow them."""
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", changes, re.MULTILINE):
        before, after = (re.sub(r"^.", "", lines, flags=re.MULTILINE) for lines in (old, new))
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source


def test_a_package_is_found_by_its_entry_points(package: Path, site: Path, tmp_path: Path) -> None:
    for what, name in {"scenarios": "lending", "agents": "recent"}.items():
        assert re.search(rf"^│ {name} ", longspan(tmp_path, site, package, arguments=["list", what]), re.MULTILINE)
        assert not re.search(rf"^│ {name} ", longspan(tmp_path, site, arguments=["list", what]), re.MULTILINE)


def test_a_package_is_played(package: Path, site: Path, tmp_path: Path) -> None:
    agents = ["--agent", "oracle", "--agent", "recent?messages=5"]
    oracle, recent = results(tmp_path, site, package, arguments=["--scenario", "lending", *agents])
    assert (oracle["agent"], oracle["score"], oracle["max_score"]) == ("oracle", 1, 1)
    assert (recent["agent"], recent["tests"][0]["status"]) == ("recent?messages=5", "scored")
    said = {event.text for event in journal(tmp_path / oracle["folder"]) if isinstance(event, events.Message)}
    macro = re.search(r"macro lent.*?%\}\n(.*?)\{%", files()["lending_kit/lending.j2"].content, re.DOTALL)
    assert macro
    ways = [re.sub(r"\\\{\\\{.*?\\\}\\\}", r"\\w+", re.escape(line)) for line in macro[1].splitlines()]
    used = {way for way in ways for text in said if re.fullmatch(way, text)}
    assert len(used) > 1


def test_the_example_of_a_project_with_pytest_is_installed_and_passes_as_its_readme_and_the_page_say(tmp_path: Path) -> None:
    """In a clone's place there is what the source distribution holds. pip finds in the environment what it would download."""
    with tarfile.open(build("sdist", tmp_path)) as packed:
        packed.extractall(tmp_path, filter="data")
    (clone,) = (path for path in tmp_path.iterdir() if path.is_dir())
    project = clone / "examples" / "pytest-project"
    shutil.copytree(ROOT / "examples" / "pytest-project", project, ignore=shutil.ignore_patterns(".*", "__pycache__", "runs", "wheels"))
    made = Environment(project / ".venv", ["ltm", "openai"], besides=["pip", "hatchling", "editables", "pytest"])
    for program in ("pip", "pytest"):  # linked packages have no scripts
        (made.bin / program).write_text(f'#!/bin/sh\nexec {made.python} -m {program} "$@"\n', "utf-8")
        (made.bin / program).chmod(0o755)
    (block,) = (block for block in blocks(DOCS / "guides" / "ci.md") if block.language == "python")
    (project / "test_page.py").write_text(block.text, "utf-8")
    venv, wheel, install, test, each, recording = readme(project)
    assert venv == "python3 -m venv .venv"
    assert re.sub(r"--seed \S+ ", "", recording) == re.sub(r"--seed \S+ ", "", recorded())
    variables, steps = scripted()
    (address,) = {re.sub(r"^file://.*/wheels/", f"file://{project}/wheels/", value["LONGSPAN"]) for value in variables}
    given = environment(project / ".venv") | {"AGENT": "python:bot:DiaryBot", "LONGSPAN": address}
    given |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_FIND_LINKS": "", "PIP_NO_COMPILE": "1"}
    shell = " && ".join([wheel, install, recorded(), test, *steps, f"{each} -k sally_anne"])
    done = subprocess.run(["bash", "-ec", shell], cwd=project, env=given, capture_output=True, text=True, check=False)
    assert re.search(r"^=+ 5 passed in ", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert re.search(r"^not shown to be worse than the baseline: ", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert re.search(r"^FAILED longspan::ltm@2k::python:bot:DiaryBot::seed0::sally_anne-", done.stdout, re.MULTILINE), done.stdout
    assert (project / "junit.xml").exists()


def readme(project: Path) -> list[str]:
    """The commands of an example's README, for an environment whose programs are found."""
    lines = [line for block in blocks(project / "README.md") if block.language == "sh" for line in block.text.splitlines()]
    return [line.removeprefix(".venv/bin/").replace("python:bot:DiaryBot --seed", '"$AGENT" --seed') for line in lines]


def recorded() -> str:
    """The command of docs/guides/ci.md that records a baseline."""
    (line,) = re.findall(r"^longspan run .*--out baseline$", (DOCS / "guides" / "ci.md").read_text("utf-8"), re.MULTILINE)
    return str(line)


def scripted() -> tuple[list[dict[str, str]], list[str]]:
    """The variables of the examples without the action of docs/guides/ci.md, and the commands that both run."""
    _, github, gitlab = (yaml.safe_load(block.text) for block in blocks(DOCS / "guides" / "ci.md") if block.language == "yaml")
    steps = [str(step["run"]) for step in github["jobs"]["memory"]["steps"] if "run" in step]
    assert steps == gitlab["memory"]["script"]
    return [github["jobs"]["memory"]["env"], gitlab["memory"]["variables"]], steps


def test_every_parameter_of_check_and_option_of_pytest_is_described() -> None:
    cells = first_cells((DOCS / "guides" / "ci.md").read_text("utf-8"))
    parameters = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {*inspect.signature(longspan_itself.check).parameters} - {"agent", "settings"} <= parameters
    plugin = (ROOT / "simulator" / "api" / "pytest_plugin.py").read_text("utf-8")
    there_are = set(re.findall(r'addoption\(\s*"(--[a-z-]+)"', plugin))
    assert {option for cell in cells for option in re.findall(r"--longspan[a-z-]*", cell)} == there_are != set()


def test_options_of_a_packages_agent_are_checked(package: Path, site: Path, tmp_path: Path) -> None:
    start = [site / "bin" / "longspan", "run", "--agent", "recent?messages=0"]
    done = subprocess.run(start, cwd=tmp_path, env=environment(site, package), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "recent?messages=0: messages: must be" in done.stderr


def journal(folder: Path) -> list[events.Event]:
    return list(read_journal(folder / "conversations" / "main" / "journal.jsonl"))


# Tables.


def section(name: str, heading: str) -> str:
    """The text under a heading, down to the next, without code blocks."""
    parts = re.split(r"^#+ (.*)$", prose(page_named(name)), flags=re.MULTILINE)
    return parts[parts.index(heading) + 1]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of the tables in `text`, without their heads."""
    lines = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    table = [re.split(r"\s\|\s", line) for line in lines]
    heads = {number for number, row in enumerate(table) if set(row) == {"---"}}
    return [row for number, row in enumerate(table) if number not in heads and number + 1 not in heads]


def first_cells(text: str) -> list[str]:
    return [row[0] for row in rows(text)]


def documented(text: str) -> list[str]:
    return [name for cell in first_cells(text) for name in re.findall(r"`(\w+)`", cell)]


def kind(event: type[BaseModel]) -> str:
    return str(event.model_fields["type"].default)


EVENTS = get_args(get_args(events.Event)[0])


@pytest.mark.parametrize("event", EVENTS, ids=kind)
def test_every_field_of_an_event_is_described(event: type[BaseModel]) -> None:
    assert documented(section("journal.md", f"`{kind(event)}`")) == [name for name in event.model_fields if name != "measured"]


def test_there_is_a_section_for_every_event_and_for_no_other() -> None:
    headings = re.findall(r"^### `(\w+)`$", prose(DOCS / "reference" / "journal.md"), re.MULTILINE)
    assert sorted(headings) == sorted(kind(event) for event in EVENTS)


@pytest.mark.parametrize(
    ("model", "heading"),
    [
        (Manifest, "`manifest.json`"),
        (Result, "`result.json`"),
        (ScenarioResult, "A scenario"),
        (Meaning, "A meaning"),
        (TestResult, "A test"),
        (Effect, "An effect"),
        (MemoryResult, "A memory"),
        (StageResult, "A stage"),
        (ReachResult, "A reach"),
    ],
)
def test_every_field_of_a_file_is_described(model: type[BaseModel], heading: str) -> None:
    assert sorted(documented(section("journal.md", heading))) == sorted(model.model_fields)


@pytest.mark.parametrize(
    ("columns", "page", "heading"),
    [
        ((*COMMON_COLUMNS, *MEMORY_COLUMNS, "context", MEAN, MOST, *COUNTS), "exports.md", "Columns of the CSV"),
        ((*MESSAGES, *EXPECTED), "exports.md", "To play elsewhere"),
        (TESTS, "exports.md", "The table of tests"),
        (TURNS, "exports.md", "The table of turns"),
        (FIGURES, "comparing.md", "Figures"),
    ],
)
def test_every_column_and_figure_is_described(columns: Iterable[str], page: str, heading: str) -> None:
    assert documented(section(page, heading)) == list(columns)


def names_of(model: type[Any]) -> list[str]:
    if issubclass(model, BaseModel):
        return [name for name, info in model.model_fields.items() if not info.exclude]
    return [field.name for field in dataclasses.fields(model)]


@pytest.mark.parametrize(
    ("heading", "field", "model"),
    [
        ("`open`", "lines", Line),
        ("`open`", "outline", Segment),
        ("`reply`", "usage", Usage),
        ("`manifest.json`", "suite", Suite),
        ("`manifest.json`", "conversations", PlannedTest),
        ("A test", "evidence", Evidence),
        ("A test", "correction", Correction),
        ("An effect", "tests", TestEffect),
        ("`begin`", "experiment", Experiment),
        ("`manifest.json`", "experiments", Experiment),
    ],
)
def test_every_field_of_what_lies_within_is_described(heading: str, field: str, model: type[Any]) -> None:
    (row,) = (row for row in rows(section("journal.md", heading)) if row[0] == f"`{field}`")
    assert [name for name in names_of(model) if f"`{name}`" not in row[-1]] == []


def test_the_lines_of_grades_and_corrections_are_described(workshop: Path, site: Path) -> None:
    (result,) = results(workshop, site, arguments=["--scenario", "python:lending:Lending", "--tests", "1", "--agent", "oracle"])
    grade = json.loads((workshop / result["folder"] / "grades.jsonl").read_text("utf-8").splitlines()[0])
    assert [name for name in grade if f"`{name}`" not in section("journal.md", "`grades.jsonl`")] == []
    assert [name for name in names_of(Correction) if f"`{name}`" not in section("journal.md", "`corrections.jsonl`")] == []


def test_every_file_of_a_run_is_described(workshop: Path, site: Path) -> None:
    (result,) = results(workshop, site, arguments=["--scenario", "python:lending:Lending", "--tests", "1", "--agent", "notebook"])
    folder = workshop / result["folder"]
    found = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    described = {name for cell in first_cells(section("journal.md", "The files of a run")) for name in re.findall(r"[\w.]+", cell)}
    assert found <= described
    assert {path.name for path in (folder / "conversations" / "main").iterdir()} <= described
    assert {"manifest.json", "result.json", "grades.jsonl"} <= found


def test_every_field_of_a_line_and_a_message_and_every_call_of_a_stage_is_described() -> None:
    fields = section("scenarios.md", "What the fields mean")
    assert [name for name in names_of(Line) if name not in documented(fields)] == []
    assert [skill for skill in get_args(Skill) if skill not in fields] == []
    assert documented(section("scenarios.md", "A dynamic scenario")) == names_of(Segment)
    calls = {name for name in vars(Stage) if not name.startswith("_")} - {"cues"}  # cues is for the inherited play
    assert [name for name in calls | {"random"} if f"stage.{name}" not in section("scenarios.md", "The stage")] == []
    own = section("own-agents.md", "Messages and replies")
    assert [name for model in (Message, Reply) for name in names_of(model) if name not in documented(own)] == []
    assert [name for name in names_of(Usage) if name not in own] == []


def test_lengths_of_conversations_are_about_what_is_said(tmp_path: Path, site: Path) -> None:
    said = {row[0]: row for row in rows(section("conversation.md", "Spans"))}
    found = results(tmp_path, site, arguments=["--span", "2k", "--span", "32k", "--agent", "oracle"])
    for span, result in zip(("2k", "32k"), found, strict=True):
        length, turns, filler = (float(re.sub(r"[^\d]", "", cell)) for cell in said[span][1:])
        assert result["tokens"] == pytest.approx(length, rel=0.1)
        assert result["turns"] == pytest.approx(turns, rel=0.1)
        assert 100 * result["filler_tokens"] / result["tokens"] == pytest.approx(filler, abs=6)


# Links.


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


PAGES = [*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "runs/README.md"))]


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in link:
            continue
        path, _, mark = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if mark:
            anchors = {
                *map(anchor, re.findall(r"^#+ (.*)$", prose(target), re.MULTILINE)),
                *re.findall(r'<a id="([\w-]+)">', prose(target)),
            }
            assert mark in anchors, link
