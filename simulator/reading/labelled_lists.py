"""Finds the answer among several JSON lists in a reply: the list labelled complete or current."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.base.words import plain
from longspan.simulator.reading.replies.splitting import SENTENCE_END

__all__ = ["LabelledList", "ListLabel", "classify_label", "find_labelled_lists"]

LONGEST: Final = 200
"""The number of characters before a list that are searched for its label."""


@final
class ListLabel(Enum):
    """The meaning of a list's label, from most to least likely to be the answer.

    The list is complete, current, unlabelled (`NOTHING`), out of date, or something other than the answer.
    """

    COMPLETE = 0
    CURRENT = 1
    NOTHING = 2
    PAST = 3
    OTHER = 4


_WORDS: Final = (  # in order of precedence: the first entry with a match applies
    (
        ListLabel.OTHER,
        "not (?:included|on|yours|counted|part)|left out|excluded|excluding|ignored|other people|friends?|unsure|not sure"
        "|uncertain|belongs?|format|form|example|e g|such as|like this|template|if|would|suggest\\w*|draft|first try|attempt|wrong|never"
        "|mistaken\\w*|no longer",
    ),
    (
        ListLabel.COMPLETE,
        "^but|^wait|^no|^sorry|hold on|hang on|scratch that|actually"
        "|complete|completed|full|entire|altogether|in total|final|finally|corrected|correction|updated|revised"
        "|amended|result\\w*|combined|(?:old|past|former|previous) and (?:new|current|present)",
    ),
    (ListLabel.CURRENT, "current|currently|now|as it stands|remaining|remains|at present|at the moment"),
    (
        ListLabel.OTHER,
        "removed|removals?|deleted|bought|taken off|crossed off|struck|at home|already (?:have|got)|additions?|added|changes|step",
    ),
    (
        ListLabel.PAST,
        "past|previous|previously|former|formerly|old|older|earlier|before|original|originally|initial|initially|at first|started|start|was"
        "|were|had|used to|yesterday",
    ),
    (ListLabel.COMPLETE, "all|every|everything|answer|correct"),
    (ListLabel.CURRENT, "present|presently|latest|newest|new|active|left|today|so far|yours"),
)
_CALLED: Final = [(what, re.compile(rf"(?:\b|(?=\^))(?:{words})\b")) for what, words in _WORDS]
_FENCE: Final = re.compile(r"```\w*|[*_#>`]")


@final
class LabelledList(NamedTuple):
    """A JSON list or object with the meaning of its label in the reply."""

    called: ListLabel
    value: Any


def classify_label(label: str) -> ListLabel:
    """Return the meaning of a label: a JSON key, or the words before a list."""
    words = plain(label)
    return next((what for what, pattern in _CALLED if pattern.search(words)), ListLabel.NOTHING)


def find_labelled_lists(text: str) -> list[LabelledList]:
    """Return the JSON lists and objects in `text`, in order. Each is labelled by the end of the text before it.

    Takes time linear in the length of the text. Never raises.
    """
    spans = find_json(text)
    ends = [0, *(span.end for span in spans)]
    return [LabelledList(classify_label(_label(text[end : span.begin])), span.value) for end, span in zip(ends, spans, strict=False)]


def _label(before: str) -> str:
    """Return the last sentence of the text before a list."""
    sentences = [part for part in SENTENCE_END.split(_FENCE.sub(" ", before[-LONGEST:])) if plain(part)]
    last = sentences[-1] if sentences else ""
    return _LEFT_OUT.sub(" ", last) if before.rstrip()[-1:] in ".!" else last


_LEFT_OUT: Final = re.compile(r"\bi (?:had |have |'ve )?(?:left out|forgot|missed)\b", re.IGNORECASE)
"""Words about the previous list in the reply: the item is missing there and present in the next list."""
