"""Locations (GoodAI, section 3.2): describe a town place by place, and ask for the way from the first to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm.locations.directions import BEARINGS, read_legs
from longspan.scenarios.ltm.locations.routes import HOME, Point, build_routes, displacement, settle_route
from longspan.scenarios.ltm.paper_rules import Rules
from longspan.scenarios.ltm.similar import Similar, count_similar, draw_people, with_asides
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.queries import Holds, Query, statement
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script

__all__ = ["Locations"]

MAX_LEG = 4
"""Maximum distance between two consecutive places, in km."""
LIKELY = 45
"""Of towns with at least three legs, a share of 1 / (LIKELY * legs) ends at the likeliest point, which is the nearest one. Measured over
20,000 towns of each size."""

FIRST = 16
NEXT = 11
"""Number of possible first legs, and the approximate number of legs that can follow another."""

_STEPS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
_BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}


SWAPPED = 2
"""Number of misplaced places that make a route a different one."""


@final
class Locations(Scenario):
    """Describe `places` places, each 1 to 4 km north, south, east or west of the one before; then ask for the route past all of them.

    After the last place, `similar` legs between two of these places are stated for other people's towns, where they differ.
    """

    name: ClassVar[str] = "locations"
    skills: ClassVar[tuple[Skill, ...]] = ("spatial memory", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"town"})

    places: int = Field(default=6, ge=2, le=30)
    similar: Similar = 0
    rules: Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        names = random.sample(load_words("locations"), self.places)
        legs = _walk(random, self.places - 1)
        lines = [Line(wording.say(random, "first", place=names[0]), needle=False)]  # no needle, because the question names the place too
        lines += [
            Line(wording.say(random, "next", place=place, before=before, way=way, distance=f"{km} km"))
            for (before, place), (way, km) in zip(pairwise(names), legs, strict=True)
        ]
        question = wording.say(random, "question", first=names[0], last=names[-1], unit="kilometres")
        lines.append(Line(question, ideal=_directions(names, legs), asks=True))
        facts: dict[str, Any] = {"places": names, "legs": [list(leg) for leg in legs], "unit": "km"}
        farewell = wording.say(random, "farewell")
        # Drawn last, so that the rest of the test is the same with and without them.
        if self.similar:
            asides, facts["similar"] = [], []
            for who in draw_people(random, self.similar):
                place = random.randrange(1, self.places)
                way, km = random.choice([(way, km) for way in _STEPS for km in range(1, MAX_LEG + 1) if (way, km) != legs[place - 1]])
                leg = {"place": names[place], "before": names[place - 1], "way": way, "distance": f"{km} km"}
                asides.append(wording.say(random, "similar", who=who, **leg))
                facts["similar"].append([who, place, way, km])
            lines = with_asides(lines, asides)
        return Script(facts=facts, lines=lines, farewell=farewell)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return count_similar(facts)

    def chance(self, facts: Mapping[str, Any]) -> float:
        legs = len(facts["legs"])
        if self.rules == "longspan":
            return 1 / (FIRST * float(NEXT) ** (legs - 1))
        return 1 / LIKELY / legs if legs > 2 else 1 / 44 if legs == 2 else 1 / FIRST

    def guess(self, message: str) -> str | None:
        """Return legs that a town can have.

        With the paper's rules, return the most frequent position of the last place: 5 km straight ahead after two legs, otherwise next
        to the first place.
        """
        asked = Wording(self.name).read("question", message)
        if not asked:
            return None
        way = ", then ".join(f"{1 + leg % MAX_LEG} km {('north', 'east')[leg % 2]}" for leg in range(self.places - 1))
        if self.rules == "paper":
            way = "1 km north and then 1 km east" if self.places > 3 else f"{5 if self.places == 3 else 1} km north"
        return f"From the {asked['first']}, go {way} to the {asked['last']}."

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Follow the route in the reply. It must have a leg to each of the town's places, in order, and end at the last one.

        No two of the places that it names may be misplaced. With the paper's rules, only the end counts. `facts`: "places", the names in
        order; "legs", direction and distance of each place but the first from the one before; "unit", "km" or "miles", for distances
        without a unit.
        """
        answer = record.answer
        places, unit = list(facts["places"]), facts["unit"]
        town = list(accumulate((displacement(BEARINGS[way], distance) for way, distance in facts["legs"]), Point.plus, initial=HOME))
        route, trouble = settle_route(build_routes(read_legs(answer.reply, places, unit), places[0]), places[-1])
        right = False
        if route is None:
            result = f"the reply {trouble}"
        elif not route.end.near(town[-1]):
            whose = [who for who, place, way, km in facts.get("similar", ()) if route.end.near(_elsewhere(facts["legs"], place, way, km))]
            result = f"the reply's route ends {_offset(route.end, unit)} of it"
            result += f", as if a way in the town of the user's {whose[0]} were in it" if whose else ""
        else:
            astray = [name for name, at in zip(places, town, strict=True) if route.misplaces(name, at)]
            missed = route.find_missed(town)
            right = len(astray) < SWAPPED and (missed is None or self.rules == "paper")
            result = "the reply's route ends there"
            if len(astray) >= SWAPPED:
                result += f", but has the {astray[0]} and the {astray[1]} elsewhere"
            else:
                result += ", place by place" if missed is None else f" without a leg to the {places[missed]}"
        reason = f"the {places[-1]} is {_offset(town[-1], unit)} of the {places[0]}; {result}"
        grade = Grade(score=float(right), reason=reason, turns=(answer.turn,))
        return grade if route is not None else grade.unless(record, self._query(answer.reply, facts, _offset(town[-1], unit)))

    def _query(self, reply: str, facts: Mapping[str, Any], offset: str) -> Query[Holds]:
        """Return a query to a judge about directions that the rules cannot follow."""
        places, unit = facts["places"], facts["unit"]
        ends = f"Whoever follows the directions in the text from the {places[0]} ends at a point {offset} of it, and nowhere else."
        if self.rules == "paper":
            return statement(ends, reply)
        legs = ", ".join(
            f"{distance} {unit} {way} to the {place}" for place, (way, distance) in zip(places[1:], facts["legs"], strict=True)
        )
        return statement(f"The text gives these legs one by one, whether or not it names the places, and no others: {legs}.", reply)


