"""Whether a memory was played without checks, as its user requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Unchecked"]

UNCHECKED: Final = (
    "The memory was played unchecked, as its user asked for: that it keeps what it is told, honours k and keeps users apart was not tried."
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
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        return Document(notices=[Sentence(UNCHECKED, tone="warning")] if result.unchecked else [])
