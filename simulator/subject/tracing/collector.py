"""Sends spans to the user's collector: OTLP over HTTP from a separate thread, configured by OpenTelemetry's environment variables.

A collector may be down, slow or hostile. So the queue of spans is bounded, only the end of a run waits for the collector, for a few
seconds, and only the status of its answers is read.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Any, Final, final
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from longspan.simulator.base.errors import InputError, one_line

__all__ = ["Collector"]

DEFAULT: Final = "http://localhost:4318"
"""The default address of a local collector, by OpenTelemetry's convention."""

PROTOCOL: Final = "http/protobuf"

CLOSE_SECONDS: Final = 5.0
"""The number of seconds that the end of a run waits for the last spans."""

NOISY: Final = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
"""The loggers that would print errors about the collector in the middle of a run."""

_ours: Final = ContextVar("ours", default=False)
"""Whether this module is calling the exporter's library. It is False while the user's own telemetry calls it."""


@final
class Collector(SpanProcessor):
    """Exports finished spans in batches. `made` and `exported` count them. `problem` is the reason for the last failure.

    Raises InputError if the environment variables name an unusable collector.
    """

    def __init__(self) -> None:
        self.made = 0
        address = _address()
        self._session = _Session(address)
        try:
            self._exporter = _Exporter(OTLPSpanExporter(endpoint=address, session=self._session))
            self._batches: SpanProcessor = BatchSpanProcessor(self._exporter)
        except Exception as error:  # for example, a variable that is not a number, or a missing credential provider
            raise InputError(f"--otel: OpenTelemetry's environment variables cannot be used: {one_line(error)}") from error
        for name in NOISY:
            logging.getLogger(name).addFilter(_not_ours)

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.made += 1
            token = _ours.set(True)
            try:
                self._batches.on_end(span)
            finally:
                _ours.reset(token)

    @property
    def exported(self) -> int:
        return self._exporter.exported

    @property
    def problem(self) -> str:
        return f"{_public_address(self._session.address)} {self._session.problem or 'did not take them in time'}"

    def close(self) -> None:
        """Export the remaining spans. Gives up after CLOSE_SECONDS, or immediately if the connection is refused."""
        over = self._session.over

        def finish() -> None:
            self._batches.shutdown()
            over.set()

        threading.Thread(target=finish, name="longspan: the last spans", daemon=True).start()
        over.wait(CLOSE_SECONDS)
        self._exporter.shutdown()


@final
class _Exporter(SpanExporter):
    """An exporter that counts exported spans."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_shut_down = False
        self.exported = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        token = _ours.set(True)
        try:
            result = self._exporter.export(spans)
        finally:
            _ours.reset(token)
        if result is SpanExportResult.SUCCESS:
            self.exported += len(spans)
        return result

    def shutdown(self) -> None:
        if not self._is_shut_down:
            self._is_shut_down = True
            self._exporter.shutdown()


@final
class _Session(requests.Session):
    """Sends spans to `address`. Reads only the status of the answer, because a hostile collector may send any amount of data.

    `problem` is the last failure, or "". `over` is set if the collector is unreachable, or if nothing is left to send.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.problem = ""
        self.over = threading.Event()
        self.trust_env = not _is_loopback(address)  # a proxy cannot reach this machine's loopback address

    def request(self, method: Any, url: Any, *arguments: Any, **options: Any) -> requests.Response:
        try:
            response = super().request(method, url, *arguments, **options | {"stream": True})
        except requests.Timeout:
            self.problem = "did not answer in time"
            raise
        except requests.ConnectionError:
            self.problem = "cannot be reached"
            self.over.set()
            raise
        except Exception as error:
            self.problem = f"cannot be used ({type(error).__name__})"  # the error's message may contain a key
            raise
        response.close()
        self.over.clear()
        if response.ok and not response.is_redirect:
            self.problem = ""
        else:
            self.problem = f"answered {response.status_code}"
        if 300 <= response.status_code < 400:
            raise requests.RequestException(self.problem)  # the exporter would treat a redirect as success
        return response


def _address() -> str:
    """Return the collector's address from the environment variables. Raises InputError if they cannot be used."""
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if protocol := os.environ.get(name):
            if protocol != PROTOCOL:
                raise InputError(f"--otel: {name}={protocol!s:.40}: longspan speaks {PROTOCOL} only; set it, and its port, usually 4318")
            break
    name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    if not (address := os.environ.get(name)):
        name = "OTEL_EXPORTER_OTLP_ENDPOINT"
        address = f"{(os.environ.get(name) or DEFAULT).removesuffix('/')}/v1/traces"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"--otel: {name} is not an address; expected http(s)://host:port, such as {DEFAULT}")
    return address


def _public_address(address: str) -> str:
    """Return an address without user name, password and query, which may be secret."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _not_ours(record: logging.LogRecord) -> bool:
    return not _ours.get()
