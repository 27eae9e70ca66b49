"""Shopping: a third each for items, quantities, and nothing invented."""

from __future__ import annotations

import json
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import pytest

from longspan.scenarios.ltm.shopping import Shopping
from longspan.scenarios.ltm.things_listed import fold_plural, thing_in
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.running.preflight.rehearsal import rehearse

LIST = {"leek": 3, "candle": 2, "bread knife": 1}
FULL = '[{"item": "leek", "quantity": 3}, {"item": "candle", "quantity": 2}, {"item": "bread knife", "quantity": 1}]'


def graded(reply: str, things: Mapping[str, Any] = LIST) -> Grade:
    return Shopping().grade({"list": things}, Record([Exchange(9, "What?", reply, asks=True)]))


@pytest.mark.parametrize(
    "reply",
    [
        FULL,
        f"```json\n{json.dumps(json.loads(FULL), indent=4)}\n```\nAnything else?",
        f'Here is your list: {FULL}\n\n"Want makes [sic] wise." - Theodora Vane',
        FULL.replace('"', "'"),
        FULL.replace("leek", "Leeks").replace("knife", "Knives"),
        FULL.replace("3", '"3"').replace("2", "2.0").replace("1", '"one"'),
        FULL.replace("3", '"3x"').replace("2", '"x2"').replace("1", '"1 piece"'),
        FULL.replace("item", "name").replace("quantity", "amount"),
        FULL.replace("item", "Product_Name").replace("quantity", "Qty"),
        FULL.replace('"leek"', '"bag of leeks"').replace('"candle"', '"packs of candles"'),
        FULL[:-1] + ', {"item": "broom", "quantity": 0}]',
        FULL.replace('"quantity": 3', '"quantity": 1') + FULL,
        '[{"item": "leek", "quantity": 1}, {"item": "Leeks", "quantity": 2}, ' + FULL.split("}, ", 1)[1],
        f'{{"shopping_list": {FULL}, "total_items": 3}}',
        "\n".join(json.dumps(item) for item in json.loads(FULL)),
        '{"leek": 3, "candles": "2", "bread knife": 1}',
        '[{"leek": 3}, {"candle": 2}, {"bread knife": 1}]',
        '{"list": {"leek": 3, "candle": 2, "bread knife": 1}}',
        '{"leek": {"quantity": 3}, "candle": {"quantity": 2}, "bread knife": {"quantity": 1}}',
        '["3 leeks", "two candles", "a bread knife"]',
        '["leeks x3", "candle (2)", "bread knife: 1"]',
        '[("leek", 3), ("candle", 2), ("bread knife", 1)]',
        '[{"item": "3 leeks"}, {"item": "2 candles"}, {"item": "1 bread knife"}]',
        '[{item: "leek", quantity: 3}, {item: "candle", quantity: 2}, {item: "bread knife", quantity: 1}]',
        FULL[:-1],
    ],
)
def test_right(reply: str) -> None:
    grade = graded(reply)
    assert grade.score == 1, grade.reason
    assert grade.reason == "expected 3 leek, 2 candle, 1 bread knife; 3 of 3 listed, 3 in the right quantity"


@pytest.mark.parametrize(
    ("reply", "thirds", "reason"),
    [
        (FULL.replace("3", "4"), 1 + 2 / 3 + 1, "2 in the right quantity; wrong leek (4)"),
        (FULL.replace("3", "null"), 1 + 2 / 3 + 1, "wrong leek (no quantity)"),
        (FULL.replace("3", '"some"'), 1 + 2 / 3 + 1, "wrong leek (no quantity)"),
        (FULL.replace("3", "1e9"), 1 + 2 / 3 + 1, "wrong leek (1e+09)"),
        (FULL.replace("3", "true"), 1 + 2 / 3 + 1, "wrong leek (no quantity)"),
        (FULL.replace("3", "[3]"), 1 + 2 / 3 + 1, "wrong leek (no quantity)"),
        (FULL.replace("leek", "turnip"), 2 / 3 + 2 / 3 + 0, "missing leek; invented turnip"),
        (FULL[:-1] + ', {"item": "turnip", "quantity": 1}]', 1 + 1 + 0, "invented turnip"),
        (json.dumps([*json.loads(FULL), *({"item": f"thing {n}", "quantity": 1} for n in "abc")]), 1 + 1 + 0, "invented thing a"),
        (json.dumps([*json.loads(FULL), *({"item": f"thing {n}", "quantity": 1} for n in "abcdef")]), (1 + 1) / 2, "invented thing a"),
        ('[{"item": "leek", "quantity": 3}]', 1 / 3 + 1 / 3 + 1, "missing candle, bread knife"),
        ('[{"item": "leek", "quantity": 9}]', 1 / 3 + 0 + 1, "wrong leek (9)"),
        ('[{"item": "leek", "quantity": 2}, {"item": "leek", "quantity": 2}]', 1 / 3 + 0 + 1, "wrong leek (4)"),
        ('["leek", "candle", "bread knife"]', 1 + 0 + 1, "3 of 3 listed, 0 in the right quantity"),
        ('[{"item": "turnip", "quantity": 3}]', 0, "0 of 3 listed"),
        ('[{"item": "bread", "quantity": 1}, {"item": "knife", "quantity": 1}]', 0, "invented bread, knife"),
        ("[]", 0, "no list of items found"),
        ('{"items": []}', 0, "no list of items found"),
        ('[{"item": "", "quantity": 3}]', 0, "no list of items found"),
        ('[{"item": "leek", "quantity": 0}]', 0, "no list of items found"),
        ('[{"item": "leek", "quantity": -3}]', 0, "no list of items found"),
        ("[1, 2, 3]", 0, "no list of items found"),
        ("Your list is empty. [Note: nothing on it]", 0, "no list of items found"),
        ("", 0, "no list of items found"),
        ('I have no access to lists. An example: [{"item": "milk", "quantity": 2}]', 0, "invented milk"),
    ],
)
def test_partly_or_wrong(reply: str, thirds: float, reason: str) -> None:
    grade = graded(reply)
    assert grade.score == pytest.approx(thirds / 3)
    assert reason in grade.reason
    assert grade.turns == (9,)


