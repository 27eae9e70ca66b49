"""The fate of needles according to the agent's traces."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from longspan.simulator.results.gradebook.needle_fates import Fate, Traces

SAID, ASKED, ANSWER = "My lucky number is 4711, says Brunhilde.", "What is my lucky number?", "It is 4711."


def fate_of(*turns: Any, question: Any, answer: str = ANSWER) -> Fate:
    """The fate of turn 0's needle, given the traces of the turns before the question and of the answer."""
    traces = Traces()
    for number, trace in enumerate([*turns, question]):
        traces.add(number, f"t{number}", trace)
    return traces.fate(0, SAID, ASKED, answer, question)


def test_without_a_trace_the_fate_is_unknown() -> None:
    assert fate_of(None, None, question=None) == Fate(None, None, None)
    assert fate_of(None, question={"prompt_tokens": 7}) == Fate(None, None, None)


def test_not_stored_not_retrieved_and_not_echoed_are_distinguished() -> None:
    stored = {"written": [{"id": "m1", "text": SAID}]}
    other = {"written": [{"id": "m2", "text": "..."}]}
    assert fate_of({"written": []}, other, question={"read": [{"id": "m2"}]}) == Fate(False, False, False, k=1)
    assert fate_of(stored, other, question={"read": [{"id": "m2"}]}) == Fate(True, False, False, k=1)
    assert fate_of(stored, other, question={"read": [{"id": "m1"}]}, answer="I do not know.") == Fate(True, True, False, 1, k=1)
    assert fate_of(stored, other, question={"read": [{"id": "m1"}]}) == Fate(True, True, True, 1, k=1)


def test_a_memory_may_be_created_later_and_may_name_its_turns() -> None:
    late = {"written": [{"id": "m1", "turn": "t0"}]}
    assert fate_of(None, late, question={"read": [{"id": "m1"}]}) == Fate(True, True, True, 1, k=1)
    assert fate_of(None, late, question={"read": [{"id": "else", "turns": ["t9", "t0"]}]}) == Fate(True, True, True, 1, k=1)


def test_of_turns_that_were_told_a_later_trace_may_tell_what_was_not_stored_and_a_branch_tells_it_for_all() -> None:
    trunk = Traces()
    for number in range(3):
        trunk.add(number, f"t{number}", None, asked=False)
    first, second = Traces(trunk), Traces(trunk)
    trace = {"written": [{"id": "m1", "turn": "t0"}], "until": "t1", "read": []}
    first.add(3, "b1", trace)
    second.add(3, "b2", {"read": [{"id": "m1"}]})
    for branch, found in ((first, trace), (second, {"read": [{"id": "m1"}]})):
        fates = branch.fates({0: SAID, 1: SAID, 2: SAID}, ASKED, ANSWER, found)
        assert [fates[number].stored for number in range(3)] == [True, False, None]
    assert second.fate(0, SAID, ASKED, ANSWER, {"read": [{"id": "m1"}]}).rank == 1


def test_the_rank_is_the_place_of_the_first_memory_of_the_needle_and_nothing_ranks_above_what_is_shown_anyway() -> None:
    stored = {"written": [{"id": "m1"}, {"id": "m2"}]}
    read = [{"id": "x"}, {"text": "?"}, {"id": "m2"}, {"turns": ["t0"]}]
    assert fate_of(stored, question={"read": read}).rank == 3
    assert fate_of(stored, question={"read": read, "recent": {"since": "t0"}}).rank == 0
    assert fate_of(stored, question={"read": read[:2]}).rank is None


def test_a_turn_still_in_the_prompt_needs_no_memory() -> None:
    assert fate_of(None, None, question={"recent": {"since": "t0"}}).retrieved is True
    assert fate_of(None, None, question={"recent": {"since": "t1"}}).retrieved is False


def test_the_number_of_memories_asked_for_is_told_or_else_that_of_those_read() -> None:
    read = [{"turns": ["t0"]}, {"id": "x"}]
    assert [fate_of(None, question={"read": read, "k": k}).k for k in (7, None, 0, -1, "7", 10**30)] == [7, 2, 2, 2, 2, 2]
    assert fate_of(None, question={"recent": {"since": "t0"}}).k == 0
    assert fate_of(None, question={"k": 7}).k is None


def test_words_of_the_question_are_not_echoed() -> None:
    assert fate_of({"written": [{"id": "m"}]}, question={"read": [{"id": "m"}]}, answer="Your lucky number?").echoed is False


def test_a_memory_of_unknown_turns_may_come_from_any_turn_before_it() -> None:
    unknown = {"written": [{"id": "m1", "turn": None, "text": "in other words"}]}
    assert fate_of({"written": []}, unknown, question={"read": [{"id": "m1"}]}) == Fate(None, None, None, k=1)
    assert fate_of({"written": []}, question={"read": [{"text": "in other words"}]}) == Fate(None, None, None, k=1)
    assert fate_of({"written": [{"id": "m0"}]}, unknown, question={"read": [{"id": "m0"}, {"id": "m1"}]})[:4] == (True, True, True, 1)
    later = Traces()
    later.add(0, "t0", unknown)
    later.add(1, "t1", {"written": []})
    assert later.fate(1, SAID, ASKED, ANSWER, {"read": []}).stored is False, "it was there before"


def test_turns_that_were_inferred_show_what_was_stored_but_not_what_was_not() -> None:
    inferred = {"written": [{"id": "m1", "turn": "t0", "inferred": "whole"}]}
    assert fate_of(None, inferred, question={"read": [{"id": "m1"}]}) == Fate(True, True, True, 1, None, 1, True, True)
    other = {"written": [{"id": "m2", "turn": "t1", "inferred": "whole"}]}
    assert fate_of({"written": []}, other, question={"read": [{"id": "m2"}]}) == Fate(None, False, False, k=1, retrieved_inferred=True)
    part = {"written": [{"id": "m2", "turn": "t1", "inferred": "part"}]}
    assert fate_of({"written": []}, part, question={"read": [{"id": "m2"}]}) == Fate(None, None, None, k=1)
    named = {"written": [{"id": "m1", "turn": "t0"}]}
    assert fate_of(inferred, named, question={"read": [{"id": "m1"}]}) == Fate(True, True, True, 1, k=1), "what is named is known"


KEYS = ["id", "turn", "turns", "inferred", "since", "x"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["t0", "t1", "m1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)
traces = st.dictionaries(st.sampled_from(["written", "read", "recent", "calls"]), values, max_size=4)


@given(st.lists(st.none() | traces, max_size=5), st.none() | traces, st.text(max_size=20))
def test_any_trace_is_accepted(turns: list[Any], question: Any, answer: str) -> None:
    fate = fate_of(*turns, question=question, answer=answer)
    assert all(value in (None, True, False) for name, value in fate._asdict().items() if name not in ("rank", "k"))
    assert not (fate.echoed and not fate.retrieved)
    assert fate.k is None or fate.k >= 0
