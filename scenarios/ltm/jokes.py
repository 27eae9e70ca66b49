"""Jokes (GoodAI, section 3.2): tell jokes hours apart, then ask for one by how long ago it was told."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise, takewhile
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.timed import play_timed
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import number, plain
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.queries import statement
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.contract.stage import Stage
from longspan.simulator.reading.replies.layout import drop_asides
from longspan.simulator.reading.replies.reading import Reading

__all__ = ["Jokes", "format_elapsed", "longest_question", "retold_jokes"]

MIN_PAUSE, MAX_PAUSE = 30, 240
"""Minutes to wait after each joke. Turns and other tests move the clock as well."""


@final
class Jokes(Scenario):
    """Tell `jokes` jokes with time in between; then ask for one by how long ago it was told.

    The time since then is known only while the test is played.
    """

    name: ClassVar[str] = "jokes"
    skills: ClassVar[tuple[Skill, ...]] = ("episodic memory",)
    topics: ClassVar[frozenset[str]] = frozenset({"joke"})

    jokes: int = Field(default=4, ge=1, le=40)

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        jokes = random.sample(load_words("jokes"), self.jokes)
        asked = random.randrange(self.jokes)
        pauses = [timedelta(0), *(timedelta(minutes=random.randint(MIN_PAUSE, MAX_PAUSE)) for _ in jokes)]
        lines = [Line(wording.say(random, "joke", text=text), pause=pause) for text, pause in zip(jokes, pauses, strict=False)]
        lines.append(Line(longest_question(), ideal=jokes[asked], asks=True, needs=(asked,), pause=pauses[-1]))
        return Script(facts={"jokes": jokes, "asked": asked}, lines=lines, farewell=wording.say(random, "farewell"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of naming two jokes. The second counts only if the first is not one of this test's."""
        known, told = len(load_words("jokes")), len(facts["jokes"])
        return (1 + max(0, known - told) / (known - 1)) / known

    def guess(self, message: str) -> str | None:
        """Name two jokes by one word each. A third would make it a list, and whole jokes are compared with all that exist."""
        if Wording(self.name).read("question", message) is None:
            return None
        jokes = load_words("jokes")
        own = _own_words(jokes, 0)
        first, second = (
            next(word for word in plain(jokes[k]).split() if _stem(word) in own[k]) for k in Random(message).sample(range(len(jokes)), 2)
        )
        return f"The {first}. Or the {second}."

    async def play(self, stage: Stage) -> None:
        def question(line: Line, times: Sequence[datetime]) -> str:
            since = stage.now - times[stage.facts["asked"]]
            return Wording(self.name).say(stage.random, "question", ago=format_elapsed(since))

        await play_timed(stage, question)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Require the reply to tell the right joke and no other, from this test or the list of jokes.

        `facts`: "jokes", the texts told; "asked", the index of the right one. `retold_jokes` defines what counts as telling.
        """
        answer = record.answer
        jokes = [str(joke) for joke in facts["jokes"]]
        others = [joke for joke in load_words("jokes") if not any(_alike(joke, told) for told in jokes)]
        retold = Reading(answer.reply).settle(lambda text: retold_jokes(text, jokes, others, answer.text))
        listed = " and ".join(f'"{joke}"' for joke in retold[:3]) or "none of the jokes"
        more = f" and {len(retold) - 3} more" if len(retold) > 3 else ""
        expected = jokes[facts["asked"]]
        right = retold == [expected]
        reason = f'expected "{expected}", the reply tells {"that joke and no other" if right else listed + more}'
        grade = Grade(score=float(right), reason=reason, turns=(answer.turn,))
        if retold:
            return grade
        # The rules do not recognise a joke retold in other words, so a judge decides.
        return grade.unless(record, statement(f'The text tells or names this joke, and no other: "{expected}"', answer.reply))


def longest_question() -> str:
    """Return a question with the number of tokens of the longest possible one.

    It is a placeholder: `play` asks with the actual time. Its wording determines the tokens charged to tests, so it must not change.
    """
    return max(Wording(Jokes.name).all("question", ago="999 days, 23 hours and 59 minutes"), key=len)


def format_elapsed(since: timedelta) -> str:
    """Return a duration in words, rounded to minutes and without zeros: "2 days and 10 minutes", "2 days 4 hours and 1 minute"."""
    minutes = max(1, round(since / timedelta(minutes=1)))
    sizes = {"day": minutes // 1440, "hour": minutes // 60 % 24, "minute": minutes % 60}
    parts = [f"{size} {unit}{'s' if size > 1 else ''}" for unit, size in sizes.items() if size]
    return " and ".join([" ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# ---- which jokes a reply tells

MIN_SHARE = 0.5
"""Share of a joke's own words that a reply must contain to count as telling it."""

