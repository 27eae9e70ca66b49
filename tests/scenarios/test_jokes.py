"""Jokes: told hours apart, asked for by how long ago; the right one, and only that one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.jokes import Jokes, format_elapsed, longest_question, retold_jokes
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import EncodingName, Tokenizer
from longspan.simulator.base.words import number, plain
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.filler.draws import Draws, read_word_list
from longspan.simulator.filler.talk import line_of
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

TORTOISE, UMBRELLA, VACUUM, GHOST = load_words("jokes")[:4]
OTHERS = load_words("jokes")[4:]
PUBLISHED = ["A duck walks into a library.", "I would tell a joke about time travel but nobody laughed.", "Non-slip floors are a letdown."]


def play(seed: int, jokes: int = 4, reply: str | None = None) -> Rehearsal:
    return rehearse(Jokes(jokes=jokes), seed=seed, reply=lambda text, ideal: ideal if reply is None else reply)


def grade(reply: str, jokes: Sequence[str] = (TORTOISE, UMBRELLA, VACUUM, GHOST), asked: int = 0) -> Grade:
    return Jokes().grade({"jokes": list(jokes), "asked": asked}, Record([Exchange(9, "Which joke?", reply, asks=True)]))


def minutes(question: str) -> int:
    """How long ago a question asks about, read off its wording."""
    sizes = {"day": 1440, "hour": 60, "minute": 1}
    return sum(int(found[1]) * sizes[found[2]] for found in re.finditer(r"(\d+) (day|hour|minute)s?\b", question))


# ---- the test that is made


def test_the_ideal_reply_scores_and_a_silent_one_does_not() -> None:
    for seed in range(50):
        assert play(seed).grade.score == 1, f"seed {seed}"
        assert play(seed, reply="OK.").grade.score == 0, f"seed {seed}"


@pytest.mark.parametrize("jokes", [1, 2, 7, 40])
def test_other_numbers_of_jokes_work_as_well(jokes: int) -> None:
    rehearsal = play(3, jokes)
    assert rehearsal.grade.score == 1
    assert len(set(rehearsal.script.facts["jokes"])) == jokes == len(rehearsal.script.lines) - 1


@pytest.mark.parametrize("jokes", [0, -1, 41, "many", None])
def test_senseless_parameters_are_refused(jokes: object) -> None:
    with pytest.raises(ValidationError):
        Jokes(jokes=jokes)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_test_and_another_seed_another() -> None:
    assert play(1).script == play(1).script
    assert [turn.text for turn in play(1).record.exchanges] == [turn.text for turn in play(1).record.exchanges]
    assert len({tuple(play(seed).script.facts["jokes"]) for seed in range(20)}) == 20


def test_every_joke_is_asked_for_in_some_test() -> None:
    assert {play(seed).script.facts["asked"] for seed in range(60)} == {0, 1, 2, 3}


def test_each_joke_is_followed_by_half_an_hour_to_four() -> None:
    for seed in range(10):
        lines = play(seed).script.lines
        assert lines[0].pause == timedelta(0), f"seed {seed}"
        assert all(timedelta(minutes=30) <= line.pause <= timedelta(minutes=240) for line in lines[1:]), f"seed {seed}"


def test_the_question_needs_the_joke_it_asks_for_alone() -> None:
    for seed in range(20):
        script = play(seed).script
        assert [line.asks for line in script.lines] == [False] * 4 + [True], f"seed {seed}"
        assert all(line.needle for line in script.lines[:-1]), f"seed {seed}"
        assert script.lines[-1].needs == (script.facts["asked"],), f"seed {seed}"
        assert script.lines[-1].ideal == script.facts["jokes"][script.facts["asked"]], f"seed {seed}"


def test_the_question_asks_about_the_time_since_that_joke() -> None:
    for seed in range(20):
        rehearsal = play(seed)
        lines, asked = rehearsal.script.lines, rehearsal.script.facts["asked"]
        since = sum((line.pause for line in lines[asked + 1 :]), timedelta(0)) + (4 - asked) * timedelta(seconds=30)
        assert abs(minutes(rehearsal.record.answer.text) - since / timedelta(minutes=1)) <= 0.5, f"seed {seed}"


def test_the_question_never_repeats_what_it_asks_for() -> None:
    for seed in range(20):
        rehearsal = play(seed)
        assert grade(rehearsal.record.answer.text, rehearsal.script.facts["jokes"], rehearsal.script.facts["asked"]).score == 0


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (timedelta(minutes=31), "31 minutes"),
        (timedelta(minutes=60), "1 hour"),
        (timedelta(hours=2, minutes=1), "2 hours and 1 minute"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=1, minutes=5), "1 day and 5 minutes"),
        (timedelta(days=2, hours=3, minutes=10), "2 days 3 hours and 10 minutes"),
        (timedelta(minutes=59, seconds=40), "1 hour"),
        (timedelta(seconds=5), "1 minute"),
    ],
)
def test_a_span_of_time_in_words(since: timedelta, said: str) -> None:
    assert format_elapsed(since) == said


def test_lines_are_short_and_the_question_no_longer_than_planned() -> None:
    count = Tokenizer().count
    for seed in range(50):
        rehearsal = play(seed)
        assert all(12 <= count(line.text) <= 30 for line in rehearsal.script.lines[:-1])
        assert count(rehearsal.record.answer.text) <= count(rehearsal.script.lines[-1].text) <= 45


@pytest.mark.parametrize("tokenizer", ["cl100k_base", "o200k_base"])
def test_no_question_takes_more_tokens_than_it_is_charged_however_long_ago_the_joke_was(tokenizer: EncodingName) -> None:
    count = Tokenizer(tokenizer).count
    for days in (0, 1, 27, 169, 999):
        for hours, minutes in ((0, 5), (1, 0), (23, 59)):
            since = timedelta(days=days, hours=hours, minutes=minutes)
            for question in Wording("jokes").all("question", ago=format_elapsed(since)):
                assert count(question) <= count(longest_question()), question


def test_a_list_of_words_names_no_joke() -> None:
    """Else one of its words would be right often enough."""
    assert grade("The tortoise. Or the snowman.").score == 1, "one may be taken back, as far as a rule can tell"
    for asked in range(4):
        assert grade("Snowman. Volcano. Owl. Tortoise. Umbrella. Vacuum. Ghost.", asked=asked).score == 0
        assert grade("The snowman joke, the volcano joke, the owl joke and the ghost joke.", asked=asked).score == 0


def test_jokes_begin_as_what_other_people_say_does() -> None:
    lines = [line.split("|") for line in Wording("jokes").all("joke", text="|")]
    assert sum("joke" in f"{before}{after}" for before, after in lines) <= len(lines) / 4, "few announce themselves as jokes"
    openings = [" ".join(re.findall(r"\w+", before)[:4]) for before, _ in lines if before]
    said = [form for forms in read_word_list("talk")["chat"].values() for form in forms]
    assert len(openings) > len(lines) / 2
    assert [opening for opening in openings if not any(" ".join(re.findall(r"\w+", form)).startswith(opening) for form in said)] == []


def test_nobody_else_tells_one_of_the_jokes() -> None:
    """So that the question, which joke was told so long ago, has one answer."""
    draw = Draws("jokes")
    for _ in range(300):
        assert retold_jokes(line_of(draw, "canteen joke")[0], (), load_words("jokes")) == []


def test_replies_to_other_tests_score_no_better_than_chance() -> None:
    scenario = Jokes()
    tests = [play(seed) for seed in range(51)]
    scores = [scenario.grade(a.script.facts, b.record).score or 0.0 for a, b in pairwise(tests)]
    assert mean(scores) <= scenario.chance(tests[0].script.facts) + 0.1


def test_facts_survive_a_round_trip_through_json() -> None:
    for seed in range(5):
        rehearsal = play(seed)
        facts = json.loads(json.dumps(rehearsal.script.facts))
        assert Jokes().grade(facts, rehearsal.record) == rehearsal.grade, f"seed {seed}"


def test_the_grade_points_at_the_turn_that_proves_it() -> None:
    rehearsal = play(0)
    assert rehearsal.grade.turns == (rehearsal.record.answer.turn,)


# ---- the list of jokes


def test_jokes_are_many_and_short_and_tell_themselves_apart() -> None:
    jokes = load_words("jokes")
    assert len(jokes) >= 40
    assert all(12 <= Tokenizer().count(joke) <= 30 for joke in jokes)
    for asked, joke in enumerate(jokes[:40]):
        assert grade(joke, jokes[:40], asked).score == 1, joke


def test_jokes_hold_nothing_that_belongs_to_other_scenarios() -> None:
    spoken = {word for joke in load_words("jokes") for word in plain(joke).split()}
    assert spoken.isdisjoint(load_words("colours"))
    assert {word for word in spoken if number(word) is not None} <= {"a", "an", "one", "single"}


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, I can't recall which joke that was.",
        "As an AI, I have no memory of past conversations. If you'd like to tell me a joke again, I'm happy to hear it!",
        "I don't have the ability to keep track of time. Could you please remind me of the joke, or tell me a new one?",
        "No idea.",
        "Noted. Anything else I can help you with today?",
        "Great joke! It plays on a double meaning.",
    ],
)
def test_a_reply_without_a_joke_never_scores(reply: str) -> None:
    for asked in range(40):
        assert grade(reply, load_words("jokes")[:40], asked).score == 0, f"joke {asked}"


# ---- replies


@pytest.mark.parametrize(
    "reply",
    [
        TORTOISE,
        f'You told me: "{TORTOISE}"',
        f"About 2 hours and 21 minutes ago you told me this joke:\n\n> {TORTOISE}\n\nIt plays on the two meanings of spring!",
        f"**{TORTOISE.upper()}**",
        f'```json\n{{"joke": "{TORTOISE}"}}\n```',
        f"{TORTOISE}\n\n\u201cThe candle of patience never burns down.\u201d - Anonymous",
        "Our tortoise signed up for sprint lessons...",
        "The one whose punchline was that the warm-up should end by spring.",
        "A tortoise was taking lessons in sprinting, and its coaches thought the warm up would be over in spring.",
        "You told me the joke about the tortoise.",
        "It was the one about a tortoise who wants to learn sprinting.",
        "The tortoise joke.",
        "Tortoise and sprint coach.",
        "I'm not entirely sure, but I believe it was the joke about the tortoise.",
        "That was the joke about the tortoise, not the one about the umbrella.",
        "It was not the umbrella joke but the tortoise joke.",
        "Our t\u00f3rtoise signed up for sprint lessons; according to it\u2019s coach, the warm\u2013up should end by spring \U0001f422",
    ],
)
def test_the_right_joke_scores_however_it_is_told(reply: str) -> None:
    assert grade(reply).score == 1, grade(reply).reason


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "none of the jokes"),
        ("OK.", "none of the jokes"),
        (UMBRELLA, "umbrella"),
        (f"{TORTOISE} {UMBRELLA}", "and"),
        (f"1. {TORTOISE}\n2. {UMBRELLA}\n3. {VACUUM}\n4. {GHOST}", "1 more"),
        (f"You told me three jokes: {TORTOISE} {VACUUM} {GHOST} The one you ask for is the first.", "and"),
        (f"{TORTOISE} Or was it this one: {OTHERS[3]}", OTHERS[3][:20]),
        ("It was either the joke about the tortoise or the joke about the umbrella.", "umbrella"),
        (f"{TORTOISE} Or maybe it was the one about the ghost.", "ghost"),
        ("The umbrella joke.", "umbrella"),
        ("It was not the joke about the tortoise.", "none of the jokes"),
        ("I don't remember any tortoise joke.", "none of the jokes"),
        ("Why did the bicycle fall over? It was too tired to stand.", "none of the jokes"),
        ("You told me one of your jokes. I have had lessons in listening, and my coach was great.", "none of the jokes"),
    ],
)
def test_another_joke_or_more_than_one_does_not(reply: str, why: str) -> None:
    verdict = grade(reply)
    assert verdict.score == 0
    assert why in verdict.reason


def test_jokes_that_are_not_ours_are_graded_from_the_facts_alone() -> None:
    for asked in range(3):
        assert grade(f"You said: {PUBLISHED[asked]}", PUBLISHED, asked).score == 1, f"joke {asked}"
        assert grade(f"You said: {PUBLISHED[(asked + 1) % 3]}", PUBLISHED, asked).score == 0, f"joke {asked}"


def test_a_joke_told_amid_megabytes_is_still_found() -> None:
    assert grade(f"{'So let me think. ' * 60_000}{TORTOISE}{' That was it.' * 60_000}").score == 1


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(st.sampled_from([*load_words("jokes"), "the joke about", "\n", "not", "{", "tortoise", "?"])).map(" ".join))
def test_no_reply_makes_the_grader_raise(reply: str) -> None:
    assert grade(reply).score in (0, 1)


@settings(deadline=None)
@given(st.lists(st.sampled_from(load_words("jokes")[:8]), unique=True, max_size=4), st.integers(0, 3))
def test_whole_jokes_score_only_if_the_right_one_stands_alone(told: list[str], asked: int) -> None:
    jokes = load_words("jokes")[:4]
    assert grade(" ".join(told), jokes, asked).score == (told == [jokes[asked]])
