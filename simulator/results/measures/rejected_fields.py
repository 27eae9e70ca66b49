"""What servers rejected in requests for a run's models, according to traces and the judge's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.filler.draws import join_words
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.transcript import Change, PlayedTurn
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["RejectedFields"]

LENGTH: Final = 60
"""The maximum characters of a name. An agent's trace may have any."""


@final
class RejectedFields(Measure):
    """The parts of a conversation's requests that were left out because a server rejects them (`dropped` in traces)."""

    name = "rejected fields"

    def __init__(self) -> None:
        self.dropped: set[str] = set()

    def fold(self, event: Event, change: Change) -> None:
        """Read the trace of a reply."""
        if isinstance(change, PlayedTurn) and change.reply is not None:
            self.dropped |= _names((change.reply.trace or {}).get("dropped"))

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        own = set[str]().union(*(each.dropped for each in read.values()))
        roles = {"answerer" if "answerer=" in run.manifest.agent else "agent": own}
        roles["judge"] = set[str]().union(*map(_names, run.dropped_by_judge))
        return {"dropped": {role: sorted(names) for role, names in roles.items() if names}}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        told = [f"{join_words(names)} ({role})" for role, names in result.dropped.items()]
        left_out = f"Servers reject parts of the requests, which were left out: {'; '.join(told)}"
        return Document(notices=[Sentence(left_out, "Left out", "warning")] if told else [])


def _names(dropped: object) -> set[str]:
    """Return the names in a trace or in a judge's answer, both of which may come from a file."""
    return {name[:LENGTH] for name in dropped if isinstance(name, str)} if isinstance(dropped, list) else set()
