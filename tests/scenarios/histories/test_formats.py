"""Each format of logs has a fixture in logs/, written from the vendor's schema, which is read in order and without silent loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longspan.scenarios.histories.formats.messages import LogFormat
from longspan.scenarios.histories.formats.reading import read_conversations
from longspan.scenarios.histories.formats.registry import find_format, list_formats
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
        [
            "left out: entries of type file-history-snapshot (1), hidden messages (1), reasoning (1), sidechain messages (1), "
            "summaries (1)"
        ],
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
