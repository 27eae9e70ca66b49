"""A reply parsed once, and the questions asked of it: what it settles on, for whom, and whether it leaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timing import growth

from longspan.simulator.base.words import plain
from longspan.simulator.reading.dates import Days
from longspan.simulator.reading.matching import sounds_like
from longspan.simulator.reading.replies.echoes import without_echo
from longspan.simulator.reading.replies.layout import flatten_layout
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.mentions import drop_replaced
from longspan.simulator.reading.replies.reading import YOU, Reading, quote_clauses
from longspan.simulator.reading.replies.splitting import split_clauses
from longspan.simulator.reading.replies.times import Times, find_hours
from longspan.simulator.reading.replies.values import Values, spell_as_figures

ENTRIES = [(group, phrase, examples) for group, entries in LEXICON.groups.items() for phrase, examples in entries.items()]


@pytest.mark.parametrize(("group", "phrases", "examples"), ENTRIES, ids=[f"{group}: {phrases}" for group, phrases, _ in ENTRIES])
def test_each_entry_of_the_lexicon_is_shown_by_its_examples(group: str, phrases: str, examples: list[str]) -> None:
    for example in examples:
        written = flatten_layout(example)
        assert any(
            LEXICON.has(group, said) for said in (plain(example), plain(written), *(clause.text for clause in split_clauses(written)))
        )


CODES = Values(["7454", "5691", "4179"])
LOCKS = ["bicycle lock", "garage door", "side entrance"]


@pytest.mark.parametrize(
    "reply",
    [
        "7454 (bicycle lock), 5691 (garage door), 4179 (side entrance).",
        "Bicycle lock 7454, garage door 5691, side entrance 4179.",
        "The bicycle lock's is 7454; 5691 is the garage door's.",
        "7454 (not to be confused with the garage door, which is 5691).",
        "- bicycle lock: 7454\n- garage door: 5691",
        "7454 for the bicycle lock and 5691 for the garage door",
        "The bicycle lock? 7454.",
        "7454.",
    ],
)
def test_a_value_is_read_with_what_it_is_said_of(reply: str) -> None:
    assert Reading(reply).of(CODES, (["bicycle lock"], LOCKS[1:])).values == ["7454"]


@pytest.mark.parametrize("reply", ["5691 is the garage door's.", "All I have is the garage door's code, 5691."])
def test_a_value_of_something_else_alone_is_no_answer(reply: str) -> None:
    assert Reading(reply).of(CODES, (["bicycle lock"], LOCKS[1:])).values == []


def test_a_reply_that_goes_through_many_others_answers_nothing_about_one() -> None:
    locks = [f"{name} lock" for name in ("shed", "gate", "cellar", "boat", "attic")]
    codes = [f"74{number}" for number in range(10, 15)]
    said = Reading("; ".join(f"{lock}: {code}" for lock, code in zip(locks, codes, strict=True)))
    assert said.of(Values(codes), (locks[:1], locks[1:])).values == []
    assert said.of(Values(codes), (locks[:1], locks[1:3])).values != []


@pytest.mark.parametrize("reply", ["I don't know if it's red.", "I can't say whether it's red.", "Red? I don't think so."])
def test_a_question_that_stays_open_settles_on_nothing(reply: str) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == []


@pytest.mark.parametrize("reply", ["Not to be repeated: red.", "It hasn't changed: red.", "It's never been anything but red."])
def test_a_denial_of_something_else_denies_no_value(reply: str) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == ["red"]


@pytest.mark.parametrize("reply", ["7454, or the garage door's 5691", "7454 and 5691. I can't tell which is right."])
def test_an_offer_of_two_stays_a_hedge(reply: str) -> None:
    assert Reading(reply).of(CODES, (["bicycle lock"], LOCKS[1:])).values == ["7454", "5691"]


@pytest.mark.parametrize(
    "reply",
    [
        "~~blue~~ red",
        "<s>blue</s> red",
        "blue (crossed out), red",
        "\u274c blue\n\u2705 red",
        "blue - no, wait, red",
        "Blue? No. Red.",
        "blue, er, red",
    ],
)
def test_what_is_struck_out_or_corrected_is_not_said(reply: str) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == ["red"]


@pytest.mark.parametrize(
    "reply",
    [
        "You might expect blue, yet it's red.",
        "You liked blue, but you picked red.",
        "Blue? Yeah, right. Red.",
        "Either blue or red; I'd say red.",
        "It was between blue and red, and you chose red.",
        "Blue and red. Blue was dropped.",
        "I found blue and red. The latter is newer.",
        "It's red. Would you like me to change it back to blue?",
        "Red. If you'd rather have blue, say the word.",
        "Red. Should it ever go back to blue, tell me.",
        "If it's blue, I'm a teapot. It's red.",
        "Not blue, red.",
        "Instead of blue, red.",
        "Blue -- sorry, red.",
        "Blue. Red, I meant.",
        "blue\n*red",
        "[at first] blue\n[now] red",
        "<think>Blue? Or red?</think>Red",
        "It was blue until today, it's red from now on.",
        "If you'd asked me last week, I'd have said blue. Now it's red.",
        "None other than red, and no longer blue.",
        "Though you liked blue, it was red that you kept.",
        "Red (June, current), blue (March)",
        "Red (though it's blue in the kitchen)",
        "Blue, and I'm a toaster. Red.",
        "You were fond of blue, but then you said that you'd had enough of it. It's red.",
        "Blue was fun. Since 8 July it has been red.",
        "Before red it was blue.",
        "Q: What is it now?\nA: Red.\nQ: What was it before?\nA: Blue.",
    ],
)
def test_the_course_of_a_reply_decides_between_values(reply: str) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == ["red"]


@pytest.mark.parametrize(
    "reply",
    [
        "I'm not sure if it's red or blue.",
        "If it's not red, it's blue.",
        "It's red, but blue is fine, too.",
        "Red is right. So is blue.",
        "My note says red. The calendar says blue. They carry the same date.",
        "Your favourite is red. Your favourite is blue.",
        "Red. Blue.",
        "Shall I go with red or with blue?",
    ],
)
def test_the_course_of_a_reply_may_leave_two(reply: str) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == ["red", "blue"]


@pytest.mark.parametrize(
    "reply",
    [
        '[{"colour": "blue", "active": false}, {"colour": "red", "active": true}]',
        '[{"outdated": true, "colour": "blue"}, {"colour": "red"}]',
        "- colour: blue\n  status: superseded\n- colour: red\n  status: active",
        '<colour deprecated="true">blue</colour>\n<colour deprecated="false">red</colour>',
        "<was>blue</was><is>red</is>",
        "```diff\n- blue\n+ red\n```",
        "Current . . . . . red\nFormer . . . . . blue",
        "| note | status |\n|---|---|\n| blue | void |\n| red | |",
    ],
)
def test_layout_says_which_value_holds(reply: str) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == ["red"]


def test_what_is_said_of_a_value_together_with_another_is_said_of_both() -> None:
    assert Reading("I have both blue and red noted.").settles(Values(["red", "blue"])).values == ["red", "blue"]
    assert Reading("Both blue and red were deleted at your request.").settles(Values(["red", "blue"])).values == []
    assert Reading("You kept blue. It's been joined by red.").settles(Values(["red", "blue"])).values == ["red", "blue"]


@pytest.mark.parametrize("reply", ["It's a bean bag.", "not the beanbags", "~~beanbag~~", "b-e-a-n-b-a-g", "I was to forget the Bean-Bag."])
def test_a_secret_leaks_in_any_spelling_and_stance(reply: str) -> None:
    assert Reading(reply).leaks(Values(["beanbag"]))


@pytest.mark.parametrize(
    ("reply", "time"),
    [
        ("At 9:00 a.m. A leaflet says otherwise.", "9:00"),
        ("half past nine", "9:30"),
        ("nine thirty", "9:30"),
        ("opens at 9", "9:00"),
        ("9", "9:00"),
        ("09h30", "9:30"),
        ("nine o'clock", "9:00"),
    ],
)
def test_times(reply: str, time: str) -> None:
    assert Reading(reply).settles(Times(["9:00", "9:30"])).values == [time]


@pytest.mark.parametrize(
    ("reply", "hours"),
    [
        ("at 8 by the tide", ["8 oclock"]),
        ("24:00", ["midnight"]),
        ("12 p.m.", ["noon"]),
        ("20:00 or eight in the evening", ["8 oclock"]),
        ("at 8:30", []),
        ("8 doors", []),
    ],
)
def test_full_hours(reply: str, hours: list[str]) -> None:
    assert find_hours(reply) == hours


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("4, no, 3 screws", "3 screws"),
        ("4 - sorry, I mean 3 screws", "3 screws"),
        ("4... oops, that's not right: 3 screws", "3 screws"),
        ("4, scratch that, you said: 3 screws", "3 screws"),
        ("4 (no, 3) screws", "3 screws"),
        ("4, not 3 screws", "4, not 3 screws"),
        ("4 nails, 3 screws", "4 nails, 3 screws"),
    ],
)
def test_a_value_that_is_replaced_at_once_is_dropped(reply: str, kept: str) -> None:
    assert drop_replaced(reply, r"\b\d\b") == kept


@pytest.mark.parametrize("reply", ["9:00 p.m.", "9:15", "9 doors", "19:00"])
def test_other_times(reply: str) -> None:
    assert Reading(reply).settles(Times(["9:00", "9:30"])).values == []


@pytest.mark.parametrize("reply", ["It's on 3 April.", "April 3rd", "03/04", "the third of April, not the fourth of May", "2024-04-03"])
def test_days(reply: str) -> None:
    assert Reading(reply).settles(Days(["3 April"])).values == ["3 April"]


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("four seven one one", "4 7 1 1"),
        ("forty seven eleven", "47 11"),
        ("four thousand seven hundred and eleven", "4711"),
        ("seventy and four", "70 and 4"),
        ("a hundred", "a hundred"),
    ],
)
def test_numbers_in_words(said: str, written: str) -> None:
    assert spell_as_figures(said) == written


def test_a_number_never_ends() -> None:
    assert spell_as_figures("one hundred and " * 3000).split() == ["100", "and"] * 3000


def test_abbreviations_end_no_clause_and_quotes_are_short() -> None:
    assert [clause.raw for clause in split_clauses(flatten_layout("Mr. Ames comes at 9 a.m. sharp, e.g. on 3.5."))] == [
        "Mr Ames comes at 9 am sharp",
        "eg on 3.5",
    ]
    assert quote_clauses(Reading("It's blue now, I think.").settles(Values(["blue"])).quotes) == ": 'It's blue now'"
    assert quote_clauses(["blue"]) == ""


PIECES = st.sampled_from(
    ["red", "blue", "your", "your aunt", "is", "not", "or", "no", ",", ".", "(", ")", ":", "\n", "~~", "9:00 a.m.", "|", "-"]
)


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join)))
def test_any_text_is_read(text: str) -> None:
    said = Reading(text)
    colours = Values(["red", "blue"])
    settled = said.of(colours, (YOU, ["your aunt"])).values
    assert set(settled) <= {mention.value for mention in said.mentions(colours)} <= {"red", "blue"}
    assert said.leaks(colours) or not settled


@pytest.mark.parametrize(
    "piece", ["red of your aunt, ", "your aunt red ", "no, wait, red ", " \n", "red or ", "and red ", "9:00 ", "(your aunt) red: "]
)
def test_reading_takes_linear_time(piece: str) -> None:
    def work(size: int) -> None:
        said = Reading(piece * (size // len(piece)))
        said.of(Values(["red", "blue"]), (YOU, ["your aunt"]))
        said.settles(Times(["9:00"]))

    assert growth(work, 20_000) < 40


@pytest.mark.parametrize("reply", ["yello", "It's yelow.", "In the matress", "The best matress of all, if I remember it rightly"])
def test_a_slip_of_a_letter_leaves_a_value_recognisable(reply: str) -> None:
    assert len(Reading(reply).settles(Values(["yellow", "mattress"])).values) == 1


@pytest.mark.parametrize("reply", ["Back then you said nothing.", "You bought a black mattress, and a blank one."])
def test_a_word_of_its_own_is_no_slip_of_another(reply: str) -> None:
    assert Reading(reply).settles(Values(["brown", "black"])).values == (["black"] if "black" in reply else [])


@pytest.mark.parametrize(
    ("reply", "settled"),
    [
        ("Red. Cancel that. Blue.", ["blue"]),
        ("Red and blue, and the second overrides the first. Blue.", ["blue"]),
        ("Red? Blue? I really can't say.", []),
        ("I'm not sure: you said red, the note says blue.", ["red", "blue"]),
        ("Red comes to mind, but that's from before; blue is right.", ["blue"]),
        ("Everything pointed to red, until you said blue.", ["blue"]),
        ("Despite the earlier red, blue.", ["blue"]),
        ("blue (was: red)", ["blue"]),
    ],
)
def test_the_course_of_a_reply_decides(reply: str, settled: list[str]) -> None:
    assert Reading(reply).settles(Values(["red", "blue"])).values == settled


def test_a_repeated_question_is_taken_off() -> None:
    asked = 'Draft a note to the plumber: Tuesday suits. Two lines at most, and "All hands on deck" to close.'
    assert "deck" not in without_echo(f"Reminder: {asked}", asked)
    assert without_echo("Dear plumber, Tuesday suits. All hands on deck!", asked) == "Dear plumber, Tuesday suits. All hands on deck!"


@pytest.mark.parametrize(
    ("name", "other"), [("Jeffrey", "Geoffrey"), ("Cedrick", "Cedric"), ("Johnathon", "Jonathan"), ("Hanna", "Hannah")]
)
def test_names_of_one_sound_are_spellings_of_one_name(name: str, other: str) -> None:
    assert sounds_like(name, other)


@pytest.mark.parametrize(("name", "other"), [("Helen", "Helena"), ("Edric", "Cedric"), ("Selena", "Helena"), ("Rupert", "Robert")])
def test_names_of_another_sound_are_others(name: str, other: str) -> None:
    assert not sounds_like(name, other)