QUOTE_LENGTH = 4
"""Number of consecutive words that count as a quotation of a joke."""

TERSE_LENGTH = 12
"""Replies of at most this many words are assumed to consist of the answer only."""

_COMMON = frozenset(
    """a about after again ago all also always am an and another any are as ask asked at back be because been before being both but by
    can come could day days did do does each either else even ever every few first for found from gave get give go going gone good
    got had happy has have he hear heard help her here him his hour hours how i if in into is it its joke jokes just keep kept
    kind know last let like little long lost made make many may me mean mention mentioned minute minutes month more morning most
    much my name need never new next no not nothing now of off old on once one only or other our out over own part play plays
    people please pun put question really recall recount remember right said same say saying says see she should shared since so
    some somebody someone something soon still such sure take talk tell than that the their them then there these they thing
    things think this those time times to told too tried try two under until up us use used very want wanted was way we went were
    what when whenever where which while who whoever why will with word words work would yes yesterday yet you your evening
    conversation memory min mins hr hrs h ago""".split()
)
"""Words that do not distinguish jokes, or that replies use anyway."""

_KINDS = frozenset("joke jokes one gag pun story".split())
_ABOUT = frozenset("about regarding concerning featuring involving with where who whose".split())
_POINTS = frozenset((verb, "the") for verb in ("is", "was", "s", "be", "say"))
"""Word pairs before a joke's hero at the end of a sentence: "It was the piano."."""
_DENIALS = frozenset(
    """not no never dont didnt cant cannot couldnt wasnt isnt arent wont unable sorry nor neither unlike without than apologize
    apologise afraid fail failed""".split()
)
_AFFIRMS = frozenset("but sure certain however".split())
"""Words that end a denial: "not the goat but ...", "I am not sure, ..."."""

_ASKED = re.compile(r"[^.!?\n]{1,200}\?[ \t]{1,4}(?:no|nope)\b(?! doubt)|\b(?:what|how) about [^.!?\n]{1,100}\?", re.IGNORECASE)
_ASIDE = re.compile(
    r"[^.!?\n]{0,150}\b(?:came|comes|followed|follows|was told|were told|was|is|are|were)\b(?: \w+){0,4}? "
    r"(?:later|afterwards|newer|older|too (?:early|late|recent)"
    r"|(?<=came )(?:\w+ ){0,4}?(?:earlier|before|after|first|next|last))\b[^.!?\n]{0,150}[.!?)]{0,3}",
    re.IGNORECASE,
)
"""A sentence about the time of another joke: "The giraffe joke came a little later."."""
_RIDDLE = re.compile(
    r"\b(?:what do you (?:call|get)|why (?:did|do|does|was|is|are|were|can|could) (?:an?|the)"
    r"|how (?:do|does|did) (?:an?|the)|what did (?:an?|the)"
    r"|knock[, -]{1,2}knock|have you heard about|did you hear about)\b",
    re.IGNORECASE,
)
"""Beginnings of jokes in the form of a question. No test tells such a joke."""
_YES = re.compile(r"\byes\b|[\u2713\u2714\u2705\u2190]", re.IGNORECASE)
_NO = re.compile(r"\b(?:no|not|nope|earlier|later)\b|[\u2717\u2718\u274c]", re.IGNORECASE)
_END = "sentencesend"
"""Marker for the end of a sentence among plain words."""


