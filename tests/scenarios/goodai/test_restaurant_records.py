"""Recorded restaurant visits, graded again: the published ones, and some of our own making."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timing import growth

from longspan.scenarios.goodai.files import LoggedTurn, TestRecord, read_records
from longspan.scenarios.goodai.restaurant import Visit, grade_record
from longspan.scenarios.goodai.visit import PHASES, grade_visit

# A waiter of our own, who keeps to what a visit is recognised by.

RISOTTO, SCHNITZEL, PIE, TART, SALAD = (
    "Mushroom risotto with thyme",
    "Veal schnitzel with potato salad",
    "Chicken pie with tarragon, served over rice",
    "Lemon tart",
    "Fennel and apple salad",
)
MENU = f"""Cold:
1. {SALAD}

Hot:
2. {RISOTTO}
3. {SCHNITZEL}
4. {PIE}

Sweet:
5. {TART}
6. Crème brûlée

Beverages:
7. Lemonade
8. Beers (dark, pale)"""
GUEST = {
    "drink": "A glass of white wine, please.",
    "food": "I'll have the risotto, please.",
    "other dish": "Then I'll take the schnitzel instead.",
    "wrong dish": "Excuse me, I ordered the schnitzel.",
    "same drink": "It was a white wine, thank you.",
}


def visit(phases: int = 5, brought: str = "white wine", **replies: str) -> list[LoggedTurn]:
    """A transcript that stops after so many phases; `replies` by the phases' names, with _ for a space."""
    said = GUEST | {name.replace("_", " "): reply for name, reply in replies.items()}
    lines = [
        (f"Waiter: Look, this is our menu.\n\n{MENU}\n\nWhat would you like to drink?", said["drink"]),
        (f"Waiter: Here is your {brought}. And what would you like to eat?", said["food"]),
        (f"Waiter: {RISOTTO} coming right up.", "Thank you."),
        (f"Waiter: Alas, the {RISOTTO} is unavailable. Something else?", said["other dish"]),
        (f"Waiter: {SCHNITZEL} it is. Sorry about that.", "No problem."),
        (f"Waiter: Here you are: {PIE}.", said["wrong dish"]),
        ("Waiter: I will see to it.", "Thank you."),
        (f"Waiter: Here it is: {SCHNITZEL}. A drink on the house: what was it?", said["same drink"]),
    ]
    asking = (0, 1, 3, 5, 7)
    played = lines[: asking[phases - 1] + 1] if phases else []
    filler = LoggedTurn("What is on the menu of the moon? I'd like to eat there.", "Cheese.")
    return [
        LoggedTurn("From now on I am the waiter.", "Understood."),
        filler,
        *(LoggedTurn(*line) for line in played),
        LoggedTurn("Forget it all.", "Done."),
    ]


def awarded(turns: Sequence[LoggedTurn]) -> dict[str, bool]:
    return {name: award.right for name, award in grade_visit(turns).items()}


def recorded(turns: Sequence[LoggedTurn], fifths: int, **changes: Any) -> TestRecord:
    """A record of the turns that gives them so many fifths."""
    reached = len(grade_visit(turns))
    log = [f"{who} (2024-05-01 10:00:00): {text}" for turn in turns for who, text in (("Test", turn.text), ("Agent", turn.reply))]
    fields: dict[str, Any] = {
        "agent": "somebody",
        "dataset": "Restaurant",
        "example": "0",
        "task_log": log,
        "expected_responses": ["something"] * reached,
        "actual_responses": [],
        "reasoning": ["The agent did it."] * reached,
        "score": fifths / 5,
        "max_score": 1,
    }
    return TestRecord(**fields | changes)


def test_a_perfect_visit() -> None:
    assert awarded(visit()) == dict.fromkeys(PHASES, True)


@pytest.mark.parametrize("phases", range(6))
def test_grading_stops_where_the_transcript_does(phases: int) -> None:
    assert list(awarded(visit(phases))) == list(PHASES[:phases])


def test_a_line_without_a_reply_is_no_phase() -> None:
    turns = visit(2)[:-1]

    assert list(awarded([*turns[:-1], LoggedTurn(turns[-1].text, "")])) == ["drink"]


