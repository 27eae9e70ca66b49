"""Restaurant: what each decision is worth, what ends the scene, and when a judge is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.restaurant.menu import Item
from longspan.scenarios.ltm.restaurant.scenario import Restaurant
from longspan.simulator.record import Record
from longspan.simulator.scenario import Test
from longspan.simulator.script import Placement
from longspan.simulator.stage import AskJudge, Say, Stage, Verdict, Wait
from longspan.simulator.tokens import Tokenizer
from longspan.simulator.tools.rehearsal import Rehearsal, rehearse

STEPS = ("drink", "food", "other dish", "wrong dish", "sorry", "same drink")


def visit(changes: dict[str, str] | None = None, seed: int = 1, scenario: Restaurant | None = None) -> Rehearsal:
    """A visit with ideal replies but for `changes` (step -> reply; "{ideal}" stands for the ideal reply)."""
    steps = iter(STEPS)

    def reply(text: str, ideal: str) -> str:
        return (changes or {}).get(next(steps), "{ideal}").replace("{ideal}", ideal)

    return rehearse(scenario or Restaurant(), seed=seed, reply=reply)


@pytest.mark.parametrize("seed", range(50))
def test_ideal_replies_score_in_full(seed: int) -> None:
    played = visit(seed=seed)

    assert played.grade.score == 1, played.grade.reason
    assert len(played.record.exchanges) == len(STEPS)


@pytest.mark.parametrize("reply", ["OK.", "", "Understood.", "Noted!", "😀", "As an AI, I cannot order drinks."])
def test_who_does_not_play_scores_nothing_and_the_scene_ends(reply: str) -> None:
    played = rehearse(Restaurant(), seed=3, reply=lambda text, ideal: reply)

    assert played.grade.score == 0
    assert len(played.record.exchanges) == 1


def test_foreign_quotations_do_not_disturb() -> None:
    quote = ' "To stop is not to lose the way, but to look at the map again." - A. Nonymous'
    played = rehearse(Restaurant(), seed=4, reply=lambda text, ideal: ideal + quote)

    assert played.grade.score == 1, played.grade.reason


def test_the_replies_of_another_visit_score_hardly_above_chance() -> None:
    scenario = Restaurant()
    scores = []
    for seed in range(50):
        ideals = [exchange.reply for exchange in visit(seed=seed + 1).record.exchanges]
        replies = iter(ideals)
        played = rehearse(scenario, seed=seed, reply=lambda text, ideal, replies=replies: next(replies))
        scores.append(played.grade.score or 0)

    assert sum(scores) / len(scores) <= scenario.chance({}) + 0.1


@pytest.mark.parametrize(
    ("step", "reply", "score", "lines", "because"),
    [
        ("drink", "I'd like a glass of water, please.", 0.6, 5, "drink: no drink on the menu is ordered"),
        ("drink", "Just the menu for now, please.", 0.6, 5, "no drink"),
        ("drink", "Thank you, how kind.", 0, 1, "no drink on the menu is ordered"),
        ("drink", "{ideal}\nWaiter: At once!\nGuest: Thank you.", 0, 1, "speaks for the waiter too"),
        ("drink", "*smiles* {ideal}", 1, 6, "the guest orders"),
        ("food", "What do you recommend?", 0.2, 2, "food: no dish on the menu is ordered"),
        ("food", "I'd like the unicorn ragout, please.", 0.2, 2, "no dish on the menu is ordered"),
        ("food", "As a language model I do not eat.", 0.2, 2, "not a guest's"),
        ("food", "{ideal} And some bread, please.", 1, 6, "the guest orders"),
        ("other dish", "What a pity. What can you recommend?", 0.4, 3, "no other dish on the menu is chosen"),
        ("other dish", "I'd like the unicorn ragout, please.", 0.4, 3, "no other dish on the menu is chosen"),
        ("other dish", "What a pity! {ideal}", 1, 6, "is off and the guest chooses"),
        ("wrong dish", "Thank you, it looks delicious.", 0.8, 6, "the reply does not object"),
        ("wrong dish", "This is not what I ordered.", 1, 6, "objects"),
        ("wrong dish", "", 0.6, 4, "empty"),
        ("same drink", "Yes please, the same again!", 0.8, 6, "names no drink on the menu"),
        ("same drink", "I don't remember.", 0.8, 6, "names no drink on the menu"),
        ("sorry", "", 1, 6, ""),
    ],
)
def test_what_each_reply_is_worth(step: str, reply: str, score: float, lines: int, because: str) -> None:
    played = visit({step: reply})

    assert played.grade.score == pytest.approx(score), played.grade.reason
    assert len(played.record.exchanges) == lines
    assert because in played.grade.reason


def test_a_dish_that_is_off_cannot_be_ordered_again() -> None:
    first = visit().record.exchanges[1].reply
    played = visit({"other dish": first})

    assert played.grade.score == pytest.approx(0.4)
    assert "insists on" in played.grade.reason


def test_a_guest_who_orders_two_dishes_gets_one_of_them_wrong() -> None:
    script = Restaurant().make(Random("restaurant/1"))
    starter, main, *_ = (dish for dish in script.facts["dishes"] if dish not in script.facts["guest"].values())
    played = visit({"food": f"I'll start with the {starter}, and then the {main}, please."})

    assert played.grade.score == 1, played.grade.reason
    served = played.record.exchanges[3].text
    assert sum(dish in served for dish in (starter, main)) == 1


def test_naming_every_dish_is_no_order() -> None:
    dishes = Restaurant().make(Random("restaurant/1")).facts["dishes"]
    played = visit({"food": "I'll have " + ", ".join(dishes)})

    assert played.grade.score == pytest.approx(0.2)
    assert f"orders {len(dishes)} items at once" in played.grade.reason


def test_the_wrong_drink_is_not_recalled() -> None:
    facts = Restaurant().make(Random("restaurant/1")).facts
    other = next(drink for drink in facts["drinks"] if drink != facts["guest"]["drink"])
    played = visit({"same drink": f"It was the {other}."})

    assert played.grade.score == pytest.approx(0.8)
    assert f"the drink was {facts['guest']['drink']}: the reply says it was {other}" in played.grade.reason


def test_the_wrong_dish_is_neither_ordered_nor_off() -> None:
    for seed in range(50):
        played = visit(seed=seed)
        guest, served = played.script.facts["guest"], played.record.exchanges[3].text
        assert sum(dish in served for dish in played.script.facts["dishes"]) == 1
        assert guest["dish"] not in served
        assert guest["instead"] not in served


def test_the_drink_is_offered_again_without_naming_any() -> None:
    for seed in range(20):
        played = visit(seed=seed)
        assert not any(drink.casefold() in played.record.exchanges[-1].text.casefold() for drink in played.script.facts["drinks"])
        assert "Waiter:" in played.record.exchanges[-1].text


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
        named = [word for name in (*facts["drinks"], *facts["dishes"]) for word in Item.called(name, False).enough]
        assert (len(facts["drinks"]), len(facts["dishes"])) == (drinks, dishes)
        assert len(named) == len(set(named))
        assert visit(seed=seed, scenario=Restaurant(drinks=drinks, dishes=dishes)).grade.score == 1


@pytest.mark.parametrize("wrong", [{"drinks": 2}, {"drinks": 11}, {"dishes": 7}, {"dishes": 25}, {"dishes": "many"}, {"tables": 3}])
def test_parameters_refuse_nonsense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Restaurant(**wrong)


def test_messages_fit_the_outline_and_a_short_span() -> None:
    count = Tokenizer().count
    for seed in range(30):
        played = visit(seed=seed)
        assert count(played.record.exchanges[0].text) < 350
        assert sum(segment.tokens for segment in played.script.outline) < 800
        for exchange, segment in zip(played.record.exchanges, played.script.outline, strict=True):
            assert count(exchange.text) <= segment.tokens


def test_facts_survive_json_and_grade_alike() -> None:
    played = visit({"wrong dish": "Thank you!"})
    facts = json.loads(json.dumps(played.script.facts))

    assert facts == played.script.facts
    assert Restaurant().grade(facts, played.record) == played.grade
    assert played.grade.turns == (0, 1, 2, 3, 5)


def test_a_visit_without_awards_is_graded() -> None:
    assert Restaurant().grade({}, Record()).score == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(max_size=120) | st.sampled_from(["{ideal}", "I'd like that, please.", "Waiter:", "not", "?"]), min_size=6, max_size=6)
)
def test_no_replies_raise(replies: list[str]) -> None:
    played = visit(dict(zip(STEPS, replies, strict=True)))

    assert 0 <= (played.grade.score or 0) <= 1


# What a rehearsal does not show: waits, needs and the judge.


@dataclass
class Visit:
    """Plays a visit with a judge; keeps what was asked for."""

    reply: Callable[[str], str]
    verdict: Verdict = field(default_factory=lambda: Verdict(None, "nobody there"))
    said: list[Say] = field(default_factory=list)
    waited: list[float | None] = field(default_factory=list)
    judged: list[AskJudge] = field(default_factory=list)
    awards: list[tuple[float, str]] = field(default_factory=list)
    now: datetime = datetime(2024, 1, 1)
    turns: int = 0
    placement: Placement = "uniform"

    def play(self, seed: int = 1) -> float:
        scenario = Restaurant()
        test = Test("restaurant-1", scenario, scenario.make(Random(f"restaurant/{seed}")), str(seed), 0)
        play = scenario.play(Stage(test.script, test.seed, self, lambda points, why: self.awards.append((points, why))))
        answer: Any = None
        while True:
            try:
                asked: Any = play.send(answer)
            except StopIteration:
                return sum(points for points, _ in self.awards)
            answer = self.answer(asked)

    def answer(self, asked: Any) -> Any:
        match asked:
            case Say():
                self.said.append(asked)
                return self.reply(asked.ideal)
            case Wait():
                self.waited.append(asked.span)
                return None
            case AskJudge():
                self.judged.append(asked)
                return self.verdict
        raise AssertionError(asked)


def test_needles_needs_and_waits() -> None:
    visiting = Visit(reply=lambda ideal: ideal)
    visiting.play()

    assert [(say.asks, say.needle, say.needs) for say in visiting.said] == [
        (True, True, ()),
        (True, True, (0,)),
        (True, True, (0, 1)),
        (True, False, (2,)),
        (False, False, None),
        (True, False, (0,)),
    ]
    assert visiting.waited == [segment.at for segment in Restaurant().make(Random("restaurant/1")).outline][1:]
    assert visiting.judged == []


@pytest.mark.parametrize(("holds", "score"), [(True, 1), (False, 0.2), (None, 1)])
def test_the_judge_decides_whether_praise_is_an_order(holds: bool | None, score: float) -> None:
    def praise(ideal: str) -> str:
        return ideal.replace("I'll have the", "The").replace(", please.", " sounds wonderful.") if ideal.startswith("I'll have") else ideal

    visiting = Visit(praise, Verdict(holds, "because"))

    assert visiting.play() == pytest.approx(score), visiting.awards
    assert [asked.statement.startswith("The guest orders") for asked in visiting.judged] == [True]


@pytest.mark.parametrize(("holds", "score"), [(True, 1), (False, 0.8), (None, 0.8)])
def test_the_judge_decides_between_two_drinks(holds: bool | None, score: float) -> None:
    facts = Restaurant().make(Random("restaurant/1")).facts
    drink = facts["guest"]["drink"]
    other = next(name for name in facts["drinks"] if name != drink)
    visiting = Visit(lambda ideal: f"The {drink} or the {other}." if ideal.startswith("It was") else ideal, Verdict(holds, "because"))

    assert visiting.play() == pytest.approx(score), visiting.awards
    assert [drink in asked.statement for asked in visiting.judged] == [True]
