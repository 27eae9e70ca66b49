"""Escape sequences, other control characters and bidi overrides, from every source of text, against every command.

None of them may reach a terminal or a pipe. What Rich writes to a terminal by itself is left out before they are looked for.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
import yaml

from longspan.simulator.cli import main, whole_app
from longspan.simulator.journal.run_folder import RunFolder
from tests.attack import sample, tried
from tests.loopback import Service
from tests.sealing import resealed, write_json, write_lines

MARK: Final = "\x1b]0;owned\x07\x1b[2J\x1b[38;5;201;7m\x9b31m\x8d\x08\x7f\rOWNED\u202egnp\u2066\x1b\\"
"""Sets the title, clears the screen, colours, goes back and turns the text around. Harmless to file names and YAML keys."""

UNWANTED: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")

RICHS_OWN: Final = re.compile(
    r"\x1b\[(?:[0-9]{1,2}(?:;[0-9]{1,2}){0,3})?m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r(?=\x1b\[2K|\x1b\[1A|\n|$|[0-9,]+ of )"
)
"""Styles, and what moves the cursor in a live table or a counter. None of it is in MARK."""


class Stream(io.TextIOWrapper):
    """A standard stream that is, or is not, a terminal."""

    def __init__(self, content: str = "", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content.encode("utf-8", "surrogateescape")), "utf-8", newline="\n")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def written(self) -> str:
        self.flush()
        raw = self.buffer.getvalue()  # type: ignore[attr-defined]
        assert isinstance(raw, bytes)
        return raw.decode("utf-8")


def ran(*arguments: object, terminal: bool, typed: str = "") -> tuple[str, str]:
    """Run a command, and return what it prints on standard output and standard error. Both must be clean."""
    out, err = Stream(terminal=terminal), Stream(terminal=terminal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Stream(typed))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit):
            main([str(argument) for argument in arguments])
        written, complained = out.written(), err.written()
    for text in (written, complained):
        rest = RICHS_OWN.sub("", text) if terminal else text
        found = UNWANTED.search(rest)
        assert found is None, (arguments, rest[max(0, found.start() - 200) : found.end() + 100])
    if "--json" in arguments and written:
        json.loads(written)
    if not terminal:
        known = r"(longspan: |left out: |stopping |Traceback)|.*(of | to play|/\d+ tests, )"
        assert [line for line in complained.splitlines() if not re.match(known, line)] == []
        assert "Traceback" not in complained
    return written, complained


def both(kind: str, *arguments: object, typed: str = "") -> str:
    """Run a command with pipes and on a terminal."""
    said = ""
    for terminal in (False, True):
        said = said + "".join(ran(*arguments, terminal=terminal, typed=typed))
        tried(f"escape sequences: {kind}")
    return said


MODULE = f'''
from longspan import Grade, Item, Line, Reply, Scenario, Script, Table

MARK = {MARK!r}

class Parrot:
    def __init__(self, **options):
        self.options = options
    def reply(self, message):
        return Reply(MARK + message.text, trace={{"read": [{{"text": MARK}}]}})

class Bullets:
    def reply(self, message):
        return "- " + MARK + " [1]\\n- " + MARK + " [2]"

class Dying:
    def __init__(self, after="3", **options):
        self.left = int(after)
    def reply(self, message):
        self.left -= 1
        if self.left < 0:
            raise type("Odd" + MARK, (Exception,), {{}})(MARK)
        return MARK

class Unborn:
    def __init__(self, **options):
        raise OSError(5, MARK, MARK)
    def reply(self, message): ...

class Hostile(Scenario):
    """{MARK.encode("unicode_escape").decode()}"""
    name = "hostile"
    skills = ("recall",)
    at: str = ""

    def make(self, random):
        if self.at == "make":
            raise ValueError(MARK)
        return Script(facts={{MARK: MARK}}, lines=[Line(MARK + "."), Line(MARK + "?", asks=True, ideal=MARK)])

    async def play(self, stage):
        await stage.ask(MARK, ideal=MARK)
        stage.award(0.5, MARK)
        if self.at == "play":
            raise ValueError(MARK)

    def grade(self, facts, record):
        if self.at == "grade":
            raise ValueError(MARK)
        score = None if self.at == "unscored" else 0.5
        return Grade(score=score, reason=MARK, items=(Item(name=MARK, score=0.5, labels={{MARK: MARK}}, note=MARK),))

    def metrics(self, tests):
        return {{MARK: 1.0}}

    def tables(self, runs):
        if self.at == "tables":
            raise ValueError(MARK)
        cells = [MARK, MARK]
        return [Table(title=MARK, columns=cells, rows=[cells], note=MARK), Table(title=MARK, columns=cells, rows=[cells], heads=1)]
'''

AT: Final = ("nowhere", "play", "grade", "unscored", "tables")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the module `hostile`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "hostile", raising=False)
    (tmp_path / "hostile.py").write_text(MODULE, "utf-8")
    (tmp_path / "broken.py").write_text(f"raise OSError(5, {MARK!r}, {MARK!r})", "utf-8")
    return tmp_path


def hostile_run(at: str = "nowhere", agent: str = f"python:hostile:Parrot?name={MARK}") -> tuple[str, ...]:
    scenario = ("--scenario", "python:hostile:Hostile", "--set", f"hostile.at={at}", "--tests", "1", "--isolated")
    return ("run", *scenario, "--agent", agent, "--out", "runs")


def of_a_run(run: object) -> dict[str, tuple[object, ...]]:
    """Every command that reads a run, by name."""
    return {
        "list runs": ("list", "runs", "runs"),
        "show": ("show", run),
        "show a test": ("show", run, "hostile-1"),
        "show colours": ("show", run, "colours-1"),
        "score": ("score", run, "--trust"),
        "score --json": ("score", run, "--trust", "--json"),
        "replay": ("replay", run, "--trust"),
        "resume": ("resume", run, "--trust", "--yes"),
        "correct": ("score", run, "--correct", "hostile-1=1", "--why", MARK, "--by", MARK, "--trust"),
        "correct nothing": ("score", run, "--correct", f"{MARK}=1", "--why", "x", "--trust"),
        "annotate": ("summhay", "annotate", run, "--trust", "--by", MARK),
        "annotate --agreement": ("summhay", "annotate", run, "--agreement", "--trust", "--json"),
        "publish": ("publish", run, "--out", f"published{MARK}.json", "--trust"),
        "compare": ("compare", "runs"),
        "compare csv": ("compare", "runs", "--format", "csv"),
        "compare markdown": ("compare", "runs", "--format", "markdown"),
        "compare html": ("compare", "runs", "--format", "html"),
        "compare txt": ("compare", "runs", "--out", "compared.txt"),
        "export": ("export", "runs", "--format", "csv", "--out", f"exported{MARK}"),
        "replay with another": ("replay", run, "--agent", "silent", "--out", f"again{MARK}", "--trust"),
    }


def only_run() -> Path:
    (manifest,) = Path("runs").glob("*/manifest.json")
    return manifest.parent


@pytest.mark.parametrize("at", AT)
def test_hostile_scenarios_and_replies(here: Path, at: str) -> None:
    both("scenarios and replies", *hostile_run(at))
    ran(*hostile_run(at), "--json", terminal=False)
    run, *others = Path("runs").iterdir()
    for other in others:
        shutil.rmtree(other)
    commands = of_a_run(run)
    for name in commands if at == "nowhere" else sample(list(commands), at_least=4):
        assert both("scenarios and replies", *commands[name]), name
    if (compared := Path("compared.txt")).exists():
        assert not UNWANTED.search(RICHS_OWN.sub("", compared.read_text("utf-8")))


@pytest.mark.parametrize("agent", ["Dying?after=0", "Dying?after=2", "Unborn"])
def test_agents_that_fail(here: Path, agent: str) -> None:
    both("failing agents", *hostile_run("nowhere", f"python:hostile:{agent}&name={MARK}" if "?" in agent else f"python:hostile:{agent}"))
    both("failing agents", *hostile_run("nowhere", f"python:hostile:{agent}"), "--json")
    if "Unborn" not in agent:
        for run in sample(sorted(path.parent for path in Path("runs").glob("*/manifest.json"))):
            both("failing agents", "resume", run, "--trust", "--yes")
            both("failing agents", "replay", run, "--trust")
    both("failing agents", "check", "--agent", f"python:hostile:{agent}")
    both("failing agents", "ask", "--agent", f"python:hostile:{agent}", typed="Hello.\nAgain.\nAnd again.\nOnce more.\n")


def test_an_agent_that_fails_in_another_environment(here: Path) -> None:
    agent = f"python:elsewhere:Dying?interpreter={sys.executable}"
    Path("elsewhere.py").write_text(f"class Dying:\n    def reply(self, message):\n        raise OSError(5, {MARK!r})\n", "utf-8")
    assert "OWNED" in both("failing agents", "ask", "--agent", agent, typed="Hello.\n")


def test_chat_and_check_show_replies(here: Path) -> None:
    said = both("chat", "ask", "--agent", "python:hostile:Parrot", typed=f"{MARK}\n+2x\n+1h\nHello.\n")
    assert "[U+001B]]0;owned[U+0007]" in said
    both("check", "check", "--agent", f"python:hostile:Parrot?name={MARK}")
    for spec in ("python:broken:Any", f"python:{MARK}:Any", "python:hostile:" + MARK, MARK, f"silent?{MARK}={MARK}"):
        for command in ("ask", "check"):
            assert "longspan: " in both("specs", command, "--agent", spec)


def test_sweeps_with_agents_that_fail(here: Path) -> None:
    sweep = {"scenarios": ["python:hostile:Hostile", "colours"], "tests": 1, "spans": ["2k"], "set": ["hostile.at=play"]}
    sweep["agents"] = [f"python:hostile:Dying?name={MARK}", "python:hostile:Parrot"]
    Path("sweep.yaml").write_text(yaml.dump(sweep), "utf-8")
    assert "OWNED" in both("sweeps", "sweep", "sweep.yaml", "--trust", "--out", f"swept{MARK}")
    both("sweeps", "list", "runs", f"swept{MARK}")


def test_a_person_judges_hostile_summaries(here: Path) -> None:
    small = [part for name in ("documents=20", "words=100", "subtopics=1") for part in ("--set", name)]
    ran("run", "summhay", *small, "--tests", "1", "--agent", "python:hostile:Bullets", "--out", "runs", terminal=False)
    said = both("annotations", "summhay", "annotate", only_run(), "--by", MARK, typed=f"{MARK}\nf\n{MARK}\n1\nq\n")
    assert "OWNED" in said
    both("annotations", "summhay", "annotate", only_run(), "--agreement")
    both("annotations", "summhay", "annotate", only_run(), "--agreement", "--json")


def test_a_program_that_dies_with_a_message(here: Path) -> None:
    Path("dies.py").write_text(f"import sys; sys.stderr.write({MARK!r}); sys.exit(3)", "utf-8")
    Path("talks.py").write_text(f"print({MARK!r}, flush=True); input()", "utf-8")
    for program in ("dies.py", "talks.py"):
        assert "OWNED" in both("programs", "ask", "--agent", f"exec:{sys.executable} {program}", typed="Hello.\n")


@pytest.mark.parametrize("kind", ["http", "openai", "judge"])
def test_what_a_server_answers(here: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    body = json.dumps({"error": {"message": MARK, "code": MARK, "type": MARK}}).encode()
    for status, content in sample([(400, body), (401, MARK.encode()), (404, body)]):
        with Service(partial(answer, status, content)).running() as service:
            if kind == "judge":
                Path("labels.csv").write_text("statement,text,label\nA.,B.,1\nC.,D.,0\n", "utf-8")
                model = f"openai/any{MARK}?base_url={service.address}/v1&timeout=5&context=2k"
                both("servers", "calibrate", "--judge", model, "--labels", "labels.csv", "--out", f"out{MARK}")
                continue
            base = f"?base_url={service.address}/v1&context=2k&timeout=5"
            spec = service.address if kind == "http" else f"openai/any{base}"
            assert "longspan: " in both("servers", "ask", "--agent", spec, typed="Hello.\n")


def answer(status: int, content: bytes, _: dict[str, Any]) -> tuple[int, bytes]:
    return status, content


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts in JSON, and of all keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key, "its key")
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*place, number))
    elif isinstance(value, str):
        yield place


def marked(value: Any, place: Sequence[Any]) -> Any:
    """JSON with a mark at the end of one text or key."""
    match place:
        case []:
            return f"{value}{MARK}"
        case [key, "its key"]:
            return {f"{name}{MARK}" if name == key else name: inner for name, inner in value.items()}
        case [key, *rest]:
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = marked(value[key], rest)
            return copy
    raise AssertionError


PROMPTS: Final = "conversations/main/prompts.jsonl"
FILES: Final = (
    "manifest.json",
    "conversations/main/journal.jsonl",
    PROMPTS,
    "grades.jsonl",
    "incidents.jsonl",
    "corrections.jsonl",
    "result.json",
)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all its files."""
    folder = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ran("run", "--scenario", "colours", "--tests", "1", "--span", "2k", "--agent", "silent", "--out", "runs", terminal=False)
        run = only_run()
        ran("score", run, "--correct", "colours-1=1", "--why", "so", "--by", "Ada", terminal=False)
        own = RunFolder(run)
        lines = [
            {
                "of": own.owner().named,
                "conversation": "main",
                "type": "agent_error",
                "error": "it broke",
                "traceback": "line 1",
                "stderr": "line 2",
            },
            {"conversation": "", "type": "judge_error", "about": "0" * 64, "error": "no answer"},
        ]
        write_lines(run / "incidents.jsonl", lines)
        prompt = {
            "of": own.owner("main").named,
            "turn": 0,
            "sent_at": "2024-01-01T09:00:00",
            "model": "a/b",
            "for": "reply",
            "new": [["user", "Hm?"]],
            "messages": [[0, 0]],
        }
        write_lines(run / PROMPTS, [prompt])
    return folder / run


