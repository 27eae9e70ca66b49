"""The three vendors' APIs: their requests, answers, streams and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["APIS", "Anthropic", "Api", "Block", "Google", "OpenAI", "Used"]


@dataclass(frozen=True)
class Block:
    """A piece of a prompt. `marked`: it ends at a cache breakpoint."""

    role: str
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Used:
    """The tokens of a prompt, how many of them were read from the cache and written to it, and the tokens of the answer."""

    prompt: int
    read: int
    written: int
    output: int


Calls = Sequence[tuple[str, Any]]
"""Calls of tools: the name and the arguments of each, which are JSON, or text to be sent as it is."""


class Api:
    """One vendor's API."""

    kind: ClassVar[str]
    ends: ClassVar[str]
    path: ClassVar[re.Pattern[str]]

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def blocks(self, body: dict[str, Any]) -> list[Block]:
        raise NotImplementedError

    def answer(self, text: str | None, ends: str | None, used: Used | None) -> dict[str, Any]:
        raise NotImplementedError

    def use(self, calls: Calls, used: Used) -> dict[str, Any]:
        """Return an answer that calls tools."""
        raise NotImplementedError

    def events(self, text: str, ends: str | None, used: Used | None) -> Iterator[str]:
        raise NotImplementedError

    def error(self, status: int, code: str, message: str) -> dict[str, Any]:
        raise NotImplementedError

    def overflow(self, prompt: int, window: int) -> tuple[int, str, str]:
        """Return the status, code and message for a prompt that is too long."""
        raise NotImplementedError


