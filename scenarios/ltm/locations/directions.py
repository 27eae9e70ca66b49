"""Read free-text directions with rules: the legs that they describe, each with direction, distance and places.

Numbers and directions are found as tokens, then paired so that the total distance between partners is minimal. The words before a place
decide whether a leg begins or ends there. `longspan.scenarios.ltm.locations.routes` follows the legs.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from math import isclose
from operator import itemgetter
from typing import NamedTuple, final

from longspan.scenarios.ltm.locations.steps import MARKER, lay_out
from longspan.simulator.base.words import NUMERAL, SMALL, number
from longspan.simulator.reading.replies.mentions import correction_cues

__all__ = ["BEARINGS", "Leg", "read_legs"]

MAX_APART = 1000
"""Maximum number of characters between a leg and a place that belongs to it."""

AMENDED = 100
"""Maximum number of characters in the correction of a step."""
NEAR = 6
"""Maximum number of tokens (directions, distances, places) between a step and its correction."""

BEARINGS = dict(zip("north northeast east southeast south southwest west northwest".split(), range(0, 360, 45), strict=True))
"""Directions as degrees clockwise from north."""


@final
@dataclass(slots=True)
class Leg:
    """A stretch of the route as described in the reply.

    `bearing`: degrees clockwise from north or, if `turn`, from the direction of travel. `distance`: in the question's unit; None if the
    text gives none, or (`unclear`) several of either. `begin`, `end`: position in the text. `origin`, `place`: where the leg begins and
    ends, if named.
    """

    bearing: float
    distance: float | None
    begin: int
    end: int
    turn: bool = False
    unclear: bool = False
    origin: str | None = None
    place: str | None = None
    firm: int = 0
    """How certain it is that the leg ends at `place`; see `_PENDING` and the like."""
    described: bool = False
    """Whether the leg describes a location ("3 km west of A") instead of a move."""
    joined: bool = False
    """Whether the leg is the second half of "2 km west and 3 km north of A", and so belongs to the previous leg."""
    aside: bool = False
    """Whether the leg is from a sentence about the whole route ("overall you end up 2 km west")."""
    restarts: bool = False
    """Whether the text starts over with this leg, with another route or the same one again."""
    retracts: bool = False
    """Whether the text retracts an earlier statement with this leg."""
    more: bool = False
    """Whether the text marks it as a further leg ("another 2 km", "then")."""
    item: int = 0
    """Number of list items before it."""
    sentence: int = 0
    """Number of sentences before it."""


def read_legs(text: str, places: Sequence[str], unit: str = "km") -> list[Leg]:
    """Return the legs that `text` describes, in order.

    `places`: known names; the route begins at the first. `unit`: "km" or "miles", for distances without a unit. Never raises. Runs in
    time linear in the text.
    """
    text = lay_out(text, unit)
    tokens = _tokens(text, places, unit)
    legs = _pair_tokens(text, [token for token in _carry_directions(text, tokens) if token.kind in ("distance", "direction", "turn")])
    _Annotator(text, tokens, legs, places[0]).run()
    return _merge_legs(legs)


# ---- text -> tokens


class _Token(NamedTuple):
    kind: str
    """item, place, retract, restart, distance, direction or turn."""
    begin: int
    end: int
    value: float | None = None
    """A distance (None: unclear), degrees, or a list item's number."""
    place: str = ""
    unclear: bool = False
    """Whether the text gives another distance or direction in its place ("north or east")."""


def _cues(phrases: str) -> str:
    """Return a pattern for any of the phrases as whole words. Phrases are given one per line."""
    return r"\b(?:" + "|".join(phrase.strip() for phrase in phrases.strip().splitlines()) + r")(?<=\w)\b"


_COMPASS = "north|south|east|west"
_HALFWINDS = "northnortheast eastnortheast eastsoutheast southsoutheast southsouthwest westsouthwest westnorthwest northnorthwest"
_WINDS = BEARINGS | {name: 22.5 + 45 * k for k, name in enumerate(_HALFWINDS.split())}
_LETTERS = {"n": "north", "e": "east", "s": "south", "w": "west"}
_KILOMETRES = {"km": 1.0, "miles": 1.609344, "metres": 0.001}

