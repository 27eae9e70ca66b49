"""Each format of logs has a fixture in logs/, written from the vendor's schema, which is read in order and without silent loss."""

from __future__ import annotations

import copy
import gzip
import html
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scripts import docs_outputs

from longspan.scenarios.histories.formats.assembly import Turn
from longspan.scenarios.histories.formats.log_files import read_values
from longspan.scenarios.histories.formats.messages import LogFormat
from longspan.scenarios.histories.formats.reading import read_conversations
from longspan.scenarios.histories.formats.registry import find_format, list_formats
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import run_command

LOGS = Path(__file__).parent / "logs"

CAT, NICE = "user: I adopted a cat. Her name is Olive.", "assistant: Congratulations to you and Olive!"
KIND = "system: Be kind."
TOOL = ['assistant: [calls save({"cat":"Olive"})]', "assistant: [result of save: ok]"]
ADA, BEN = "Ada: I adopted a cat. Her name is Olive.", "Ben: Congratulations to you and Olive!"

READ: dict[str, tuple[str, list[str], list[str]]] = {
    "ai-studio.json": ("", [CAT, NICE], ["left out: reasoning (1)"]),
    "chat-message.jsonl": (
        "2024-03-01T18:05:00",
        [ADA, TOOL[0], 'assistant: [result of save: {"done":true}]', NICE, "Ben: Mine is Rex."],
        ["left out: reasoning (1)"],
    ),
    "chat.json": (
        "2024-03-01T18:05:00",
        [KIND, f"user: [shares a file: olive.txt]\nShe is two.\n{CAT[6:]}", "assistant: Let me note that.", *TOOL, "user: Thanks.", NICE],
        ["left out: reasoning (1)"],
    ),
    "chatgpt.json": (
        "2024-03-01T18:05:00",
        [
            "user: [shares a picture]\nI adopted a cat.\nHer name is Olive.\n[shares a file: olive.pdf]",
            'assistant: [calls web(search("cats"))]',
            "assistant: [result of web: 12 pages]",
            NICE,
        ],
        ["left out: hidden messages (1), messages of other branches (1), reasoning (1)"],
    ),
    "claude-code.jsonl": (
        "2024-03-01T18:05:00",
        [CAT, 'assistant: [calls Read({"file_path":"olive.txt"})]', "assistant: [result of Read: She is two.]", NICE],
        ["left out: entries of type file-history-snapshot (1), hidden messages (1), reasoning (1), sidechain messages (1), summaries (1)"],
    ),
    "claude.json": (
        "2024-03-01T18:05:00",
        ["user: I adopted a cat.\n[shares a file: olive.txt]\nHer name is Olive.\n[shares a file: olive.png]", *TOOL, NICE],
        ["left out: reasoning (1)"],
    ),
    "codex.jsonl": (
        "2024-03-01T18:05:01",
        [CAT, 'assistant: [calls shell({"command":["ls"]})]', "assistant: [result of shell: olive.txt]", NICE],
        [
            "left out: entries of type event_msg (1), entries of type session_meta (1), entries of type turn_context (1), "
            "hidden messages (1), reasoning (1)"
        ],
    ),
    "csv.csv": ("2024-03-01T18:05:00", ['Ada: I adopted a cat.\nHer name is "Olive".', BEN], []),
    "discord.json": ("2024-03-01T18:05:00", [f"{ADA}\n[shares a file: olive.png]", BEN], ["left out: notices (1)"]),
    "gemini.json": (
        "",
        [KIND, f"user: [shares a picture]\n{CAT[6:]}", TOOL[0], 'assistant: [result of save: {"output":"ok"}]', NICE],
        ["left out: reasoning (1)"],
    ),
    "langgraph.jsonl": ("2024-03-01T18:05:00", [CAT, *TOOL, NICE], ["left out: repeated messages (1)"]),
    "letta-message.json": ("2024-03-01T18:05:00", [CAT, *TOOL, NICE], ["put in the order of time", "left out: reasoning (1)"]),
    "letta.af": (
        "2024-03-01T18:04:00",
        ["system: You are Letta.", CAT, NICE, 'assistant: [result of send_message: {"status":"OK","message":"None"}]'],
        ["left out: events (1), reasoning (1)"],
    ),
    "librechat.json": ("2024-03-01T18:05:00", [CAT, *TOOL, NICE], ["left out: messages of other branches (1), reasoning (1)"]),
    "open-webui.json": (
        "2024-03-01T18:05:00",
        [f"{CAT}\n[shares a file: olive.txt]\nShe is two.", NICE],
        ["left out: messages of other branches (1), reasoning (1)"],
    ),
    "openai-list.json": ("2024-03-01T18:05:00", [f"user: [shares a picture]\n{CAT[6:]}", NICE], ["put in the order of time"]),
    "responses-item.jsonl": ("", [KIND, f"{CAT}\n[shares a file: olive.pdf]", *TOOL, NICE], ["left out: reasoning (1)"]),
    "responses.jsonl": (
        "2024-03-01T18:05:00",
        [KIND, CAT, 'assistant: [calls web_search({"type":"search","query":"cats"})]', NICE],
        ["left out: reasoning (1)"],
    ),
    "row.jsonl": ("2024-03-01T18:05:00", [CAT, NICE], []),
    "sharegpt.json": ("", [KIND, CAT, *TOOL, NICE], []),
    "sillytavern.jsonl": (
        "2024-03-01T18:05:00",
        [CAT, NICE],
        ["names of the speakers: assistant: Bot, user: Ada", "left out: hidden messages (1)"],
    ),
    "slack": (
        "2024-03-01T18:05:00",
        ["Ada: @Ben I adopted a cat & her name is Olive.\n[shares a picture]", f"{BEN} Cats (https://example.org/cats)"],
        ["files left out: channels.json", "left out: notices (1)"],
    ),
    "telegram.json": ("2024-03-01T18:05:00", [f"{ADA}\n[shares a picture]", BEN], ["left out: notices (1)"]),
    "whatsapp.txt": (
        "2024-03-01T18:05:00",
        ["Ada: I adopted a cat.\nHer name is Olive.", "Ada: [shares a picture or file]", BEN],
        ["dates were read with the day first", "left out: deleted messages (1), notices (2)"],
    ),
}
"""What is read from each fixture: the time of the first session, the turns, and the remarks."""