class OpenAI(Api):
    kind = "openai"
    ends = "stop"
    path = re.compile(r"(/[\w.-]+)*/chat/completions")

    def blocks(self, body: dict[str, Any]) -> list[Block]:
        return [Block(message["role"], message.get("content") or "") for message in body["messages"]]

    def use(self, calls: Calls, used: Used) -> dict[str, Any]:
        texts = [(name, arguments if isinstance(arguments, str) else json.dumps(arguments)) for name, arguments in calls]
        functions = [{"name": name, "arguments": arguments} for name, arguments in texts]
        made = [{"id": f"call-{n}", "type": "function", "function": function} for n, function in enumerate(functions)]
        choice = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": made}, "finish_reason": "tool_calls"}
        return self.answer(None, None, used) | {"choices": [choice]}

    def answer(self, text: Any, ends: str | None, used: Used | None) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": ends}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": self._usage(used)}

    def events(self, text: Any, ends: str | None, used: Used | None) -> Iterator[str]:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        for piece in pieces(text) if isinstance(text, str) else [[part] for part in text]:
            yield data(head | {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        yield data(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": ends}]})
        if used is not None:
            yield data(head | {"choices": [], "usage": self._usage(used)})
        yield "data: [DONE]\n\n"

    def error(self, status: int, code: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "some_error", "param": None, "code": code}}

    def overflow(self, prompt: int, window: int) -> tuple[int, str, str]:
        return 400, "context_length_exceeded", f"This model's maximum context length is {window} tokens; there are {prompt}."

    def _usage(self, used: Used | None) -> dict[str, Any] | None:
        if used is None:
            return None
        return {
            "prompt_tokens": used.prompt,
            "completion_tokens": used.output,
            "total_tokens": used.prompt + used.output,
            "prompt_tokens_details": {"cached_tokens": used.read},
        }


class Anthropic(Api):
    kind = "anthropic"
    ends = "end_turn"
    path = re.compile(r"/v1/messages")

    def blocks(self, body: dict[str, Any]) -> list[Block]:
        messages = [{"role": "system", "content": body.get("system", "")}, *body["messages"]]
        blocks = []
        for message in messages:
            content = message["content"]
            texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for text in texts:
                role = "tool" if text["type"] == "tool_result" else message["role"]
                shown = text.get("text") or text.get("content") or json.dumps(text.get("input", ""))
                blocks += [Block(role, shown, "cache_control" in text)] if shown != '""' else []
        return blocks

    def use(self, calls: Calls, used: Used) -> dict[str, Any]:
        made = [{"type": "tool_use", "id": f"toolu-{n}", "name": name, "input": given} for n, (name, given) in enumerate(calls)]
        return self._message(made, "tool_use", self._usage(used))

    def answer(self, text: str | None, ends: str | None, used: Used | None) -> dict[str, Any]:
        content = [{"type": "text", "text": text}] if text != "" else []
        return self._message(content, ends, self._usage(used))

    def events(self, text: str, ends: str | None, used: Used | None) -> Iterator[str]:
        usage = self._usage(used)
        started = usage | {"output_tokens": 0} if usage else None
        yield event({"type": "message_start", "message": self._message([], None, started)})
        yield event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for piece in pieces(text):
            yield event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
        yield event({"type": "content_block_stop", "index": 0})
        ended = {"type": "message_delta", "delta": {"stop_reason": ends, "stop_sequence": None}}
        yield event(ended | ({"usage": {"output_tokens": used.output}} if used else {}))
        yield event({"type": "message_stop"})

    def error(self, status: int, code: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": code, "message": message}}

    def overflow(self, prompt: int, window: int) -> tuple[int, str, str]:
        return 400, "invalid_request_error", f"prompt is too long: {prompt} tokens > {window} maximum"

    def _message(self, content: list[dict[str, Any]], ends: str | None, usage: dict[str, Any] | None) -> dict[str, Any]:
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
        return head | {"stop_reason": ends, "stop_sequence": None, "usage": usage}

    def _usage(self, used: Used | None) -> dict[str, Any] | None:
        if used is None:
            return None
        return {
            "input_tokens": used.prompt - used.read - used.written,
            "cache_read_input_tokens": used.read,
            "cache_creation_input_tokens": used.written,
            "output_tokens": used.output,
        }


class Google(Api):
    kind = "google"
    ends = "STOP"
    path = re.compile(r"/v1(?:beta)?/models/[^/]+:(generateContent|streamGenerateContent\?alt=sse)")

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return "streamGenerateContent" in path

    def blocks(self, body: dict[str, Any]) -> list[Block]:
        contents = [{"role": "system"} | body["systemInstruction"]] if "systemInstruction" in body else []
        return [self._block(content["role"], part) for content in contents + body["contents"] for part in content["parts"]]

    def _block(self, role: str, part: dict[str, Any]) -> Block:
        if "functionResponse" in part:
            return Block("tool", part["functionResponse"]["response"]["result"])
        return Block(role, part["text"] if "text" in part else json.dumps(part))

    def use(self, calls: Calls, used: Used) -> dict[str, Any]:
        parts = [{"functionCall": {"name": name, "args": given}, "thoughtSignature": "c2lnbmVk"} for name, given in calls]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        return {"candidates": [candidate], "usageMetadata": self._usage(used), "modelVersion": "m"}

    def answer(self, text: str | None, ends: str | None, used: Used | None) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": ends, "index": 0}
        return {"candidates": [candidate], "usageMetadata": self._usage(used), "modelVersion": "m"}

    def events(self, text: str, ends: str | None, used: Used | None) -> Iterator[str]:
        for piece in pieces(text):
            yield data(self.answer(piece, None, None))
        yield data(self.answer("", ends, used))

    def error(self, status: int, code: str, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": code}}

    def overflow(self, prompt: int, window: int) -> tuple[int, str, str]:
        return 400, "INVALID_ARGUMENT", f"The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."

    def _usage(self, used: Used | None) -> dict[str, Any] | None:
        if used is None:
            return None
        return {
            "promptTokenCount": used.prompt,
            "cachedContentTokenCount": used.read,
            "candidatesTokenCount": used.output,
            "totalTokenCount": used.prompt + used.output,
        }


APIS: list[Api] = [OpenAI(), Anthropic(), Google()]


def pieces(text: str) -> list[str]:
    """Split `text` into pieces of a few words."""
    return re.findall(r"(?:\S*\s*){1,3}", text)[:-1]


def data(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content)}\n\n"


def event(content: dict[str, Any]) -> str:
    return f"event: {content['type']}\n{data(content)}"
