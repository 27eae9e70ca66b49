"""Answers that a system gave elsewhere are scored as a run that is marked as not played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longspan.simulator.cli import run_command
from longspan.simulator.results.result import Result

LOG = [
    {"session": "a", "at": "2024-03-01T10:00", "turns": [{"id": "t1", "speaker": "user", "text": "My cat is called Olive."}]},
    {"session": "b", "at": "2024-03-08T10:00", "turns": [{"id": "t2", "speaker": "user", "text": "I moved to Lisbon."}]},
    {"question": "What is my cat called?", "answer": "Olive", "id": "cat", "evidence": ["t1"]},
    {"question": "Where do I live?", "answer": "Lisbon", "id": "home", "evidence": ["t2"]},
    {"question": "What is my dog called?", "answerable": False, "id": "dog"},
]
GIVEN = [
    {"id": "cat", "answer": "Olive", "retrieved": ["t1", "t2"]},
    {"question_id": "1/home", "hypothesis": "Lisbon", "retrieved": [["t1"], "a"]},
    {"id": "history-1-q002", "answer": "You never told me about a dog."},
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "log.jsonl", LOG)


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def score(answers: Path, log: Path, out: Path) -> int:
    return run_command(["score", "--answers", str(answers), "--questions", str(log), "--agent", "mine", "--out", str(out)])


def result_of(run: Path) -> Result:
    return Result.model_validate({name: value for name, value in json.loads((run / "result.json").read_text()).items() if name != "sum"})


def test_every_form_gives_the_same_run(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = "id,answer,retrieved\ncat,Olive,t1|t2\nhome,Lisbon,t1|a\ndog,You never told me about a dog.,\n"
    (tmp_path / "given.csv").write_text(cells, "utf-8")
    named = {"cat": {"answer": "Olive", "retrieved": ["t1", "t2"]}, "home": {"answer": "Lisbon", "retrieved": ["t1", "a"]}}
    (tmp_path / "given.json").write_text(json.dumps(named | {"dog": "You never told me about a dog."}), "utf-8")
    for number, file in enumerate([write(tmp_path / "given.jsonl", GIVEN), tmp_path / "given.csv", tmp_path / "given.json"]):
        run = tmp_path / f"run{number}"
        assert score(file, log, run) == 0, capsys.readouterr().err
        result = result_of(run)
        assert (result.agent, result.score, result.costs) == ("mine (not played)", 1, {})
        assert result.memory is not None
        assert {stage.stage: (stage.k, stage.share) for stage in result.memory.stages} == {"found": (2, 0.5), "answered": (None, 1.0)}
        assert capsys.readouterr().out.count("mine (not played)")


def test_a_question_before_a_turn_is_found_by_the_name_of_its_conversation(tmp_path: Path) -> None:
    early = {"question": "What is my cat called?", "answer": "Olive", "id": "cat", "before": "t2"}
    other = {"question": "Where do I live?", "answer": "Lisbon", "id": "cat", "evidence": ["t2"]}
    parts = [part | {"conversation": name} for name in ("a", "b") for part in LOG[:2]]
    log = write(tmp_path / "log.jsonl", [*parts, early | {"conversation": "a"}, other | {"conversation": "b"}])
    given = [{"conversation": "a", "id": "cat", "answer": "Olive", "retrieved": ["t1"]}, {"id": "b/cat", "answer": "Lisbon"}]
    assert score(write(tmp_path / "given.jsonl", given), log, tmp_path / "run") == 0
    assert result_of(tmp_path / "run").score == 1


def test_it_is_compared_gated_and_replayed_but_not_published(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, played = tmp_path / "good", tmp_path / "bad", tmp_path / "played"
    assert score(write(tmp_path / "good.jsonl", GIVEN), log, good) == score(write(tmp_path / "bad.jsonl", GIVEN[:1]), log, bad) == 0
    assert "2 of 3 questions have no answer, which is wrong: 1/home, 1/dog" in capsys.readouterr().err
    assert {test.id: test.score for test in result_of(bad).tests} == {"history-1-q000": 1, "history-1-q001": 0, "history-1-q002": 0}
    assert run_command(["replay", str(good)]) == 0
    assert run_command(["replay", str(good), "--agent", "oracle", "--out", str(played)]) == 0
    (own,) = played.iterdir()
    assert json.loads((own / "manifest.json").read_text())["imported"] is None
    assert run_command(["compare", str(good), str(bad), str(own)]) == 0
    assert "mine (not played)" in capsys.readouterr().out
    assert run_command(["compare", str(bad), "--baseline", str(good), "--fail-if-worse"]) == 3, "one conversation cannot decide"
    assert " ".join(capsys.readouterr().out.split()).count("not played by longspan") == 2
    assert run_command(["publish", str(good), "--out", str(tmp_path / "scores.json")]) == run_command(["resume", str(good)]) == 2
    edited = (good / "result.json").read_text().replace('"score": 1.0', '"score": 0.5')
    (good / "result.json").write_text(edited)
    assert run_command(["show", str(good)]) == 2
    journal = good / "conversations/history-1-q000/journal.jsonl"
    journal.write_text(journal.read_text().replace("Olive", "Clive"))
    capsys.readouterr()
    assert run_command(["replay", str(good)]) != 0
    assert "its checksum does not match" in capsys.readouterr().err


def test_half_a_surrogate_pair_is_replaced_and_noted_in_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, questions, plain = tmp_path / "chat.txt", tmp_path / "questions.jsonl", tmp_path / "plain.jsonl"
    asked = '{"question": "Who is my cat %s?", "answer": "Olive%s"}\n'
    log.write_bytes(b"3/1/24, 6:05 PM - Ada: My cat is Olive \xed\xa0\xbd\xed\xb8\x80\xed\xa0\xbd.\n" + asked.encode() % (b"\\ud83d", b""))
    questions.write_text(asked % ("", "\\udc00"), "utf-8")
    replaced = "characters that are not valid Unicode were replaced"
    assert run_command(["convert", str(log), str(plain)]) == 0
    assert replaced in capsys.readouterr().out
    assert "My cat is Olive \U0001f600\ufffd." in plain.read_text("utf-8")
    assert "Who is my cat \ufffd?" in plain.read_text("utf-8")
    given = [{"id": "1", "answer": "Olive \ud83d"}, {"id": "2", "answer": "Olive\udc00"}]
    answers = write(tmp_path / "answers.jsonl", given)  # type: ignore[arg-type]
    for path in (log, plain):
        out = tmp_path / f"{path.stem}-run"
        arguments = ["--questions", str(questions), "--data", f"history={path}", "--out", str(out)]
        assert run_command(["score", "--answers", str(answers), *arguments]) == 0
        assert f"note: {answers}: {replaced}" in capsys.readouterr().err
        assert result_of(out).data_changes[0].endswith(replaced)
        assert {test.score for test in result_of(out).tests} == {1}
        assert "\ufffd" in (out / "report.html").read_text("utf-8")


def test_ids_alone_score_the_search(log: Path, tmp_path: Path) -> None:
    found = write(tmp_path / "found.jsonl", [{"id": "cat", "retrieved": ["b"]}, {"id": "home", "retrieved": ["a", "b"]}])
    assert score(found, log, tmp_path / "run") == 0
    searched = result_of(tmp_path / "run").searched
    assert searched is not None
    assert (searched.k, searched.share, searched.questions) == (2, 0.5, 2)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no answers"),
        ('{"cat": "Olive", "hom": "x"}', "'hom': no question has the id 'hom'; did you mean home?"),
        ('{"c\\u001b[31m": "x"}', r"no question has the id 'c\x1b[31m'; ids are such as 'cat'"),
        ('{"id": "cat", "answer": "a"}\n{"id": "1/cat", "answer": "b"}', "line 2: question '1/cat' is answered twice; keep one of them"),
        ('{"nobody": {"id": "cat", "answer": "Olive"}}', "no question has the id 'nobody'"),
        ('{"id": "cat"}', "line 1: has neither an answer nor retrieved ids"),
        ('{"id": "cat", "retrieved": ["t1", "t9"]}', "retrieved: '1' has no turn and no session 't9'; ids are such as 't1'"),
        ('{"id": "cat", "retrieved": [[]]}', "retrieved.0: must not be empty"),
        ("[" * 100_000, "not JSON: nested too deeply"),
        (json.dumps({"cat": "x" * 1_000_001}), "answer: must have at most 1000000 characters"),
        ("id,answer\ncat,Olive,more\n", "row 2: has more or fewer cells than the header"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(
    content: str, problem: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given").write_text(content, "utf-8")
    assert score(tmp_path / "given", log, tmp_path / "run") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "log.jsonl"]
