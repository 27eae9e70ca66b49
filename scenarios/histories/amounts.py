"""Rewrite amounts in plain figures with English units, so that graders can compare their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from longspan.simulator.base.words import NUMERAL, SCALES, read_numeral

__all__ = ["MONEY", "SIGN", "TEMPERATURES", "spell_amounts"]

SIGN: Final = "\ue000"
"""Marks a negative amount: a private character, because a hyphen also marks ranges and bullets."""
MONEY: Final = {
    "dollars": r"\$|USD|US ?\$|(?:US )?dollars?|bucks", "euros": "€|EUR|euros?", "pounds": "£|GBP|pounds?(?: sterling)?|quid",
    "rupees": r"₹|INR|Rs\.?|rupees?", "yens": "[¥円]|JPY|yen", "yuans": "元|CNY|yuan", "francs": "CHF|(?:Swiss )?francs?",
}  # fmt: skip
TEMPERATURES: Final = {
    "centigrade": "° ?C|℃|(?:degrees? )?(?:Celsius|centigrade)|degrees C", "fahrenheit": "° ?F|℉|(?:degrees? )?Fahrenheit|degrees F",
    "degrees": "°|degrees?",
}  # fmt: skip
_UNITS: Final[Mapping[str, str]] = MONEY | TEMPERATURES | {"percent": "%|percent|per cent|pct|Prozent"}
_SYMBOL: Final = "|".join(f"(?P<{name}_>{spelled})" for name, spelled in MONEY.items())
_UNIT: Final = "|".join(f"(?P<{name}>{spelled})" for name, spelled in _UNITS.items())
_SCALES: Final = SCALES | {"k": 1000, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9}
_LARGE: Final = r"dozen|hundred|thousand|million|billion|lakhs?|crores?"
_FIGURE: Final = r"\d{1,3}(?:[,. \u00a0\u202f'\u2019]\d{2,3})*[,. \u00a0\u202f'\u2019]\d{3}(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?"
_BELOW: Final = rf"(?!one\b){NUMERAL}"
_WORDS: Final = (
    rf"\b(?:(?:{_BELOW}|an?|one)(?:[- ](?:{_LARGE}))+(?:,? (?:and )?(?:{_BELOW}|one)[- ]hundred)?(?:(?:-| |, )(?:and[- ])?{_BELOW}\b|-one\b"
    rf"| and one\b)?|{_BELOW}|(?:\A\W{{0,3}}|(?<=only )|(?<=just ))one)\b"
)
_AMOUNT: Final = (
    rf"(?P<sign>(?<![\w)\]])[-\u2212](?=(?:{'|'.join(MONEY.values())})? ?\d)|\b(?:minus|negative) )?(?:(?<![a-z])(?:{_SYMBOL}) ?)?"
    rf"(?:(?<![\w.,])(?P<figure>{_FIGURE})(?!\d|(?:st|nd|rd|th)\b)|(?P<words>{_WORDS}))"
    rf"(?: ?(?P<scale>k|mn?|bn?|{_LARGE})\b)?(?: {{0,2}}(?:{_UNIT})(?!\w))?"
)
LONGEST: Final = 30
"""Maximum number of characters of a figure."""


def spell_amounts(text: str, dates: str, likely: float | None = None, *, signed: bool = False) -> str:
    """Return `text` with amounts as plain figures and English units: "1200.5 euros" for "1.200,50 €", "100000" for "1 lakh".

    `dates` is a pattern of dates, which stay as they are. A figure with two readings ("1.234") takes the `likely` one. Signs
    count for money and temperatures, and everywhere if `signed`.
    """

    def spell(match: re.Match[str]) -> str:
        groups = match.groupdict()
        unit = next((name for name in _UNITS if groups[name] or groups.get(f"{name}_")), "")
        money, scale = unit in MONEY, (groups["scale"] or "").casefold().removesuffix("s")
        if groups["figure"] is None and groups["words"] is None:
            return match[0]
        rest = ""
        if scale in ("m", "b") and not money:
            scale, rest = "", f" {groups['scale']}"  # 3 m is a length
        grouped = money and unit != "dollars"
        value = _parse_words(groups["words"] or "")
        if groups["figure"]:
            value = _parse_figure(groups["figure"], likely, measured=bool(unit or scale), grouped=grouped)
        if value is None:
            return match[0]
        value *= _SCALES.get(scale, 1)
        sign = SIGN if groups["sign"] and (signed or money or unit in TEMPERATURES) else groups["sign"] or ""
        return f"{sign}{value:.10f}".rstrip("0").rstrip(".") + (f" {unit}" if unit else rest)

    return _amounts(dates).sub(spell, text)


_COMPILED: Final[dict[str, re.Pattern[str]]] = {}


def _amounts(dates: str) -> re.Pattern[str]:
    if dates not in _COMPILED:
        _COMPILED[dates] = re.compile(rf"(?:{dates})|{_AMOUNT}", re.IGNORECASE)
    return _COMPILED[dates]


def _parse_figure(figure: str, likely: float | None, *, measured: bool, grouped: bool) -> float | None:
    """Return the value of a figure, or None if it is no single number: a code, or numbers with commas or spaces between them.

    `measured`: a unit follows, so a comma or a space is part of the number. `grouped`: a point with three digits marks thousands.
    """
    if len(figure) > LONGEST or re.match(r"0\d", figure):
        return None
    marks = re.sub(r"\d", "", figure)
    last = marks[-1:]
    *heads, part = re.split(r"\D", figure)
    whole = float("".join([*heads, part]))
    decimal = float(f"{''.join(heads) or 0}.{part}")
    if not marks:
        return whole
    if last in ",." and marks.count(last) == 1 and (len(marks) > 1 or len(part) != 3 or last == "."):
        if likely == whole and marks == "." and len(part) == 3:
            return whole
        if marks == "," and not measured and likely != decimal:
            return None
        return whole if grouped and marks == "." and len(part) == 3 else decimal
    return None if len(part) != 3 or (" " in marks and not measured and likely != whole) else whole


def _parse_words(words: str) -> float | None:
    """Return the value of a number in words, such as "one thousand and five"."""
    said = re.sub(r"\ban?\b", "one", words.casefold())
    return read_numeral([word.removesuffix("s") for word in re.findall("[a-z]+", said)])[0]
