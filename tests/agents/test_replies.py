"""Models' replies that are kept in a file: asked once, found again, told when damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Act, Say, Server, Use
from tests.sealing import nameless

import longspan
from longspan.agents.models.core import ChatMessage, Completion, RefusalError, Tool, ToolCore, make_core
from longspan.simulator.base.errors import DamageError, InputError
from longspan.simulator.cli import main
from longspan.simulator.subject.replies import KeptReply, Replies, keep_replies

WHAT = {"suite": "ltm@2k", "scenarios": ["colours", "jokes"], "tests": 2, "progress": False}


@pytest.fixture
def server() -> Any:
    with Server(reply=lambda text: Say("", ends="content_filter") if "joke" in text else f"re: {text[-20:]}").running() as running:
        yield running


def journal(results: longspan.Results) -> list[dict[str, Any]]:
    (folder,) = results.folders
    return nameless(folder / "conversations" / "main" / "journal.jsonl")


@pytest.mark.parametrize("memory", ["", "ltm/"])
def test_a_second_run_asks_for_nothing_and_is_the_same(memory: str, server: Server, tmp_path: Path) -> None:
    agent, file = f"{memory}{server.model()}{'&embedder=hash' * bool(memory)}", tmp_path / "replies.jsonl"
    first = longspan.run(agent=agent, out=tmp_path / "first", replies=file, **WHAT)
    asked, lines = len(server.asked), file.read_bytes().splitlines(keepends=True)
    assert asked == len(lines) > 20
    assert any(row["refused"] for row in first.tests)
    file.write_bytes(b"".join([*reversed(lines), *lines[:3]]))  # as merged from two branches
    again = longspan.run(agent=agent, out=tmp_path / "again", replies=file, **WHAT)
    assert len(server.asked) == asked
    assert journal(again) == journal(first)
    other = longspan.run(agent=f"{agent}{'&' if '?' in agent else '?'}max_tokens=1000", out=tmp_path / "other", replies=file, **WHAT)
    assert len(server.asked) == 2 * asked
    assert journal(other) != []
    assert len(file.read_bytes().splitlines()) == 2 * asked + 3


@pytest.mark.parametrize("kind", ["openai", "anthropic", "google"])
def test_calls_of_tools_and_refusals_are_found_as_they_were(kind: str, server: Server, tmp_path: Path) -> None:
    options = {"base_url": server.base_url(kind)}
    core: Any = make_core(kind, f"{kind}/m", options, ())
    tool = Tool("recall", "Recall.", {"type": "object", "properties": {"query": {"type": "string"}}})

    async def ask(text: str, *, tools: bool) -> Completion | str:
        prompt = [ChatMessage("system", "Be brief."), ChatMessage("user", text)]
        chat: ToolCore = core
        try:
            return await (chat.use_tools(prompt, [tool]) if tools else chat.complete(prompt, max_tokens=50))
        except RefusalError as error:
            return f"{error.why} {error.text} {error.usage}"

    def all_of_them() -> list[Completion | str]:
        with keep_replies(tmp_path / "replies"):
            return [trio.run(lambda text=text, tools=tools: ask(text, tools=tools)) for text, tools in asked]  # type: ignore[misc]

    asked = [("Where is it?", False), ("Where is it?", True), ("A joke.", False), ("Where was it?", False)]
    acts: list[Act] = [Say("There \ud83d\ude00."), Use((("recall", {"query": "it"}),)), Say("", ends="content_filter"), Say("Gone.")]
    if kind != "openai":
        acts[2] = Say("No.")
    server.script(acts)
    first = all_of_them()
    assert isinstance(first[1], Completion)
    assert [call.name for call in first[1].calls] == ["recall"]
    assert isinstance(first[2], str) == (kind == "openai")
    requests = len(server.asked)
    assert all_of_them() == first
    assert len(server.asked) == requests == 4


def test_without_a_key_what_is_kept_is_played_and_what_is_not_says_so(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, file = f"{server.model()}&key_env=MY_KEY", tmp_path / "replies.jsonl"
    monkeypatch.setenv("MY_KEY", "a-key-for-the-test")
    first = longspan.run(agent=agent, out=tmp_path / "first", replies=file, **WHAT)
    assert b"a-key-for-the-test" not in file.read_bytes()
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(InputError, match="needs a key: set the environment variable MY_KEY"):
        longspan.run(agent=agent, out=tmp_path / "none", **WHAT)
    assert journal(longspan.run(agent=agent, out=tmp_path / "again", replies=file, **WHAT)) == journal(first)
    with pytest.raises(longspan.AgentError, match=r"replies\.jsonl, and there is no key to ask for it: set the environment variable MY_"):
        longspan.run(agent=agent, out=tmp_path / "seed", replies=file, seeds=1, **WHAT)


def test_the_command_line_says_how_many_were_asked_for(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--scenario", "colours", "--tests", "1", "--agent", server.model(), "--out", str(tmp_path / "runs"), "--json"]
    for numbers in (r"0 reused, {n} requested", r"{n} reused, 0 requested"):
        with pytest.raises(SystemExit) as exiting:
            main([*command, "--replies", str(tmp_path / "kept")])
        assert exiting.value.code == 0
        assert numbers.format(n=len(server.asked)) in capsys.readouterr().err


def test_damage_is_told_and_other_files_are_left_alone(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    longspan.run(agent=server.model(), out=tmp_path / "runs", replies=file, **WHAT)
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"re: ", b"RE: ", 1))
    with pytest.raises(DamageError, match=r"damaged at line \d+: its checksum does not match; remove the line"):
        Replies(file)
    file.write_bytes(whole[:-9])  # a crash while the last one was written
    kept, keys = Replies(file), [json.loads(line)["key"] for line in whole.splitlines()]
    assert [key for key in keys if kept.find(key) is None] == keys[-1:]
    assert file.read_bytes().endswith(b"\n")
    for other in (b"mine", b"mine\n", b'{"key": 1}\n'):
        file.write_bytes(other)
        with pytest.raises((InputError, DamageError)):
            Replies(file)
        assert file.read_bytes() == other
    with pytest.raises(InputError, match=r"^replies .*: there is no folder"):
        longspan.run(agent="silent", out=tmp_path / "no", replies=tmp_path / "nowhere" / "file", **WHAT)


@pytest.mark.parametrize("kept", [1, 9, 10, 40, 74, 75, 90, -28, -1])
def test_a_first_line_that_a_crash_has_cut_is_asked_for_again(kept: int, tmp_path: Path) -> None:
    file, reply = tmp_path / "replies.jsonl", KeptReply(key="0f" * 32, text="OK.", input_tokens=1, cached_tokens=0, output_tokens=1)
    Replies(file).add(reply)
    whole = file.read_bytes()
    file.write_bytes(whole[:kept])
    again = Replies(file)
    assert again.find(reply.key) is None
    again.add(reply)
    assert file.read_bytes() == whole


@pytest.mark.parametrize("content", ["mine", '{"key": "value"}', '{"key": "abc"', '{"keys": ', '{"key": "0f", "text": "a"', "[", "\n"])
def test_somebodys_own_file_is_not_taken_for_a_cut_one(content: str, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(content)
    with pytest.raises((InputError, DamageError)):
        Replies(file)
    assert file.read_text() == content
