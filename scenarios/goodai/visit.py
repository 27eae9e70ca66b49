"""Grade visits to GoodAI's restaurant (section 3.2) from their transcripts by rules, phase by phase, without a model.

Fixed parts of the waiter's lines identify the phases; the dishes are read from the menu in the transcript. Each phase is graded by the
reply to it alone. The waiter's lines are taken at face value: the kitchen brought the dish that GoodAI's model understood, even if the
guest had said something else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from longspan.scenarios.goodai.files import LoggedTurn
from longspan.scenarios.ltm.restaurant.guest import Talk, read_complaint, read_recall, read_talk
from longspan.scenarios.ltm.restaurant.menu import Menu, plural_free_words
from longspan.scenarios.ltm.restaurant.speaker import out_of_role

__all__ = ["PHASES", "PhaseGrade", "grade_visit"]

_WAITER: Final[Mapping[str, re.Pattern[str]]] = {
    "drink": re.compile(r"\blike to drink\b"),
    "food": re.compile(r"\blike to eat\b"),
    "other dish": re.compile(r"\bunavailable\b"),
    "wrong dish": re.compile(r"\bHere you are:"),
    "same drink": re.compile(r"\bon the house\b"),
}
"""Pattern in the waiter's words that identifies each phase, in order."""
_REPEATED: Final = re.compile(r"\bcoming right up\b|\bit is\. Sorry\b")
"""Matches when the waiter repeats an order as understood."""
_BROUGHT: Final = re.compile(r"\bHere is your ([^\n]{1,200}?)\. ")

PHASES: Final = tuple(_WAITER)

_DRINKS: Final = (
    "water seltzer soda cola coke pepsi sprite fanta lemonade limeade cordial juice smoothie milkshake milk cocoa tea kombucha coffee "
    "espresso cappuccino latte macchiato americano mocha tonic beer lager ale ipa stout pilsner cider heineken guinness corona wine "
    "cabernet sauvignon merlot pinot chardonnay riesling shiraz syrah malbec zinfandel chianti rioja bordeaux prosecco champagne "
    "whisky whiskey scotch bourbon gin vodka rum tequila brandy cognac martini margarita mojito negroni daiquiri spritz sangria "
    "cocktail mocktail perrier pellegrino"
).split()
"""Words for drinks, because GoodAI's guests need not choose from the menu."""
_MEASURES: Final = "glass cup bottle pint mug red white rose sparkling".split()
"""Words that suffice to order a drink, but not to distinguish it from others."""
_KINDS: Final = tuple(
    frozenset(kinds.split()) for kinds in ("red white rose", "still sparkling", "sweetened unsweetened", "domestic imported", "hot iced")
)
"""Words that distinguish drinks of the same name."""


@final
class PhaseGrade(NamedTuple):
    """Our grade of a phase, with the reason. `miss`: the kind of failure, if not `right`; `turn`: the turn of the graded reply."""

    right: bool
    why: str
    miss: str = ""
    turn: int = 0


def grade_visit(turns: Sequence[LoggedTurn]) -> dict[str, PhaseGrade]:
    """Grade each phase that a transcript reaches; return the awards by phase, in order. Never raises.

    A phase is reached when the waiter has spoken its line and the guest has replied.
    """
    table: _Table | None = None
    awards: dict[str, PhaseGrade] = {}
    for number, turn in enumerate(turns):
        if not turn.text.lstrip().startswith("Waiter:") or (number == len(turns) - 1 and not turn.reply):
            continue
        name = _phase(turn.text, after=awards)
        if name == "drink":
            table = _Table(turn.text)
        if table and name:
            awards[name] = (_out_of_role(turn.reply) or table.grade(name, turn))._replace(turn=number)
        elif table and _REPEATED.search(turn.text):
            table.note_repeated(turn.text)
    return awards


