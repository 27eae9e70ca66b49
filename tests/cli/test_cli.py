"""The command line as a user meets it: an error is one line, with exit code 2, and nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from errno import ENAMETOOLONG, ENOSPC
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic_core import SchemaError
from tests import forked
from tests.made_runs import made_run
from tests.sealing import change_json, read_lines, write_lines

from longspan.simulator.base.fields import option_names
from longspan.simulator.base.installed import AGENTS, find_entry_points
from longspan.simulator.cli import main, run_command, whole_app
from longspan.simulator.cli.options import GridOptions
from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.results.analysis.baseline import Fall
from longspan.simulator.suite.grid import Grid

LISTED = {"folder", "suite", "scenarios", "span", "agent", "label", "seed", "created", "finished", "score", "max_score", "cost_usd"}

FALL = dict.fromkeys(["verdict", "sentence", *(field.name for field in fields(Fall))])

MISTAKEN = """
class New:
    def reply(self, message): return "OK."

class Sized(New):
    def __init__(self, size): self.size = size

def talk(message): return "OK."

class Two:
    def reply(self, message, history): return "OK."

class Text:
    def reply(self, text): return text.upper()

class Replied:
    def reply(self, message): return {"reply": "OK."}

class Responded:
    def reply(self, message): return {"response": "OK."}