def _walk(random: Random, legs: int) -> list[tuple[str, int]]:
    """Draw a walk of `legs` legs over a grid of kilometres. It never touches or crosses itself.

    Consecutive legs in the same direction differ in length, and no walk consists of two equal halves. So a reply that repeats itself is
    distinguishable from one that repeats a leg.
    """
    while True:
        walk: list[tuple[str, int]] = []
        here, been = (0, 0), {(0, 0)}
        while len(walk) < legs:
            way, km = random.choice(list(_STEPS)), random.randint(1, MAX_LEG)
            east, north = _STEPS[way]
            passed = [(here[0] + k * east, here[1] + k * north) for k in range(1, km + 1)]
            if (walk and (way == _BACK[walk[-1][0]] or walk[-1] == (way, km))) or not been.isdisjoint(passed):
                if random.random() < 0.05:
                    break  # the walk may be stuck: start again
                continue
            walk.append((way, km))
            here, been = passed[-1], been | set(passed)
        if len(walk) == legs and (legs % 2 or walk[: legs // 2] != walk[legs // 2 :]):
            return walk


def _elsewhere(legs: Sequence[Sequence[Any]], place: int, way: str, km: float) -> Point:
    """Return the end of a route whose leg to a place was taken from another town."""
    own = [displacement(BEARINGS[each], distance) for each, distance in legs]
    own[place - 1] = displacement(BEARINGS[way], km)
    return Point(sum(leg.east for leg in own), sum(leg.north for leg in own))


def _directions(names: Sequence[str], legs: Sequence[tuple[str, int]]) -> str:
    """Return the ideal reply."""
    ways = [f"{km} km {way} to the {place}" for place, (way, km) in zip(names[1:], legs, strict=True)]
    return f"From the {names[0]}, go {', then '.join(ways)}."


def _offset(point: Point, unit: str) -> str:
    """Return a point's position relative to the first place, e.g. "3 km east and 2 km south"."""
    parts = [(abs(point.east), "east" if point.east > 0 else "west"), (abs(point.north), "north" if point.north > 0 else "south")]
    return " and ".join(f"{size:.3g} {unit} {way}" for size, way in parts if size >= 0.005) or f"0 {unit}"
