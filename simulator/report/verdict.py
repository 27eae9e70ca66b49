"""What a run shows, in one sentence: the stage at which an agent's memory loses most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from longspan.simulator.measures.memory_losses import Answers, MemoryLosses, Needles
from longspan.simulator.results.result import Result, ScoreVerdict

__all__ = ["standing", "verdict"]

STANDINGS: Final[Mapping[ScoreVerdict, str]] = {
    "distance costs": "distance costs part of it",
    "no loss shown": "no loss to distance is shown",
    "better": "better than guessing",
    "not shown": "not shown to be better than guessing",
    "can do": "better than guessing, without distance",
    "cannot do": "not shown to be better than guessing, even without distance",
    "too few": "too few tests to tell it from guessing",
}


def standing(result: Result) -> str:
    """Return in a few words how a score compares with guessing; empty if nothing is known."""
    if result.meaning is None:
        return ""
    shown, of = len(result.meaning.scenarios), len(result.scenarios)
    where = f" in {shown} of {of} scenarios" if result.meaning.verdict in ("better", "can do") and 0 < shown < of else ""
    return f"{STANDINGS.get(result.meaning.verdict, '')}{where}"


def verdict(losses: MemoryLosses) -> str:
    """Return the sentence; empty if nothing is known of needles or answers."""
    if losses.tells == "nothing":
        return _of_answers(losses.answers)
    return _of_needles(losses.needles)


def _of_answers(answers: Answers) -> str:
    decided = answers.asked - answers.undecided
    if not decided:
        return ""
    asked = f"{answers.right:,} of {decided:,} questions answered in full"
    return f"Tells nothing of its memory: {asked}{f', {answers.partly:,} in part' if answers.partly else ''}."


def _of_needles(needles: Needles) -> str:
    if not needles.told:
        return ""
    if needles.unknown > needles.told:  # what is known of the few says little of all
        return f"Unreported for {needles.unknown:,} of {needles.needed:,} needles."
    of = f"of {needles.needed:,} needles"
    missed = needles.not_retrieved + needles.forgotten
    losses = [
        (needles.not_stored, "Storage", "were not stored"),
        (missed, "Retrieval", "were stored and not found"),
        (needles.not_shown, "The prompt", "were not in the prompt"),
        (needles.found_wrong, "Answering", "were found, and their questions not answered right"),
    ]
    number, stage, how = max(losses, key=lambda loss: loss[0])
    if not number:
        right = needles.found_right == needles.needed
        if needles.unknown:
            return f"Loses nothing that is reported: {needles.found:,} {of} were found, {needles.unknown:,} are unreported."
        return f"Loses nothing: all {needles.needed:,} needles were found{', and their questions answered right' if right else ''}."
    return f"{stage} is the bottleneck: {number:,} {of} {how}."