def forgeries(run: Path) -> list[tuple[str, int, tuple[Any, ...]]]:
    """The file, the line and the place of every text in a run's files; of a long journal, the lines of one of each type."""
    found = []
    for file in FILES:
        content = (run / file).read_text("utf-8")
        seen: set[str] = set()
        for number, line in enumerate(content.splitlines() if file.endswith("l") else [content]):
            value = json.loads(line)
            if str(value.get("type")) not in seen:
                found += [(file, number, place) for place in leaves(value)]
            if file.endswith("journal.jsonl"):
                seen.add(str(value["type"]))
    return found


def test_forged_run_folders(here: Path, played: Path) -> None:
    target = here / "runs" / "forged"
    commands = list(of_a_run(target))
    cases = [(forgery, commands[number % len(commands)]) for number, forgery in enumerate(forgeries(played))]
    for (file, number, place), name in sample(cases):
        shutil.rmtree(here / "runs", ignore_errors=True)
        shutil.copytree(played, target)
        content = (target / file).read_text("utf-8")
        parts = content.splitlines() if file.endswith("l") else [content]
        parts[number] = json.dumps(marked(json.loads(parts[number]), place))
        if file.endswith("l"):
            (target / file).write_bytes(resealed("".join(part + "\n" for part in parts).encode()))
        else:
            write_json(target / file, json.loads(parts[0]))
        both("forged run folders", *of_a_run(target)[name])


