"""What stands at the top of a report: what a run cost, how long its agent took, and which of its tests have no score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil, fsum
from typing import NamedTuple, final

from longspan.simulator.analysis.statistics import Interval, Observed, interval
from longspan.simulator.grading.grades import Result
from longspan.simulator.manifest import Manifest
from longspan.simulator.report.reading import Conversation
from longspan.simulator.run_folder import RunFolder

__all__ = ["Times", "failures", "score_interval", "times", "without_score"]


@final
class Times(NamedTuple):
    """Seconds that an agent took for its replies: in all, for half of them at most, and for 95 of 100 at most."""

    replies: int
    total: float
    half: float
    most: float


def times(conversations: Iterable[Conversation]) -> Times | None:
    """The measured times of all replies that were asked for; None where none was measured."""
    turns = (turn for conversation in conversations for turn in conversation.turns)
    taken = sorted(turn.seconds for turn in turns if turn.asked and turn.seconds is not None)
    if not taken:
        return None
    return Times(len(taken), fsum(taken), taken[ceil(0.5 * len(taken)) - 1], taken[ceil(0.95 * len(taken)) - 1])


def score_interval(manifest: Manifest, result: Result) -> Interval | None:
    """Where the score of such a run is to be expected; None where it tells nothing of that (see `interval`)."""
    played_in = {plan.id: id for id, plans in manifest.conversations.items() for plan in plans}
    tests = [(test, test.conversation or played_in.get(test.id, "")) for test in result.tests]
    return interval([Observed(test.scenario, where, test.lowest, test.highest) for test, where in tests])


def without_score(result: Result) -> dict[str, int]:
    """How many tests have no score, by what became of them."""
    return dict(sorted(Counter(str(test.status) for test in result.tests if test.score is None).items()))


def failures(run: RunFolder, conversations: Mapping[str, Conversation]) -> dict[str, str]:
    """What the agent's last failure was, by conversation; one that went on to its end has none."""
    return {
        entry["conversation"]: str(entry.get("error"))
        for entry in run.incidents()
        if entry.get("type") == "agent_error"
        and (conversation := conversations.get(str(entry.get("conversation"))))
        and not conversation.closed
    }
