"""Colours: the last favourite counts, and a hedge is no answer."""

from __future__ import annotations

from itertools import pairwise

import pytest

from longspan.scenarios.ltm.colours import Colours
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.reading.matching import found_words
from longspan.simulator.running.preflight.rehearsal import rehearse

FACTS = {"colour": "red", "told": ["brown", "blue", "red"]}


def graded(reply: str, colour: str = "red") -> Grade:
    facts = FACTS | {"colour": colour}
    return Colours().grade(facts, Record([Exchange(0, "...", "OK.", needle=True), Exchange(7, "Which?", reply, asks=True)]))


@pytest.mark.parametrize(
    "reply",
    [
        "Red.",
        "red",
        "  Red. \n\n\n",
        "**Red**",
        "Your favourite colour is Red!",
        "According to what you told me earlier, your favorite color is red.",
        "You said it was red.",
        "It's red, not blue.",
        "It used to be blue, but it is now red.",
        "First brown, then blue. Now it is red.",
        "Your favourite is red. You initially said brown, then changed it to blue, and most recently settled on red.",
        "Dark red",
        "Red! \u2764\ufe0f Shall I remember anything else?",
        'Red.\n\n"Who walks alone walks far." - Theodora Vane',
    ],
)
def test_right(reply: str) -> None:
    grade = graded(reply)
    assert grade.score == 1
    assert grade.reason.startswith("expected red, the reply settles on red")
    assert grade.turns == (7,)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no colour"),
        ("I don't know that.", "no colour"),
        ("It is shared by many.", "no colour"),
        ("Not red.", "no colour"),
        ("It used to be red.", "no colour"),
        ("Blue.", "settles on blue"),
        ("It is not red, but blue.", "settles on blue"),
        ("Cyan", "settles on cyan"),
        ("Red or blue.", "blue: it hedges"),
        ("Red, or perhaps scarlet", "scarlet: it hedges"),
        ("You have told me brown, blue and red.", "it hedges"),
        ("You said brown, then blue, and then red. I am not sure which is your favourite.", "it hedges"),
        ("Your favourites are brown, blue, and red.", "it hedges"),
    ],
)
def test_wrong(reply: str, reason: str) -> None:
    grade = graded(reply)
    assert grade.score == 0
    assert grade.reason.startswith("expected red, the reply settles on ")
    assert reason in grade.reason


@pytest.mark.parametrize(
    ("colour", "reply", "score"),
    [
        ("grey", "Gray.", 1),
        ("gray", "Grey", 1),
        ("grey", "Grey (or gray, if you like)", 1),
        ("blue", "Navy blue", 0),
        ("blue", "navy", 0),
        ("green", "olive green", 0),
        ("Cream", "Your favourite colour is cream.", 1),
        ("Off-white", "off white", 1),
        ("glaucous", "Glaucous it is", 1),
        ("glaucous", "Glaucous or grey", 0),
    ],
)
def test_other_colours(colour: str, reply: str, score: float) -> None:
    """Spellings are one colour, names of their own are not; a published test may name colours that we do not."""
    assert graded(reply, colour).score == score


def test_facts_without_what_was_told_are_enough() -> None:
    record = Record([Exchange(0, "Which?", "Red", asks=True)])
    assert Colours().grade({"colour": "Red"}, record).score == 1


@pytest.mark.parametrize("changes", [1, 3, 50])
def test_a_change_is_a_change(changes: int) -> None:
    seen: set[str] = set()
    for seed in range(50):
        script = rehearse(Colours(changes=changes), seed=seed, reply=lambda text, ideal: ideal).script
        told = script.facts["told"]
        assert len(told) == changes
        assert all(before != after for before, after in pairwise(told))
        assert script.facts["colour"] == told[-1]
        assert [found_words(line.text, load_words("colours")) for line in script.lines[:-1]] == [[colour] for colour in told]
        seen.update(told)
    assert len(seen) > 10


def test_only_the_last_change_is_needed() -> None:
    script = rehearse(Colours(changes=4), seed=0, reply=lambda text, ideal: ideal).script
    assert [line.asks for line in script.lines] == [False] * 4 + [True]
    assert script.lines[-1].needs == (3,)


def test_nothing_but_the_needles_names_a_colour() -> None:
    known = load_words("colour_words")
    wording = Wording("colours")
    for macro in ("question", "farewell"):
        for text in wording.all(macro):
            assert not found_words(text, known["colours"])


def test_the_lists_of_colours_fit_together() -> None:
    known = load_words("colour_words")
    assert set(load_words("colours")) <= set(known["colours"])
    assert set(known["spellings"].values()) <= set(known["colours"])
    assert not set(known["spellings"]) & set(known["colours"])
    assert all(len(set(items)) == len(items) for items in (load_words("colours"), known["colours"]))
    assert all(plain(key) == key for key in known["spellings"])
