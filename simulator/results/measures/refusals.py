"""Refusals by the agent's model: their number, and the tests where they occurred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Refusals"]

NAMED: Final = 5
"""The maximum number of tests that the sentence names."""


@final
class Refusals(Measure):
    """How often the agent's model refused."""

    name = "refusals"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return {"refused": sum(transcript.refused for transcript in run.own)}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        return Document(notices=[Sentence(_describe_refusals(result), "Refused", "warning")] if result.refused else [])


def _describe_refusals(result: Result) -> str:
    """Describe how often the agent's model refused, and the tests where it did."""
    tests = [f"{test.id} ({test.refused})" for test in result.tests if test.refused]
    named = [*tests[:NAMED], f"{len(tests) - NAMED} more"] if len(tests) > NAMED else tests
    if named and (others := result.refused - sum(test.refused for test in result.tests)):
        named = [*named, f"filler ({others})"]
    replies = "1 reply is a refusal" if result.refused == 1 else f"{result.refused:,} replies are refusals"
    return f"{replies} by the agent's model" + (f", in {join_words(named)}" if named else ", none of them in a test")
