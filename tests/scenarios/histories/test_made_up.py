"""Histories that are made up: frozen, solvable, and not to be guessed."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.scenarios.histories.conftest import MADE_UP_KINDS

from longspan.scenarios.histories import History, Question, made_up
from longspan.scenarios.histories.rules import RuleVerdict, grade_reply
from longspan.simulator.base.tokens import Tokenizer

SEEDS = range(12)
REPLIES = Path(__file__).with_name("made_up_replies.tsv")


@cache
def history(seed: int) -> History:
    return made_up.write_history(seed, made_up.MIN_TOKENS, questions=4)


def verdict(history: History, question: Question, reply: str) -> RuleVerdict:
    """Rules decide on every reply to every question."""
    found = grade_reply(question, reply, made_up.wrong_values(history, question))
    assert found is not None, (question, reply)
    return found


ASKED = [(history(seed), question) for seed in SEEDS[:3] for question in history(seed).questions]


def test_seeds_keep_their_meaning() -> None:
    digest = hashlib.sha256(repr(made_up.write_history(7, 6000)).encode()).hexdigest()
    assert digest[:16] == "bb275ab00af53786"


@pytest.mark.parametrize("tokens", [5_000, 20_000])
def test_a_history_is_as_long_as_requested(tokens: int) -> None:
    count = Tokenizer("cl100k_base").count
    found = made_up.write_history("length", tokens)
    assert tokens - made_up.ROOM <= sum(count(turn.text) for turn in found.turns) <= tokens
    assert Counter(question.kind for question in found.questions) == dict.fromkeys(MADE_UP_KINDS, 2)


@pytest.mark.parametrize(("tokens", "questions"), [(4_999, 2), (10_000_001, 2), (5_000, 0), (5_000, 5)])
def test_lengths_and_numbers_out_of_range_are_refused(tokens: int, questions: int) -> None:
    with pytest.raises(ValueError, match="must be from"):
        made_up.write_history(1, tokens, questions)


def test_users_and_assistants_take_turns_on_many_days() -> None:
    days = [session.at for session in history(0).sessions]
    assert len({at.date() for at in days if at}) == len(days)
    for session in history(0).sessions:
        assert [turn.speaker for turn in session.turns] == ["user", "assistant"] * (len(session.turns) // 2)
    assert all(question.at and days[-1] and question.at > days[-1] for question in history(0).questions)


def test_the_gold_reply_has_full_marks() -> None:
    for found, question in ASKED:
        for reply in (question.answer, f"It is {question.answer}.", f"{question.answer}, as you told me."):
            assert verdict(found, question, reply or "").score == 1, (question, reply)


@pytest.mark.parametrize("reply", ["OK.", "{text}", "{trap}", "It is {trap}."])
def test_empty_words_the_question_and_what_is_no_longer_so_have_no_marks(reply: str) -> None:
    """A question's trap is the value before an update, or a statement about somebody else."""
    for found, question in ASKED:
        assert verdict(found, question, reply.format(text=question.text, trap=question.trap)).score == 0, question


@pytest.mark.parametrize("reply", ["I don't know.", "You have not told me that.", "{trap} or {answer}"])
def test_who_does_not_know_or_names_two_answers_has_no_marks(reply: str) -> None:
    for found, question in ASKED:
        if question.answerable:
            assert verdict(found, question, reply.format(trap=question.trap, answer=question.answer)).score == 0, question


def test_the_whole_history_is_no_answer() -> None:
    for found, question in ASKED[::5]:
        assert verdict(found, question, "\n".join(turn.text for turn in found.turns)).score == 0


def test_the_newest_session_answers_nothing() -> None:
    for found, question in ASKED:
        newest = found.sessions[-1]
        assert newest.id not in question.sessions
        if question.answerable:
            told = [turn.text for turn in newest.turns]
            assert [text for text in told if verdict(found, question, text).score == 1] == [], question


def test_evidence_tells_the_answer() -> None:
    for found, question in ASKED:
        said = {turn.id: turn for turn in found.turns}
        texts = " ".join(said[label].text for label in question.evidence)
        assert bool(question.evidence) == question.answerable
        if question.kind in ("single-session-user", "single-session-assistant", "knowledge-update"):
            assert (question.answer or "") in texts
        speakers = {said[label].speaker for label in question.evidence}
        assert speakers <= ({"assistant"} if question.kind == "single-session-assistant" else {"user"})


def test_sums_and_days_are_those_that_were_told() -> None:
    for found, question in ASKED:
        said = {turn.id: turn.text for turn in found.turns}
        if "altogether" in question.text:
            terms = [int(word) for label in question.evidence for word in said[label].split() if word.isdecimal()]
            assert question.answer is not None
            assert question.answer.split()[0] == str(sum(terms))


def test_no_answer_can_be_guessed() -> None:
    answers: dict[str, Counter[str]] = {}
    for seed in SEEDS:
        for question in history(seed).questions:
            shown = question.answer or ""
            answers.setdefault(question.kind, Counter())[shown[:3] if question.options else shown] += 1
    assert tuple(answers) == MADE_UP_KINDS
    shares = {kind: max(counts.values()) / counts.total() for kind, counts in answers.items()}
    assert shares.pop("abstention") == 1
    assert shares.pop("single-session-preference") <= 0.3, "one of eight letters"
    assert max(shares.values()) <= 0.15, shares


def test_questions_without_an_answer_read_like_the_others() -> None:
    def form(question: Question) -> str:
        return question.text.split(" my ")[0]

    asked = [question for seed in SEEDS for question in history(seed).questions]
    assert {form(each) for each in asked if not each.answerable} <= {form(each) for each in asked if each.answerable}


def test_rules_agree_with_a_person_on_replies_as_assistants_word_them() -> None:
    histories = {seed: made_up.write_history(seed, 6_000, 2) for seed in range(60, 66)}
    differ = []
    rows = [row for row in REPLIES.read_text("utf-8").splitlines() if not row.startswith("#")]
    for row in rows:
        where, right, reply = row.split("\t")
        seed, _, number = where.partition("/")
        history = histories[int(seed)]
        question = next(question for question in history.questions if question.id == number)
        verdict = grade_reply(question, reply.replace("\\n", "\n"), made_up.wrong_values(history, question))
        differ += [] if verdict is not None and verdict.score == int(right) else [row]
    assert len(differ) <= len(rows) // 20, differ