def test_names_of_files_and_folders(here: Path, played: Path) -> None:
    shutil.copytree(played, here / "runs" / f"deep{MARK}\n" / f"run{MARK}\nlongspan: forged")
    shutil.copytree(played, here / "runs" / f"run{MARK}\nlongspan: forged")
    run = here / "runs" / f"run{MARK}\nlongspan: forged"
    for command in sample(list(of_a_run(run).values()), at_least=6):
        both("names of files", *command)
    (run / "manifest.json").write_text("{")
    for command in sample(list(of_a_run(run).values()), at_least=6):
        both("names of files", *command)


def test_marked_arguments(here: Path) -> None:
    """Every option and every argument of every command."""
    top: Any = typer.main.get_command(whole_app())
    commands = {(name,): command for name, command in top.commands.items() if not hasattr(command, "commands")}
    commands |= {(name, inner): c for name, g in top.commands.items() if hasattr(g, "commands") for inner, c in g.commands.items()}
    cases = []
    for name, command in commands.items():
        needed = [param for param in command.params if param.required]
        for param in command.params:
            if not param.is_flag if param.param_type_name == "option" else True:
                given: list[str] = []
                for each in [*needed, param] if param not in needed else needed:
                    value = MARK if each is param else "1"
                    given += [value] if each.param_type_name == "argument" else [f"{each.opts[0]}={value}"]
                cases.append((*name, *given))
        cases.append((*name, f"--{MARK}"))
    cases += [(MARK,), ("list", MARK)]
    for case in sample(cases):
        both("arguments", *case)
        for made in here.iterdir():  # `view` would serve it
            if made.is_dir():
                shutil.rmtree(made)