"""

MAIN = [sys.executable, "-c", "from longspan.simulator.cli import main; main()"]


def longspan(*arguments: str, where: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return forked.longspan(*arguments, where=where, stdin=stdin)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--scenario", "colors"], "there is no scenario 'colors'; did you mean colours?"),
        (["run", "--scenario", "poker"], "there is no scenario 'poker'; there are"),
        (["run", "--agent", "gpt9"], "there is no kind of agent 'gpt9'; there are"),
        (["run", "--agent", "gpt-4o"], "'gpt-4o' names no agent; did you mean openai/gpt-4o?"),
        (["run", "--agent", "gemini-2.5-flash?seed=1"], "names no agent; did you mean google/gemini-2.5-flash?seed=1?"),
        (["run", "--judge", "claude-sonnet-4-6"], "names no agent; did you mean anthropic/claude-sonnet-4-6?"),
        (["run", "--agent", "tiny.gguf"], "did you mean gguf/tiny.gguf?"),
        (["run", "--agent", "127.0.0.1:8000/bot"], "did you mean http://127.0.0.1:8000/bot?"),
        (["run", "--agent", "mine:New"], "'mine:New' names no agent; did you mean python:mine:New?"),
        (["run", "--agent", "mine.py:New?size=3"], "did you mean python:mine:New?size=3?"),
        (["run", "--agent", "bots/mine.py:New"], "did you mean python:mine:New?"),
        (["run", "--agent", "mine.New"], "did you mean python:mine:New?"),
        (["run", "--agent", "mine.py"], "did you mean python:mine:Class?"),
        (["run", "--agent", "python:mine:Sized"], "the class needs size; did you mean python:mine:Sized?size=...?"),
        (["run", "--agent", "python:mine:Sized?sise=3"], "does not accept the option 'sise'; did you mean size?"),
        (["run", "--agent", "python:mine:New?size=3"], "does not accept the option 'size'; it accepts no options"),
        (
            ["run", "--agent", "python:mine:talk"],
            "python:mine:talk: talk is a function that takes message; name a class with a method reply that calls it, "
            "`def reply(self, message): return talk(message.text)`, or give it from Python, longspan.run(agent=talk)",
        ),
        (
            ["run", "--agent", "python:mine:Two"],
            "reply takes message and history, but longspan passes message: write `def reply(self, message)`",
        ),
        (["run", "--agent", "memory/mine:New"], "there is no memory 'mine'; did you mean memory/python:mine:New?"),
        (["run", "--agent", "orcale"], "there is no kind of agent 'orcale'; did you mean oracle?"),
        (["run", "--agent", "notebook?windw=8k"], "unknown option 'windw'; did you mean window?"),
        (["run", "--agent", "notebook?window=0"], "a size must be a whole number of tokens"),
        (["run", "--agent", "?"], "'?' names no agent; a spec looks like KIND/MODEL"),
        (["run", "--agent", "python:nowhere:Agent"], "there is no module 'nowhere'"),
        (["run", "--agent", "python:json:Nothing"], "json has no class 'Nothing'"),
        (["run", "--starts-at", "9500-01-01"], "--starts-at: expected a date before 9000-01-01"),
        (["run", "--span", "0"], "a size must be a whole number of tokens from 1 to"),
        (["run", "--span", "2kk"], "a size must be a whole number of tokens"),
        (["run", "--span", "-5"], "a size must be a whole number of tokens"),
        (["run", "--span", "50"], "no test of suite ltm fits in a span of 50 tokens"),
        (
            ["run", "--seed", "one"],
            "--seed: expected one whole number in plain digits, such as 7; got 'one'; several are a range such as 0-9",
        ),
        (["run", "--tests", "0"], "--tests': must be from 1 to 10,000"),
        (["run", "--placement", "late"], "'late' is not one of"),
        (["run", "--set", "changes=many"], "changes: must be a whole number"),
        (["run", "--set", "colours.size=3"], "there is no parameter 'colours.size'; there are"),
        (["run", "--set", "chnages=3"], "there is no parameter 'chnages'; did you mean changes?"),
        (["run", "--set", "changes"], "--set expects NAME=VALUE"),
        (["run", "--data", "colours=x.json"], "no scenario of ltm takes data called 'colours'; known names: chapterbreak"),
        (["run", "--data", "history=log.json"], "; did you mean the suite history: longspan run history --data ...?"),
        (["run", "locomo", "my file.json"], "unexpected extra argument(s) (my file.json); did you mean --data 'locomo=my file.json'?"),
        (["run", "ltm", "32k"], "did you mean --span 32k?"),
        (["run", "ltm", "openai/gpt-4o"], "did you mean --agent openai/gpt-4o?"),
        (["run", "ltm+locmo"], "there is no suite 'locmo'; did you mean ltm+locomo?"),
        (["run", "ltm+nowhere"], "there is no suite 'nowhere'; there are"),
        (["run", "--data", "chapterbreak=nowhere.json"], "nowhere.json"),
        (["run", "--filler", "nowhere.json"], "nowhere.json"),
        (["run", "--filler", "broken.yaml"], "broken.yaml"),
        (
            ["run", "elsewhere"],
            "there is no suite 'elsewhere'; there are beam, counting-stars, elitr, history, locomo, longmemeval, ltm, memory, personamem, "
            "reach, summhay",
        ),
        (["run", "lmt"], "there is no suite 'lmt'; did you mean ltm?"),
        (["run", "colours"], "'colours' is a scenario, not a suite: longspan run --scenario colours"),
        (["run", "nowhere.yaml"], "suite nowhere.yaml: cannot be read"),
        (["run", "broken.yaml"], "suite broken.yaml: not YAML"),
        (["run", "wrong.yaml"], "suite wrong.yaml: scenaros: unknown key; its keys are"),
        (["run", "--frobnicate"], "No such option: --frobnicate"),
        (["run", "--scenarios", "colours"], "No such option: --scenarios; did you mean --scenario?"),
        (["run", "--scenario", "colours", "--out", "wrong.yaml"], "cannot create the run's folder"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["list", "runs", "nowhere"], "nowhere: folder does not exist"),
        (["show", "nowhere"], "manifest.json: cannot be read"),
        (["show", "some"], "some is a folder of runs, not a run; name one of them, such as some/run"),
        (["resume", "nowhere"], "manifest.json: cannot be read"),
        (["replay", "nowhere"], "manifest.json: cannot be read"),
        (["score", "nowhere"], "manifest.json: cannot be read"),
        (["publish", "nowhere"], "manifest.json: cannot be read"),
        (["publish", "nowhere", "--verify", "nowhere"], "nowhere: cannot be read"),
        (["score", "nowhere", "--correct", "jokes-1=1", "--why", "so"], "manifest.json: cannot be read"),
        (["score", "nowhere", "--correct", "jokes-1=2", "--why", "so"], "score from 0 to 1, such as jokes-2=1"),
        (["check", "--agent", "nobody"], "there is no kind of agent 'nobody'"),
        (["ask", "--agent", "oracle"], "choose another agent"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    (tmp_path / "wrong.yaml").write_text("name: x\nscenaros: {colours: {}}\n")
    (tmp_path / "mine.py").write_text(MISTAKEN)
    (tmp_path / "some" / "run").mkdir(parents=True)
    (tmp_path / "some" / "run" / "manifest.json").touch()
    sys.modules.pop("mine", None)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exiting:
        main(arguments)
    out, err = capfd.readouterr()
    assert exiting.value.code == 2, err
    assert said in err
    assert err.count("\n") == 1, err
    assert err.startswith("longspan: ")
    assert out == ""
    assert sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts) == before, "nothing is left half-written"


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("http://127.0.0.1:9/", "hello: cannot be reached: ConnectError: all attempts to connect to 127.0.0.1:9 failed; is it running?"),
        ("exec:python3 -c 'import nothing'", "its last line on standard error: ModuleNotFoundError: No module named 'nothing'"),
        (
            "python:mine:Text",
            "reply raised AttributeError: 'Message' object has no attribute 'upper' (mine.py:14); "
            "reply is given a message, and its text is message.text",
        ),
        (f"python:mine:Text?interpreter={sys.executable}", "reply is given a message, and its text is message.text"),
        ("python:mine:Replied", "reply: gave an invalid answer: reply: unknown key; did you mean text?"),
        ("python:mine:Responded", "reply: gave an invalid answer: response: unknown key; did you mean text?"),
        (f"python:mine:Responded?interpreter={sys.executable}", "response: unknown key; did you mean text?"),
    ],
)
def test_an_agent_that_fails_at_its_first_call_is_told_in_one_line_and_leaves_no_folder(
    agent: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MISTAKEN)
    sys.modules.pop("mine", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exiting:
        main(["run", "--scenario", "colours", "--span", "2k", "--seed", "0-1", "--agent", agent])
    out, err = capfd.readouterr()
    assert (exiting.value.code, out, err.count("\n")) == (1, "", 1), out + err
    assert err.startswith("longspan: ")
    assert said in err
    assert list(Path("runs").iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "field"),
    [
        ("--agent", b"exec:cat \xff", "agent"),
        ("--filler", b"filler-\xff.json", "filler"),
        ("--data", b"chapterbreak=data-\xff.json", "suite"),
    ],
)
def test_a_name_that_a_manifest_cannot_have_is_rejected_before_anything_is_written(
    option: str, value: bytes, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    question = {"Question": "Who?", "Answer": {"Value": "Ada", "Aliases": ["Ada"], "NormalizedValue": "ada"}}
    Path(os.fsdecode(b"filler-\xff.json")).write_text(json.dumps({"Data": [question] * 100}))
    text = "The sea was calm that night, and nobody spoke. " * 600
    Path(os.fsdecode(b"data-\xff.json")).write_text(json.dumps({"work": [{"ctx": text, "pos": text, "negs": [text] * 5}]}))
    with pytest.raises(SystemExit) as leaving:
        main(["run", "--scenario", "chapterbreak", "--tests", "1", "--span", "32k", option, os.fsdecode(value)])
    said = capsys.readouterr().err
    assert leaving.value.code == 2, said
    assert re.fullmatch(rf"longspan: {field}: must be valid Unicode, got '.*\\udcff.*'; if it is a file's name, rename the file\n", said)
    assert not Path("runs").exists()


def test_json_prints_a_list_of_results_and_nothing_else(tmp_path: Path) -> None:
    arguments = ["run", "--scenario", "colours", "--span", "2k", "--span", "3000", "--seed", "0", "--seed", "1", "--agent", "oracle"]
    done = longspan(*arguments, "--agent", "silent", "--json", where=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(each["span"], each["seed"], each["agent"]) for each in found} == {
        (span, seed, agent) for span in (2000, 3000) for seed in (0, 1) for agent in ("oracle", "silent")
    }
    for each in found:
        assert each["score"] == (1.0 if each["agent"] == "oracle" else 0.0)
        kept = json.loads((tmp_path / each["folder"] / "result.json").read_text())
        assert {k: v for k, v in kept.items() if k != "sum"} == {k: v for k, v in each.items() if k != "folder"}
        assert (tmp_path / each["folder"] / "report.html").exists()
        assert list(each["tests"][0]["evidence"][0]) == [
            "needle_turn",
            "question_turn",
            "tokens",
            "dealt",
            "stored",
            "retrieved",
            "echoed",
            "rank",
            "forgotten",
            "k",
            "stored_inferred",
            "retrieved_inferred",
            "needed",
            "choice",
            "seconds",
            "nights",
        ]


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["list", "scenarios"], {"scenarios": {"scenario", "skills", "parameters", "description"}}),
        (["list", "agents"], {"agents": {"agent", "description"}}),
        (["list", "suites"], {"suites": {"suite", "tests_per_scenario", "scenarios", "description"}}),
        (["list", "runs", "{runs}"], {"folder": None, "runs": LISTED, "deeper": None}),
        (["compare", "{runs}"], {"groups": {"group", "agents", "runs", "left_out", "verdicts", "rows", "notes"}}),
        (["compare", "{runs}/one", "--baseline", "{runs}/two"], FALL | {"scenarios": {"name", "old", "new"}}),
        (["list", "agents", "openai"], {"agent": None, "options": {"option", "default", "meaning"}, "more": None}),
        (["check", "--agent", "oracle"], {"agent": None, "ready": None, "findings": {"check", "verdict", "what"}}),
    ],
)
def test_json_is_one_object_with_these_keys_and_nothing_else(
    arguments: list[str], keys: dict[str, set[str] | None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        made_run(tmp_path, name, lambda scenario, number: 0.5, name=name, scenarios=("colours", "jokes"))
    with pytest.raises(SystemExit, match="0"):
        main([*(each.replace("{runs}", str(tmp_path)) for each in arguments), "--json"])
    out, err = capfd.readouterr()
    told = json.loads(out)
    assert (told.keys(), err) == (keys.keys(), "")
    for key, inner in keys.items():
        if inner is not None:
            assert [row.keys() for row in told[key]] == [inner] * len(told[key])
            assert told[key]


def test_a_run_says_where_everything_is(tmp_path: Path) -> None:
    done = longspan("run", "--scenario", "colours", "--span", "2k", where=tmp_path)
    assert done.returncode == 0
    assert "runs/ltm-2k-notebook-seed0/report.html" in done.stdout
    assert "score" in done.stdout
    again = longspan("run", "--scenario", "colours", "--span", "2k", where=tmp_path)
    assert "runs/ltm-2k-notebook-seed0-run2/report.html" in again.stdout, "a name that is taken gets a number"
    listed = longspan("list", "runs", where=tmp_path)
    assert "ltm-2k-notebook-seed0-run2" in listed.stdout.replace("\n", "")


def test_runs_are_listed_with_their_shares(tmp_path: Path) -> None:
    for name, left_out in {"short": ("chapterbreak",), "long": ()}.items():
        made_run(tmp_path / "mixed", "one", lambda scenario, number: 0.5, name=name, left_out=left_out)
    printed = longspan("list", "runs", "mixed", where=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in printed[1:]] == ["score", "50%", "50%"]


DYING = """
class Dying:
    def __init__(self, after="5"):
        self.left = int(after)
    def reply(self, message):
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("the line is\\ndead")
        return "OK."
