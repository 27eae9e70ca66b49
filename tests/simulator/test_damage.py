"""Damage is told: every file that longspan reads back has checksums, and a damaged file is neither graded nor compared unasked."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from tests.sealing import change_json

from longspan.simulator.base.errors import DamageError, InputError
from longspan.simulator.base.files import json_lines
from longspan.simulator.base.files.checksums import ChecksumError, RunningSum, add_checksum, verify_checksum
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.cli import main
from longspan.simulator.journal import events
from longspan.simulator.journal.answer_store import AnswerStore, StoredAnswer
from longspan.simulator.journal.journal import Journal, check_journal, read_journal
from longspan.simulator.journal.journal_lines import JournalLines, fields_of
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.judging.calibration import calibration_notes
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["measured", "sum", "a"]), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a correction."""
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 2)
    out = tmp_path_factory.mktemp("runs")
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, seed=1, agent="oracle"), out)]))
    return outcome.folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(made, tmp_path / "run")))


def damage(run: RunFolder, line: int) -> None:
    """Change a letter in a line of the run's journal."""
    path = run.journal("main")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"type"', b'"tyqe"')
    path.write_bytes(b"".join(lines))


def commanded(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run a command. Return its exit code and what it printed."""
    with pytest.raises(SystemExit) as leaving:
        main(list(map(str, arguments)))
    said = capsys.readouterr()
    return int(leaving.value.code or 0), said.out, said.err


# ---- checksums


@given(
    trace=st.dictionaries(st.sampled_from(["measured", "sum", "a"]), JSON, min_size=1, max_size=3),
    measured=st.booleans(),
    seed=st.randoms(),
)
def test_any_change_of_a_line_is_noticed_but_in_what_is_measured(trace: dict[str, Any], measured: bool, seed: Any) -> None:
    path = Path("journal.jsonl")
    event = events.Reply(
        turn=0, text="a", tokens=1, end=1, asked=True, trace=trace, measured={"latency_s": 0.5, "other": 2} if measured else None
    )
    line = JournalLines(path).write(event)
    assert JournalLines(path).read(line) == event
    covered = fields_of(line)
    assert json.loads(covered + b"}") == {"seq": 0, "type": "reply", "turn": 0, "text": "a", "tokens": 1, "end": 1, "asked": True} | {
        "trace": trace
    }
    place = seed.randrange(len(line) - 1)
    changed = line[:place] + bytes([line[place] ^ (1 << seed.randrange(8))]) + line[place + 1 :]
    try:
        assert JournalLines(path).read(changed).model_copy(update={"measured": None}) == event.model_copy(update={"measured": None})
        assert len(covered) < place < len(line) - 27, "only there may it go unnoticed"
    except DamageError:
        pass


def test_journals_of_equal_conversations_have_equal_checksums(run: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "cut")
    cut = RunFolder(tmp_path / "cut")
    whole = run.journal("main").read_bytes().splitlines(keepends=True)
    cut.journal("main").write_bytes(b"".join(whole[:20]))
    assert trio.run(resume_run, cut, "oracle").error is None
    again = cut.journal("main").read_bytes().splitlines(keepends=True)
    assert [line[-27:] for line in again] == [line[-27:] for line in whole]
    assert [fields_of(line) for line in again] == [fields_of(line) for line in whole]


@pytest.mark.parametrize("lost", [slice(0, 1), slice(5, 6), slice(5, 9)])
def test_no_line_is_lost_unnoticed(lost: slice, run: RunFolder) -> None:
    lines = run.journal("main").read_bytes().splitlines(keepends=True)
    del lines[lost]
    run.journal("main").write_bytes(b"".join(lines))
    for read in (lambda path: list(read_journal(path)), check_journal, Journal):
        with pytest.raises(DamageError, match=rf"main/journal\.jsonl: damaged at line {lost.start + 1}: its checksum does not match"):
            read(run.journal("main"))


def test_lines_are_appended_to_a_chain(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    JsonLines(path).append({"n": 1}, {"n": 2, "sum": "mine", "measured": {}})
    with path.open("ab") as file:
        file.write(b'{"n":')  # torn by a crash
    JsonLines(path).append({"n": "ü\ud800"})
    assert JsonLines(path).read() == [{"n": 1}, {"n": 2, "sum": "mine", "measured": {}}, {"n": "ü\ud800"}]
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"n":2', b'"n":3'))
    with pytest.raises(DamageError, match=r"some\.jsonl: damaged at line 2: its checksum does not match; restore"):
        JsonLines(path).read()
    path.write_bytes(content + b"{}\n")
    for touch in (JsonLines(path).read, lambda: JsonLines(path).append({"n": 4})):
        with pytest.raises(DamageError, match="damaged at line 4: it has no checksum"):
            touch()


@given(texts=st.lists(st.text(max_size=12), max_size=4), torn=st.binary(max_size=12), block=st.integers(1, 40))
def test_lines_are_appended_wherever_a_crash_cut_the_last_one(texts: list[str], torn: bytes, block: int) -> None:
    entries = [{"text": text} for text in texts]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_lines, "BLOCK", block)
        lines = JsonLines(Path(folder, "some.jsonl"))
        for entry in entries:
            lines.append(entry)
            with lines.path.open("ab") as file:
                file.write(torn.replace(b"\n", b""))
        lines.append({"text": "last"})
        assert lines.read() == [*entries, {"text": "last"}]


def test_appending_does_not_read_what_is_there(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "some.jsonl")
    lines.append(*[{"text": "x" * 1000}] * 5000)
    tracemalloc.start()
    try:
        lines.append({"text": "last"})
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@given(st.randoms())
def test_any_change_of_a_file_is_noticed(seed: Any) -> None:
    content = add_checksum(json.dumps({"a": 1, "text": "ü", "sum": "mine"}, indent=1, ensure_ascii=False)).encode()
    path = Path("some.json")
    assert json.loads(verify_checksum(content, path, "")) == {"a": 1, "text": "ü", "sum": "mine"}
    assert [*json.loads(content)][-1] == "sum"
    place = seed.randrange(len(content))
    for changed in (content[:place], content[:place] + b"x" + content[place:], content[:place] + content[place + 1 :]):
        with pytest.raises(InputError, match=r"^some\.json: damaged: (its checksum does not match|it has no checksum); restore it$"):
            verify_checksum(changed, path, "restore it")


def test_a_chain_is_followed_only_from_a_line_with_a_checksum() -> None:
    first, second = RunningSum(), RunningSum()
    line = first.seal(b'{"a":1')
    second.follow(line)
    assert first.seal(b'{"b":2') == second.seal(b'{"b":2')
    with pytest.raises(ChecksumError):
        second.follow(b'{"a":1}\n')


# ---- commands


COMMANDS: dict[str, Callable[[RunFolder], list[object]]] = {
    "score": lambda run: ["score", run.path],
    "replay": lambda run: ["replay", run.path],
    "resume": lambda run: ["resume", run.path, "--yes"],
    "compare": lambda run: ["compare", run.path],
    "export": lambda run: ["export", run.path, "--format", "csv", "--out", run.path.parent / "exported"],
    "publish": lambda run: ["publish", run.path, "--out", run.path.parent / "published.json"],
    "correct": lambda run: ["score", run.path, "--correct", "colours-1=1", "--why", "so"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_journal_is_named_with_its_line(command: str, run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    damage(run, 15)
    before = run.journal("main").read_bytes()
    files = {path.name for path in run.path.iterdir()} | {".lock"}
    code, out, err = commanded(capsys, *COMMANDS[command](run))
    assert {path.name for path in run.path.iterdir()} | {".lock"} == files
    assert code in (1, 2)
    assert out == ""
    assert "main/journal.jsonl: damaged at line 15: its checksum does not match; restore the file from a copy, or grade" in err
    assert err.count("\n") == 1
    assert run.journal("main").read_bytes() == before


def test_a_damaged_run_is_left_out_of_a_comparison_and_listed_as_damaged(
    made: Path, run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run, 15)
    shutil.copytree(made, run.path.parent / "good")
    code, out, _ = commanded(capsys, "compare", run.path.parent)
    assert code == 0
    assert "damaged at line 15" in " ".join(out.split())
    code, out, _ = commanded(capsys, "list", "runs", run.path.parent)
    assert code == 0
    assert "damaged at line 15" in "".join(out.split("\n"))


def test_what_is_before_the_damage_is_graded_if_asked(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    types = [event.type for event in read_journal(run.journal("main"))]
    damage(run, types.index("end") + 3)
    code, out, _ = commanded(capsys, "score", run.path, "--before-damage")
    sentence = f"the journal of main is damaged at line {types.index('end') + 3}: it is graded up to there"
    assert code == 0
    assert sentence in out
    result = read_result(run)
    assert result.damage == [sentence]
    assert sorted(str(test.status) for test in result.tests) == ["scored", "unfinished"]
    assert result.score is None
    assert sentence in (run.path / "report.html").read_text("utf-8")
    with pytest.raises(DamageError):
        grade_run(run)


@pytest.mark.parametrize("line", [1, 2])
def test_a_journal_damaged_at_its_start_is_graded_as_not_begun(line: int, run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    damage(run, line)
    assert commanded(capsys, "score", run.path, "--before-damage")[0] == 0
    assert {test.status for test in read_result(run).tests} == {"unfinished"}


def test_whole_journals_give_the_same_results_with_the_option(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run.path / "result.json").read_bytes()
    assert commanded(capsys, "score", run.path, "--before-damage")[0] == 0
    assert (run.path / "result.json").read_bytes() == before


@pytest.mark.parametrize(
    ("file", "said"),
    [("manifest.json", "result.json: it is of another run, '"), ("result.json", "its result.json does not match its manifest")],
)
def test_an_edited_file_is_damaged(file: str, said: str, run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    path = run.path / file
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    code, out, err = commanded(capsys, "compare", run.path)
    assert (code, out) == (2, "")
    assert f"{file}: damaged: its checksum does not match; " in err
    change_json(path, lambda content: None)
    assert said in commanded(capsys, "compare", run.path)[2]


def test_a_correction_that_is_lost_is_told(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert commanded(capsys, "score", run.path, "--correct", "colours-1=0.5", "--why", "so")[0] == 0
    assert RunFolder(run.path).corrections() == {"colours-1": Correction(test="colours-1", score=0.5, why="so", by=user(run))}
    assert "no grade has changed" in commanded(capsys, "score", run.path)[1]
    path = run.path / "corrections.jsonl"
    path.write_bytes(path.read_bytes()[:-1])  # as a crash leaves it
    shutil.copytree(run.path, run.path.parent / "other")
    assert "changed: colours-1 50% -> 100%\n" in commanded(capsys, "resume", run.path.parent / "other", "--yes", "--json")[2]
    assert "changed: colours-1 50% -> 100%" in commanded(capsys, "score", run.path)[1]


def user(run: RunFolder) -> str:
    return run.corrections()["colours-1"].by


@pytest.mark.parametrize(
    ("command", "file", "said"),
    [
        ("score", "manifest.json", "manifest.json: is larger than any that longspan writes"),
        ("compare", "result.json", "result.json: is larger than any that longspan writes"),
        ("score", "grades.jsonl", "grades.jsonl: is larger than any that longspan writes"),
        ("score", "judgements.jsonl", "judgements.jsonl: is larger than any that longspan writes"),
        ("score", "conversations/main/journal.jsonl", "journal.jsonl: damaged at line 1: it is longer than any event"),
    ],
)
def test_a_file_of_a_terabyte_is_not_read(
    command: str, file: str, said: str, run: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longspan.simulator.journal.journal.MAX_LINE_BYTES", 2**16)
    (run.path / file).write_bytes(b"")
    os.truncate(run.path / file, 2**40)
    code, _, error = commanded(capsys, command, run.path)
    assert code != 0
    assert said in error


def test_a_calibration_of_a_terabyte_is_not_read(run: RunFolder) -> None:
    AnswerStore.of(run).add(StoredAnswer(key="1", about="1", by="openai/m, prompt 1", answer={}))
    path = run.path.parent / "calibrations" / "mine" / "calibration.json"
    path.parent.mkdir(parents=True)
    path.touch()
    os.truncate(path, 2**40)
    assert any("calibration.json: is larger than any that longspan writes" in note for note in calibration_notes(run))
