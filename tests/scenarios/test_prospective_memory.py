"""Prospective memory: the quotation must be in the nth reply and in no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.prospective_memory import ProspectiveMemory
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.base.words import number, plain
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.reading.matching import found_words
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

QUOTATION = "Whoever plants a doubt should be willing to sit beside it while it grows."
FACTS = {"quotation": QUOTATION, "author": "Hesper Vandelune", "nth": 3}


def ideal(text: str, ideal: str) -> str:
    return ideal


def grade(replies: Sequence[str], facts: dict[str, object] = FACTS) -> Grade:
    """The grade of a test whose instruction got the first of `replies`, and the turns after it the others."""
    asked = Exchange(10, "Append it to your 3rd reply.", replies[0], asks=True)
    watched = [Exchange(10 + number, "Else.", reply) for number, reply in enumerate(replies[1:], 1)]
    return ProspectiveMemory().grade(facts, Record([Exchange(2, "A quotation.", QUOTATION), asked], watched))


def test_ideal_replies_score_one() -> None:
    for seed in range(50):
        assert rehearse(ProspectiveMemory(), seed=seed, reply=ideal).grade.score == 1, f"seed {seed}"


def test_saying_ok_scores_nothing() -> None:
    played = rehearse(ProspectiveMemory(), seed=1, reply=lambda text, ideal: "OK.")
    assert played.grade.score == 0
    assert "found it in none" in played.grade.reason


def test_reciting_all_quotations_is_not_quoting_one() -> None:
    known = [saying["quotation"] for saying in load_words("quotations")]
    facts = FACTS | {"quotation": known[7]}
    assert grade(["OK.", "OK.", known[7], "OK."], facts).score == 1
    assert grade(["OK.", "OK.", f"{known[3]} {known[7]}", "OK."], facts).score == 1, "an earlier test may have asked for the other"
    assert grade(["OK.", "OK.", " ".join(known), "OK."], facts).score == 0
    assert grade(["OK.", "OK.", known[7], " ".join(known)], facts).score == 1


def test_another_tests_replies_score_nothing() -> None:
    scores = []
    for seed, other in pairwise(range(51)):
        replies = [exchange.reply for exchange in _all(rehearse(ProspectiveMemory(), seed=other, reply=ideal))]
        given = iter(replies + ["OK."] * 20)
        played = rehearse(ProspectiveMemory(), seed=seed, reply=lambda text, ideal, given=given: next(given))
        scores.append(played.grade.score)
    assert sum(scores) / 50 <= 0.1


def _all(played: Rehearsal) -> list[Exchange]:
    return [*played.record.exchanges, *played.record.watched]


def test_a_test_says_its_quotation_then_its_instruction_and_watches_one_reply_beyond_the_nth() -> None:
    played = rehearse(ProspectiveMemory(), seed=4, reply=ideal)
    facts = played.script.facts
    telling, instruction = played.record.exchanges
    assert facts["quotation"] in telling.text
    assert facts["author"] in telling.text
    assert (telling.needle, telling.asks) == (True, False)
    assert facts["quotation"] not in instruction.text
    assert facts["author"] in instruction.text
    assert instruction.asks
    assert len(played.record.watched) == facts["nth"]
    assert [segment.at for segment in played.script.outline] == [0, 0.9]


def test_ideal_replies_append_the_quotation_to_what_the_turn_asks_for() -> None:
    played = rehearse(ProspectiveMemory(least=3, most=3), seed=4, reply=ideal)
    quotation = f'"{played.script.facts["quotation"]}" - {played.script.facts["author"]}'
    assert [exchange.reply for exchange in played.record.watched] == ['["so", "so"]', f'["so", "so"]\n{quotation}', '["so", "so"]']


@pytest.mark.parametrize(
    ("replies", "score", "reason"),
    [
        (["OK.", "Noted.", f'["a", "b"]\n"{QUOTATION}" - Hesper Vandelune', "Noted."], 1, "in the 3rd of the 4 replies"),
        (["OK.", "Noted.", f"{QUOTATION}\n\nNoted.", "Noted."], 1, "in the 3rd of"),
        (["OK.", "Noted.", f"Noted. {QUOTATION.upper()}", "Noted."], 1, "in the 3rd of"),
        (["OK.", "Noted.", "> *Whoever plants a doubt*\n> *should be willing to sit\nbeside it, while it grows!*", "Noted."], 1, "3rd"),
        (["OK.", "Noted.", "Whoever plants a doubt should be ready to sit beside it while it grows", ""], 1, "in the 3rd of"),
        (["OK.", "Noted.", "Whoever plants doubt should be willing to sit beside it while it grows", ""], 1, "in the 3rd of"),
        (["OK.", "Noted.", "Whoever plants doubt should be ready to wait until it grows.", ""], 0, "in none of the 4"),
        (["OK.", "Noted.", 'Noted. "Whoever plants a doubt..." - Hesper Vandelune', "Noted."], 0, "in none of the 4"),
        (["OK.", "Noted.", "Here is the quotation by Hesper Vandelune, as promised.", "Noted."], 0, "in none of the 4"),
        (["OK.", f"Noted. {QUOTATION}", "Noted.", "Noted."], 0, "in the 2nd of the 4"),
        (["OK.", "Noted.", "Noted.", f"Noted. {QUOTATION}"], 0, "in the 4th of the 4"),
        (["OK.", "Noted.", f"Noted. {QUOTATION}", f"Noted. {QUOTATION}"], 0, "in the 3rd and 4th of the 4"),
        ([f'I will append "{QUOTATION}".', "Noted.", f"Noted. {QUOTATION}", "Noted."], 0, "in the 1st and 3rd of the 4"),
        (["OK.", "Noted.", "I can't repeat copyrighted material.", "Noted."], 0, "in none of the 4"),
        (["", "", "", ""], 0, "in none of the 4"),
    ],
)
def test_replies_as_agents_give_them(replies: list[str], score: int, reason: str) -> None:
    graded = grade(replies)
    assert graded.score == score
    assert graded.reason.startswith("expected the quotation in the 3rd reply only")
    assert reason in graded.reason


def test_the_grade_points_to_the_nth_turn_and_to_those_where_the_quotation_was_found() -> None:
    assert grade(["OK.", QUOTATION, "Noted.", QUOTATION]).turns == (11, 12, 13)


def test_a_conversation_that_breaks_off_before_the_nth_reply_is_not_scored() -> None:
    assert grade(["OK.", "Noted."]).score is None
    assert grade(["OK.", QUOTATION]).score == 0
    assert grade(["OK.", "Noted.", QUOTATION]).score == 1


def test_a_published_definition_can_be_graded() -> None:
    facts = {"quotation": "The reward of patience is patience.", "nth": 2}
    assert grade(["Understood.", '["A"]\n\n"The reward of patience is patience." - Augustine', '["B"]'], facts).score == 1
    assert grade(["Understood.", '["A"]\n\n"The reward of patience is silence." - Augustine', '["B"]'], facts).score == 0


@given(st.lists(st.text() | st.sampled_from([QUOTATION, QUOTATION[:-9], QUOTATION * 2]), min_size=1, max_size=9))
def test_no_reply_breaks_the_grader(replies: list[str]) -> None:
    assert grade(replies).score in (0, 1, None)


def test_a_huge_reply_is_graded() -> None:
    muddle = " ".join(reversed(QUOTATION.split())) + " "
    assert grade(["OK.", "Noted.", muddle * 2_000, "Noted."]).score == 0
    assert grade(["OK.", "Noted.", muddle * 2_000 + QUOTATION, "Noted."]).score == 1


def test_the_same_seed_gives_the_same_test_and_another_seed_another() -> None:
    scripts = [ProspectiveMemory().make(Random(seed)) for seed in (1, 1, 2)]
    assert scripts[0] == scripts[1]
    assert scripts[0] != scripts[2]


def test_facts_survive_the_journal() -> None:
    played = rehearse(ProspectiveMemory(), seed=3, reply=ideal)
    facts = json.loads(json.dumps(played.script.facts))
    assert facts == played.script.facts
    assert ProspectiveMemory().grade(facts, played.record) == played.grade


def test_every_n_in_the_range_is_asked_for_and_no_other() -> None:
    scripts = [ProspectiveMemory(least=3, most=5).make(Random(seed)) for seed in range(60)]
    assert {script.facts["nth"] for script in scripts} == {3, 4, 5}
    assert {ProspectiveMemory().make(Random(seed)).facts["nth"] for seed in range(200)} == set(range(2, 9))


def test_a_far_reply_can_be_asked_for() -> None:
    played = rehearse(ProspectiveMemory(least=22, most=22), seed=1, reply=ideal)
    assert "22nd" in played.record.answer.text
    assert played.grade.score == 1


@pytest.mark.parametrize("parameters", [{"least": 1}, {"least": 5, "most": 4}, {"most": 1}, {"least": 9}, {"most": 101}, {"nth": 3}])
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        ProspectiveMemory(**parameters)


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_the_outline_promises_no_less_than_is_said(encoding: str) -> None:
    tokenizer = Tokenizer(encoding)
    for seed in range(200):
        script = ProspectiveMemory(most=100).make(Random(seed))
        telling, instruction = script.outline
        assert tokenizer.count(script.facts["telling"]) <= telling.tokens
        assert tokenizer.count(script.facts["instruction"]) <= instruction.tokens


def test_the_author_tells_which_quotation_is_meant() -> None:
    sayings = load_words("quotations")
    assert len(sayings) >= 40
    assert len({saying["author"] for saying in sayings}) == len({saying["quotation"] for saying in sayings}) == len(sayings)


def test_quotations_disturb_no_other_test_they_are_appended_in() -> None:
    spies = load_words("spy_meeting")
    meant = [phrase for kind in ("place", "time", "thing") for entry in spies[kind] for phrase in entry["names"] + entry["also"]]
    seen = [word for key, pool in load_words("sally_anne").items() if key != "likes" for word in pool]
    refusals = ["no", "not", "never", "wrong", "sorry", "cannot", "without"]
    for saying in load_words("quotations"):
        told = f"{saying['quotation']} {saying['author']}"
        assert found_words(told, meant + seen + load_words("colours") + refusals) == []
        assert [word for word in plain(told).split() if number(word) is not None and word not in ("a", "an")] == []


def test_every_instruction_says_who_and_which_reply() -> None:
    for text in Wording("prospective_memory").all("instruction", author="Hesper Vandelune", nth="7th"):
        assert "Hesper Vandelune" in text
        assert "7th" in text
        assert "1st" in text
