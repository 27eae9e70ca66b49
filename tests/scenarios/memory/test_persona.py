"""Persona: a habit counts where the answer for the user heeds it and that for somebody else does not."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from longspan.scenarios.memory.habits import HABITS
from longspan.scenarios.memory.persona import Persona
from longspan.scenarios.memory.wording import Wording
from longspan.simulator.contract.graded_record import Marked
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

SAYS = Wording("persona")
MENU = "Vega (nutmeg, caraway, celery), Rigel (celery, sorrel, nutmeg), Deneb (caraway, celery, sorrel) and Mizar (sorrel, nutmeg, caraway)"
SEATS = "11A (front, window), 23C (back, window), 48D (middle, aisle), 52B (back, aisle), 60A (front, aisle) and 77C (middle, window)"
MARCH = {"thing": "a march of 90 furlongs"}
GALE = {"thing": "a gale of 75 feet per second"}
BELL = {"thing": "a bell of 9,000 ounces"}
EVE = {"feast": "Halloween", "year": "2031"}
CHOIR = {"to": "the choir", "matter": "no rehearsal on Friday"}

REPLIES: list[tuple[str, dict[str, str], str, list[str]]] = [
    ("dish", {"menu": MENU}, "Vega.", ["Vega"]),
    ("dish", {"menu": MENU}, "**Vega**", ["Vega"]),
    ("dish", {"menu": MENU}, "I'd go for Vega, the only one without sorrel!", ["Vega"]),
    ("dish", {"menu": MENU}, "Vega, since you can't have sorrel and all the others contain it.", ["Vega"]),
    ("dish", {"menu": MENU}, "Not Rigel, which has sorrel. Take Vega.", ["Vega"]),
    ("dish", {"menu": MENU}, "Vega, because Rigel has sorrel.", ["Vega"]),
    ("dish", {"menu": MENU}, "Vega \u2014 Rigel, Deneb and Mizar all contain sorrel.", ["Vega"]),
    ("dish", {"menu": MENU}, "Go with Vega; avoid Rigel.", ["Vega"]),
    ("dish", {"menu": MENU}, "**Deneb** \u2013 it's the only one without nutmeg (Vega, Rigel and Mizar have it).", ["Deneb"]),
    ("dish", {"menu": MENU}, "Because **Rigel**, **Deneb** and **Mizar** have sorrel, Vega.", ["Vega"]),
    ("dish", {"menu": MENU}, "Vega: all the others (Rigel, Deneb, Mizar) have sorrel.", ["Vega"]),
    ("dish", {"menu": MENU}, "Vega or Rigel.", ["Vega", "Rigel"]),
    ("dish", {"menu": MENU}, "Vega, or Rigel if you like it hot.", ["Vega", "Rigel"]),
    ("dish", {"menu": MENU}, "Vega or Rigel: Deneb has sorrel, avoid Mizar.", ["Vega", "Rigel", "Deneb"]),
    ("dish", {"menu": MENU}, "Vega. Rigel has no sorrel either.", ["Vega", "Rigel"]),
    ("dish", {"menu": MENU}, "Vega. Rigel has a nicer name.", ["Vega", "Rigel"]),
    ("dish", {"menu": MENU}, "Which one do you like best?", []),
    ("seat", {"seats": SEATS}, "23C", ["23C"]),
    ("seat", {"seats": SEATS}, "Seat 23C (back, window).", ["23C"]),
    ("seat", {"seats": SEATS}, "I'd book 23c for you: at the back by the window, as you like it.", ["23C"]),
    ("seat", {"seats": SEATS}, "23 C", ["23C"]),
    ("seat", {"seats": SEATS}, "Seat 23-C; avoid 52 B.", ["23C"]),
    ("seat", {"seats": SEATS}, "23 C or 52 B", ["23C", "52B"]),
    ("seat", {"seats": SEATS}, "23C, or 52B if you prefer the aisle.", ["23C", "52B"]),
    ("unit", MARCH, "18 km", ["kilometres"]),
    ("unit", MARCH, "About 18 kilometers.", ["kilometres"]),
    ("unit", MARCH, "≈ 11 miles", ["miles"]),
    ("unit", MARCH, "**11.25 mi**", ["miles"]),
    ("unit", MARCH, "Roughly 10 nautical miles", ["nautical miles"]),
    ("unit", MARCH, "10 NM", ["nautical miles"]),
    ("unit", MARCH, "18 km (a kilometre being what you are used to, not a mile)", ["kilometres"]),
    ("unit", MARCH, "About eleven miles.", ["miles"]),
    ("unit", MARCH, "18 km (11 miles)", ["kilometres", "miles"]),
    ("unit", MARCH, "90 furlongs.", []),
    ("unit", GALE, "44 knots", ["knots"]),
    ("unit", GALE, "51 mph", ["miles per hour"]),
    ("unit", GALE, "82 km/h", ["kilometres per hour"]),
    ("unit", GALE, "82 kilometers an hour", ["kilometres per hour"]),
    ("unit", GALE, "~23 m/s", ["metres per second"]),
    ("unit", GALE, "23 m\u00b7s\u207b\u00b9", ["metres per second"]),
    ("unit", GALE, "23 m s^-1", ["metres per second"]),
    ("unit", GALE, "82 km\u00b7h\u207b\u00b9", ["kilometres per hour"]),
    ("unit", GALE, "23 metres per second, from 75 feet per second", ["metres per second"]),
    ("unit", BELL, "255 kg.", ["kilograms"]),
    ("unit", BELL, "562.5 lbs", ["pounds"]),
    ("unit", BELL, "40 stone", ["stone"]),
    ("unit", BELL, "40 st", ["stone"]),
    ("unit", BELL, "40 stone 2 pounds", ["stone"]),
    ("date", EVE, "31/10/2031", ["DD/MM/YYYY"]),
    ("date", EVE, "31.10.2031", ["DD/MM/YYYY"]),
    ("date", EVE, "10/31/2031.", ["MM/DD/YYYY"]),
    ("date", EVE, "2031-10-31", ["YYYY-MM-DD"]),
    ("date", EVE, "31 October 2031", ["a day, a month in words and a year"]),
    ("date", EVE, "Friday, October 31st, 2031", ["a day, a month in words and a year"]),
    ("date", EVE, "the 31st of October 2031", ["a day, a month in words and a year"]),
    ("date", EVE, "[Mon 2024-01-08 09:00:00] 10/31/2031", ["MM/DD/YYYY"]),
    ("date", EVE, "2031-10-31 (31 October 2031)", ["YYYY-MM-DD"]),
    ("date", EVE, "31/10/2031, that is, October 31, 2031", ["DD/MM/YYYY"]),
    ("date", EVE, "Halloween is on 31 October 2031, so write 31/10/2031.", ["DD/MM/YYYY"]),
    ("date", EVE, "31 October 2031 (31/10/2031)", ["a day, a month in words and a year"]),
    ("date", EVE, "31/10/2031 or 31 October 2031", ["DD/MM/YYYY", "a day, a month in words and a year"]),
    ("date", EVE, "31/10/2031 / 31 October 2031", ["DD/MM/YYYY", "a day, a month in words and a year"]),
    ("date", EVE, "2031-10-31 (31/10/2031)", ["DD/MM/YYYY", "YYYY-MM-DD"]),
    ("date", EVE, "31 October", []),
    ("title", {"event": "regatta"}, "Dear Professor X.,", ["Professor"]),
    ("title", {"event": "regatta"}, "Dear Prof. X.:", ["Professor"]),
    ("title", {"event": "regatta"}, '"To Captain X., with our compliments"', ["Captain"]),
    ("title", {"event": "regatta"}, "Dear Mr/Ms X.,", []),
    ("title", {"event": "regatta"}, "Dear Captain (or Professor) X.,", ["Captain", "Professor"]),
    ("closing", CHOIR, "Dear choir,\n\nthere is no rehearsal on Friday.\n\nFair winds,\n[Your name]", ["Fair winds"]),
    ("closing", CHOIR, "Hello all, no rehearsal this Friday. **Tally ho!**", ["Tally-ho"]),
    ("closing", CHOIR, "Dear choir, no rehearsal on Friday. Best regards", []),
    ("closing", CHOIR, "No rehearsal on Friday.\nFair winds / Godspeed", ["Fair winds", "Godspeed"]),
]


@pytest.mark.parametrize(("habit", "values", "reply", "settled"), REPLIES)
def test_what_a_reply_settles_on(habit: str, values: dict[str, str], reply: str, settled: list[str]) -> None:
    assert sorted(HABITS[habit].find_choices(reply, values)) == sorted(settled)


class Memory:
    """An agent that knows which habits were let slip, and heeds them for the user."""

    everywhere = False
    """Whether it heeds them for everybody."""
    deaf = False
    """Whether it has no habits in mind, and takes the first choice for the user."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def reply(self, message: str) -> str:
        for name, habit in HABITS.items():
            if said := SAYS.read(f"{name}_said", message):
                self.known[name] = said["own"]
            elif values := SAYS.read(f"{name}_asked", message):
                return habit.reply(habit.choices(values)[0] if self.deaf else self.heeding(name, values), values)
            elif values := SAYS.read(f"{name}_other", message):
                return habit.reply(self.heeding(name, values) if self.everywhere else habit.right_answer(values), values)
        return "OK."

    def heeding(self, name: str, values: dict[str, str]) -> str:
        """The choice of one who has the user's habit: what somebody who asks for just that would get."""
        own, habit = self.known[name], HABITS[name]
        if name == "dish":
            return habit.right_answer(values | {"without": own})
        if name == "date":
            if "/" in own:
                return "DD/MM/YYYY" if int(own.split("/")[0]) > 12 else "MM/DD/YYYY"
            return "YYYY-MM-DD" if "-" in own else "a day, a month in words and a year"
        if name == "title":
            return own.split()[-1]
        return next(each for each in habit.choices(values) if each.casefold() == own.casefold()) if name != "seat" else self.seat(values)

    def seat(self, values: dict[str, str]) -> str:
        return HABITS["seat"].right_answer(values | {"wanted": self.known["seat"]})


