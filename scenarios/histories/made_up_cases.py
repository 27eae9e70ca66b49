"""Contents of generated histories: cases, each a question with its evidence and a distractor.

The kinds of questions are LongMemEval's. Every fact about one person is also stated about another, and names, towns, dates and numbers
are used once in a history, so that no answer is the only one of its kind or can be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, Literal, NamedTuple, final

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.filler.draws import Draws

__all__ = ["CASES", "KINDS", "MAX_EACH", "UNKNOWN", "Case", "CaseExchange", "Deal", "format_day"]

MAX_EACH: Final = 4
"""Maximum number of questions of a kind. There are only this many fields of preferences."""
UNKNOWN: Final = "You have not told me that."
"""Gold answer to a question about something never stated."""

_RELATIONS: Final = "cousin friend neighbour colleague flatmate lodger dentist tutor trainer cellist".split()
_TOWN_BEGINNINGS: Final = "Ash Bram Cald Dun Elm Fal Gar Hazel Inver Kirk Lang Mal Nor Oak Pen Quar Rav Stan Thorn Wex".split()
_TOWN_ENDINGS: Final = "bourne combe dale fold ham hurst leigh mere minster stead thwaite wick".split()
_INN_ADJECTIVES: Final = "Copper Crooked Drowsy Gilded Hollow Idle Jolly Laughing Merry Painted Rusty Silent Velvet Wandering".split()
_INN_NOUNS: Final = "Anchor Badger Candle Falcon Heron Kettle Lantern Mallet Otter Pelican Quill Thimble Walnut Wagon".split()
_PETS: Final = (
    "Acorn Biscuit Bramble Button Cinder Clover Crumpet Dumpling Fennel Fidget Gizmo Gravy Hopscotch Jumble Kipper Licorice Marble"
    " Mittens Muffin Nettle Noodle Nugget Nutmeg Paprika Pebble Pickle Popcorn Pretzel Pumpkin Ripple Scooter Snippet Sprocket Tadpole"
    " Taffy Toffee Truffle Tumble Waffle Whisker Wigwam Zigzag"
).split()
_JARS: Final = ("plum jam", "quince jelly", "pickled beetroot", "apple butter", "lemon curd", "pear chutney", "fig mustard", "rhubarb jam")
_DISHES: Final = ("flat bread", "seed cake", "walnut loaf", "honey bun", "corn pancake", "oat biscuit", "ginger cake", "poppy roll")
_DEEDS: Final = (
    "planted a pear tree", "repaired a canoe", "watched the eclipse", "climbed the old quarry", "painted a fence", "visited the salt mine",
    "baked a wedding cake", "sorted the attic", "built a beehive", "took a glass-blowing lesson", "rode a tandem", "won a chess match",
    "rehearsed a duet", "launched a kite", "cleared the ditch", "went to an auction", "picked sloes", "slept in a lighthouse",
)  # fmt: skip
_FIELDS: Final[Mapping[str, tuple[str, str, Sequence[str]]]] = {
    "dish": (
        "which of these dishes would suit me best",
        "A dish with {} and {}",
        "aubergine anchovies cabbage capers celery chickpeas fennel ginger lentils mushrooms olives parsnips raisins spinach".split(),
    ),
    "outing": (
        "which of these outings would suit me best",
        "A day with {} and {}",
        "archery bowling canoeing caving climbing fishing gliding karaoke orienteering pottery riding rowing sailing skating".split(),
    ),
    "novel": (
        "which of these novels would suit me best",
        "A novel about {} and {}",
        "alchemists beekeepers clockmakers divers forgers glaciers islands monks orphans pirates railways robots spies volcanoes".split(),
    ),
    "room": (
        "which of these hotel rooms would suit me best",
        "A room with {} and {}",
        (
            "a balcony, a bathtub, a bunk bed, a carpet, a desk, a fireplace, a fridge, a hammock, a kettle, a piano, a sauna, a skylight,"
            " a terrace, a waterbed"
        ).split(", "),
    ),
}
"""Fields of preferences: the question, the form of an option, and possible preferences."""
_OPTIONS: Final = 8
_PREFERENCES: Final = (
    "By the way, I would give a lot for {yes}, but please spare me {no}.",
    "If you ever plan something for me, think of {yes}, and leave out {no}.",
    "You can always win me over with {yes}, and chase me away with {no}.",
)
_THANKS: Final = (
    "Thank you for telling me.", "That is good to know.", "How lovely, I am glad to hear it.", "I see. Is there anything I can do?",
    "What news! How do you feel about it?", "That sounds like a full day.", "Understood.", "I can imagine. Do keep me posted.",
    "Thanks, that helps me to follow along.", "Sounds good. Let me know how it goes.", "Ah, I wondered about that.",
    "Noted, and all the best!",
)  # fmt: skip


class _Attribute(NamedTuple):
    """A kind of fact about a person: sentences that state, change and correct it, the question, and its list of values."""

    told: str
    later: tuple[str, str]
    asked: str
    values: str


_ATTRIBUTES: Final = (
    _Attribute(
        "{who} is going to move to {value}; the boxes are half packed.",
        ("The flat fell through, so {who} is going to move to {value}.", "I mixed up where {who} is going to move: the town is {value}."),
        "Which town is {who} going to move to?",
        "town",
    ),
    _Attribute(
        "{who} has a puppy now and calls it {value}.",
        (
            "The puppy of {who} did not listen to its name, and goes by {value} from now on.",
            "I had the name of the puppy wrong that belongs to {who}: it is {value}.",
        ),
        "What is the puppy of {who} called?",
        "pet",
    ),
    _Attribute(
        "{who} has booked a table at the {value} for the family dinner.",
        (
            "Change of plan: {who} has booked the family dinner at the {value}.",
            "I misread the invitation: {who} invites us to the {value} for the family dinner.",
        ),
        "At which inn has {who} booked the family dinner?",
        "inn",
    ),
    _Attribute(
        "{who} is getting married on {value}, and I am invited.",
        ("{who} had to put off the wedding, which is on {value} now.", "I wrote down the wedding of {who} wrongly: it is on {value}."),
        "On which date is {who} getting married?",
        "day",
    ),
    _Attribute(
        "{who} showed me the collection of old postcards, {value} of them.",
        (
            "{who} has counted the old postcards after the flea market: there are {value}.",
            "I gave you a wrong number for the old postcards of {who}: there are {value}.",
        ),
        "How many old postcards does {who} have?",
        "number",
    ),
)


@final
class CaseExchange(NamedTuple):
    """An exchange in the session with that index, and which of its turns answers the question, if any."""

    session: int
    user: str
    assistant: str
    evidence: Literal["user", "assistant", ""] = ""


@final
class Case(NamedTuple):
    """A question, its answer, and the exchanges that belong to it. `trap`: a wrong answer that is easily mistaken for the right one."""

    kind: str
    text: str
    answer: str
    trap: str
    told: Sequence[CaseExchange]
    options: tuple[str, ...] = ()
    answerable: bool = True


def format_day(value: date) -> str:
    """Return a date in words: 4 May 2025."""
    return f"{value.day} {value:%B %Y}"


@final
class Deal:
    """Deals names, numbers and places in a history whose sessions begin at `starts`. Questions are asked at `asked`."""

    def __init__(self, draw: Draws, starts: Sequence[datetime], asked: datetime) -> None:
        self._draw = draw
        self._lists: Mapping[str, Callable[[], Sequence[str]]] = {
            "town": lambda: [f"{begin}{end}" for begin in _TOWN_BEGINNINGS for end in _TOWN_ENDINGS],
            "inn": lambda: [f"{adjective} {noun}" for adjective in _INN_ADJECTIVES for noun in _INN_NOUNS],
            "pet": lambda: _PETS,
            "day": lambda: [format_day(asked.date() + timedelta(days=ahead)) for ahead in range(30, 500)],
            "number": lambda: [str(number) for number in range(110, 990)],
            "few": lambda: [str(number) for number in range(11, 60)],
            "name": lambda: list(load_words("names")),
            "jar": lambda: _JARS,
            "dish": lambda: _DISHES,
            "deed": lambda: _DEEDS,
            "thanks": lambda: _THANKS,
            "field": lambda: list(_FIELDS),
        }
        self.random = draw.random
        self.starts = starts
        self.asked = asked

    def of(self, what: str) -> str:
        """Deal an item of a list. None repeats before all have been dealt."""
        return self._draw.of(what, self._lists[what])

    def person(self) -> str:
        return f"my {self.random.choice(_RELATIONS)} {self.of('name')}"

    def sessions(self, number: int) -> list[int]:
        """Return the indices of `number` different sessions, in order, without the newest."""
        return sorted(self.random.sample(range(len(self.starts) - 1), number))

    def noise(self) -> int:
        """Return the index of a session for a distractor: in half of the cases the newest."""
        return len(self.starts) - 1 if self.random.random() < 0.5 else self.random.randrange(len(self.starts))

    def say(self, session: int, form: str, evidence: Literal["user", ""] = "", **slots: str) -> CaseExchange:
        return CaseExchange(session, _capital(form.format_map(slots)), self.of("thanks"), evidence)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _by_user(deal: Deal) -> Case:
    attribute = deal.random.choice(_ATTRIBUTES)
    who, other = deal.person(), deal.person()
    value, trap = deal.of(attribute.values), deal.of(attribute.values)
    told = [
        deal.say(deal.sessions(1)[0], attribute.told, "user", who=who, value=value),
        deal.say(deal.noise(), attribute.told, who=other, value=trap),
    ]
    return Case("single-session-user", attribute.asked.format(who=who), value, trap, told)


def _by_assistant(deal: Deal) -> Case:
    form = deal.random.choice((_inn, _boat, _grams))
    (session,) = deal.sessions(1)
    (text, value, right), (_, trap, wrong) = form(deal, session, "assistant"), form(deal, deal.noise(), "")
    return Case("single-session-assistant", text, value, trap, [right, wrong])


def _inn(deal: Deal, session: int, evidence: Literal["assistant", ""]) -> tuple[str, str, CaseExchange]:
    town, inn = deal.of("town"), deal.of("inn")
    told = CaseExchange(session, f"Where could one eat well in {town}?", f"In {town}, people speak highly of the {inn}.", evidence)
    return f"Which inn in {town} did you recommend to me?", inn, told


def _boat(deal: Deal, session: int, evidence: Literal["assistant", ""]) -> tuple[str, str, CaseExchange]:
    who, pet = deal.person(), deal.of("pet")
    told = CaseExchange(session, f"{_capital(who)} has bought a rowing boat. What could it be called?", f"How about {pet}?", evidence)
    return f"Which name did you propose for the rowing boat of {who}?", pet, told


def _grams(deal: Deal, session: int, evidence: Literal["assistant", ""]) -> tuple[str, str, CaseExchange]:
    dish, grams = deal.of("dish"), deal.of("number")
    told = CaseExchange(session, f"How much flour do I need for a {dish}?", f"Take {grams} grams of flour for a {dish}.", evidence)
    return f"How many grams of flour did you tell me to take for a {dish}?", f"{grams} grams", told


def _preference(deal: Deal) -> Case:
    asked, form, things = _FIELDS[deal.of("field")]
    yes, no, others, *rest = deal.random.sample(things, len(things))
    pairs = [
        (yes, rest[0]),
        (yes, no),
        (no, rest[1]),
        (others, rest[2]),
        (others, no),
        (rest[3], rest[4]),
        (rest[5], rest[6]),
        (rest[7], no),
    ]
    texts = [form.format(*deal.random.sample(pair, 2)) for pair in pairs]
    shuffled = deal.random.sample(texts, _OPTIONS)
    options = tuple(f"({letter}) {text}" for letter, text in zip("abcdefgh", shuffled, strict=True))
    told = [
        deal.say(deal.sessions(1)[0], deal.random.choice(_PREFERENCES), "user", yes=yes, no=no),
        deal.say(deal.noise(), "{who} is different from me, and would give a lot for {others}.", who=deal.person(), others=others),
    ]
    answer, trap = (options[shuffled.index(text)] for text in (texts[0], texts[3]))
    return Case("single-session-preference", f"From what you know of me, {asked}?", answer, trap, told, options)


def _several(deal: Deal) -> Case:
    return deal.random.choice((_jars, _miles, _puppy))(deal)


def _sum(deal: Deal, told: str, asked: str, unit: str, **slots: str) -> Case:
    terms = [deal.of("few") for _ in range(3)]
    parts = [deal.say(session, told, "user", count=count, **slots) for session, count in zip(deal.sessions(3), terms, strict=True)]
    noise = deal.say(deal.noise(), told, "", count=deal.of("few"), **slots | {"who": deal.person()})
    return Case("multi-session", asked.format(**slots), f"{sum(map(int, terms))} {unit}", f"{terms[-1]} {unit}", [*parts, noise])


def _jars(deal: Deal) -> Case:
    told = "I have filled {count} more jars of {jar} for the stall of {who}."
    return _sum(
        deal, told, "How many jars of {jar} have I filled for the stall of {who} altogether?", "jars", jar=deal.of("jar"), who=deal.person()
    )


def _miles(deal: Deal) -> Case:
    told = "Today I cycled {count} kilometres with {who}."
    return _sum(deal, told, "How many kilometres have I cycled with {who} altogether?", "kilometres", who=deal.person())


def _puppy(deal: Deal) -> Case:
    move, puppy = _ATTRIBUTES[0].told, _ATTRIBUTES[1].told
    (who, town, pet), (other, town2, pet2) = ((deal.person(), deal.of("town"), deal.of("pet")) for _ in range(2))
    sessions = deal.sessions(2)
    deal.random.shuffle(sessions)
    told = [
        deal.say(sessions[0], move, "user", who=who, value=town),
        deal.say(sessions[1], puppy, "user", who=who, value=pet),
        deal.say(deal.noise(), move, who=other, value=town2),
        deal.say(deal.noise(), puppy, who=other, value=pet2),
    ]
    return Case("multi-session", f"What is the puppy called that belongs to the one who is going to move to {town}?", pet, pet2, told)


def _temporal(deal: Deal) -> Case:
    return deal.random.choice((_between, _on, _ago))(deal)


_AGO: Final = ("Today", "Yesterday", "The day before yesterday")


def _deed(deal: Deal, session: int, evidence: Literal["user", ""]) -> tuple[str, date, CaseExchange]:
    """Return an action of the user, its date, and the exchange that states it."""
    deed, who, ago = deal.of("deed"), deal.person(), deal.random.randrange(len(_AGO))
    what = f"I {deed} with {who}"
    return what, deal.starts[session].date() - timedelta(days=ago), deal.say(session, f"{_AGO[ago]} {what}.", evidence)


def _between(deal: Deal) -> Case:
    first, last = deal.sessions(2)
    (what, began, one), (what2, ended, two), (_, _, noise) = (
        _deed(deal, first, "user"), _deed(deal, last, "user"), _deed(deal, deal.noise(), ""),
    )  # fmt: skip
    days = (ended - began).days
    text = f"How many days after the day when {what} was the day when {what2}?"
    told = (deal.starts[last].date() - deal.starts[first].date()).days
    trap = told if told != days else days + 1
    return Case("temporal-reasoning", text, f"{days} days", f"{trap} days", [one, two, noise])


def _on(deal: Deal) -> Case:
    (session,) = deal.sessions(1)
    (what, on, one), (_, other, noise) = _deed(deal, session, "user"), _deed(deal, len(deal.starts) - 1, "")
    return Case("temporal-reasoning", f"What was the date of the day when {what}?", format_day(on), format_day(other), [one, noise])


def _ago(deal: Deal) -> Case:
    (session,) = deal.sessions(1)
    (what, on, one), (_, other, noise) = _deed(deal, session, "user"), _deed(deal, len(deal.starts) - 1, "")
    days, trap = ((deal.asked.date() - when).days for when in (on, other))
    return Case("temporal-reasoning", f"How many days ago was it that {what}?", f"{days} days", f"{trap} days", [one, noise])


def _make_update(deal: Deal) -> Case:
    attribute = deal.random.choice(_ATTRIBUTES)
    who, old, new = deal.person(), deal.of(attribute.values), deal.of(attribute.values)
    first, last = deal.sessions(2)
    told = [
        deal.say(first, attribute.told, "user", who=who, value=old),
        deal.say(last, deal.random.choice(attribute.later), "user", who=who, value=new),
        deal.say(deal.noise(), attribute.told, who=deal.person(), value=deal.of(attribute.values)),
    ]
    return Case("knowledge-update", attribute.asked.format(who=who), new, old, told)


def _never_told(deal: Deal) -> Case:
    missing, other = deal.random.sample(_ATTRIBUTES, 2)
    who, trap = deal.person(), deal.of(missing.values)
    told = [
        deal.say(deal.noise(), other.told, who=who, value=deal.of(other.values)),
        deal.say(deal.noise(), missing.told, who=deal.person(), value=trap),
    ]
    return Case("abstention", missing.asked.format(who=who), UNKNOWN, trap, told, answerable=False)


CASES: Final[Mapping[str, Callable[[Deal], Case]]] = {
    "single-session-user": _by_user,
    "single-session-assistant": _by_assistant,
    "single-session-preference": _preference,
    "multi-session": _several,
    "temporal-reasoning": _temporal,
    "knowledge-update": _make_update,
    "abstention": _never_told,
}
KINDS: Final = tuple(CASES)
