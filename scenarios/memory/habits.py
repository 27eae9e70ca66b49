"""The habits used by the persona scenario: remarks that reveal them, questions that depend on them, and rules for reading replies."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from calendar import month_name
from collections.abc import Mapping, Sequence
from datetime import date
from random import Random
from typing import Any, ClassVar, Final, NamedTuple, final

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.reading.matching import found_words
from longspan.simulator.reading.replies import values as readings
from longspan.simulator.reading.replies.reading import Reading, settled_words, user_names
from longspan.simulator.reading.replies.subjects import Whole

__all__ = ["HABITS", "Habit", "HabitQuestion"]

Values = Mapping[str, str]
"""Values to fill into a message, by name."""


class HabitQuestion(NamedTuple):
    """A drawn habit: the values for the remark that reveals it and for two questions, with their right answers.

    `own` and `right` belong to the question about the user, `other` and `wanted` to the question about another person.
    """

    said: Values
    own: Values
    other: Values
    right: str
    wanted: str


class Habit(ABC):
    """A kind of habit. All possible answers to a question follow from the values filled into it."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, random: Random) -> HabitQuestion:
        """Draw a habit and its questions. The other person has a different habit, which the question states."""

    @abstractmethod
    def choices(self, values: Values) -> Sequence[str]:
        """Return the possible answers to a question; empty if it is not a question of this habit."""

    @abstractmethod
    def right_answer(self, values: Values) -> str:
        """Return the right answer for the other person."""

    @abstractmethod
    def reply(self, choice: str, values: Values) -> str:
        """Return a reply that makes a choice."""

    def find_choices(self, reply: str, values: Values) -> list[str]:
        """Return the choices that a reply gives: one if it answers, several if it hedges."""
        return settled_words(reply, self.choices(values))


@final
class Dish(Habit):
    """The user avoids an ingredient. Each bowl on the menu lacks a different one of four ingredients."""

    name: ClassVar[str] = "dish"

    def draw(self, random: Random) -> HabitQuestion:
        ingredients = random.sample(load_words("habits")["ingredients"], 4)
        avoided, without = ingredients[:2]
        own, other = (_menu(random, ingredients) for _ in range(2))
        return HabitQuestion(
            {"own": avoided},
            {"menu": own},
            {"who": _who(random), "without": without, "own": avoided, "menu": other},
            _find_lacking(own, avoided),
            _find_lacking(other, without),
        )

    def choices(self, values: Values) -> Sequence[str]:
        return list(_options(values["menu"]))

    def right_answer(self, values: Values) -> str:
        return _find_lacking(values["menu"], values["without"])

    def reply(self, choice: str, values: Values) -> str:
        return f"{choice}."

    def find_choices(self, reply: str, values: Values) -> list[str]:
        return _find_choices(reply, _options(values["menu"]), _whose(values))


@final
class Seat(Habit):
    """Only one of six seats suits the user, by row and side."""

    name: ClassVar[str] = "seat"

    def draw(self, random: Random) -> HabitQuestion:
        places = [(row, side) for row in ROWS for side in SIDES]
        suits, wanted = random.sample(places, 2)
        own, other = (_seats(random, places) for _ in range(2))
        return HabitQuestion(
            {"own": _place(suits)},
            {"seats": own},
            {"who": _who(random), "wanted": _place(wanted), "seats": other},
            _seat(own, _place(suits)),
            _seat(other, _place(wanted)),
        )

    def choices(self, values: Values) -> Sequence[str]:
        return list(_options(values["seats"]))

    def right_answer(self, values: Values) -> str:
        return _seat(values["seats"], values["wanted"])

    def reply(self, choice: str, values: Values) -> str:
        return f"{choice}."

    def find_choices(self, reply: str, values: Values) -> list[str]:
        seats = _options(values["seats"])
        apart = "|".join(rf"{seat[:-1]}[ \u00a0-]{seat[-1]}" for seat in seats)
        joined = re.sub(rf"(?<!\d)(?:{apart})\b", lambda seat: seat[0][:-2] + seat[0][-1], reply)
        return _find_choices(joined, seats, _whose(values))


@final
class Unit(Habit):
    """The user thinks in one unit. The question gives a quantity in an obsolete unit to be converted."""

    name: ClassVar[str] = "unit"

    def draw(self, random: Random) -> HabitQuestion:
        what = random.choice(list(load_words("habits")["measures"]))
        measure = load_words("habits")["measures"][what]
        own, wanted = random.sample(list(measure["units"]), 2)
        first, second = random.sample(list(measure["things"]), 2)
        return HabitQuestion(
            {"own": own, "what": what}, {"thing": first}, {"thing": second, "who": _who(random), "wanted": wanted}, own, wanted
        )

    def choices(self, values: Values) -> Sequence[str]:
        return list(_measure(values).get("units", ()))

    def right_answer(self, values: Values) -> str:
        return values["wanted"]

    def reply(self, choice: str, values: Values) -> str:
        measure = _measure(values)
        return f"{measure['things'][values['thing']] / measure['units'][choice]:,.0f} {choice}."

    def find_choices(self, reply: str, values: Values) -> list[str]:
        return Reading(reply).settle(lambda text: _units(text, self.choices(values)))


