"""How the tests of `ltm` are woven into one conversation: how many are open, how often they take turns, how long it is, and how
the needles lie. All of it follows from suite, span and seed; `tokens` is with an agent that says "OK."."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple, final

import trio

from longspan.simulator.contract.script import Placement
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["OPTIONS", "SPAN", "Weave", "measure", "weave", "woven"]

SPAN = 0
"""All of SPANS."""

SPANS: Final = (2_000, 4_000, 32_000, 120_000, 200_000, 500_000)

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--placement": {"choices": ["spread", "uniform", "early"], "default": "spread", "help": "where needles go"},
    "--seeds": {"type": int, "default": 5, "help": "how many seeds are played"},
}


@final
class Weave(NamedTuple):
    """The figures of one conversation: the mean number of open tests, the share of switches, its length in tokens as played and
    as dealt, the longest stretch without a test's line (as a share of the span, without the first and the last span), the least
    distance from a question to the nearest needle that it needs (the same), and the tests that did not keep their span."""

    mean_open: float
    switch_rate: float
    tokens: int
    dealt: int
    stretch: float
    nearest: float
    late: tuple[str, ...]


def measure(span: int, placement: Placement, seeds: int) -> dict[str, float]:
    """Return the means over `seeds` seeds at `span` or, if that is 0, at each of SPANS; of distances the extremes."""
    found: dict[str, float] = {}
    for size in [span] if span else SPANS:
        woven = [weave(size, seed, placement) for seed in range(seeds)]
        for name in ("mean_open", "switch_rate", "tokens", "dealt"):
            found[f"{size // 1000}k: {name.replace('_', ' ')}"] = fmean(getattr(each, name) for each in woven)
        found[f"{size // 1000}k: longest stretch without a test"] = max(each.stretch for each in woven)
        found[f"{size // 1000}k: nearest needle"] = min(each.nearest for each in woven)
        found[f"{size // 1000}k: tests that outgrow their span"] = sum(len(each.late) for each in woven)
    return found


def weave(span: int, seed: int, placement: Placement) -> Weave:
    """Play `ltm` with an agent that says "OK.", and return the conversation's figures."""
    settings = RunSettings(suite=load_suite("ltm"), span=span, seed=seed, agent="silent", placement=placement)
    with tempfile.TemporaryDirectory() as folder:
        (outcome,) = trio.run(play_plans, [plan_run(settings, Path(folder))])
        return woven(RunFolder(outcome.folder), span)


def woven(run: RunFolder, span: int) -> Weave:
    """Return the figures of a conversation that was played."""
    told = list(read_journal(run.journal("main")))
    transcript, said = Transcript.of(told), [event for event in told if isinstance(event, events.Message)]
    return Weave(
        mean_open=transcript.crowd / transcript.spoken,
        switch_rate=transcript.switches / transcript.steps,
        tokens=transcript.tokens,
        dealt=said[-1].charged,
        stretch=_stretch(said, span),
        nearest=_nearest(transcript, span),
        late=tuple(test.id for test in transcript.tests.values() if not (test.certified(span) and test.at_distance(span))),
    )


def _stretch(said: list[events.Message], span: int) -> float:
    """Return the longest stretch between two lines of tests, as a share of the span, leaving out the first and the last span."""
    within = [at for message in said if message.test and span <= (at := message.charged) <= said[-1].charged - span]
    return max((after - before for before, after in pairwise(within)), default=0) / span


def _nearest(transcript: Transcript, span: int) -> float:
    """Return the least distance from a question to the nearest needle that it needs, as a share of the span."""
    nearest: dict[int, int] = {}
    for test in transcript.tests.values():
        if not test.definition.uninterrupted:
            for evidence in test.evidence:
                nearest[evidence.question_turn] = min(evidence.dealt or 0, nearest.get(evidence.question_turn, span))
    return min(nearest.values()) / span