TEXTS: Final[dict[str, Callable[[Path, str], tuple[object, ...]]]] = {
    "suite.yaml": lambda path, judge: ("run", path, "--agent", "silent", "--trust"),
    "sweep.yaml": lambda path, judge: ("sweep", path, "--trust", "--out", "swept"),
    "labels.csv": lambda path, judge: ("calibrate", "--judge", judge, "--labels", path),
    "labels.jsonl": lambda path, judge: ("calibrate", "--judge", judge, "--labels", path),
    "summaries.jsonl": lambda path, judge: ("cream", "arena", path, "--judge", judge, "--out", "arena"),
    "published.json": lambda path, judge: ("publish", "runs/run", "--verify", path),
    "log.jsonl": lambda path, judge: ("import", "goodai-log", path, "--out", "imported"),
    "filler.json": lambda path, judge: ("run", "--scenario", "colours", "--agent", "silent", "--filler", path),
    "chapters.json": lambda path, judge: ("run", "--scenario", "chapterbreak", "--agent", "silent", "--data", f"chapterbreak={path}"),
}


def contents(played: Path) -> list[tuple[str, str]]:
    """Files that people give, each with a mark in one place."""
    suite = {"name": "mine", "title": "Mine", "scenarios": {"colours": {"changes": 3}}, "each": {"colours": 1}}
    sweep = {"scenarios": ["colours"], "tests": 1, "spans": ["2k"], "agents": ["silent", "notebook?window=8k"], "placement": "early"}
    label = {"statement": "A.", "text": "B.", "label": "1", "annotator": "Ada"}
    summary = {"source": "a", "system": "b", "summary": "c"}
    found = [(name, yaml.dump(marked(value, p))) for name, value in (("suite.yaml", suite), ("sweep.yaml", sweep)) for p in leaves(value)]
    found += [(name, json.dumps(marked(v, p))) for name, v in (("labels.jsonl", label), ("summaries.jsonl", summary)) for p in leaves(v)]
    found += [("labels.csv", f"statement{MARK},text,label\nA,B,1\n"), ("labels.csv", f"statement,text,label\nA,B,{MARK}\n")]
    found += [(name, f'{{"{MARK}": [') for name in TEXTS] + [(name, MARK) for name in TEXTS]
    return found + [(name, json.dumps([{MARK: MARK}])) for name in TEXTS]


