"""Restaurant (GoodAI, section 3.2): the agent is a guest; dishes run out and are mixed up, and a drink must be recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, ClassVar, Final, NamedTuple, final

from pydantic import Field

from longspan.scenarios.ltm.restaurant.guest import GuestReading, join_names, nothing_ordered, read_complaint, read_recall, read_talk
from longspan.scenarios.ltm.restaurant.menu import Item, Menu
from longspan.scenarios.ltm.restaurant.speaker import out_of_role
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.paging import estimate_tokens
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.graded_record import Item as Scored
from longspan.simulator.contract.queries import Holds, Query, statement
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.reading.matching import join_some

__all__ = ["PARTS", "Restaurant"]

PARTS: Final = ("drink", "food", "other dish", "wrong dish", "same drink")
POINTS: Final = 1 / len(PARTS)
"""Score of each part."""
MAX_ORDER: Final = {True: 2, False: 3}
"""Maximum number of drinks (True) or dishes (False) in an order. A guest who names more is reciting the menu."""
COURSES: Final = {"starters": 0.3, "mains": 0.45, "desserts": 0.25}
"""Share of each course in the dishes of a menu."""
STEPS: Final = 6
"""Number of the waiter's lines: the drink, the food, the unavailable dish, the wrong plate, the right plate and the last drink."""
DISH: Final = "<dish>"
"""Placeholder in a waiter's line for a dish that depends on the guest's replies."""
MENU_TOKENS: Final = 1.3
"""Upper bound for the tokens of the scene with its menu, relative to prose of the same length. Names of dishes are rare words."""
NAME_TOKENS: Final = 4
"""Upper bound for the additional tokens of a single name."""


