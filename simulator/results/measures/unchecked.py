"""A warning that a memory was played without its checks, at its user's request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Unchecked"]

UNCHECKED: Final = (
    "The memory was played without its checks, as requested: whether it keeps facts, honours k and separates users is unknown."
)


@final
class Unchecked(Measure):
    """Warns if a memory was not checked before it was played."""

    name = "unchecked"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        played = run.manifest.imported is None  # the agent of an imported run need not have a spec
        return {"unchecked": played and AgentSpec.parse(run.manifest.agent).unchecked}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        return Document(notices=[Sentence(UNCHECKED, tone="warning")] if result.unchecked else [])
