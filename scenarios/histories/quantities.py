"""Replace dates and numbers in replies by key words, so that the same value gives the same word in any notation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from longspan.scenarios.histories.amounts import MONEY, SIGN, TEMPERATURES, spell_amounts
from longspan.simulator.base.words import ORDINALS, SMALL, number, plain
from longspan.simulator.reading.dates import MONTHS
from longspan.simulator.reading.replies.times import CLOCK, is_clock, read_clock

__all__ = [
    "NUMBERS",
    "canonical_clocks",
    "canonical_dates",
    "canonical_numbers",
    "clock_key",
    "date_key",
    "number_key",
    "spell_symbols",
    "without_tellings",
    "without_unit",
    "word_amount",
]

_MONTHS: Final = [name[:3] for name in MONTHS]
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)\b(?:\.(?=,? {0,2}\d))?"
)
_DAY: Final = r"(?<!\d)\d{1,2}(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,? {0,2}(?:of )?(\d{4})\b)?"
_DATE: Final = re.compile(
    rf"({_DAY}) {{1,2}}(?:day )?(?:of )?({_MONTH}){_YEAR}|\b({_MONTH}) {{1,2}}(?:the )?({_DAY})(?!\d){_YEAR}"
    r"|(?<!\d)(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)|(?<!\d)(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})(?!\d)",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(
    rf"\b(?:{'|'.join(each.replace(' ', '[- ]') for each in reversed(ORDINALS))})\s+(?=(?:day )?(?:of )?{_MONTH})", re.IGNORECASE
)
_SHIFT: Final = re.compile(
    r"\b(?:(?:on )?the day (?:before yesterday|before|after)|yesterday"
    rf"|(?:\d\d?|an?|{'|'.join(SMALL[1:13])}) days? (?:earlier|later|prior|before(?=\W*[:;,.=\u2013\u2014-])))\b",
    re.IGNORECASE,
)
"""Phrases that relate one day to another. In them, words such as "before" do not mark a statement as outdated."""
_DATED: Final = re.compile(rf"[*_]{{0,3}}\s?:[^\n]{{0,60}}?(?:{_DATE.pattern})", re.IGNORECASE)
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_HOLIDAYS: Final = {
    "new year's day": "1 January", "new year's eve": "31 December", "christmas eve": "24 December", "christmas day": "25 December",
    "boxing day": "26 December", "valentine's day": "14 February", "halloween": "31 October",
}  # fmt: skip
_HOLIDAY: Final = re.compile("|".join(_HOLIDAYS), re.IGNORECASE)
_TOLD_ON: Final = re.compile(
    r"\b(?:messages?|notes?|sessions?|chat|conversation|(?:told|said|wrote|mentioned|corrected|noted|asked)(?: (?:me|it|this|so|them))?)"
    rf" (?:of|from|on|dated) (?:{_WEEKDAY},? )?(?:{_DATE.pattern})"
    rf"|\bon (?:{_DATE.pattern}),? you (?=told|said|wrote|mentioned|corrected|noted|asked)"
    rf"|\b(?:today|as of now|now)\b(?: is|,)?[ *_]{{0,3}}[(,]?[ *_]{{0,3}}(?:{_WEEKDAY},? )?(?:{_DATE.pattern})"
    rf"|\b(?:information|message|note|update|session|entry|correction)\b[^.()\n\d]{{0,30}}"
    rf"\((?:on |of )?(?:{_WEEKDAY},? )?(?:{_DATE.pattern})\)",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(rf"(?<![\w.])(?P<number>{SIGN}?(?!0\d)\d+(?:\.\d+)?)(?!\d|(?:st|nd|rd|th)\b)", re.IGNORECASE)
"""A number as `spell_amounts` writes it. Figures with a leading zero are codes."""
_DATE_OR_NUMBER: Final = re.compile(rf"(?P<date>{_DATE.pattern})|{_NUMBER.pattern}", re.IGNORECASE)
_FEW: Final = r"(\d{1,4}|an?|one)"
_WEEKS: Final = re.compile(rf"\b{_FEW} weeks?(?:(?:,| and|, and|,? plus| [+&]) {_FEW} days?)?\b", re.IGNORECASE)
_DIGITS: Final = re.compile(r"(?<![\w-])\d(?:-\d){1,4}(?![\w-])")
"""A number given digit by digit: "5-5-2"."""
_UNTIL: Final = re.compile(rf"\b(?:until|till|up to|before|since) (?:{_DATE.pattern})", re.IGNORECASE)
_TAGS: Final = re.compile(
    r"[\"']?\b(?:confidence|score|similarity|source|timestamp|time|date|id|session|turn|rank|page)\b[\"']?\s?[:=]\s?"
    r"(?:\"[^\"\n]{0,80}\"|[^,;|}\n]{0,40})",
    re.IGNORECASE,
)
"""Fields of a record that describe the record itself."""
_EACH: Final = r"(?:\d[\d,.]*|[a-z]+)"
_BESIDE: Final = re.compile(
    rf"(?<![\w)])(?:[+\u2212]|-)\d[\d,.]*\b|\b(?:another|an additional|an extra|up by|down by|short of"
    rf"|(?:brought|bought|sold|gained|lost|added)"
    rf"(?: him| her| them| you| another)?|average of|averages|averaging) {_EACH}\b"
    r"|\b(?:\d[\d,.]*|one) (?:more|fewer|extra|additional)\b|\b\d[\d,.]* (?:\w+ )?(?:per|each|apiece)\b",
    re.IGNORECASE,
)
"""Differences and averages, which are not totals."""
_GOLD: Final = re.compile(rf"\W{{0,2}}?({SIGN}?(?!0\d)\d[\d.]*|[a-z-]+)(?: ([a-z]+))?\W{{0,2}}", re.IGNORECASE)
_UNIT: Final = re.compile(
    r"[ *_]{0,3}(?:(?:more|old|other) )?([a-z]{1,20}s|[kcm]?[mg]|kilo|percent|centigrade|fahrenheit)\b", re.IGNORECASE
)
_MEASURES: Final = {
    "g": ("gram", 1), "gram": ("gram", 1), "gramme": ("gram", 1), "kg": ("gram", 1000), "kilo": ("gram", 1000), "kilogram": ("gram", 1000),
    "m": ("metre", 1), "metre": ("metre", 1), "meter": ("metre", 1),
    "percent": ("", 0.01), "lb": ("pound", 1),
    "km": ("metre", 1000), "kilometre": ("metre", 1000), "kilometer": ("metre", 1000),
}  # fmt: skip
"""Interchangeable units: the base unit, and the factor to convert to it."""
_SYMBOLS: Final = re.compile(r"[\u00a3$\u20ac\u00a5\u20b9\u00b0%]|[-\u2212]\d")
_KINDS: Final = {name.removesuffix("s"): kind for kind, names in (("money", MONEY), ("temperature", TEMPERATURES)) for name in names}
"""Units of which one rules out another."""
_NO_UNITS: Final = frozenset("is was as plus minus times this has does".split())
_JOINED: Final = re.compile(r" ?(?:or|to|and|plus|,|/|[-+&\u2013]) ?\d", re.IGNORECASE)
NUMBERS: Final = re.compile(r"\bnumber(?:minus)?\d\w*")
"""The key words that replace numbers."""
_SUPPOSES: Final = re.compile(r"\b(?:would|if|together with)\b[^.!?\n]*\Z", re.IGNORECASE)
SUPPOSED: Final = 80
"""Characters before a sum that are searched for signs that it is hypothetical or about something else."""
TERMS: Final = 12
"""Maximum number of terms that are checked as a sum."""
_LONGEST: Final = 30
WORDS: Final = 10
"""Maximum number of words of a gold answer that is a number."""


def date_key(answer: str) -> str:
    """Return the key word of a gold answer that is a date, or ""."""
    match = _DATE.fullmatch(answer.strip(" ."))
    return min(_days(match)) if match else ""


def canonical_dates(reply: str, answer: str, question: str) -> tuple[str, list[str]]:
    """Return the reply with dates replaced by key words, and these words. A date without a year gets the answer's year."""
    key = date_key(answer)
    year = key.rpartition("x")[2]
    asked = {day for match in _DATE.finditer(question) for day in _days(match)} - {key}
    found: dict[str, None] = {}

    def word(match: re.Match[str]) -> str:
        days = [day if not day.endswith("x") else f"{day}{year}" for day in _days(match)]
        day = key if key in days or (not year and any(each.rpartition("x")[0] == key.rpartition("x")[0] for each in days)) else min(days)
        if _DATED.match(match.string, match.end()):
            return match[0]  # "3 May: 9 July" is an entry of a log
        if day not in asked:
            found[day] = None
        return f" {day} "

    reply = _HOLIDAY.sub(lambda match: _HOLIDAYS[match[0].casefold()], reply.replace("\u2019", "'"))
    text = _ORDINAL.sub(lambda match: f"{ORDINALS[plain(match[0])]} ", _SHIFT.sub(" ", reply.rpartition("=")[2]))
    return _DATE.sub(word, text), list(found)


