"""The finding of a run in one sentence: the stage where an agent's memory loses most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from longspan.simulator.results.measures.memory_losses import Answers, MemoryLosses, Needles
from longspan.simulator.results.result import Result, ScoreVerdict

__all__ = ["compare_with_guessing", "loss_verdict"]

STANDINGS: Final[Mapping[ScoreVerdict, str]] = {
    "distance costs": "distance costs part of it",
    "no loss shown": "no significant loss to distance",
    "better": "better than guessing",
    "not shown": "not shown to be better than guessing",
    "can do": "better than guessing, without distance",
    "cannot do": "not shown to be better than guessing, even without distance",
    "too few": "too few tests to compare it with guessing",
}


def compare_with_guessing(result: Result) -> str:
    """Return in a few words how a score compares with guessing; empty if unknown."""
    if result.meaning is None:
        return ""
    shown, of = len(result.meaning.scenarios), len(result.scenarios)
    where = f" in {shown} of {of} scenarios" if result.meaning.verdict in ("better", "can do") and 0 < shown < of else ""
    return f"{STANDINGS.get(result.meaning.verdict, '')}{where}"


def loss_verdict(losses: MemoryLosses) -> str:
    """Return the sentence; empty if the fates of needles and the answers are unknown."""
    if losses.tells == "nothing":
        return _of_answers(losses.answers)
    return _of_needles(losses.needles)


def _of_answers(answers: Answers) -> str:
    decided = answers.asked - answers.undecided
    if not decided:
        return ""
    asked = f"{answers.right:,} of {decided:,} questions answered in full"
    return f"Reports nothing about its memory: {asked}{f', {answers.partly:,} in part' if answers.partly else ''}."


def _of_needles(needles: Needles) -> str:
    if not needles.told:
        return ""
    if needles.unknown > needles.told:  # the few known fates are not representative
        return f"Unreported for {needles.unknown:,} of {needles.needed:,} needles."
    of = f"of {needles.needed:,} needles"
    missed = needles.not_retrieved + needles.forgotten
    losses = [
        (needles.not_stored, "Storage", "were not stored"),
        (missed, "Retrieval", "were stored, not retrieved"),
        (needles.not_shown, "The prompt", "were not in the prompt"),
        (needles.found_wrong, "Answering", "were retrieved, but their questions not answered right"),
    ]
    number, stage, how = max(losses, key=lambda loss: loss[0])
    if not number:
        right = needles.found_right == needles.needed
        if needles.unknown:
            return f"No reported loss: {needles.found:,} {of} were retrieved, {needles.unknown:,} are unreported."
        return f"No loss: all {needles.needed:,} needles were retrieved{', and their questions answered right' if right else ''}."
    return f"{stage} is the bottleneck: {number:,} {of} {how}."
