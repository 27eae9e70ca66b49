"""Files of one run in the folder of another: every command says whose they are, or does not need them and says what it said before."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import trio

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.subject.prompt_log import PromptLog, PromptMessage
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.trust import vouch_for
from tests.attack import ALL, tried
from tests.attack.test_damage import commanded, judging, page, played, work_on

pytestmark = pytest.mark.usefixtures("openai_key")

MINE: Final = "mine"

OTHERS: Final = {"another seed": {"seed": 2}, "another agent": {"agent": "notebook"}, "the same again": {}}
"""How the other runs differ from it."""

FIRST, SECOND = "conversations/summhay-1-1", "conversations/summhay-1-2"

FILES: Final = (
    "result.json",
    "grades.jsonl",
    "judgements.jsonl",
    "corrections.jsonl",
    "annotations.jsonl",
    "incidents.jsonl",
    FIRST,
    f"{FIRST}/journal.jsonl",
    f"{FIRST}/prompts.jsonl",
    "conversations",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Finished runs of two conversations, each with a judge's answers, prompts, a correction, annotations and an incident."""
    out = tmp_path_factory.mktemp("runs")
    with judging() as (suite, judge):
        for name, changed in {MINE: {}, **OTHERS}.items():
            given = {"seed": 1, "agent": "oracle", "keep_prompts": True} | changed
            played(out, name, RunSettings(suite=suite, span=2000, judge=judge, **given))
            _work_on(RunFolder(out / name))
        yield out


def _work_on(run: RunFolder) -> None:
    """Put into a run what people and models do."""
    vouch_for(run.manifest)
    for id in run.manifest.conversations:
        PromptLog(run.prompts(id), run.owner(id)).add("a/b", "reply", [PromptMessage("user", "Hm?")])
    work_on(run)
    assert _commanded("publish", run.path, "--out", run.path.parent / f"{run.path.name}.json")[0] == 0


def _commanded(*arguments: object) -> tuple[int, str]:
    """Run a command. Return its exit code and what it printed."""
    code, out, err = commanded(*arguments)
    return code, out + err


def _viewed(run: Path) -> tuple[int, str]:
    """What the pages of `longspan view` show."""
    paths = ["/", f"/runs/{run.name}/report", f"/compare?run={run.name}", f"/runs/{run.name}/annotate"]
    seen = [trio.run(page, run.parent, path) for path in paths]
    return max(status for status, _ in seen), "".join(text for _, text in seen)


COMMANDS: Final[dict[str, Callable[[Path], tuple[int, str]]]] = {
    "score": lambda run: _commanded("score", run, "--json"),
    "score --before-damage": lambda run: _commanded("score", run, "--before-damage", "--json"),
    "replay": lambda run: _commanded("replay", run, "--json"),
    "resume": lambda run: _commanded("resume", run, "--yes", "--trust", "--json"),
    "correct": lambda run: _commanded("score", run, "--correct", "summhay-1-2=0.5", "--why", "so", "--by", "Ada"),
    "publish": lambda run: _commanded("publish", run, "--out", run.parent / "published.json"),
    "verify": lambda run: _commanded("publish", run, "--verify", run.parent / "mine.json"),
    "show": lambda run: _commanded("show", run, "summhay-1-1"),
    "compare": lambda run: _commanded("compare", run),
    "export": lambda run: _commanded("export", run, "--format", "csv", "--out", run.parent / "exported"),
    "plot": lambda run: _commanded("plot", run, "--figure", "card", "--out", run.parent / "card.svg"),
    "list runs": lambda run: _commanded("list", "runs", run.parent),
    "view": _viewed,
}


class Case(NamedTuple):
    other: str
    file: str
    command: str


CASES: Final = [*map(Case._make, product(OTHERS, FILES, COMMANDS)), *(Case(MINE, FIRST, command) for command in COMMANDS)]
"""The last are of another conversation of the same run."""

STEP: Final = 11
"""CI tries one in so many, so that each file meets other commands."""


def _needs(case: Case) -> bool:
    """Whether a command needs the file's content."""
    match case.file:
        case "result.json":
            return case.command in ("compare", "export", "list runs", "plot", "view")
        case "annotations.jsonl":
            return case.command == "view"
        case "grades.jsonl" | "judgements.jsonl" | "corrections.jsonl" | "incidents.jsonl":
            return case.command in ("score", "score --before-damage", "replay", "resume")
    return not case.file.endswith("prompts.jsonl")


def test_a_file_of_another_run_is_told_or_changes_nothing(runs: Path, tmp_path: Path) -> None:
    before: dict[str, tuple[int, str]] = {}
    tried_commands: set[str] = set()
    for case in CASES if ALL else CASES[::STEP]:
        other = RunFolder(runs / case.other)
        source = runs / case.other / (SECOND if case.other == MINE else case.file)
        if case.command not in before:
            before[case.command] = _tried(runs, tmp_path, case.command, None, "")
            assert before[case.command][0] == (200 if case.command == "view" else 0), before[case.command]
        code, said = _tried(runs, tmp_path, case.command, source, case.file)
        squeezed = "".join(said.split())
        names = {"summhay-1-1", "summhay-1-2"} if case.other == MINE else _digests(other, RunFolder(runs / MINE))
        told = all(name in squeezed for name in names) and ("ofanotherrun," in squeezed or "itisofconversation" in squeezed)
        assert told or (code, said) == before[case.command], (case, code, said[-2000:])
        assert told or not _needs(case), (case, said)
        assert "Traceback" not in said
        tried(f"foreign files: {case.other if case.other != MINE else 'another conversation'}")
        tried_commands.add(case.command)
    assert tried_commands == COMMANDS.keys()


def _digests(*runs: RunFolder) -> set[str]:
    return {str(run.manifest.run_name).partition(" ")[0] for run in runs}


def _tried(runs: Path, tmp_path: Path, command: str, source: Path | None, file: str) -> tuple[int, str]:
    """Run a command on a copy of the run with a file of another in it."""
    out = tmp_path / "out"
    shutil.copytree(runs / MINE, out / MINE)
    shutil.copy(runs / "mine.json", out)
    if source is not None and source.is_dir():
        shutil.rmtree(out / MINE / file)
        shutil.copytree(source, out / MINE / file)
    elif source is not None:
        shutil.copy(source, out / MINE / file)
    code, said = COMMANDS[command](out / MINE)
    shutil.rmtree(out)
    return code, re.sub(r"\d+ (second|minute)s? ago|[\d.]+ ?m?s\b", "", said)
