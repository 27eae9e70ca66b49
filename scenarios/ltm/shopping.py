"""Shopping list (GoodAI, section 3.2): the user adds to a shopping list and removes from it, then asks for all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, ClassVar, Final, NamedTuple, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.similar import Similar, people, planted, with_asides
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.grading.labelled_lists import Called, called, labelled_json
from longspan.simulator.grading.matching import SMALL, is_slip, number, plain, some
from longspan.simulator.grading.reading.items import items
from longspan.simulator.grading.reading.lexicon import Stance
from longspan.simulator.grading.reading.reading import Reading
from longspan.simulator.grading.reading.values import Values

__all__ = ["Shopping", "singular", "thing_in"]

MAX_COUNT = 6
"""How many of an item are added at once, at most."""
LIKELY_COUNT = 1
"""The quantity that is on lists most often."""

_ITEM = frozenset({"item", "name", "product", "article", "thing", "item name", "product name"})
_QUANTITY = frozenset({"quantity", "qty", "amount", "count", "number", "num", "units", "how many"})
_MEASURES = frozenset(
    "a an the of some more x bag bar bottle box bunch can carton head item jar loaf pack package packet pair piece roll stick tin tube"
    " unit".split()
)
"""Words, in the singular, that do not change which item is meant."""


@final
class _Entry(NamedTuple):
    """An item that an answer lists. `quantity` is None if the answer gives none that can be read."""

    item: str
    quantity: float | None


@final
class Shopping(Scenario):
    """`changes` additions and removals with quantities; then the list, which is never empty, is asked for as JSON.

    The score is a third each for the share of the items listed, the share of the items in the right quantity, and nothing
    invented (all or nothing, and only with at least one right item). If more items are invented than listed rightly, both
    shares shrink by as much: a list of everything there is earns nothing. Items are compared in the singular, without case and
    packaging ("Bags of carrots"), written together or apart. Repeated items are summed, and those that come to zero are
    ignored. The JSON list that the reply calls the current or the complete one counts, else the last. Other keys, mappings
    of items to quantities, quantities in words or with a unit, and strings such as "3 carrots" are read too; without JSON, so are bullets,
    tables and prose. Another word for a thing ("elastic band") and a slip of a letter ("cabages") change nothing.
    After the last change, `similar` items on other people's lists are told, none of them ever on the user's.
    """

    name: ClassVar[str] = "shopping"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "conflicting information", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"shopping"})
    asks_again: ClassVar[bool] = True

    changes: int = Field(default=6, ge=1, le=50)
    similar: Similar = 0
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        plurals: Mapping[str, str] = words("groceries")
        basket: dict[str, int] = {}
        changes: list[list[str | int]] = []
        lines: list[Line] = []
        removal = random.randrange(1, self.changes) if self.changes > 1 else 0
        for turn in range(self.changes):
            what, item, count = _change(random, basket, list(plurals), removes=turn == removal and turn > 0)
            basket[item] = basket.get(item, 0) + (-count if what == "remove" else count)
            if not basket[item]:
                del basket[item]
            changes.append([what, item, count])
            lines.append(Line(wording.say(random, what, count=count, things=item if count == 1 else plurals[item])))
        ideal = json.dumps([{"item": item, "quantity": count} for item, count in basket.items()])
        lines.append(Line(wording.say(random, "question"), ideal=ideal, asks=True))
        facts: dict[str, Any] = {"list": basket, "changes": changes}
        farewell = wording.say(random, "farewell")
        if self.similar:
            listed = {item for _, item, _ in changes}
            free = [item for item in plurals if item not in listed]
            facts["similar"], asides = [], []
            for who in people(random, self.similar):
                item, count = random.choice(free), random.randint(1, MAX_COUNT)
                facts["similar"].append([who, item, count])
                asides.append(wording.say(random, "similar", who=who, count=count, things=item if count == 1 else plurals[item]))
            lines = with_asides(lines, asides)
        return Script(facts=facts, lines=lines, farewell=farewell)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return planted(facts, "changes")

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of a list of one item: with more, something invented is nearly certain."""
        counts = list(facts["list"].values())
        shares = (1 + counts.count(LIKELY_COUNT) / len(counts)) / len(counts)
        return len(counts) / len(words("groceries")) * (shares + 1) / 3

    def guess(self, message: str) -> str | None:
        if Wording(self.name).read("question", message) is None:
            return None
        return json.dumps([{"item": Random(message).choice(list(words("groceries"))), "quantity": LIKELY_COUNT}])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.shopping(facts, record)
        expected = {thing_in(item): item for item in facts["list"]}
        quantities = {thing_in(item): float(count) for item, count in facts["list"].items()}
        things = [*facts["list"], *(item for _, item, _ in facts.get("similar", ())), *words("groceries")]
        answered = _consolidated(_answered(record.answer.reply) or list(_written(record.answer.reply, things)), things)
        present = [key for key in expected if key in answered]
        right = [key for key in present if answered[key].quantity == quantities[key]]
        invented = [entry.item for key, entry in answered.items() if key not in expected]
        clean = bool(present) and not invented
        shares = (len(present) + len(right)) / len(expected) * min(1, len(present) / max(1, len(invented)))
        wrong = [f"{expected[key]} ({_shown(answered[key].quantity)})" for key in present if key not in right]
        missing = [item for key, item in expected.items() if key not in present]
        whose = {thing_in(item): who for who, item, _ in facts.get("similar", ())}
        others = [f"{item} (the user's {whose[thing_in(item)]})" for item in invented if thing_in(item) in whose]
        found = (("missing", missing), ("wrong", wrong), ("invented", invented), ("on other people's lists:", others))
        notes = [f"{what} {some(items)}" for what, items in found if items]
        hits = f"{len(present)} of {len(expected)} listed, {len(right)} in the right quantity" if answered else "no list of items found"
        return Grade(
            score=(shares + clean) / 3,
            reason=f"expected {some(f'{count} {item}' for item, count in facts['list'].items())}; {'; '.join([hits, *notes])}",
            turns=(record.answer.turn,),
        )


