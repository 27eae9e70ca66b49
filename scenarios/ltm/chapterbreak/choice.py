"""Finds which of some numbered options a reply chooses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, final

from longspan.simulator.grading.matching import normalised

__all__ = ["Choice", "chosen"]

WINDOW: Final = 12
"""Words considered before and after a number."""
HUGE: Final = 10**6
"""The value used for any number of more than six digits."""

_CARDINALS = "one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_VALUES = {word: at for words in (_CARDINALS, _ORDINALS) for at, word in enumerate(words, 1)} | {"zero": 0}

_TOKENS = re.compile(r"(?:(?<!\S)-|(?<!\d))\d++(?:\.\d++)?(?:st|nd|rd|th)?(?!\w)|[a-z']+|\n|[^\w\s]", re.IGNORECASE)
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(st|nd|rd|th)?")

_OPTION = frozenset("option opening choice number no nr beginning candidate continuation alternative #".split())
_ELSEWHERE = frozenset("page pages chapter chapters p pp paragraph paragraphs line lines scene scenes".split())
_COUNTED = frozenset("pages chapters paragraphs openings options choices facts people characters alternatives continuations".split())
_LIST = frozenset(", and to & - \u2013 or /".split())
_LINKS = frozenset(
    "is be would must should it it's its the that that's a of for on with in to as my me definitely probably likely clearly most "
    "one next true final : , - \u2013 = > ( # which has will".split()
)
_CHOOSING = frozenset(
    "answer choose chose pick picked select selected guess go going opt vote settle settled decide decided conclude conclusion "
    "verdict result".split()
)
_THINKING = frozenset("think believe say so therefore thus hence it's be is say suspect suppose".split())
_TRUTH = frozenset(
    "true right correct answer best consistent plausible likely real fits fit follows continues agrees matches continuation".split()
)
_BEING = frozenset("is must has would seems fits continues follows matches agrees appears looks".split())
_DENIALS = frozenset(
    "not n't can't cannot isn't wasn't won't couldn't rule ruled rules ruling eliminate eliminated exclude excluded except rather "
    "unlike neither nor discard discarded contradicts less wrong false incorrect inconsistent".split()
)
_LEADS = frozenset(
    "okay ok sure well hmm yes certainly i i'd i'll would will think believe guess say choose pick select go with my the a it's it "
    "is must should be that that's answer choice correct right final true most likely probably definitely either : ( # > - \n".split()
)
_JOINS = frozenset("or and , / & - \u2013 to maybe perhaps possibly even the either".split())
_REASONS = frozenset("because since as . , : ; - \u2013 ! ) ( \n".split()) | {"\u2014"}


_PAUSES = frozenset(", : ( ) - \u2013".split()) | {"\u2014"}


@final
class Choice(NamedTuple):
    """The numbers that a reply gives as its answer: exactly one if it is decided."""

    numbers: tuple[float, ...]


class _Mention(NamedTuple):
    value: float
    at: int


def chosen(reply: str) -> Choice:
    """Return the numbers that `reply` chooses.

    These are the numbers given outright as the answer ("the answer is 3", "I choose option 3"); without any, the number
    that the reply begins with; without that, all numbers that it names and does not deny. Never raises; takes time linear
    in the length of the reply.
    """
    words = _words(reply)
    mentions = [_Mention(value, at) for at, value in enumerate(map(_value, words)) if value is not None and _names_option(words, at)]
    declared = [mention for mention in mentions if _declared(words, mention.at)]
    choice = declared or _leading(words, mentions) or mentions
    return Choice(tuple(dict.fromkeys(mention.value for mention in choice)))


def _words(reply: str) -> list[str]:
    """Return the reply's words, numbers and punctuation marks, without markup."""
    text = normalised(reply).replace("\u2019", "'").replace("\ufe0f", "").replace("\u20e3", "")
    return [word.casefold() for word in _TOKENS.findall(re.sub(r"[*_`~\"\u201c\u201d{}\[\]]", "", text).strip())]


def _value(word: str) -> float | None:
    """Return the value of a number in digits or letters, cardinal or ordinal; None for other words."""
    if word in _VALUES:
        return _VALUES[word]
    digits = _NUMBER.fullmatch(word)
    if digits is None:
        return None
    return float(digits[1]) if len(digits[1]) <= 6 else HUGE


def _names_option(words: Sequence[str], at: int) -> bool:
    """Return whether the number at `at` can mean an option and is not denied."""
    word, before, after = words[at], _window(words, at, -1), _window(words, at, 1)
    first = next(iter(before), "")
    follows = next(iter(after), "")
    if follows in _COUNTED or (word in _ORDINALS and follows in _ELSEWHERE) or first in ("of", "/"):
        return False
    if _ELSEWHERE & set(_skipped(before, _LIST | {"number"}, numbers=True)[:1]):
        return False
    if word in ("one", "first", "second") and not (first in _OPTION - {"no"} or follows in _OPTION or _alone(before, after, word)):
        return False
    cause = _skipped(before, _LINKS | _OPTION | {"out"})
    return not (cause and cause[0] in _DENIALS)


def _alone(before: Sequence[str], after: Sequence[str], word: str) -> bool:
    """Return whether "one" or an ordinal is by itself, or in "the first" or "the first one"."""
    begins = all(other in _LEADS for other in before)
    return begins and (not after or after[0] in ".!)\n" or (word != "one" and before[:1] == ["the"] and after[0] != ","))


def _declared(words: Sequence[str], at: int) -> bool:
    """Return whether the number at `at` is given outright as the answer."""
    cause = _skipped(_window(words, at, -1), _LINKS | _OPTION)[:1]
    after = _window(words, at, 1)
    ends = not after or after[0] in _REASONS
    if _CHOOSING & set(cause) or (ends and (_TRUTH | _THINKING) & set(cause)):
        return True
    clause = [word for word in takewhile(lambda word: word not in _PAUSES, after[:7]) if word not in _OPTION]
    return bool(clause) and clause[0] in _BEING and bool(_TRUTH & set(clause)) and not (_DENIALS & set(clause))


def _leading(words: Sequence[str], mentions: Sequence[_Mention]) -> list[_Mention]:
    """Return the number that the reply begins with, and those joined to it by "or", "and" or a comma."""
    if not mentions or not all(word in _LEADS | _OPTION for word in words[: mentions[0].at]):
        return []
    leading = [mentions[0]]
    for last, mention in pairwise(mentions):
        if not all(word in _JOINS | _OPTION for word in words[last.at + 1 : mention.at]):
            break
        leading.append(mention)
    after = words[leading[-1].at + 1 : leading[-1].at + 2]
    return leading if not after or after[0] in _REASONS | _OPTION | {"one"} else []


def _window(words: Sequence[str], at: int, step: int) -> list[str]:
    """Return up to WINDOW words of the sentence before (`step` -1, nearest first) or after (1) the one at `at`."""
    nearby: list[str] = []
    for place in range(at + step, at + step * (WINDOW + 1), step):
        if not 0 <= place < len(words) or (words[place] in ".!?;\n" and not (step == 1 and place == at + 1)):
            break
        nearby.append(words[place])
    return nearby


def _skipped(words: Sequence[str], skip: frozenset[str], *, numbers: bool = False) -> list[str]:
    """Return `words` from the first that is not in `skip` (nor, with `numbers`, a number)."""
    for at, word in enumerate(words):
        if word not in skip and not (numbers and _value(word) is not None):
            return list(words[at:])
    return []
