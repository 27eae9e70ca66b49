"""`longspan ask`: a turn again, from the state before it, outside the journal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from tests.loopback import Server
from tests.schemas import check_output

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.subject.snapshots import Snapshots

TELLER = """
import json

class Teller:  # replies with how much it has been told and asked, and says when it was loaded
    spoiled = False

    def __init__(self, tag=""):
        self.tag, self.log = tag, []

    def reply(self, message):
        self.log.append(message.turn_id)
        return f"{self.tag}{len(self.log)} of {message.turn_id}"

    def observe(self, message, reply):
        self.log.append(message.turn_id)

    def save(self, folder):
        (folder / "log.json").write_text(json.dumps(self.log))

    def load(self, folder):
        self.log = json.loads((folder / "log.json").read_text())
        (folder / "log.json").write_text("spoiled")
        (folder / "more.json").write_text("spoiled")
        self.tag = "loaded, "

class Asked:
    def __init__(self):
        self.turns = 0

    def reply(self, message):
        self.turns += 1
        return str(self.turns)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a user's module, and runs of it: one in one conversation, one in two."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "teller_of_turns.py").write_text(TELLER)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.syspath_prepend(str(folder))
        patched.setenv("LONGSPAN_STATE_DIR", str(folder / "state"))
        for more in ([], ["--isolated"]):
            played = longspan(
                "run", "--scenario", "colours", "--tests", "2", "--agent", "python:teller_of_turns:Teller", "--out", "runs", *more
            )
            assert played == 0
        yield folder


def longspan(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exiting:
        main([str(each) for each in arguments])
    assert isinstance(exiting.value.code, int)
    return exiting.value.code


@pytest.fixture
def run(home: Path) -> Path:
    return home / "runs" / "ltm-2k-python-teller-of-turns-Teller-seed0"


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def test_a_turn_is_asked_again_from_the_snapshot_before_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(run)
    snapshot = Snapshots(RunFolder(run).snapshots("main")).turns()[-1]
    events = list(RunFolder(run).events("main"))
    asked = [event.turn for event in events if event.type == "reply" and event.asked and event.turn >= snapshot]
    reply = next(event.text for event in events if event.type == "reply" and event.turn == asked[-1])
    assert longspan("ask", run, str(asked[-1]), "--json") == 0
    found = check_output("ask", capsys.readouterr().out)
    assert found["recorded"]["text"] == reply
    assert found["again"]["text"] == f"loaded, {reply}", "it was restored, and shown the turns between"
    assert content(run) == before, "an agent that spoils its snapshot spoils a copy"


def test_without_a_snapshot_and_with_another_agent_all_turns_are_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert longspan("ask", run, "3") == 0
    same = capsys.readouterr().out
    assert "python:teller_of_turns:Teller observes the 3 turns before\n" in same
    told = dict(line.split(maxsplit=1) for line in same.splitlines())
    assert (told["recorded"], told["agree"]) == (told["again"], "word for word")
    assert told["again"].startswith("4 of ")
    assert longspan("ask", run, "3", "--agent", "python:teller_of_turns:Teller?tag=other:") == 0
    assert "again     other:4 of " in capsys.readouterr().out


def test_it_says_whether_replies_agree_and_grades_the_new_one(home: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(run)
    own = [event for event in folder.events("main") if event.type == "message" and event.test == "colours-1"]
    last, ideal = max(folder.transcripts()["main"].tests["colours-1"].definition.ideal_replies(own).items())
    for reply, agree, grade in ((ideal, "no", "100%, recorded 0%: "), ("Whatever.", "in score, not in words", "0%, recorded 0%: ")):
        with Server(reply=lambda text, reply=reply: reply).running() as server:  # type: ignore[misc]
            assert longspan("ask", run, str(last), "--agent", server.model()) == 0
            printed = capsys.readouterr().out.splitlines()
            assert f"agree     {agree}" in printed
            assert printed[-1].startswith(f"grade     {grade}")
            assert longspan("ask", run, str(last), "--agent", server.model(), "--json") == 0
        told = check_output("ask", capsys.readouterr().out)
        assert told["agree"] == {"words": False, "score": agree != "no"}
        assert told["grades"]["again"]["score"] == float(grade.partition("%")[0]) / 100


def test_turns_are_not_sent_again_unasked(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("ask", run, "3", "--agent", "python:teller_of_turns:Asked")
    monkeypatch.setattr("sys.stdin", None)
    assert longspan(*arguments) == 1
    assert longspan(*arguments, "--json") == 2
    assert "the 3 turns before are sent to it again; --yes skips the question" in capsys.readouterr().err
    assert longspan(*arguments, "--yes") == 0
    assert "again     4\n" in capsys.readouterr().out


def test_it_prints_what_was_expected_and_what_a_model_is_sent(home: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = list(RunFolder(run).events("main"))
    question = next(event for event in events if event.type == "message" and event.kind == "question")
    with Server(reply=lambda text: "Green.").running() as server:
        assert longspan("ask", run, str(question.turn), "--agent", server.model(), "--prompt") == 0
    printed = capsys.readouterr().out
    assert f"turn {question.turn} · question · {question.test} · " in printed
    assert "\nexpected  " in printed
    assert "\nagain     Green.\n" in printed
    assert "\nagree     " in printed
    assert len(server.asked) == 1, "the turns before are shown, not asked"
    assert [f"  {role}: {text}" in printed for role, text in server.asked[0].texts] == [True] * (2 * question.turn + 1)


def test_a_conversation_is_named_where_there_are_several(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    isolated = home / "runs" / "ltm-2k-isolated-python-teller-of-turns-Teller-seed0"
    assert longspan("ask", isolated, "1") == 2
    assert "has 2 conversations: name one with --conversation, such as colours-1" in capsys.readouterr().err
    assert longspan("ask", isolated, "1", "--conversation", "colours-2") == 0
    assert "turn 1 · line · colours-2 · " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["9999"], "it has no turn 9999"),
        (["-1"], "-1"),
        (["1", "--conversation", "mine"], "has no conversation 'mine'; it has main"),
        (["1", "--agent", "oracle"], "oracle gets its replies from a test"),
        (["1", "--agent", "no-such-kind"], "no-such-kind"),
    ],
)
def test_what_cannot_be_asked_is_an_error(arguments: list[str], error: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert longspan("ask", run, *arguments) == 2
    assert error in capsys.readouterr().err


def test_a_strangers_agent_is_not_run_unasked(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "from a stranger")
    assert longspan("ask", tmp_path / "from a stranger", "1") == 2
    assert "names code to run: python:teller_of_turns:Teller; --trust runs it" in capsys.readouterr().err
    assert longspan("ask", tmp_path / "from a stranger", "1", "--agent", "silent") == 0
    assert longspan("ask", tmp_path / "from a stranger", "1", "--trust") == 0
