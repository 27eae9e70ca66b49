"""Links and named pipes in every place of every folder that longspan owns: nothing outside changes, and no command waits or crashes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest
import trio

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.attack import sample, tried
from tests.loopback import Server
from tests.scenarios.cream.judges import by_sentences, lines
from tests.scenarios.summhay.test_write import TOPIC, Author

pytestmark = pytest.mark.usefixtures("openai_key")

NAME: Final = "run"
PHOTOS: Final = ("20240617", "00000001", ".20240617.partial")
"""Folders outside, named like snapshots."""

SWEEP: Final = "suites: [ltm]\nscenarios: [colours, jokes]\ntests: 2\nagents: [notebook]\nspans: [2000]\nseeds: [0]\n"
WRITTEN: Final = [f"topic={TOPIC}", "subtopics=2", "insights=3", "documents=6", "words=110", "name=rye"]
JUDGED: Final = [{"question": f"Question {at}?", "reference": "yes", "response": "no", "label": 5} for at in range(2)]


class World(NamedTuple):
    """A folder with runs, a sweep, a calibration, an arena and written data, which all continue or start again without asking a model
    anything, and a server that would answer.
    """

    folder: Path
    server: Server

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def run(self) -> Path:
        return self.runs / NAME

    def copied(self, to: Path) -> World:
        shutil.copytree(self.folder, to, symlinks=True)
        return World(to, self.server)


def command(*arguments: str | Path) -> int | str | None:
    """Run a command in this process and return its exit code. What it raises, other than its exit, is a traceback."""
    with pytest.raises(SystemExit) as left:
        main(list(map(str, arguments)))
    return left.value.code


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(reply=by_sentences).running() as server:
        yield server


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, server: Server) -> World:
    folder = tmp_path_factory.mktemp("world")
    world = World(folder, server)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "sk-nothing")
        suite = load_suite("ltm+summhay").apply_changes(
            ["summhay.documents=20", "summhay.words=100", "summhay.subtopics=1"], [], ["colours", "jokes", "summhay"], 2
        )
        (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=2_000, seed=1, agent="notebook"), world.runs)])
        outcome.folder.rename(world.run)
        assert command("publish", world.run, "--out", folder / "published.json") == 0
        interrupt(RunFolder(world.run))
        shutil.copytree(world.run, world.runs / "other")
        (folder / "sweep.yaml").write_text(SWEEP)
        assert command(*sweep(world)) == 0
        (made,) = (path.parent for path in (folder / "sweep").glob("*/manifest.json"))
        interrupt(RunFolder(made))
        lines(folder / "summaries.jsonl", {"monday": {"long": "Anna leads. The budget grew.", "short": "The budget grew."}})
        assert command(*arena(world)) == 0
        (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in JUDGED))
        server.reply = lambda prompt: "It is so. \\boxed{5}"
        assert command(*calibrate(world)) == 0
        server.reply = Author()
        assert command(*write(world)) == 0
    return world


def interrupt(run: RunFolder) -> None:
    """Cut off the end of a run's journal, so that the newer of its snapshots is ahead of the journal."""
    _, newest = Snapshots(run.snapshots("main")).turns()
    kept: list[bytes] = []
    for line in run.journal("main").read_bytes().splitlines(keepends=True):
        if sum(b'"type":"reply"' in other for other in [*kept, line]) == newest:
            break
        kept.append(line)
    run.journal("main").write_bytes(b"".join(kept))


def sweep(world: World) -> list[str | Path]:
    return ["sweep", world.folder / "sweep.yaml", "--out", world.folder / "sweep", "--json"]


def arena(world: World) -> list[str | Path]:
    return ["cream", "arena", world.folder / "summaries.jsonl", "--judge", world.server.model(), "--out", world.folder / "arena"]


def calibrate(world: World) -> list[str | Path]:
    labels = world.folder / "labels.jsonl"
    return ["calibrate", "--judge", world.server.model(), "--labels", labels, "--rubric", "elitr-ten", "--out", world.runs]


def write(world: World) -> list[str | Path]:
    settings = [part for given in WRITTEN for part in ("--set", given)]
    return ["summhay", "write", "--writer", world.server.model(), "--out", world.folder / "data", *settings]


