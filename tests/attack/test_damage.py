"""Damaged files of a run against every command: either the result is as before, or one line names the fault."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trio

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.pages.view.following import LiveRuns
from longspan.simulator.pages.view.pages import Pages
from longspan.simulator.pages.view.run_list import RunList
from longspan.simulator.results.judging.annotation import Annotation, read_sheets, save_annotation
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.prompt_log import PromptLog, PromptMessage
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from tests.attack import sample, tried
from tests.loopback import Server

pytestmark = pytest.mark.usefixtures("openai_key")

JUDGED, CUT = "judged", "cut"
"""A finished run of two conversations with a judge's answers, a correction, annotations and an incident, and one that was interrupted."""


# ---- the runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the runs."""
    out = tmp_path_factory.mktemp("whole")
    with judging() as (suite, judge):
        played(out, JUDGED, RunSettings(suite=suite, span=2000, seed=1, agent="oracle", judge=judge))
        mixed = load_suite("ltm").apply_changes([], [], ["colours", "jokes"], 2)
        played(out, CUT, RunSettings(suite=mixed, span=2000, seed=1, agent="notebook"))
        run = RunFolder(out / JUDGED)
        work_on(run)
        cut = RunFolder(out / CUT)
        lines = cut.journal("main").read_bytes().splitlines(keepends=True)
        cut.journal("main").write_bytes(b"".join(lines[: len(lines) * 3 // 4]))
        for text in ("Hm?", "And now?"):
            PromptLog(cut.prompts("main"), cut.owner("main")).add("a/b", "reply", [PromptMessage("user", text)])
        for each in (run, cut):
            assert commanded("score", each.path)[0] == 0
            (each.path / "report.html").unlink()
        yield out


@contextmanager
def judging() -> Iterator[tuple[Suite, str]]:
    """A suite of summaries, two of them, and the spec of a judge that grades them."""
    with pytest.MonkeyPatch.context() as patched, Server(reply=judgement).running() as server:
        patched.setenv("OPENAI_API_KEY", "sk-nothing")
        yield (
            load_suite("summhay").apply_changes(["documents=20", "words=150", "subtopics=2", "grading=judge"], [], [], None),
            server.model(),
        )


def work_on(run: RunFolder) -> None:
    """Put into a judged run what people do, and an incident."""
    run.incident(conversation="", type="moved", error="made up")
    for test, sheet in read_sheets(run).items():
        for claim in sheet.claims:
            save_annotation(run, read_sheets(run), Annotation(test=test, claim=claim, coverage="none", bullet=None, by="Ada"))
    assert commanded("score", run.path, "--correct", "summhay-1-1=0.25", "--why", "so", "--by", "Ada")[0] == 0


def played(out: Path, name: str, settings: RunSettings) -> None:
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, out)], pages=Report))
    assert outcome.error is None
    outcome.folder.rename(out / name)


def judgement(prompt: str) -> str:
    _, insight, _, bullets, _ = re.split(r"---- [0-9a-f]{16}\n", prompt)
    found = re.findall(r"^\d+\. (.*)$", bullets, re.MULTILINE)
    at = next((number for number, bullet in enumerate(found, 1) if insight.strip() in bullet), None)
    return json.dumps({"coverage": "partial" if at and len(insight) % 2 else "full" if at else "none", "bullet": at})


# ---- what damages


def _bit(content: bytes, at: int, dice: random.Random) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :]