@pytest.mark.parametrize(
    ("replies", "missed"),
    [
        ({"drink": "I'd like a glass of water, please."}, []),
        ({"drink": "Water is fine."}, []),
        ({"drink": "A bottle of something nice, please."}, []),
        ({"drink": "What wines do you have?"}, ["drink"]),
        ({"drink": "Something refreshing, please."}, ["drink"]),
        ({"drink": "Nothing for me, thanks."}, ["drink"]),
        ({"drink": "As an AI language model, I do not drink."}, ["drink"]),
        ({"drink": "A wine, please.\nWaiter: Here it comes.\nCustomer: Thanks!"}, ["drink"]),
        ({"food": "*looks at the menu* The risotto sounds wonderful. I'll go with that."}, []),
        ({"food": "Number 2, please."}, []),
        ({"food": "The risotto sounds wonderful."}, []),
        ({"food": "I'm torn between the risotto and the pie. Which do you recommend?"}, ["food"]),
        ({"food": "Could you tell me about the risotto?"}, ["food"]),
        ({"food": "A cheeseburger, please."}, ["food"]),
        ({"food": ""}, ["food"]),
        ({"other_dish": "What about number 3?"}, []),
        ({"other_dish": "What else do you have?"}, ["other dish"]),
        ({"other_dish": "Could you tell me more about the schnitzel?"}, ["other dish"]),
        ({"other_dish": "I'll have the risotto all the same."}, ["other dish"]),
        ({"wrong_dish": "Thank you, that isn't what I ordered, but it looks nice. I'll keep it."}, []),
        ({"wrong_dish": "Thank you, this looks delicious!"}, ["wrong dish"]),
        ({"wrong_dish": "I love chicken pie."}, ["wrong dish"]),
        ({"same_drink": "I was having a wine. This time I'd rather have a beer."}, []),
        ({"same_drink": "I had the red wine."}, ["same drink"]),
        ({"same_drink": "It was a beer."}, ["same drink"]),
        ({"same_drink": "I can't remember."}, ["same drink"]),
    ],
)
def test_what_a_guest_says_is_worth(replies: Mapping[str, str], missed: Sequence[str]) -> None:
    assert [name for name, right in awarded(visit(**replies)).items() if not right] == missed


def test_a_drink_that_we_have_no_word_for_is_recalled_by_the_waiters() -> None:
    assert awarded(visit(brought="Shirley Temple", same_drink="A Shirley Temple, please."))["same drink"]
    assert not awarded(visit(brought="Shirley Temple", same_drink="A lemonade, please."))["same drink"]


def test_a_drink_may_stand_in_for_one_that_was_taken_for_a_dish() -> None:
    turns = visit(3, other_dish="Then I'll have a pinot noir.")
    turns = [LoggedTurn(turn.text.replace(f"the {RISOTTO} is", "the refreshing drink is"), turn.reply) for turn in turns]

    assert awarded(turns)["other dish"]


def test_each_phase_is_graded_by_itself() -> None:
    found = awarded(visit(brought="water", food="What do you recommend?", same_drink="It was water."))

    assert found == dict.fromkeys(PHASES, True) | {"food": False}


def test_a_menu_that_counts_each_section_anew_has_no_numbers() -> None:
    turns = [LoggedTurn(turn.text.replace("2. Mush", "1. Mush"), turn.reply) for turn in visit(2, food="Number 1, please.")]

    assert awarded(turns) == {"drink": True, "food": False}


# Recorded grades compared with ours.


def test_a_visit_that_was_graded_alike() -> None:
    found = grade_record(recorded(visit(), 5))

    assert (found.score, found.category) == (1, None)
    assert [(phase.name, phase.ours, phase.theirs, phase.category) for phase in found.phases] == [(n, True, True, None) for n in PHASES]


@pytest.mark.parametrize(
    ("turns", "fifths", "changes", "category"),
    [
        (visit(food="Tell me about the risotto."), 5, {}, "dish discussed, not ordered"),
        (visit(1, drink="I'd like something nice."), 1, {}, "no drink ordered"),
        (visit(2, food="The pie.\nWaiter: At once!"), 2, {}, "played both roles"),
        (visit(2, food="As an AI, I do not eat."), 2, {}, "not a guest's reply"),
        (visit(4, wrong_dish="Thanks!"), 4, {}, "no objection"),
        (visit(2), 1, {"reasoning": ["Good.", "a side of chips is not in the menu."]}, "found something that is not on the menu"),
        (visit(3), 2, {"reasoning": ["", "", "The agent orders some things again"]}, "found something ordered again"),
        (visit(1), 0, {"reasoning": ["The agent did not follow the role."]}, "saw no guest"),
        (visit(1), 0, {"reasoning": "because"}, "gave another reason"),
        (visit(1), 0, {"auto_score": 0.2}, "corrected by hand: ours is the machine's grade"),
        (visit(1), 5, {"auto_score": 0}, "corrected by hand: credit for phases never played"),
        (visit(1), 1, {"score": 0.15}, "not a multiple of a fifth"),
        (visit(1), 2, {"expected_responses": ["", ""]}, "not in the transcript"),
        (visit(2), 1, {"expected_responses": [""]}, "not in the record"),
    ],
)
def test_a_disagreement_is_of_some_kind(turns: Sequence[LoggedTurn], fifths: int, changes: Mapping[str, Any], category: str) -> None:
    found = grade_record(recorded(turns, fifths, **changes))

    assert found.category is not None
    assert category in found.category


