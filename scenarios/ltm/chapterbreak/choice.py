"""Find which of several numbered options a reply chooses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, final

from longspan.simulator.base.words import NUMBERS, ORDINALS, normalise_text
from longspan.simulator.reading.replies.layout import drop_struck

__all__ = ["Choice", "find_choice"]

WINDOW: Final = 12
"""Number of words considered before and after a number."""
HUGE: Final = 10**6
"""Value of numbers with more than six digits."""

CONCLUDED, LEADING, FAVOURED, NAMED, TENTATIVE, DENIED = range(6)
"""Stances of a reply on an option, strongest first: it is the answer, comes first, fits, is mentioned, seemed right, is wrong."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VALUES = {word: value for word, value in (NUMBERS | ORDINALS).items() if value <= 12}

_ROMANS = "I II III IV V VI VII VIII IX X XI XII".split()
_ROMAN = re.compile(r"\b(?:VI{1,3}|I[VX]|I{2,3}|XI{1,2})\b|(?<=Opening )[IVX]\b|\A[ *]{0,3}[IVX][ .*]{0,3}\Z")
_TOKENS = re.compile(r"(?:(?<!\S)-|(?<!\d))\d++(?:\.\d++)?(?:st|nd|rd|th)?(?!\w)|[a-z']+|\n|[^\w\s]", re.IGNORECASE)
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(st|nd|rd|th)?")

_OPTION = _set("option options opening openings choice number numbers no nr beginning candidate continuation alternative numbered #")
_ELSEWHERE = _set("page pages chapter chapters p pp paragraph paragraphs line lines scene scenes")
_COUNTED = _set("pages chapters paragraphs openings options choices facts people characters alternatives continuations")
_LIST = _set(", and to & - \u2013 or / through both")
_JOINS = _LIST | _set("maybe perhaps possibly even the either")
_STRONG = _set("true right correct real answer")
_TRUTH = _STRONG | _set("best consistent plausible likely fits fit follows continues agrees matches continuation")
_BE = _set("is be it's that's must")
_BEING = _BE | _set("has would seems fits continues follows matches agrees appears looks sounds")
_LINKS = _TRUTH | _set(
    "is be would must should it it's its the that that's a of for on with in to as my me us just definitely probably clearly most "
    "one next final : , - \u2013 = > ( # which has will only"
)
_CHOOSING = _set(
    "choose chose pick picked select selected guess go goes going opt vote settle settled decide decided lean "
    "take takes decision conclude conclusion verdict result leaves leaving left remains remaining remainder exception correction boxed"
)
_THINKING = _set("think believe say so therefore thus hence suspect suppose makes")
_DENIALS = _set(
    "not n't can't cannot isn't wasn't won't couldn't rule ruled rules ruling eliminate eliminated exclude excluded except rather than "
    "unlike neither nor discard discarded contradicts less wrong false incorrect inconsistent"
)
_EXCEPTS = _set("except excepting besides but")
_NEGATORS = _set("not never nothing without none cannot can't doesn't don't didn't isn't no hardly free lacks avoids")
_FAULTS = _set(
    "contradict contradicts contradicted contradicting contradiction contradictions wrong false incorrect inconsistent mistaken error "
    "errors fails fail failed out eliminated excluded conflicts conflict clashes forgets discarded \u2717 \u2718 \u2716 \u274c \u00d7"
)
_MERITS = _TRUTH | _set("yes agree match \u2713 \u2714 \u2705")
_SEEMED = _set("glance sight tempted tempting torn considered initially originally until almost nearly")
_SEEMING = {("first", "at"), ("thought", "first"), ("think", "might"), ("think", "could"), ("think", "may")}
"""Pairs of words, the later one first."""
_OTHERS = _set("because since as while whereas although though other others rest remaining so therefore")
"""Words after which a clause is about something other than the option."""
_LEADS = _set(
    "okay ok sure well hmm yes certainly i i'd i'll would will think believe guess say choose pick select go with my the a it's it "
    "is must should be that that's answer choice correct right final true most likely probably definitely either : ( # > - | \n"
)
_REASONS = _set("because since as . , : ; - \u2013 \u2014 ! ) | \n (") | {"\n"}
_PAUSES = _set(", : ( ) - \u2013 \u2014 but yet and")
_TURNS = _set("but yet however then though although")
"""Words after which a sentence changes direction."""
_ENDS = _set(". ! ? ; \u2026") | {"\n"}


@final
class Choice(NamedTuple):
    """The numbers that a reply gives as its answer. It is decided if there is exactly one."""

    numbers: tuple[float, ...]


class _Mention(NamedTuple):
    value: float
    at: int