def visit(world: World) -> None:
    """Open every page of the view, follow the run, and send a form."""
    from longspan.simulator.pages.view.following import LiveRuns
    from longspan.simulator.pages.view.pages import Pages
    from longspan.simulator.pages.view.run_list import RunList

    async def request(app: Any, path: str, form: bytes = b"", query: str = "") -> None:
        messages = [{"type": "http.request", "body": form, "more_body": False}]
        status: list[int] = []
        enough = trio.CancelScope()

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop(0)
            await trio.sleep_forever()
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            status.extend([message["status"]] if "status" in message else [])
            if not message.get("more_body") or b"event: status" in message.get("body", b""):
                enough.cancel() if message["type"] == "http.response.body" else None

        headers = [(b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", str(len(form)).encode())]
        scope = {"type": "http", "http_version": "1.1", "method": "POST" if form else "GET", "path": path, "raw_path": path.encode()}
        scope |= {"query_string": query.encode(), "headers": headers, "root_path": "", "scheme": "http", "server": ("127.0.0.1", 1)}
        with enough:
            await app(scope, receive, send)
        assert status[0] < 500

    async def all_pages() -> None:
        async with trio.open_nursery() as nursery:
            app = Pages(RunList(world.runs), LiveRuns(nursery)).app()
            for path in ("", *(f"runs/{NAME}/{page}" for page in ("report", "live", "events", "annotate"))):
                await request(app, f"/{path}")
            await request(app, "/compare", query=f"run={NAME}")
            form = {"by": "Ada", "test": "summhay-1-1", "claim": "i1-1", "coverage": "full", "bullet": "1"}
            await request(app, f"/runs/{NAME}/annotate", urlencode(form).encode())
            nursery.cancel_scope.cancel()

    trio.run(all_pages)


COMMANDS: Final[dict[str, Callable[[World], Any]]] = {
    "resume": lambda world: command("resume", world.run, "--yes", "--json"),
    "replay": lambda world: command("replay", world.run),
    "replay --agent": lambda world: command("replay", world.run, "--agent", "silent", "--json"),
    "score": lambda world: command("score", world.run),
    "correct": lambda world: command("score", world.run, "--correct", "colours-1=1", "--why", "so", "--by", "Ada"),
    "annotate": lambda world: command("summhay", "annotate", world.run, "--agreement"),
    "publish": lambda world: command("publish", world.run, "--out", world.folder / "again.json"),
    "verify": lambda world: command("publish", world.run, "--verify", world.folder / "published.json"),
    "compare": lambda world: command("compare", world.runs),
    "plot": lambda world: command("plot", world.run, "--figure", "bars", "--out", world.folder / "bars.svg"),
    "export": lambda world: command("export", world.runs, "--format", "jsonl", "--out", world.folder / "tables"),
    "list runs": lambda world: command("list", "runs", world.runs),
    "arena": lambda world: command("cream", "arena", world.runs, "--judge", world.server.model(), "--out", world.folder / "arena"),
    "prune": lambda world: command("prune", world.run, "--pack", "--yes"),
    "prune --replicates": lambda world: command("prune", world.runs, "--replicates", "--yes"),
    "rerun": lambda world: command("replay", world.run, "--only-failed", "--json"),
    "view": visit,
}
"""Every command that takes a run or a folder of runs."""

TAKE_A_FOLDER: Final = ("compare", "export", "list runs", "arena", "prune --replicates", "view")
"""Commands that take a folder of runs. For the others the run's folder may be a link, since the user names it."""

LOGS: Final = ("grades", "incidents", "corrections", "annotations", "judgements")
MAIN: Final = "conversations/main"
IN_A_RUN: Final = [
    *("", "manifest.json", "result.json", "report.html", ".lock", *(f"{name}.jsonl" for name in LOGS)),
    *(".manifest.json.partial", ".result.json.partial", ".report.html.partial"),
    *(
        "conversations",
        MAIN,
        f"{MAIN}/journal.jsonl",
        f"{MAIN}/agent.log",
        f"{MAIN}/prompts.jsonl",
        f"{MAIN}/snapshots.jsonl",
        f"{MAIN}/snapshots",
    ),
    *(f"{MAIN}/snapshots/{name}" for name in ("OLD", "NEW", ".NEW.partial", "NEW/notebook.json", "OLD/notebook.json")),
]
"""Every place in a run's folder. OLD and NEW are its snapshots."""

IN_A_STORE: Final = (".lock", "judgements.jsonl", "incidents.jsonl")

OWNERS: Final[dict[str, tuple[str, Callable[[World], list[str | Path]], list[str]]]] = {
    "sweep": ("sweep", sweep, [".lock", "sweep.json", ".sweep.json.partial", *(f"RUN/{place}".rstrip("/") for place in IN_A_RUN)]),
    "calibrate": (
        "runs",
        calibrate,
        ["calibrations", "calibrations/ONLY", *(f"calibrations/ONLY/{name}" for name in ("calibration.json", *IN_A_STORE))],
    ),
    "arena": (
        "arena",
        arena,
        [*IN_A_STORE, "completeness-16.json", "completeness-16.html", ".completeness-16.json.partial"],
    ),
    "write": ("data", write, [*IN_A_STORE, "topic_rye.json", ".topic_rye.json.partial"]),
}
"""The other folders: their names, the commands that continue there, and the places in them."""

DEEDS: Final = ("a link to a file", "a link to a folder", "a dangling link", "a link to what was there", "a pipe")


def found(folder: Path, place: str) -> Path:
    """The path of a place in a folder."""
    snapshots = sorted(path.name for path in folder.glob("**/main/snapshots/[0-9]*"))
    for name, path in zip(("OLD", "NEW"), snapshots, strict=False):
        place = place.replace(name, path)
    for name, pattern in (("RUN", "*/manifest.json"), ("ONLY", "calibrations/*/calibration.json")):
        place = place.replace(name, next((path.parent.name for path in folder.glob(pattern)), name))
    return folder / place


def attack(path: Path, deed: str, outside: Path) -> None:
    """Move a file outside, and put a link or a pipe in its place."""
    for name in PHOTOS:
        (outside / "photos" / name).mkdir(parents=True)
        (outside / "photos" / name / "beach.jpg").write_bytes(b"beach")
    (outside / "diary.jsonl").write_bytes(b'{"seq":0,"dear":"diary"}\n')
    there = outside / "there"
    if os.path.lexists(path):
        path.rename(there)
        if there.is_dir():
            shutil.copytree(outside / "photos", there, dirs_exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(b'{"turn": 1}\n')
    targets = {"a link to a file": "diary.jsonl", "a link to a folder": "photos", "a dangling link": "nothing"}
    if deed == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(outside / targets.get(deed, "there"))


def state(folder: Path) -> dict[str, str]:
    """Every name below a folder, with the digest of what it holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def harmless(world: World, path: Path, deed: str, act: Callable[[World], Any], outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attack(path, deed, outside)
    before = state(outside)
    code = act(world)
    said = capsys.readouterr()
    assert code in (None, 0, 1, 2), said
    assert "Traceback" not in said.out + said.err
    assert state(outside) == before


ON_RUNS: Final = [(name, place, deed) for name in COMMANDS for place in IN_A_RUN if place or name in TAKE_A_FOLDER for deed in DEEDS]
ON_OTHERS: Final = [(owner, place, deed) for owner, (_, _, places) in OWNERS.items() for place in places for deed in DEEDS]


@pytest.mark.parametrize(("name", "place", "deed"), sample(ON_RUNS))
def test_in_a_run(name: str, place: str, deed: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = world.copied(tmp_path / "world")
    world.server.reply = by_sentences
    harmless(copy, found(copy.run, place), deed, COMMANDS[name], tmp_path / "outside", capsys)
    tried("links and pipes in a run's folder")


@pytest.mark.parametrize(("owner", "place", "deed"), sample(ON_OTHERS))
def test_in_other_folders(owner: str, place: str, deed: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = world.copied(tmp_path / "world")
    folder, arguments, _ = OWNERS[owner]
    world.server.reply = {"write": Author(), "arena": by_sentences}.get(owner, lambda prompt: "It is so. \\boxed{5}")
    harmless(copy, found(copy.folder / folder, place), deed, lambda world: command(*arguments(world)), tmp_path / "outside", capsys)
    tried("links and pipes in other folders")


# What must not happen, one by one.


def test_resume_deletes_nothing_behind_a_link(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = world.copied(tmp_path / "world")
    path = copy.run / MAIN / "snapshots"
    harmless(copy, path, "a link to a folder", COMMANDS["resume"], tmp_path / "outside", capsys)
    assert command("resume", copy.run, "--yes") == 1
    assert f"{path}: is a symbolic link; longspan follows no links inside its folders" in capsys.readouterr().err


def test_folders_that_only_look_like_snapshots_are_left_alone(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = world.copied(tmp_path / "world")
    snapshots = copy.run / MAIN / "snapshots"
    newest = max(snapshots.iterdir()).name
    for name in PHOTOS:
        shutil.copytree(snapshots / newest, snapshots / name)
    assert command("resume", copy.run, "--yes", "--json") == 0
    assert set(PHOTOS) < {path.name for path in snapshots.iterdir()}
    outcome = json.loads(capsys.readouterr().out)
    assert outcome


def test_a_snapshot_in_which_a_byte_changed_is_not_loaded(world: World, tmp_path: Path) -> None:
    copy = world.copied(tmp_path / "world")
    assert command("replay", copy.run) == 1
    snapshots = Snapshots(RunFolder(copy.run).snapshots("main"))
    old, _ = snapshots.turns()
    path = snapshots.path(old) / "notebook.json"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"turns"', b'"turms"', 1))
    assert path.read_bytes() != content
    assert command("resume", copy.run, "--yes", "--json") == 0
    assert command("replay", copy.run) == 0
    assert not path.exists()


def test_a_sweep_neither_plays_nor_deletes_behind_a_link(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = world.copied(tmp_path / "world")
    path = found(copy.folder / "sweep", "RUN")
    shutil.rmtree(path)
    half = tmp_path / "half"
    half.mkdir()
    (half / ".manifest.json.partial").write_text('{"form')
    path.symlink_to(half)
    assert command(*sweep(copy)) == 1
    assert f"{path}: is a symbolic link" in capsys.readouterr().err
    assert state(half).keys() == {".manifest.json.partial"}
    path.unlink()
    path.mkdir()
    (path / ".manifest.json.partial").mkdir()
    (path / ".manifest.json.partial" / "beach.jpg").write_bytes(b"beach")
    assert command(*sweep(copy)) == 2
    assert f"{path}: not a run, it has no manifest" in capsys.readouterr().err
    assert (path / ".manifest.json.partial" / "beach.jpg").exists()
