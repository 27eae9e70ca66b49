"""Follow the legs of directions: the routes that a reply describes, their ends and the places on the way.

A route that is described twice counts once. An alternative is a separate route.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, final

from longspan.scenarios.ltm.locations.directions import BEARINGS, Leg

__all__ = ["Point", "Route", "build_routes", "displacement", "name_bearing", "settle_route"]

TOLERANCE = 0.25
"""Maximum distance between two points that count as one. It allows for rounded conversions."""

MAX_ROUTES = 50
MAX_LEGS = 500
"""Replies with more routes or legs than this are not accepted as directions."""


class Point(NamedTuple):
    """A position relative to the first place, in the unit of distance."""

    east: float
    north: float

    def near(self, other: Point) -> bool:
        return math.dist(self, other) <= TOLERANCE

    def plus(self, other: Point) -> Point:
        return Point(self.east + other.east, self.north + other.north)


HOME = Point(0.0, 0.0)


def displacement(bearing: float, distance: float) -> Point:
    """Return the displacement of `distance` in the direction of `bearing`, in degrees clockwise from north."""
    angle = math.radians(bearing)
    return Point(distance * math.sin(angle), distance * math.cos(angle))


def name_bearing(bearing: float) -> str:
    """Return the name of the nearest of the eight directions."""
    return min(BEARINGS, key=lambda name: abs((BEARINGS[name] - bearing + 180) % 360 - 180))


@final
@dataclass(slots=True)
class Route:
    """A route that a reply describes: its points from HOME on, and the `problem` that prevents following it ("" if none)."""

    points: list[Point] = field(default_factory=lambda: [HOME])
    at: dict[str, int] = field(default_factory=dict)
    """For each place, the index of the point where the text says it is."""
    problem: str = ""

    @property
    def end(self) -> Point:
        return self.points[-1]

    @property
    def heading(self) -> float | None:
        """The direction of travel at the end, in degrees clockwise from north; None before the first leg."""
        if len(self.points) < 2:
            return None
        a, b = self.points[-2:]
        return math.degrees(math.atan2(b.east - a.east, b.north - a.north))

    def upto(self, point: int) -> Route:
        """Return the part of the route up to that point."""
        return Route(self.points[: point + 1], {name: k for name, k in self.at.items() if k <= point}, self.problem if point else "")

    def begins(self, other: Route) -> bool:
        """Return whether this route is a proper beginning of `other`."""
        return len(self.points) < len(other.points) and all(a.near(b) for a, b in zip(self.points, other.points, strict=False))

    def ends_at(self, place: str) -> bool:
        """Return whether the text says that the route ends at that place."""
        return self.at.get(place) == len(self.points) - 1

    def misplaces(self, place: str, point: Point) -> bool:
        """Return whether the text says that a place is on the route, but not at that point."""
        return place in self.at and not self.points[self.at[place]].near(point)

    def find_missed(self, points: Iterable[Point]) -> int | None:
        """Return the index of the first point that no leg ends at, visiting them in order; None if all are reached."""
        at = 0
        for number, point in enumerate(points):
            found = next((k for k in range(at, len(self.points)) if self.points[k].near(point)), None)
            if found is None:
                return number
            at = found
        return None


def build_routes(legs: list[Leg], start: str) -> list[Route]:
    """Return the routes that `legs` describe, in order; empty without legs, and a single one with a problem if there are too many legs.

    Sentences about the whole route ("overall, 2 km west") count only if there is nothing else.
    """
    if len(legs) > MAX_LEGS:
        return [Route(problem=f"gives more than {MAX_LEGS} legs")]
    steps = [leg for leg in legs if not leg.aside]
    return _Walk(start).follow(steps) or _Walk(start).follow(legs)


def settle_route(described: list[Route], goal: str) -> tuple[Route | None, str]:
    """Return the one route that a reply describes, or None and the reason why there is not exactly one.

    Routes with the same end agree. A route also agrees with one that it is the beginning of, unless the text says that it ends at the
    `goal`. A route that cannot be followed counts only if none can.
    """
    if not described:
        return None, "gives no directions"
    walkable = [route for route in described if not route.problem]
    distinct = list({tuple((round(east, 2), round(north, 2)) for east, north in route.points): route for route in walkable}.values())
    if not distinct:
        return None, described[0].problem
    if len(distinct) > MAX_ROUTES:
        return None, f"gives more than {MAX_ROUTES} different routes"
    complete = [route for route in distinct if route.ends_at(goal) or not any(route.begins(other) for other in distinct)]
    if any(not route.end.near(complete[0].end) for route in complete):
        return None, "gives routes that end at different points"
    return max(complete, key=lambda route: len(route.points)), ""


@final
class _Walk:
    """Follows legs, and starts another route wherever the text returns to a place that it has left."""

    def __init__(self, start: str) -> None:
        self.start = start
        self.finished: list[Route] = []
        self.route = Route(at={start: 0})
        self.turned = 0.0
        self.legs: list[Leg] = []
        """The legs followed on this route."""

    def follow(self, legs: Iterable[Leg]) -> list[Route]:
        dropped = False
        for leg in legs:
            if leg.retracts:
                self.finished, self.route = [], Route(at={self.start: 0})
                self.legs = []
            elif leg.restarts:
                self._branch(0)
            if leg.joined and dropped:
                continue
            dropped = not self._arrive_at_origin(leg)
            if not dropped:
                self._step(leg)
        self._undouble()
        return [route for route in (*self.finished, self.route) if len(route.points) > 1 or route.problem]

    def _branch(self, point: int) -> None:
        """Keep the route so far, and continue with another one from one of its points."""
        self._undouble()
        self.finished.append(self.route)
        self.route = self.route.upto(point)
        self.legs = self.legs[:point]
        self.turned = 0.0

    def _arrive_at_origin(self, leg: Leg) -> bool:
        """Go to the leg's origin, if the text has been there. Return False for a leg that only describes a location."""
        if leg.origin is None:
            return True
        route = self.route
        if len(route.points) == 1 and leg.origin not in route.at and self.finished and leg.origin in self.finished[-1].at:
            self.route = self.finished[-1].upto(self.finished[-1].at[leg.origin])
            return True
        point = route.at.get(leg.origin)
        if point is None and leg.described:
            return len(route.points) - 1 not in route.at.values()
        if point is None or route.points[point].near(route.end):
            if point == 0 and route.problem:
                self._branch(0)
            return True
        if not leg.described:
            self._branch(point)
        return not leg.described

    def _step(self, leg: Leg) -> None:
        route = self.route
        if leg.turn and leg.distance is None and not leg.unclear:
            self.turned += leg.bearing
            return
        if leg.turn and route.heading is None:
            route.problem = route.problem or "turns before it says which way to face"
            return
        bearing = (route.heading or 0.0) + self.turned + leg.bearing if leg.turn else leg.bearing
        self.turned = 0.0
        if leg.distance is None:
            self._follow_unmeasured(leg, bearing)
            return
        way = displacement(bearing, leg.distance)
        if self._restates(leg, way):
            if leg.place:
                route.at.setdefault(leg.place, len(route.points) - 1)
            return
        if self._starts_over(leg, way):
            self._branch(0)
            route = self.route
        if leg.distance == 0:
            return
        route.points.append(route.end.plus(way))
        self.legs.append(leg)
        if leg.place is not None and leg.place != self.start:
            route.at[leg.place] = len(route.points) - 1

    def _follow_unmeasured(self, leg: Leg, bearing: float) -> None:
        """Follow a leg without a distance, which is possible if it leads to a place that the route has visited."""
        route = self.route
        if leg.unclear:
            route.problem = route.problem or f"gives more than one distance or direction for the leg {name_bearing(bearing)}"
        elif leg.place is not None and leg.place in route.at:
            there = route.points[route.at[leg.place]]
            length = math.dist(there, route.end)
            if length and route.end.plus(displacement(bearing, length)).near(there):
                route.points.append(there)
                self.legs.append(leg)
        elif leg.place is not None:
            route.problem = route.problem or f"gives no distance for the leg {name_bearing(bearing)} to the {leg.place}"

    def _restates(self, leg: Leg, way: Point) -> bool:
        """Return whether the leg repeats the last one: "go 2 km east (2 km east) to the Mill"."""
        if not self.legs or len(self.route.points) < 2:
            return False
        last, (a, b) = self.legs[-1], self.route.points[-2:]
        if not a.plus(way).near(b) or (leg.place and last.place and leg.place != last.place):
            return False
        return (leg.place is not None and leg.place == last.place) or (leg.item == last.item and not leg.more)

    def _starts_over(self, leg: Leg, way: Point) -> bool:
        """Return whether the leg repeats the first one: to the same place, or after legs that only described locations."""
        if len(self.route.points) < 3 or not self.route.points[1].near(way):
            return False
        if leg.place is not None and self.route.at.get(leg.place) == 1:
            return True
        return not leg.described and leg.origin in (None, self.start) and all(leg.described for leg in self.legs)

    def _undouble(self) -> None:
        """Halve a route that is given twice in full, in separate sentences and with the same places."""
        half = len(self.legs) // 2
        first, second = self.legs[:half], self.legs[half:]
        if half < 2 or len(second) != half or len(self.route.points) != 2 * half + 1 or first[-1].sentence == second[0].sentence:
            return
        pairs = list(zip(first, second, strict=True))
        same = all((a.bearing, a.distance) == (b.bearing, b.distance) for a, b in pairs)
        if same and not any(a.place and b.place and a.place != b.place for a, b in pairs):
            self.route = self.route.upto(half)
