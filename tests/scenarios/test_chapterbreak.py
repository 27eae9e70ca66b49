"""ChapterBreak: how a book is read out, with made-up and with published data, and how the answer is graded."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.chapterbreak.scenario import ChapterBreak
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.script import Script
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

SMALL = ChapterBreak(tokens=3000)


def make(seed: int = 1, scenario: ChapterBreak = SMALL) -> Script:
    return scenario.make(Random(f"chapterbreak/{seed}"))


def answered(reply: str, seed: int = 1, scenario: ChapterBreak = SMALL) -> Rehearsal:
    """The test with its ideal replies, but for the last."""
    last = make(seed, scenario).lines[-1].text
    return rehearse(scenario, seed=seed, reply=lambda text, ideal: reply.replace("{ideal}", ideal) if text == last else ideal)


def test_ideal_replies_score_in_full() -> None:
    for seed in range(50):
        assert answered("{ideal}", seed).grade.score == 1, f"seed {seed}"


def test_the_form_of_the_test() -> None:
    script = make(scenario=ChapterBreak())
    intro, *rest = script.lines
    *middle, question = rest
    pages, openings = middle[:-6], middle[-6:]

    assert not intro.needle
    assert not intro.together
    assert all(line.together for line in rest)
    assert all(page.needle and not page.asks for page in pages)
    assert all(not opening.needle and not opening.asks for opening in openings)
    assert question.asks
    assert question.needs == tuple(range(len(pages)))
    assert question.ideal == str(script.facts["answer"])
    assert f"{len(pages)} pages" in intro.text
    assert [page.text.split(":")[0] for page in pages] == [f"Page {number} of {len(pages)}" for number in range(1, len(pages) + 1)]
    assert [opening.text.split(":")[0] for opening in openings] == [f"Opening {number} of 6" for number in range(1, 7)]
    assert ChapterBreak.uninterrupted
    assert not ChapterBreak.early


def test_sizes() -> None:
    count = Tokenizer().count
    for seed in range(10):
        *lines, _ = make(seed, ChapterBreak()).lines
        pages, openings = [count(line.text) for line in lines[1:-6]], [count(line.text) for line in lines[-6:]]
        assert all(600 <= size <= 900 for size in pages)
        assert 7200 <= sum(pages) <= 8800
        assert max(openings) <= 180
        assert count(lines[0].text) <= 80


@pytest.mark.parametrize(
    ("reply", "score", "because"),
    [
        ("{ideal}", 1, "the reply chooses {ideal}"),
        ("Option {ideal}", 1, "the reply chooses {ideal}"),
        ("**{ideal}.**", 1, "the reply chooses {ideal}"),
        ("I think the true one is opening {ideal}, since it agrees with page 2.", 1, "the reply chooses {ideal}"),
        ('{ideal} "A gate is a wall that has changed its mind." - A. Nonymous', 1, "the reply chooses {ideal}"),
        ("{ideal} or 9", 0, "the reply chooses {ideal} and 9"),
        ("1 2 3 4 5 6", 0, "1 and 2 and 3"),
        ("7", 0, "the reply chooses 7"),
        ("0", 0, "the reply chooses 0"),
        ("OK.", 0, "the reply chooses no number"),
        ("", 0, "the reply chooses no number"),
        ("I cannot tell which of the six openings is right.", 0, "the reply chooses no number"),
    ],
)
def test_grades(reply: str, score: float, because: str) -> None:
    played = answered(reply)
    ideal = str(played.script.facts["answer"])

    assert played.grade.score == score
    assert played.grade.reason.startswith(f"expected opening {ideal}, ")
    assert because.replace("{ideal}", ideal) in played.grade.reason
    assert played.grade.turns == (len(played.script.lines) - 1,)


def test_the_reason_says_what_a_false_opening_has_wrong() -> None:
    facts = make().facts
    number, false = next(iter(facts["false"].items()))
    reason = answered(number).grade.reason

    assert false["says"] in reason
    assert f"but page {false['page']} says" in reason
    assert false["told"] in make().lines[false["page"]].text
    assert false["says"] in make().lines[-8 + int(number)].text


def test_always_saying_ok_scores_nothing() -> None:
    assert rehearse(SMALL, seed=2, reply=lambda text, ideal: "OK.").grade.score == 0


def test_answers_are_balanced_and_the_answers_of_another_test_score_by_chance() -> None:
    answers = [make(seed).facts["answer"] for seed in range(60)]
    hits = sum(answered(str(answers[seed + 1]), seed).grade.score or 0 for seed in range(50))

    assert set(Counter(answers)) == {1, 2, 3, 4, 5, 6}
    assert hits / 50 <= SMALL.chance(make().facts) + 0.1


def test_the_same_seed_gives_the_same_test_and_another_one_another() -> None:
    assert make(3) == make(3)
    assert make(3).lines[1] != make(4).lines[1]


def test_facts_survive_json_and_grade_alike() -> None:
    played = answered("2")
    facts = json.loads(json.dumps(played.script.facts))

    assert facts == played.script.facts
    assert SMALL.grade(facts, played.record) == played.grade


@pytest.mark.parametrize("wrong", [{"tokens": 2000}, {"tokens": 10**6}, {"tokens": "much"}, {"pages": 3}, {"data": 3}, {"samples": 4}])
def test_parameters_refuse_nonsense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChapterBreak(**wrong)


def test_sizes_can_be_written_short() -> None:
    assert ChapterBreak(tokens="4k").tokens == 4000


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_no_reply_raises(reply: str) -> None:
    grade = SMALL.grade({"answer": 3, "openings": 6}, Record([Exchange(0, "?", reply, asks=True)]))

    assert grade.score in (0, 1)


# Published data.

SENTENCES = " ".join(f"In year {number} of the long drought the old ferryman still rowed over every evening." for number in range(900))


def published(folder: Path, **changes: Any) -> Path:
    example = {"ctx": SENTENCES, "pos": "True. " * 200, "negs": [f"False {number}. " * 200 for number in range(5)]} | changes
    path = folder / "chapters.json"
    path.write_text(json.dumps({"pg19": {"1342": [example, example | {"ctx": "Short context.", "pos": "Brief."}]}}), "utf-8")
    return path


def test_published_data_is_asked(tmp_path: Path) -> None:
    scenario = ChapterBreak(data=published(tmp_path), samples=("pg19/1342/0",))
    script = make(scenario=scenario)
    count = Tokenizer().count
    *lines, question = script.lines

    assert answered("{ideal}", scenario=scenario).grade.score == 1
    assert script.facts["source"] == "pg19/1342/0"
    assert [line.text.split("\n\n")[1].startswith("True") for line in lines[-6:]].index(True) + 1 == script.facts["answer"]
    assert all(count(line.text) <= 180 for line in lines[-6:])
    assert all(600 <= count(line.text) <= 900 for line in lines[1:-6])
    assert 7200 <= sum(count(line.text) for line in lines[1:-6]) <= 8800
    assert lines[-7].text.endswith("In year 899 of the long drought the old ferryman still rowed over every evening.")
    assert question.needs == tuple(range(len(lines) - 7))


def test_published_answers_are_anywhere_and_samples_too(tmp_path: Path) -> None:
    scenario = ChapterBreak(data=published(tmp_path))
    made = [make(seed, scenario).facts for seed in range(60)]

    assert {facts["answer"] for facts in made} == {1, 2, 3, 4, 5, 6}
    assert {facts["source"] for facts in made} == {"pg19/1342/0", "pg19/1342/1"}


def test_a_short_context_is_one_page(tmp_path: Path) -> None:
    script = make(scenario=ChapterBreak(data=published(tmp_path), samples=("pg19/1342/1",)))

    assert len(script.lines) == 1 + 1 + 6 + 1
    assert script.lines[1].text == "Page 1 of 1:\n\nShort context."


def test_wrong_data_and_samples_are_told_when_the_test_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        make(scenario=ChapterBreak(data=tmp_path / "nothing.json"))
    with pytest.raises(InputError, match="unknown sample 'pg19/7/0'; samples are named like 'pg19/1342/0'"):
        make(scenario=ChapterBreak(data=published(tmp_path), samples=("pg19/7/0",)))


def test_a_published_test_is_graded_without_its_data(tmp_path: Path) -> None:
    path = published(tmp_path)
    played = answered("{ideal}", scenario=ChapterBreak(data=path))
    path.unlink()

    assert ChapterBreak(data=path).grade(played.script.facts, played.record) == played.grade
