"""Questions in a file of their own, about a log that stays as it is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import longspan
from longspan.scenarios.histories.formats.conversion import convert_log
from longspan.scenarios.histories.formats.reading import read_log
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import run_command

LOG = [
    {"role": "user", "content": "I adopted a cat. Her name is Olive.", "created_at": "2024-03-01T18:05:00Z"},
    {"role": "assistant", "content": "Congratulations to you and Olive!"},
    {"role": "user", "content": "Olive caught her first mouse today.", "created_at": 1712914200},
    {"role": "assistant", "content": "Well done, Olive!"},
]
CALLED = {"question": "What is my cat called?", "answer": "Olive", "evidence": ["HER NAME is\n Olive"]}
WHEN = {"question": "When did she catch a mouse?", "answer": "12 April 2024", "kind": "time", "evidence": ["2:1"]}
DOG = {"question": "What is my dog called?", "answerable": False}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return lines(tmp_path / "log.jsonl", LOG)


def lines(path: Path, values: list[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def asked(log: Path, questions: Path) -> list[tuple[str, str | None, tuple[str, ...], bool]]:
    (history,) = read_log(log, questions=questions)
    return [(each.text, each.answer, each.evidence, each.answerable) for each in history.questions]


def test_every_form_of_a_file_asks_the_same(log: Path, tmp_path: Path) -> None:
    expected = [
        ("What is my cat called?", "Olive", ("1:1",), True),
        ("When did she catch a mouse?", "12 April 2024", ("2:1",), True),
        ("What is my dog called?", None, (), False),
    ]
    given = [CALLED, WHEN, DOG]
    assert asked(log, lines(tmp_path / "lines.jsonl", given)) == expected
    (tmp_path / "list.json").write_text(json.dumps(given, indent=1), "utf-8")
    assert asked(log, tmp_path / "list.json") == expected
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress((tmp_path / "lines.jsonl").read_bytes()))
    assert asked(log, tmp_path / "packed.jsonl.gz") == expected
    assert asked(log, lines(tmp_path / "single.jsonl", [{**CALLED, "evidence": "Her name is Olive."}, WHEN, DOG])) == expected
    rows = ["question;answer;kind;evidence;answerable", "What is my cat called?;Olive;;her name is olive;"]
    rows += ["When did she catch a mouse?;12 April 2024;time;2:1;yes", "What is my dog called?;;;;no"]
    (tmp_path / "table.csv").write_text("\ufeff" + "\r\n".join(rows), "utf-8")
    assert asked(log, tmp_path / "table.csv") == expected


def test_they_join_the_questions_of_the_log(tmp_path: Path) -> None:
    log = lines(tmp_path / "log.jsonl", [*LOG, WHEN])
    (history,) = read_log(log, questions=lines(tmp_path / "more.jsonl", [CALLED]))
    assert [(each.id, each.text) for each in history.questions] == [("1", WHEN["question"]), ("2", CALLED["question"])]


def test_questions_dated_before_the_end_of_the_log_are_remarked(log: Path, tmp_path: Path) -> None:
    dated = [CALLED | {"at": "2024-01-01T09:00"}, WHEN | {"at": "2024-03-10T09:00+02:00"}, DOG | {"at": "2024-04-12T09:30"}]
    (history,) = read_log(log, questions=lines(tmp_path / "q.jsonl", dated))
    remark = "asked after the whole log, although dated before its last session (2024-04-12 09:30:00): 1, 2"
    assert history.remarks == (remark,)
    assert list(convert_log(lines(tmp_path / "all.jsonl", [*LOG, *dated]), tmp_path / "plain.jsonl"))[1:] == [remark]
    (again,) = read_log(tmp_path / "plain.jsonl")
    assert again.remarks == (remark,)


def test_a_question_names_its_conversation_if_there_are_several(tmp_path: Path) -> None:
    several = [{**message, "conversation": name} for name in ("ada", "ben", "cleo") for message in LOG]
    log = lines(tmp_path / "log.jsonl", several)
    found = list(read_log(log, questions=lines(tmp_path / "q.jsonl", [{**CALLED, "conversation": "ben"}])))
    assert [(history.id, len(history.questions)) for history in found] == [("ben", 1)], "the others have no questions"
    with pytest.raises(InputError, match=r"q\.jsonl, line 1: there is no conversation 'bem'; did you mean ben\?"):
        list(read_log(log, questions=lines(tmp_path / "q.jsonl", [{**CALLED, "conversation": "bem"}])))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no questions"),
        ('{"role": "user", "content": "x"}', "line 1: must be a question such as"),
        ('{"question": "Who?"}', "line 1: needs an answer or a rubric"),
        ('{"question": "Who?", "answer": "Olive", "evidence": ["olive"]}', "is said in several turns (1:1, 1:2, 2:1): name one"),
        ('{"question": "Who?", "answer": "Pip", "evidence": ["Pip"]}', "is neither the id nor a part of a turn"),
        ('{"question": "Who?", "answer": "Pip", "evidence": [" "]}', "is neither the id nor a part of a turn"),
        ('{"question": "Who?", "answr": "Pip"}', "answr"),
        ("question,answer\nWho?,Olive,extra", "row 2: has more or fewer cells than the header"),
        ('question,answer\n"Who?,Olive', "not a CSV table"),
        ("text,role\nHello,user", "row 2: must be a question such as"),
        ('{"question": "Who?", "answer": "A", "id": "1"}\n{"question": "Who?", "answer": "A", "id": "1"}', "its id '1' is also the id of"),
    ],
)
def test_a_fault_is_one_line(log: Path, tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(content, "utf-8")
    with pytest.raises(InputError) as caught:
        list(read_log(log, questions=file))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_asks_them_and_notices_when_they_change(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "q.jsonl", [CALLED, WHEN])
    arguments = [
        "run",
        "history",
        "--data",
        f"history={log}",
        "--data",
        f"questions={file}",
        "--agent",
        "oracle",
        "--out",
        str(tmp_path / "a"),
    ]
    assert run_command(arguments) == 0
    played = longspan.load(tmp_path / "a")
    assert [test["score"] for test in played.tests] == [1.0, 1.0]
    lines(file, [{**CALLED, "answer": "Pip"}, WHEN])
    assert run_command(["replay", str(played.folders[0])]) == 2
    assert "q.jsonl: changed since the run was created" in capsys.readouterr().err


def test_questions_need_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "q.jsonl", [CALLED])
    assert run_command(["run", "history", "--data", f"questions={file}", "--out", str(tmp_path / "a")]) == 2
    assert "questions are asked about a log: --data history=FILE names it" in capsys.readouterr().err