def _change(random: Random, basket: Mapping[str, int], things: list[str], *, removes: bool) -> tuple[str, str, int]:
    """Draw the next change of the list: the action (add, more, remove), the item and the quantity. Never empties the list."""
    if not basket:
        return "add", random.choice(things), random.randint(2, MAX_COUNT)
    removable = [item for item, count in basket.items() if count > 1 or len(basket) > 1]
    if removable and (removes or random.random() < 0.3):
        item = random.choice(removable)
        limit = basket[item] - (len(basket) == 1)
        return "remove", item, random.choice((limit, random.randint(1, limit)))
    if random.random() < 0.3:
        return "more", random.choice(list(basket)), random.randint(1, MAX_COUNT // 2)
    return "add", random.choice([thing for thing in things if thing not in basket]), random.randint(1, MAX_COUNT)


def _answered(reply: str) -> list[_Entry]:
    """Return the entries of the last JSON list that the reply calls the current or the complete one or, without one, of the last list.

    Lists of past or removed items and the like come last, and before them objects without a list, all together.
    """
    found = [(item, entries) for item in labelled_json(reply) if (entries := list(_entries(item.value)))]
    lists = [(item.called, entries) for item, entries in found if isinstance(item.value, list) or _holds_entries(item.value)]
    if not lists:
        return [entry for _, entries in found for entry in entries]
    best = min(_RANKS[what] for what, _ in lists)
    return next(entries for what, entries in reversed(lists) if _RANKS[what] == best)


_RANKS = {Called.COMPLETE: 0, Called.CURRENT: 0, Called.NOTHING: 1, Called.PAST: 2, Called.OTHER: 3}


def _holds_entries(value: Mapping[str, Any]) -> bool:
    return any(isinstance(item, (list, dict)) for item in value.values())


def _entries(value: Any) -> Iterator[_Entry]:
    """Yield the entries in a JSON value: objects with an item, mappings of items to quantities, pairs, strings."""
    if isinstance(value, str):
        yield from _spoken(value)
    elif isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _quantity(value[1]) is not None:
        yield _Entry(value[0], _quantity(value[1]))
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item)
    elif isinstance(value, dict):
        keys = {plain(key): key for key in value}
        item_key = next((keys[key] for key in keys if key in _ITEM and isinstance(value[keys[key]], str)), None)
        if item_key is None:
            yield from _mapped(value)
            return
        quantity = next((_quantity(value[keys[key]]) for key in keys if key in _QUANTITY), None)
        yield from (_Entry(entry.item, entry.quantity if quantity is None else quantity) for entry in _spoken(value[item_key]))


