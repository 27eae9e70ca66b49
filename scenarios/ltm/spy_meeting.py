"""Spy meeting (GoodAI, section 3.2): decode messages that say where and when to come and what to bring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from random import Random
from typing import Any, ClassVar, final

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.similar import Similar, count_similar, with_asides
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.dates import find_dates
from longspan.simulator.reading.replies.layout import drop_markup
from longspan.simulator.reading.replies.lexicon import Stance
from longspan.simulator.reading.replies.reading import Reading
from longspan.simulator.reading.replies.times import find_hours
from longspan.simulator.reading.replies.values import Values
from longspan.simulator.reading.replies.weighing import weigh_mentions

__all__ = ["SpyMeeting"]

KINDS = ("place", "time", "thing")
MAX_VAGUE = 1
"""Number of vague words for wrong meanings that a reply may contain. "Seven in the morning" is not a confusion with dawn."""


@final
class SpyMeeting(Scenario):
    """Announce three people who each send a coded message, and ask the agent what the messages mean.

    An entry of the pool has a `code` and the `names` of its meaning. Words accepted `also` are too vague to prove a confusion of
    messages ("morning" for dawn), unless a reply contains several of them. After the last message, `similar` messages for other spies
    about other meetings are passed on. None has the meaning of a message for the agent.
    """

    name: ClassVar[str] = "spy_meeting"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"spies"})

    similar: Similar = 0
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        pool = load_words("spy_meeting")
        meant = {kind: random.choice(pool[kind]) for kind in KINDS}
        senders = random.sample(pool["senders"], len(KINDS))
        lines = [Line(wording.say(random, "intro", senders=_join_phrases(senders)), needle=False)]
        senders = random.sample(senders, len(senders))  # so that they do not write in the order announced
        for sender, kind in zip(senders, random.sample(KINDS, len(KINDS)), strict=True):
            lines.append(Line(wording.say(random, kind, sender=sender, code=meant[kind]["code"])))
        ideal = "Place: {place}. Time: {time}. Bring: {thing}.".format_map({kind: meant[kind]["names"][0] for kind in KINDS})
        lines.append(Line(wording.say(random, "question"), ideal=ideal, asks=True))
        facts: dict[str, Any] = {
            "accepted": [[*meant[kind]["names"], *meant[kind]["also"]] for kind in KINDS],
            "foreign": [entry["names"] for kind in KINDS for entry in pool[kind] if entry is not meant[kind]],
            "vague": [entry["also"] for kind in KINDS for entry in pool[kind] if entry is not meant[kind]],
        }
        farewell = wording.say(random, "farewell")
        # Drawn last, so that the rest of the test is the same with and without them.
        if self.similar:
            others = [sender for sender in pool["senders"] if sender not in senders]
            facts["similar"], asides = [], []
            for number in range(self.similar):
                kind, sender = KINDS[number % len(KINDS)], random.choice(others)
                entry = random.choice([entry for entry in pool[kind] if entry is not meant[kind]])
                facts["similar"].append([sender, entry["names"][0]])
                asides.append(wording.say(random, "similar", message=wording.say(random, kind, sender=sender, code=entry["code"])))
            lines = with_asides(lines, asides)
        return Script(facts=facts, lines=lines, farewell=farewell)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return count_similar(facts)

    def chance(self, facts: Mapping[str, Any]) -> float:
        return (1 + MAX_VAGUE) / len(load_words("spy_meeting")["time"]) / len(KINDS)

    def guess(self, message: str) -> str | None:
        """Return vague words for times, the kind with the fewest entries: one more than the number without penalty."""
        if Wording(self.name).read("question", message) is None:
            return None
        vague = [entry["also"][0] for entry in load_words("spy_meeting")["time"] if entry["also"]]
        return f"Time: {' or '.join(Random(message).sample(vague, 1 + MAX_VAGUE))}."

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Give a third for each of the `accepted` lists that the reply matches without naming another entry of its kind.

        `accepted` and `foreign` are lists of lists of words and phrases: the accepted meanings of this test's messages, and the meanings
        of other tests' messages. `vague`: words for the latter that are too vague to count until there are more than MAX_VAGUE. A stray
        phrase that is not in the pool costs a third. Phrases must match whole words, singular or plural, as one word or several, and
        dates and hours in any notation. A phrase that is denied ("not a museum") or retracted ("at sunset, no, make that sunrise") does
        not count, nor does a foreign phrase within an accepted one ("moon" in "full moon").
        """
        if self.rules == "paper":
            return paper.spy_meeting(facts, record)
        reply = record.answer.reply
        slips = Reading(reply).slips([phrase for phrases in facts["accepted"] for phrase in phrases])
        text = _without(
            _prepare_text(" ".join(slips.get(word, word) for word in plain(_IS.sub(" is", drop_markup(reply))).split())),
            _find_denied(reply),
        )
        meant = _prepare_reply(record.answer.reply, text)
        accepted = [_synonyms(phrases) for phrases in facts["accepted"]]
        found = [_first(text, phrases) or _first(meant, phrases) for phrases in accepted]
        for phrases in accepted:
            for phrase in _present(text, phrases):
                text = re.sub(f" {phrase}(?= )", " |", text)
        strays = [stray for phrases in facts["foreign"] if (stray := _first(text, phrases))]
        strays += [stray for phrases in facts.get("vague", ()) if (stray := _first(text, phrases))][MAX_VAGUE:]
        told = {phrase: sender for sender, name in facts.get("similar", ()) for phrase in _entry(name) or (name,)}
        whose = [f"{stray} (from {told[stray]}, for another spy)" if stray in told else stray for stray in strays]
        named = [phrase for phrase in found if phrase]
        beside = {kind for stray in strays if (kind := _kind(stray))}
        beside |= {KINDS[-1]} if _brings_another(reply, accepted[-1]) else set()
        settled = [phrase for phrase in named if _kind(phrase) not in beside]
        return Grade(
            score=max(0, len(settled) - sum(not _kind(stray) for stray in strays)) / len(found),
            reason=f"expected {_join_phrases([phrases[0] for phrases in facts['accepted']])}; the reply names "
            f"{_join_phrases(named) or 'none of them'}" + (f"; from other messages: {_join_phrases(whose)}" if strays else ""),
            turns=(record.answer.turn,),
        )


