"""Determines how a reply presents each value that it names: as current, as a fact, as past, as denied and so on."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple, final

from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.reading.replies.splitting import COMMA, LINE, NONE, NOTHING, SENTENCE, Clause
from longspan.simulator.reading.replies.values import Findable, ValueMatch

__all__ = ["Mention", "correction_cues", "drop_replaced", "find_mentions", "is_alternative", "is_correction"]

_THE: Final = r"(?:(?:the|your|(?<!after )that|my|a) )?(?:(?:old|previous|former|earlier) )?$"
_FOLLOWED: Final = re.compile(r"^(?:before|prior to|preceding) (?:the )?$")
"""Matches before the name of a value that came later than the one the clause is about: "before red it was blue"."""
_FILLED: Final = frozenset(
    "is are was were be it the a an any these those this that one ones right correct current true valid so now more longer yours use"
    " used wanted want say in on list all of them included your my".split()
)
"""Words that may stand between a denial and the denied names: "not the current one: red"."""
_FILLING: Final = frozenset("a an the your my both even maybe perhaps possibly".split())
_OWN: Final = re.compile(r"\b(?:is|are|s|it|this|that|remains|stays|i|(?<!from )you|your(?! x\b))\b")
"""Words of a clause that is a statement, not the next item of an enumeration ("your x"). Words of stance count too."""
_DESCRIBED: Final = re.compile(r"x (?:\w+ed|written down)(?: (?:for|in|as|at|on|under|with)\b|(?P<ends>$))")
"""A participle that describes a name and says nothing about time: "red and blue stored for ...", "red and blue noted"."""
_SEVERAL: Final = re.compile(r"x (?:are|were|have|both|all)\b")
"""A statement about all names of an enumeration: "red and blue are current"."""
_CURRENTLY: Final = re.compile(r"^(?:(?:and|that|which|this|it|s|is|the|are|where|you|most|\d+\w*) )*$")
_POINTS: Final = re.compile(r"^(?:that|this|where)\b")
_BESIDE: Final = re.compile(r"[(\[\u2014\u2013\u2190]|<-| - ")
_OUTDATED: Final = re.compile(
    r"^(?:no (?:longer|more)|not any ?more|old|older|former|formerly|past|previous|previously|earlier|replaced|outdated|obsolete)$"
)
_RETRACTS: Final = frozenset("no nope nay nah not wait er erm uh wrong incorrect".split())
_PARDONS: Final = frozenset("sorry pardon excuse apologies".split())
"""Words that retract only in the middle of a sentence. At its start they are polite."""
_MURMURS: Final = (
    _RETRACTS | _PARDONS | frozenset("oh ah hm hmm um well but and or actually rather lol haha arr me my dear ok okay right".split())
)
"""Words of a clause that only retracts: "no, wait", "oh no, sorry"."""
_PREPOSTEROUS: Final = re.compile(r"i m (?:a|an|the) \w+(?: of \w+)?$")
"""An ironic denial after a name: "Red, and I'm a teapot"."""
_TRAILS: Final = re.compile(r"\.\.|[\u2026\u2014\u2013]|\s-")
_AGREES: Final = frozenset("well oh ah hm hmm um so yes".split())
"""Filler words, which neither confirm nor retract."""
_ARROW: Final = re.compile(r"->|=>| > |[\u2192\u27a1\u21d2\u27f6\u279c\u2794]")
_LEFT: Final = re.compile(
    r"(?:it |this )?(?:supersedes|replaces|overrides|replacing|superseding)(?: the old)?|out|off|wrong|rejected"
    r"|not to be (?:confused|mixed up) with"
)
"""A heading for a value that was given up: "supersedes: red", "out: red"."""
_HELD: Final = re.compile(r"in|on|restored|reinstated|kept|stays|replacement|successor")
"""A heading for a value that is current."""
_ELLIPTIC: Final = re.compile(r"\b(?:i|we|they) (?:do|did|have|had|will|would|can|could|am|are) not$")
"""A denial that refers to the sentence before: "others forget. I do not: red"."""
_WAS_WRONG: Final = re.compile(r"(?:is|was) (?:wrong|incorrect|outdated|out of date|a mistake|a slip)\b")
"""The end of a sentence that retracts a name: "red, the one you gave first, was wrong"."""
_TAKEN_BACK: Final = re.compile(r"^(?:no|nope|not)\b(?! (?:idea|clue|doubt|problem|worries|sure)\b)")


TITLE: Final = 4
"""The most words of a sentence that acts as a heading for the next one: "Not any more. Red."."""


@final
class Mention(NamedTuple):
    """A value named in clause number `clause`, from `start` to `end` in its text, and its stance `how`.

    Mentions with the same `run` belong to the same statement or enumeration.
    """

    value: str
    how: Stance
    run: int
    clause: int
    start: int
    end: int


def find_mentions(clauses: Sequence[Clause], values: Findable) -> list[Mention]:
    """Return the mentions of `values` in reply order.

    A clause that continues an enumeration has the stance of the clause before it ("not red, green or blue"; "earlier: red, green"). The
    first items of an enumeration have the stance of the clause that ends it ("red and blue were earlier"). A remark after a name applies
    to that name ("red (current)").
    """
    heard = _MentionState(clauses, values)
    for at, (clause, following) in enumerate(pairwise([*clauses, NOTHING])):
        heard.next(at, clause, following)
    return _deny_corrected(clauses, heard.found)


class _MentionState:
    """The state of a scan over clauses, and the mentions found so far."""

    def __init__(self, clauses: Sequence[Clause], values: Findable) -> None:
        self.found: list[Mention] = []
        self._clauses = clauses
        self._values = values
        self._before = NOTHING
        self._heading = NOTHING
        """The last clause that may say something about bare names after it."""
        self._enumerates = False
        """Whether only remarks followed the last name, so that a bare name would continue its enumeration."""
        self._begun = False
        """Whether the last name belongs to an enumeration of bare names, which starts at `_bare_since` in `found`."""
        self._bare_since = 0
        self._run = 0
        self._how = Stance.ASSERTED
        """The stance of the last name, before any remark changed it."""
        self._last = 0
        """The index in `found` of the first name of the last clause that has names."""
        self._within = False
        """Whether a bracket is open."""
        self._murmured = False
        """Whether a word like "no" followed the last name. The next name then starts a new statement."""

    def next(self, at: int, clause: Clause, following: Clause) -> None:
        self._within = clause.gap.rfind("(") > clause.gap.rfind(")") or (self._within and ")" not in clause.gap)
        matches = self._values.find(clause.text)
        if matches:
            self._name(at, clause, following, matches)
        else:
            self._remark(clause, following)
        self._before = clause

    def _remark(self, clause: Clause, following: Clause) -> None:
        """Apply a clause without names as a remark on the last names, or keep it as a heading for the next."""
        remark = self._stance_of_remark(clause, following)
        if remark is not None:
            self.found[self._last :] = [mention._replace(how=remark) for mention in self.found[self._last :]]
        elif clause.text.replace(" ", "").isdecimal() and self._enumerates:
            pass  # the date or number of a list entry
        elif _MURMURS.issuperset(clause.text.split()):
            self._murmured = self._murmured or not _AGREES.issuperset(clause.text.split())
        elif not (self._within and self._enumerates and _says_nothing(clause)):
            self._heading, self._enumerates = clause, False

    def _stance_of_remark(self, clause: Clause, following: Clause) -> Stance | None:
        if not self.found:
            return None
        if self._enumerates:
            remark = _remark(clause, self._before, within=self._within) if following.gap[:1] != ":" else None
            if remark is not None:
                return remark
            alone = self._last == 0 or self.found[self._last - 1].run != self.found[-1].run
            if alone and _confirms(clause):
                return Stance.CURRENT
        same = clause.sentence == self._clauses[self.found[-1].clause].sentence
        return Stance.DENIED if same and (LEXICON.has("gave it up", clause.text) or _WAS_WRONG.match(clause.text)) else None

    def _name(self, at: int, clause: Clause, following: Clause, matches: Sequence[ValueMatch]) -> None:
        """Record the names of a clause. Bare names have the stance of the heading or enumeration before them."""
        if self._murmured:
            self._enumerates, self._heading, self._murmured = False, self._before, False
        stated = how = self._stance_of_statement(clause, matches)
        if how is None and not self._enumerates:
            how, self._bare_since, self._begun = _how(self._heading, clause), len(self.found), True
            self._run += 1
        elif how is None and _replaces(clause, following, self.found, self._run):
            how, self._bare_since, self._begun = Stance.ASSERTED, len(self.found), True
            self._run += 1
        elif how is None:
            how = self._how
        if (
            self.found
            and _ARROW.search(clause.gap)
            and (how in (Stance.ASSERTED, Stance.REPORTED) or (stated is None and how == Stance.DENIED))
        ):
            how = Stance.CHANGED
            self._run += 1
        self._enumerates, self._last, self._heading = True, len(self.found), clause
        self.found += _mentions_in_clause(clause, matches, how, self._run, at)
        self._how = self.found[-1].how

    def _stance_of_statement(self, clause: Clause, matches: Sequence[ValueMatch]) -> Stance | None:
        """Return the stance that a clause states for its names, or None if the names are bare and belong to an enumeration."""
        rest = _without_names(clause.text, matches)
        bare = _FILLING.issuperset(clause.text[: matches[0].start].split()) and not _states(rest)
        titled = clause.link == "head" and (not self._enumerates or (bare and self._begun))
        adverb = not self._enumerates and clause.gap.startswith(",") and _how(self._heading) in (Stance.CURRENT, Stance.DATED)
        joint = clause.link == "joint"
        apposed = not self._enumerates and clause.gap.strip() == "("  # "the name was wrong (red)"
        if bare and (titled or adverb or apposed or (joint and self._enumerates)):
            return None
        own = LEXICON.stance(rest)
        if bare and self._before is self._heading and self._before.asks and _how(self._before) == Stance.DATED:
            own = Stance.DATED  # "What was it before? Red."
        if adverb and own in (Stance.ASSERTED, Stance.REPORTED):
            own = _how(self._heading)
        if bare and self.found and clause.asks and is_alternative(clause):
            own = self.found[-1].how  # "Didn't you say red? Or blue?"
        if self._enumerates:
            own = self._stance_of_joined(clause, matches, rest, own)
        alternative = self.found and own > self.found[-1].how and own != Stance.DENIED and is_alternative(clause)
        own = self.found[-1].how if alternative else own  # "red, or was it blue?"
        self._run += not alternative
        self._bare_since, self._begun = len(self.found), bare
        return own

    def _stance_of_joined(self, clause: Clause, matches: Sequence[ValueMatch], rest: str, own: Stance) -> Stance:
        """Return the stance of a clause that is joined to the names before it. Its words may apply to those names as well."""
        if clause.link != "joint":
            return own
        if own == Stance.REPORTED and self.found[-1].how == Stance.DENIED and clause.text.startswith("then "):
            return Stance.DATED  # "it used to be red, then blue"
        if matches[0].start == 0 and clause.gap.strip(" ,").casefold() in ("and", "or", "&", "/"):
            if self._begun and (own >= Stance.REPORTED or _SEVERAL.search(rest)):
                spread = Stance.DENIED if _left_behind_pattern().match(clause.text, matches[0].end) else own
                self.found[self._bare_since :] = [mention._replace(how=spread) for mention in self.found[self._bare_since :]]
            if own == Stance.REPORTED and (described := _DESCRIBED.match(rest)):
                own = self.found[-1].how if self.found[-1].how == Stance.ASSERTED or described["ends"] is None else own
        if own == Stance.ASSERTED and self.found[-1].how == Stance.REPORTED and not _states(rest):
            return Stance.REPORTED  # "it is noted as red here and as blue there"
        return own


def _says_nothing(clause: Clause) -> bool:
    """Return whether a clause in brackets after a name shows no stance, such as "2nd" in "red (2nd, current)"."""
    return LEXICON.stance(clause.text) == Stance.ASSERTED


@cache  # compiling these patterns is slow, and a reply without a value needs none of them
def _leaving_pattern() -> re.Pattern[str]:
    """Return a pattern that matches right before the name of a value that was given up ("it replaced blue")."""
    return re.compile(rf"{LEXICON.source('left before')} {_THE}")


@cache
def _left_behind_pattern() -> re.Pattern[str]:
    """Return a pattern that matches right after the name of a value that was given up."""
    return re.compile(f" {LEXICON.source('left after')}")


@cache
def _newest() -> re.Pattern[str]:
    """Return a pattern that matches right before the name of the latest value."""
    return re.compile(rf"{LEXICON.source('nothing since')} {_THE}")


@cache
def _arrival_pattern() -> re.Pattern[str]:
    """Return a pattern that matches right before the name of the target of a change."""
    return re.compile(
        rf"{LEXICON.source('changed')}.{{0,60}}\b(?:to|onto|on|by) {_THE}"
        rf"|{LEXICON.source('exchanged')}.{{0,60}}\b(?:for|with) {_THE}"
        rf"|{LEXICON.source('settled on')}(?: is)? {_THE}"
    )


def _replaces(clause: Clause, following: Clause, found: Sequence[Mention], run: int) -> bool:
    """Return whether a bare name replaces the only value denied before it: "not red, blue"."""
    if clause.gap.strip() != "," or found[-1].how != Stance.DENIED or (following.link == "joint" and following.part <= COMMA):
        return False
    return len(found) < 2 or found[-2].run != run


def is_alternative(clause: Clause) -> bool:
    """Return whether a clause names another possibility: "red, or maybe blue"."""
    return clause.gap.strip().casefold().endswith(("or", "/")) or clause.text.startswith("or ")


def _how(heading: Clause, clause: Clause | None = None) -> Stance:
    """Return the stance that a heading gives to the bare names after it.

    A denial of something else does not count ("not to be repeated: red"), and neither does a complete sentence before the names.
    """
    parted = clause is not None and clause.gap.strip() == "." and len(heading.text.split()) > TITLE
    cell = clause is not None and heading.gap.strip() == ":" and "\n" in clause.gap and ":" not in clause.gap
    if LEXICON.has("corrected", heading.text) or parted or cell:
        return Stance.ASSERTED
    if LEXICON.pattern("gone").fullmatch(heading.text) or _LEFT.fullmatch(heading.text):
        return Stance.DENIED
    if LEXICON.pattern("holding").fullmatch(heading.text) or _HELD.fullmatch(heading.text):
        return Stance.CURRENT
    if _ELLIPTIC.search(heading.text):
        return Stance.ASSERTED
    stance = LEXICON.stance(heading.text)
    if stance != Stance.DENIED:
        return stance
    if LEXICON.has("outdated", heading.text):
        return Stance.DATED
    denial = max(match.end() for match in LEXICON.pattern("denied").finditer(heading.text))
    supposes = heading.gap.strip().casefold().endswith("if")
    return Stance.DENIED if not supposes and _FILLED.issuperset(heading.text[denial:].split()) else Stance.ASSERTED


def _states(clause: str) -> bool:
    return bool(_OWN.search(clause)) or bool(LEXICON.stances(clause))


def _mentions_in_clause(clause: Clause, matches: Sequence[ValueMatch], how: Stance, run: int, at: int) -> list[Mention]:
    """Return the mentions in a clause. If a chain of changes names several values, only the last is the target of the change."""
    unsure = LEXICON.has("unsure", clause.text[:200]) and not is_alternative(clause)
    found = [Mention(match.value, _local(clause.text, match, how, unsure), run, at, match.start, match.end) for match in matches]
    return [mention._replace(how=Stance.REPORTED) if mention.how == Stance.CHANGED else mention for mention in found[:-1]] + found[-1:]


def _local(clause: str, match: ValueMatch, how: Stance, unsure: bool) -> Stance:
    """Return the stance of one name: the stance of its clause, unless the words next to the name mark it as old or new."""
    before = clause[max(0, match.start - 100) : match.start]
    if _newest().search(before):
        return Stance.CURRENT
    if how == Stance.DATED and _FOLLOWED.search(before):
        return Stance.CHANGED
    if (gone := _leaving_pattern().search(before)) or _left_behind_pattern().match(clause, match.end):
        return Stance.DATED if gone and gone[0].startswith("from") else Stance.DENIED
    if how in (Stance.ASSERTED, Stance.REPORTED) and not unsure and _arrival_pattern().search(before):
        return Stance.CHANGED
    return Stance.ASSERTED if unsure and how == Stance.CURRENT else how


def _without_names(clause: str, matches: Sequence[ValueMatch]) -> str:
    """Return a clause with "x" for each name, so that words of a name show no stance ("Painted Quill").

    Words about a value that was given up are removed too: "instead of blue it is red" denies only blue.
    """
    kept: list[str] = []
    at = 0
    for match in matches:
        gone = _leaving_pattern().search(clause[max(at, match.start - 100) : match.start])
        kept.append(clause[at : match.start - len(gone[0])] if gone else f"{clause[at : match.start]}x")
        at = match.end
    return "".join(kept) + clause[at:]


def _remark(clause: Clause, before: Clause, *, within: bool) -> Stance | None:
    """Return the stance that a clause without names gives to the name before it, or None. `within`: whether it is in brackets."""
    if ("\n" in clause.gap and not clause.text.startswith("that ")) or clause.gap.strip(" ,.").casefold().endswith(("if", "unless")):
        return None
    if clause.gap.casefold().endswith("and") and _PREPOSTEROUS.match(clause.text):
        return Stance.DENIED
    if clause.text == "no" and _TRAILS.search(clause.gap):
        return Stance.DENIED
    if clause.part <= SENTENCE and not clause.asks and LEXICON.has("taken back", clause.text):
        return Stance.DENIED
    if LEXICON.has("doubted", clause.text) and clause.part < SENTENCE:
        return Stance.DENIED
    if "?" in clause.gap and _TAKEN_BACK.match(clause.text):
        return Stance.DENIED
    current = LEXICON.pattern("current").search(clause.text)
    if (
        current
        and _CURRENTLY.match(clause.text[: current.start()])
        and len(clause.text.split()) <= 8
        and (
            ("which" in clause.gap and not LEXICON.has("unknown", before.text))
            or within
            or _POINTS.match(clause.text)
            or _BESIDE.search(clause.gap)
        )
    ):
        return Stance.CURRENT
    if within and (LEXICON.pattern("holding").fullmatch(clause.text) or _HELD.fullmatch(clause.text)):
        return Stance.CURRENT
    return Stance.DATED if within and (_OUTDATED.match(clause.text) or _LEFT.fullmatch(clause.text)) else None


def _confirms(clause: Clause) -> bool:
    """Return whether a clause confirms the only value before it."""
    return clause.part <= SENTENCE and "?" not in clause.gap and LEXICON.has("confirmed", clause.text)


def _deny_corrected(clauses: Sequence[Clause], found: list[Mention]) -> list[Mention]:
    """Return the mentions, with those denied that the reply retracts before it names others: "blue - no, wait, red"."""
    if len(found) < 2:
        return found
    last = found[-1].clause
    at = max((at for at, clause in enumerate(clauses[: last + 1]) if is_correction(clause)), default=0)
    if any(clause.part < SENTENCE and LEXICON.has("meant", clause.text) for clause in clauses[last + 1 : last + 2]):
        at = last  # "red, I meant"
    after = [mention for mention in found if mention.clause >= at]
    if not at or not after or min(mention.how for mention in after) > Stance.REPORTED:
        return found
    return [mention._replace(how=Stance.DENIED) if mention.clause < at else mention for mention in found]


def is_correction(clause: Clause) -> bool:
    """Return whether a clause retracts the text before it: "no, wait", "scratch that"."""
    said = clause.text.split()
    taken = _RETRACTS | _PARDONS if NONE < clause.part < SENTENCE else _RETRACTS
    if taken.intersection(said) and _MURMURS.issuperset(said):
        return (clause.part < LINE and ":" not in clause.gap) or said[0] != "no"
    return LEXICON.has("corrected", clause.text)


@cache
def correction_cues() -> str:
    """Return a pattern of the words that take back what was just said, in text as written: "no", "scratch that", "I mean"."""
    phrases = (phrase.strip("^") for phrase in LEXICON.phrases("corrected") if "..." not in phrase)
    # "Blue, not red" takes back the value after the word, and "make it" corrects only between two values.
    cues = sorted({*(_RETRACTS - {"not"}), *_PARDONS, "oh", "make it", *phrases}, key=lambda each: (-len(each), each))
    return re.sub(r" (?=(?:s|m|ve)\b)", ".", "|".join(cues)).replace("*", r"\w*")


@cache
def _replaced_pattern(value: str, by: str) -> re.Pattern[str]:
    cues = rf"(?:(?:{correction_cues()})[\s,;:.!\u2026\u2013\u2014-]{{1,4}}(?:(?:you|i) [a-z' ]{{2,30}}[:,;] ?)?){{1,4}}"
    gap = r"[\s,;:.(\u2026\u2013\u2014-]{1,4}"
    return re.compile(rf"{value}(?:\s?\({cues}(?P<new>{by})\)|{gap}{cues}(?=(?P<next>{by})))", re.IGNORECASE)


def drop_replaced(text: str, value: str, by: str = "", known: Container[str] | None = None) -> str:
    """Return `text` without values that it replaces at once: "4 (sorry, 3)", "Ada - no, I mean Bea".

    `value` and `by` are patterns of the replaced and the new value; by default, these are the same. The new value must be among the
    `known` ones, if given; these are in lower case.
    """

    def replace(match: re.Match[str]) -> str:
        new = match["new"] or match["next"]
        return (match["new"] or "") if known is None or new.lower() in known else match[0]

    return _replaced_pattern(value, by or value).sub(replace, text)