@final
class Restaurant(Scenario):
    """Play a waiter who brings a menu, takes orders, runs out of a dish, serves a wrong and then the right one, and offers the drink
    again.

    There are five parts of equal score: ordering a drink; ordering a dish on the menu; choosing another when it is unavailable;
    objecting to the wrong plate and not to the right one; recalling the drink. The waiter continues after any reply. But the parts
    depend on each other: a guest without any food on order earns nothing more, and a drink that was never ordered cannot be recalled.
    Replies are graded by the guest's closing line `Order: ...`, or else by free text. If the rules find a part unclear, a judge decides;
    without a judge the test is unscored.
    """

    name: ClassVar[str] = "restaurant"
    skills: ClassVar[tuple[Skill, ...]] = ("conflicting information", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"restaurant"})
    early: ClassVar[bool] = False
    """The story has a fixed order, since the unavailable dish depends on the order placed."""

    drinks: int = Field(default=6, ge=3, le=10)
    dishes: int = Field(default=13, ge=8, le=24)

    def make(self, random: Random) -> Script:
        menu = _draw(random, self.drinks, self.dishes)
        wording = Wording(self.name)
        card = wording.say(random, "menu", **{course: ", ".join(names) for course, names in menu.items()})
        dishes = [name for course in COURSES for name in menu[course]]
        drink, dish, instead = random.choice(menu["drinks"]), *random.sample(menu["mains"], 2)
        # Without a closing line, talk about dishes was mistaken for orders and complaints.
        form = wording.say(random, "form")
        lines = {
            "scene": wording.say(random, "scene", menu=card.replace("\n", "<br>")),
            "food": f"{wording.say(random, 'food')} {form}",
            "off": f"{wording.say(random, 'off', dish=DISH)} {form}",
            "wrong": f"{wording.say(random, 'serve', dish=DISH)} {form}",
            "right": f"{wording.say(random, 'serve', dish=DISH)} {form}",
            "again": f"{wording.say(random, 'again')} {form}",
            "no_order": wording.say(random, "no_order"),
        }
        return Script(
            facts={"drinks": menu["drinks"], "dishes": dishes, "guest": {"drink": drink, "dish": dish, "instead": instead}, "lines": lines},
            outline=_outline(lines, dishes),
            farewell=wording.say(random, "farewell"),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of `guess`: the drink, ordered from a menu in the same message, and the rest in one visit out of seven."""
        return 0.235

    def guess(self, message: str) -> str | None:
        """Order one of the items that are on the most menus, always the same one, and insist on it."""
        drinks, (dish, other) = _usual("drinks"), _usual("mains")[:2]
        replies = {
            "scene": f"Order: {next((name for name in drinks if name in message), 'nothing')}",
            "food": f"Order: {dish}",
            "off": f"Order: {other if dish in message else dish}",
            "serve": "Order: nothing" if other in message else f"That is not my dish.\nOrder: {other}",
            "again": f"Order: {drinks[0]}",
        }
        return next((reply for name, reply in replies.items() if _is(name, message)), None)

    async def play(self, stage: Stage) -> None:
        table = _Table(stage.facts)
        for step in range(STEPS):
            if step:
                await stage.wait()
            said, needs, ideal = table.says(step, stage.random)
            table.hears(step, said, await stage.ask(said, needs=needs, needle=step < 3, ideal=ideal))

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Grade the recorded visit. Imported visits have no facts, and visits of version 0.2 another story: their recorded awards count."""
        if record.awards or not facts:
            return super().grade(facts, record)
        table = _Table(facts)
        for step, answer in enumerate(record.answers):
            table.hears(step, answer.text, answer.reply, answer.turn)
        asks: dict[str, Query[Holds]] = {}
        items = []
        for name, turn, found in table.parts:
            claims = [claim.apply_verdict(record) for claim in found]
            failed = next((claim for claim in reversed(claims) if claim.holds is False), None)
            open_ = [claim for claim in claims if claim.holds is None and not failed]
            asks |= {claim.query.about: claim.query for claim in open_}
            why = (failed or (open_ or claims)[-1]).why
            items.append(Scored(name=name, score=None if open_ else float(not failed), note=why, turn=turn))
        scores = [item.score for item in items if item.score is not None]
        return Grade(
            score=round(POINTS * sum(scores), 6) if len(scores) == len(items) else None,
            reason="; ".join(f"{item.name}: {'undecided, ' * (item.score is None)}{item.note}" for item in items) or "nothing was said",
            turns=tuple(turn for _, turn, _ in table.parts),
            asks=tuple(asks.values()),
            items=tuple(items),
        )


def _draw(random: Random, drinks: int, dishes: int) -> dict[str, list[str]]:
    """Draw a menu by course. No two items can be named by the same word."""
    lists = load_words("restaurant")
    shares = {"drinks": drinks, **{course: round(dishes * share) for course, share in COURSES.items()}}
    shares["mains"] += dishes - sum(shares[course] for course in COURSES)
    taken: set[str] = set()
    menu: dict[str, list[str]] = {}
    for course, number in shares.items():
        chosen: list[str] = []
        for name in random.sample(lists[course], len(lists[course])):
            item = Item.parse_item(name, course == "drinks")
            if len(chosen) < number and not item.enough & taken:
                chosen.append(name)
                taken |= item.enough
        menu[course] = chosen
    return menu


def _outline(lines: Mapping[str, str], dishes: Sequence[str]) -> list[Segment]:
    """Return the maximum size of the waiter's lines, assuming the longest name for each dish."""
    plate, choice = max(map(estimate_tokens, dishes)) + NAME_TOKENS, 1 + estimate_tokens(lines["no_order"])
    extra = {"food": choice, "off": plate + choice, "wrong": plate + choice, "right": plate}
    sizes = [estimate_tokens(lines[name]) + extra.get(name, 0) for name in ("food", "off", "wrong", "right", "again")]
    sizes = [round(MENU_TOKENS * estimate_tokens(lines["scene"])), *sizes]
    return [Segment(None, size, 1) for size in sizes]


@cache
def _public() -> tuple[Item, ...]:
    """Return the items of all restaurants."""
    return tuple(Item.parse_item(name, course == "drinks") for course, names in load_words("restaurant").items() for name in names)


@cache
def _usual(course: str) -> list[str]:
    """Return a course's items, those on the most menus first. They share the fewest words with other items."""
    rivals = {item.name: sum(bool(item.enough & other.enough) for other in _public()) for item in _public()}
    return sorted(load_words("restaurant")[course], key=rivals.__getitem__)


def _is(name: str, message: str) -> bool:
    """Return whether a message is one of the waiter's lines of that name."""
    values = {"scene": {"menu": DISH}, "off": {"dish": DISH}, "serve": {"dish": DISH}}.get(name, {})
    lines = Wording(Restaurant.name).all(name, **values)
    return any(all(piece.removeprefix("Waiter: ") in message for piece in line.split(DISH)) for line in lines)


@final
class _Claim(NamedTuple):
    """A statement that a reply must make to earn a part, or must not make if `wanted` is false. `holds` is None if rules cannot decide."""

    holds: bool | None
    why: str
    query: Query[Holds]
    wanted: bool

    @classmethod
    def of(cls, reading: GuestReading, said: str, reply: str, *, wanted: bool = True) -> _Claim:
        """Return the claim that `said` is true of the reply. A reply that leaves the role makes no statement."""
        role = out_of_role(reply)
        right, why = (False, role) if role else (reading.right, reading.why)
        return cls(None if right is None else right is wanted, why, statement(said, reply), wanted)

    def apply_verdict(self, record: Record) -> _Claim:
        """Return the claim with the judge's verdict if rules cannot decide and there is one."""
        answer = record.said(self.query) if self.holds is None else None
        if answer is None or isinstance(answer, str):
            return self._replace(why=f"{self.why}; {answer}") if answer else self
        return self._replace(holds=answer.holds is self.wanted, why=f"{self.why}; judged: {answer.why[:500]}")


@final
class _Table:
    """A guest's table: the items on order, and the points that the guest's replies have earned so far.

    Needles: 0 is the menu with the drink ordered, 1 the food, 2 the replacement for the unavailable dish.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.menu = Menu(facts["drinks"], facts["dishes"], elsewhere=_public())
        self.dishes, self.lines, self.guest = facts["dishes"], facts["lines"], facts["guest"]
        self.drinks: list[str] = []
        self.order: list[str] = []
        self.chosen: list[str] = []
        self.off, self.left_open = "", False
        self.rests: tuple[_Claim, ...] = ()
        """What all further parts rest on: that something to eat is on order."""
        self.parts: list[tuple[str, int, tuple[_Claim, ...]]] = []
        """Each part with the turn of its reply, and the claims that must all hold for it to be earned."""

    def says(self, step: int, random: Random) -> tuple[str, tuple[int, ...], str]:
        """Return the waiter's line, the needles that the reply needs, and an ideal reply."""
        guest, plate = self.guest, (self.chosen or self.order or [""])[-1]
        drink = (self.drinks or [guest["drink"]])[0]
        last = (2,) if self.order == self.chosen else (1, 2)
        match step:
            case 0:
                return self._line("scene"), (), _reply("The {}, please.", drink)
            case 1:
                return self._line("food"), (0,), _reply("I'll have the {}, please.", guest["dish"])
            case 2:
                return self._line("off", random.choice(self.order)), (0, 1), _reply("Then I'll have the {} instead.", guest["instead"])
            case 3:
                wrong = random.choice([name for name in self.dishes if name not in self.order and name != self.off])
                return self._line("wrong", wrong), last, _reply(f"Excuse me, I ordered the {{}}, not the {wrong.lower()}.", plate)
            case 4:
                return self._line("right", plate), last, "Yes, thank you.\nOrder: nothing"
            case _:
                return self._line("again"), (0,), _reply("It was the {}. Another one, please.", drink)

    def _line(self, name: str, dish: str = "") -> str:
        line = self.lines[name].replace(DISH, dish)
        return f"{self.lines['no_order']} {line.removeprefix('Waiter: ')}" if self.left_open else line

    def hears(self, step: int, said: str, reply: str, turn: int = 0) -> None:
        """Record the guest's reply to the waiter's line, and the points that it earns."""
        named = next((name for name in self.dishes if name in said), "")
        self.left_open = False
        match step:
            case 0:
                self.drinks, claim = self._find_ordered(reply, drinks=True)
                self.left_open = not self.drinks
                self._part("drink", turn, claim)
            case 1:
                ordered, claim = self._find_ordered(reply, drinks=False)
                self.left_open = not ordered
                # The waiter continues without an order, so that the conversation does not depend on the agent.
                self.order = ordered or [self.guest["dish"]]
                self._part("food", turn, claim)
                self.rests = (claim,)
            case 2:
                self.off = named
                wanted, claim = self._find_ordered(reply, drinks=False, besides=self.order)
                self.chosen = [name for name in wanted if name not in self.order]
                kept = [name for name in self.order if name != named]
                self._part("other dish", turn, claim)
                if not kept:
                    self.rests += (claim,)
                self.left_open = not self.chosen
                self.order = kept + self.chosen or [next(name for name in (self.guest["instead"], *self.dishes) if name != named)]
            case 3 | 4:
                objects = f"The guest says that this dish is not what was ordered, or asks for another one instead of it: {named}."
                found = read_complaint(self.menu, reply, served=named, order=self.order)
                claim = _Claim.of(found, objects, reply, wanted=step == 3)
                if step == 3:
                    self._part("wrong dish", turn, claim)
                else:
                    name, first, (*rests, noticed) = self.parts.pop()
                    self.parts.append((name, first, (*rests, claim, noticed)))
            case _:
                same = f"The guest says that the drink before was {join_names(self.drinks)}, and no other."
                recall = _Claim.of(read_recall(self.menu, reply, drinks=self.drinks), same, reply)
                self._part("same drink", turn, *self.parts[0][2], recall)

    def _part(self, name: str, turn: int, *claims: _Claim) -> None:
        self.parts.append((name, turn, (*self.rests, *claims)))

    def _find_ordered(self, reply: str, *, drinks: bool, besides: Sequence[str] = ()) -> tuple[list[str], _Claim]:
        """Return the items that the reply orders from the menu, or seems to order, and the claim that it does so.

        No items are returned if it orders anything that is not on the menu, more than MAX_ORDER, or only items already on order.
        """
        kind = "drink" if drinks else "dish"
        talk = read_talk(self.menu, reply, drinks=drinks)
        foreign = talk.foreign + talk.unknown
        new = [name for name in talk.ordered if name not in besides]
        maybe = [name for name in talk.maybe if name not in besides]
        right: bool | None = False
        if foreign:
            new, why = [], f"not on the menu: {join_some(foreign)}"
        elif len(talk.ordered) > MAX_ORDER[drinks]:
            new, why = [], f"{len(talk.ordered)} items are ordered at once"
        elif new:
            right, why = True, f"the guest orders {join_names(new)}"
        elif maybe:
            new, right, why = maybe[:1], None, f"{join_names(maybe)} is praised, or named by its kind alone"
        elif talk.ordered:
            why = f"the guest insists on {join_names(talk.ordered)}"
        else:
            mentions = {"is only discussed": talk.discussed, "is declined": talk.rejected}
            told = (f"{join_names(names)} {how}" for how, names in mentions.items() if names)
            why = next(told, None) or nothing_ordered(self.menu, reply, drinks=drinks)
        said = f"The guest orders this {kind} and does not merely talk about it or name what kind of {kind} it is: {join_names(new)}."
        claim = _Claim.of(GuestReading(right, right is not False, why), said, reply)
        return ([] if claim.holds is False else new), claim


def _reply(words: str, item: str) -> str:
    return f"{words.format(item.lower())}\nOrder: {item}"
