"""A fake JSON API on this machine: a function answers each POST."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, final

__all__ = ["QueueingServer", "Service"]


class QueueingServer(ThreadingHTTPServer):
    """As many conversations may connect at once as longspan plays."""

    daemon_threads = True
    request_queue_size = 200


@final
class Service:
    """`say` returns the status and body for a request's JSON. `asked` holds the path, key and JSON of each request."""

    def __init__(self, say: Callable[[dict[str, Any]], tuple[int, bytes]]) -> None:
        self.say = say
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.address = ""

    @contextmanager
    def running(self) -> Iterator[Self]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.asked.append((self.path, self.headers["authorization"], body))
                status, content = service.say(body)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        server = QueueingServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