@final
class Written(Habit):
    """The user writes dates in one of four formats."""

    name: ClassVar[str] = "date"

    def draw(self, random: Random) -> HabitQuestion:
        own, wanted = random.sample(list(load_words("habits")["patterns"]), 2)
        (first, second), years = random.sample(list(load_words("habits")["feasts"]), 2), [str(random.randint(2025, 2049)) for _ in range(2)]
        shown = date(random.randint(1990, 2019), random.randint(1, 9), random.randint(13, 28))
        return HabitQuestion(
            {"own": _format_date(shown, own)},
            {"feast": first, "year": years[0]},
            {"who": _who(random), "pattern": wanted, "feast": second, "year": years[1]},
            own,
            wanted,
        )

    def choices(self, values: Values) -> Sequence[str]:
        known = values["feast"] in load_words("habits")["feasts"] and re.fullmatch(r"20\d\d", values["year"])
        return list(load_words("habits")["patterns"]) if known else []

    def right_answer(self, values: Values) -> str:
        return values["pattern"]

    def reply(self, choice: str, values: Values) -> str:
        return _format_date(_feast(values), choice)

    def find_choices(self, reply: str, values: Values) -> list[str]:
        reply, day = _drop_labels(reply), _feast(values)
        settled = Reading(reply).settle(lambda text: list(_find_dates(text, day)))
        return _drop_explanation(reply, _find_dates(reply, day)) if len(settled) == 2 else settled


@final
class Title(Habit):
    """The user is addressed by a title."""

    name: ClassVar[str] = "title"

    def draw(self, random: Random) -> HabitQuestion:
        own, wanted = random.sample(load_words("habits")["titles"], 2)
        first, second = random.sample(load_words("habits")["events"], 2)
        other = {"wanted": wanted, "surname": random.choice(load_words("habits")["surnames"]), "event": second}
        return HabitQuestion({"own": f"{_article(own)} {own}"}, {"event": first}, other, own, wanted)

    def choices(self, values: Values) -> Sequence[str]:
        return list(load_words("habits")["titles"])

    def right_answer(self, values: Values) -> str:
        return values["wanted"]

    def reply(self, choice: str, values: Values) -> str:
        return f"Dear {choice} {values.get('surname', 'X.')},"

    def find_choices(self, reply: str, values: Values) -> list[str]:
        short = {spelling: title for title, spelling in load_words("habits")["short"].items()}
        titles = readings.Values(self.choices(values), short, forms=False)
        return Reading(reply).settle(lambda text: _titles(text, titles))


@final
class Closing(Habit):
    """The user closes letters with a characteristic phrase."""

    name: ClassVar[str] = "closing"

    def draw(self, random: Random) -> HabitQuestion:
        own, wanted = random.sample(load_words("habits")["closings"], 2)
        (to, matter), (for_to, for_matter) = random.sample(load_words("habits")["notes"], 2)
        other = {"who": _who(random), "to": for_to, "matter": for_matter, "wanted": wanted}
        return HabitQuestion({"own": own}, {"to": to, "matter": matter}, other, own, wanted)

    def choices(self, values: Values) -> Sequence[str]:
        return list(load_words("habits")["closings"])

    def right_answer(self, values: Values) -> str:
        return values["wanted"]

    def reply(self, choice: str, values: Values) -> str:
        return f"Dear {values['to'].removeprefix('the ')}, {values['matter']}.\n{choice}"

    def find_choices(self, reply: str, values: Values) -> list[str]:
        found = found_words(reply, self.choices(values))
        return found and [*found, *found_words(reply, USUAL)]


USUAL: Final = (
    "Yours sincerely",
    "Yours faithfully",
    "Sincerely",
    "Kind regards",
    "Best regards",
    "Best wishes",
    "Regards",
    "Warm regards",
)
"""Common closing phrases that are no habit of any user."""
HABITS: Final[Mapping[str, Habit]] = {habit.name: habit for habit in (Dish(), Unit(), Written(), Title(), Seat(), Closing())}

ROWS: Final = {"front": "at the front", "middle": "in the middle", "back": "at the back"}
SIDES: Final = {"window": "by the window", "aisle": "on the aisle"}

_OPTION = re.compile(r"(\w+) \(([^()]*)\)")


def _who(random: Random) -> str:
    return str(random.choice(load_words("habits")["who"]))


def _article(word: str) -> str:
    return "an" if word[0] in "AEIOU" else "a"


