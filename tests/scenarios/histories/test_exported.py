"""Logs as chat programs and libraries write them are read; what cannot be read names the line and the remedy."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.histories import History, read_histories
from longspan.scenarios.histories.formats.messages import Context
from longspan.scenarios.histories.formats.reading import read_log
from longspan.scenarios.histories.formats.registry import find_format
from longspan.simulator.base.errors import InputError

ASKED = {"question": "What is my cat called?", "answer": "Olive"}
USER, ASSISTANT = {"role": "user", "content": "My cat is Olive."}, {"role": "assistant", "content": "Hi, Olive!"}
SAID = [("user", "My cat is Olive."), ("assistant", "Hi, Olive!")]


def lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def log(path: Path) -> History:
    (history,) = read_histories("history", path)
    return history


def said(history: History) -> list[list[tuple[str, str]]]:
    return [[(turn.speaker, turn.text) for turn in session.turns] for session in history.sessions]


CHATGPT = {
    "title": "Cats",
    "create_time": 1709316300.5,
    "current_node": "c",
    "mapping": {
        "root": {"message": None, "parent": None, "children": ["a"]},
        "a": {
            "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["My cat is Olive."]}},
            "parent": "root",
        },
        "b": {"message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["No."]}}, "parent": "a"},
        "c": {"message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Hi, Olive!"]}}, "parent": "a"},
    },
}
CLAUDE = {
    "uuid": "x",
    "created_at": "2024-03-01T18:05:00.5Z",
    "chat_messages": [
        {"sender": "human", "text": "My cat is Olive.", "content": [{"type": "text", "text": "My cat is Olive."}]},
        {
            "sender": "assistant",
            "text": "Hi, Olive!",
            "content": [{"type": "thinking", "thinking": "A cat."}, {"type": "text", "text": "Hi, Olive!"}],
        },
    ],
}
LANGCHAIN = [
    {"type": "human", "data": {"content": "My cat is Olive.", "additional_kwargs": {}}},
    {"type": "ai", "data": {"content": [{"type": "text", "text": "Hi, Olive!"}], "tool_calls": []}},
]
DUMPED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": {"content": text}}
    for name, text in (("HumanMessage", "My cat is Olive."), ("AIMessage", "Hi, Olive!"))
]
FORMS: dict[str, list[Any]] = {
    "messages a line each": [USER, ASSISTANT],
    "a conversation a line": [{"messages": [USER, ASSISTANT]}],
    "parts": [{"messages": [{"role": "user", "content": [{"type": "input_text", "text": "My cat is Olive."}]}, ASSISTANT]}],
    "a list a line": [[USER, ASSISTANT]],
    "LangChain": LANGCHAIN,
    "LangChain, dumped": DUMPED,
    "ChatGPT": [CHATGPT],
    "Claude": [CLAUDE],
    "ShareGPT": [{"conversations": [{"from": "human", "value": "My cat is Olive."}, {"from": "gpt", "value": "Hi, Olive!"}]}],
    "longspan": [{"turns": [{"speaker": who, "text": text} for who, text in SAID]}],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_in_any_usual_form_is_read_as_lines_and_as_one_value(form: str, tmp_path: Path) -> None:
    values = [*FORMS[form], ASKED]
    one = lines(tmp_path / "lines.jsonl", *values)
    whole, pretty, marked = tmp_path / "whole.json", tmp_path / "pretty.json", tmp_path / "marked.jsonl.gz"
    whole.write_text(json.dumps(values), "utf-8")
    pretty.write_text(json.dumps(values, indent=2), "utf-8")
    marked.write_bytes(gzip.compress(b"\xef\xbb\xbf" + one.read_bytes()))
    for path in (one, whole, pretty, marked):
        assert said(log(path)) == [SAID]
        assert [turn.id for turn in log(path).turns] == ["1:1", "1:2"]


def test_one_object_may_have_its_questions(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"system": "Be kind.", "messages": [USER, ASSISTANT], "questions": [ASKED]}, indent=1), "utf-8")
    assert said(log(path)) == [[("system", "Be kind."), *SAID]]


@pytest.mark.parametrize(
    ("key", "given", "at"),
    [
        ("created_at", "2024-03-01T18:05:00Z", "2024-03-01T18:05"),
        ("timestamp", 1709316300, "2024-03-01T18:05"),
        ("timestamp", "1709316300", "2024-03-01T18:05"),
        ("ts", 1709316300123, "2024-03-01T18:05"),
        ("time", "2024-03-01 18:05", "2024-03-01T18:05"),
        ("createdAt", "2024-03-01T18:05:00+02:00", "2024-03-01T18:05"),
        ("timestamp", 1709316300123456, "2024-03-01T18:05"),
        ("timestamp", "1709316300123456789", "2024-03-01T18:05"),
        ("timestamp", {"$date": {"$numberLong": "1709316300000"}}, "2024-03-01T18:05"),
        ("timestamp", "2024-03-01 18:05:00 +0000 UTC", "2024-03-01T18:05"),
        ("timestamp", "2024-03-01T18:05:00.123456789Z", "2024-03-01T18:05"),
        ("timestamp", "Fri, 01 Mar 2024 18:05:00 GMT", "2024-03-01T18:05"),
        ("timestamp", "Fri Mar 01 18:05:00 +0000 2024", "2024-03-01T18:05"),
        ("timestamp", "March 1, 2024 6:05pm", "2024-03-01T18:05"),
        ("timestamp", "Friday, 1st March 2024 at 6:05\u202fPM", "2024-03-01T18:05"),
        ("timestamp", "3/1/24, 6:05 PM", "2024-03-01T18:05"),
        ("timestamp", "13/01/2024 18:05", "2024-01-13T18:05"),
        ("timestamp", "01.03.2024, 18:05", "2024-03-01T18:05"),
        ("send_date", "2024-3-1 @18h 05m 00s 123ms", "2024-03-01T18:05"),
    ],
)
def test_times_are_read_as_they_stand_or_as_seconds_since_1970(key: str, given: Any, at: str, tmp_path: Path) -> None:
    path = lines(tmp_path / "log.jsonl", USER | {key: given}, ASSISTANT, ASKED)
    assert [session.at for session in log(path).sessions] == [datetime.fromisoformat(at)]


def test_a_pause_of_more_than_an_hour_or_another_thread_begins_a_session(tmp_path: Path) -> None:
    times = ["2024-03-01T09:00", "2024-03-01T10:00", "2024-03-01T11:01"]
    path = lines(tmp_path / "log.jsonl", *(USER | {"timestamp": time} for time in times), USER | {"thread_id": "b"}, ASKED)
    assert [len(session.turns) for session in log(path).sessions] == [2, 1, 1]
    assert [turn.id for turn in log(path).turns] == ["1:1", "1:2", "2:1", "3:1"]


def test_conversations_are_put_in_the_order_of_time(tmp_path: Path) -> None:
    newest = [{"messages": [USER | {"content": day}], "created_at": f"2024-03-0{day}"} for day in "21"]
    history = log(lines(tmp_path / "log.jsonl", *newest, ASKED | {"evidence": ["2:1"]}))
    assert said(history) == [[("user", "1")], [("user", "2")]]
    assert history.remarks == ("put in the order of time",)
    assert history.questions[0].evidence == (history.turns[0].id,), "sessions are numbered as in the file"


def test_tools_are_read_as_such_or_left_out(tmp_path: Path) -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "save", "arguments": '{"x": 1}'}}]}
    used = {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}, {"type": "thinking", "thinking": "h"}]}
    picture = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://example.org"}}, {"type": "text", "text": "Look!"}],
    }
    result = {"role": "tool", "content": "42" * 2000, "tool_call_id": "c"}
    path = lines(tmp_path / "log.jsonl", USER, called, result, used, picture, ASSISTANT | {"content": ""}, ASKED | {"evidence": ["1:5"]})
    history = log(path)
    assert said(history) == [
        [
            SAID[0],
            ("assistant", '[calls save({"x":1})]'),
            ("assistant", f"[result of save: {'42' * 1000}... and 2,000 more characters]"),
            ("assistant", "[calls f({})]"),
            ("user", "[shares a picture]\nLook!"),
        ]
    ]
    assert history.remarks == ("left out: messages without a text (1), reasoning (1)",)
    (without,) = read_histories("history", path, tools=False)
    assert said(without) == [[SAID[0], ("user", "[shares a picture]\nLook!")]]
    assert [turn.id for turn in without.turns] == ["1:1", "1:5"], "ids are the same with and without tools"
    assert without.remarks[-1] == "left out by tools=off: 3 tool calls and results"


def test_ids_of_messages_can_be_evidence(tmp_path: Path) -> None:
    history = log(lines(tmp_path / "log.jsonl", USER | {"id": "m1"}, ASSISTANT, ASKED | {"evidence": ["m1"]}))
    assert [turn.id for turn in history.turns] == ["m1", "1:2"]


def test_default_ids_give_way_to_given_ones_wherever_these_stand(tmp_path: Path) -> None:
    first, last = USER | {"id": "1:2"}, USER | {"id": "1:3#2"}
    asked = [ASKED | {"id": "2", "evidence": ["1:2"]}, ASKED]
    history = log(lines(tmp_path / "log.jsonl", first, ASSISTANT, USER | {"id": "1:3"}, last, *asked))
    assert [turn.id for turn in history.turns] == ["1:2", "1:2#2", "1:3", "1:3#2"]
    assert [question.id for question in history.questions] == ["2", "2#2"]
    session = {"turns": [{"speaker": "user", "text": "Hi."}]}
    history = log(lines(tmp_path / "own.jsonl", session | {"session": "2"}, session, {"messages": [USER, USER | {"id": "2:1"}]}, ASKED))
    assert [each.id for each in history.sessions] == ["2", "2#2", "3"]
    assert [turn.id for turn in history.turns] == ["2:1#2", "2#2:1", "3:1", "2:1"]


def test_the_same_id_may_stand_in_two_conversations_and_on_messages_that_are_left_out(tmp_path: Path) -> None:
    empty = {"role": "assistant", "content": "", "id": "m1"}
    values = [USER | {"id": "m1"}, empty, ASKED, USER | {"id": "m1", "conversation": "2"}, ASKED | {"conversation": "2"}]
    assert [[turn.id for turn in each.turns] for each in read_histories("history", lines(tmp_path / "log.jsonl", *values))] == [
        ["m1"],
        ["m1"],
    ]


ROLES = "must be user, assistant or system, or tool"
REMEDY = "change one of the two ids, or remove it"
TURN = {"speaker": "user", "text": "Hi.", "id": "m1"}
WRONG: list[tuple[list[Any], str]] = [
    ([USER | {"id": "m1"}, ASSISTANT | {"id": "m1"}, ASKED], f"log.jsonl, line 2: its id 'm1' is also the id of line 1; {REMEDY}"),
    (
        [{"messages": [USER, USER | {"uuid": "m1"}]}, {"turns": [TURN]}, ASKED],
        f"log.jsonl, line 2, turn 1: its id 'm1' is also the id of line 1, message 2; {REMEDY}",
    ),
    ([{"turns": [TURN, TURN]}, ASKED], f"log.jsonl, line 1, turn 2: its id 'm1' is also the id of line 1, turn 1; {REMEDY}"),
    (
        [{"turns": [TURN], "session": "mon"}, {"turns": [TURN], "session": "mon"}, ASKED],
        f"log.jsonl, line 2: its id 'mon' is also the id of line 1; {REMEDY}",
    ),
    ([USER, ASKED | {"id": "q"}, ASKED | {"id": "q"}], f"log.jsonl, line 3: its id 'q' is also the id of line 2; {REMEDY}"),
    ([USER], 'has no questions; name their file with --data questions=FILE, or add lines such as {"question": "...", "answer": "..."}'),
    ([ASKED], "has no turns"),
    ([{"mesages": [3]}, ASKED], "line 1: has none of the keys turns, messages, role and content, or question, but 'mesages'"),
    ([{"sample_id": "c", "conversation": {}, "qa": []}], "but 'sample_id', 'conversation', 'qa'; --data locomo=FILE reads such data"),
    ([USER, {}, ASKED], "line 2: has none of the keys turns, messages, role and content, or question, but nothing"),
    ([7], "line 1: must be an object; expected messages such as"),
    ([{"role": "narrator", "content": "Once."}, ASKED], f"line 1: role 'narrator': {ROLES}"),
    ([{"messages": [USER, 3]}, ASKED], 'line 1, message 2: must be a message such as {"role": "user", "content": "..."}'),
    ([{"messages": {}}, ASKED], "line 1: messages must be a list of messages"),
    ([USER | {"content": 3}, ASKED], "line 1: content must be a string or a list of parts, got int"),
    ([USER | {"content": [[]]}, ASKED], "line 1: a part of content must be a string or like"),
    ([USER | {"content": [{"type": "text", "text": 3}]}, ASKED], "line 1: the text of a part must be a string, got int"),
    (
        [USER | {"timestamp": float("nan")}, ASKED],
        "line 1: timestamp must be a time such as 2024-01-31T09:00 or seconds since 1970, got nan",
    ),
    ([USER | {"timestamp": "soon"}, ASKED], "line 1: timestamp must be a time such as"),
    ([USER | {"timestamp": True}, ASKED], "line 1: timestamp must be a time such as"),
    ([USER | {"timestamp": 1e308}, ASKED], "line 1: timestamp must be a time such as"),
    ([USER | {"created_at": ["2024"]}, ASKED], "line 1: created_at must be a time such as"),
    ([CHATGPT | {"mapping": {"c": {"parent": "c", "message": None}}}, ASKED], "line 1: mapping: the messages before 'c' form a cycle"),
    ([CHATGPT | {"mapping": {"c": 3}}, ASKED], "line 1: mapping: 'c' is not a message"),
    ([{"messages": [USER], "questions": [{"question": "?"}]}], "line 1, question 1: needs an answer or a rubric"),
]


@pytest.mark.parametrize(("values", "problem"), WRONG)
def test_what_cannot_be_read_names_the_line_and_the_remedy(values: list[Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read_histories("history", lines(tmp_path / "log.jsonl", *values))
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"role": "user", "role": "assistant", "content": "Hi."}', "line 1: the key 'role' stands twice in an object"),
        ('{"role": "user", "content": "Hi."}\n{"role": "user"', "line 2: not JSON"),
        ('[{"role": "user", "content": "Hi."}', "log.json: not JSON"),
        ('{"messages": ' + "[" * 100_000, "line 1: not JSON: nested too deeply"),
        ("[" * 100_000, "log.json: not JSON: nested too deeply"),
        ('[{"role": "user", "content": ' + '{"parts": [' * 400 + "]}" * 400 + "}]", "has no"),
        ("", "is empty"),
        ("[]", "is empty"),
        ("null", "line 1: must be an object"),
    ],
)
def test_a_broken_or_hostile_file_is_one_line(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError) as raised:
        read_histories("history", path)
    assert problem in str(raised.value)
    assert len(str(raised.value)) < 1000


KEYS = ("role", "content", "messages", "type", "data", "kwargs", "text", "author", "parts", "mapping", "id", "timestamp", "current_node")
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["user", "human", "text", "constructor", "a", ""])
ANY = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4), max_leaves=20
)


@given(ANY)
def test_any_value_is_read_or_refused(value: Any) -> None:
    form = find_format(value)
    with suppress(ValueError):
        for each in form.read(value, Context()) if form else ():
            assert isinstance(each.text, str)


def test_a_large_log_is_read_once(tmp_path: Path) -> None:
    path = lines(tmp_path / "log.jsonl", *[USER | {"timestamp": 1709316300 + number} for number in range(20_000)], ASKED)
    (history,) = read_log(path)
    assert len(history.turns) == 20_000
