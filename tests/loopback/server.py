"""The fake server: a thread for each connection, a log of requests, and scripted or plain answers."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from longspan.simulator.base.tokens import Tokenizer
from tests.loopback.acts import Act, Cut, Hang, Raw, Say, Status, Use
from tests.loopback.apis import APIS, Api, Block, Used
from tests.loopback.caching import Cache
from tests.loopback.quirks import Quirks

__all__ = ["Asked", "Server"]

FRAME = 4
"""Tokens around each message."""


@dataclass(frozen=True)
class Asked:
    """A request, its time by the monotonic clock, and the usage in its answer."""

    kind: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    used: Used | None

    @property
    def texts(self) -> list[tuple[str, str]]:
        """The roles and texts of the prompt."""
        api = next(api for api in APIS if api.kind == self.kind)
        return [(block.role, block.text) for block in api.blocks(self.body)]


class Server:
    """Answers after `latency` seconds with the result of `reply` for the last message: a text, or another reaction.

    `window`: the maximum tokens of a prompt. `weight`: its tokens per token of ours. `acts` are reactions to the next requests, one
    each. `quirks`: what it rejects, and the form of its answers. `always` replaces plain answers, and so does `decide`, which is given the
    prompt's blocks.
    """

    def __init__(
        self,
        *,
        quirks: Quirks | None = None,
        latency: float = 0.0,
        reply: Callable[[str], str | Act] = lambda text: "OK.",
        window: int | None = None,
        weight: float = 1.0,
        port: int = 0,
        decide: Callable[[list[Block]], Act] | None = None,
    ) -> None:
        self.latency, self.reply, self.window, self.weight = latency, reply, window, weight
        self.quirks = quirks or Quirks()
        self.acts: deque[Act] = deque()
        self.always: Act | None = None
        self.decide = decide
        self.asked: list[Asked] = []
        self.at_once = self.most_at_once = 0
        self._caches = {api.kind: Cache(marks=api.kind == "anthropic") for api in APIS}
        self._count = Tokenizer("o200k_base").count
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, kind: str) -> str:
        """Return the base_url for an agent of this kind."""
        return f"{self.address}/v1" if kind == "openai" else self.address

    def model(self, name: str = "gpt-4o") -> str:
        """Return the spec of an OpenAI model on this server."""
        return f"openai/{name}?base_url={self.base_url('openai')}&timeout=20&stream=false"

    def script(self, acts: Iterable[Act]) -> None:
        self.acts.extend(acts)

    @contextmanager
    def running(self) -> Iterator[Server]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._closing.set()
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def serve(self) -> None:
        """Serve until the process ends."""
        self._http.serve_forever()

    # Called in the threads of connections.

    def busy(self, more: int) -> None:
        with self._lock:
            self.at_once += more
            self.most_at_once = max(self.most_at_once, self.at_once)

    def wait(self, seconds: float) -> None:
        if seconds:
            self._closing.wait(seconds)

    def act(self, api: Api, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[Act, Used]:
        """Return the reaction to a request, and its usage."""
        with self._lock:
            planned = self.quirks.reject(body) or (self.acts.popleft() if self.acts else self.always)
            blocks = api.blocks(body)
            sizes = [self._size(block.text) for block in blocks]
            act = planned or (self.decide(blocks) if self.decide else self._plain(api, sum(sizes), blocks[-1].text))
            read, written = self._caches[api.kind].look_up(blocks, sizes) if isinstance(act, Say | Use) else (0, 0)
            output = self._count(act.text or "" if isinstance(act, Say) else str(act.calls)) if isinstance(act, Say | Use) else 0
            used = Used(sum(sizes), read, written, output)
            self.asked.append(Asked(api.kind, path, headers, body, time.monotonic(), used if isinstance(act, Say | Use) else None))
        return act, used

    def _plain(self, api: Api, prompt: int, last: str) -> Act:
        if self.window is not None and prompt > self.window:
            status, code, message = api.overflow(prompt, self.window)
            return Status(status, message, code)
        reaction = self.reply(last)
        return Say(reaction, shape=self.quirks.shape) if isinstance(reaction, str) else reaction

    def _size(self, text: str) -> int:
        if text not in self._sizes:
            self._sizes[text] = round(self._count(text) * self.weight) + FRAME
        return self._sizes[text]


class _Http(ThreadingHTTPServer):
    owner: Server
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect: that is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        api = next((api for api in APIS if api.path.fullmatch(self.path)), None)
        if api is None:
            return self._send(404, b'{"error": {"message": "there is nothing here"}}')
        owner.busy(+1)
        try:
            act, used = owner.act(api, self.path, dict(self.headers), body)
            owner.wait(owner.latency)
            with suppress(BrokenPipeError, ConnectionResetError):
                self._do(act, api, used, api.streams(self.path, body))
        finally:
            owner.busy(-1)
        return None

    def _do(self, act: Act, api: Api, used: Used, stream: bool) -> None:
        match act:
            case Say(text, ends, usage, shape):
                reason = api.ends if ends == "" else ends
                content = text if shape is None else shape(text or "")
                if stream:
                    self._stream(api.events(content or "", reason, used if usage else None))
                else:
                    self._send(200, json.dumps(api.answer(content, reason, used if usage else None)).encode())
            case Use(calls):
                self._send(200, json.dumps(api.use(calls, used)).encode())
            case Status(status, message, code, headers):
                self._send(status, json.dumps(api.error(status, code, message)).encode(), headers)
            case Raw(content, status, headers):
                self._send(status, content, headers)
            case Cut(text):
                self._cut(api, text, used, stream)
            case Hang():
                self.close_connection = True
                self.connection.settimeout(20)
                with suppress(OSError):
                    self.connection.recv(1)  # until the client closes it

    def _send(self, status: int, content: bytes, headers: Any = None) -> None:
        self.send_response(status)
        for name, value in ({"content-type": "application/json"} | dict(headers or {})).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _stream(self, events: Iterable[str], complete: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            content = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
            self.wfile.flush()
        if complete:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _cut(self, api: Api, text: str, used: Used, stream: bool) -> None:
        self.close_connection = True
        if stream:
            return self._stream(list(api.events(text, api.ends, used))[:3], complete=False)
        content = json.dumps(api.answer(text, api.ends, used)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        return None
