"""Shopping list (GoodAI, section 3.2): the user adds to and removes from a shopping list, then asks for all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.similar import Similar, count_similar, draw_people, with_asides
from longspan.scenarios.ltm.things_listed import thing_in, things_listed
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.matching import join_some

__all__ = ["Shopping"]

MAX_COUNT = 6
"""Maximum quantity in one addition."""
LIKELY_COUNT = 1
"""The most frequent quantity on lists."""


@final
class Shopping(Scenario):
    """Make `changes` additions and removals with quantities; then ask for the list, which is never empty, as JSON.

    The score has three equal parts: the share of items listed, the share of items with the right quantity, and nothing invented (all or
    nothing, and only with at least one right item). If more items are invented than rightly listed, both shares shrink accordingly, so a
    list of everything earns nothing.

    Items are compared in the singular, without case and packaging ("Bags of carrots"), as one word or several. Repeated items are
    summed, and those with a sum of zero are ignored. The JSON list that the reply calls current or complete counts, otherwise the last
    one. Other keys, mappings of items to quantities, quantities in words or with a unit, and strings such as "3 carrots" are accepted.
    Without JSON, so are bullets, tables and prose. Synonyms ("elastic band") and single wrong letters ("cabages") are accepted too.
    After the last change, `similar` items on other people's lists are stated, none of them ever on the user's.
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
        plurals: Mapping[str, str] = load_words("groceries")
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
        # Drawn last, so that the rest of the test is the same with and without them.
        if self.similar:
            listed = {item for _, item, _ in changes}
            free = [item for item in plurals if item not in listed]
            facts["similar"], asides = [], []
            for who in draw_people(random, self.similar):
                item, count = random.choice(free), random.randint(1, MAX_COUNT)
                facts["similar"].append([who, item, count])
                asides.append(wording.say(random, "similar", who=who, count=count, things=item if count == 1 else plurals[item]))
            lines = with_asides(lines, asides)
        return Script(facts=facts, lines=lines, farewell=farewell)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return count_similar(facts, "changes")

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of a list of one item. With more, at least one would almost certainly be invented."""
        counts = list(facts["list"].values())
        shares = (1 + counts.count(LIKELY_COUNT) / len(counts)) / len(counts)
        return len(counts) / len(load_words("groceries")) * (shares + 1) / 3

    def guess(self, message: str) -> str | None:
        if Wording(self.name).read("question", message) is None:
            return None
        return json.dumps([{"item": Random(message).choice(list(load_words("groceries"))), "quantity": LIKELY_COUNT}])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.grade_shopping(facts, record)
        expected = {thing_in(item): item for item in facts["list"]}
        quantities = {thing_in(item): float(count) for item, count in facts["list"].items()}
        things = [*facts["list"], *(item for _, item, _ in facts.get("similar", ())), *load_words("groceries")]
        answered = things_listed(record.answer.reply, things)
        present = [key for key in expected if key in answered]
        right = [key for key in present if answered[key].quantity == quantities[key]]
        invented = [entry.item for key, entry in answered.items() if key not in expected]
        # An empty list invents nothing either, and must not earn this third.
        clean = bool(present) and not invented
        shares = (len(present) + len(right)) / len(expected) * min(1, len(present) / max(1, len(invented)))
        wrong = [f"{expected[key]} ({_format_quantity(answered[key].quantity)})" for key in present if key not in right]
        missing = [item for key, item in expected.items() if key not in present]
        whose = {thing_in(item): who for who, item, _ in facts.get("similar", ())}
        others = [f"{item} (the user's {whose[thing_in(item)]})" for item in invented if thing_in(item) in whose]
        found = (("missing", missing), ("wrong", wrong), ("invented", invented), ("on other people's lists:", others))
        notes = [f"{what} {join_some(items)}" for what, items in found if items]
        hits = f"{len(present)} of {len(expected)} listed, {len(right)} in the right quantity" if answered else "no list of items found"
        return Grade(
            score=(shares + clean) / 3,
            reason=f"expected {join_some(f'{count} {item}' for item, count in facts['list'].items())}; {'; '.join([hits, *notes])}",
            turns=(record.answer.turn,),
        )


def _change(random: Random, basket: Mapping[str, int], things: list[str], *, removes: bool) -> tuple[str, str, int]:
    """Draw the next change to the list: the action (add, more, remove), the item and the quantity. Never empties the list."""
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


def _format_quantity(quantity: float | None) -> str:
    return "no quantity" if quantity is None else f"{quantity:g}"
