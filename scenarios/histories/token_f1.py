"""LoCoMo's own score: the overlap of word stems between an answer and the gold answer (Maharana et al., 2024, section 4.1).

The steps follow the authors' `task_eval/evaluation.py`. It stems with NLTK's Porter stemmer, which differs from the Snowball one used
here in a few words.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from statistics import fmean
from string import punctuation
from typing import Final

from longspan.scenarios.histories.languages import split_characters
from longspan.simulator.contract.graded_record import readable_part

__all__ = ["UNANSWERED", "echo_score", "locomo_gold", "locomo_score", "share_of_question_words", "token_f1"]

UNANSWERED: Final = ("no information available", "not mentioned")
"""A right reply to an adversarial question contains one of these."""

MOST: Final = 50
"""Number of parts of a gold answer or reply that are compared. No gold answer has half as many as this."""

SHORTEST: Final = 3
"""Minimum length of a word that NLTK stems."""

_IGNORED: Final = re.compile(r"\b(?:a|an|the|and)\b")
_MARKS: Final = str.maketrans("", "", punctuation)


def locomo_score(kind: str, reply: str, gold: str) -> float:
    """Return the score in [0, 1] of a reply to one of LoCoMo's questions, by kind (see `locomo.KINDS`).

    Multi-hop answers are split at commas, and each part of the gold answer is compared with the best part of the reply. Runs in time
    linear in the reply.
    """
    reply = readable_part(reply)
    if kind == "adversarial":
        return float(any(words in reply.lower() for words in UNANSWERED))
    if kind == "multi-hop":
        said = [_stems(part) for part in reply.split(",")[:MOST]]
        return fmean(max(_f1(part, wanted) for part in said) for wanted in map(_stems, gold.split(",")[:MOST]))
    return token_f1(reply, locomo_gold(kind, gold))


def echo_score(kind: str, reply: str, gold: str, question: str) -> float:
    """Return the part of a reply's `locomo_score` that comes from words of the question.

    It is the score times the share of matched words that also occur in the question.
    """
    asked = _stems(question)
    if kind == "multi-hop":
        said = [_stems(part) for part in readable_part(reply).split(",")[:MOST]]
        parts = [(max(said, key=lambda part: _f1(part, wanted)), wanted) for wanted in map(_stems, gold.split(",")[:MOST])]
        return fmean(_echo_f1(best, wanted, asked) for best, wanted in parts)
    return _echo_f1(_stems(readable_part(reply)), _stems(locomo_gold(kind, gold)), asked)


def share_of_question_words(reply: str, question: str) -> float:
    """Return the share of a reply's words that also occur in the question; 0 for a reply without words."""
    said = _stems(readable_part(reply))
    return (said & _stems(question)).total() / said.total() if said else 0.0


def locomo_gold(kind: str, gold: str) -> str:
    """Return the part of a gold answer that counts. Open-domain answers end with a reason, which is dropped."""
    return gold.partition(";")[0].strip() if kind == "open-domain" else gold


def token_f1(reply: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of a reply's words."""
    return _f1(_stems(reply), _stems(gold))


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total()) if common else 0.0


def _echo_f1(said: Counter[str], wanted: Counter[str], asked: Counter[str]) -> float:
    common = said & wanted
    return _f1(said, wanted) * (common & asked).total() / common.total() if common else 0.0


def _stems(text: str) -> Counter[str]:
    """Return the stems of the words in `text`, ignoring case, punctuation, articles and "and".

    In scripts without spaces, such as Chinese, each character counts as a word.
    """
    words = _IGNORED.sub(" ", split_characters(text).lower().translate(_MARKS)).split()
    return Counter(map(_stem, words))


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    import snowballstemmer

    return word if len(word) < SHORTEST else str(snowballstemmer.stemmer("porter").stemWord(word))