def find_choice(reply: str) -> Choice:
    """Return the numbers that `reply` chooses.

    These are the numbers declared to be the answer ("the true one is 3", "I choose option 3"). Failing that, in order of preference: the
    number at the beginning of the reply, numbers said to fit, numbers merely mentioned, and numbers that seemed right for a while ("at
    first I took it for 3"). Numbers that are denied or found at fault ("3 contradicts page 2") are never chosen. Words before a
    correction ("wait") count only if nothing is chosen after it. Never raises; runs in time linear in the length of the reply.
    """
    words = _words(reply)
    mentions = [_Mention(value, at) for at, value in enumerate(map(_value, words)) if value is not None and _names_option(words, at)]
    stances: list[tuple[int, _Mention]] = []
    for group in _groups(words, mentions):
        stances += zip(_stances(words, group), group, strict=True)
    if stances and _closes(words, stances[-1][1].at):
        stances[-1] = (CONCLUDED, stances[-1][1])
    leading = set(_leading_mentions(words, mentions))
    stances = [(LEADING if mention in leading and FAVOURED <= stance <= NAMED else stance, mention) for stance, mention in stances]
    denied = {mention.value for stance, mention in stances if stance == DENIED}
    standing = [(stance, mention) for stance, mention in stances if stance != DENIED]
    corrected = _correction(words)
    standing = [each for each in standing if each[1].at > corrected] or standing
    sure = [(stance, mention) for stance, mention in standing if stance < NAMED or mention.value not in denied] or standing
    best = min((stance for stance, _ in sure), default=DENIED)
    return Choice(tuple(dict.fromkeys(mention.value for stance, mention in sure if stance == best)))


def _words(reply: str) -> list[str]:
    """Return the reply's words, numbers and punctuation marks, without markup."""
    text = normalise_text(_ROMAN.sub(_arabic, drop_struck(reply)))
    text = text.replace("\u2019", "'").replace("\ufe0f", "").replace("\u20e3", "").replace("...", " \u2026 ")
    return [word.casefold() for word in _TOKENS.findall(re.sub(r"[*_`~\"\u201c\u201d{}\[\]]", "", text).strip())]


def _arabic(numeral: re.Match[str]) -> str:
    return str(_ROMANS.index(numeral[0].strip(" .*")) + 1)


def _value(word: str) -> float | None:
    """Return the value of a number in digits or letters, cardinal or ordinal; None for other words."""
    if word in _VALUES:
        return _VALUES[word]
    digits = _NUMBER.fullmatch(word)
    if digits is None:
        return None
    return float(digits[1]) if len(digits[1]) <= 6 else HUGE


def _names_option(words: Sequence[str], at: int) -> bool:
    """Return whether the number at `at` can mean an option."""
    word, before, after = words[at], _window(words, at, -1), _window(words, at, 1)
    first = next(iter(before), "")
    follows = next(iter(after), "")
    numbered = first in _OPTION - {"no"} or first == "#"
    if follows in _COUNTED or (word in ORDINALS and follows in _ELSEWHERE) or first in ("of", "/"):
        return False
    if follows == "of" and not numbered and word in NUMBERS and after[1:2] != ["these"]:
        return False  # a quantity, such as "two of them"
    if _ELSEWHERE & set(_skip_words(before, _LIST | {"number"}, numbers=True)[:1]):
        return False
    if word in ("one", "first", "second"):
        ordinal = word != "one" and first == "the" and follows in (_BEING | {"it"})
        return numbered or follows in _OPTION - {"no"} or ordinal or _alone(before, after, word)
    return True


def _alone(before: Sequence[str], after: Sequence[str], word: str) -> bool:
    """Return whether "one" or an ordinal stands alone, or in "the first" or "the first one"."""
    if word != "one" and after[:1] == ["one"]:
        return True
    begins = all(other in _LEADS | _LINKS for other in before)
    return begins and (not after or after[0] in ".!)\n" or (word != "one" and before[:1] == ["the"] and after[0] != ","))


def _groups(words: Sequence[str], mentions: Sequence[_Mention]) -> Iterator[list[_Mention]]:
    """Yield the mentions in groups joined by "or", "and", a comma and the like."""
    group: list[_Mention] = []
    for mention in mentions:
        if group and not all(word in _JOINS | _OPTION for word in words[group[-1].at + 1 : mention.at][:WINDOW]):
            yield group
            group = []
        group.append(mention)
    if group:
        yield group


def _stances(words: Sequence[str], group: Sequence[_Mention]) -> list[int]:
    """Return the stance on each option of a group. It applies to all of them, except that "is wrong" after a list applies only to the
    last."""
    before, after = _window(words, group[0].at, -1), _after(words, group[-1].at)
    stance = _stance(before, after)
    joined = words[group[-2].at + 1 : group[-1].at] if len(group) > 1 else []
    if stance == DENIED and joined == [","] and not _DENIALS & set(before):
        return [_stance(before, [","])] * (len(group) - 1) + [DENIED]
    return [stance] * len(group)