def spell_symbols(text: str) -> str:
    """Return `text` with signs, currencies and other symbols of units in words: "minus 5 centigrade" for "-5°C"."""
    if not _SYMBOLS.search(text):
        return text
    return spell_amounts(text, _DATE.pattern, signed=True).replace(SIGN, "minus ")


def without_unit(value: str) -> str:
    """Return an answer without its unit: "26" for "26 jars"."""
    first, _, unit = value.partition(" ")
    return value if not first.isdecimal() or " " in unit else first


def without_tellings(reply: str) -> str:
    """Return a reply without the dates of earlier statements: "in your message of 3 May", "on 3 May you said"."""
    return _TOLD_ON.sub(" ", reply)


def _days(match: re.Match[str]) -> set[str]:
    """Return the key words of all days that a written date may mean. 4/3/2025 may mean two."""
    day, month, year, month2, day2, year2, year3, month3, day3, first, second, year4 = match.groups()
    if first:
        return {_day(first, second, year4), _day(second, first, year4)}
    if year3:
        return {_day(day3, month3, year3)}
    name = month or month2
    return {_day(re.sub(r"\D", "", day or day2), str(_MONTHS.index(name[:3].casefold()) + 1), year or year2 or "")}


def _day(day: str, month: str, year: str) -> str:
    return f"day{int(day)}x{int(month)}x{year}"