def _phase(text: str, after: Iterable[str]) -> str | None:
    """Return the phase that begins with a line of the waiter's. Phases come in order, but one may be missing."""
    first = max((PHASES.index(name) + 1 for name in after), default=0)
    return next((name for name in PHASES[first:] if _WAITER[name].search(text)), None)


def _out_of_role(reply: str) -> PhaseGrade | None:
    """Return a miss if the reply is not the guest's."""
    why = out_of_role(reply)
    if why is None:
        return None
    return PhaseGrade(False, why, "played both roles" if "speaks for the waiter" in why else "not a guest's reply")


# ---- the menu

_SECTION: Final = re.compile(r"[ \t]{0,9}([^\n:]{1,60}):\s{0,9}")
_NUMBERED: Final = re.compile(r"[ \t]{0,9}(\d{1,3})[.)][ \t]{1,9}(\S[^\n]{0,300})")
_DRINKS_SECTION: Final = re.compile(r"drink|beverage|wine|beer|\bbar\b", re.IGNORECASE)
_MAX_DISHES: Final = 60
"""Maximum number of dishes read from a menu."""
_BY_NUMBER: Final = re.compile(r"(?:\b(?:number|no\.|option|item)\s?|#)(\d{1,3})\b", re.IGNORECASE)


def _dishes(text: str) -> list[tuple[str, str]]:
    """Return the numbers and names of the dishes in a menu: numbered lines under headings that end in a colon."""
    dishes = []
    drinks = False
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line):
            drinks = _DRINKS_SECTION.search(heading[1]) is not None
        elif (item := _NUMBERED.fullmatch(line)) and not drinks:
            dishes.append((item[1], item[2].strip()))
    return dishes[:_MAX_DISHES]


# ---- the guest's words