_FEW = rf"\b(?:{NUMERAL}|half an?|an? half|a couple of|a(?:n|nother)?|single)\b"
_DIGITS = r"(?:(?<![\w.,])|(?<=[NESW]))(?:\d{1,3}(?:,\d{3})+|\d{1,6}(?:[.,]\d{1,6})?|\.\d{1,3})"
_LONG_UNIT = r"(?:kilomet(?:er|re)s?|km'?s?|klicks?|miles?|met(?:er|re)s?)"
_UNIT = rf"(?:{_LONG_UNIT}|k|mi|m|units?)"
_REPEATED = r"(?:\s*\(\s*\w{1,9}\s*\))?"  # "four (4) km"
_NO_DISTANCE = r"(?:minutes?|mins?|hours?|hrs?|h|blocks?|steps?|times|stops?|places?|legs?|seconds?|o'?clock|degrees?|st|nd|rd|th)\b"

_RANGE = rf"(?:(?P<low>{_DIGITS}|\b(?:{'|'.join(SMALL[1:11])}))\s*(?:[-\u2013\u2014]|to\b|or\b)\s*)?"
_FURTHER = r"(?:(?:more|further|additional|full|whole)\s+)?"
_IN_DIGITS = rf"(?P<digits>{_DIGITS}){_REPEATED}\s*-?\s*{_FURTHER}(?P<unit>{_UNIT})"
_IN_WORDS = rf"(?P<words>{_FEW})(?P<half>\s+and\s+a\s+half)?{_REPEATED}[\s-]*{_FURTHER}(?P<longunit>{_LONG_UNIT})"
_FACING = r"\b(?:turn|bear|veer|go|head|hang|keep|swing|(?:take|make) an?)(?: sharp)? (?:to (?:the|your) |your |off )?"

_TOKENS = {
    "item": MARKER.pattern,
    "retract": _cues(
        """correction
        scratch that
        let me (?:correct|redo|fix|revise|restart)
        i made an? (?:mistake|error)
        i misspoke
        my mistake
        no,? wait
        wait(?=[,:!])"""
    ),
    "restart": _cues(
        """alternatively
        as an alternative
        another (?:option|route|way|possibility)
        (?:option|route) (?:b|2|two)
        or you c(?:ould|an)
        you (?:can|could|may|might) (?:also|instead)
        instead,? you
        if you(?:'d| would)? (?:prefer|rather|like|want)
        (?:in )?summary
        to summari[sz]e
        in short
        (?:to )?recap
        in other words
        step[- ]by[- ]step
        (?:complete|full|whole|entire) (?:route|path|journey|way)
        so,? (?:the|your) (?:\\w+ )?(?:route|path|journey|directions)
        so,? to (?:get|travel|go)
        therefore
        (?:so|answer|route|directions)(?=:)"""
    ),
    "labelled": rf"\b(?:distance|length)\s*(?:\([^()]{{0,12}}\)\s*)?[:=]\s*(?P<amount>{_DIGITS})(?!\s*{_UNIT}\b)",
    "distance": rf"{_RANGE}(?:{_IN_DIGITS}|{_IN_WORDS})(?![A-Za-z]|\s*/\s*h|\s*an hour)",
    "bare": rf"(?P<count>{_DIGITS}|\b{NUMERAL}\b)(?!\s*{_NO_DISTANCE}|\s*[%\u00b0])",
    "wind": rf"\b(?:{_COMPASS})(?:[ -]?(?:{_COMPASS})){{0,2}}(?:ern|erly|wards?|bound)?\b",
    "letter": r"(?-i:(?<![A-Za-z'\u2019&.])(?:[NS][NS]?[EW]|[EW][NS][EW]|[NESW])(?![A-Za-z'\u2019&]))"
    r"|(?:(?<=\d )|(?<=km )|(?<=km))[nesw]\b",
    "left": rf"{_FACING}left\b|\bleft (?=and|for|turn)|\bto (?:the|your) left\b",
    "right": rf"{_FACING}right\b|\bright (?=and|for|turn)|\bto (?:the|your) right\b",
    "back": r"\b(?:(?:go|head|walk|travel|come|turn|double) (?:right )?back|backtrack|turn around|make an? u-turn)\b",
    "straight": r"\b(?:straight(?!-?\s?line)|continue|keep (?:going|walking|on)|carry on|same direction|onwards?)\b",
}
_TURNS = {"left": -90.0, "right": 90.0, "back": 180.0, "straight": 0.0}
_HOME = r"where you (?:started|began)|(?:your |the )?start(?:ing)? (?:point|place|location)|(?:town )?cent(?:er|re)(?: of (?:the )?town)?"

