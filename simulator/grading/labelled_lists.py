"""Finds the answer among several JSON lists in a reply: the list that the reply calls complete or current."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Final, NamedTuple, final

from longspan.simulator.grading.lenient_json import find_json
from longspan.simulator.grading.matching import plain

__all__ = ["Called", "LabelledList", "called", "labelled_json"]

LONGEST: Final = 200
"""The number of characters before a list that may label it."""


@final
class Called(Enum):
    """The label of a list, from the surest answer: everything there is, what holds now, nothing, what held before, something else."""

    COMPLETE = 0
    CURRENT = 1
    NOTHING = 2
    PAST = 3
    OTHER = 4


_WORDS: Final = (  # the first that occurs in a label applies
    (
        Called.OTHER,
        "not (?:included|on|yours|counted|part)|left out|excluded|excluding|ignored|other people|friends?|unsure|not sure"
        "|uncertain|belongs?|format|form|example|e g|such as|like this|template|if|would|suggest\\w*|draft|first try|attempt|wrong|never"
        "|mistaken\\w*|no longer",
    ),
    (
        Called.COMPLETE,
        "^but|^wait|^no|^sorry|hold on|hang on|scratch that|actually"
        "|complete|completed|full|entire|altogether|in total|final|finally|corrected|correction|updated|revised"
        "|amended|result\\w*|combined|(?:old|past|former|previous) and (?:new|current|present)",
    ),
    (Called.CURRENT, "current|currently|now|as it stands|remaining|remains|at present|at the moment"),
    (
        Called.OTHER,
        "removed|removals?|deleted|bought|taken off|crossed off|struck|at home|already (?:have|got)|additions?|added|changes|step",
    ),
    (
        Called.PAST,
        "past|previous|previously|former|formerly|old|older|earlier|before|original|originally|initial|initially|at first|started|start|was"
        "|were|had|used to|yesterday",
    ),
    (Called.COMPLETE, "all|every|everything|answer|correct"),
    (Called.CURRENT, "present|presently|latest|newest|new|active|left|today|so far|yours"),
)
_CALLED: Final = [(what, re.compile(rf"(?:\b|(?=\^))(?:{words})\b")) for what, words in _WORDS]
_SENTENCE: Final = re.compile(r"[.!?;]\s|\n\s*\n|\n")
_FENCE: Final = re.compile(r"```\w*|[*_#>`]")


@final
class LabelledList(NamedTuple):
    """A JSON list or object, and the label that the reply gives it."""

    called: Called
    value: Any


def called(label: str) -> Called:
    """Return what a label, a key or the words before a list say that it is."""
    words = plain(label)
    return next((what for what, pattern in _CALLED if pattern.search(words)), Called.NOTHING)


def labelled_json(text: str) -> list[LabelledList]:
    """Return the JSON lists and objects in `text`, in order, each labelled by the end of the text before it.

    Takes time linear in the text and never raises.
    """
    spans = find_json(text)
    ends = [0, *(span.end for span in spans)]
    return [LabelledList(called(_label(text[end : span.begin])), span.value) for end, span in zip(ends, spans, strict=False)]


def _label(before: str) -> str:
    """Return the last sentence of the text before a list."""
    sentences = [part for part in _SENTENCE.split(_FENCE.sub(" ", before[-LONGEST:])) if plain(part)]
    last = sentences[-1] if sentences else ""
    return _LEFT_OUT.sub(" ", last) if before.rstrip()[-1:] in ".!" else last


_LEFT_OUT: Final = re.compile(r"\bi (?:had |have |'ve )?(?:left out|forgot|missed)\b", re.IGNORECASE)
"""What was missing in the list before, and is in the next one."""