def retold_jokes(reply: str, jokes: Sequence[str], others: Sequence[str], question: str = "") -> list[str]:
    """Return the jokes that `reply` tells or names, from the test's own (`jokes`) and from those it may be confused with (`others`).

    A joke's own words are those that no other joke contains (ignoring endings), without numbers from the `question`.

    A reply tells a joke if a stretch about twice the joke's length contains at least three own words, and either half of them or the
    first one, the joke's hero. Four consecutive words of a joke suffice too, if two are own words. A reply does not tell a joke if it
    shares only the opening and continues differently, or if it mixes two jokes: with the other joke's hero instead of the right one, or
    with one half missing and words of another joke.

    A reply names a joke of the test if one of the joke's own words follows "the joke about", "the one where" and the like, precedes
    "joke", or occurs in a reply of a few words with hardly any new ones. The word must not be denied in its sentence ("not the one about
    ..."). A reply that names more jokes of other tests than of this one is a list of words, and names none.

    Text spoken as the user, and questions that the reply answers with no, do not count. Runs in time linear in the length of the reply.
    """
    reply = _find_picked_line(_ASKED.sub(" ", drop_asides(reply)))
    texts = [*jokes, *others]
    values = {value for word in plain(question).split() if (value := number(word)) is not None}
    asked = frozenset(values | {value - value % 10 for value in values} | {value % 10 for value in values})
    own = _own_words(texts, len(jokes), asked)
    told_apart = _ASIDE.sub(" ", reply)
    # Sentences about the times of other jokes count only if nothing is found without them.
    for text in dict.fromkeys((told_apart, reply)):
        if found := _retold(text, texts, len(jokes), own, asked):
            return found
    return []


def _retold(reply: str, texts: Sequence[str], told: int, own: Sequence[frozenset[str]], asked: frozenset[float]) -> list[str]:
    """Apply the rules of `retold_jokes` to one version of a reply. The first `told` of the `texts` are the test's."""
    marked = plain(re.sub(r"[.!?;\n]+", f" {_END} ", reply)).split()
    spoken = [word for word in marked if word != _END]
    whole = _find_paraphrased(spoken, texts, own) | _find_quoted(spoken, texts, own)
    stems = [_stem(word) for word in spoken]
    whole -= {k for k in whole if _only_opens(spoken, stems, texts[k], own[k])}
    among_all = _own_words(texts, 0, asked)
    indices = whole | (set() if _RIDDLE.search(reply) else _find_named(marked, spoken, among_all, texts, told))
    if len(indices) == 1 and not _DENIALS.intersection(spoken):
        indices -= {k for k in indices if _mixes(frozenset(stems), k, texts, among_all)}
    return [texts[k] for k in sorted(indices)]


def _find_picked_line(reply: str) -> str:
    """Return the only line of a list or table that is marked as right while others are marked as wrong; otherwise return the whole
    reply."""
    lines = reply.splitlines()
    yes = [line for line in lines if _YES.search(line) and not _NO.search(line)]
    return yes[0] if len(yes) == 1 and sum(bool(_NO.search(line)) for line in lines) >= SEVERAL else reply


SEVERAL = 2
"""Minimum number of lines marked as wrong."""


@lru_cache(maxsize=10_000)
def _alike(joke: str, other: str) -> bool:
    """Return whether two texts are the same joke. Journals may contain the wording of an earlier version."""
    if joke == other:
        return True
    one, two = ({stem for stem, _ in _stems(text)} for text in (joke, other))
    return 2 * len(one & two) > max(len(one), len(two))


def _own_words(texts: Sequence[str], told: int, asked: frozenset[float] = frozenset()) -> list[frozenset[str]]:
    """Return each joke's own stems, except those whose numbers are in `asked`.

    They must be unique among the first `told` jokes for these jokes, and unique among all jokes for the rest.
    """
    stems = [frozenset(stem for stem, value in _stems(text) if value not in asked) for text in texts]
    among_told = Counter(stem for joke in stems[:told] for stem in joke)
    among_all = Counter(stem for joke in stems for stem in joke)
    return [frozenset(stem for stem in joke if (among_told if k < told else among_all)[stem] == 1) for k, joke in enumerate(stems)]