def _options(text: str) -> dict[str, list[str]]:
    """Return the options in `text`: their names, each with its features."""
    return {name: what.split(", ") for name, what in _OPTION.findall(text)}


def _join_options(random: Random, names: Sequence[str], contents: Sequence[Sequence[str]]) -> str:
    shuffled = random.sample(contents, len(contents))
    *first, last = [f"{name} ({', '.join(what)})" for name, what in zip(names, shuffled, strict=True)]
    return f"{', '.join(first)} and {last}"


def _menu(random: Random, ingredients: Sequence[str]) -> str:
    contents = [random.sample(rest, len(rest)) for each in ingredients for rest in [[other for other in ingredients if other != each]]]
    return _join_options(random, random.sample(load_words("habits")["bowls"], len(ingredients)), contents)


def _find_lacking(menu: str, ingredient: str) -> str:
    return next((name for name, has in _options(menu).items() if ingredient not in has), "")


def _seats(random: Random, places: Sequence[tuple[str, str]]) -> str:
    numbers = random.sample(range(11, 90), len(places))
    return _join_options(random, [f"{number}{random.choice('ABCD')}" for number in numbers], places)


def _place(place: tuple[str, str]) -> str:
    row, side = place
    return f"{ROWS[row]} {SIDES[side]}"


def _seat(seats: str, place: str) -> str:
    return next((name for name, (row, side) in _options(seats).items() if _place((row, side)) == place), "")


# Choices.

_AVOIDED: Final = r"\b(?:avoid|skip|rule out|pass on|(?:stay|keep) away from|steer clear of)"
_HAS: Final = r"(?:also |still )?(?:has|contains|includes|comes with)"
_HAVE: Final = r"(?:all |both |each )?(?:also |still )?(?:have|contain|include|come with)"


def _whose(values: Values) -> Sequence[Whole]:
    """Return the people whose choices do not count: everyone but the user, or none if the question is about another person."""
    return (
        [] if "who" in values else [user_names([*(who.removeprefix("my ") for who in load_words("habits")["who"]), *load_words("people")])]
    )


def _find_choices(reply: str, options: Mapping[str, Sequence[str]], whose: Sequence[Whole]) -> list[str]:
    """Return the options that a reply chooses, without those that it only describes ("Vega; Rigel has sorrel") or advises against."""
    values = readings.Values(options, forms=False)
    settled = Reading(reply).of(values, *whose).values
    if len(settled) < 2:
        return settled
    names = "|".join(map(re.escape, options))
    one, most = rf"\b(?:{names})\b", len(options)
    several = rf"(?:{one}(?:, {one}){{0,{most}}},? (?:and|or|&) {one}|\({one}(?:, {one}){{0,{most}}}\)|{one})"
    has = "|".join(map(re.escape, dict.fromkeys(each for what in options.values() for each in what)))
    what = rf"(?= (?!no\b|none\b|neither\b|[^.!?;\n]{{0,60}}\bwithout\b)(?:(?:it|them|that|this)\b|[^.!?;\n]{{0,60}}\b(?:{has})\b))"
    # An answer that explains its choice names other options too. That is not a hedge, so descriptions are removed.
    explained = re.sub(
        rf"(?<!\bor ){one} {_HAS}{what}|{several} {_HAVE}{what}|{_AVOIDED} (?:the )?{several}",
        "they do",
        re.sub(r"[*_]", "", reply),
        flags=re.IGNORECASE,
    )
    left = Reading(explained).of(values, *whose).values
    return left if len(left) == 1 else settled


# Titles.


def _titles(reply: str, titles: readings.Values) -> list[str]:
    """Return the titles in a reply. Of "Right Reverend Bishop", only the last counts."""
    found = titles.find(plain(reply))
    begins = {each.start for each in found}
    return list(dict.fromkeys(each.value for each in found if each.end + 1 not in begins))


# Units.

_PER_HOUR: Final = r"[ \u00a0]?[\u00b7\u22c5]?[ \u00a0]?h(?:\u207b\u00b9|\^?[-\u2212]1)"
_PER_SECOND: Final = r"[ \u00a0]?[\u00b7\u22c5]?[ \u00a0]?s(?:\u207b\u00b9|\^?[-\u2212]1)"