def test_every_format_has_a_fixture() -> None:
    assert {Path(name).stem for name in READ} == {form.name for form in list_formats()}
    assert {path.name for path in LOGS.iterdir()} == READ.keys()


@pytest.mark.parametrize("name", READ)
def test_a_fixture_is_read_in_order_and_says_what_was_left_out(name: str) -> None:
    at, turns, remarks = READ[name]
    (found,) = read_conversations(LOGS / name)
    assert [f"{turn.speaker}: {turn.text}" for part in found.parts for turn in part.turns] == turns
    assert str(found.parts[0].at or "").replace(" ", "T") == at
    assert list(found.remarks) == remarks


@pytest.mark.parametrize("form", list_formats(), ids=lambda form: form.name)
def test_the_smallest_form_of_a_format_is_read(form: LogFormat, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(form.example, "utf-8")
    (found,) = read_conversations(path)
    assert len(found.parts) == 1
    assert find_format(form.example if form.text else json.loads(form.example), text=form.text) is form


def test_every_fixture_is_converted_and_graded_and_the_conversion_is_the_same_log(tmp_path: Path) -> None:
    whole = []
    for name in READ:
        out = tmp_path / f"{name}.jsonl"
        assert run_command(["convert", str(LOGS / name), str(out)]) == 0
        (log,), (converted,) = read_conversations(LOGS / name), read_conversations(out)
        assert [part._replace(place="", turns=[turn._replace(place="") for turn in part.turns]) for part in log.parts] == [
            part._replace(place="", turns=[turn._replace(place="") for turn in part.turns]) for part in converted.parts
        ]
        assert (log.remarks, log.questions) == (converted.remarks, converted.questions)
        whole += [json.loads(line) | {"conversation": name} for line in out.read_text("utf-8").splitlines()]
        whole.append(
            {"question": "What is the cat called?", "answer": "Olive", "conversation": name, "evidence": [log.parts[0].turns[0].id]}
        )
    data = tmp_path / "whole.jsonl"
    data.write_text("".join(f"{json.dumps(line)}\n" for line in whole), "utf-8")
    command = ["run", "history", "--data", f"history={data}", "--tests", "100", "--agent", "oracle", "--out", str(tmp_path / "runs")]
    assert run_command(command) == 0
    (result,) = (tmp_path / "runs").glob("*/result.json")
    assert [row["score"] for row in json.loads(result.read_text("utf-8"))["tests"] if "-q" in row["id"]] == [1] * len(READ)


def test_a_conversion_overwrites_nothing_and_leaves_no_piece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    assert run_command(["convert", str(LOGS / "chat.json"), str(out)]) == 2
    assert "already exists; name another file" in capsys.readouterr().err
    assert run_command(["convert", str(tmp_path / "none.json"), str(tmp_path / "new.jsonl")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert out.read_text() == "mine"


CAT_MESSAGE, ASKED = {"role": "user", "content": "My cat is Olive."}, {"question": "What is my cat called?", "answer": "Olive"}
MORE = {"role": "assistant", "content": "Hi, Olive!"}
LINES = "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in ({"role": "user", "content": "Café Olive"}, ASKED))


def write(path: Path, *values: Any) -> Path:
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def turns(path: Path) -> list[Turn]:
    return [turn for each in read_conversations(path) for part in each.parts for turn in part.turns]


def texts(path: Path) -> list[str]:
    return [f"{turn.speaker}: {turn.text}" for turn in turns(path)]


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        (LINES.encode("utf-16"), "read as utf-16"),
        (LINES.encode("utf-16-be"), "read as utf-16-be"),
        (LINES.encode("cp1252"), "text that is not UTF-8 was read as Windows-1252"),
        (b"\xef\xbb\xbf\r\n" + LINES.replace("\n", "\r\n").encode(), ""),
        (gzip.compress(LINES.encode()), ""),
        (json.dumps(json.loads(LINES.splitlines()[0]), indent=1).encode() + b"\n\n" + json.dumps(ASKED, indent=1).encode(), ""),
    ],
)
def test_encodings_line_ends_and_layouts_are_recognised(content: bytes, remark: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    (found,) = read_conversations(path)
    assert texts(path) == ["user: Café Olive"]
    assert (found.remarks, len(found.questions)) == ((remark,) if remark else (), 1)


def test_an_archive_has_its_shards_in_order_and_names_what_is_no_log(tmp_path: Path) -> None:
    chat = json.loads((LOGS / "chatgpt.json").read_text("utf-8"))[0]
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("export/conversations-000.json", json.dumps([chat | {"conversation_id": "new", "create_time": 1712914200}]))
        archive.writestr("export/conversations-001.json", json.dumps([CAT_MESSAGE | {"created_at": "2024-02-01"}]))
        archive.writestr("export/user.json", json.dumps({"id": "u"}))
        archive.writestr("export/chat.html", "<html>")
        archive.writestr("export/questions.jsonl", json.dumps(ASKED))
    (found,) = read_conversations(tmp_path / "export.zip")
    assert [part.at and part.at.month for part in found.parts] == [2, 3]
    assert found.remarks[0] == "files left out: export/chat.html, export/user.json"
    assert len(found.questions) == 1


def test_order_is_that_of_time_and_never_that_of_a_clock_that_is_a_second_off(tmp_path: Path) -> None:
    newest = [MORE | {"created_at": 1712914210}, CAT_MESSAGE | {"created_at": 1712914200}]
    assert texts(write(tmp_path / "a", *newest)) == ["user: My cat is Olive.", "assistant: Hi, Olive!"]
    assert texts(write(tmp_path / "b", CAT_MESSAGE | {"created_at": 10**9 + 1}, MORE | {"created_at": 10**9})) == [
        "user: My cat is Olive.",
        "assistant: Hi, Olive!",
    ]
    zones = [CAT_MESSAGE | {"time": "2024-03-01T18:05:00+02:00"}, MORE | {"time": "2024-03-01T16:05:10Z"}]
    (found,) = read_conversations(write(tmp_path / "c", *zones))
    assert (str(found.parts[0].at), found.parts[0].turns[0].speaker) == ("2024-03-01 16:05:00", "user")
    assert found.remarks == ("times are in UTC, because the log has several time zones",)
    page = {"object": "list", "data": [{"type": "message", **MORE}, {"type": "message", **CAT_MESSAGE}]}
    assert texts(write(tmp_path / "d", page))[0] == "user: My cat is Olive."


def test_requests_that_repeat_their_conversation_are_read_once(tmp_path: Path) -> None:
    first, more = {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Thanks."}
    one, two = {"messages": [first, CAT_MESSAGE], "created_at": 1709316300}, {"messages": [first, CAT_MESSAGE, MORE, more]}
    (found,) = read_conversations(write(tmp_path / "log", one, two, {"request": one, "response": {"choices": [{"message": MORE}]}}))
    assert [turn.text for part in found.parts for turn in part.turns] == ["Be kind.", "My cat is Olive.", "Hi, Olive!", "Thanks."]
    assert found.remarks == ("messages were found in request, choices", "left out: repeated messages (5)")


def test_names_are_kept_and_halves_of_characters_replaced(tmp_path: Path) -> None:
    users = [CAT_MESSAGE | {"name": "A\x1b[2J\nda"}, CAT_MESSAGE | {"name": "Ben", "content": "My cat \ud83d is Rex."}, MORE]
    path = write(tmp_path / "log", *users)
    assert texts(path) == ["A[2J da: My cat is Olive.", "Ben: My cat \ufffd is Rex.", "assistant: Hi, Olive!"]
    assert read_conversations(path)[0].remarks == ("characters that are not valid Unicode were replaced",)


def test_whatsapp_dates_show_their_order(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(
        f"\u200e[3/1/24, 6:05:00\u202fPM] Ada: Hi.\r\n[3/13/24, 6:06:00\u202fPM] Ben: \u200eimage omitted\r\n{json.dumps(ASKED)}\r\n",
        "utf-8",
    )
    (found,) = read_conversations(path)
    assert [str(part.at) for part in found.parts] == ["2024-03-01 18:05:00", "2024-03-13 18:06:00"]
    assert (texts(path), len(found.questions)) == (["Ada: Hi.", "Ben: [shares a picture or file]"], 1)


TREE = [
    {"uuid": "a", "parent_message_uuid": "0", "sender": "human", "text": "I adopted a dog."},
    {"uuid": "b", "parent_message_uuid": "0", "sender": "human", "text": CAT[6:]},
    {"uuid": "c", "parent_message_uuid": "b", "sender": "assistant", "text": NICE[11:]},
]
SAVED = html.escape(json.dumps(json.dumps({"cat": "Olive"})))
DETAILS = (
    f'<details type="tool_calls" name="save" arguments="{SAVED}" result="&quot;ok&quot;">\n<summary>Done</summary>\n</details>\n{NICE[11:]}'
)
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CAT[6:]}]}
USER, ASSISTANT = {"role": "user", "content": CAT[6:]}, {"role": "assistant", "content": NICE[11:]}
VARIANTS: dict[str, tuple[list[Any], list[str]]] = {
    "the branch of Claude's export": ([{"chat_messages": TREE}], [CAT, NICE]),
    "Open WebUI's tools": ([{"chat": {"history": {"messages": {"a": {"role": "assistant", "content": DETAILS}}}}}], [*TOOL, NICE]),
    "an older session of Codex": ([{"id": "s", "timestamp": "2025-01-01", "instructions": None}, {"record_type": "state"}, ITEM], [CAT]),
    "Gemini CLI": ([[{"sessionId": "s", "messageId": 0, "type": "user", "message": CAT[6:], "timestamp": "2025-01-01"}]], [CAT]),
    "a list of conversations": ([{"conversations": [{"messages": [USER]}, {"messages": [ASSISTANT]}]}], [CAT, NICE]),
    "messages of Letta": ([{"messages": [{"message_type": "user_message", "content": CAT[6:]}]}], [CAT]),
    "a preference": ([{"input": {"messages": [USER]}, "preferred_output": [ASSISTANT], "non_preferred_output": [USER]}], [CAT, NICE]),
    "a request and its response": (
        [{"body": {"messages": [USER]}}, {"response": {"body": {"choices": [{"message": ASSISTANT}]}}}],
        [CAT, NICE],
    ),
    "a function call": (
        [
            {"role": "assistant", "function_call": {"name": "save", "arguments": '{"cat": "Olive"}'}},
            {"role": "function", "name": "save", "content": "ok"},
        ],
        TOOL,
    ),
    "a call that is in the content too": (
        [
            {
                "type": "ai",
                "data": {
                    "content": [{"type": "tool_use", "id": "t", "name": "save", "input": {"cat": "Olive"}}],
                    "tool_calls": [{"id": "t", "name": "save", "args": {}}],
                },
            }
        ],
        TOOL[:1],
    ),
    "a tool message of the AI SDK": (
        [{"role": "tool", "content": [{"type": "tool-result", "toolName": "save", "output": {"type": "text", "value": "ok"}}]}],
        TOOL[1:],
    ),
    "a recording": ([{"role": "assistant", "content": None, "audio": {"transcript": NICE[11:]}}], [NICE]),
    "older checkpoints last": (
        [
            {"ts": "2024-03-02", "channel_values": {"messages": [USER, ASSISTANT]}},
            {"ts": "2024-03-01", "channel_values": {"messages": [USER]}},
        ],
        [CAT, NICE],
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_a_format_is_read(name: str, tmp_path: Path) -> None:
    values, expected = VARIANTS[name]
    assert texts(write(tmp_path / "log", *values)) == expected


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def test_any_value_anywhere_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    random = Random(1)
    whole = [
        json.loads(line) if path.suffix == ".jsonl" else json.loads(path.read_text("utf-8"))
        for path in LOGS.glob("*.*")
        if path.suffix.startswith((".j", ".a"))
        for line in (path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else [""])
    ]
    for value in whole * 2:
        for path in random.choices(list(places(value)), k=5):
            changed = copy.deepcopy(value)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = random.choice([None, True, -1, 1e999, "\ud800\x1b[2J\n", "9" * 5000, [], {"": []}, [[[["x"]]]], {"id": {}}])
            try:
                assert all(each.isprintable() for each in [turn.speaker for turn in turns(write(tmp_path / "log", changed))])
            except InputError as error:
                assert "\n" not in str(error)  # noqa: PT017 - either is right
                assert len(str(error)) < 1000  # noqa: PT017


HOSTILE: dict[str, tuple[bytes, str]] = {
    "cut.jsonl": (json.dumps(CAT_MESSAGE).encode() + b'\n{"role": "user", "content": "Oli', "line 2: not JSON"),
    "cut.gz": (gzip.compress(LINES.encode())[:-12], "damaged gzip"),
    "cut.zip": (b"PK\x03\x04" + b"x" * 100, "cannot be unpacked"),
    "deep.json": (b"[" * 500 + json.dumps(CAT_MESSAGE).encode() + b"]" * 500, "nested too deeply"),
    "cycle.json": (
        b'{"messages": [{"messageId": "a", "parentMessageId": "a", "isCreatedByUser": true}]}',
        "has no turns; left out: messages of other branches (1)",
    ),
    "twice.json": (b'{"role": "user", "content": "a", "content": "b"}', "'content' stands twice"),
    "bytes": (bytes(range(256)), "begins like utf-16-be but is not"),
    "text.txt": (b"Hello!\nNo log.\n", "is neither JSON nor in a known text format"),
    "table.csv": (b'role,content\nuser,"open\n', "not a CSV table"),
    "time.csv": (b"role,content,time\nuser,a,soon\n", "row 2: 'soon' is not a time"),
    "bomb.gz": (gzip.compress(b" " * 2**20) * 1025, "larger than"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, problem = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    assert run_command(["convert", str(tmp_path / name), str(tmp_path / "out.jsonl")]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_a_large_log_is_streamed(tmp_path: Path) -> None:
    with (tmp_path / "log.jsonl").open("w") as file:
        for number in range(20_000):
            file.write(f'{{"role": "user", "content": "{"x" * 1000}", "id": "{number}"}}\n')
    tracemalloc.start()
    reading = read_values(tmp_path / "log.jsonl", set())
    assert sum(1 for _ in reading) == 20_000
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_package_adds_a_format_by_entry_point(tmp_path: Path) -> None:
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[longspan.log_formats]\nmine = my_format\n")
    (tmp_path / "my_format.py").write_text(docs_outputs.files()["my_format.py"].content)
    write(tmp_path / "log.jsonl", {"lines": [{"who": "user", "says": "My cat is Olive."}]})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    code = "from longspan.simulator.cli import main; main()"
    command = [sys.executable, "-c", code, "convert", str(tmp_path / "log.jsonl"), str(tmp_path / "out.jsonl")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1: 1 session, 1 turn, 0 questions"), done.stderr


def test_tools_can_be_left_out_of_a_run(tmp_path: Path) -> None:
    data = write(tmp_path / "log.jsonl", {**MORE, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, ASKED)
    command = ["run", "history", "--data", f"history={data}", "--agent", "oracle", "--set", "tools=off", "--out", str(tmp_path / "runs")]
    assert run_command(command) == 0
    (result,) = (tmp_path / "runs").glob("*/result.json")
    assert "1: left out by tools=off: 1 tool calls and results" in json.loads(result.read_text("utf-8"))["data_changes"]