def test_a_published_list() -> None:
    things = {"toilet paper": 2, "soap": 2, "potato": 1}
    reply = [{"item": "Toilet Paper Rolls", "quantity": 2}, {"item": "Bars of soap", "quantity": 2}, {"item": "Potatoes", "quantity": 1}]
    assert graded(json.dumps(reply), things).score == 1


@pytest.mark.parametrize("changes", [1, 2, 6, 20, 50])
def test_the_list_adds_up_and_is_never_empty(changes: int) -> None:
    removals = []
    for seed in range(50):
        script = rehearse(Shopping(changes=changes), seed=seed, reply=lambda text, ideal: ideal).script
        basket: dict[str, int] = {}
        for (what, item, count), line in zip(script.facts["changes"], script.lines, strict=False):
            noun = item if count == 1 else load_words("groceries")[item]
            assert f"{count} {noun}" in line.text or f"{count} more {noun}" in line.text
            assert (what == "more") == ("more" in line.text)
            if what == "add":
                assert item not in basket
            else:
                assert item in basket
            basket[item] = basket.get(item, 0) + (-count if what == "remove" else count)
            assert basket[item] >= 0
            basket = {thing: left for thing, left in basket.items() if left}
            assert basket
        assert basket == script.facts["list"]
        assert json.loads(script.lines[-1].ideal) == [{"item": item, "quantity": count} for item, count in basket.items()]
        removals.append(sum(what == "remove" for what, _, _ in script.facts["changes"]))
    assert min(removals) >= (changes > 1)


def test_tests_hardly_share_items() -> None:
    lists = [set(rehearse(Shopping(), seed=seed, reply=lambda text, ideal: ideal).script.facts["list"]) for seed in range(50)]
    shared = [len(one & other) / len(one) for k, one in enumerate(lists) for other in lists[:k]]
    assert fmean(shared) < 0.06
    assert 2 <= fmean(map(len, lists)) <= 5


def test_all_changes_are_needed() -> None:
    script = rehearse(Shopping(), seed=0, reply=lambda text, ideal: ideal).script
    assert [line.asks for line in script.lines] == [False] * 6 + [True]
    assert script.lines[-1].needs is None


def test_every_item_is_known_by_its_plural_alone() -> None:
    things = load_words("groceries")
    assert len(things) >= 60
    assert all(thing_in(one) == thing_in(many) != "" for one, many in things.items())
    assert len({thing_in(one) for one in things}) == len(things)


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *[("knife", "knives"), ("leaf", "leaves"), ("loaf", "loaves"), ("glove", "gloves"), ("olive", "olives"), ("berry", "berries")],
        *[("cookie", "cookies"), ("potato", "potatoes"), ("mango", "mangos"), ("shoe", "shoes"), ("box", "boxes"), ("match", "matches")],
        *[("brush", "brushes"), ("glass", "glasses"), ("egg", "eggs"), ("egg", "egg"), ("asparagus", "asparagus"), ("fuse", "fuses")],
    ],
)
def test_plurals(one: str, many: str) -> None:
    assert fold_plural(one) == fold_plural(many)


def test_the_question_says_what_form_it_wants() -> None:
    for text in Wording("shopping").all("question"):
        assert all(word in text for word in ("JSON list", '"item"', '"quantity"'))
