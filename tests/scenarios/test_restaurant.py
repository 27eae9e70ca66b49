"""Restaurant: the points for each part, that the waiter plays on, when a judge is asked, and the score without memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.scenarios.restaurant_visits import VISITS, Labelled

from longspan.scenarios.ltm.restaurant.guest import read_complaint, read_recall
from longspan.scenarios.ltm.restaurant.menu import Item, Menu
from longspan.scenarios.ltm.restaurant.scenario import DISH, PARTS, Restaurant
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import Record
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

EVERY = 1 if os.environ.get("LONGSPAN_SEEDS") == "all" else 10
"""Every how manieth seed or pair is played: LONGSPAN_SEEDS=all plays all."""
STEPS = ("drink", "food", "other dish", "wrong dish", "right dish", "same drink")
LISTS = load_words("restaurant")


def visit(changes: dict[str, str] | None = None, seed: int = 1, scenario: Restaurant | None = None) -> Rehearsal:
    """A visit with ideal replies but for `changes` (step -> reply; "{ideal}" stands for the ideal reply)."""
    steps = iter(STEPS)

    def reply(text: str, ideal: str) -> str:
        return (changes or {}).get(next(steps), "{ideal}").replace("{ideal}", ideal)

    return rehearse(scenario or Restaurant(), seed=seed, reply=reply)


def earned(played: Rehearsal) -> str:
    """A digit for each part: 1, 0, or ? if it is left to a judge."""
    return "".join("?" if item.score is None else f"{item.score:.0f}" for item in played.grade.items)


def named(text: str, dishes: Sequence[str]) -> str:
    return next((dish for dish in dishes if dish in text), "")


def play_labelled(labelled: Labelled) -> Rehearsal:
    replies = iter(labelled[1:7])
    dishes = Restaurant().make(Random(f"restaurant/{labelled.seed}")).facts["dishes"]

    def reply(text: str, ideal: str) -> str:
        wrong, right = named(text, dishes), ideal.rpartition("Order: ")[2]
        return next(replies).replace("{wrong}", wrong).replace("{right}", wrong if right == "nothing" else right)

    return rehearse(Restaurant(), seed=labelled.seed, reply=reply)


# What ideal replies and labelled ones earn.


def test_ideal_replies_score_in_full() -> None:
    for seed in [41, 86, *range(0, 300, EVERY)]:
        played = visit(seed=seed)

        assert played.grade.score == 1, f"seed {seed}: {played.grade.reason}"
        assert len(played.record.exchanges) == len(STEPS), f"seed {seed}"
        assert [item.name for item in played.grade.items] == list(PARTS), f"seed {seed}"


def test_every_wrong_dish_is_noticed_and_every_drink_recalled_with_a_closing_line_and_without() -> None:
    dishes = [dish for course in ("starters", "mains", "desserts") for dish in LISTS[course]]
    for ordered, wrong in list(permutations(dishes, 2))[::EVERY]:
        menu = Menu([], [ordered, wrong])
        objection = f"Excuse me, I ordered the {ordered.lower()}, not the {wrong.lower()}."
        for reply in (objection, f"{objection}\nOrder: {ordered}"):
            assert read_complaint(menu, reply, served=wrong, order=[ordered]).right, reply
            assert read_complaint(menu, reply, served=ordered, order=[ordered]).right is False, reply
    for had, other in list(permutations(LISTS["drinks"], 2))[::EVERY]:
        menu = Menu([had, other], [])
        for reply in (f"It was the {had.lower()}. Another one, please.", f"The usual.\nOrder: {had}"):
            assert read_recall(menu, reply, drinks=[had]).right, reply
            assert not read_recall(menu, reply, drinks=[other]).right, reply


def test_labelled_visits_earn_what_a_person_gives() -> None:
    for number, labelled in enumerate(VISITS):
        played = play_labelled(labelled)

        assert earned(played) == labelled.earned, f"visit {number}: {played.grade.reason}"


def test_foreign_quotations_do_not_disturb() -> None:
    quote = ' "To stop is not to lose the way, but to look at the map again." - A. Nonymous'
    played = rehearse(Restaurant(), seed=4, reply=lambda text, ideal: ideal + quote)

    assert played.grade.score == 1, played.grade.reason


@pytest.mark.parametrize("reply", ["OK.", "", "Understood.", "Noted!", "\U0001f600", "As an AI, I cannot order drinks.", "Order: nothing"])
def test_who_does_not_play_earns_nothing_and_the_waiter_plays_on(reply: str) -> None:
    played = rehearse(Restaurant(), seed=3, reply=lambda text, ideal: reply)

    assert played.grade.score == 0
    assert len(played.record.exchanges) == len(STEPS)


@pytest.mark.parametrize(
    ("step", "reply", "parts", "because"),
    [
        ("drink", "I'd like a glass of water, please.", "01110", "drink: no drink on the menu is ordered"),
        ("drink", "Order: Water", "01110", "drink: not on the menu: water"),
        ("drink", "Just a moment.\nOrder: nothing", "01110", 'drink: no drink on the menu is ordered: its last line is "Order: nothing"'),
        ("drink", "I should like to order.\n**Order:** ...", "01110", 'is ordered: its last line is "Order:** ..."'),
        ("drink", "Order: {dish}", "01110", "drink: no drink on the menu is ordered, but the dish {dish}"),
        ("food", "Order: {drink}", "10000", "food: no dish on the menu is ordered, but the drink {drink}"),
        ("drink", "{ideal}\nWaiter: At once!\nGuest: Thank you.", "11111", ""),
        ("drink", "The merlot.\nWaiter: At once!\nGuest: Thank you.", "01110", "speaks for the waiter too"),
        ("drink", "*smiles* {ideal}", "11111", ""),
        ("food", "What do you recommend?", "10000", "food: no dish on the menu is ordered"),
        ("food", "Order: unicorn ragout", "10000", "not on the menu: unicorn ragout"),
        ("food", "As a language model I do not eat.", "10000", "not a guest's"),
        ("food", "And some bread, please. {ideal}", "11111", ""),
        ("food", "{ideal}, unicorn ragout", "10000", "not on the menu: unicorn ragout"),
        ("other dish", "What a pity. What can you recommend?", "11000", "other dish: no dish on the menu is ordered"),
        ("other dish", "What a pity! {ideal}", "11111", ""),
        ("wrong dish", "Thank you, it looks delicious.\nOrder: nothing", "11101", "does not object"),
        ("wrong dish", "This is not what I ordered.", "11111", ""),
        ("wrong dish", "", "11101", "empty"),
        ("right dish", "This is not what I ordered.", "11101", "objects to the right dish"),
        ("right dish", "", "11111", ""),
        ("right dish", "Thank you for putting the mistake right.", "11111", ""),
        ("same drink", "Yes please, the same again!", "11110", "names no drink on the menu"),
        ("same drink", "Order: the same", "11110", "names no drink on the menu"),
    ],
)
def test_what_each_reply_is_worth(step: str, reply: str, parts: str, because: str) -> None:
    guest = Restaurant().make(Random("restaurant/1")).facts["guest"]
    for name in ("drink", "dish"):
        reply, because = (text.replace(f"{{{name}}}", guest[name]) for text in (reply, because))
    played = visit({step: reply})

    assert earned(played) == parts, played.grade.reason
    assert played.grade.score == pytest.approx(parts.count("1") / 5)
    assert because in played.grade.reason


# The faults that were found in earlier versions.

NEGRONI, JAMBALAYA, QUICHE = 100, "Jambalaya with okra", "Leek quiche with salad"
"""A seed whose guest orders the negroni, the jambalaya and then the quiche."""


@pytest.mark.parametrize(
    ("step", "reply", "parts"),
    [
        ("food", "The jambalaya looks interesting, but I'm still undecided. Give me a moment.", "10000"),
        ("food", "I've heard good things about the jambalaya. Is it spicy?", "10000"),
        ("drink", "I can help you decide on a drink from the beverage menu: a negroni or a wheat beer?", "01110"),
        ("drink", "I am just a text-based AI, but how about the negroni, the wheat beer, or the chardonnay?", "01110"),
        ("wrong dish", "Thank you! Everything looks and smells absolutely delicious. I can't wait to try the quiche.", "1110?"),
        ("wrong dish", "Thank you! Everything looks and smells absolutely delicious. I can't wait!", "11101"),
        ("wrong dish", "Thank you! Just one thing: I seem to have the wrong fork.", "11101"),
    ],
)
def test_talk_refusals_and_compliments(step: str, reply: str, parts: str) -> None:
    facts = Restaurant().make(Random(f"restaurant/{NEGRONI}")).facts
    assert facts["guest"] == {"drink": "Negroni", "dish": JAMBALAYA, "instead": QUICHE}
    played = visit({step: reply}, seed=NEGRONI)

    assert earned(played).replace("?1", "01") == parts.replace("?", "1"), played.grade.reason


# The waiter plays on, within what his outline declares.


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.text(max_size=120)
        | st.sampled_from(["{ideal}", "I'd like that, please.", "Waiter:", "not", "?", "Order:", "Order: soup, cola"]),
        min_size=6,
        max_size=6,
    )
)
def test_any_replies_are_answered_by_six_lines_that_fit_the_outline(replies: list[str]) -> None:
    played = visit(dict(zip(STEPS, replies, strict=True)))
    count = Tokenizer().count

    assert played.grade.score is None or 0 <= played.grade.score <= 1
    for exchange, segment in zip(played.record.exchanges, played.script.outline, strict=True):
        assert exchange.asks
        assert exchange.text.count("Waiter:") == 1 or exchange is played.record.exchanges[0]
        assert count(exchange.text) <= segment.tokens


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_the_longest_possible_lines_fit_the_outline(encoding: str) -> None:
    count = Tokenizer(encoding).count
    names = ("scene", "food", "off", "wrong", "right", "again")
    for seed in range(0, 600, EVERY):
        for scenario in (Restaurant(), Restaurant(drinks=10, dishes=24), Restaurant(drinks=3, dishes=8)):
            script = scenario.make(Random(seed))
            lines = script.facts["lines"]
            dish = max(script.facts["dishes"], key=lambda name: count(f" {name}"))
            for name, segment in zip(names, script.outline, strict=True):
                longest = [line.replace(DISH, dish) for line in (lines[name], f"{lines['no_order']} {lines[name]}")]
                assert count(longest[name in ("food", "off", "wrong")]) <= segment.tokens, (seed, name)
            if scenario == Restaurant():
                assert sum(segment.tokens for segment in script.outline) < 800


def test_what_is_off_was_ordered_and_the_wrong_dish_was_not() -> None:
    for seed in range(50):
        played = visit(seed=seed)
        guest, dishes = played.script.facts["guest"], played.script.facts["dishes"]
        off, wrong, right = (named(exchange.text, dishes) for exchange in played.record.exchanges[2:5])
        assert off == guest["dish"]
        assert right == guest["instead"]
        assert wrong not in (off, right, "")


def test_the_two_plates_come_in_the_same_words_and_no_line_names_the_drink() -> None:
    wrongs, rights = set(), set()
    for seed in range(60):
        played = visit(seed=seed)
        facts = played.script.facts
        for at, words_ in ((3, wrongs), (4, rights)):
            text = played.record.exchanges[at].text
            words_.add(text.replace(named(text, facts["dishes"]), DISH))
        assert not any(drink in e.text for e in played.record.exchanges[1:] for drink in facts["drinks"])
    assert wrongs == rights


def test_a_guest_who_orders_two_dishes_gets_one_of_them_wrong() -> None:
    script = Restaurant().make(Random("restaurant/1"))
    starter, main, *_ = (dish for dish in script.facts["dishes"] if dish not in script.facts["guest"].values())
    played = visit({"food": f"I'll start with the {starter}, and then the {main}, please."})

    assert played.grade.score == 1, played.grade.reason
    assert named(played.record.exchanges[2].text, script.facts["dishes"]) in (starter, main)


def test_a_dish_that_is_off_cannot_be_ordered_again() -> None:
    played = visit({"other dish": visit().record.exchanges[1].reply})

    assert earned(played) == "11000"
    assert "insists on" in played.grade.reason


def test_the_wrong_drink_is_not_recalled() -> None:
    facts = Restaurant().make(Random("restaurant/1")).facts
    other = next(drink for drink in facts["drinks"] if drink != facts["guest"]["drink"])
    for reply in (
        f"It was the {other}.",
        f"Order: {other}",
        f"Order: {facts['guest']['drink']} or {other}",
        f"Order: {', '.join(facts['drinks'])}",
    ):
        assert earned(visit({"same drink": reply})) == "11110"


# Unclear replies are left to a judge.


@pytest.mark.parametrize(("holds", "parts"), [(True, "11111"), (False, "10000"), (None, "1????")])
def test_a_judge_decides_whether_praise_is_an_order_and_nobody_guesses(holds: bool | None, parts: str) -> None:
    played = visit({"food": f"The {JAMBALAYA} sounds wonderful."}, seed=NEGRONI)
    assert earned(played) == "1????"
    assert played.grade.score is None
    assert [JAMBALAYA in query.prompt for query in played.grade.asks] == [True]

    answers: dict[str, dict[str, Any] | str] = {
        query.about: "the judge failed" if holds is None else {"holds": holds, "why": "so it is"} for query in played.grade.asks
    }
    graded = Restaurant().grade(played.script.facts, replace(played.record, judged=answers))

    assert earned(replace(played, grade=graded)) == parts
    assert ("the judge failed" if holds is None else "judged: so it is") in graded.reason


def test_a_dish_named_by_its_kind_alone_is_left_to_a_judge() -> None:
    for seed in range(60):
        soup = [dish for dish in Restaurant().make(Random(f"restaurant/{seed}")).facts["dishes"] if "soup" in dish]
        for reply in ("I'll have the soup, please.", "Order: soup"):
            assert earned(visit({"food": reply}, seed=seed))[1] == ("?" if soup else "0")


# Without memory.


def mean_score(reply: Callable[[str], str], seeds: int) -> float:
    return fmean(rehearse(Restaurant(), seed=seed, reply=lambda text, ideal: reply(text)).grade.score or 0 for seed in range(seeds))


def test_guesses_are_made_of_the_waiters_lines_alone() -> None:
    played = visit()
    assert all(Restaurant().guess(exchange.text) for exchange in played.record.exchanges)
    assert Restaurant().guess("What is the capital of Peru?") is None


MAINS: list[str] = LISTS["mains"]


@pytest.mark.parametrize(
    "reply",
    [
        "That's not what I ordered.",
        f"That's not what I ordered.\nOrder: {MAINS[0]}",
        "Order: " + ", ".join(MAINS),
        "Order: " + ", ".join(MAINS[:2]),
        "I'll have the " + ", the ".join(MAINS),
        "I'll have the " + " and the ".join(MAINS[:2]),
        "I'll have the soup, the salad, the chicken, the lamb, the beef and the tart, please.",
        "I'll have a pizza, please.",
        "I'll have whatever is on the menu.\nOrder: everything",
        "Yes, thank you. Exactly as I ordered it.",
    ],
)
def test_no_other_way_without_memory_earns_more(reply: str) -> None:
    def drinks_first(text: str) -> str:
        return (Restaurant().guess(text) or "") if "\n\nWaiter:" in text else reply

    assert mean_score(drinks_first, seeds=1000 // EVERY) <= Restaurant().chance({}) + 0.02


# Menus and parameters.


def test_the_same_seed_gives_the_same_visit_and_another_one_another() -> None:
    assert visit(seed=7) == visit(seed=7)
    assert visit(seed=7).script.facts["dishes"] != visit(seed=8).script.facts["dishes"]


def test_menus_of_two_visits_differ_in_most_dishes() -> None:
    menus = [set(Restaurant().make(Random(seed)).facts["dishes"]) for seed in range(30)]
    shared = [len(menus[a] & menus[b]) / len(menus[a]) for a in range(30) for b in range(a)]

    assert sum(shared) / len(shared) < 0.25


@pytest.mark.parametrize(("drinks", "dishes"), [(3, 8), (6, 13), (10, 24)])
def test_no_word_names_two_items_of_a_menu(drinks: int, dishes: int) -> None:
    for seed in range(20):
        facts = Restaurant(drinks=drinks, dishes=dishes).make(Random(seed)).facts
        found = [word for name in (*facts["drinks"], *facts["dishes"]) for word in Item.parse_item(name, False).enough]
        assert (len(facts["drinks"]), len(facts["dishes"])) == (drinks, dishes)
        assert len(found) == len(set(found))
        assert visit(seed=seed, scenario=Restaurant(drinks=drinks, dishes=dishes)).grade.score == 1


@pytest.mark.parametrize("wrong", [{"drinks": 2}, {"drinks": 11}, {"dishes": 7}, {"dishes": 25}, {"dishes": "many"}, {"tables": 3}])
def test_parameters_refuse_nonsense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Restaurant(**wrong)


def test_facts_survive_json_and_grade_alike() -> None:
    played = visit({"wrong dish": "Thank you!"})
    facts = json.loads(json.dumps(played.script.facts))

    assert facts == played.script.facts
    assert Restaurant().grade(facts, played.record) == played.grade
    assert played.grade.turns == (0, 1, 2, 3, 5)


def test_a_visit_without_facts_or_exchanges_is_graded() -> None:
    assert Restaurant().grade({}, Record()).score == 0
    assert Restaurant().grade(visit().script.facts, Record()).score == 0
