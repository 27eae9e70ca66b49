"""Decides between several values that a reply names, by its course: questions answered, concessions, conditions, sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from itertools import pairwise
from typing import Final

from longspan.simulator.reading.dates import the_day
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.reading.replies.mentions import Mention
from longspan.simulator.reading.replies.splitting import SENTENCE, TURN, Clause

__all__ = ["weigh_mentions"]

LOOKED_AT: Final = 300
"""The number of characters of a clause that are searched for words that apply to all of it."""
POINTING: Final = 3
"""The number of clauses after the last value that may refer back to one of them ("the latter")."""


def weigh_mentions(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    """Return the mentions with the stance that they have in the context of the whole reply.

    - A supposition or an offer counts as reported at most ("if it is red", "shall I change it to red?").
    - A value is denied if the reply asks about it and answers with another ("Red? It's blue."), concedes it ("you liked red, but you chose
      blue") or denies it later ("Red and blue. Red was dropped.").
    - The reply decides on a value that it repeats alone at the end ("Red or blue? I'd say blue."), or that it refers back to ("Red and
      blue. The latter is newer.").
    """
    supposed = {at for at in {mention.clause for mention in found} if _supposes(clauses[at])}
    runs = {mention.run for mention in found if mention.clause in supposed}
    found = [_weaken(mention, clauses[mention.clause]) if mention.run in runs else mention for mention in found]
    asserted = {clauses[mention.clause].sentence for mention in found if mention.how == Stance.ASSERTED}
    begun = (clause for before, clause in pairwise(clauses) if before.sentence < clause.sentence and clause.sentence in asserted)
    asides = {clause.sentence for clause in begun if LEXICON.has("aside", clause.text)}
    found = [_aside(mention, clauses[mention.clause], asides) for mention in found]
    if len({mention.value for mention in found}) == 1:
        wondering = _find_wondering(clauses)
        found = _without(found, lambda mention: mention.clause in wondering)
    elif found:
        for denies in (_answers, _concedes, _drops, _decides, _refers, _outdates, _likeliest):
            found = denies(clauses, found)
    return found


def _supposes(clause: Clause) -> bool:
    return _conditions(clause) or LEXICON.has("offered", clause.text[:LOOKED_AT])


def _conditions(clause: Clause) -> bool:
    return clause.gap.strip().casefold().endswith("if")


def _find_wondering(clauses: Sequence[Clause]) -> set[int]:
    """Return the numbers of the clauses that are indirect questions which the reply cannot answer: "I don't know if it's red"."""
    found: set[int] = set()
    for at, clause in enumerate(clauses):
        asks = clause.text.startswith("whether ") or " whether " in clause.text[:LOOKED_AT]
        unknown = at > 0 and clause.part < SENTENCE and _conditions(clause) and LEXICON.has("unknown", clauses[at - 1].text)
        if asks or unknown or (at - 1 in found and clause.gap.strip() == "and"):
            found.add(at)
    return found


def _weaken(mention: Mention, clause: Clause) -> Mention:
    """Return a mention in a supposition with its weaker stance. A value that a condition denies is likely ("if it isn't red")."""
    likely = mention.how == Stance.DENIED and _conditions(clause) and Stance.DENIED in LEXICON.stances(clause.text[:LOOKED_AT])
    return mention._replace(how=Stance.ASSERTED if likely else max(mention.how, Stance.REPORTED))


def _aside(mention: Mention, clause: Clause, asides: Container[int]) -> Mention:
    """Return a mention in an aside with its weaker stance: "red (though it may be blue by now)", "By the way, the door is blue."."""
    if mention.how == Stance.ASSERTED and clause.sentence in asides:
        return mention._replace(how=Stance.REPORTED)
    conceded = "(" in clause.gap and clause.gap.casefold().endswith(("though", "but", "while"))
    return mention._replace(how=max(mention.how, Stance.DATED)) if conceded else mention


def _answers(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    last = next((mention for mention in reversed(found) if mention.how <= Stance.REPORTED and _states(clauses[mention.clause])), None)
    """Deny the values that the reply asks about and then answers with another value."""
    if last is None:
        return found
    return _without(found, lambda each: each.clause < last.clause and each.value != last.value and clauses[each.clause].asks)


def _states(clause: Clause) -> bool:
    """Return whether a clause states an answer, and does not merely offer another possibility."""
    if clause.asks or clause.gap.strip(" ,").casefold().endswith(("or", "also")):
        return False
    return not any(LEXICON.has(group, clause.text[:LOOKED_AT]) for group in ("added", "unsure"))


def _concedes(clauses: Sequence[Clause], found: Sequence[Mention]) -> list[Mention]:
    """Deny the values that the reply concedes before it turns to another: "you liked red, but you chose blue"."""
    kept = list(found)
    for number, (before, mention) in enumerate(pairwise(found), 1):
        turn = next((at for at in range(mention.clause, before.clause, -1) if _turns(clauses[at])), None)
        clause = clauses[mention.clause]
        conceded = turn is None and _concession(clauses, before.clause, mention.clause)
        if conceded:
            turn = mention.clause
        if turn is None or clauses[turn].sentence != clause.sentence or mention.how > Stance.REPORTED or not _states(clause):
            continue
        since = clause.sentence - (clauses[turn].part > TURN)
        for at in range(number - 1, -1, -1):
            other = kept[at]
            if clauses[other.clause].sentence < since:
                break
            if other.value != mention.value and max(mention.how, Stance.ASSERTED) <= other.how:
                kept[at] = other._replace(how=Stance.DENIED)
    return kept


def _concession(clauses: Sequence[Clause], at: int, to: int) -> bool:
    """Return whether the sentence opens by conceding clause `at` and turns to clause `to`: "though you liked red, it is blue"."""
    first = next(
        (since for since in range(at, max(at - 2, -1), -1) if since == 0 or clauses[since - 1].sentence < clauses[at].sentence), None
    )
    begins = [] if first is None else clauses[first : at + 1]
    return clauses[at].sentence == clauses[to].sentence and any(
        each.gap.strip(" ,;.\n").casefold().endswith(("though", "while", "whereas")) for each in begins
    )


def _turns(clause: Clause) -> bool:
    return clause.gap.strip(" ,;.").casefold().endswith(("but", "yet", "however", "until"))


def _drops(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    """Deny every mention of a value that the reply denies in a later sentence."""
    gone = {mention.value: clauses[mention.clause].sentence for mention in found}
    last = {mention.value: mention.how for mention in found}
    if min(last.values()) > Stance.REPORTED:
        return found
    return _without(found, lambda each: last[each.value] == Stance.DENIED and clauses[each.clause].sentence < gone[each.value])


def _decides(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    """Deny the other values if the reply repeats one of them, alone or with a denial of others, at its end: "red, not blue"."""
    end = clauses[found[-1].clause].sentence
    last = next(
        (mention for mention in reversed(found) if mention.how < Stance.DENIED or clauses[mention.clause].sentence < end), found[-1]
    )
    among = {mention.value for mention in found if mention.run == last.run}
    again = any(mention.value == last.value and mention.run != last.run for mention in found)
    if not again or len(among) > 1 or last.how > Stance.REPORTED or not _states(clauses[last.clause]):
        return found
    surest = min(Stance.ASSERTED, *(mention.how for mention in found if mention.value == last.value))
    return _without(found, lambda mention: mention.value != last.value and mention.how >= surest)


def _refers(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    """Deny the values that the reply does not refer back to with "the latter" or "the former". After "both", all of them stay."""
    best = min(mention.how for mention in found)
    tied = [mention for mention in found if mention.how == best]
    after = [clause.text for clause in clauses[found[-1].clause + 1 : found[-1].clause + 1 + POINTING]]
    course = " ".join(clause.text for clause in clauses[found[0].clause : found[-1].clause + 1])[-LOOKED_AT:]
    if any(LEXICON.has("both", text) for text in (*after, course)):
        return [mention._replace(how=Stance.ASSERTED) if mention.how < Stance.DENIED else mention for mention in found]
    after = [text for text in after if LEXICON.stance(text) != Stance.DENIED and not LEXICON.has("left after", text)]
    if best > Stance.REPORTED or any(LEXICON.has("unknown", text) for text in after):
        return found
    meant = next((tied[at] for group, at in (("latter", -1), ("former", 0)) if any(LEXICON.has(group, text) for text in after)), None)
    return found if meant is None else _without(found, lambda mention: mention.value != meant.value)


def _outdates(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    """Deny all but the latest of dated log entries: "3 May: red", "9 June: blue"."""
    best = min(mention.how for mention in found)
    tied = [mention for mention in found if mention.how == best]
    if best > Stance.REPORTED or len({mention.value for mention in tied}) < 2 or len({mention.run for mention in tied}) < len(tied):
        return found
    named = {mention.clause for mention in found}
    days = [_day(clauses, mention, named) for mention in tied]
    steps = [(after - before) % YEAR for before, after in pairwise(day for day in days if day is not None)]
    if len(steps) < len(tied) - 1:
        return found
    forward = [0 < step < YEAR // 2 for step in steps]
    latest = tied[-1] if all(forward) else tied[0] if not any(forward) and all(steps) else None
    return found if latest is None else _without(found, lambda mention: mention.how == best and mention.value != latest.value)


def _day(clauses: Sequence[Clause], mention: Mention, named: Container[int]) -> int | None:
    """Return the day that a log entry begins with or gives in brackets, or None."""
    own = clauses[mention.clause].text[: mention.start]
    if len(own.split()) <= HEAD and (day := the_day(own)) is not None:
        return day
    for at in range(mention.clause - 1, max(mention.clause - ENTRY, -1), -1):
        after = clauses[at + 1]
        if at in named or "\n" in after.gap or after.part >= SENTENCE:
            break
        if len(clauses[at].text.split()) <= HEAD and (day := the_day(clauses[at].raw)) is not None:
            return day
    behind = clauses[mention.clause + 1 : mention.clause + 2]
    return next((the_day(clause.raw) for clause in behind if "(" in clause.gap and len(clause.text.split()) <= HEAD), None)


def _likeliest(clauses: Sequence[Clause], found: Sequence[Mention]) -> Sequence[Mention]:
    """Deny all but the likeliest of values with percentages: "60% red, 40% blue"."""
    best = min(mention.how for mention in found)
    tied = [mention for mention in found if mention.how == best]
    shares = {at: _PERCENT.search(clauses[at].raw) for at in {mention.clause for mention in tied}}
    likely = [int(share[1]) for mention in tied if (share := shares[mention.clause])]
    if best > Stance.REPORTED or len(likely) < len(tied) or likely.count(max(likely)) > 1:
        return found
    likeliest = tied[likely.index(max(likely))]
    return _without(found, lambda mention: mention.how == best and mention.value != likeliest.value)


_PERCENT: Final = re.compile(r"\b(\d{1,3}) ?(?:%|per ?cent\b)")
HEAD: Final = 6
"""The most words of a clause that gives the date of a log entry."""
YEAR: Final = 12 * 31
"""The number of days in a year of 31-day months, as `the_day` counts."""
ENTRY: Final = 3
"""The number of clauses before a value that are searched for its date."""


def _without(found: Sequence[Mention], denied: Callable[[Mention], bool]) -> list[Mention]:
    return [mention._replace(how=Stance.DENIED) if denied(mention) else mention for mention in found]