def clock_key(answer: str) -> str:
    """Return the key word of a gold answer that is a time of day, or ""."""
    match = CLOCK.fullmatch(answer.strip(" .")) if is_clock(answer) else None
    return _clock(min(read_clock(match))) if match else ""


def canonical_clocks(reply: str, answer: str, question: str) -> tuple[str, list[str]]:
    """Return the reply with times of day replaced by key words, and these words. An ambiguous time is the gold answer's, if it can be."""
    gold = CLOCK.fullmatch(answer.strip(" ."))
    key, wanted = clock_key(answer), set(read_clock(gold) if gold else ())
    asked = {_clock(minutes) for match in CLOCK.finditer(question) for minutes in read_clock(match)} - {key}
    found: dict[str, None] = {}

    def word(match: re.Match[str]) -> str:
        minutes = read_clock(match)
        if not minutes:
            return match[0]
        said = key if wanted.intersection(minutes) else _clock(minutes[0])
        if said in asked:
            return " then "
        found[said] = None
        return f" {said} "

    return CLOCK.sub(word, reply), list(found)


def _clock(minutes: int) -> str:
    return f"clock{minutes // 60:02}{minutes % 60:02}"


def number_key(answer: str) -> str:
    """Return the key word of a gold answer that is a number, with or without a unit, or ""."""
    match = _gold(answer)
    return "" if match is None or match[1].casefold() in ("a", "an") else _word(number(match[1].replace(SIGN, "-")))


@lru_cache(maxsize=1000)
def _gold(answer: str) -> re.Match[str] | None:
    if answer.count(" ") > WORDS or len(answer) > 100:
        return None
    return _GOLD.fullmatch(spell_amounts(answer.strip(), _DATE.pattern, signed=True))


