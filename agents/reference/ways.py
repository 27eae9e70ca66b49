"""Ways: statements of how far and in which direction one place lies from another, and how they lead from one to the next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from longspan.agents.reference.answers import names
from longspan.agents.reference.language import SHORT

__all__ = ["Leg", "ends", "leg", "way"]

_BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}
_DIRECTION = re.compile(r"\b((?:north|south)[ -]?(?:east|west)|north|south|east|west)(?:wards?|erly|ern)?\b", re.IGNORECASE)
_DISTANCE = re.compile(
    r"\b(?:[0-9]+(?:[.,][0-9]+)?|an?|half an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|fifty|hundred)[ -]?"
    r"(?:kilomet(?:re|er)s?|met(?:re|er)s?|miles?|km|m|mi|yards?|yd|feet|ft|blocks?|steps?|paces?|streets?|minutes?|hours?)\b",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"\b(?:of|from|leav(?:e|ing)|left|off|past|beyond|start(?:s|ing)?(?: at)?:?|at|behind|pass)\s+(?:(?:the|a|an|my|our|your)\s+)?$",
    re.IGNORECASE,
)


class Leg(NamedTuple):
    """What one statement tells of two places: `place` lies `distance` to the `direction` of `origin`, where it says so ("" else)."""

    origin: str
    place: str
    direction: str
    distance: str
    text: str

    def told(self, start: str) -> str:
        """The leg as a direction for one who stands at `start`; in the words of the statement where that lacks a part."""
        if not self.distance:
            return self.text
        back = re.sub("|".join(_BACK), lambda match: _BACK[match[0]], self.direction)
        goal, direction = (self.place, self.direction) if start == self.origin else (self.origin, back)
        return f"From the {start}, go {self.distance} {direction} to the {goal}."


def leg(text: str, known: Iterable[str]) -> Leg | None:
    """The leg that a statement tells: it names two places and a direction. Where it does not say which of them
    the direction counts from, that is the one told of before (`known`), else the one it names first.
    """
    direction = _DIRECTION.search(text) if len(text) <= SHORT else None
    found = list(dict.fromkeys(names(text, frozenset())))
    if direction is None or len(found) < 2:
        return None
    old = [name for name in found if name in known]
    marked = [name for name in found if _FROM.search(text[: text.index(name)])]
    origin = next(iter([*(marked if len(marked) == 1 else []), *old, *marked, *found]))
    place = next(name for name in [*(name for name in found if name not in old), *found] if name != origin)
    distance = _DISTANCE.search(text)
    return Leg(origin, place, direction[1].lower(), distance[0] if distance else "", text)


def ends(question: str, legs: Iterable[Leg]) -> tuple[str, str] | None:
    """Where the way that a question asks for begins and where it ends, among the places of `legs`; None where it names no two."""
    places = {name for each in legs for name in each[:2]}
    asked = [name for name in dict.fromkeys(names(question, frozenset())) if name in places]
    if len(asked) < 2:
        return None
    first, last = asked[0], asked[-1]
    turned = _FROM.search(question[: question.index(last)]) and not _FROM.search(question[: question.index(first)])
    return (last, first) if turned else (first, last)


def way(legs: list[Leg], start: str, goal: str) -> list[str]:
    """The directions from `start` to `goal` by the newest of `legs` that lead there; none for no way. The newest leg stands last."""
    links: dict[str, dict[str, Leg]] = {}
    for each in reversed(legs):
        links.setdefault(each.origin, {}).setdefault(each.place, each)
        links.setdefault(each.place, {}).setdefault(each.origin, each)
        if {start, goal} <= links.keys() and (found := _path(links, start, goal)):
            return [links[a][b].told(a) for a, b in pairwise(found)]
    return []


def _path(links: Mapping[str, Mapping[str, Leg]], start: str, goal: str) -> list[str]:
    """The places on the shortest way."""
    before = {start: ""}
    for place in (queue := [start]):
        for following in links[place]:
            if following not in before:
                before[following] = place
                queue.append(following)
    path = [goal] if goal in before else []
    while path and before[path[0]]:
        path.insert(0, before[path[0]])
    return path
