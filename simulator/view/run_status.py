"""How a run stands while it is played, as its journals tell it: score so far, cost, and about how long it will still take."""

from __future__ import annotations

from collections import defaultdict
from math import fsum, isfinite
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from longspan.simulator import events
from longspan.simulator.grading.grades import grade
from longspan.simulator.ledger import Spent, total_cost
from longspan.simulator.manifest import Manifest
from longspan.simulator.plugins import installed_scenarios
from longspan.simulator.transcript import Played, Transcript

__all__ = ["Ended", "Standing"]

ENOUGH: Final = 0.02
"""The share of a run that must have been played before the rest of it is guessed at."""


@final
class Ended(NamedTuple):
    """A test that has ended. `score` is None where the rules cannot tell, or nothing may be asked of its scenario here."""

    test: str
    score: float | None
    chance: float
    reason: str


@final
class Standing:
    """Takes the events of all of a run's conversations, each in its order.

    Tests are graded by the rules alone, as they end. A scenario that is code (`python:`) is not run for that.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._total = sum(len(plans) for plans in manifest.conversations.values())
        self._transcripts: dict[str, Transcript] = defaultdict(Transcript)
        self._seconds: dict[str, float] = defaultdict(float)
        self._spent: dict[str, Spent] = defaultdict(Spent)
        self._scores: dict[str, list[float]] = defaultdict(list)
        self._ended = 0
        self._scenarios = installed_scenarios(manifest.suite.scenarios)

    def heard(self, conversation: str, event: events.Event) -> Ended | None:
        """Take the next event; the test that it ended, if any. Raises JournalError for one that does not follow."""
        transcript = self._transcripts[conversation]
        known = len(transcript.used)
        transcript.add(event)
        match event:
            case events.Reply():
                for part, usage, cost in transcript.used[known:]:
                    self._spent[part] = self._spent[part].plus(usage, cost)
                latency = (event.measured or {}).get("latency_s")
                if isinstance(latency, int | float) and isfinite(latency):
                    self._seconds[conversation] += latency
            case events.End():
                self._ended += 1
                return self._graded(transcript, transcript.tests[event.test])
            case events.ScenarioError():
                self._ended += 1
                return Ended(event.test, None, 0.0, f"the test failed: {event.error}")
        return None

    def figures(self) -> dict[str, Any]:
        """Where the run is, as JSON. `left` are seconds, None while too little is known; `cost` dollars, None for an unknown price."""
        transcripts = list(self._transcripts.values())
        times = [each.now for each in transcripts if each.now is not None]
        return {
            "ended": self._ended,
            "tests": self._total,
            "open": sum(len(each.open) for each in transcripts),
            "turns": sum(each.turns for each in transcripts),
            "tokens": sum(each.tokens for each in transcripts),
            "now": f"{max(times):%Y-%m-%d %H:%M}" if times else None,
            "score": fsum(fmean(scores) for scores in self._scores.values()),
            "scenarios": len(self._scores),
            "used": bool(self._spent),
            "cost": total_cost(spent.cost_usd for spent in self._spent.values()),
            "seconds": fsum(self._seconds.values()),
            "left": self._left(),
            "closed": len(transcripts) == len(self._manifest.conversations) and all(each.closed for each in transcripts),
        }

    def _left(self) -> float | None:
        """About how many seconds of replies are still to come, as long ones as before: a test takes about a span of tokens."""
        done = float(self._ended)
        for transcript in self._transcripts.values():
            for test in map(transcript.tests.__getitem__, transcript.open):
                begun = test.start if test.start is not None else transcript.tokens
                done += min(0.95, (transcript.tokens - begun) / self._manifest.span)
        share = done / self._total if self._total else 1.0
        at_once = max(1, sum(not each.closed for each in self._transcripts.values()))
        return fsum(self._seconds.values()) * (1 - share) / share / at_once if share >= ENOUGH else None

    def _graded(self, transcript: Transcript, played: Played) -> Ended:
        name, chance = played.definition.scenario, played.definition.chance
        if name not in self._scenarios:
            return Ended(played.id, None, chance, "graded when the run is over")
        given = grade(self._scenarios[name], played, transcript, {})
        if given.score is not None:
            self._scores[name].append(given.score)
        return Ended(played.id, given.score, chance, given.reason)
