"""Fake servers that keep conversations themselves: chat completions with a session id, OpenAI's Responses API, and A2A."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, final

from tests.loopback.service import QueueingServer

__all__ = ["Stateful", "recite"]

WORDS = ("sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef")

Said = tuple[str, str]
"""A role and a text."""


def recite(said: Sequence[Said]) -> str:
    """Return a reply that depends on the whole conversation: words by its digest, and the earlier message most like the last one."""
    digest = hashlib.sha256(repr(list(said)).encode()).hexdigest()
    last = _words(said[-1][1])
    alike = max((text for role, text in said[:-1] if role == "user"), key=lambda text: len(last & _words(text)), default="")
    return f"{' '.join(WORDS[int(digit, 16) % len(WORDS)] for digit in digest[:5])}. {alike[-200:]}"


@final
class Stateful:
    """Answers with the result of `reply` for a conversation. `asked` has each request's path, headers and JSON.

    `sessions` holds the conversations of chat completions and of A2A by id, and `responses` each answer's; `continued` says from which
    answer. An answer's id is a digest of its conversation, so that two runs with the same turns get the same ids. `acts` replace the next
    answers: a status and an answer each.

    Over A2A, it speaks `version`. `modes` say how it answers the next messages: with a "message" (as later ones), or with a task that is
    "completed", "working" for two polls before it is, or ends in another state. A task's text is in an artifact if it is completed, else in
    its status.
    """

    def __init__(self, reply: Callable[[Sequence[Said]], str] = recite, *, session: str = "X-Session-Id", version: str = "1.0") -> None:
        self.reply, self.session, self.version = reply, session, version
        self.modes: deque[str] = deque()
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.sessions: dict[str, list[Said]] = {}
        self.responses: dict[str, list[Said]] = {}
        self.continued: dict[str, str | None] = {}
        self.tasks: dict[str, deque[dict[str, Any]]] = {}
        self.acts: deque[tuple[int, Any]] = deque()
        self.on_answer: Callable[[int], None] = lambda number: None
        self.lock = threading.Lock()
        self.address = ""

    @contextmanager
    def running(self) -> Iterator[Stateful]:
        server = QueueingServer(("127.0.0.1", 0), self._handler())
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        """Return the status and the JSON of the answer to a request."""
        with self.lock:
            self.asked.append((path, headers, body))
            status, answer = self.acts.popleft() if self.acts else self._answer(path, headers, body)
            self.on_answer(len(self.asked))
        return status, answer

    def _answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/v1/chat/completions":
            return self._chat(headers, body)
        if path == "/v1/responses":
            return self._respond(body)
        if path == "/.well-known/agent-card.json":
            return 200, self.card()
        if path == "/rpc":
            return 200, {"jsonrpc": "2.0", "id": body["id"], "result": self._call(body["method"], body["params"])}
        return 404, {"error": {"message": f"there is no {path}"}}

    def card(self) -> dict[str, Any]:
        """Return the A2A agent's card."""
        if self.version.startswith("0."):
            return {"name": "reciter", "url": f"{self.address}/rpc", "protocolVersion": self.version}
        interfaces = [("GRPC", "http://127.0.0.1:9"), ("JSONRPC", f"{self.address}/rpc")]
        listed = [{"protocolBinding": binding, "url": url, "protocolVersion": self.version} for binding, url in interfaces]
        return {"name": "reciter", "supportedInterfaces": listed}

    def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        old = self.version.startswith("0.")
        if method == ("tasks/get" if old else "GetTask"):
            states = self.tasks[params["id"]]
            return states.popleft() if len(states) > 1 else states[0]
        assert method == ("message/send" if old else "SendMessage")
        sent = params["message"]
        assert (sent["role"], "kind" in sent) == (("user", True) if old else ("ROLE_USER", False))
        context = sent.get("contextId") or f"context-{len(self.sessions) + 1}"
        said = self.sessions.setdefault(context, [])
        said.append(("user", "".join(part["text"] for part in sent["parts"])))
        text = self.reply(said)
        said.append(("assistant", text))
        mode = self.modes.popleft() if self.modes else "message"
        parts = [{"kind": "text", "text": text}] if old else [{"text": text}]
        if mode == "message":
            message = {"messageId": "m", "contextId": context, "role": "agent" if old else "ROLE_AGENT", "parts": parts}
            return message | {"kind": "message"} if old else {"message": message}
        id = sent.get("taskId") or f"task-{len(self.tasks) + 1}"
        states = ["working", "working", "completed"] if mode == "working" else [mode]
        tasks = []
        for state in states:
            named = state if old else f"TASK_STATE_{state.upper().replace('-', '_')}"
            task: dict[str, Any] = {"id": id, "contextId": context, "status": {"state": named}} | ({"kind": "task"} if old else {})
            if state == "completed":
                task["artifacts"] = [{"artifactId": "a", "parts": [*parts, {"data": {"n": 1}}]}]
            elif state != "working":
                task["status"]["message"] = {"messageId": "m", "parts": parts}
            tasks.append(task)
        self.tasks[id] = deque(tasks[1:] or tasks)
        return tasks[0] if old else {"task": tasks[0]}

    def _chat(self, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        id = headers.get(self.session.lower()) or body.get(self.session)
        if not id:
            return 400, {"error": {"message": f"no {self.session}"}}
        said = self.sessions.setdefault(id, [])
        said += [(message["role"], message["content"]) for message in body["messages"]]
        text = self.reply(said)
        usage = {"prompt_tokens": _size(said), "completion_tokens": _size([("", text)])}
        said.append(("assistant", text))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}

    def _respond(self, body: dict[str, Any]) -> tuple[int, Any]:
        before = body.get("previous_response_id")
        if before is not None and before not in self.responses:
            message = f"Previous response with id '{before}' not found."
            return 400, {"error": {"message": message, "code": "previous_response_not_found", "param": "previous_response_id"}}
        earlier = self.responses.get(before, [])
        said = [*earlier, *((item["role"], item["content"]) for item in body["input"])]
        prompt = [("system", body["instructions"]), *said] if "instructions" in body else said
        text = self.reply(prompt)
        said = [*said, ("assistant", text)]
        id = "resp_" + hashlib.sha256(repr(said).encode()).hexdigest()[:24]
        if body["store"]:
            self.responses[id] = said
            self.continued[id] = before
        return 200, response(id, text, read=_size(prompt), cached=_size(earlier), wrote=_size([("", text)]), previous_response_id=before)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_GET(self) -> None:
                self._send(*owner.answer(self.path, self._named(), {}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = owner.answer(self.path, self._named(), body)
                if body.get("stream") and status == 200:
                    kind = f"response.{answer['status']}"
                    answer = f"event: {kind}\ndata: {json.dumps({'type': kind, 'response': answer})}\n\n".encode()
                self._send(status, answer)

            def _named(self) -> dict[str, str]:
                return {name.lower(): value for name, value in self.headers.items()}

            def _send(self, status: int, answer: Any) -> None:
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        return Handler


def response(id: str, text: str, *, read: int = 9, cached: int = 0, wrote: int = 3, **more: Any) -> dict[str, Any]:
    """Return a response as OpenAI's API answers."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": text, "annotations": []}
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + wrote,
    }
    head = {"id": id, "object": "response", "created_at": 1, "model": "m", "error": None, "incomplete_details": None}
    return head | {"status": "completed", "output": [message | {"content": [part]}], "usage": usage} | more


def _words(text: str) -> set[str]:
    """Return the words of a message, without the virtual time at its start."""
    return set(re.findall(r"[a-z]\w*", re.sub(r"^\[.*?\]", "", text).lower()))


def _size(said: Sequence[Said]) -> int:
    return sum(4 + len(text) // 4 for _, text in said)