def _stance(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the stance on a number, given the words of its sentence before it (nearest first) and after it."""
    links = list(takewhile((_LINKS | _OPTION).__contains__, before))
    cause = before[len(links)] if len(links) < len(before) else ""
    clause = [word for word in takewhile(lambda word: word not in _PAUSES, _verdict(after)[:7]) if word not in _OPTION]
    fault = _polarity(_verdict(after))
    ends = not after or after[0] in _REASONS
    if cause in _EXCEPTS and fault < 0:
        return CONCLUDED  # all but this one are wrong
    if cause in _DENIALS | {"out"} or fault < 0:
        return DENIED
    told = list(takewhile(lambda word: word not in _TURNS, before))
    if _SEEMED & {*told, *clause} or _SEEMING & set(pairwise(told)) or {"would", "first"} & set(clause[:5]):
        return TENTATIVE
    strong = bool(_STRONG & set(links)) and (bool(_BE & set(links)) or ":" in links)
    stated = ends and ((_THINKING | _TRUTH) & {cause} or (_BE & set(links) and ({"it", "it's", "that's"} & set(links) or not cause)))
    final = clause[:2] == ["it", "is"] or (clause[:1] and clause[0] in _BE and (_STRONG & set(clause) or clause[:3] in _SINGLED))
    if cause in _CHOOSING or strong or stated or final or "only" in links[:3] or clause[:1] == ["wins"] or _answers(links, cause):
        return CONCLUDED
    return FAVOURED if fault > 0 else NAMED


_SINGLED = (["is", "the", "one"], ["is", "the", "only"])


def _answers(links: Sequence[str], cause: str) -> bool:
    """Return whether the words before a number call it the answer: "answer: 3", "the answer 3"."""
    return "answer" in links[:4] or cause == "answer"


def _verdict(after: Sequence[str]) -> list[str]:
    """Return the words that judge a number, up to where its sentence changes the subject."""
    marks = sum(1 for _ in takewhile(_set(". : ) | - \u2013 \u2014").__contains__, after))
    return list(takewhile(lambda word: word not in _OTHERS, after[marks:]))


def _polarity(words: Sequence[str]) -> int:
    """Return -1 for words that find a fault, 1 for words that find none or a merit, otherwise 0. "Does not contradict" is a merit."""
    faults = [at for at, word in enumerate(words) if word in _FAULTS]
    merits = [at for at, word in enumerate(words) if word in _MERITS]
    negated = [at for at, word in enumerate(words) if word in _NEGATORS and words[at + 1 : at + 2] not in ([","], ["."])]
    if faults:
        return 1 if any(at < faults[-1] <= at + 3 for at in negated) else -1
    if merits:
        return -1 if any(at < merits[0] <= at + 3 for at in negated) else 1
    return -1 if words[:1] == ["no"] else 0


def _leading_mentions(words: Sequence[str], mentions: Sequence[_Mention]) -> list[_Mention]:
    """Return the number at the beginning of the reply, and those joined to it by "or", "and" or a comma."""
    if not mentions or not all(word in _LEADS | _OPTION for word in words[: mentions[0].at]):
        return []
    leading = [mentions[0]]
    for last, mention in pairwise(mentions):
        if not all(word in _JOINS | _OPTION for word in words[last.at + 1 : mention.at]):
            break
        leading.append(mention)
    after = words[leading[-1].at + 1 : leading[-1].at + 2]
    return leading if not after or after[0] in _REASONS | _OPTION | {"one"} else []


def _closes(words: Sequence[str], at: int) -> bool:
    """Return whether a reply's last sentence consists of the number at `at` only."""
    before = _window(words, at, -1)
    return all(word in _REASONS for word in words[at + 1 :]) and all(word in _LEADS | _OPTION for word in before) and len(before) < at - 1


def _correction(words: Sequence[str]) -> int:
    """Return the position of the reply's last self-correction, or -1."""
    for at in range(len(words) - 1, -1, -1):
        if words[at] in ("wait", "oops", "correction", "scratch") or (words[at] == "no" and _retracts(words, at)):
            return at
    return -1


def _retracts(words: Sequence[str], at: int) -> bool:
    """Return whether a "no" retracts the words before it: "3? No, 4.", but not "No. 4" or, in a list, "3. No"."""
    item = at < 3 or words[at - 3] == "\n"
    return (words[at + 1 : at + 2] in ([","], [":"]) and words[at - 1 : at] in (["?"], ["."], ["\u2026"]) and not item) or (
        at >= 2 and words[at - 1] == "?" and words[at + 1 : at + 2] in ([","], [":"])
    )


def _after(words: Sequence[str], at: int) -> list[str]:
    """Return the words of the sentence after the one at `at`, up to the next number that is an option or begins a list item."""
    return list(takewhile(lambda word: _value(word) is None or word in ("one", "first", "second"), _window(words, at, 1)))


def _window(words: Sequence[str], at: int, step: int) -> list[str]:
    """Return up to WINDOW words of the sentence before (`step` -1, nearest first) or after (1) the one at `at`."""
    nearby: list[str] = []
    for place in range(at + step, at + step * (WINDOW + 1), step):
        if not 0 <= place < len(words) or (words[place] in _ENDS and not (step == 1 and place == at + 1)):
            break
        nearby.append(words[place])
    return nearby


def _skip_words(words: Sequence[str], skip: frozenset[str], *, numbers: bool = False) -> list[str]:
    """Return `words` from the first one that is not in `skip`. With `numbers`, numbers are skipped too."""
    for at, word in enumerate(words):
        if word not in skip and not (numbers and _value(word) is not None):
            return list(words[at:])
    return []
