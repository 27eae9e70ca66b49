"""Failures of an agent's inner calls of its model, according to its traces, and how often its notes stayed the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.journal.events import Event, Night, Reply, Settled
from longspan.simulator.journal.transcript import Change
from longspan.simulator.results.measures.group_tables import one_line
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import CallsOf, Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["InnerCalls"]

FROZEN: Final = 0.5
"""The least share of unchanged notes that a sentence reports. A lower share is normal, since some turns contain no news."""

LENGTH: Final = 80
"""The maximum characters shown of a purpose or a problem. The agent writes both, so they may have any length."""


@final
class InnerCalls(Measure):
    """The inner calls of an agent's model by purpose, and the number of times it took notes."""

    name = "inner calls"

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.problems: Counter[tuple[str, str]] = Counter()
        self.noted = self.unchanged = 0
        self._notes = ""

    def fold(self, event: Event, change: Change) -> None:
        """Read the trace of a reply, or of work between two turns."""
        if not isinstance(event, Reply | Night | Settled) or not event.trace:
            return
        for call in _calls(event.trace):
            purpose = str(call["for"])[:LENGTH]
            self.calls[purpose] += 1
            if problem := call.get("problem"):
                self.failed[purpose] += 1
                self.problems[purpose, one_line(str(problem)[:LENGTH])] += 1
        notes = event.trace.get("notes")
        if isinstance(notes, str):
            self.noted += 1
            self.unchanged += notes == self._notes
            self._notes = notes

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        own = [read[id] for id in run.manifest.conversations if id in read]
        calls, failed = sum((each.calls for each in own), Counter()), sum((each.failed for each in own), Counter())
        problems: Counter[tuple[str, str]] = sum((each.problems for each in own), Counter())
        most = {purpose: problem for (purpose, problem), _ in reversed(problems.most_common())}
        noted = sum(each.noted for each in own)
        return {
            "calls": {
                purpose: CallsOf(calls=count, failed=failed[purpose], problem=most.get(purpose, "")) for purpose, count in calls.items()
            },
            **({"notes_taken": noted, "notes_unchanged": sum(each.unchanged for each in own)} if noted else {}),
        }

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        told = list(_describe_inner_calls(result))
        return Document(notices=[Sentence(" ".join(told), "Inner calls", "warning")] if told else [])


def _calls(trace: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = trace.get("calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping) and call.get("for"):
            yield call


def _describe_inner_calls(result: Result) -> Iterator[str]:
    """Yield a sentence for each purpose with failed inner calls, and one for notes that stayed the same."""
    for purpose, each in result.calls.items():
        if each.failed:
            failed = f"{each.failed:,} of {each.calls:,} answers to requests for {one_line(purpose)} could not be used"
            yield f"{failed}: {each.problem}."
    noted, unchanged = (int(result.metrics.get(name, 0)) for name in ("notes_taken", "notes_unchanged"))
    if noted and unchanged >= max(2, FROZEN * noted):
        yield f"The notes did not change in {unchanged:,} of the {noted:,} times that they were taken."
