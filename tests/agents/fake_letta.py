"""A server that speaks as much of Letta's published API as an archival memory needs, as letta-client 1.12 calls it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

AGENT: Final = re.compile(r"/v1/agents/(?P<agent>[^/]+)(?P<rest>/archival-memory(?:/search)?)?")


class Letta:
    """The agents, each with its passages. `keys`: the keys that it was sent. `broken`: creating a passage fails."""

    def __init__(self) -> None:
        self.agents: dict[str, list[dict[str, Any]]] = {}
        self.keys: set[str | None] = set()
        self.made = 0
        self.broken = False

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """Return the status and the answer to a request."""
        self.made += 1
        if (method, path) == ("POST", "/v1/agents/"):
            self.agents[f"agent-{self.made}"] = []
            return 200, {"id": f"agent-{self.made}", "name": body["name"]}
        match = AGENT.fullmatch(path)
        if match is None or match["agent"] not in self.agents:
            return 404, {"detail": "not found"}
        passages = self.agents[match["agent"]]
        if (method, match["rest"]) == ("DELETE", None):
            del self.agents[match["agent"]]
            return 200, None
        if (method, match["rest"]) == ("POST", "/archival-memory"):
            if self.broken:
                return 500, {"detail": "no embedder"}
            passage = {"id": f"passage-{self.made}", "text": body["text"], "created_at": body["created_at"], "tags": body["tags"]}
            passages.append(passage)
            return 200, [passage]
        if (method, match["rest"]) == ("GET", "/archival-memory/search"):
            wanted = set(re.findall(r"\w{3,}", query["query"][0].lower()))
            scored = [(len(wanted & set(re.findall(r"\w{3,}", each["text"].lower()))), each) for each in passages]
            best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])[: int(query["top_k"][0])]
            found = [
                {"id": each["id"], "content": each["text"], "timestamp": each["created_at"].replace("Z", "+00:00"), "tags": each["tags"]}
                for _, each in best
            ]
            return 200, {"count": len(found), "results": found}
        return 405, {"detail": "not allowed"}

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve, and yield the address."""
        letta = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                letta.keys.add(self.headers["authorization"])
                at = urlsplit(self.path)
                body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or b"null")
                status, answer = letta.answer(self.command, at.path, parse_qs(at.query), body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