_NAMES: Final = {
    "nautical miles": r"nautical[ -]miles?|nmi|nm",
    "miles per hour": r"miles?(?: per | an |/)hour|mi/hr?|mph",
    "kilometres per hour": r"(?:kilomet(?:re|er)s?|kms?)(?: per | an |/)(?:hour|hr?)|kmh|kph|km" + _PER_HOUR,
    "metres per second": r"met(?:re|er)s?(?: per | a |/)second|m/s(?:ec)?|mps|m" + _PER_SECOND,
    "kilometres": r"kilomet(?:re|er)s?|kms?",
    "miles": r"miles?|mi",
    "knots": r"knots?|kts?|kn",
    "kilograms": r"kilogram(?:me)?s?|kilos?|kgs?",
    "pounds": r"pounds?|lbs?",
    "stone": r"stones?|(?<=\s)st",  # not 1st
}
_UNITS: Final = re.compile(
    r"(?P<number>\d[\s*_]{0,4})?(?<![^\W\d_])(?:"
    + "|".join(f"(?P<u{k}>{names})" for k, names in enumerate(_NAMES.values()))
    + r")(?![^\W\d_])",
    re.IGNORECASE,
)
_STONES: Final = re.compile(r"\d\s?(?:stones?|st\.?),? ?(?:and )?\d[\d.]{0,9}\s?(?:pounds?|lbs?)\b", re.IGNORECASE)


def _measure(values: Values) -> Mapping[str, Any]:
    """Return the measure that a question is about, with its units and things in one common unit; {} if the thing is unknown."""
    return next((each for each in load_words("habits")["measures"].values() if values["thing"] in each["things"]), {})


def _units(reply: str, choices: Sequence[str]) -> list[str]:
    """Return the units of the quantities in a reply, or the units that it names if it has no digits."""
    reply = _STONES.sub("1 stone", reply)
    found = [(match, list(_NAMES)[int((match.lastgroup or "u0")[1:])]) for match in _UNITS.finditer(reply)]
    found = [(match, unit) for match, unit in found if match["number"]] or found
    return [unit for unit in choices if any(unit == each for _, each in found)]


# Dates.


def _feast(values: Values) -> date:
    month, day = load_words("habits")["feasts"][values["feast"]]
    return date(int(values["year"]), month, day)


def _format_date(day: date, pattern: str) -> str:
    """Return a date in a given format."""
    how = load_words("habits")["patterns"][pattern]
    if how == "words":
        return f"{day.day} {month_name[day.month]} {day.year}"
    return {"year": f"{day:%Y-%m-%d}", "day": f"{day:%d/%m/%Y}", "month": f"{day:%m/%d/%Y}"}[str(how)]


_LABELLED: Final = re.compile(r"\b(?:day|month|year)\W{1,4}(\w{1,9})" + 2 * r"\W{1,8}\b(?:day|month|year)\W{1,4}(\w{1,9})", re.IGNORECASE)
"""A date with labelled parts: "Day: 17, month: March, year: 2030"."""


def _drop_labels(reply: str) -> str:
    """Return `reply` with the labels of date parts removed."""
    return _LABELLED.sub(lambda match: ("-" if "".join(match.groups()).isdecimal() else " ").join(match.groups()), reply)


def _find_dates(reply: str, day: date) -> Mapping[str, re.Match[str]]:
    """Return the formats in which a reply gives a day, each with its first match."""
    return {pattern: match for pattern, form in _forms(day).items() if (match := form.search(reply))}


_EXPLAINS: Final = re.compile(r"\(|=|\bi\.?e\b|\bthat is\b|\bmeaning\b", re.IGNORECASE)
"""Marks between a date and the same date in another format, which explains it."""


def _drop_explanation(reply: str, found: Mapping[str, re.Match[str]]) -> list[str]:
    """Return the formats of a reply, without one that only explains a date in the other: "17/03/2032 (17 March 2032)".

    The date in words explains the one in figures, unless the figures follow it in brackets. Two dates joined by "or" are a hedge.
    """
    first, second = sorted(found, key=lambda pattern: found[pattern].start())
    between = reply[found[first].end() : found[second].start()]
    words = next((pattern for pattern in found if load_words("habits")["patterns"][pattern] == "words"), None)
    if words is None or re.search(r"\bor\b|/", between, re.IGNORECASE):
        return list(found)
    return [first if _EXPLAINS.search(between) or words == second else second]


def _forms(day: date) -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for a date in each format, with any separators. A month in words may stand first: it cannot be misread."""
    y, m, d, apart = rf"(?:{day.year}|{day.year % 100})", f"0?{day.month}", f"0?{day.day}", r"\s?[-/.\u2011]\s?"
    month = rf"{month_name[day.month][:3]}[a-z]*\.?"
    forms = {
        "year": rf"{day.year}{apart}{m}{apart}{d}",
        "day": rf"{d}{apart}{m}{apart}{y}",
        "month": rf"{m}{apart}{d}{apart}{y}",
        "words": rf"{d}(?:st|nd|rd|th)?(?: of|\s?-)?\s?{month}(?:\s?-|,)?\s?{day.year}|{month}\s{d}(?:st|nd|rd|th)?,?\s{day.year}",
    }
    return {
        pattern: re.compile(rf"(?<!\d)(?:{forms[how]})(?!\d)", re.IGNORECASE) for pattern, how in load_words("habits")["patterns"].items()
    }