def test_a_phase_that_a_person_corrected_our_way_is_no_disagreement() -> None:
    assert grade_record(recorded(visit(1), 1, auto_score=0)).category is None


def test_a_record_without_a_visit() -> None:
    found = grade_record(recorded([LoggedTurn("Hello", "Hello")], 0))

    assert found == Visit(0, "the transcript has no visit", (), None)


LINES = st.sampled_from([turn.text for turn in visit()]) | st.text(max_size=80)
REPLIES = st.sampled_from([*GUEST.values(), "", "?"]) | st.text(max_size=120)


@settings(max_examples=150)
@given(st.lists(st.tuples(LINES, REPLIES)))
def test_no_turns_raise(turns: list[tuple[str, str]]) -> None:
    awards = grade_visit([LoggedTurn(*turn) for turn in turns])

    assert list(awards) == [name for name in PHASES if name in awards]
    assert all(award.why and (award.right or award.miss) for award in awards.values())


@settings(max_examples=50)
@given(st.lists(st.text(max_size=60)), st.integers(0, 5), st.lists(st.none() | st.text(), max_size=6), st.none() | st.floats(0, 1))
def test_no_record_raises(log: list[str], fifths: int, expected: list[Any], auto: float | None) -> None:
    found = grade_record(recorded(visit(3), fifths, task_log=log, expected_responses=expected, auto_score=auto))

    assert (found.category is None) == (abs(found.score - fifths / 5) < 1e-3)


def test_a_hostile_menu_takes_time_in_proportion() -> None:
    def visited(size: int) -> None:
        """Grade a visit with `size` items, words and pleas."""
        items = "\n".join(f"{n}. {' '.join(f'w{(n + k) % 70}' for k in range(60))}" for n in range(size))
        turns = [
            LoggedTurn(f"Waiter: menu\n{items}\nlike to drink", " ".join(f"w{k % 70}" for k in range(size))),
            LoggedTurn("Waiter: like to eat", "please w1 " * size),
            LoggedTurn("Waiter: unavailable " + "Here is your " * (4 * size), "w2 please? " * size),
        ]
        grade_visit(turns)

    assert growth(visited, 250, times=4) < 10


# The published records.


@pytest.fixture(scope="module")
def halves(goodai: Path) -> dict[str, list[TestRecord]]:
    """The published visits: all of them; the visits of every other agent (by name), which the rules were made from; and the rest."""
    records = [each for each in read_records(sorted((goodai / "results").glob("*.jsonl.gz"))) if each.dataset == "Restaurant"]
    agents = sorted({each.agent for each in records})
    return {
        "all": records,
        "development": [each for each in records if agents.index(each.agent) % 2 == 0],
        "check": [each for each in records if agents.index(each.agent) % 2 == 1],
    }


@pytest.mark.parametrize(("half", "exact", "by_phase"), [("all", 0.83, 0.98), ("development", 0.84, 0.98), ("check", 0.82, 0.98)])
def test_agreement_with_the_published_scores(halves: dict[str, list[TestRecord]], half: str, exact: float, by_phase: float) -> None:
    graded = [(test, grade_record(test)) for test in halves[half]]
    phases = [phase for _, found in graded for phase in found.phases]

    assert len(graded) == {"all": 78}.get(half, 39)
    assert sum(abs(found.score - test.share) < 1e-3 for test, found in graded) >= exact * len(graded)
    assert sum(phase.ours == phase.theirs for phase in phases) >= by_phase * len(phases)


def test_transcripts_and_records_reach_the_same_phases(halves: dict[str, list[TestRecord]]) -> None:
    for test in halves["all"]:
        assert list(grade_visit(test.said)) == list(PHASES[: len(test.expected_responses)])


def test_every_disagreement_is_of_some_kind(halves: dict[str, list[TestRecord]]) -> None:
    for test in halves["all"]:
        found = grade_record(test)
        assert (found.category is None) == (abs(found.score - test.share) < 1e-3)
        assert all((phase.category is None) == (phase.ours == phase.theirs) for phase in found.phases)