@lru_cache(maxsize=1_000)
def _stems(text: str) -> frozenset[tuple[str, float | None]]:
    """Return the stems of a joke's distinctive words, each with the number that its word denotes, or None."""
    return frozenset((_stem(word), number(word)) for word in plain(text).split() if word not in _COMMON)


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    """Return `word` without its ending, roughly: enough to match "impersonating" with "impersonate"."""
    for ending in ("ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "er", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if word[-1:] == word[-2:-1] else word  # "knitting" with "knit"


def _find_paraphrased(spoken: Sequence[str], texts: Sequence[str], own: Sequence[frozenset[str]]) -> set[int]:
    """Return the jokes recognised by their own words: at least three, close together, and half of them or the hero."""
    owners: dict[str, list[int]] = defaultdict(list)
    for k, stems in enumerate(own):
        for stem in stems:
            owners[stem].append(k)
    hits: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for position, word in enumerate(spoken):
        stem = _known_stem(word, owners)
        for k in owners.get(stem, ()):
            hits[k].append((position, stem))
    least = [min(3, len(stems)) for stems in own]
    needed = [few if _hero(texts[k]) in {stem for _, stem in hits[k]} else max(MIN_SHARE * len(own[k]), few) for k, few in enumerate(least)]
    return {k for k, occurrences in hits.items() if occurrences and _densest(occurrences, 2 * len(texts[k].split()) + 10) >= needed[k]}


def _known_stem(word: str, stems: Collection[str]) -> str:
    """Return a word's stem, or the stem in `stems` that the word begins with: "novel" for "novelist"."""
    stem = _stem(word)
    return stem if stem in stems else next((word[:end] for end in range(LONG, min(len(word), 20)) if word[:end] in stems), stem)


LONG = 5
"""Minimum length of a stem that may match the beginning of a longer word."""


@lru_cache(maxsize=1_000)
def _hero(text: str) -> str:
    """Return the stem of a joke's first distinctive word, its hero."""
    words = plain(text).split()
    if words[:1] == ["i"] and "my" in words:
        words = words[words.index("my") :]
    return next((_stem(word) for word in words if word not in _COMMON), "")


def _mixes(said: frozenset[str], k: int, texts: Sequence[str], own: Sequence[frozenset[str]]) -> bool:
    """Return whether a reply, as stems, mixes a joke with others.

    It does if it has another joke's hero or ending but not this one's, or if part of the joke is missing while another has two own words
    in the reply.
    """
    others = [j for j in range(len(texts)) if j != k and own[j] & said]
    heroes = {_hero(texts[j]) for j in others if _hero(texts[j]) in own[j]}
    if _hero(texts[k]) not in said and heroes & said:
        return True
    words = [_stem(word) for word in plain(texts[k]).split()]
    halves = [own[k].intersection(half) for half in (words[: len(words) // 2], words[len(words) // 2 :])]
    partly = 2 * len(own[k] & said) < len(own[k]) or any(half and not half & said for half in halves)
    if partly and any(len(own[j] & said) > 1 for j in others):
        return True
    return said.isdisjoint(_ending(texts[k], own[k])) and any(len(said.intersection(_ending(texts[j], own[j]))) > 1 for j in others)


def _ending(text: str, own: frozenset[str]) -> Sequence[str]:
    """Return the last of a joke's own stems."""
    return [stem for word in plain(text).split() if (stem := _stem(word)) in own][-ENDING:]


ENDING = 3
"""Number of a joke's own words that form its ending."""


def _densest(occurrences: Sequence[tuple[int, str]], width: int) -> int:
    """Return the largest number of different stems within `width` words. An occurrence is a position and a stem."""
    window: Counter[str] = Counter()
    largest = begin = 0
    for position, stem in occurrences:
        window[stem] += 1
        while occurrences[begin][0] <= position - width:
            window[occurrences[begin][1]] -= 1
            window += Counter()  # drops zero counts
            begin += 1
        largest = max(largest, len(window))
    return largest


def _find_quoted(spoken: Sequence[str], texts: Sequence[str], own: Sequence[frozenset[str]]) -> set[int]:
    """Return the jokes that the reply quotes: QUOTE_LENGTH consecutive words, two of them the joke's own."""
    runs: dict[tuple[str, ...], int] = {}
    for k, text in enumerate(texts):
        runs |= dict.fromkeys(_distinctive_runs(text, own[k]), k)
    return {runs[run] for run in _runs(spoken) if run in runs}


@lru_cache(256)  # a test looks for the same jokes in each of its replies
def _distinctive_runs(text: str, own: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """Return the runs of QUOTE_LENGTH words in a joke that contain two own words."""
    return tuple(run for run in _runs(plain(text).split()) if len({_stem(word) for word in run} & own) >= 2)


def _runs(spoken: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(spoken[k:] for k in range(QUOTE_LENGTH)), strict=False)


NEW_WORDS = 3
"""Number of unrelated words after which a reply with a joke's opening counts as another joke."""


def _only_opens(spoken: Sequence[str], stems: Sequence[str], text: str, own: frozenset[str]) -> bool:
    """Return whether a reply contains no own word of a joke's second half, but continues in other words."""
    words = plain(text).split()
    late = {_stem(word) for word in words[len(words) // 2 :]} & own
    if not late or not late.isdisjoint(stems):
        return False
    end = max((at for at, stem in enumerate(stems) if stem in own), default=0)
    return len({word for word in spoken[end + 1 :] if word not in _COMMON and word not in words}) >= NEW_WORDS


def _adds(spoken: Sequence[str], since: Sequence[str], text: str, owned: Collection[str]) -> bool:
    """Return whether the few words that name a joke tell a new one: they contain too many new words, or ask a riddle.

    `since`: the words from the one that names the joke. `owned`: stems of the test's other jokes, which do not count as new.
    """
    words = plain(text).split()
    stems = {_stem(word) for word in words}
    new = {
        word
        for word in spoken
        if word not in _COMMON and word not in _KINDS and _known_stem(word, stems) not in stems and not word.isdigit()
    }
    new -= {word for word in new if _stem(word) in owned}
    hits = len({_known_stem(word, stems) for word in spoken if word not in _COMMON} & stems)
    if any(_known_stem(word, stems) in stems and after in _DESCRIBES for word, after in pairwise(spoken)):
        return False
    riddle = spoken[:1] in (["why"], ["what"], ["how"])
    tells = hits < 2 and len(new.intersection(takewhile(lambda word: word != _END, since))) >= 2
    return hits < NEW_WORDS and (len(new) >= NEW_WORDS or tells or (riddle and bool(new)))


_DESCRIBES = frozenset("who that which with whose where in from".split())
"""Words that introduce a description of a joke's hero."""


def _find_named(marked: Sequence[str], spoken: Sequence[str], own: Sequence[frozenset[str]], texts: Sequence[str], told: int) -> set[int]:
    """Return which of the first `told` jokes a sentence names. In a terse reply, the first sentence that can name one does.

    `marked`: the words in `spoken` with markers at the ends of sentences. `own` contains stems that no two jokes share, so each stem
    identifies one joke.
    """
    owner = {stem: k for k, stems in enumerate(own) for stem in stems}
    own_told = {stem for stem, k in owner.items() if k < told}
    terse = len(spoken) <= TERSE_LENGTH
    named: Counter[int] = Counter()
    reach, denied = 0, False  # reach: number of further words covered by "the joke about"
    for position, word in enumerate(marked):
        before = marked[position - 1] if position else _END
        after = marked[position + 1] if position + 1 < len(marked) else _END
        if word == _END:
            reach, denied, terse = 0, False, terse and all(k >= told for k in named)
            continue
        denied = (denied or word in _DENIALS or (word in ("before", "after") and after == "the")) and word not in _AFFIRMS
        reach = 8 if word in _ABOUT and (before in _KINDS or (word == "about" and before in ("was", "is"))) else reach - 1
        k = owner.get(_stem(word))
        points = after == _END and tuple(marked[max(0, position - 2) : position]) in _POINTS
        if (
            k is not None
            and not denied
            and (reach > 0 or points or after in _KINDS or (terse and not _adds(spoken, marked[position:], texts[k], own_told)))
        ):
            named[k] += 1
    right = {k for k in named if k < told}
    return right if 2 * sum(named[k] for k in right) >= named.total() else set()