def _mapped(value: Mapping[str, Any]) -> Iterator[_Entry]:
    """Yield the entries of an object that is not an entry itself: those inside it, else its keys with their quantities."""
    inner = [(key, item) for key, item in value.items() if isinstance(item, (list, dict))]
    if len(inner) > 1:
        ranks = {key: _RANKS[called(key)] for key, _ in inner}
        best = min(ranks.values())
        inner = [(key, item) for key, item in inner if ranks[key] == best]
    for key, item in inner:
        counts = [_quantity(count) for name, count in item.items() if plain(name) in _QUANTITY] if isinstance(item, dict) else []
        if counts and not any(plain(name) in _ITEM for name in item):
            yield _Entry(key, counts[0])
        else:
            yield from _entries(item)
    if not inner:
        yield from (_Entry(key, _quantity(count)) for key, count in value.items() if _quantity(count) is not None)


def _spoken(text: str) -> Iterator[_Entry]:
    """Yield the entry that a string stands for: "3 carrots", "carrots (3)", "a broom", "broom"; none if it names nothing."""
    if re.search(r"\d", bare := re.sub(r"\([^()]*\)", " ", text)):
        text = bare  # "2 cabbages (3 less 1)"
    counts = re.findall(r"\d{1,6}(?:\.\d{1,3})?", text)
    name = re.sub(r"\d{1,6}(?:\.\d{1,3})?", " ", text)
    first, _, rest = name.strip().partition(" ")
    if not counts and rest and number(first) is not None:
        counts, name = [first], rest
    if thing_in(name):
        yield _Entry(name.strip(" -:()*\u00d7\n\t"), number(counts[0]) if len(counts) == 1 else None)