@final
class _Table:
    """A guest's table: the menu, and the items ordered and served so far."""

    def __init__(self, menu: str) -> None:
        dishes = _dishes(menu)
        self.dishes = list(dict.fromkeys(name for _, name in dishes))
        self.numbers = dict(dishes) if len(dict(dishes)) == len(dishes) else {}  # some menus number each section from 1
        self.food = Menu([], self.dishes)
        self.drinks = Menu(_DRINKS, self.dishes)
        self.orders = Menu([*_DRINKS, *_MEASURES], self.dishes)
        self.drink = ""
        self.order: list[str] = []
        self.waiters: list[str] = []
        """The order as the waiter understood it."""
        self.off: list[str] = []

    def grade(self, name: str, turn: LoggedTurn) -> PhaseGrade:
        """Grade the phase of that name."""
        match name:
            case "drink":
                return self._drink(turn.reply)
            case "food":
                brought = _BROUGHT.search(turn.text)
                self.drink = brought[1] if brought else self.drink
                return self._dish(turn.reply)
            case "other dish":
                return self._other_dish(turn)
            case "wrong dish":
                return self._wrong_dish(turn)
            case _:
                return self._same_drink(turn.reply)

    def note_repeated(self, text: str) -> None:
        """Record an order that the waiter repeats."""
        self.waiters += [name for name in self._find_named(text) if name not in self.waiters]

    def _drink(self, reply: str) -> PhaseGrade:
        talk = read_talk(self.orders, reply, drinks=True)
        if ordered := _find_ordered(talk):
            self.drink = reply
            return PhaseGrade(True, f"the guest orders {_list(ordered)}")
        return PhaseGrade(False, "no drink is ordered", "no drink ordered")

    def _dish(self, reply: str) -> PhaseGrade:
        talk = self._read(reply)
        self.order = _find_ordered(talk)
        if self.order:
            return PhaseGrade(True, f"the guest orders {_list(self.order)}")
        return self._one_of_several(reply) or _no_dish(talk)

    def _other_dish(self, turn: LoggedTurn) -> PhaseGrade:
        self.off = self._find_named(turn.text)
        talk = self._read(turn.reply)
        ordered = _find_ordered(talk, besides=[*self.order, *self.off])
        if not self.off:  # a drink is off, not a dish
            ordered += _find_ordered(read_talk(self.orders, turn.reply, drinks=True))
        chosen = [name for name in ordered if name not in self.off and name not in self.order]
        self.order = [name for name in self.order if name not in self.off] + chosen
        if chosen:
            return PhaseGrade(True, f"the guest chooses {_list(chosen)}")
        if several := self._one_of_several(turn.reply):
            return several
        return PhaseGrade(False, f"the guest orders {_list(ordered)} again", "the same dish ordered again") if ordered else _no_dish(talk)

    def _wrong_dish(self, turn: LoggedTurn) -> PhaseGrade:
        order = [name for name in dict.fromkeys([*self.order, *self.waiters]) if name not in self.off]
        served = self._find_named(turn.text)
        wrong = next((name for name in served if name not in order), served[0] if served else "")
        found = read_complaint(self.food, turn.reply, served=wrong, order=order)
        noticed = found.lean if found.right is None else found.right
        return PhaseGrade(noticed, f"{wrong} came: {found.why}", "" if noticed else "no objection")

    def _same_drink(self, reply: str) -> PhaseGrade:
        had = [word for word in _DRINKS if word in plural_free_words(self.drink)]
        menu = self.drinks if had else Menu([*_DRINKS, self.drink or "nothing"], self.dishes)
        found = read_recall(menu, reply, drinks=had or [self.drink])
        right, why = found.lean if found.right is None else found.right, found.why
        if right and (other := _other_kind(self.drink, reply)):
            right, why = False, f"the reply says {other}"
        return PhaseGrade(right, f"the drink was {self.drink}: {why}", "" if right else "no drink or another one recalled")

    def _read(self, reply: str) -> Talk:
        """Return the reply's words about the dishes, which may be named by number."""
        return read_talk(self.food, _BY_NUMBER.sub(lambda match: self.numbers.get(match[1], match[0]), reply), drinks=False)

    def _one_of_several(self, reply: str) -> PhaseGrade | None:
        """Return an award if a dish is ordered by a word that fits several dishes. Each is tried as if it were the only one."""
        fitting = Counter(word for item in self.food.items for word in item.enough.intersection(plural_free_words(reply)))
        for item in self.food.items:
            fits = sorted(word for word in item.enough if fitting[word] > 1)
            if fits and read_talk(Menu([], [item.name]), reply, drinks=False).ordered:
                return PhaseGrade(True, f"the guest orders what fits several dishes ({_list(fits)})")
        return None

    def _find_named(self, text: str) -> list[str]:
        """Return the dishes whose full names are in a line of the waiter's."""
        return [name for name in self.dishes if name in text]


def _find_ordered(talk: Talk, besides: Iterable[str] = ()) -> list[str]:
    """Return the items ordered or, if nothing is added to earlier orders, the one item that is praised."""
    before = set(besides)
    maybe = [name for name in talk.maybe if name not in before]
    return [*talk.ordered, *(maybe if len(maybe) == 1 and before.issuperset(talk.ordered) else ())]


def _no_dish(talk: Talk) -> PhaseGrade:
    if discussed := talk.maybe or talk.discussed:
        return PhaseGrade(False, f"{_list(discussed)}: only discussed", "dish discussed, not ordered")
    if talk.rejected:
        return PhaseGrade(False, f"{_list(talk.rejected)}: declined", "no other dish chosen")
    return PhaseGrade(False, "no dish on the menu is ordered", "no dish on the menu named")


def _other_kind(drink: str, reply: str) -> str | None:
    """Return the kind of drink that a reply names if `drink` was of another kind."""
    had, named = set(plural_free_words(drink)), set(plural_free_words(reply))
    return next((" or ".join(sorted(named & kinds)) for kinds in _KINDS if had & kinds and named & kinds and not had & named & kinds), None)


def _list(names: Sequence[str]) -> str:
    return " and ".join(names)