_MOVE = "(?:go|head|travel|walk|turn|mov|continu|driv|proceed)"
_NEGATED = re.compile(
    rf"\b(?:(?:do not|don['\u2019]t|never|avoid|without) {_MOVE}\w*|instead of|rather than|not (?=\d|{_COMPASS}))[^,.;\n]{{0,80}}",
    re.IGNORECASE,
)
_ADJACENT = re.compile(
    r"[\s,:=()/x\u00d7\u2013\u2014-]*(?:(?:by|for|to|due|the|about|another|just|only|towards?|more|further)\s+){0,3}\(?", re.IGNORECASE
)
_MEASURES = ("distance", "direction")
_ONWARD = re.compile(r"(?: direction)?[ ,]{0,3}(?:and |then ){0,2}", re.IGNORECASE)
_CONVERTED = re.compile(r"\s*(?:[(/=]|or)\s*(?:about |approx(?:imately|\.)? |roughly )?", re.IGNORECASE)
_OR = re.compile(r"[\s,]*(?:/|\bor\b)\s*(?:(?:maybe|perhaps|possibly|about|roughly)\s+)?(?:to\s+)?(?:the\s+)?", re.IGNORECASE)
ROUNDED = 0.15
"""The most by which the same distance differs in another unit: 3 km are about 2 miles."""
_TOTAL = re.compile(r"\b(?:total|altogether|in all|sum|overall|entire|whole)\b", re.IGNORECASE)
_IN_TOTAL = re.compile(r"[^\S\n]*(?:in (?:total|all)|altogether|total)\b", re.IGNORECASE)


@cache
def _amending_pattern() -> re.Pattern[str]:
    """Return a pattern of the phrases that correct a step on the same line."""
    cues = rf"{correction_cues()}|(?P<doubts>or (?:was|is) (?:it|that))|it should (?:be|read|say)"
    return re.compile(rf"(?:\(|[\u2013\u2014,;.!\u2026-]|(?<=\) ))\s?(?:{cues})\b", re.IGNORECASE)


@cache
def _tokens_pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS.items()), re.IGNORECASE)