def canonical_numbers(reply: str, answer: str, question: str) -> tuple[str, list[str]]:
    """Return the reply with numbers replaced by key words, and these words, without numbers and dates of the question.

    If some numbers have the answer's unit, only they count. For a sum, only its result counts.
    """
    key, gold = number_key(answer), _gold(answer)
    unit = ((gold and gold[2]) or "").casefold()
    likely = word_amount(key)
    *lines, last = reply.strip().splitlines() or [""]
    text = "\n".join(line.rpartition("=")[2] for line in ([last] if "=" in last else [*lines, last]))
    text = _DIGITS.sub(lambda match: match[0].replace("-", ""), text)
    text = spell_amounts(text, _DATE.pattern, likely, signed=likely < 0)
    text = _otherwise(_TAGS, _UNTIL.sub(" ", text))
    if unit in ("day", "days"):
        text = _WEEKS.sub(lambda match: f"{7 * (number(match[1]) or 0) + (number(match[2] or '0') or 0):.0f} days", text)
    asked = {_value(match) for match in _NUMBER.finditer(spell_amounts(question, _DATE.pattern))} - {key}
    found: dict[str, None] = {}
    measured: dict[str, None] = {}
    wanted = _MEASURES.get(unit.removesuffix("s"), (unit.removesuffix("s"), 1))
    joins = -1

    def word(match: re.Match[str]) -> str:
        nonlocal joins
        if match["date"]:
            return match[0]
        value = _value(match)
        if not value or value in asked:
            return " that "
        follows = _UNIT.match(match.string, match.end())
        said = _MEASURES.get(singular := follows[1].casefold().removesuffix("s"), (singular, 1)) if follows else ("", 1)
        named = said[0] == wanted[0] or ("degree" in (said[0], wanted[0]) and _KINDS.get(said[0]) == _KINDS.get(wanted[0]))
        if named and said[1] != wanted[1] and (follows or value != key):
            value = _word(word_amount(value) * said[1] / wanted[1])
        after = _JOINED.match(match.string, match.end())
        if after and _DATE.match(match.string, after.end() - 1):
            after = None
        joined, joins = match.start() == joins, after.end() - 1 if after else -1
        alternative = not follows and match.string.endswith("or ", 0, match.start())
        if unit.isalpha() and (named or after or joined or alternative):
            measured[value] = None
        elif unit.isalpha() and follows and follows[1].casefold() not in _NO_UNITS:
            if _KINDS.get(said[0], "") != _KINDS.get(wanted[0]):
                return " that "
            value = f"amount{value.removeprefix('number')}x{said[0]}"
        found[value] = None
        return f" {value} "

    every = _DATE_OR_NUMBER.sub(word, text)
    if (total := _total(NUMBERS.findall(every))) and not _SUPPOSES.search(every.rpartition("number")[0][-SUPPOSED:]):
        return f" {total} ", [total]
    if (rest := _otherwise(_BESIDE, text)) != text:
        found, measured, joins = {}, {}, -1
        every = _DATE_OR_NUMBER.sub(word, rest)
    return every, list(measured or found)


def _otherwise(pattern: re.Pattern[str], text: str) -> str:
    """Return `text` without the matches of a pattern, if it still contains numbers; otherwise return it unchanged."""
    rest = pattern.sub(" ", text)
    return rest if rest == text or _NUMBER.search(_DATE.sub(" ", rest)) else text


def _total(numbers: Sequence[str]) -> str:
    """Return the last number if it is the sum of two or more numbers before it: "10 and 31 and 4, so 45". Otherwise return ""."""
    *terms, last = map(word_amount, numbers) if numbers else (0.0,)
    run = 0.0
    for count, term in enumerate(reversed(terms[-TERMS:]), 1):
        run += term
        if count > 1 and run == last:
            return numbers[-1]
    return ""


def _value(match: re.Match[str]) -> str:
    written = match["number"].replace(SIGN, "-")
    return _word(float(written)) if len(written) < _LONGEST else ""


def word_amount(word: str) -> float:
    """Return the number that a key word stands for."""
    return float(word.removeprefix("number").replace("point", ".").replace("minus", "-"))


def _word(value: float | None) -> str:
    return "" if value is None else f"number{value:.10g}".replace(".", "point").replace("+", "").replace("-", "minus")
