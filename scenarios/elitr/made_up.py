"""Generate meetings: transcripts in the style of the ELITR corpus, and questions with known answers.

In each third of a meeting, people talk about two things and state the same kinds of facts about both: who takes care of it, what its
problem is, when it is due, how many of something there are. So an answer is never the only name, date or number nearby. All other
remarks state no such facts. Facts that need several passages are spread over different thirds: the terms of a sum, a date that is moved,
the items of a list, and the participants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.elitr.corpus import Meeting, MeetingQuestion, Rule, count_tokens
from longspan.scenarios.elitr.files import Place, QuestionType
from longspan.scenarios.elitr.speech import add_hesitations
from longspan.scenarios.shared.deck import Deck
from longspan.scenarios.shared.word_lists import load_words

__all__ = ["MAX_TOKENS", "MIN_TOKENS", "write_meeting"]

MIN_TOKENS: Final = 5_000
MAX_TOKENS: Final = 18_000
"""Bounds for the length of a meeting, similar to the published ones (Table 1)."""

ROOM: Final = 60
"""A meeting may be this many tokens shorter than requested, so that it is never longer."""

FOLLOW_UPS: Final = 0.4
"""Share of questions that refer back to the previous one in the conv setting, out of those that could."""
DOUBTED: Final = 0.35
"""Share of facts that are first mistaken for something else."""
LONG_REMARKS: Final = 0.2
"""Share of remarks that continue on another line."""

_THIRDS: Final[Sequence[Place]] = ("B", "M", "E")
_KINDS: Final[Mapping[QuestionType, Sequence[str]]] = {
    "who": ("owner", "host"),
    "what": ("problem", "decision"),
    "when": ("deadline", "call"),
    "howmany": ("count",),
}
_DOUBTFUL: Final = frozenset({"owner", "host", "deadline", "count"})
_MONTHS: Final = "January February March April May June July August September October November December".split()
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday".split()


@final
class _Fact(NamedTuple):
    """A fact about a thing: `value` as stated, `false` as first mistaken."""

    kind: str
    thing: str
    value: str
    unit: str = ""
    false: str | None = None


@final
class _Cast:
    """The speakers, the people and things that they mention, and values that no two facts share."""

    def __init__(self, random: Random) -> None:
        known = load_words("meetings")
        people = [f"PERSON{number}" for number in random.sample(range(1, 25), 12)]
        self.speakers = people[: random.randint(4, 8)]
        self.people = people
        orgs = [f"ORGANIZATION{number}" for number in random.sample(range(1, 25), 14)]
        self.projects = [f"PROJECT{number}" for number in random.sample(range(1, 9), 3)]
        self.things = random.sample(known["subjects"], 6)
        self.sites = orgs[:2]
        self.orgs = orgs[2:]
        self._decks = {
            "owner": random.sample([f"[{person}]" for person in people], 12),
            "host": random.sample([f"[{org}]" for org in self.orgs], 12),
            "problem": [problem["text"] for problem in random.sample(known["problems"], 8)],
            "decision": [decision["text"] for decision in random.sample(known["decisions"], 8)],
            "deadline": [f"{day} {random.choice(_MONTHS)}" for day in random.sample(range(13, 29), 14)],
            "call": [f"{day} {random.choice(['morning', 'afternoon'])}" for day in random.sample(_DAYS, 5) * 2],
            "count": [str(number) for number in random.sample(range(13, 90), 20)],
        }
        self._dealt = dict.fromkeys(self._decks, 0)

    def deal(self, kind: str) -> str:
        """Return an unused value of a kind."""
        self._dealt[kind] += 1
        return str(self._decks[kind][self._dealt[kind] - 1])

    def dealt(self, kind: str) -> list[str]:
        """Return the values of a kind that have been dealt."""
        return self._decks[kind][: self._dealt[kind]]


@final
class _Passage(NamedTuple):
    """Consecutive utterances, and the key of the question that needs them."""

    key: str
    utterances: Sequence[str]


def write_meeting(random: Random, name: str, tokens: int | None = None) -> Meeting:
    """Generate a meeting of at most `tokens` tokens of cl100k_base, and nearly that many (None: drawn between 5k and 18k).

    `name` begins its id.
    """
    size = random.randint(MIN_TOKENS + 2 * ROOM, MAX_TOKENS) if tokens is None else tokens
    known = load_words("meetings")
    cast = _Cast(random)
    facts = [_facts(random, cast, cast.things[2 * third : 2 * third + 2]) for third in range(3)]
    asked = [_choose(random, group) for group in facts]
    across, several = _across(random, cast)
    thirds: list[list[_Passage]] = [[_passage(random, fact) for fact in group] + across[third] for third, group in enumerate(facts)]
    lines, evidence = _Transcript(random, cast, known).write(thirds, size)
    within = [question for place, group in zip(_THIRDS, asked, strict=True) for question in _questions(random, cast, place, group)]
    numbered = [
        question._replace(id=str(number), evidence=tuple(evidence.get(question.id, ())))
        for number, question in enumerate([*_first(cast, known), *within, *several], 1)
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
    return Meeting(f"{name}_{digest}", lines, numbered)


# ---- facts


def _facts(random: Random, cast: _Cast, things: Sequence[str]) -> list[_Fact]:
    """Draw facts of the same kinds about both things."""
    facts = []
    unit = random.choice(load_words("meetings")["units"])
    for type, kinds in _KINDS.items():
        kind = random.choice(kinds)
        for thing in things:
            value = cast.deal(kind)
            doubted = kind in _DOUBTFUL and random.random() < DOUBTED
            facts.append(_Fact(kind, thing, value, unit if type == "howmany" else "", cast.deal(kind) if doubted else None))
    return facts


def _choose(random: Random, facts: Sequence[_Fact]) -> list[_Fact]:
    """Choose one fact of each kind to ask for, with facts about the same thing next to each other."""
    pairs = [facts[at : at + 2] for at in range(0, len(facts), 2)]
    chosen = [random.choice(pair) for pair in random.sample(pairs, len(pairs))]
    return sorted(chosen, key=lambda fact: fact.thing)


def _passage(random: Random, fact: _Fact) -> _Passage:
    known = load_words("meetings")
    utterances = random.choice(known["kinds"][fact.kind]["tell"])
    if fact.false is not None:
        utterances = [*utterances, *random.choice(known["doubt"])]
    said = [
        _fill_sentence(text, x=fact.thing, v=_protect_value(fact.value), f=_protect_value(fact.false or ""), unit=fact.unit)
        for text in utterances
    ]
    return _Passage(f"{fact.kind} {fact.thing}", said)


def _protect_value(value: str) -> str:
    """Return a value with no-break spaces, so that no hesitation is inserted into it."""
    return value.replace(" ", "\u00a0")


def _fill_sentence(sentence: str, **values: str) -> str:
    text = sentence.format(**values)
    return text[:1].upper() + text[1:]


# ---- questions


def _first(cast: _Cast, known: Mapping[str, Any]) -> list[MeetingQuestion]:
    """Return the question about the participants, which needs the whole meeting."""
    names = sorted(cast.speakers, key=lambda name: int(name.removeprefix("PERSON")))
    rule = Rule("names", names, {name: [name] for name in cast.people})
    answer = ", ".join(f"[{name}]" for name in names[:-1]) + f" and [{names[-1]}]"
    return [MeetingQuestion("took part", "who", "S", known["took_part"], known["took_part"], answer, rule)]


def _questions(random: Random, cast: _Cast, place: Place, facts: Sequence[_Fact]) -> Iterator[MeetingQuestion]:
    """Yield the questions about a third of the meeting. In conv, one may refer back to the previous one about the same thing."""
    before = ""
    for fact in facts:
        kind = load_words("meetings")["kinds"][fact.kind]
        qa = _fill_sentence(random.choice(kind["asks"]), x=fact.thing, unit=fact.unit)
        follows = _fill_sentence(random.choice(kind["follows"]), unit=fact.unit)
        conv = follows if fact.thing == before and random.random() < FOLLOW_UPS else qa
        answer = _fill_sentence(kind["answer"], v=fact.value, unit=fact.unit) + "."
        yield MeetingQuestion(f"{fact.kind} {fact.thing}", kind["type"], place, qa, conv, answer, _rule(cast, fact))
        before = fact.thing


def _rule(cast: _Cast, fact: _Fact) -> Rule:
    match fact.kind:
        case "owner" | "host":
            pool = cast.people if fact.kind == "owner" else [*cast.sites, *cast.orgs]
            return Rule("names", [fact.value.strip("[]")], {name: [name] for name in pool})
        case "deadline":
            return _dates(cast, fact.value)
        case "call":
            return Rule("names", [fact.value.split()[0]], {day: [day, f"{day}s", day[:3]] for day in _DAYS})
        case "count":
            return Rule("numbers", [fact.value], {})
        case kind:
            known = {entry["text"]: entry["keys"] for entry in load_words("meetings")[f"{kind}s"]}
            return Rule("phrases", [fact.value], {text: known[text] for text in cast.dealt(kind)})


def _dates(cast: _Cast, expected: str, besides: Sequence[str] = ()) -> Rule:
    return Rule("names", [expected], {date: _ways(date) for date in cast.dealt("deadline")}, besides)


def _ways(date: str) -> list[str]:
    """Return the ways to write a date. Days are above 12, so that none of these can mean another date."""
    day, month = date.split()
    number = _MONTHS.index(month) + 1
    pairs = [(form, name) for name in (month, month[:3]) for form in (day, f"{day}{_ordinal(day)}")]
    named = [way for form, name in pairs for way in (f"{form} {name}", f"{form} of {name}", f"{name} {form}", f"{name} the {form}")]
    digits = [f"{day} {number}", f"{day} {number:02}", f"{number} {day}", f"{number:02} {day}"]
    return list(dict.fromkeys([*named, *digits]))


def _ordinal(day: str) -> str:
    return {"21": "st", "22": "nd", "23": "rd"}.get(day, "th")


def _across(random: Random, cast: _Cast) -> tuple[list[list[_Passage]], list[MeetingQuestion]]:
    """Return passages for each third with related facts, and the questions that need several of them."""
    known = load_words("meetings")
    thirds: list[list[_Passage]] = [[], [], []]

    unit = random.choice(known["sites"])
    terms = [cast.deal("count"), cast.deal("count")]
    for org, term, third in zip(cast.sites, terms, random.sample(range(3), 2), strict=True):
        sentence = random.choice(known["total"]["tell"])
        thirds[third].append(_Passage("total", [_fill_sentence(sentence, org=f"[{org}]", v=_protect_value(term), unit=unit)]))
    total = str(sum(map(int, terms)))
    first, second = (f"[{org}]" for org in cast.sites)
    asks = known["total"]["ask"].format(unit=unit, first=first, second=second)
    sum_of = Rule("numbers", [total], {}, terms)
    questions = [MeetingQuestion("total", "howmany", "S", asks, asks, known["total"]["answer"].format(v=total, unit=unit) + ".", sum_of)]

    old, new = cast.deal("deadline"), cast.deal("deadline")
    early, late = sorted(random.sample(range(3), 2))
    thirds[early].append(_Passage("review", [_fill_sentence(random.choice(known["review"]["plan"]), v=_protect_value(old))]))
    thirds[late].append(
        _Passage("review", [_fill_sentence(random.choice(known["review"]["move"]), v=_protect_value(new), old=_protect_value(old))])
    )
    asks = known["review"]["ask"]
    questions.append(MeetingQuestion("review", "when", "S", asks, asks, f"{new}.", _dates(cast, new)))

    items = random.sample(known["items"], 3)
    for third, item in enumerate(items):
        thirds[third].append(_Passage("agenda", [_fill_sentence(random.choice(known["agenda"]["tell"]), v=_protect_value(item["text"]))]))
    asks = known["agenda"]["ask"]
    names = [item["text"] for item in items]
    rule = Rule("phrases", names, {item["text"]: item["keys"] for item in known["items"]})
    answer = f"{names[0]}, {names[1]} and {names[2]}."
    questions.append(MeetingQuestion("agenda", "what", "S", asks, asks, answer[:1].upper() + answer[1:], rule))
    return thirds, questions


# ---- the transcript


@final
class _Transcript:
    """Writes passages among remarks that state no facts, as spoken language."""

    def __init__(self, random: Random, cast: _Cast, known: Mapping[str, Any]) -> None:
        self._random = random
        self._cast = cast
        self._known = known
        self._remarks: Deck[str] = Deck(random, known["chat"])
        self._lines: list[str] = []
        self._tokens = 0
        self._last = ""

    def write(self, thirds: Sequence[Sequence[_Passage]], size: int) -> tuple[list[str], dict[str, list[int]]]:
        """Return the lines, and the line numbers of each passage. Each third has a third of the tokens, give or take a remark."""
        evidence: dict[str, list[int]] = {}
        self._everybody(self._known["greetings"])
        self._say(self._random.choice(self._known["opening"]))
        end = 25 * len(self._cast.speakers)
        for third, passages in enumerate(thirds):
            target = (size - ROOM - end) * (third + 1) // 3
            order = self._random.sample(list(passages), len(passages))
            waiting = sum(count_tokens(text) + 12 for passage in order for text in passage.utterances) * 1.25
            room = max(1.0, target - self._tokens - waiting)
            begin, spent = self._tokens, 0
            starts = sorted(self._random.uniform(0.04, 0.96) * room for _ in order)
            for start, passage in zip(starts, order, strict=True):
                while self._tokens - begin - spent < start and self._tokens < target - waiting:
                    self._remark()
                before, at = self._tokens, len(self._lines)
                for text in passage.utterances:
                    self._say(text)
                evidence.setdefault(passage.key, []).extend(range(at, len(self._lines)))
                spent += self._tokens - before
                waiting -= sum(count_tokens(text) + 12 for text in passage.utterances) * 1.25
            while self._tokens < target - 40:
                self._remark()
        self._say(self._random.choice(self._known["closing"]))
        self._everybody(self._known["partings"])
        return self._lines, evidence

    def _everybody(self, sentences: Sequence[str]) -> None:
        for speaker in self._random.sample(self._cast.speakers, len(self._cast.speakers)):
            self._add(f"({speaker}) {self._random.choice(sentences)}")
            self._last = speaker

    def _remark(self) -> None:
        if self._random.random() < 0.3:
            self._say(self._random.choice(self._known["short"]))
            return
        self._say(self._sentence())
        while self._random.random() < LONG_REMARKS:
            self._add(add_hesitations(self._random, self._sentence()))

    def _sentence(self) -> str:
        topic, other = self._random.sample(self._known["topics"], 2)
        values = {"topic": topic, "topic2": other, "person": self._random.choice(self._cast.speakers)}
        values |= {"org": self._random.choice(self._cast.orgs), "project": self._random.choice(self._cast.projects)}
        return _fill_sentence(self._remarks.deal(), **values)

    def _say(self, text: str) -> None:
        speaker = self._random.choice([person for person in self._cast.speakers if person != self._last])
        self._last = speaker
        self._add(f"({speaker}) {add_hesitations(self._random, text)}")

    def _add(self, line: str) -> None:
        line = line.replace("\u00a0", " ")
        self._lines.append(line)
        self._tokens += count_tokens(line + "\n")