def _matches(text: str, places: Sequence[str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the matches in `text` with their kinds, in order.

    If several begin at the same position, a list item takes precedence, then one of the town's places, then the first in _TOKENS.
    """
    named = "|".join(r"[\s-]+(?:the\s)?".join(map(re.escape, _parts(place))) for place in sorted(places, key=len, reverse=True))
    found_place = re.compile(rf"\b(?:{named}|(?P<home>{_HOME}))\b", re.IGNORECASE).search
    found_token = _tokens_pattern().search
    place, token = found_place(text), found_token(text)
    while place or token:
        if place and (not token or (place.start(), token["item"] is not None) <= (token.start(), False)):
            yield "place", place
            end = place.end()
        elif token:
            yield next(kind for kind in _TOKENS if token[kind] is not None), token
            end = token.end()
        place = found_place(text, end) if place and place.start() < end else place
        token = found_token(text, end) if token and token.start() < end else token


def _parts(place: str) -> list[str]:
    """Return the words of a place's name without inner articles: "Statue of the Founder" equals "Statue of Founder"."""
    return re.split(r"[\s-]+(?:the\s)?", place.strip().casefold())


def _tokens(text: str, places: Sequence[str], unit: str) -> list[_Token]:
    """Return the tokens of `text`, in order."""
    names = {" ".join(_parts(place)): place for place in places}
    negated = [(match.start(), match.end()) for match in _NEGATED.finditer(text)]
    tokens: list[_Token] = []
    weak: set[int] = set()  # lone letters and numbers, which count only next to a distance or a direction
    for kind, match in _matches(text, places):
        begin, end = match.span()
        if kind == "item":
            tokens.append(_Token(kind, begin, end, float(text[begin + 1 : end - 1][:9])))
        elif kind == "place":
            tokens.append(_Token(kind, begin, end, place=places[0] if match["home"] else names[" ".join(_parts(match[0]))]))
        elif kind in ("retract", "restart"):
            tokens.append(_Token(kind, begin, end))
        elif _within(negated, begin):
            continue
        else:
            if kind == "bare" or (kind == "letter" and end == begin + 1):
                weak.add(len(tokens))
            tokens += _tokens_of_match(match, kind, unit)
    tokens = [token for k, token in enumerate(tokens) if k not in weak or _adjacent(text, tokens, k)]
    tokens = _without_conversions(text, _amend_steps(text, _without_stepping(text, tokens)))
    return _without_totals(text, tokens)


def _amend_steps(text: str, tokens: Sequence[_Token]) -> list[_Token]:
    """Return the tokens, applying corrections of a step on its own line: "3 km south to the Mill - correction: north", "2 km east (no: 3
    km)".

    A correction that covers more than the preceding step is left alone; it starts the route over.
    """
    kept = list(tokens)
    begins = [token.begin for token in tokens]
    for cue in _amending_pattern().finditer(text):
        first, end = bisect_left(begins, cue.start()), bisect_left(begins, _scope(text, cue))
        line = text.rfind("\n", max(0, cue.start() - MAX_APART), cue.start()) + 1
        was = list(islice(_measures_before(tokens, first, line), 2))
        new = list(islice((at for at in range(first, end) if tokens[at].kind in _MEASURES), 3))
        pairs = [(old, at) for old in was for at in new[:2] if kept[old].kind == tokens[at].kind]
        same = sum(kept[old].value == tokens[at].value for old, at in pairs)
        if not was or (not cue[0].startswith("(") and len(pairs) < len(new) and (len(pairs), same) != (2, 1)):
            continue
        for old, at in pairs:
            kept[old] = kept[old]._replace(unclear=True) if cue["doubts"] else kept[old]._replace(value=tokens[at].value)
        last = end if cue[0].startswith("(") else max([at + 1 for _, at in pairs], default=first)
        for at in range(first, last):
            kept[at] = kept[at]._replace(kind=kept[at].kind if kept[at].kind == "place" else "")
    return [token for token in kept if token.kind]


def _measures_before(tokens: Sequence[_Token], first: int, line: int) -> Iterator[int]:
    """Yield the indices of directions and distances before a correction, nearest first, within its line and step."""
    for at in range(first - 1, max(-1, first - 1 - NEAR), -1):
        if tokens[at].begin < line or tokens[at].kind in ("item", "restart"):
            return
        if tokens[at].kind in _MEASURES:
            yield at


def _scope(text: str, cue: re.Match[str]) -> int:
    """Return where a correction ends: at the closing bracket, or at the end of the line."""
    end = text.find(")" if cue[0].startswith("(") else "\n", cue.end(), cue.end() + AMENDED)
    return end if end >= 0 else min(len(text), cue.end() + AMENDED)


def _without_stepping(text: str, tokens: Sequence[_Token]) -> list[_Token]:
    """Return the tokens without a "carry on" that continues in the direction just given: "in a northerly direction and carry on for 2
    km"."""
    return [
        token
        for before, token in zip((None, *tokens), tokens, strict=False)
        if not (
            before
            and (before.kind, token.kind, token.value) == ("direction", "turn", 0)
            and _ONWARD.fullmatch(text, before.end, token.begin)
        )
    ]


def _within(spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Return whether a position is in one of `spans`, which are in order and do not overlap."""
    before = bisect_right(spans, at, key=itemgetter(0))
    return before > 0 and at < spans[before - 1][1]


def _tokens_of_match(match: re.Match[str], kind: str, unit: str) -> Iterator[_Token]:
    """Yield the distance, direction or turn of a match; two directions for an impossible one ("east west")."""
    begin, end = match.span()
    if kind in _TURNS:
        yield _Token("turn", begin, end, _TURNS[kind])
    elif kind in ("wind", "letter"):
        word = match[0].casefold()
        parts = re.findall(_COMPASS, word) if len(word) > 3 else [_LETTERS[letter] for letter in word]
        known = ["".join(parts)] if "".join(parts) in _WINDS else parts
        yield from (_Token("direction", begin, end, _WINDS[part]) for part in known)
    else:
        yield _Token("distance", begin, end, _distance(match, unit))


def _distance(match: re.Match[str], unit: str) -> float | None:
    """Return the distance of a match in `unit`; None if it gives two ("3 or 4 km")."""
    if match["low"] is not None:
        return None
    value = _amount(match["amount"] or match["digits"] or match["words"] or match["count"]) + (0.5 if match["half"] else 0.0)
    named = (match["unit"] or match["longunit"] or "unit").casefold()
    if named.startswith("unit"):
        return value
    measure = "km" if named[0] == "k" else "miles" if named.startswith("mi") else "metres"
    return value * _KILOMETRES[measure] / _KILOMETRES[unit]


def _amount(said: str) -> float:
    said = re.sub(r"\s+", " ", said.casefold())
    if "half" in said or said in ("another", "a couple of"):
        return 0.5 if "half" in said else 1.0 if said == "another" else 2.0
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+", said):
        said = said.replace(",", "")
    if said.startswith("."):
        said = f"0{said}"
    return number(said.replace(",", ".")) or 0.0


def _adjacent(text: str, tokens: list[_Token], k: int) -> bool:
    """Return whether a lone letter or number is right next to its counterpart ("E 4", "4 to the east")."""
    counterparts = ("direction", "turn") if tokens[k].kind == "distance" else ("distance",)
    for a, b in ((k - 1, k), (k, k + 1)):
        if a >= 0 and b < len(tokens) and (tokens[a].kind in counterparts or tokens[b].kind in counterparts):
            between = text[tokens[a].end : tokens[b].begin]
            if len(between) < 30 and _ADJACENT.fullmatch(between):
                return True
    return False


def _without_conversions(text: str, tokens: list[_Token]) -> list[_Token]:
    """Return the tokens without distances that only repeat the previous one in another unit: "4 km (2.5 miles)".

    Two that differ leave the leg unclear: "4 km or 2 km", "north or east".
    """
    kept: list[_Token] = []
    for token in tokens:
        if kept and token.kind == kept[-1].kind in _MEASURES and _OR.fullmatch(text[kept[-1].end : token.begin]):
            same = token.value is not None and kept[-1].value is not None and isclose(token.value, kept[-1].value, rel_tol=ROUNDED)
            kept[-1] = kept[-1]._replace(end=token.end, unclear=not same)
        elif kept and token.kind == kept[-1].kind == "distance" and _CONVERTED.fullmatch(text[kept[-1].end : token.begin]):
            kept[-1] = kept[-1]._replace(end=token.end)
        else:
            kept.append(token)
    return kept


def _without_totals(text: str, tokens: list[_Token]) -> list[_Token]:
    """Return the tokens without distances that are totals, or that are in a sentence about totals without a direction."""
    sentences = _Sentences(text)
    sums = sentences.with_any(_TOTAL) - {sentences.at(token.begin) for token in tokens if token.kind == "direction"}
    measures = [token for token in tokens if token.kind == "distance"]
    totals = {token for token in measures if sentences.at(token.begin) in sums or _IN_TOTAL.match(text, token.end)}
    return [token for token in tokens if token not in totals]


@final
class _Sentences:
    """The sentences of a reply, by number. The end of a line ends a sentence."""

    STRICT = re.compile(r"\n+|(?<=[.!?])[\"')\u201d]*\s+(?=\(?[A-Z\x1e])|;\s")
    LOOSE = re.compile(STRICT.pattern.removesuffix(r"|;\s"))

    def __init__(self, text: str, ends: re.Pattern[str] = STRICT) -> None:
        self._text = text
        self._begins = [0, *(match.end() for match in ends.finditer(text)), len(text)]

    def at(self, position: int) -> int:
        return bisect_right(self._begins, position, hi=len(self._begins) - 1) - 1

    def with_any(self, pattern: re.Pattern[str]) -> set[int]:
        """Return the sentences that match the pattern."""
        return {k for k in range(len(self._begins) - 1) if pattern.search(self._text, self._begins[k], self._begins[k + 1])}


# ---- tokens -> legs

_UNPAIRED_COST = 15.0
"""Cost of leaving a number or a direction unpaired. A pair costs the words and breaks between its two tokens."""

_STOP = re.compile(r"[.!?;](?=\s|$)|\b(?:then|next|finally|afterwards)\b|from there", re.IGNORECASE)


def _pair_tokens(text: str, tokens: list[_Token]) -> list[Leg]:
    """Pair each distance with a neighbouring direction so that the total cost is minimal.

    An unpaired direction is a leg without a distance. An unpaired distance is not a leg.
    """
    costs, pairs = [0.0], [False]
    for k in range(1, len(tokens) + 1):
        alone = costs[k - 1] + _UNPAIRED_COST
        paired = costs[k - 2] + _pair_cost(text, tokens[k - 2], tokens[k - 1]) if k > 1 else alone
        costs.append(min(alone, paired))
        pairs.append(paired < alone)
    legs: list[Leg] = []
    k = len(tokens)
    while k > 0:
        group = tokens[k - 2 : k] if pairs[k] else tokens[k - 1 : k]
        k -= len(group)
        way = next((token for token in group if token.kind != "distance"), None)
        if way is None or (len(group) == 1 and way.kind == "turn" and not way.value):  # "continue" alone says nothing
            continue
        measure = next((token for token in group if token.kind == "distance"), None)
        unclear = any(token.unclear for token in group) or (measure is not None and measure.value is None)
        distance = measure.value if measure and not unclear else None
        leg = Leg(way.value or 0.0, distance, group[0].begin, group[-1].end, turn=way.kind == "turn", unclear=unclear)
        legs.append(leg)
    return legs[::-1]


_GOES_ON = re.compile(r",|\band\b")


def _carry_directions(text: str, tokens: Sequence[_Token]) -> Iterator[_Token]:
    """Yield the tokens, repeating the direction before each further distance to a place: "north 2 km (Mill), 1 km (Pier)"."""
    way: _Token | None = None  # the direction of the current sentence, if it has only one
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        if token.kind in ("direction", "turn"):
            way = token if token.kind == "direction" else token._replace(value=0.0)
        elif before and way and _STOP.search(text, before.end, token.begin):
            way = None
        kinds = [each.kind for each in (before, token, after) if each]
        if way and before and kinds == ["place", "distance", "place"] and _GOES_ON.search(text, before.end, token.begin):
            yield way._replace(begin=token.begin, end=token.begin)
        yield token


def _pair_cost(text: str, a: _Token, b: _Token) -> float:
    """Return the cost of the words, commas, sentences and steps between two tokens; infinite for two of the same kind."""
    between = text[a.end : b.begin]
    if (a.kind == "distance") == (b.kind == "distance") or len(between) > 300:
        return float("inf")
    cost = len(re.findall(r"\w+", between)) + 2.0 * between.count(",") + 8.0 * len(_STOP.findall(between))
    cost += 6.0 * between.count("\n") + 8.0 * between.count("\n\n") + 16.0 * between.count("\x1e")
    cost += 2.0 if between.count(")") > between.count("(") else 0.0
    if "turn" in (a.kind, b.kind):
        cost += 8.0 if not re.search(r"[.!?;\n]", between) else float("inf")
    return cost


# ---- where each leg begins and ends

_PENDING, _AFTER, _TIGHT, _FIRM = 1, 2, 3, 4
"""How certain it is that a leg ends at a place: named before it, after it, right before it ("Mill (2 km north)"), "to the Mill"."""

_ARROWS = r"->|=>|\u2192|\u27a1\ufe0f?"
_FROM = re.compile(
    r"""\b(?:from | leav(?:e|ing) | exit(?:ing)? | depart(?:ing)?
    | (?:start|begin)(?:s|ing|ning)?(?:\ off|\ out)?(?::|\ at|\ from|\ in|\ with)?
    | (?:once|while|when\ you\ are)\ at | at | after(?:\ \w+)?)\s*(?:the\s+)?$""",
    re.IGNORECASE | re.VERBOSE,
)
_TO = re.compile(
    rf"""(?:\b(?:to | towards? | into | until | till | reach\w* | find | see | visit\w* | meet | arriv\w+\ (?:at|in)
        | (?<!once\ you\ )(?<!when\ you\ )(?:are|be)\ (?:now\ )?at | you['\u2019]re\ (?:now\ )?at) | {_ARROWS})\s*
    (?:you\ (?:reach|get\ to|arrive\ at|find)\ )?(?:the\s+)?$""",
    re.IGNORECASE | re.VERBOSE,
)
_OF = re.compile(rf"\b(?:(?:{_COMPASS})\w*|[NESW]|{_LONG_UNIT})\s+of\s+(?:the\s+)?$", re.IGNORECASE)
_LINK = re.compile(rf"\s*(?:\bto\b|-->|{_ARROWS}|[\u2013\u2014>-])\s*(?:the\s+)?", re.IGNORECASE)
_TIGHTLY = re.compile(r"\s*(?:[(:,\u2013\u2014-]|is|lies|is located)\s*(?:(?:go|head|travel|walk|about|at)\s+)?", re.IGNORECASE)
_BREAK = re.compile(r"\bthen\b|,|\band\b|\bnext\b", re.IGNORECASE)
_AND = re.compile(r"[\s,]*(?:and|then|by|\+|&)?[\s,]*(?:another\s)?", re.IGNORECASE)
_MORE = re.compile(r"\b(?:another|more|further|additional|again|then|next|also|finally|continue)\b", re.IGNORECASE)
_OVERALL = re.compile(
    r"""\b(?:net | overall | (?:in\ )?total | displacement | end(?:s|ed)?\ up | crow\ flies | straight[-\ ]line | relative\ to
    | final\ (?:position|location) | effectively | in\ effect | bee-?line | short-?cut
    | direct(?:ly)?\b[^.\n]{0,30}\b(?:would|just|only|mere(?:ly)?) )\b""",
    re.IGNORECASE | re.VERBOSE,
)


@final
class _Annotator:
    """Goes through a reply once and fills in the details of each leg: places, list items, asides, restarts."""

    def __init__(self, text: str, tokens: list[_Token], legs: list[Leg], start: str) -> None:
        self.text, self.tokens, self.legs, self.start = text, tokens, legs, start
        self.sentences = _Sentences(text)
        self.passages = _Sentences(text, _Sentences.LOOSE)
        self.overall = self.passages.with_any(_OVERALL)
        self.origin: str | None = None
        """Where the next leg begins."""
        self.place: _Token | None = None
        """Where the next leg seems to end."""
        self.last: int | None = None
        """The previous leg, as long as places may belong to it."""
        self.items, self.any_legs, self.restarts, self.retracts = 0, False, False, False

    def run(self) -> None:
        roles = _chain_places(self.text, self.tokens)
        if stops := _between(self.tokens, self.legs, self.start):
            for leg, place in zip(self.legs, stops, strict=True):
                leg.place, leg.more = place, True
            return
        events: list[tuple[int, _Token | None, int]] = [(leg.begin, None, k) for k, leg in enumerate(self.legs)]
        events += [(token.begin, token, 0) for token in self.tokens if token.kind in ("place", "item", "restart", "retract")]
        for begin, token, k in sorted(events, key=lambda event: event[0]):
            if token is None:
                self._leg(k)
            elif token.kind != "place":
                self._mark(token)
            elif begin in roles:
                self._in_chain(token, roles[begin])
            else:
                self._place(token)

    def _leg(self, k: int) -> None:
        leg = self.legs[k]
        leg.item, leg.restarts, leg.retracts = self.items, self.restarts, self.retracts
        leg.sentence = self.sentences.at(leg.begin)
        leg.aside = self.passages.at(leg.begin) in self.overall
        leg.more = bool(_MORE.search(self.text[max(0, leg.begin - 30) : leg.end + 10]))
        if leg.turn and leg.distance is None:
            return
        leg.origin = self.origin
        if self.place is not None:
            tight = _TIGHTLY.fullmatch(self.text, self.place.end, leg.begin)
            leg.place, leg.firm = self.place.place, _TIGHT if tight else _PENDING
        self.origin, self.place, self.last = None, None, k
        self.any_legs, self.restarts, self.retracts = True, False, False

    def _mark(self, token: _Token) -> None:
        """Record a list item or a phrase that starts over. A list that counts from 1 after some legs starts over too."""
        self.items += token.kind == "item"
        self.retracts = self.retracts or token.kind == "retract"
        if self.any_legs and (token.kind != "item" or token.value == 1):
            self.restarts, self.any_legs = True, False
        self.origin, self.place, self.last = None, None, None

    def _near(self, token: _Token) -> Leg | None:
        """Return the previous leg if `token` is in its sentence."""
        if self.last is None:
            return None
        leg = self.legs[self.last]
        near = token.begin - leg.end <= MAX_APART and self.sentences.at(leg.end - 1) == self.sentences.at(token.begin)
        return leg if near else None

    def _in_chain(self, token: _Token, role: str) -> None:
        near = self._near(token)
        if role == "from" and near is not None and near.origin is None and near.place is None and not self._broken(near, token):
            near.origin = token.place  # "4 km east from the Mill to the Pier"
        elif role == "to" and near is not None and near.origin is not None and near.place is None:
            near.place, near.firm = token.place, _FIRM
        elif role == "to":
            self.place, self.last = token, None
        else:
            self.origin, self.place, self.last = token.place if role else None, None, None

    def _place(self, token: _Token) -> None:
        near = self._near(token)
        since = self.text[near.end : token.begin] if near is not None else ""
        if near is not None and near.place is not None and ")" in since.partition("(")[0]:
            near = None  # "Mill (2 km north) -> Pier": the next leg ends at the pier
        before = self.text[max(0, token.begin - 40) : token.begin]
        if near is not None and not near.described and _OF.search(before):
            self._anchor(near, token.place)
        elif _TO.search(before):
            self._to(near, token, _FIRM)
        elif _FROM.search(before):
            if near is not None and near.origin is None and not self._broken(near, token):
                near.origin = token.place
            else:
                self.origin = token.place
        elif token.place != self.start:
            self._to(None if near is not None and (near.described or (near.place and "," in since)) else near, token, _AFTER)

    def _to(self, near: Leg | None, token: _Token, firm: int) -> None:
        if near is not None and near.firm < firm:
            near.place, near.firm = token.place, firm
        elif token.place != self.start:
            self.place = token

    def _broken(self, near: Leg, token: _Token) -> bool:
        """Return whether something else begins between a leg and a place."""
        return bool(_BREAK.search(self.text, near.end, max(near.end, token.begin)))

    def _anchor(self, leg: Leg, place: str) -> None:
        """Record that `leg` is described relative to `place`, and so is the previous leg if they are joined by "and"."""
        leg.described = True
        if leg.origin is not None and leg.place is None:  # "at the Mill, 2 km north of the Pier"
            leg.place, leg.origin = leg.origin, None
        before = self.legs[self.last - 1] if self.last else leg
        if before is not leg and before.origin is None and before.firm < _FIRM and _AND.fullmatch(self.text, before.end, leg.begin):
            before.origin, before.described, leg.joined = place, True, True
            leg.place, leg.firm, before.place = before.place or leg.place, before.firm, None
        else:
            leg.origin = place


def _between(tokens: Sequence[_Token], legs: Sequence[Leg], start: str) -> list[str]:
    """Return the places where legs end if each leg is between two places, beginning with the first one; otherwise an empty list."""
    places = [token for token in tokens if token.kind == "place"]
    names = [token.place for token in places]
    if len(names) != len(legs) + 1 or names[0] != start or len(set(names)) < len(names):
        return []
    apart = all(one.end <= leg.begin and leg.end <= other.begin for (one, other), leg in zip(pairwise(places), legs, strict=True))
    return names[1:] if apart and len(tokens) == len(names) + 2 * len(legs) and not any(leg.turn for leg in legs) else []


def _chain_places(text: str, tokens: list[_Token]) -> dict[int, str]:
    """Return the roles of places joined by "to" or arrows, by their positions.

    A pair is the "from" and "to" of a leg. The places of a longer chain, which is not a single leg, have the role "".
    """
    chains: list[list[_Token]] = []
    last: _Token | None = None
    for token in tokens:
        if token.kind == "place":
            if last is not None and last.kind == "place" and _LINK.fullmatch(text, last.end, token.begin):
                chains[-1].append(token)
            else:
                chains.append([token])
        last = token
    roles: dict[int, str] = {}
    for chain in chains:
        if len(chain) == 2:
            roles |= {chain[0].begin: "from", chain[1].begin: "to"}
        elif len(chain) > 2:
            roles |= dict.fromkeys((token.begin for token in chain), "")
    return roles


def _merge_legs(legs: list[Leg]) -> list[Leg]:
    """Return the legs, merging a direction that is announced first ("Head east: 2 km east to the Mill") into its leg."""
    merged: list[Leg] = []
    for leg in legs:
        if not merged or not _one_leg(merged[-1], leg):
            merged.append(leg)
            continue
        first = merged[-1]
        measured, named = leg if first.distance is None else first, max(first, leg, key=lambda leg: leg.firm)
        measured.origin, measured.place, measured.firm = first.origin or leg.origin, named.place, named.firm
        measured.described = first.described and leg.described
        measured.restarts, measured.retracts, measured.more = first.restarts, first.retracts, first.more
        merged[-1] = measured
    return merged


def _one_leg(a: Leg, b: Leg) -> bool:
    """Return whether one of two neighbouring legs only announces the direction of the other."""
    if (a.distance is None) == (b.distance is None) or a.turn or b.turn or a.bearing != b.bearing or a.item != b.item or b.restarts:
        return False
    apart = a.place and b.place and a.place != b.place and min(a.firm, b.firm) > _PENDING
    return not apart and not (a.origin and b.origin and a.origin != b.origin)
