"""OpenTelemetry traces of runs in progress (docs/guides/tracing.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.base.terminal import complain
from longspan.simulator.subject.telemetry import TELEMETRY

__all__ = ["export_and_report", "export_traces"]


@contextmanager
def export_traces(wanted: bool) -> Iterator[Any]:
    """If `wanted`, export a trace of everything played inside the context, and yield the Tracing. Otherwise yield None.

    The Tracing is closed at the end. Its `counts` then give the number of lost spans. Raises InputError if the extra is missing, or if the
    environment variables name an unusable collector.
    """
    if not wanted:
        yield None
        return
    try:
        from longspan.simulator.subject.tracing.spans import TraceExporter
    except ImportError as error:
        raise InputError(f"--otel needs an extra: {install_extra('otel')}") from error
    tracing = TraceExporter()
    token = TELEMETRY.set(tracing)
    try:
        yield tracing
    finally:
        TELEMETRY.reset(token)
        tracing.close()


@contextmanager
def export_and_report(wanted: bool) -> Iterator[None]:
    """Export like `export_traces`. At the end, print a line about spans that could not be exported."""
    with export_traces(wanted) as tracing:
        yield
    if tracing is not None and tracing.lost:
        complain(tracing.lost)
