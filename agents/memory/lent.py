"""What longspan lends to memory systems: a model and an embedder of its own, at an address on this machine that speaks OpenAI's API.

So all systems run with the same model and the same embedder, of any kind that longspan knows, also local ones; and what they take is
counted here, whatever they say of it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Final, TypeVar, final

import trio

from longspan.agents.base import AgentError, Usage
from longspan.agents.memory.ltm.embedders import Embedder
from longspan.agents.memory.memory import Used
from longspan.agents.models.core import ChatMessage, Completion, Core, Tool, clean
from longspan.agents.outside.counts import sum_of
from longspan.simulator.base.errors import LongspanError, one_line

__all__ = ["LentModels"]

MODEL: Final = "memory"
"""The part of a reply's usage that is the model's."""

EMBEDDER: Final = "embedder"
"""The part that is the embedder's."""

MAX_BODY: Final = 64 * 2**20
"""The maximum bytes of a request."""

NO_MODEL: Final = "the memory asks for a model, and none is lent to it: add model=KIND/MODEL, such as model=local"

T = TypeVar("T")


@final
class LentModels:
    """Lends `core`, if there is one, and `embedder` at `url`, in threads of its own, until it is closed."""

    def __init__(self, core: Core | None, embedder: Embedder) -> None:
        self._core, self._embedder = core, embedder
        self._used: dict[str, list[Usage]] = {}
        self.asked = self.tokens = 0
        self._broken = False
        self._lock = Lock()
        self._ready, self._over = Event(), Event()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The base address. It is served from the first time that somebody asks for it."""
        if self._server is None:
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
            self._server.daemon_threads = True
            Thread(target=self._server.serve_forever, name="longspan: lent models", daemon=True).start()
            Thread(target=trio.run, args=(self._home,), name="longspan: lent models' home", daemon=True).start()
            self._ready.wait()
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Fail whatever is asked for meanwhile."""
        self._broken = True
        try:
            yield
        finally:
            self._broken = False

    def take(self) -> Used:
        """Return what has been used since this was last asked, by role. A free embedder takes nothing."""
        with self._lock:
            used, self._used = self._used, {}
        return Used({role: sum_of(usages) for role, usages in used.items()})

    def close(self) -> None:
        """Stop serving. What is asked for afterwards fails."""
        self._over.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
            self._trio.run_sync_soon(self._end.set)
            self._ready.clear()

    # Where the model and the embedder live.

    async def _home(self) -> None:
        self._trio = trio.lowlevel.current_trio_token()
        self._end = trio.Event()
        self._ready.set()
        await self._end.wait()

    def _there(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns in Trio's thread."""

        async def done() -> T:
            return await work()

        return trio.from_thread.run(done, trio_token=self._trio)

    def _count(self, role: str, usage: Usage) -> None:
        with self._lock:
            self._used.setdefault(role, []).append(usage)
            self.tokens += usage.input_tokens + usage.output_tokens

    # Requests.

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        lent = self

        class Handler(BaseHTTPRequestHandler):
            """Answers a request."""

            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Answer with the result, or with an error as OpenAI words it."""
                try:
                    length = int(self.headers.get("Content-Length", 0))
                    if not 0 <= length <= MAX_BODY:
                        raise ValueError(f"a request has at most {MAX_BODY:,} bytes")
                    body = json.loads(self.rfile.read(length))
                    status, answer = 200, lent.answer(self.path, body)
                except (LongspanError, ValueError, TypeError, KeyError, RecursionError) as error:
                    status, answer = 400, {"error": {"message": one_line(error), "type": "invalid_request_error", "code": None}}
                written = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(written)))
                self.end_headers()
                self.wfile.write(written)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        return Handler

    def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request. Raises AgentError, and ValueError and the like for one that cannot be read."""
        self.asked += 1
        if self._broken:
            raise AgentError("this fails on purpose, to see whether the memory tells that it could not store something")
        if path.endswith("/embeddings"):
            return self._embeddings(body)
        if path.endswith("/chat/completions"):
            return self._completion(body)
        raise ValueError(f"there is no {path!r:.60}: only /v1/embeddings and /v1/chat/completions")

    def _embeddings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("input: must be a text or a list of texts")
        found = self._there(lambda: self._embedder.embed([clean(text) or " " for text in texts]))
        if self._embedder.model is not None:
            self._count(EMBEDDER, Usage(found.tokens))
        rows = found.vectors.tolist()
        if body.get("encoding_format") == "base64":
            from base64 import b64encode

            rows = [b64encode(row.astype("<f4").tobytes()).decode() for row in found.vectors]
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
        return {"object": "list", "model": self._embedder.name, "data": data, "usage": usage}

    def _completion(self, body: Mapping[str, Any]) -> dict[str, Any]:
        core = self._core
        if core is None:
            raise AgentError(NO_MODEL)
        if body.get("stream"):
            raise ValueError("stream: answers are not streamed")
        messages = [_message(each) for each in body["messages"]]
        given = body.get("response_format") or {}
        schema = given.get("json_schema", {}).get("schema") if given.get("type") == "json_schema" else None
        if given.get("type") == "json_object":
            schema = {"type": "object"}
        tools = [_tool(each) for each in body.get("tools") or ()]
        use_tools: Any = getattr(core, "use_tools", None)
        if tools and not callable(use_tools):
            raise AgentError(f"the memory gives its model tools, which {core.name} cannot call: lend another by model=KIND/MODEL")
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        most = min(int(most), core.max_output) if most else None
        completion: Completion = self._there(
            (lambda: use_tools(_merged(messages), tools))
            if tools
            else (lambda: core.complete(_merged(messages), max_tokens=most, schema=schema))
        )
        self._count(MODEL, completion.usage)
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in completion.calls
        ]
        said: dict[str, Any] = {"role": "assistant", "content": completion.text or None} | ({"tool_calls": calls} if calls else {})
        usage = completion.usage
        counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        return {
            "id": f"lent-{self.asked}",
            "object": "chat.completion",
            "created": 0,
            "model": core.name,
            "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "length" if completion.cut else "stop"}],
            "usage": counts | {"total_tokens": usage.input_tokens + usage.output_tokens},
        }


def _message(message: Mapping[str, Any]) -> ChatMessage:
    """Return a message as a core takes it. Raises ValueError for one of a tool."""
    role, content = message["role"], message.get("content") or ""
    if role == "developer":
        role = "system"
    if role not in ("system", "user", "assistant"):
        raise ValueError(f"a message of {role!r:.40} is not passed on: only those of system, user and assistant")
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content if part.get("type") == "text")
    return ChatMessage(role, clean(content))


def _merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return messages in the order that cores take: one of the system first, then user and assistant in turn, beginning with the user."""
    system = "\n\n".join(message.text for message in messages if message.role == "system")
    merged: list[ChatMessage] = []
    for message in messages:
        if message.role == "system":
            continue
        if merged and merged[-1].role == message.role:
            merged[-1] = ChatMessage(message.role, f"{merged[-1].text}\n\n{message.text}")
        else:
            merged.append(message)
    if not merged:
        return [ChatMessage("user", system)]
    if merged[0].role == "assistant":
        merged.insert(0, ChatMessage("user", "(The conversation so far.)"))
    if merged[-1].role == "assistant":
        merged.append(ChatMessage("user", "Go on."))
    return [*([ChatMessage("system", system)] if system else []), *merged]


def _tool(tool: Mapping[str, Any]) -> Tool:
    function = tool["function"]
    return Tool(str(function["name"]), str(function.get("description") or ""), function.get("parameters") or {"type": "object"})