@lru_cache(maxsize=1000)
def _entry(name: str) -> tuple[str, ...]:
    """Return all names of the pool's entry with this first name."""
    pool = load_words("spy_meeting")
    return next(((*entry["names"], *entry["also"]) for kind in KINDS for entry in pool[kind] if entry["names"][0] == name), ())


def _synonyms(phrases: Sequence[str]) -> list[str]:
    """Return accepted phrases together with today's synonyms. A recorded test has only the phrases of its version."""
    return list(dict.fromkeys([*phrases, *_entry(phrases[0])])) if phrases else []


@cache
def _kinds() -> Mapping[str, Values]:
    pool = load_words("spy_meeting")
    return {kind: Values(name for entry in pool[kind] for name in (*entry["names"], *entry["also"])) for kind in KINDS}


@cache
def _kind(phrase: str) -> str:
    """Return the kind of a phrase in the pool: place, time or thing; "" if it is not in the pool."""
    return next((kind for kind, values in _kinds().items() if phrase in values.values), "")


def _find_denied(reply: str) -> list[str]:
    """Return the words of the phrases that a reply denies, or retracts with or without a replacement."""
    said = Reading(reply)
    mentions = [mention for values in _kinds().values() for mention in weigh_mentions(said.clauses, said.mentions(values))]
    return [
        " ".join(said.clauses[mention.clause].text[mention.start : mention.end].split())
        for mention in mentions
        if mention.how == Stance.DENIED
    ]


def _without(text: str, phrases: Iterable[str]) -> str:
    """Return spoken `text` without the given phrases, each removed once, from the beginning."""
    for phrase in phrases:
        text = text.replace(f" {phrase} ", " | ", 1)
    return text


def _brings_another(reply: str, phrases: Sequence[str]) -> bool:
    """Return whether a reply finally corrects itself and brings something that none of the phrases names."""
    brought = _BRINGS.findall(plain(Reading(reply).find_correction()))[-1:]
    return any(not _first(f" {thing} ", phrases) for thing in brought)


_BRINGS = re.compile(r"\b(?:bring|take|pack|bringing)(?: along)? (?:an?|the|your|some) (?P<thing>[a-z]{3,20}(?: [a-z]{3,20}){0,2})\b")
_IS = re.compile(r"(?<=\b(?:tide|moon))['\u2019]s\b", re.IGNORECASE)
_WEEKDAYS = {"mon": "monday", "fri": "friday"}
_WEEKDAY = re.compile(r"\b(mon|fri) ")


def _prepare_reply(reply: str, text: str) -> str:
    """Return a reply's dates and hours in uniform notation, and adjacent words of `text` joined in pairs, ready for looking up phrases."""
    pairs = (f"{one}{other}" for one, other in pairwise(text.split()) if len(one) > 2 < len(other))
    return f" {' | '.join([*find_dates(reply), *find_hours(reply)])} | {' '.join(pairs)} "


def _prepare_text(text: str) -> str:
    """Return `text` ready for looking up phrases: plain, with a space at both ends, "8 p.m." as "8pm" and "24th" as "24"."""
    text = re.sub(r"\b(\d\d?) ?([ap]) ?m\b", r"\1 \2m", plain(text))
    text = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text)
    text = _WEEKDAY.sub(lambda match: f"{_WEEKDAYS[match[1]]} ", text)
    return f" {text} "


def _present(text: str, phrases: Iterable[str]) -> list[str]:
    """Return the forms of `phrases` that occur in spoken `text`, longest first."""
    forms = {form for phrase in phrases for form in _forms(phrase)}
    return sorted((form for form in forms if f" {form} " in text), key=lambda form: (-len(form), form))


def _first(text: str, phrases: Iterable[str]) -> str | None:
    """Return the first of `phrases` that occurs in spoken `text`."""
    return next((phrase for phrase in phrases if any(f" {form} " in text for form in _forms(phrase))), None)


@lru_cache(1024)  # every reply is searched for the same few phrases
def _forms(phrase: str) -> frozenset[str]:
    """Return the forms of a phrase, with its last word in singular and plural."""
    form = _prepare_text(phrase).strip()
    forms = {form, f"{form}s"}
    if form.endswith(("s", "sh", "ch", "x", "z")):
        forms.add(f"{form}es")
    if re.search(r"[^aeiou]y$", form):
        forms.add(f"{form[:-1]}ies")
    if re.search(r"[^s]s$", form) and len(form) > 3:
        forms.add(form[:-1])
    return frozenset(forms)


def _join_phrases(phrases: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(phrases[:-1]), *phrases[-1:]]))
