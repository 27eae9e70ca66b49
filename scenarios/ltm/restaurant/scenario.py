"""Restaurant (GoodAI, section 3.2): the agent is a guest; dishes run out and are mixed up, and a drink is to be recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.ltm.restaurant.guest import Talk, read_complaint, read_recall, read_talk
from longspan.scenarios.ltm.restaurant.menu import Item, Menu
from longspan.scenarios.ltm.restaurant.speaker import out_of_role
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.scenarios.shared.pages import about
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import Script, Segment
from longspan.simulator.stage import Stage

__all__ = ["Restaurant"]

POINTS: Final = 0.2
"""What each of the five decisions is worth."""
MAX_ORDER: Final = {True: 2, False: 4}
"""How many drinks (True) or dishes (False) an order may have: a guest who names more is reciting the menu."""
COURSES: Final = {"starters": 0.3, "mains": 0.45, "desserts": 0.25}
"""The share of each course in the dishes of a menu."""
RARE_WORDS: Final = 1.25
"""Names of dishes are rare words: they have this many times the tokens of prose of the same length."""
DISH: Final = "<dish>"
"""The placeholder in a waiter's line for what only the guest's replies decide."""


@final
class Restaurant(Scenario):
    """A waiter brings a menu, takes orders, runs out of a dish, serves a wrong one, and offers the first drink again.

    Each of these is a fifth of the score: playing the guest and ordering a drink; ordering a dish on the menu; choosing
    another when it is off; noticing the wrong dish; recalling the drink. Rules decide, and the judge where they cannot
    (without a judge, the rules' best guess). The scene ends early if a reply leaves nothing to continue with.
    """

    name: ClassVar[str] = "restaurant"
    skills: ClassVar[tuple[Skill, ...]] = ("conflicting information", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"restaurant"})
    early: ClassVar[bool] = False
    """The story has a fixed order: what is off depends on what was ordered."""

    drinks: int = Field(default=6, ge=3, le=10)
    dishes: int = Field(default=13, ge=8, le=24)

    def make(self, random: Random) -> Script:
        menu = _draw(random, self.drinks, self.dishes)
        wording = Wording(self.name)
        card = wording.say(random, "menu", **{course: ", ".join(names) for course, names in menu.items()})
        dishes = [name for course in COURSES for name in menu[course]]
        drink, dish, instead = random.choice(menu["drinks"]), *random.sample(menu["mains"], 2)
        lines = {
            "scene": wording.say(random, "scene", menu=card.replace("\n", "<br>")),
            "food": wording.say(random, "food"),
            "no_drink": wording.say(random, "no_drink"),
            "off": wording.say(random, "off", dish=DISH),
            "serve": wording.say(random, "serve", dishes=DISH),
            "sorry": wording.say(random, "sorry", dish=DISH),
            "again": wording.say(random, "again"),
        }
        return Script(
            facts={"drinks": menu["drinks"], "dishes": dishes, "guest": {"drink": drink, "dish": dish, "instead": instead}, "lines": lines},
            outline=_outline(lines, dishes),
            farewell=wording.say(random, "farewell"),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        return POINTS  # the drink is ordered from a menu in the same message

    async def play(self, stage: Stage) -> None:
        await _Visit(stage).run()


def _draw(random: Random, drinks: int, dishes: int) -> dict[str, list[str]]:
    """Draw a menu by course. No two items can be named by the same word."""
    lists = words("restaurant")
    shares = {"drinks": drinks, **{course: round(dishes * share) for course, share in COURSES.items()}}
    shares["mains"] += dishes - sum(shares[course] for course in COURSES)
    taken: set[str] = set()
    menu: dict[str, list[str]] = {}
    for course, number in shares.items():
        chosen: list[str] = []
        for name in random.sample(lists[course], len(lists[course])):
            item = Item.called(name, course == "drinks")
            if len(chosen) < number and not item.enough & taken:
                chosen.append(name)
                taken |= item.enough
        menu[course] = chosen
    return menu


def _outline(lines: Mapping[str, str], dishes: Sequence[str]) -> list[Segment]:
    """Return the most that the waiter says at each time: messages that name dishes are counted with the longest names."""
    longest = sorted(map(about, dishes), reverse=True)
    plate, meal = longest[0], sum(longest[:3])
    tokens = (
        about(lines["scene"]),
        about(lines["no_drink"]) + about(lines["food"]),
        about(lines["off"]) + plate,
        about(lines["serve"]) + meal,
        about(lines["sorry"]) + meal,
        about(lines["again"]),
    )
    return [Segment(None, round(RARE_WORDS * size), 1) for size in tokens]


@final
class _Visit:
    """One guest's visit. Needles: 0 the menu and the drink ordered, 1 the food, 2 what replaces the dish that is off."""

    def __init__(self, stage: Stage) -> None:
        facts = stage.facts
        self.stage = stage
        self.menu = Menu(facts["drinks"], facts["dishes"])
        self.dishes: list[str] = list(facts["dishes"])
        self.lines: Mapping[str, str] = facts["lines"]
        self.guest: Mapping[str, str] = facts["guest"]
        self.drinks: list[str] = []
        self.order: list[str] = []
        self.chosen: list[str] = []

    async def run(self) -> None:
        if not await self.drink():
            return
        await self.stage.wait()
        if not await self.food():
            return
        off = self.stage.random.choice(self.order)
        await self.stage.wait()
        if not await self.instead(off):
            return
        await self.stage.wait()
        if not await self.plate(off):
            return
        await self.stage.wait()
        await self.stage.say(self.lines["sorry"].replace(DISH, _join(self.order)), needle=False, ideal="Thank you.")
        if self.drinks:
            await self.stage.wait()
            await self.recall()

    async def drink(self) -> bool:
        """Take the order for a drink. Return whether the guest asked for something, on the menu or not."""
        reply = await self.stage.ask(self.lines["scene"], needs=(), needle=True, ideal=f"{_article(self.guest['drink'])}, please.")
        if self.broken("drink", reply):
            return False
        self.drinks, talk = await self.wanted(reply, drinks=True)
        if self.drinks:
            self.award("drink", f"the guest orders {_join(self.drinks)}", right=True)
            return True
        self.award("drink", self.missed(talk, "no drink on the menu is ordered", drinks=True), right=False)
        return talk.request

    async def food(self) -> bool:
        """Take the order for food. Return whether there is one."""
        line = self.lines["food"] if self.drinks else f"{self.lines['no_drink']} {self.lines['food'].removeprefix('Waiter: ')}"
        reply = await self.stage.ask(line, needs=(0,), needle=True, ideal=f"I'll have the {_lower(self.guest['dish'])}, please.")
        if self.broken("food", reply):
            return False
        self.order, talk = await self.wanted(reply, drinks=False)
        why = f"the guest orders {_join(self.order)}" if self.order else self.missed(talk, "no dish on the menu is ordered")
        self.award("food", why, right=bool(self.order))
        return bool(self.order)

    async def instead(self, off: str) -> bool:
        """Ask for another dish instead of the one that is off. Return whether anything is left to serve."""
        ideal = f"Then I'll have the {_lower(self.guest['instead'])} instead, please."
        reply = await self.stage.ask(self.lines["off"].replace(DISH, off), needs=(0, 1), needle=True, ideal=ideal)
        if self.broken("other dish", reply):
            return False
        wanted, talk = await self.wanted(reply, drinks=False, besides=self.order)
        kept = [name for name in self.order if name != off and name not in talk.rejected]
        self.chosen = [name for name in wanted if name != off and name not in self.order]
        if self.chosen:
            why = f"{off} is off and the guest chooses {_join(self.chosen)}"
        elif off in wanted:
            why = f"the guest insists on {off}, which is off"
        else:
            why = self.missed(talk, f"{off} is off and no other dish on the menu is chosen")
        self.award("other dish", why, right=bool(self.chosen))
        self.order = kept + self.chosen
        return bool(self.order)

    async def plate(self, off: str) -> bool:
        """Serve a wrong dish. Return whether the guest is still in the scene."""
        replaced = (self.chosen or self.order)[-1]
        wrong = self.stage.random.choice([name for name in self.dishes if name not in self.order and name != off])
        served = [wrong if name == replaced else name for name in self.order]
        ideal = f"Excuse me, I ordered the {_lower(replaced)}, not the {_lower(wrong)}."
        needs = (2,) if self.order == self.chosen else (1, 2)
        reply = await self.stage.ask(self.lines["serve"].replace(DISH, _join(served)), needs=needs, ideal=ideal)
        if self.broken("wrong dish", reply):
            return False
        found = read_complaint(self.menu, reply, wrong=wrong, order=self.order)
        statement = f"The guest says that {wrong} is not what was ordered, or asks for another dish to be brought in its place."
        right, why = await self.decided(found.noticed, found.lean, found.why, statement, reply)
        self.award("wrong dish", f"{wrong} came instead of {replaced}: {why}", right=right)
        return True

    async def recall(self) -> None:
        """Offer the first drink again without naming it."""
        ideal = f"It was the {_lower(self.drinks[0])}. Thank you, another one please."
        reply = await self.stage.ask(self.lines["again"], needs=(0,), ideal=ideal)
        if self.broken("same drink", reply):
            return
        found = read_recall(self.menu, reply, drinks=self.drinks)
        statement = f"The guest says that the drink before was {_join(self.drinks)}, and no other."
        right, why = await self.decided(found.right, found.lean, found.why, statement, reply)
        self.award("same drink", f"the drink was {_join(self.drinks)}: {why}", right=right)

    async def wanted(self, reply: str, *, drinks: bool, besides: Sequence[str] = ()) -> tuple[list[str], Talk]:
        """Return what the reply orders from the menu; nothing if that is more than MAX_ORDER.

        If nothing is ordered except `besides`, which was ordered before, the judge decides whether a praised item is meant
        as ordered.
        """
        talk = read_talk(self.menu, reply, drinks=drinks)
        ordered = list(talk.ordered)
        maybe = [name for name in talk.maybe if name not in besides]
        if maybe and all(name in besides for name in ordered):
            statement = f"The guest orders {_join(maybe)}, and does not merely talk about it."
            right, _ = await self.decided(None, len(maybe) == 1, "", statement, reply)
            ordered += maybe if right else []
        return (ordered if len(ordered) <= MAX_ORDER[drinks] else []), talk

    async def decided(self, rules: bool | None, lean: bool, why: str, statement: str, reply: str) -> tuple[bool, str]:
        """Return what the rules say or, if they cannot decide, the judge; without a verdict, the rules' best guess."""
        if rules is not None:
            return rules, why
        verdict = await self.stage.judge(statement, reply)
        if verdict.holds is None:
            return lean, f"{why} (a best guess: {verdict.why})"
        return verdict.holds, f"{why} (judged: {verdict.why})"

    def broken(self, what: str, reply: str) -> bool:
        """Return whether the reply is out of role. If so, award nothing and say why."""
        why = out_of_role(reply)
        if why:
            self.award(what, why, right=False)
        return why is not None

    def missed(self, talk: Talk, why: str, *, drinks: bool = False) -> str:
        """Return `why` with what the reply says instead of ordering."""
        if len(talk.ordered) > MAX_ORDER[drinks]:
            return f"{why}: the reply orders {len(talk.ordered)} items at once"
        mentions = {"fits several items": talk.unclear, "is only discussed": talk.maybe or talk.discussed, "is declined": talk.rejected}
        return next((f"{why}: {_join(names)} {how}" for how, names in mentions.items() if names), why)

    def award(self, what: str, why: str, *, right: bool) -> None:
        self.stage.award(POINTS if right else 0.0, f"{what}: {why}")


def _join(names: Sequence[str]) -> str:
    return " and ".join(names)


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _article(name: str) -> str:
    return f"{'An' if name[0] in 'AEIOU' else 'A'} {_lower(name)}"