class Everywhere(Memory):
    everywhere = True


class Nothing(Memory):
    deaf = True


def played(memory: type[Memory], seed: int, habits: int = 6) -> Rehearsal:
    agent = memory()
    return rehearse(Persona(habits=habits), seed=seed, reply=lambda text, ideal: agent.reply(text))


def shares(memory: type[Memory]) -> tuple[float, dict[str, float]]:
    """The mean score and the metrics."""
    grades = [played(memory, seed).grade for seed in range(60)]
    marked = [Marked("persona-1", grade.score, grade.items) for grade in grades]
    return fmean(grade.score or 0 for grade in grades), dict(Persona().metrics(marked))


def test_who_heeds_habits_for_the_user_alone_has_full_marks() -> None:
    assert shares(Memory) == (1, {"heeded": 1, "kept out": 1})


def test_who_heeds_them_for_everybody_has_nothing() -> None:
    assert shares(Everywhere) == (0, {"heeded": 1, "kept out": 0})


def test_a_constant_choice_has_no_more_than_chance() -> None:
    score, metrics = shares(Nothing)
    chance = Persona(habits=6).chance(Persona(habits=6).make(Random(1)).facts)
    assert abs(score - chance) <= 3 * math.sqrt(chance * (1 - chance) / 360)
    assert metrics["kept out"] == 1


