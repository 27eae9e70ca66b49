"""A provider that counts what it charges, and can kill, refuse, garble or drop at any request."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

__all__ = ["PRICES", "Fate", "Provider"]

PRICES = "price_in=10&price_out=100"
"""Options with the provider's prices, in dollars per million tokens."""

Fate = Literal["answer", "kill before", "kill after", "refuse", "garble", "drop"]
"""What becomes of a request. All but refused ones are charged. "kill": the process that asked dies before it has the answer, or with it."""


class Provider:
    """Speaks OpenAI's chat completions. The request after `after` others has a `fate`; its client is the process `victim`."""

    def __init__(self) -> None:
        self.charged = 0
        """Millionths of a dollar, exactly."""
        self.dearest = 0
        self.requests = 0
        self.lost = 0
        """How many charged answers nobody has read."""
        self.fates: deque[tuple[int, Fate]] = deque()
        self.victim: int | None = None
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def dollars(self) -> float:
        return self.charged / 1e6

    @contextmanager
    def running(self) -> Iterator[Provider]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def plan(self, after: int, fate: Fate) -> None:
        """Set the fate of the request after this many more."""
        self.fates.append((self.requests + after, fate))

    def charge(self, body: dict[str, Any]) -> tuple[Fate, dict[str, int]]:
        """Count a request, and return its fate and its usage."""
        with self._lock:
            fate: Fate = "answer"
            if self.fates and self.fates[0][0] <= self.requests:
                _, fate = self.fates.popleft()
            self.requests += 1
            size = sum(len(message["content"]) for message in body["messages"]) // 4
            usage = {"prompt_tokens": size + self.requests % 7, "completion_tokens": 3 + self.requests % 5}
            if fate != "refuse":
                cost = 10 * usage["prompt_tokens"] + 100 * usage["completion_tokens"]
                self.charged += cost
                self.dearest = max(self.dearest, cost)
                self.lost += fate in ("kill before", "garble", "drop")
            return fate, usage

    def strike(self) -> None:
        if self.victim is not None:
            with suppress(ProcessLookupError):
                os.kill(self.victim, signal.SIGKILL)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fate, usage = provider.charge(body)
                if fate == "kill before":
                    provider.strike()
                if fate in ("kill before", "drop"):
                    self.close_connection = True
                    return
                if fate == "refuse":
                    self._send(401, {"error": {"message": "who are you", "code": "invalid_api_key"}})
                elif fate == "garble":
                    self._send(200, {"choices": "none"})
                else:
                    message = {"role": "assistant", "content": "OK."}
                    usage |= {"total_tokens": sum(usage.values())}
                    choice = {"index": 0, "message": message, "finish_reason": "stop"}
                    self._send(
                        200, {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
                    )
                if fate == "kill after":
                    provider.strike()

            def _send(self, status: int, answer: dict[str, Any]) -> None:
                content = json.dumps(answer).encode()
                with suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        return Handler
