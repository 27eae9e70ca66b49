"""LoCoMo's own score: how many words an answer shares with the gold answer, by stems (Maharana et al., 2024, section 4.1).

The steps follow the authors' `task_eval/evaluation.py`. They stem with NLTK's Porter stemmer; Snowball's Porter stemmer differs from it in
a few words.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from statistics import fmean
from string import punctuation
from typing import Final

from longspan.simulator.contract.graded_record import readable

__all__ = ["UNANSWERED", "echoed_score", "locomo_gold", "locomo_score", "shared_words", "token_f1"]

UNANSWERED: Final = ("no information available", "not mentioned")
"""One of these is in a right reply to an adversarial question."""

MOST: Final = 50
"""Parts of a gold answer, or of a reply, that are compared with each other: the first ones. No gold answer has half as many."""

SHORTEST: Final = 3
"""Letters of the shortest word that NLTK stems."""

_IGNORED: Final = re.compile(r"\b(?:a|an|the|and)\b")
_MARKS: Final = str.maketrans("", "", punctuation)


def locomo_score(kind: str, reply: str, gold: str) -> float:
    """Return the score in [0, 1] of a reply to one of LoCoMo's questions, by its kind (see `locomo.KINDS`).

    For each part of a multi-hop gold answer, between commas, the best part of the reply counts. Takes time linear in the reply.
    """
    reply = readable(reply)
    if kind == "adversarial":
        return float(any(words in reply.lower() for words in UNANSWERED))
    if kind == "multi-hop":
        said = [_stems(part) for part in reply.split(",")[:MOST]]
        return fmean(max(_f1(part, wanted) for part in said) for wanted in map(_stems, gold.split(",")[:MOST]))
    return token_f1(reply, locomo_gold(kind, gold))


def echoed_score(kind: str, reply: str, gold: str, question: str) -> float:
    """Return how much of a reply's `locomo_score` rests on words that the question has, too: the share of the words that it has in common
    with the gold answer."""
    asked = _stems(question)
    if kind == "multi-hop":
        said = [_stems(part) for part in readable(reply).split(",")[:MOST]]
        parts = [(max(said, key=lambda part: _f1(part, wanted)), wanted) for wanted in map(_stems, gold.split(",")[:MOST])]
        return fmean(_echoed(best, wanted, asked) for best, wanted in parts)
    return _echoed(_stems(readable(reply)), _stems(locomo_gold(kind, gold)), asked)


def shared_words(reply: str, question: str) -> float:
    """Return the share of a reply's words that the question has, too; 0 for a reply without words."""
    said = _stems(readable(reply))
    return (said & _stems(question)).total() / said.total() if said else 0.0


def locomo_gold(kind: str, gold: str) -> str:
    """Return as much of a gold answer as counts: of an open-domain one, what stands before its reason."""
    return gold.partition(";")[0].strip() if kind == "open-domain" else gold


def token_f1(reply: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of a reply's words."""
    return _f1(_stems(reply), _stems(gold))


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total()) if common else 0.0


def _echoed(said: Counter[str], wanted: Counter[str], asked: Counter[str]) -> float:
    common = said & wanted
    return _f1(said, wanted) * (common & asked).total() / common.total() if common else 0.0


def _stems(text: str) -> Counter[str]:
    """Return the stems of the words of `text`, without case, punctuation, articles and "and"."""
    words = _IGNORED.sub(" ", text.lower().translate(_MARKS)).split()
    return Counter(map(_stem, words))


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    import snowballstemmer

    return word if len(word) < SHORTEST else str(snowballstemmer.stemmer("porter").stemWord(word))
