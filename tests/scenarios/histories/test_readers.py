"""Readers of recorded histories: small files of each form, wrong files, and hostile ones."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from longspan.scenarios.histories import History, Question, Session, Utterance, read_histories
from longspan.scenarios.histories.repairs import number_duplicates
from longspan.simulator.base.errors import InputError

Small = Callable[[str], tuple[str, dict[str, Any]]]
Write = Callable[[dict[str, Any]], Path]

FORMS = ("locomo", "longmemeval", "beam", "personamem", "converted", "history")


def test_longmemeval_has_a_history_for_each_question(small: Small, write: Write) -> None:
    name, files = small("longmemeval")
    two, none = read_histories(name, write(files) / "longmemeval_s.json")
    assert two == History(
        "q1",
        (
            Session("noise", datetime(2023, 5, 20, 2, 21), (Utterance("noise_1", "user", "Hello."),)),
            Session(
                "noise#2",
                datetime(2023, 5, 21, 2, 21),
                (Utterance("noise#2_1", "user", "Hello again."), Utterance("noise#2_2", "assistant", "Hi.")),
            ),
            Session(
                "answer_b",
                datetime(2023, 5, 22, 10),
                (Utterance("answer_b_1", "user", "Two cats!"), Utterance("answer_b_2", "assistant", "Lovely.")),
            ),
        ),
        (
            Question(
                "q1",
                "How many cats do I have?",
                "2",
                "multi-session",
                datetime(2023, 5, 30, 23, 40),
                evidence=("answer_b_1",),
                sessions=("answer_b",),
                unknown=("answer_c",),
            ),
        ),
        ("sessions that had the id of another, and were given their own: 1",),
    )
    assert (none.id, none.questions[0].answerable, none.questions[0].kind) == ("q2_abs", False, "single-session-user")


def test_a_longmemeval_file_may_be_packed(small: Small, write: Write, tmp_path: Path) -> None:
    name, files = small("longmemeval")
    folder = write(files)
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as tar:
        tar.add(folder / "longmemeval_s.json", "data/longmemeval_s.json")
    assert read_histories(name, tmp_path / "data.tar.gz") == read_histories(name, folder)


def test_beam_keeps_ids_apart_and_dates_in_order(small: Small, write: Write) -> None:
    name, files = small("beam")
    chat = files["chat.json"]
    chat[1]["turns"][0].append({"role": "assistant", "id": 0, "time_anchor": "March-01-2024", "content": "Oliver ->-> 1,1"})
    (history,) = read_histories(name, write(files))
    assert [turn.id for turn in history.turns] == ["0", "1", "2", "0#2"]
    assert [turn.text for turn in history.turns] == ["My cat is Olive.", "Noted: a -> b.", "No, Oliver.", "Oliver"]
    assert [session.at for session in history.sessions] == [datetime(2024, 3, 15), None]
    assert history.remarks == (
        "markers such as ->-> 1,3 that were cut from what the user says: 2",
        "markers such as ->-> 1,3 that were cut from what the assistant says: 1",
        "turns that had the id of another, and were given their own: 1",
        "dates left out because they are none, or lie before an earlier session's: 1",
    )
    update, abstention = history.questions
    assert (update.id, update.answer, update.rubric) == ("knowledge_update-1", "Oliver", ("says Oliver",))
    assert (update.evidence, update.unknown) == (("2",), ("0", "7"))
    assert (abstention.answer, abstention.answerable) == ("You did not say.", False)


def test_beam_reads_chats_by_plan(small: Small, write: Write) -> None:
    name, files = small("beam")
    flat = read_histories(name, write(files))
    first, second = files["chat.json"]
    files["chat.json"] = [{"plan-1": [first], "plan-2": None}, {"plan-1": None, "plan-2": [second]}]
    files["plan-0/chat.json"] = [first]
    assert read_histories(name, write(files)) == flat


def test_personamem_asks_each_question_where_its_conversation_ends(small: Small, write: Write) -> None:
    name, files = small("personamem")
    folder = write(files)
    early, late = read_histories(name, folder)
    assert read_histories(name, folder / "questions_32k.csv") == (early, late)
    assert [str(early), str(late)] == ["c:2: 1 session, 2 turns, 1 question", "c:5: 2 sessions, 5 turns, 1 question"]
    assert [(turn.id, turn.speaker) for turn in late.turns] == [
        ("c_0:1", "system"),
        ("c_0:2", "user"),
        ("c_1:1", "system"),
        ("c_1:2", "user"),
        ("c_1:3", "assistant"),
    ]
    (question,) = late.questions
    assert question.options == ("(a) Rock.", "(b) Jazz, it's what you like.")
    assert (question.id, question.answer) == ("p5", question.options[1])


def test_an_id_for_a_repeated_one_is_not_that_of_another() -> None:
    assert number_duplicates(["5", "5", "5#2", "5", "5#2"]) == ["5", "5#3", "5#2", "5#4", "5#2#2"]


def test_a_plain_file_has_ids_for_what_has_none(small: Small, write: Write) -> None:
    name, files = small("history")
    files["mine.jsonl"] += [
        {"conversation": "work", "session": "mon", "turns": [{"speaker": "Ada", "text": "Ship it.", "id": "x"}]},
        {"conversation": "work", "question": "What is due?", "rubric": ["names the date"], "answerable": False, "evidence": ["x"]},
    ]
    home, work = read_histories(name, write(files) / "mine.jsonl")
    assert home == History(
        "1",
        (
            Session(
                "1",
                datetime(2024, 3, 1, 18, 5),
                (Utterance("1:1", "user", "My cat is Olive."), Utterance("1:2", "assistant", "Hi, Olive!")),
            ),
        ),
        (Question("1", "My cat?", "Olive", "fact", datetime(2024, 3, 2), evidence=("1:1",), options=("Olive", "Oliver")),),
    )
    assert work.sessions == (Session("mon", None, (Utterance("x", "Ada", "Ship it."),)),)
    assert work.questions == (Question("1", "What is due?", None, evidence=("x",), rubric=("names the date",), answerable=False),)


WRONG: list[tuple[str, str, list[Any], Any, str]] = [
    ("locomo", "locomo10.json", [0, "qa", 0, "category"], 7, "conversation 'conv-1': qa.0.category: must be 1, 2, 3, 4 or 5"),
    ("locomo", "locomo10.json", [0, "conversation", "session_1_date_time"], "May", "conversation 'conv-1', session_1: 'May' is not a date"),
    ("locomo", "locomo10.json", [0, "conversation", "session_1", 1, "dia_id"], "D1:1", "two turns have the id 'D1:1'"),
    ("locomo", "locomo10.json", [0, "qa"], [], "conversation 'conv-1': has no questions"),
    ("longmemeval", "longmemeval_s.json", [0, "haystack_dates"], [], "question 'q1': haystack_session_ids, haystack_dates and"),
    ("longmemeval", "longmemeval_s.json", [1, "question_id"], "q1", "two conversations have the id 'q1'"),
    ("longmemeval", "longmemeval_s.json", [1, "question_date"], "soon", "question 'q2_abs': 'soon' is not a date such as 2023/05/20"),
    ("beam", "chat.json", [0, "turns", 0, 1, "role"], "tool", "chat.json: 0.turns.0.1.role: must be 'user' or 'assistant'"),
    ("beam", "probing_questions/probing_questions.json", ["abstention", 0, "question"], 5, "abstention.0.question: must be text"),
    ("personamem", "questions_32k.csv", [0, "correct_answer"], "(d)", "questions_32k.csv, line 2: none of the options is (d)"),
    ("personamem", "questions_32k.csv", [1, "all_options"], "open('x')", "line 3: all_options must be a list of strings"),
    ("personamem", "questions_32k.csv", [1, "shared_context_id"], "d", "shared_contexts_32k.jsonl has no conversation 'd'"),
    ("personamem", "questions_32k.csv", [1, "end_index_in_shared_context"], "6", "line 1, conversation 'c': has 5 messages, but"),
    ("converted", "documents_32k.json", [0, "content"], "Hi", "document 'u_0': must begin with [SYSTEM], [USER] or [ASSISTANT]"),
    (
        "history",
        "mine.jsonl",
        [1, "evidence"],
        ["2:1"],
        "mine.jsonl, line 2: evidence '2:1' is neither the id nor a part of a turn of conversation '1'",
    ),
    ("history", "mine.jsonl", [0, "turns", 0, "role"], "user", "line 1: turns.0.role: unknown key"),
    ("history", "mine.jsonl", [0, "at"], "today", "line 1: at: must be a date and time, such as 2024-01-31T09:00"),
    ("history", "mine.jsonl", [0, "at"], "9999-12-31T23:59", "conversation '1': session '1': its time must be before 9000-01-01"),
    ("beam", "chat.json", [0, "turns", 0, 1, "content"], "\ud83d", "chat.json: turn '1': '\\ud83d' is not valid Unicode"),
    ("history", "mine.jsonl", [1, "answer"], None, "line 2: needs an answer or a rubric, or answerable: false"),
]


def put(value: Any, path: list[Any], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@pytest.mark.parametrize(("form", "file", "path", "new", "message"), WRONG)
def test_a_wrong_file_is_named_with_the_place(
    form: str, file: str, path: list[Any], new: Any, message: str, small: Small, write: Write
) -> None:
    name, files = small(form)
    put(files[file], path, new)
    with pytest.raises(InputError) as caught:
        read_histories(name, write(files))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[list[Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield [*path, key]
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("form", FORMS)
def test_any_value_anywhere_is_read_or_told_in_one_line(form: str, small: Small, write: Write) -> None:
    name, files = small(form)
    tried = 0
    for file in files:
        for path in places(files[file]):
            for junk in (None, True, -1, 1e999, "\ud800\x1b[2J\n", "9" * 5000, [], {"": []}, [[[["x"]]]]):
                _, changed = small(form)
                put(changed[file], path, junk)
                if file.endswith(".csv") and (len(path) == 1 or "\ud800" in str(junk)):
                    continue  # no CSV can be written of it
                tried += 1
                try:
                    assert read_histories(name, write(changed))
                except InputError as error:
                    assert "\n" not in str(error)  # noqa: PT017 - either is right
                    assert len(str(error)) < 1000  # noqa: PT017
    assert tried > 50


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "content", [b"", b"\x00", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 100_000, b"9" * 5000, b"\x1f\x8b junk", b"PK\x03\x04 junk", b"null"]
)
def test_bytes_that_are_no_history_are_refused(form: str, content: bytes, small: Small, write: Write) -> None:
    name, files = small(form)
    folder = write(files)
    for file in files:
        (folder / file).write_bytes(content)
    with pytest.raises(InputError, match=r"\A[^\n]+\Z"):
        read_histories(name, folder)


def test_links_to_files_are_followed_and_pipes_refused(small: Small, write: Write, tmp_path: Path) -> None:
    name, files = small("locomo")
    file = write(files) / "locomo10.json"
    (tmp_path / "link.json").symlink_to(file)
    assert read_histories(name, tmp_path / "link.json") == read_histories(name, file)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "loop", tmp_path / "pipe.json", tmp_path / "none", tmp_path / "a\0b"):
        with pytest.raises(InputError):
            read_histories(name, path)


def test_links_and_large_files_in_packed_folders_are_not_read(small: Small, write: Write, tmp_path: Path) -> None:
    name, files = small("beam")
    folder = write(files)
    with tarfile.open(tmp_path / "linked.tar", "w") as tar:
        link = tarfile.TarInfo("1/chat.json")
        link.type, link.linkname = tarfile.SYMTYPE, str(folder / "chat.json")
        tar.addfile(link)
        tar.add(folder / "probing_questions", "1/probing_questions")
    with pytest.raises(InputError, match="no chats of BEAM found"):
        read_histories(name, tmp_path / "linked.tar")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file, value in files.items():
            archive.writestr(f"1/{file}", json.dumps(value))
    huge = bytearray(content.getvalue())
    entry = huge.index(b"PK\x01\x02")
    huge[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")  # says that it unpacks to 2 GB
    (tmp_path / "huge.zip").write_bytes(huge)
    with pytest.raises(InputError, match=r"huge.zip/1/chat.json: larger than"):
        read_histories(name, tmp_path / "huge.zip")


def test_a_folder_with_several_files_is_not_guessed_at(small: Small, write: Write) -> None:
    for form, twin in {"locomo": "locomo11.json", "converted": "queries_128k.json"}.items():
        name, files = small(form)
        folder = write({f"{form}/{file}": value for file, value in (files | {twin: next(iter(files.values()))}).items()}) / form
        with pytest.raises(InputError, match="several files"):
            read_histories(name, folder)


def test_relatives_of_locomo_may_lack_a_date_and_a_name(small: Small, write: Write) -> None:
    name, files = small("locomo")
    del files["locomo10.json"][0]["sample_id"], files["locomo10.json"][0]["conversation"]["session_1_date_time"]
    (history,) = read_histories(name, write(files))
    assert (history.id, history.sessions[0].at, history.remarks) == ("conv-0", None, ("sessions without a date: 1",))


def test_an_unknown_reader_is_named() -> None:
    with pytest.raises(InputError, match="unknown reader 'locom'; use one of locomo, longmemeval, beam, personamem, history"):
        read_histories("locom", "x.json")
