from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
import trio
from tests.loopback import Raw, Server

from longspan.agents.base import Message, Usage
from longspan.agents.models.google import GoogleAgent

pytestmark = pytest.mark.usefixtures("impatient")


def agent(server: Server, **options: Any) -> GoogleAgent:
    return GoogleAgent("gemini-test", GoogleAgent.Options(base_url=server.base_url("google"), **options))


def reply(chat: GoogleAgent) -> Any:
    return trio.run(chat.reply, Message("Is it so?", datetime(2024, 1, 1, 9, 0), "c-0"))


def raw(content: dict[str, Any], status: int = 200) -> Raw:
    return Raw(json.dumps(content).encode(), status)


def test_thinking_counts_as_usage_but_is_not_in_the_reply(server: Server) -> None:
    parts = [{"text": "Hm.", "thought": True}, {"text": "Yes."}, {"text": " Surely."}]
    usage = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 4, "thoughtsTokenCount": 9}
    server.script([raw({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage})])
    found = reply(agent(server))
    assert (found.text, found.usage) == ("Yes. Surely.", Usage(100, 60, 13))


def test_a_prompt_that_is_blocked_is_a_refusal(server: Server) -> None:
    server.script([raw({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}})])
    found = reply(agent(server))
    assert (found.text, found.refused, found.usage) == ("(no reply: prompt blocked, SAFETY)", True, Usage(9))


def test_a_tool_call_that_could_not_be_written_is_a_refusal(server: Server) -> None:
    server.script([raw({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})])
    assert reply(agent(server)).text == "(no reply: a tool call)"


def test_the_time_to_wait_is_read_from_the_error(server: Server) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your quota: see billing", "details": details}
    server.script([raw({"error": error}, 429)])
    assert reply(agent(server)).text
    assert server.asked[1].at - server.asked[0].at >= 0.2


def test_the_environment_does_not_change_its_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "elsewhere")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "far")
    assert reply(agent(server)).text
