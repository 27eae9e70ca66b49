"""OpenTelemetry traces of runs as they are played (docs/tracing.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.terminal import complain
from longspan.simulator.subject.telemetry import TELEMETRY

__all__ = ["exporting", "telling"]


@contextmanager
def exporting(wanted: bool) -> Iterator[Any]:
    """If `wanted`, export a trace of everything played inside the context, and yield the Tracing; otherwise yield None.

    The Tracing is closed at the end; its `counts` then say what could not be exported. Raises InputError if the extra is missing, or if the
    environment names a collector that cannot be used.
    """
    if not wanted:
        yield None
        return
    try:
        from longspan.simulator.tracing.spans import Tracing
    except ImportError as error:
        raise InputError("--otel needs an extra: pip install 'longspan[otel]'") from error
    tracing = Tracing()
    token = TELEMETRY.set(tracing)
    try:
        yield tracing
    finally:
        TELEMETRY.reset(token)
        tracing.close()


@contextmanager
def telling(wanted: bool) -> Iterator[None]:
    """Export as `exporting` does, and at the end print a line about spans that could not be exported."""
    with exporting(wanted) as tracing:
        yield
    if tracing is not None and tracing.lost:
        complain(tracing.lost)
