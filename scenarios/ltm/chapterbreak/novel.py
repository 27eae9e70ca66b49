"""Generate novels for the ChapterBreak test: pages of a story, and six openings of its next chapter, one of them true.

A novel states eighteen facts about its people and their town. Each fact has a foil: another value of the same kind, stated equally often
in the same words, but about another person, or about the same person earlier. Each opening mentions three facts, and no two openings
mention the same one. In five of them, one fact has its foil's value. So neither the openings alone nor word counts reveal the true one:
only a reader of the pages can know it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.deck import Deck
from longspan.scenarios.shared.paging import cut_pages, estimate_tokens
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import NUMBERS

__all__ = ["VOCABULARY", "Claim", "Fact", "Novel", "Opening", "write_novel"]

OPENINGS: Final = 6
CLAIMS: Final = 3
"""Number of facts that each opening mentions."""
SCENE_TOKENS: Final = 400
"""Approximate length of a scene."""
SENTENCE_TOKENS: Final = 19
"""Approximate length of a sentence that states no fact."""
SCENES_PER_CHAPTER: Final = 3

MOVABLE: Final = frozenset({"injury", "keepsake", "lodging", "promise", "hiding", "hat", "destination", "date"})
"""Kinds of facts that can change, so that the foil is the earlier value."""
PERSONAL: Final = frozenset({"departed", "buried", "blame"})
"""Kinds of facts whose value is a person without any other role."""


@final
@dataclass(frozen=True, slots=True)
class Person:
    name: str
    surname: str
    woman: bool

    def pronouns(self, prefix: str = "") -> dict[str, str]:
        forms = ("she", "her", "her", "herself") if self.woman else ("he", "his", "him", "himself")
        return {f"{prefix}{word}": form for word, form in zip(("she", "her", "him", "herself"), forms, strict=True)}


@final
@dataclass(frozen=True, slots=True)
class Fact:
    """Something the pages state: `kind` of `who` is `value`.

    The foil is stated about `other`, or about `who` before a change (`other` is None). `things`: additional slots of the sentences, for
    `who` and for `other`.
    """

    kind: str
    who: Person | str
    value: Person | str
    foil: Person | str
    other: Person | str | None
    things: tuple[str, str] = ("", "")


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """An opening's claim about a fact, and the pages' version, as sentences. `true` if they agree."""

    says: str
    told: str
    true: bool


@final
@dataclass(frozen=True, slots=True)
class Opening:
    text: str
    claims: tuple[Claim, ...]

    @property
    def true(self) -> bool:
        return all(claim.true for claim in self.claims)


@final
@dataclass(frozen=True, slots=True)
class Novel:
    """A story in pages, the openings of its next chapter, and the facts that both mention."""

    pages: tuple[str, ...]
    openings: tuple[Opening, ...]
    facts: tuple[Fact, ...]


class Beat(NamedTuple):
    """A sentence that the story must contain: its macro and slots. `fact`: the fact whose value it states."""

    macro: str
    slots: Mapping[str, str]
    who: Person | None
    fact: Fact | None = None


def write_novel(random: Random, tokens: int) -> Novel:
    """Generate a novel of about `tokens` tokens, in pages of 600 to 900 tokens, with openings of its next chapter."""
    cast = _cast(random)
    setting = random.choice(load_words("novel")["settings"])
    facts = _facts(random, setting, cast)
    prose = _Prose(random, setting, cast.company)
    pages = cut_pages("\n\n".join(_Story(random, prose, _beats(random, facts)).chapters(tokens)), 750)
    return Novel(tuple(pages), _openings(random, prose, facts), tuple(facts))


# People and facts. -------------------------------------------------------------------------------------------------


class _Cast(NamedTuple):
    company: Sequence[Person]
    others: Sequence[Person]


def _cast(random: Random) -> _Cast:
    """Draw twelve people who appear throughout, and six who are only reported to have left, died or done wrong."""
    lists = load_words("novel")
    surnames = Deck(random, lists["surnames"])
    women = [Person(name, surnames.deal(), True) for name in random.sample(lists["women"], 9)]
    men = [Person(name, surnames.deal(), False) for name in random.sample(lists["men"], 9)]
    return _Cast(company=women[:6] + men[:6], others=random.sample(women[6:] + men[6:], 6))


def _facts(random: Random, setting: Mapping[str, Any], cast: _Cast) -> list[Fact]:
    lists = load_words("novel")
    company = Deck(random, cast.company)
    others = iter(cast.others)
    facts = []
    for kind in random.sample([*lists["kinds"], *sorted(PERSONAL)], OPENINGS * CLAIMS):
        things = ("", "")
        if kind in PERSONAL:
            carrier = setting["carrier"] if kind == "departed" else ""
            facts.append(Fact(kind, carrier, next(others), next(others), None))
            continue
        value, foil = random.sample(lists["kinds"][kind], 2)
        who: Person | str
        other: Person | str
        if kind in ("loss", "date"):
            who, other = random.sample(lists["disasters" if kind == "loss" else "occasions"], 2)
        else:
            who, other = company.deal(), company.deal()
        if kind == "hiding":
            first, second = random.sample(lists["hidden"], 2)
            things = (first, second)
        moves = kind in MOVABLE and random.random() < 0.5
        facts.append(Fact(kind, who, value, foil, None if moves else other, things))
    return facts


def _slots(who: Person | str, value: Person | str, thing: str = "") -> dict[str, str]:
    """Return the values that fill a sentence about a fact. The pronouns agree with the person it is about."""
    person = value if isinstance(value, Person) else who
    text = value.name if isinstance(value, Person) else value
    return {
        "who": who.name if isinstance(who, Person) else who,
        "value": text,
        "a_value": f"a {text}",
        "thing": thing,
        **(person.pronouns() if isinstance(person, Person) else {}),
    }


def _beats(random: Random, facts: Sequence[Fact]) -> list[Beat]:
    """Return the sentences that state the facts and foils, ordered so that each change follows the statement that it changes."""
    timed: list[tuple[float, int, Beat]] = []
    for chain in (chain for fact in facts for chain in _chains(random, fact)):
        times = sorted(random.random() for _ in chain)
        timed += [(time, len(timed) + number, beat) for number, (time, beat) in enumerate(zip(times, chain, strict=True))]
    return [beat for _, _, beat in sorted(timed, key=lambda entry: entry[:2])]


def _chains(random: Random, fact: Fact) -> list[list[Beat]]:
    """Return the sequences of sentences that state a fact and its foil, both equally often."""
    right = _slots(fact.who, fact.value, fact.things[0])
    person = fact.who if isinstance(fact.who, Person) else None
    tell, echo = f"{fact.kind}_tell", f"{fact.kind}_echo"
    if fact.kind in PERSONAL:
        return [[Beat(tell, right, None, fact)], [Beat(f"{fact.kind}_foil", _slots(fact.who, fact.foil), None)]]
    if fact.other is None:
        before = _slots(fact.who, fact.foil, fact.things[0])
        change = right | {"old": before["value"]}
        return [[Beat(tell, before, person), Beat(f"{fact.kind}_change", change, person, fact), Beat(echo, right, person)]]
    wrong = _slots(fact.other, fact.foil, fact.things[1])
    other = fact.other if isinstance(fact.other, Person) else None
    chains = [[Beat(tell, right, person, fact)], [Beat(tell, wrong, other)]]
    if random.random() < 0.5:
        chains[0].append(Beat(echo, right, person))
        chains[1].append(Beat(echo, wrong, other))
    return chains


# Sentences. --------------------------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"[^.?!]+[.?!]+\"?\s*")
_SLOT = re.compile(r"<(\w+)>")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio](?!ne-))")
VOCABULARY: Final = ("smell", "sound", "object", "manner", "tone", "task", "subject", "hour", "sky", "mood", "adjective")


@final
class _Prose:
    """Writes sentences without repeating any, and keeps the sentence that stated each fact."""

    def __init__(self, random: Random, setting: Mapping[str, Any], company: Sequence[Person]) -> None:
        lists = load_words("novel")
        self._wording = Wording("novel")
        self._random = random
        self._lines: dict[str, Deck[str]] = {}
        self._vocabulary = {name: Deck[str](random, lists[name]) for name in VOCABULARY}
        self._roles = Deck[str](random, lists["roles"])
        self._said: set[str] = set()
        self.company = company
        self.town: str = setting["town"]
        self.places = Deck[str](random, setting["places"])
        self.told: dict[str, str] = {}
        self._fillers = Deck(random, [macro for macro in _FILLERS for _ in self._wording.all(macro)])

    def fill(self, slots: Mapping[str, str]) -> str:
        """Return a sentence that states no fact."""
        return self.say(self._fillers.deal(), slots)

    def say(self, macro: str, slots: Mapping[str, str]) -> str:
        """Return one of the macro's lines, filled in. If its sentences were used before, draw again."""
        if macro not in self._lines:
            self._lines[macro] = Deck(self._random, self._wording.all(macro))
        # Bounded, because a very long novel may use up all sentences; then one repeats.
        for _ in range(200):
            text = self._fill(self._lines[macro].deal(), slots)
            sentences = {sentence.strip() for sentence in _SENTENCE.findall(text)}
            if not sentences & self._said:
                break
        self._said |= sentences
        return text

    def tell(self, beat: Beat) -> str:
        text = self.say(beat.macro, beat.slots)
        if beat.fact is not None:
            self.told[beat.fact.kind] = text
        return text

    def introduce(self, person: Person) -> str:
        return self.say("introduce", {"full": f"{person.name} {person.surname}", "role": self._roles.deal()})

    def _fill(self, line: str, slots: Mapping[str, str]) -> str:
        def word(match: re.Match[str]) -> str:
            name = match[1]
            if name in slots:
                return slots[name]
            if name == "town":
                return self.town
            return self.places.deal() if name in ("place", "elsewhere") else self._vocabulary[name].deal()

        text = _ARTICLE.sub(r"\1n ", _SLOT.sub(word, line))
        start = 1 if text.startswith('"') else 0
        return text[:start] + text[start].upper() + text[start + 1 :]