def _byte(content: bytes, at: int, dice: random.Random) -> bytes:
    """Another byte of the same kind, such as a digit for a digit: the damage likeliest to be read as something else."""
    kinds = (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", bytes(range(256)))
    kind = next(kind for kind in kinds if content[at] in kind)
    return content[:at] + bytes([dice.choice([other for other in kind if other != content[at]])]) + content[at + 1 :]


def _digit(content: bytes, at: int, dice: random.Random) -> bytes:
    """Another digit in place of the next one: a figure that is still one."""
    digits = [place for place, byte in enumerate(content) if byte in b"0123456789"]
    return _byte(content, next((place for place in digits if place >= at), digits[-1]), dice)


def _lines(change: Callable[[list[bytes], int], object]) -> Callable[[bytes, int, random.Random], bytes]:
    def changed(content: bytes, at: int, dice: random.Random) -> bytes:
        lines = content.splitlines(keepends=True)
        change(lines, content[:at].count(b"\n"))
        return b"".join(lines)

    return changed


DAMAGE: Final[dict[str, Callable[[bytes, int, random.Random], bytes]]] = {
    "a bit flipped": _bit,
    "a byte changed": _byte,
    "a digit changed": _digit,
    "a byte deleted": lambda content, at, dice: content[:at] + content[at + 1 :],
    "a byte inserted": lambda content, at, dice: content[:at] + bytes([dice.randrange(256)]) + content[at:],
    "cut off": lambda content, at, dice: content[:at],
    "cut off at a line": lambda content, at, dice: content[: content.rfind(b"\n", 0, at) + 1],
    "a line lost": _lines(lambda lines, at: lines.pop(at)),
    "a line twice": _lines(lambda lines, at: lines.insert(at, lines[at])),
    "a block of zeros": lambda content, at, dice: content[:at] + bytes(len(content[at : at + 40])) + content[at + 40 :],
}


# ---- commands, and what of their outcome must not change


PROGRESS = re.compile(r"(judged|cut): (\d tests to play|\d/\d tests, .*)|the run is finished: .*|\S+ continues from .* and observes the .*")
"""Lines about a run that is going on."""


class Seen(NamedTuple):
    """What a command says of a run: `figures` that must not change without a word, and whether there was such a word, `told`."""

    figures: Any
    told: bool


def commanded(*arguments: object) -> tuple[int, str, str]:
    """Run a command. Return its exit code, its output, and its error, at most one line."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as leaving:
        main(list(map(str, arguments)))
    return int(leaving.value.code or 0), out.getvalue(), err.getvalue()


def _graded(*arguments: object) -> Seen:
    code, out, err = commanded(*arguments, "--json")
    if code and err:
        *progress, last = err.splitlines()
        assert last.startswith("longspan: "), err
        assert all(PROGRESS.fullmatch(line) for line in progress), err
        return Seen(None, told=True)
    (result,) = json.loads(out)
    told = code != 0 or bool(result.get("changed")) or " changed: " in err
    return Seen([result["score"], *((test["id"], test["score"], test["machine_score"]) for test in result["tests"])], told)


def _score(run: Path) -> Seen:
    return _graded("score", run)


def _score_before_damage(run: Path) -> Seen:
    seen = _graded("score", run, "--before-damage")
    return seen._replace(told=seen.told or bool(json.loads((run / "result.json").read_bytes())["damage"]))


def _replay(run: Path) -> Seen:
    return _graded("replay", run)


def _resume(run: Path) -> Seen:
    seen = _graded("resume", run, "--yes", "--trust")
    return seen._replace(told=seen.told or seen.figures[0] is None)  # its judge is no longer there


def _compare(run: Path) -> Seen:
    code, out, err = commanded("compare", run, "--format", "csv")
    return Seen(out, told=code != 0 and err.count("\n") == 1)


def _export(run: Path) -> Seen:
    out = run.parent / "exported"
    code, said, err = commanded("export", run, "--format", "csv", "--out", out)
    if code:
        return Seen(None, told=err.count("\n") == 1)
    with (out / "tests.csv").open(encoding="utf-8", newline="") as file:
        return Seen(list(csv.DictReader(file)), told="left out" in said + err)


def _list(run: Path) -> Seen:
    code, out, _ = commanded("list", "runs", run.parent)
    return Seen(re.findall(r"[\d.]+%|incomplete", out), told=code == 0 and "unreadable" in out)


def _pages(run: Path) -> Seen:
    """The list of runs, the report, the comparison and the annotations of `longspan view`."""
    figures, told = [], False
    judged = [f"/runs/{run.name}/annotate"] if run.name == JUDGED else []
    for path in ["/", f"/runs/{run.name}/report", f"/compare?run={run.name}", *judged]:
        status, text = trio.run(page, run.parent, path)
        if status == 422:
            assert "Traceback" not in text
            told = True
        else:
            assert status == 200, text
            told |= 'class="why"' in text or "no results yet" in text
            figures.append(re.findall(r'<p class="score">.*?</p>|\d\.\d\d of \d|<td class="n">[^<]*', text))
    return Seen(figures, told)


async def page(root: Path, path: str) -> tuple[int, str]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    where, _, query = path.partition("?")
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": where, "query_string": query.encode(), "headers": []}
    async with trio.open_nursery() as nursery:
        await Pages(RunList(root), LiveRuns(nursery)).app()(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()


COMMANDS: Final[dict[str, Callable[[Path], Seen]]] = {
    "score": _score,
    "score --before-damage": _score_before_damage,
    "replay": _replay,
    "resume": _resume,
    "compare": _compare,
    "export": _export,
    "list runs": _list,
    "view": _pages,
}


# ---- the attack


class Case(NamedTuple):
    run: str
    file: str
    damage: str
    command: str
    place: float
    """Where in the file, from 0 to 1."""


JUDGED_FILES: Final = (
    "manifest.json",
    "result.json",
    "grades.jsonl",
    "judgements.jsonl",
    "corrections.jsonl",
    "annotations.jsonl",
    "incidents.jsonl",
    "conversations/summhay-1-1/journal.jsonl",
    "conversations/summhay-1-2/journal.jsonl",
)

CUT_FILES: Final = (
    "manifest.json",
    "conversations/main/journal.jsonl",
    "conversations/main/snapshots",
    "conversations/main/prompts.jsonl",
)


def _cases() -> list[Case]:
    dice = random.Random(0)
    kinds = [
        *product([JUDGED], JUDGED_FILES, DAMAGE, COMMANDS),
        *(list(product([CUT], CUT_FILES, DAMAGE, ["score", "resume", "compare", "view"])) * 4),
    ]
    cases = [Case(*kind, place=dice.random()) for kind in kinds]
    # Fewer annotations than there were are told by their number, which is shown beside the agreement.
    shorter = ("cut off", "cut off at a line", "a line lost")
    return [case for case in cases if (case.file, case.command) != ("annotations.jsonl", "view") or case.damage not in shorter]


@pytest.fixture(scope="module")
def expected(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Seen]:
    """What a command says of an undamaged run."""
    known: dict[tuple[str, str], Seen] = {}

    def of(run: str, command: str) -> Seen:
        if (run, command) not in known:
            copy = Path(shutil.copytree(whole / run, tmp_path_factory.mktemp("expected") / run))
            seen = known[run, command] = COMMANDS[command](copy)
            assert not seen.told
            assert seen.figures
        return known[run, command]

    return of


@pytest.mark.parametrize("part", range(4))
def test_no_damage_changes_a_result_without_a_word(
    part: int, whole: Path, expected: Callable[[str, str], Seen], tmp_path_factory: pytest.TempPathFactory
) -> None:
    for case in sample(_cases())[part::4]:
        folder = tmp_path_factory.mktemp("damaged")
        run = Path(shutil.copytree(whole / case.run, folder / case.run))
        path = run / case.file
        if path.is_dir():  # a snapshot of several
            files = sorted(file for file in path.rglob("*") if file.is_file())
            path = files[int(case.place * 1000) % len(files)]
        content = path.read_bytes()
        at = int(case.place * len(content))
        path.write_bytes(DAMAGE[case.damage](content, at, random.Random(case.place)))
        os.utime(path)
        before = expected(case.run, case.command)
        after = COMMANDS[case.command](run)
        assert after.figures == before.figures or after.told, (case, at, before.figures, after.figures)
        tried(f"damaged files: {case.damage}")
        shutil.rmtree(folder)
