"""Spy meeting: a third for each message decoded, a third off for a meaning of another message."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.spy_meeting import SpyMeeting
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.reading.matching import contains_phrase
from longspan.simulator.running.preflight.rehearsal import rehearse

KINDS = ("place", "time", "thing")
POOL = load_words("spy_meeting")


def facts_for(**meant: str) -> dict[str, Any]:
    """The facts of a test whose messages mean the entries with these first names."""
    chosen = {kind: next(entry for entry in POOL[kind] if entry["names"][0] == meant[kind]) for kind in KINDS}
    return {
        "accepted": [chosen[kind]["names"] + chosen[kind]["also"] for kind in KINDS],
        "foreign": [entry["names"] for kind in KINDS for entry in POOL[kind] if entry is not chosen[kind]],
        "vague": [entry["also"] for kind in KINDS for entry in POOL[kind] if entry is not chosen[kind]],
    }


NOON = facts_for(place="library", time="noon", thing="violin")
DAWN = facts_for(place="train station", time="dawn", thing="scissors")
EIGHT = facts_for(place="observatory", time="eight oclock", thing="umbrella")
CHRISTMAS = facts_for(place="swimming pool", time="christmas", thing="chess set")


def ideal(text: str, ideal: str) -> str:
    return ideal


def grade(facts: dict[str, Any], reply: str) -> Grade:
    return SpyMeeting().grade(facts, Record([Exchange(7, "Decode!", reply, asks=True)]))


def test_ideal_replies_score_one() -> None:
    for seed in range(50):
        assert rehearse(SpyMeeting(), seed=seed, reply=ideal).grade.score == 1, f"seed {seed}"


def test_saying_ok_scores_nothing() -> None:
    played = rehearse(SpyMeeting(), seed=1, reply=lambda text, ideal: "OK.")
    assert played.grade.score == 0
    assert "names none of them" in played.grade.reason


def test_another_tests_replies_score_nothing() -> None:
    scores = []
    for seed, other in pairwise(range(51)):
        given = iter([exchange.reply for exchange in rehearse(SpyMeeting(), seed=other, reply=ideal).record.exchanges])
        scores.append(rehearse(SpyMeeting(), seed=seed, reply=lambda text, ideal, given=given: next(given)).grade.score)
    assert sum(scores) / 50 <= 0.1


def test_repeating_the_messages_scores_nothing() -> None:
    for seed in range(50):
        told = "\n".join(exchange.text for exchange in rehearse(SpyMeeting(), seed=seed, reply=ideal).record.exchanges)
        graded = rehearse(SpyMeeting(), seed=seed, reply=lambda text, ideal, told=told: told).grade
        assert graded.score == 0
        assert graded.reason.endswith("the reply names none of them")


def test_naming_everything_scores_nothing() -> None:
    everything = ", ".join(name for kind in KINDS for entry in POOL[kind] for name in entry["names"])
    assert grade(NOON, everything).score == 0


def test_one_vague_word_for_something_else_costs_nothing_and_many_do() -> None:
    assert grade(EIGHT, "At eight in the evening, at the observatory, with an umbrella.").score == 1
    assert grade(EIGHT, "Morning, evening or afternoon; 8 pm, at the observatory, with an umbrella.").score == pytest.approx(2 / 3)
    assert grade(EIGHT, ", ".join(word for kind in KINDS for entry in POOL[kind] for word in entry["also"])).score == 0


def test_three_senders_are_announced_and_each_sends_one_message() -> None:
    orders = set()
    for seed in range(60):
        script = SpyMeeting().make(Random(seed))
        intro, *messages, question = script.lines
        senders = [sender for sender in POOL["senders"] if sender in intro.text]
        assert len(senders) == 3
        assert sorted(sender for line in messages for sender in senders if sender in line.text) == sorted(senders)
        assert [line.needle for line in script.lines[:-1]] == [False, True, True, True]
        assert [line.asks for line in script.lines] == [False, False, False, False, True]
        assert question.needs is None
        codes = {entry["code"]: kind for kind in KINDS for entry in POOL[kind]}
        orders.add(tuple(kind for line in messages for code, kind in codes.items() if code in line.text))
    assert len(orders) == 6
    assert all(sorted(order) == sorted(KINDS) for order in orders)


@pytest.mark.parametrize(
    ("facts", "reply", "thirds", "reason"),
    [
        (NOON, "Library, noon, violin.", 3, "the reply names library, noon and violin"),
        (NOON, "**Where:** the public libraries\n**When:** Midday (12:00 p.m.)\n**What:** two fiddles", 3, "library, midday and fiddle"),
        (NOON, '{"place": "LIBRARY", "time": "mid-day", "thing": "Violin"}', 3, "names library, mid day and violin"),
        (NOON, "It is at an archive or a bookshop, at 12 PM; bring a cello or so.", 3, "names archive, 12 pm and cello"),
        (NOON, "It's at the library in the afternoon. Bring a violinist.", 1, "the reply names library"),
        (NOON, "At noon.", 1, "expected library, noon and violin; the reply names noon"),
        (NOON, "At the library with a violin, around midnight.", 2, "library and violin; from other messages: midnight"),
        (NOON, "At the library, at sunrise or noon, with a violin.", 2, "noon and violin; from other messages: sunrise"),
        (NOON, "At the library, at dawn, at sunrise, at daybreak, with a violin.", 2, "violin; from other messages: dawn"),
        (NOON, "At the casino, at midnight, with a hammer.", 0, "none of them; from other messages: casino, midnight and hammer"),
        (NOON, "At the casino or the zoo, at noon.", 1, "names noon; from other messages: zoo and casino"),
        (NOON, "I cannot help with clandestine meetings.", 0, "names none of them"),
        (NOON, "They mention a stair that leans on any wall, in the morning.", 0, "names none of them"),
        (NOON, "", 0, "names none of them"),
        (NOON, 'Library, noon, violin.\n"Courage is fear that has learned to walk beside its reason." - Torvald Ashgrimm', 3, "violin"),
        (DAWN, "At the station in the early morning; take a scissor along.", 3, "names station, morning and scissors"),
        (DAWN, "At the railway station at first light, with shears", 3, "names railway station, first light and shears"),
        (DAWN, "Train Station - Sunrise (about 6 a.m., before 8 a.m.) - Scissors", 3, "train station, sunrise and scissors"),
        (EIGHT, "At the observatory, at 8:00 p.m., with an umbrella", 3, "names observatory, 8 00 and umbrella"),
        (EIGHT, "Go to the planetarium at eight o'clock (8 am/pm). Take umbrellas.", 3, "names planetarium, eight oclock and umbrella"),
        (EIGHT, "Go to the observatory at 18:00 with an umbrella.", 2, "names observatory and umbrella"),
        (EIGHT, "Go to the observatory at seven o’clock with an umbrella.", 2, "; from other messages: seven oclock"),
        (CHRISTMAS, "The pool, on the 24th of December, a chess board", 3, "names pool, 24 of december and chess"),
        (CHRISTMAS, "Swimming baths; Christmas Eve; chess-board", 3, "names swimming bath, christmas and chess"),
    ],
)
def test_replies_as_agents_give_them(facts: dict[str, Any], reply: str, thirds: int, reason: str) -> None:
    graded = grade(facts, reply)
    assert graded.score == pytest.approx(thirds / 3)
    assert reason in graded.reason
    assert graded.turns == (7,)


@pytest.mark.parametrize(
    ("reply", "thirds"),
    [
        ("The docks, at sunrise, by motorbike.", 3),
        ("A dock at dawn. Bring a fast vehicle.", 3),
        ("The seaport at dawn; bring a car. Do not be late for the transport.", 3),
        ("An orchard at dawn; bring a car.", 1),
        ("Carefully rise up and report.", 1),
    ],
)
def test_a_published_definition_can_be_graded(reply: str, thirds: int) -> None:
    facts = {
        "accepted": [["sunrise", "dawn", "rise", "morning"], ["port", "docks", "seaport"], ["motorbike", "car", "fast vehicle"]],
        "foreign": [["orchard"], ["noon", "midday"], ["boat", "raft"], ["night", "midnight"], ["yard", "depot"], ["pick", "key"]],
    }
    assert grade(facts, reply).score == pytest.approx(thirds / 3)


def test_what_is_part_of_an_accepted_phrase_does_not_count_against_it() -> None:
    facts = {"accepted": [["rope ladder"], ["noon"], ["tent"]], "foreign": [["ladder"], ["rope", "ropes"]]}
    assert grade(facts, "noon noon tent, rope ladder").score == 1
    assert grade(facts, "noon, tent, rope ladder, another rope").score == pytest.approx(2 / 3)


@given(st.text() | st.lists(st.sampled_from(["noon", "library", "12", " p.m.", "violin", "(", "\\", "24th", "\n"])).map("".join))
def test_no_reply_breaks_the_grader(reply: str) -> None:
    assert grade(NOON, reply).score in (0, 1 / 3, 2 / 3, 1)


def test_a_huge_reply_is_graded() -> None:
    assert grade(NOON, "the noon of a p m 1 " * 20_000 + "library").score == pytest.approx(2 / 3)


def test_the_same_seed_gives_the_same_test_and_another_seed_another() -> None:
    scripts = [SpyMeeting().make(Random(seed)) for seed in (1, 1, 2)]
    assert scripts[0] == scripts[1]
    assert scripts[0] != scripts[2]


def test_facts_survive_the_journal() -> None:
    played = rehearse(SpyMeeting(), seed=3, reply=ideal)
    facts = json.loads(json.dumps(played.script.facts))
    assert facts == played.script.facts
    assert SpyMeeting().grade(facts, played.record) == played.grade


def test_it_takes_no_parameters() -> None:
    with pytest.raises(ValidationError):
        SpyMeeting(messages=4)  # type: ignore[call-arg]


def test_there_are_enough_messages_of_each_kind() -> None:
    for kind in KINDS:
        assert len(POOL[kind]) >= 14
        assert len({entry["code"] for entry in POOL[kind]}) == len(POOL[kind])
        assert all(entry["names"] for entry in POOL[kind])


def test_no_interpretation_belongs_to_two_messages() -> None:
    entries = [entry for kind in KINDS for entry in POOL[kind]]
    for entry in entries:
        others = "; ".join(phrase for other in entries if other is not entry for phrase in other["names"] + other["also"])
        graded = grade({"accepted": [entry["names"]], "foreign": []}, others)
        assert graded.score == 0, graded.reason


def test_no_message_gives_an_interpretation_away() -> None:
    wording = Wording("spy_meeting")
    frames = wording.all("intro", senders="") + wording.all("question") + wording.all("farewell") + POOL["senders"]
    frames += [text for kind in KINDS for text in wording.all(kind, sender="", code="")]
    for kind in KINDS:
        for entry in POOL[kind]:
            told = frames + [other["code"] for each in KINDS for other in POOL[each]]
            graded = grade({"accepted": [entry["names"]], "foreign": []}, "; ".join(told))
            assert graded.score == 0, graded.reason
            together = [text for text in told if text == entry["code"] or text not in {other["code"] for other in POOL[kind]}]
            graded = grade({"accepted": [entry["names"] + entry["also"]], "foreign": []}, "; ".join(together))
            assert graded.score == 0, graded.reason


def test_the_question_calls_no_sender_by_name() -> None:
    for text in Wording("spy_meeting").all("question"):
        assert not any(contains_phrase(text, sender) for sender in POOL["senders"])