def test_the_reason_names_what_intruded() -> None:
    grade = played(Everywhere, 4, habits=1).grade
    assert grade.reason.startswith("0 of 1 habits heeded where they belong and there alone; ")
    assert ", for the user: right; " in grade.reason
    assert ", for somebody else: expected " in grade.reason


@pytest.mark.parametrize("habits", [1, 2, 6])
def test_every_habit_is_let_slip_before_it_matters_and_asked_for_once_for_each(habits: int) -> None:
    for seed in range(10):
        script = Persona(habits=habits).make(Random(seed))
        said = [name for line in script.lines for name in HABITS if SAYS.read(f"{name}_said", line.text)]
        asked = [(each["habit"], each["for"]) for each in script.facts["asked"]]
        assert len(said) == habits
        assert sorted(asked) == sorted((name, whose) for name in said for whose in ("own", "other"))
        assert all(asked.index((name, "own")) < asked.index((name, "other")) for name in said)


def test_nothing_is_ordered_to_be_remembered_and_no_question_tells_the_habit() -> None:
    orders = ("remember", "keep in mind", "note ", "from now on", "always give", "please")
    for seed in range(30):
        script = Persona(habits=6).make(Random(seed))
        assert not [line.text for line in script.lines[:6] if any(order in line.text.casefold() for order in orders)]
        for at, each in enumerate(script.facts["asked"]):
            if each["for"] == "own" and each["habit"] in ("unit", "title", "closing"):
                assert each["right"].casefold() not in script.lines[6 + at].text.casefold()


def test_a_message_in_the_same_words_about_something_else_is_not_guessed_at() -> None:
    for text in (
        "On which date is Easter Sunday in 2030? Just the date, with the year.",
        "On which date is Halloween in the year of the comet? Just the date, with the year.",
        "An old book speaks of love. What is that in a more familiar unit? One rounded figure with its unit, nothing else.",
        "I have to pick my seat now: any. Which? Give me the seat alone.",
        "A bowl for my aunt, please, who is ill after tea and could live on rum: (rum). Give me the name alone.",
    ):
        assert Persona().guess(text) is None


@pytest.mark.parametrize("parameters", [{"habits": 0}, {"habits": 7}])
def test_parameters_out_of_bounds_are_refused(parameters: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Input should be"):
        Persona(**parameters)
