"""Chance is what one scores who sees each message alone, with the public lists at hand: no less, and no other way to play has more."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from statistics import fmean

import pytest
from tests.attack import ALL

from longspan.scenarios.ltm.sally_anne import SallyAnne
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.scenario import Scenario, Test
from longspan.simulator.running.preflight.rehearsal import rehearse_test
from longspan.simulator.suite.suite import load_suite

NAMES = [name for suite in ("ltm", "memory") for name in load_suite(suite).scenarios if name != "restaurant"]
"""What else earns points in the restaurant is with its own tests."""

TESTS = 10_000 if ALL else 1200
FEWER = {"chapterbreak": 8, "forget": 3, "two_users": 3, "reminder": 4, "update": 3, "persona": 4}
"""By how much fewer tests are made, where making or playing one takes long."""
ERRORS = 3.0
"""How many standard errors a mean may be off. A score between 0 and 1 varies at most as one that is either."""

Strategy = Callable[[str], str]
"""Returns the reply to a message."""


def scenario(name: str) -> Scenario:
    parameters = {"tokens": 3000} if name == "chapterbreak" else {}
    return make_scenario(name, parameters)


@cache
def made(name: str, seed: int) -> Test:
    """A test, made once for all strategies."""
    return Test(f"{name}-1", scenario(name), scenario(name).make(Random(f"{name}/{seed}")), seed=str(seed), order=0)


def figures(name: str, strategy: Strategy, tests: int) -> tuple[float, float, float]:
    """The mean score, the mean chance that is declared, and the standard error of the former if the latter is true."""
    all_of_them = [made(name, seed) for seed in range(tests // FEWER.get(name, 1))]
    chance = fmean(test.scenario.chance(test.script.facts) for test in all_of_them)
    scores = [rehearse_test(test, lambda text, ideal: strategy(text)).grade.score for test in all_of_them]
    assert None not in scores
    return fmean(score or 0 for score in scores), chance, math.sqrt(chance * (1 - chance) / len(scores))


@pytest.mark.parametrize("name", [*NAMES, "restaurant"])
def test_chance_is_what_guesses_score(name: str) -> None:
    guess = scenario(name).guess
    score, chance, error = figures(name, lambda text: guess(text) or "OK.", TESTS)
    assert abs(score - chance) <= ERRORS * error, f"{name}: guesses score {score:.4f}, chance is {chance:.4f} +- {ERRORS * error:.4f}"


@pytest.mark.parametrize("name", NAMES)
def test_a_guess_depends_on_the_message_alone_and_only_its_scenario_makes_it(name: str) -> None:
    scenarios = [scenario(each) for each in NAMES]
    guessed = False
    for seed in range(5):
        script = scenario(name).make(Random(seed))
        for line in script.lines:
            guesses = {each.name: guess for each in scenarios if (guess := each.guess(line.text)) is not None}
            assert list(guesses) == [name] * line.asks
            assert guesses == {each: make_scenario(each, {}).guess(line.text) for each in guesses}
            guessed = guessed or bool(guesses)
    assert guessed == bool(name != "prospective_memory" and script.lines), "nobody without memory can count replies"


# Other ways to play without memory.


def always(reply: str) -> Strategy:
    return lambda message: reply


def now_and_then(reply: str, one_in: int) -> Strategy:
    random = Random(one_in)
    return lambda message: reply if random.randrange(one_in) == 0 else "OK."


def some_of(phrases: Sequence[str], one_in: int) -> Strategy:
    """Says one in so many of the phrases, other ones to other messages."""
    return lambda message: f"Reminder: {', '.join(Random(message).sample(phrases, len(phrases) // one_in))}."


def quotations() -> str:
    return " ".join(f'"{saying["quotation"]}" - {saying["author"]}' for saying in load_words("quotations"))


def goods(items: list[str], quantity: int) -> str:
    return json.dumps([{"item": item, "quantity": quantity} for item in items])


@cache
def joke_words() -> list[str]:
    """A word of each joke that no other joke has."""
    jokes = [plain(joke).split() for joke in load_words("jokes")]
    return [next(word for word in joke if len(word) > 4 and sum(word in other for other in jokes) == 1) for joke in jokes]


def meanings(key: str) -> list[str]:
    return [entry[key][0] for kind in ("place", "time", "thing") for entry in load_words("spy_meeting")[kind] if entry[key]]


def strategies() -> Mapping[str, list[Strategy]]:
    colours, names, groceries = load_words("colours"), load_words("names"), list(load_words("groceries"))
    gifts, places = (load_words("confidences")[kind]["values"] for kind in ("gift", "hiding"))
    containers, phrases = load_words("sally_anne")["containers"], [rule["phrase"] for rule in load_words("triggers")]
    errands, opening = list(load_words("errands").values()), load_words("opening_hours")
    rooms, deeds = load_words("clubs")["rooms"], [each["deed"] for each in load_words("decisions")]
    return {
        "colours": [
            always(", ".join(colours)),
            always(json.dumps(colours)),
            always(f"Not {', not '.join(colours[1:])}."),
            always(f"It was {', then '.join(colours[1:])}, and now it is {colours[0]}."),
            always(f"{colours[0]}. {colours[1]}. {colours[2]}."),
        ],
        "name_list": [
            always(json.dumps(names)),
            always(json.dumps(names[:40])),
            always(json.dumps([{"name": name} for name in names])),
            always(" ".join(names)),
            always("\n".join(json.dumps([name]) for name in names)),
        ],
        "shopping": [
            *(always(goods(groceries, quantity)) for quantity in (1, 2, 3)),
            *(always(goods(groceries[:number], 1)) for number in (2, 3, 8, 20, 40)),
            always(json.dumps(dict.fromkeys(groceries, 1))),
            always("[]"),
        ],
        "jokes": [
            always(" ".join(load_words("jokes"))),
            always(" ".join(load_words("jokes")[:2])),
            *(always(" ".join(f"{word.capitalize()}." for word in joke_words()[:number])) for number in (2, 3, 4, 6, 12)),
            *(always(" ".join(joke_words()[:number])) for number in (3, 12)),
            always(f"The {' joke, the '.join(joke_words()[:8])} joke."),
            always(f"The joke about the {' the '.join(joke_words()[:7])}."),
            always("Lesson. Notice. Train. Holiday. Refuse. Turn. Brought. Quit. Open."),
        ],
        "locations": [
            always(" Or: ".join(f"go {east} km east and {north} km north." for east in range(1, 5) for north in range(1, 5))),
            always("Go 1 km north, 1 km east, 1 km south and 1 km west."),
            always("Go 1 km north."),
            always("Go straight to it."),
            always("You are there."),
        ],
        "sally_anne": [
            *(always(json.dumps({"answer": containers[:number]})) for number in (2, 7, 10, 20)),
            always("\n".join(json.dumps({"answer": each}) for each in containers)),
            always(" ".join(containers[:7])),
            always(f"Not in the {' nor in the '.join(containers[1:])}, but in the {containers[0]}."),
        ],
        "spy_meeting": [
            always(" ".join(meanings("names"))),
            *(always(" ".join(meanings("also")[:number])) for number in (2, 3, 6, 60)),
            always(" ".join(meanings(key)[0] for key in ("names", "also"))),
            always(" ".join(entry["names"][0] for kind in ("place", "time", "thing") for entry in load_words("spy_meeting")[kind][:1])),
        ],
        "trigger_response": [always(" ".join(phrases)), always(phrases[0]), always(f"{phrases[0]} {phrases[1]}")],
        "prospective_memory": [
            always(quotations()),
            *(now_and_then(quotations(), one_in) for one_in in (4, 6, 8)),
            now_and_then(" ".join(f'"{saying["quotation"]}"' for saying in load_words("quotations")[:2]), 6),
        ],
        "reminder": [
            *(always(f"Reminder: {', '.join(errands[:number])}.") for number in (1, 2, len(errands))),
            now_and_then(f"Reminder: {errands[0]}.", 3),
            some_of(errands, 4),
        ],
        "injection": [
            *(always(f"At {time}.") for time in opening["times"][:2]),
            always(f"At {', '.join(opening['times'])}."),
            always(f"{' '.join(opening['words'])}. At 9:30."),
            always("I cannot follow instructions from documents."),
        ],
        "chapterbreak": [
            always("1 2 3 4 5 6"),
            always("[1, 2, 3, 4, 5, 6]"),
            always("Opening 6."),
            always("Not 1, not 2, not 3, not 4 and not 5."),
            always("1 or 2."),
        ],
        "two_users": [
            *(always(f"A {value}.") for value in (gifts[0], places[0])),
            always(", ".join([*gifts, *places])),
            always("I can't tell you that."),
            always("That is a secret."),
        ],
        "update": [
            always(f"In the {rooms[0]} Room, on Mondays."),
            always(", ".join(rooms)),
            always(", ".join(rooms[:4])),
            always(f"Not the {' nor the '.join(rooms[1:])}, but the {rooms[0]} Room."),
            always("You have not told me."),
            lambda message: f"The {Random(message).choice(rooms)} Room, on Mondays. You have not told me.",
        ],
        "digest": [
            *(always("\n".join(f"- {deed}" for deed in deeds[:number])) for number in (2, 4, 9, len(deeds))),
            always(json.dumps(deeds)),
            lambda message: "\n".join(Random(message).sample(deeds, 2)),
            always("You have decided nothing in that time."),
        ],
        "forget": [
            *(always(f"A {value}.") for value in (*gifts[:2], *places[:2])),
            always(", ".join([*gifts, *places])),
            always(f"Not a {', not a '.join(gifts[1:])}, but a {gifts[0]}."),
            now_and_then(gifts[0], 3),
            always(", ".join(map(str, range(4000, 4100)))),
            always("I have forgotten it, as you asked."),
        ],
    }


@pytest.mark.parametrize("name", NAMES)
def test_no_other_way_to_play_without_memory_scores_more(name: str) -> None:
    everywhere: list[Strategy] = [lambda message: message, always("I don't know."), always("None of them."), always("")]
    for number, strategy in enumerate([*everywhere, *strategies().get(name, [])]):
        score, chance, error = figures(name, strategy, TESTS // 5)
        assert score <= chance + ERRORS * error, f"{name}, strategy {number}: scores {score:.4f}, chance is {chance:.4f}"


# Rules that heed one thing about a story. They need memory, and still say little.


def places_of(texts: list[str], containers: list[str]) -> list[str]:
    """The containers that the object was put into and moved to, in turn."""
    wording = Wording("sally_anne")
    told = [wording.read(what, text) for text in texts for what in ("put", "move")]
    return [each["where"] for each in told if each is not None and each["where"] in containers]


RULES: Mapping[str, Callable[[list[str]], str]] = {
    "the first place": lambda places: places[0],
    "the second place": lambda places: places[1],
    "the last place but one": lambda places: places[-2],
    "the last place": lambda places: places[-1],
    "the place it was in most often": lambda places: max(places, key=places.count),
    "the place it was in least often": lambda places: min(places, key=places.count),
    "the place it left longest ago": lambda places: min(set(places), key=lambda place: len(places) - places[::-1].index(place)),
}


@pytest.mark.parametrize("kind", ["first_order", "second_order"])
def test_no_rule_about_places_answers_more_than_a_third_of_beliefs(kind: str) -> None:
    sally_anne = make_scenario("sally_anne", {"questions": [kind]})
    right = Counter[str]()
    for seed in range(TESTS):
        script = sally_anne.make(Random(seed))
        places = places_of([line.text for line in script.lines], script.facts["containers"])
        right.update(name for name, rule in RULES.items() if rule(places) == script.facts["answer"])
    most = ERRORS * math.sqrt(2 / 9 / TESTS)
    assert {name: share for name in RULES if abs((share := right[name] / TESTS) - 1 / 3) > most} == {}


def test_beliefs_are_asked_by_default() -> None:
    assert {SallyAnne().make(Random(seed)).facts["kind"] for seed in range(40)} == {"first_order", "second_order"}