"""


def test_an_agent_that_fails_is_told_in_a_line_and_the_rest_is_kept(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    done = longspan("run", "--scenario", "colours", "--span", "2k", "--agent", "python:dying:Dying", "--agent", "oracle", where=tmp_path)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("longspan:")]
    name = "ltm-2k-python-dying-Dying-seed0"
    assert line == f"longspan: {name}: interrupted: python:dying:Dying: reply raised ConnectionError: the line is dead (dying.py:8)"
    assert "Traceback" not in done.stdout + done.stderr
    assert "longspan resume runs/ltm-2k-python-dying-Dying-seed0" in done.stdout
    result = json.loads((tmp_path / "runs/ltm-2k-python-dying-Dying-seed0/result.json").read_text())
    assert result["score"] is None
    assert result["score_bounds"] == [0.0, 1.0]
    assert {test["status"] for test in result["tests"]} == {"agent_error"}
    other = json.loads((tmp_path / "runs/ltm-2k-oracle-seed0/result.json").read_text())
    assert other["score"] == 1.0, "the other run went on"
    replayed = longspan("replay", f"runs/{name}", where=tmp_path)
    assert replayed.returncode == 1
    assert "journal.jsonl: the run was interrupted: the journal ends after " in replayed.stderr


def test_a_run_from_elsewhere_runs_no_code_unless_trusted(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING.replace('"5"', '"999"') + "\nopen('was-imported', 'w').close()\n")
    spec = "python:dying:Dying"
    longspan("run", "--scenario", "colours", "--span", "2k", "--agent", spec, where=tmp_path)
    (tmp_path / "was-imported").unlink()
    run = "runs/elsewhere"
    (tmp_path / "runs/ltm-2k-python-dying-Dying-seed0").rename(tmp_path / run)
    refused = longspan("resume", run, where=tmp_path)
    assert refused.returncode == 2
    assert f"names code to run: {spec}; --trust runs it" in refused.stderr
    for command in (["score", run], ["replay", run], ["publish", run]):
        assert longspan(*command, where=tmp_path).returncode == 0, "these need no agent"
    assert not (tmp_path / "was-imported").exists()
    assert longspan("resume", run, "--agent", spec, where=tmp_path).returncode == 0
    assert longspan("resume", run, "--trust", where=tmp_path).returncode == 0
    assert (tmp_path / "was-imported").exists()


def test_a_run_from_elsewhere_calls_no_address_and_starts_no_program_unless_trusted(tmp_path: Path) -> None:
    longspan("run", "--scenario", "colours", "--span", "2k", "--agent", "silent", where=tmp_path)
    manifest = tmp_path / "runs/ltm-2k-silent-seed0/manifest.json"
    for spec, what in {
        "http://127.0.0.1:9/": "an address to call",
        "https://agent.example/": "an address to call",
        "openai/any?base_url=http://127.0.0.1:9/v1": "an address to call",
        "openai/any?base_url=http:%2F%2F127.0.0.1:9": "an address to call",
        "exec:touch started": "code to run",
        "python:mine:Mine?interpreter=./python": "code to run",
    }.items():
        change_json(manifest, lambda content, spec=spec: content.update(agent=spec))
        refused = longspan("resume", str(manifest.parent), where=tmp_path)
        assert refused.returncode == 2, spec
        assert f"names {what}: {spec}; --trust" in refused.stderr
    assert not (tmp_path / "started").exists()


def test_replay_with_another_agent_plays_the_same_tests(tmp_path: Path) -> None:
    longspan("run", "--scenario", "colours", "--span", "2k", "--agent", "silent", where=tmp_path)
    done = longspan("replay", "runs/ltm-2k-silent-seed0", "--agent", "oracle", "--json", where=tmp_path)
    (result,) = json.loads(done.stdout)
    assert result["score"] == 1.0
    first = json.loads((tmp_path / "runs/ltm-2k-silent-seed0/manifest.json").read_text())
    second = json.loads((tmp_path / result["folder"] / "manifest.json").read_text())
    assert first["conversations"] == second["conversations"]
    assert first["seed"] == second["seed"]


def test_a_correction_counts_and_the_machines_grade_is_kept(tmp_path: Path) -> None:
    longspan("run", "--scenario", "colours", "--span", "2k", "--agent", "silent", where=tmp_path)
    run = tmp_path / "runs/ltm-2k-silent-seed0"
    done = longspan("score", str(run), "--correct", "colours-2=1", "--why", "It nodded.", "--by", "Ada", where=tmp_path)
    assert done.returncode == 0
    result = json.loads((run / "result.json").read_text())
    corrected = next(test for test in result["tests"] if test["id"] == "colours-2")
    assert (corrected["score"], corrected["machine_score"]) == (1.0, 0.0)
    assert corrected["correction"] == {"test": "colours-2", "score": 1.0, "why": "It nodded.", "by": "Ada"}
    report = (run / "report.html").read_text()
    assert "It nodded." in report
    assert "Ada" in report
    undone = longspan("score", str(run), "--correct", "colours-2=auto", "--why", "It did not.", "--by", "Bo", where=tmp_path)
    assert undone.stdout == "colours-2: set to automatic by Bo (automatic: 0.0)\n"
    restored = next(test for test in json.loads((run / "result.json").read_text())["tests"] if test["id"] == "colours-2")
    assert (restored["score"], restored["correction"]) == (0.0, None)
    assert [entry["score"] for entry in read_lines(run / "corrections.jsonl")] == [1.0, None]
    twice = longspan("score", str(run), "--correct", "colours-2=auto", "--why", "so", where=tmp_path)
    assert twice.returncode == 2
    assert "there is no correction to undo" in twice.stderr
    unknown = longspan("score", str(run), "--correct", "colours-9=1", "--why", "so", where=tmp_path)
    assert unknown.returncode == 2
    assert "has no test 'colours-9'; did you mean colours-3 or colours-2 or colours-1?" in unknown.stderr


def test_scoring_again_keeps_the_first_grades_and_shows_what_changed(tmp_path: Path) -> None:
    longspan("run", "--scenario", "colours", "--span", "2k", "--agent", "silent", where=tmp_path)
    run = tmp_path / "runs/ltm-2k-silent-seed0"
    lines = read_lines(run / "grades.jsonl")
    assert {line["round"] for line in lines} == {1}
    lines[0]["machine_score"] = lines[0]["score"] = 1.0  # as an older grader might have it
    write_lines(run / "grades.jsonl", lines)
    done = longspan("score", str(run), where=tmp_path)
    assert f"changed: {lines[0]['id']} 100% -> 0%" in done.stdout
    after = read_lines(run / "grades.jsonl")
    assert after[: len(lines)] == lines
    assert {line["round"] for line in after[len(lines) :]} == {2}
    assert "no grade has changed" in longspan("score", str(run), where=tmp_path).stdout


def test_published_scores_hold_no_words_and_are_tied_to_the_run(tmp_path: Path) -> None:
    for seed in ("0", "1"):
        longspan("run", "--scenario", "colours", "--span", "2k", "--agent", "silent", "--seed", seed, where=tmp_path)
    run, other = "runs/ltm-2k-silent-seed0", "runs/ltm-2k-silent-seed1"
    assert longspan("publish", run, "--out", "scores.json", where=tmp_path).returncode == 0
    text = (tmp_path / "scores.json").read_text()
    manifest = json.loads((tmp_path / run / "manifest.json").read_text())
    assert manifest["nonce"] not in text
    assert "favourite" not in text
    assert '"seed"' not in text
    good = longspan("publish", run, "--verify", "scores.json", where=tmp_path)
    assert good.returncode == 0, good.stdout
    bad = longspan("publish", other, "--verify", "scores.json", where=tmp_path)
    assert bad.returncode == 1
    assert "NO  commitment" in bad.stdout
    change_json(tmp_path / "scores.json", lambda content: content.update(score=1.0))
    forged = longspan("publish", run, "--verify", "scores.json", where=tmp_path)
    assert forged.returncode == 1
    assert "NO  scores" in forged.stdout
    taken = longspan("publish", run, "--out", "scores.json", where=tmp_path)
    assert taken.returncode == 2
    assert "already exists" in taken.stderr


def test_chat_answers_until_an_empty_line(tmp_path: Path) -> None:
    done = longspan("ask", "--agent", "silent", where=tmp_path, stdin="Hello.\n+2h\nStill there?\n\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("OK.") == 2
    assert "[Mon 11:00] you:" in done.stdout


def test_check_tells_whether_an_agent_is_fit(tmp_path: Path) -> None:
    assert "ready for a long run" in longspan("check", "--agent", "notebook", where=tmp_path).stdout
    (tmp_path / "dying.py").write_text(DYING)
    done = longspan("check", "--agent", "python:dying:Dying?after=3", where=tmp_path)
    assert done.returncode == 1
    assert "BAD" in done.stdout
    assert "not ready" in done.stdout
    assert "it must answer all filler" in done.stdout


def test_a_suite_file_runs_no_code_unless_trusted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("open('was-imported', 'w').close()\nfrom longspan.scenarios.ltm.colours import Colours as Mine\n")
    (tmp_path / "suite.yaml").write_text("name: mine\nscenarios: {'python:mine:Mine': {}}\n")
    refused = longspan("run", "suite.yaml", "--agent", "silent", where=tmp_path)
    assert refused.returncode == 2
    assert "suite.yaml names code to run: python:mine:Mine; --trust runs it" in refused.stderr
    assert not (tmp_path / "was-imported").exists()
    assert longspan("run", "suite.yaml", "--agent", "silent", "--trust", where=tmp_path).returncode == 0
    assert longspan("run", "suite.yaml", "--agent", "silent", "--scenario", "python:mine:Mine", where=tmp_path).returncode == 0


def test_the_options_of_run_have_the_defaults_of_a_sweep() -> None:
    assert GridOptions().grid() == Grid()


@pytest.mark.parametrize(
    ("options", "placement"),
    [
        ({}, "spread"),
        ({"rules": "paper"}, "uniform"),
        ({"rules": "paper", "placement": "spread"}, "spread"),
        ({"placement": "early"}, "early"),
    ],
)
def test_the_papers_rules_place_needles_as_the_paper_does(options: dict[str, Any], placement: str) -> None:
    assert [run.placement for run in GridOptions(**options).grid().runs()] == [placement]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "out of memory; play fewer runs or conversations concurrently, or pass smaller files"),
        (
            ImportError("libm.so.6: failed to map segment from shared object"),
            "out of memory; play fewer",
        ),
        (
            RecursionError("maximum recursion depth exceeded"),
            "an input file is nested too deeply; look for thousands of consecutive brackets",
        ),
        (OSError(ENAMETOOLONG, "File name too long", "x"), "x: cannot be read or written: File name too long"),
        (OSError(ENOSPC, "No space left on device"), "standard output: cannot be read or written: No space left on device"),
    ],
)
def test_an_error_of_the_system_is_told_in_one_line(
    error: Exception, told: str, grouped: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [error])]) if grouped else error

    monkeypatch.setattr("longspan.simulator.running.planning.plan_run", fail)
    monkeypatch.setattr("longspan.simulator.cli.give_up_output", lambda: None)
    with pytest.raises(SystemExit) as exiting:
        main(["run", "--scenario", "colours", "--agent", "silent"])
    assert exiting.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"longspan: {told}")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SchemaError('Error building "model" validator:\n  KeyboardInterrupt: '),
        BaseExceptionGroup("", [KeyboardInterrupt()]),
    ],
)
def test_an_interrupt_is_told_in_one_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("longspan.simulator.running.planning.plan_run", fail)
    with pytest.raises(SystemExit) as exiting:
        main(["run", "--scenario", "colours", "--agent", "silent"])
    assert exiting.value.code == 130
    assert capsys.readouterr().err == "longspan: interrupted\n"


def test_a_terminal_that_only_knows_ascii_gets_replacements(tmp_path: Path) -> None:
    command = "import sys; from longspan.simulator.cli import main; main(sys.argv[1:])"
    arguments = ["run", "--scenario", "colours", "--agent", "silent?ä=ü"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    for given, code in ((["list", "suites"], 0), (arguments, 2), (["ask", "--agent", "python:crème:Brûlée"], 2)):
        done = subprocess.run([sys.executable, "-c", command, *given], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == code, done.stderr
        assert (done.stdout + done.stderr).isascii()
        assert b"Traceback" not in done.stderr


def test_the_help_begins_with_four_commands_to_start_with(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["--help"]) == 0
    said = capsys.readouterr().out
    first, *others = re.findall(r"^╭─ (.*?) ─+╮\n(.*?)^╰", said, re.MULTILINE | re.DOTALL)
    assert first[0] == "Start here"
    assert re.findall(r"^│ ([a-z]+) ", first[1], re.MULTILINE) == ["run", "check", "show", "compare"]
    assert max(map(len, said.splitlines())) <= 80
    panels = [name for _, rows in (first, *others) for name in re.findall(r"^│ ([a-z-]+) ", rows, re.MULTILINE)]
    assert sorted(panels) == sorted({name.partition(" ")[0] for name in commands()}), "each command is in one panel"
    assert [option for option in ("--version", "--install-completion", "--show-completion", "--help") if option not in said] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["arena", "runs", "--judge", "openai/gpt-4o"], "longspan cream arena"),
        (["annotate", "runs/one"], "longspan summhay annotate"),
        (["reproduce", "cream", "--json"], "longspan cream reproduce"),
        (["reproduce", "--help"], "longspan BENCHMARK reproduce"),
    ],
    ids=" ".join,
)
def test_the_old_name_of_a_benchmarks_command_says_the_new_one(old: list[str], new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(old) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(rf"longspan: {old[0]} is a command of (a benchmark|benchmarks): `{new}`.*\n", told.err), told.err


def test_a_benchmark_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["summhay", "--help"]) == 0
    assert re.findall(r"^│ ([a-z]+) ", capsys.readouterr().out, re.MULTILINE) == ["annotate", "reproduce", "write"]
    assert run_command(["summhay", "anotate"]) == 2
    assert "No such command 'anotate'" in capsys.readouterr().err


def test_the_help_lists_what_is_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command, listed in (("import", "goodai-log"), ("calibrate", "statement")):
        assert run_command([command, "--help"]) == 0
        said = capsys.readouterr().out
        assert listed in said
        assert "{longspan" not in said


def test_the_help_says_what_each_option_does() -> None:
    silent = [
        f"{name} {option.opts[0]}" for name, command in commands().items() for option in command.params if not getattr(option, "help", "")
    ]
    assert len(commands()) > 30
    assert silent == []


def test_every_option_of_every_kind_of_agent_is_listed_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in find_entry_points(AGENTS):
        assert run_command(["list", "agents", kind, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert {row["option"] for row in told["options"]} == {*option_names(load_plugin(AGENTS, "kind of agent", kind).Options)}, kind
        assert [row["option"] for row in told["options"] if not row["meaning"]] == [], kind


def test_options_of_an_agent_fit_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["list", "agents", "mcp"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert re.search(r"^│ rounds +│ 10 +│ The most rounds of tool calls in one turn", said, re.MULTILINE)
    assert said.endswith("Options that are not declared here are the model's.\n")
    assert run_command(["list", "agents", "silent"]) == 0
    assert capsys.readouterr().out == "silent has no options.\n"


def commands() -> dict[str, Any]:
    """Return every command by its words, those of benchmarks and of `list` too."""
    top: Any = typer.main.get_command(whole_app())
    return {
        f"{name} {inner}".strip(): command
        for name, group in top.commands.items()
        for inner, command in getattr(group, "commands", {"": group}).items()
    }


PRINTING = """
print("imported")

class Talker:
    def reply(self, message):
        print("asked")
        return "OK."
"""


TALKING = ["run", "--scenario", "colours", "--tests", "1", "--agent", "python:talker:Talker"]


@pytest.mark.parametrize("command", [TALKING, ["sweep", "s.yaml", "--trust"]], ids=["run", "sweep"])
def test_results_as_json_are_whole_whatever_an_agent_prints(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "talker.py").write_text(PRINTING)
    (tmp_path / "s.yaml").write_text("scenarios: [colours]\ntests: 1\nspans: [2k]\nagents: ['python:talker:Talker']")
    done = longspan(*command, "--json", where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [result["agent"] for result in json.loads(done.stdout)] == ["python:talker:Talker"]
    assert "asked" in done.stderr
