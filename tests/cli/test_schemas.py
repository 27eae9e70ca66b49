"""Every command that prints JSON prints what its schema says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from tests.made_runs import made_run
from tests.schemas import check_output

from longspan.simulator.cli import run_command, whole_app
from longspan.simulator.cli.schema import FILE, locate_schemas

PLAY = ("--scenario", "colours", "--tests", "2", "--agent", "notebook?window=200")

SWEEP = """
scenarios: [colours]
tests: 2
spans: [2k]
seeds: [0, 1, 2, 3, 4, 5]
agents: [oracle, silent]
contrasts:
- agents: [oracle, silent]
"""

ELSEWHERE = {
    "ask": "agents/test_asking.py",
    "calibrate": "simulator/test_calibration.py",
    "counting-stars-reproduce": "scenarios/counting_stars/test_reproduce_stars.py",
    "cream-arena": "scenarios/cream/test_arena.py",
    "elitr-bench-reproduce": "scenarios/elitr/test_reproduce.py",
    "goodai-ltm-reproduce": "scenarios/goodai/test_reproduce.py",
    "import": "scenarios/goodai/test_logs.py",
    "locomo-reproduce": "scenarios/histories/test_reproduce_answers.py",
    "longmemeval-reproduce": "scenarios/histories/test_reproduce_answers.py",
    "summhay-annotate": "scenarios/summhay/test_runs.py",
    "summhay-reproduce": "scenarios/summhay/test_reproduce.py",
}
"""Commands whose output other tests check, which have what these commands need."""


def commands(group: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the commands that have --json, by their words."""
    for name, command in (group or typer.main.get_command(whole_app())).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        elif any("--json" in parameter.opts for parameter in command.params):
            yield *words, name


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of two tests, runs of two agents, and a sweep that states a contrast."""
    folder = tmp_path_factory.mktemp("schemas")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_command(["run", *PLAY]) == 0
        for agent in ("new", "old"):
            for seed in range(6):
                made_run(folder / "made" / agent, agent, lambda scenario, number: 0.5, seed=seed, scenarios=("colours", "jokes"), cost=0.25)
        (folder / "s.yaml").write_text(SWEEP)
        assert run_command(["sweep", "s.yaml"]) == 0
    (folder / "damaged" / "one").mkdir(parents=True)
    (folder / "damaged" / "one" / "manifest.json").write_text("{")
    return folder


RUN = "runs/ltm-2k-notebook-window-200-seed0"

CASES = [
    ("run", *PLAY),
    ("run", *PLAY, "--experiment", "twins=1", "--experiment", "control", "--score-farewells"),
    ("sweep", "s.yaml"),
    ("resume", RUN),
    ("replay", RUN),
    ("replay", RUN, "--agent", "silent"),
    ("replay", RUN, "--only-failed"),
    ("score", RUN),
    ("show", RUN),
    ("show", RUN, "colours-1"),
    ("compare", "made/new", "made/old"),
    ("compare", RUN, "made/new"),
    ("compare", "made/new", "made/old", "--baseline", "old"),
    ("compare", "made/new", "--baseline", "made/old"),
    ("compare", "runs/s", "--contrasts", "s.yaml"),
    ("check", "--agent", "oracle"),
    ("estimate", *PLAY[:-1], "oracle", "--experiment", "control"),
    ("estimate", *PLAY[:-1], "openai/gpt-4o-mini"),
    ("cream", "reproduce"),
    ("list", "scenarios"),
    ("list", "agents"),
    ("list", "agents", "ltm"),
    ("list", "memories"),
    ("list", "formats"),
    ("list", "suites"),
    ("list", "runs"),
    ("list", "runs", "made"),
    ("list", "runs", "damaged"),
]


def named(case: tuple[str, ...]) -> str:
    return "-".join(case[: 2 if case[0] in ("list", "cream") else 1])


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_command_prints_what_its_schema_says(
    case: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    assert run_command([*case, "--json"]) == 0
    value = check_output(named(case), capfd.readouterr().out)
    (value[0] if isinstance(value, list) else value)["unknown"] = 1
    with pytest.raises(jsonschema.ValidationError):
        check_output(named(case), json.dumps(value))


def test_every_command_that_prints_json_has_a_schema_and_a_test() -> None:
    found = {"-".join(words) for words in commands()}
    assert found == {named(case) for case in CASES} | ELSEWHERE.keys()
    assert found | {"result.json", "reproduce"} == locate_schemas().keys(), "the second is that of every benchmark"
    for name, file in ELSEWHERE.items():
        assert f'check_output("{name}"' in (Path(__file__).parents[1] / file).read_text("utf-8")


def test_the_schema_of_a_command_or_a_file_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list", "schema", "list-runs"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert re.fullmatch(r"urn:longspan:[0-9.]+:output:list-runs", printed["$id"])
    made = jsonschema.Draft202012Validator(printed)
    made.check_schema(printed)
    assert made.is_valid({"folder": "runs", "runs": [], "deeper": []})
    assert not made.is_valid({"folder": "runs", "runs": []})
    assert run_command(["list", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(FILE.read_text("utf-8"))
    assert run_command(["list", "schema", "cream-arena"]) == 0
    arena = json.loads(capsys.readouterr().out)
    assert re.fullmatch(r"urn:longspan:[0-9.]+:output:cream:arena", arena["$id"])
    jsonschema.Draft202012Validator.check_schema(arena)
    assert run_command(["list", "schema", "list-run"]) == 2
    assert capsys.readouterr().err == "longspan: schema 'list-run': no command prints JSON by that name; did you mean list-runs?\n"
