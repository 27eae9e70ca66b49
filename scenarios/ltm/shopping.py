"""Shopping list (GoodAI, section 3.2): the user adds to a shopping list and removes from it, then asks for all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.similar import Similar, people, planted, with_asides
from longspan.scenarios.ltm.things_listed import thing_in, things_listed
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.grading.matching import some

__all__ = ["Shopping"]

MAX_COUNT = 6
"""How many of an item are added at once, at most."""
LIKELY_COUNT = 1
"""The quantity that is on lists most often."""


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
        answered = things_listed(record.answer.reply, things)
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


def _shown(quantity: float | None) -> str:
    return "no quantity" if quantity is None else f"{quantity:g}"