def _quantity(value: Any) -> float | None:
    """Return the quantity in a JSON value: a number, or a string with one number in it; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str) or len(value) > 60:
        return None
    value = re.sub(r"\([^()]*\)", " ", value)  # "3 (5 - 2)"
    whole = number(value)
    numbers = re.findall(r"\d{1,6}(?:\.\d{1,3})?", value) or [word for word in value.split() if number(word) is not None]
    return whole if whole is not None else number(numbers[0]) if len(numbers) == 1 else None


def _written(reply: str, things: Sequence[str]) -> Iterator[_Entry]:
    """Yield the entries of a list or a table that is not in JSON, or else the things that the text names and does not deny, each with the
    number before it ("three lettuces", "2x cabbage") or behind it ("whisks (4)")."""
    rows = items(reply)
    for cells in rows:
        counts = [count for cell in cells[1:] if (count := _quantity(cell)) is not None] if len(cells) > 1 else []
        named = [cell for cell in cells if _quantity(cell) is None or len(cells) == 1]
        yield from (_Entry(entry.item, counts[0] if counts else entry.quantity) for cell in named[:1] for entry in _spoken(cell))
    if rows:
        return
    said = Reading(reply)
    values = Values(things, _ALSO)
    mentions = said.mentions(values) if values else ()
    for mention in mentions:
        if mention.how < Stance.DENIED:
            clauses = said.clauses[mention.clause : mention.clause + 2]
            behind = _COUNT_BEHIND.match(" ".join(each.text for each in clauses)[mention.end :])
            behind = behind or _WORD_BEHIND.match(clauses[0].text, mention.end)
            before = _counted(clauses[0].text[max(0, mention.start - 40) : mention.start])
            reckoned = _RECKONED.match(" ".join(each.text for each in said.clauses[mention.clause : mention.clause + 4])[mention.end :])
            counted = float(reckoned[1]) if reckoned else before if before is not None or not behind else number(behind[1])
            yield _Entry(mention.value, counted)
    places = {mention.clause for mention in mentions}
    for at, clause in enumerate(said.clauses):
        if at not in places and at - 1 in places and clause.link == "joint" and (other := _OTHER.fullmatch(clause.text)):
            yield _Entry(other[2], number(other[1]))


def _counted(before: str) -> float | None:
    """Return the number that the words before a thing end with: "2x", "three", "half a dozen", "four bags of"."""
    words = [word for word in before.split() if word in ("a", "an") or singular(word) not in _MEASURES]
    for many in (3, 2, 1):
        said = number(_TIMES.sub("", " ".join(words[-many:])))
        if said is not None:
            return said
    return None


_TIMES: Final = re.compile(r"(?<=\d) ?x$")
_COUNT_BEHIND: Final = re.compile(r" x? ?(\d{1,3})\b")
_WORD_BEHIND: Final = re.compile(rf" ({'|'.join(SMALL)})(?: pieces?| pcs)?$")
_OTHER: Final = re.compile(rf"(\d{{1,3}}|{'|'.join(SMALL[1:])}) ([^\W\d]{{3,20}}s)")
"""A thing that is enumerated with others and that no list has: "and 4 cups"."""
_RECKONED: Final = re.compile(r"(?: (?:minus|less|plus|and) \w{1,6})+ (?:so|makes|leaves|equals|is|are)(?: that)? (\d{1,3})\b")
"""What follows a thing whose number is reckoned: "6 eggs minus 2, so 4"."""
_ALSO: Final = {
    "elastic band": "rubber band",
    "plant pot": "flower pot",
    "hosepipe": "garden hose",
    "clothes hanger": "coat hanger",
    "smoke alarm": "smoke detector",
    "oven mitt": "oven glove",
    "baking sheet": "baking tray",
    "extension lead": "extension cord",
    "extension cable": "extension cord",
    "serviette": "napkin",
}
"""Other names of things on the list, as British or American English has them."""


@cache
def _others() -> Mapping[str, str]:
    """Return the things that other names stand for, both as `thing_in` returns them."""
    return {thing_in(other): thing_in(thing) for other, thing in _ALSO.items()}


def _meant(key: str, known: Collection[str]) -> str:
    """Return the thing that another name or a slip of a letter stands for. `known`: things, as `thing_in` returns them."""
    return key if key in known else _others().get(key) or next((thing for thing in known if is_slip(key, thing)), key)


def _consolidated(entries: list[_Entry], things: Sequence[str]) -> dict[str, _Entry]:
    """Return the entries by item, repeated items summed and those that come to zero or less left out. `things`: those that are known."""
    sums: dict[str, _Entry] = {}
    known = dict.fromkeys(map(thing_in, things))
    for entry in entries:
        key = _meant(thing_in(entry.item), known)
        before = sums.get(key, _Entry(entry.item, 0))
        both = before.quantity is not None and entry.quantity is not None
        sums[key] = _Entry(before.item, (before.quantity or 0) + (entry.quantity or 0) if both else None)
    return {key: entry for key, entry in sums.items() if entry.quantity is None or entry.quantity > 0}


def thing_in(text: str) -> str:
    """Return `text` in the singular and without packaging, so that two names of one item are equal: "rubberbands" and "rubber band"."""
    singulars = [singular(word) for word in plain(text).split()]
    return "".join([word for word in singulars if word not in _MEASURES] or singulars)


def singular(word: str) -> str:
    """Return a form that a noun and its plural share. It is not always a word ("knif")."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, stem in (("ie", "y"), ("oe", "o"), ("she", "sh"), ("che", "ch"), ("xe", "x"), ("sse", "ss"), ("ve", "f"), ("fe", "f")):
        if word.endswith(ending):
            return word.removesuffix(ending) + stem
    return word


def _shown(quantity: float | None) -> str:
    return "no quantity" if quantity is None else f"{quantity:g}"