def test_files_that_are_given(here: Path, played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    shutil.copytree(played, here / "runs" / "run")
    ran("publish", "runs/run", "--out", "proper.json", terminal=False)
    proper = json.loads(Path("proper.json").read_text("utf-8"))
    cases = contents(played) + [("published.json", json.dumps(marked(proper, place))) for place in leaves(proper)]
    with Service(partial(answer, 400, b"{}")).running() as service:
        judge = f"openai/any?base_url={service.address}/v1&context=2k&timeout=5"
        for name, text in sample(cases, at_least=20):
            Path(name).write_text(text, "utf-8")
            both("files that are given", *TEXTS[name](Path(name), judge))
            for folder in ("swept", "arena"):
                shutil.rmtree(folder, ignore_errors=True)


OBSERVING: Final = f"""
import fcntl, sys, termios
from datetime import datetime
import trio
from longspan.agents.outside.human import Human
from longspan.simulator.contract.messages import Message
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
trio.run(Human().observe, Message({MARK!r}, datetime(2024, 1, 1, 9), "c-0"), {MARK!r})
"""


def test_a_person_who_is_the_agent() -> None:
    """Their terminal is written to directly."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", OBSERVING], stdin=theirs, start_new_session=True, check=True)
        shown = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    tried("escape sequences: a person's terminal")
    assert not UNWANTED.search(shown)
    assert shown.count("\n") == 3