# The story. --------------------------------------------------------------------------------------------------------

_FILLERS: Final = ("gesture", "talk", "thought", "gossip", "sense")


@final
@dataclass(slots=True)
class _Story:
    """Distributes the beats over scenes, and fills these with what people say and do."""

    random: Random
    prose: _Prose
    beats: Sequence[Beat]
    met: set[Person] = field(default_factory=set)

    def chapters(self, tokens: int) -> list[str]:
        """Return the paragraphs of the book, about `tokens` tokens in all."""
        scenes = max(6, round(tokens / SCENE_TOKENS))
        paragraphs: list[str] = []
        size = 0
        for number in range(scenes):
            begin, end = (len(self.beats) * at // scenes for at in (number, number + 1))
            scene = self.scene(self.beats[begin:end], tokens * (number + 1) / scenes - size)
            if number % SCENES_PER_CHAPTER == 0:
                scene[0] = f"Chapter {_ordinal(number // SCENES_PER_CHAPTER)}\n{scene[0]}"
            paragraphs += scene
            size += sum(map(estimate_tokens, scene))
        return paragraphs

    def scene(self, beats: Sequence[Beat], tokens: float) -> list[str]:
        """Return the paragraphs of a scene of about `tokens` tokens, with `beats` and two people who talk."""
        slots = self._company(beats)
        says = self.prose.say
        told = [[self.prose.tell(beat)] for beat in beats]
        paragraphs = [[says("scene", slots), says("sense", slots)], [says("arrive", slots)], *told]
        closing = says("close", slots)
        left = tokens - estimate_tokens(closing) - sum(estimate_tokens(sentence) for paragraph in paragraphs for sentence in paragraph)
        for _ in range(round(left / SENTENCE_TOKENS)):
            self._extend(paragraphs, told, slots)
        return [" ".join(paragraph) for paragraph in [*paragraphs, [closing]]]

    def _company(self, beats: Sequence[Beat]) -> dict[str, str]:
        """Return the slots for the scene's place and two people, if possible one whom a fact is about."""
        about_whom = [beat.who for beat in beats if beat.who is not None]
        a = about_whom[0] if about_whom else self.random.choice(self.prose.company)
        b = self.random.choice([person for person in self.prose.company if person != a])
        here, elsewhere = self.prose.places.deal(), self.prose.places.deal()
        return {"a": a.name, "b": b.name, "place": here, "elsewhere": elsewhere, **a.pronouns(), **b.pronouns("b_")}

    def _extend(self, paragraphs: list[list[str]], told: Sequence[list[str]], slots: Mapping[str, str]) -> None:
        """Add a sentence to the shortest paragraph, or to a new one if all are long. It may be a reaction to a fact."""
        shortest = min(paragraphs[1:], key=len)
        if len(shortest) > 3:
            shortest = []
            paragraphs.insert(self.random.randint(2, len(paragraphs)), shortest)
        if shortest in told and len(shortest) == 1 and self.random.random() < 0.4:
            shortest.append(self.prose.say("react", slots))
        else:
            shortest.insert(0 if self.random.random() < 0.4 else len(shortest), self.prose.fill(slots))


def _ordinal(number: int) -> str:
    return [*NUMBERS][number + 1].title() if number < 20 else str(number + 1)


# The openings. -----------------------------------------------------------------------------------------------------


def _openings(random: Random, prose: _Prose, facts: Sequence[Fact]) -> tuple[Opening, ...]:
    """Return six openings. The true one is drawn at random, and so is the false fact in each of the others."""
    right = random.randrange(OPENINGS)
    shuffled = random.sample(facts, len(facts))
    openings = []
    for number in range(OPENINGS):
        chosen = shuffled[number * CLAIMS : (number + 1) * CLAIMS]
        wrong = None if number == right else random.randrange(CLAIMS)
        claims = tuple(_claim(prose, fact, true=at != wrong) for at, fact in enumerate(chosen))
        first, second, third = (claim.says for claim in claims)
        text = [prose.say("dawn", {}), first, prose.say("mid", {}), second, prose.say("mid", {}), third, prose.say("end", {})]
        openings.append(Opening(" ".join(text), claims))
    return tuple(openings)


def _claim(prose: _Prose, fact: Fact, *, true: bool) -> Claim:
    says = prose.say(f"{fact.kind}_open", _slots(fact.who, fact.value if true else fact.foil, fact.things[0]))
    return Claim(says, prose.told[fact.kind], true)
