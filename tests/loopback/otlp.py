"""A collector of OpenTelemetry traces on loopback: OTLP over HTTP, with protobuf."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

__all__ = ["Collector", "Seen"]


@final
@dataclass(frozen=True)
class Seen:
    """A span: ids in hexadecimal, times in nanoseconds since 1970."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    failed: bool
    service: str
    attributes: dict[str, Any]


@final
class Collector:
    """Keeps the spans it is sent, with the `headers` of each request and the raw `bodies`."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.changed = threading.Condition()

    @contextmanager
    def running(self) -> Iterator[Collector]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.path == "/v1/traces"
                assert self.headers["content-type"] == "application/x-protobuf"
                with collector.changed:
                    collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                    collector.bodies.append(body)
                    collector.spans += _spans(body)
                    collector.changed.notify_all()
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield self
        finally:
            server.shutdown()
            serving.join()
            server.server_close()

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait until what has been received fulfils a condition."""
        with self.changed:
            self.changed.wait_for(until)

    def named(self, name: str) -> list[Seen]:
        """Return the spans whose names begin so, by their start."""
        return sorted((span for span in self.spans if span.name.startswith(name)), key=lambda span: (span.start, span.end))

    def below(self, span: Seen) -> list[Seen]:
        """Return the spans right below one."""
        return [other for other in self.spans if other.parent == span.id and other.trace == span.trace]


def _spans(body: bytes) -> Iterator[Seen]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            attributes = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
            times = span.start_time_unix_nano, span.end_time_unix_nano
            ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
            yield Seen(span.name, *ids, *times, span.status.code == 2, service, attributes)
