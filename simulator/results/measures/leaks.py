"""A warning that one question about a history may reveal another's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Leaks"]

LEAKS: Final = "The questions about a history were asked one after another: one may reveal another's answer."


@final
class Leaks(Measure):
    """Warns if the questions about a history were asked one after another."""

    name = "leaks"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return {"leaks": run.manifest.asked == "off"}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        return Document(notices=[Sentence(LEAKS, tone="warning")] if result.leaks else [])
