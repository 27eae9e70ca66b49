"""Sally-Anne: stories of false beliefs, whose answers are computed, and balanced so that no rule of thumb finds them."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.sally_anne import BeliefQuestion, Event, Kind, SallyAnne, World
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.contract.script import Script
from longspan.simulator.reading.matching import found_words
from longspan.simulator.running.preflight.rehearsal import rehearse

FACTS = {"answer": "crate", "containers": ["crate", "drawer", "urn"], "really": "drawer"}
KINDS: tuple[Kind, ...] = get_args(Kind)
POOL = load_words("sally_anne")


def ideal(text: str, ideal: str) -> str:
    return ideal


def grade(reply: str, facts: dict[str, Any] = FACTS) -> Grade:
    return SallyAnne().grade(facts, Record([Exchange(9, "Where?", reply, asks=True)]))


def test_ideal_replies_score_one() -> None:
    for seed in range(50):
        assert rehearse(SallyAnne(), seed=seed, reply=ideal).grade.score == 1, f"seed {seed}"


def test_saying_ok_scores_nothing() -> None:
    played = rehearse(SallyAnne(), seed=1, reply=lambda text, ideal: "OK.")
    assert played.grade.score == 0
    assert "names none of the containers" in played.grade.reason


def test_another_tests_replies_score_no_more_than_chance() -> None:
    scores = []
    for seed, other in pairwise(range(51)):
        answer = rehearse(SallyAnne(), seed=other, reply=ideal).record.answer.reply
        scores.append(rehearse(SallyAnne(), seed=seed, reply=lambda text, ideal, answer=answer: answer).grade.score)
    assert sum(scores) / 50 <= 1 / 3 + 0.1


# --- the stories

LINE = re.compile(
    r"On TV: (?:(?P<who>\w+) (?P<doing>enters|walks into|comes into|leaves|walks out of|exits) the (?P<room>\w+)"
    r"|(?P<putter>\w+) (?:brings out a \w+ and puts it into|has a \w+ and lays it in|moves the \w+ to|takes the \w+ and puts it into) "
    r"the (?P<place>\w+)|(?:a|the) \w+ is (?:put into|moved to) the (?P<target>\w+) by (?P<mover>\w+))\.$"
)


def read(script: Script, *, peeking: bool = False) -> tuple[str, list[tuple[str, set[str]]]]:
    """A story understood from its sentences alone: the room of the object; and for each container that the object gets
    into, the people who are there to see it. `peeking`: also for each time that someone comes into the room after that.

    Fails where someone is where he can't be.
    """
    where: dict[str, str] = {}
    seen: list[tuple[str, set[str]]] = []
    home = ""
    for line in script.lines[2:-1]:
        match = LINE.match(line.text)
        if match is None:
            assert re.search(r" (likes|dislikes|has always wanted) the ", line.text)
            continue
        place = match["place"] or match["target"]
        if place:
            mover = match["putter"] or match["mover"]
            home = home or where[mover]
            assert where[mover] == home, line.text
        elif match["doing"] in ("enters", "walks into", "comes into"):
            assert match["who"] not in where, line.text
            where[match["who"]] = match["room"]
            if peeking and match["room"] == home:
                place = seen[-1][0]
        else:
            assert where.pop(match["who"]) == match["room"], line.text
        if place:
            seen.append((place, {who for who, room in where.items() if room == home}))
    return home, seen


def seen_together(seen: list[tuple[str, set[str]]], people: list[str]) -> str:
    """The container where all of the people last saw the object, and saw each other see it."""
    return [place for place, there in seen if there.issuperset(people)][-1]


@pytest.mark.parametrize("people", [2, 3, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_follow_from_what_was_seen(kind: Kind, people: int) -> None:
    """Found by another way than World's: what one saw last, and what two last saw together."""
    for seed in range(40):
        script = SallyAnne(questions=(kind,), people=people).make(Random(seed))
        home, seen = read(script)
        facts, question = script.facts, script.lines[-1].text
        assert all(re.search(rf"\b{who}\b", question) for who in facts["people"])
        assert home in script.lines[1].text
        if facts["people"]:
            expected = seen_together(seen, facts["people"])
        else:
            expected = seen[-1 if kind == "reality" else 0][0]
        assert facts["answer"] == expected
        assert (facts["first"], facts["really"]) == (seen[0][0], seen[-1][0])
        assert len(facts["people"]) == {"first_order": 1, "second_order": 2}.get(kind, 0)


def test_what_one_learns_by_coming_into_the_room_never_matters() -> None:
    matters = 0
    for seed in range(200):
        script = SallyAnne(questions=("first_order", "second_order"), people=4, moves=5).make(Random(seed))
        people = script.facts["people"]
        assert seen_together(read(script, peeking=True)[1], people) == script.facts["answer"]
        everyone = set().union(*(there for _, there in read(script)[1]))
        matters += any(seen_together(read(script, peeking=True)[1], [who]) != seen_together(read(script)[1], [who]) for who in everyone)
    assert matters  # it would have mattered had others been asked about


def _moves(text: str) -> bool:
    match = LINE.match(text)
    return bool(match and not match["who"])


def _home(script: Script) -> str:
    return read(script)[0]


@pytest.mark.parametrize("kind", ["first_order", "second_order"])
def test_beliefs_are_balanced(kind: Kind) -> None:
    tests = [SallyAnne(questions=(kind,)).make(Random(seed)).facts for seed in range(400)]
    true = sum(facts["answer"] == facts["really"] for facts in tests) / 400
    first = sum(facts["answer"] == facts["first"] for facts in tests) / 400
    assert 0.25 < true < 0.45
    assert 0.25 < first < 0.45


def test_second_order_cannot_be_answered_as_first_order() -> None:
    for seed in range(100):
        script = SallyAnne(questions=("second_order",)).make(Random(seed))
        facts = script.facts
        _, seen = read(script)
        beliefs = {seen_together(seen, [who]) for who in facts["people"]}
        assert facts["answer"] == facts["really"] or beliefs != {facts["answer"]}


def test_the_object_is_in_any_container_at_the_end() -> None:
    tests = [SallyAnne(questions=("reality",)).make(Random(seed)) for seed in range(300)]
    named = Counter(found_in_order(script).index(script.facts["answer"]) for script in tests)
    assert all(70 < named[rank] < 130 for rank in range(3))
    assert 0.25 < sum(script.facts["first"] == script.facts["really"] for script in tests) / 300 < 0.45


def found_in_order(script: Script) -> list[str]:
    """The containers, in the order of the line that names them all."""
    return sorted(script.facts["containers"], key=script.lines[1].text.index)


def test_all_kinds_can_be_asked() -> None:
    kinds = Counter(SallyAnne(questions=KINDS).make(Random(seed)).facts["kind"] for seed in range(200))
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) > 30
    assert {SallyAnne(questions=("memory",)).make(Random(seed)).facts["kind"] for seed in range(20)} == {"memory"}


def test_stories_are_eight_to_fourteen_lines_after_an_intro_that_carries_nothing() -> None:
    lengths, idle = set(), 0
    for seed in range(200):
        intro, *story, question = SallyAnne().make(Random(seed)).lines
        assert (intro.needle, intro.asks) == (False, False)
        assert all(line.needle and not line.asks for line in story)
        assert question.asks
        assert '{"answer": "word"}' in question.text
        lengths.add(len(story))
        idle += sum(" likes " in line.text or " dislikes " in line.text or " wanted " in line.text for line in story)
    assert lengths <= set(range(8, 15))
    assert len(lengths) > 4
    assert idle > 50


@pytest.mark.parametrize("kind", KINDS)
def test_the_question_needs_the_lines_that_answer_it(kind: Kind) -> None:
    for seed in range(30):
        script = SallyAnne(questions=(kind,)).make(Random(seed))
        needles = [line.text for line in script.lines if line.needle]
        assert script.lines[-1].needs is not None
        needed = [needles[number] for number in script.lines[-1].needs]
        moves = [text for text in needles if _moves(text)]
        if kind == "memory":
            assert needed == moves[:1]
        elif kind == "reality":
            assert needed == moves[-1:]
        else:
            home = _home(script)
            assert needed == [text for text in needles[1:] if _moves(text) or re.search(rf" the {home}\.$", text)]


def test_a_world_keeps_what_each_has_seen_apart_from_what_is() -> None:
    world = World("den", peeking=False)
    for event in (
        Event("enter", "Sal", "den"),
        Event("enter", "Ann", "den"),
        Event("put", "Sal", "basket"),
        Event("leave", "Sal", "den"),
        Event("move", "Ann", "box"),
        Event("enter", "Sal", "attic"),
        Event("like", "Sal", "piano"),
    ):
        world.happen(event)
    assert world.answer(BeliefQuestion("first_order", ("Sal",))) == "basket"
    assert world.answer(BeliefQuestion("first_order", ("Ann",))) == "box"
    assert world.answer(BeliefQuestion("second_order", ("Ann", "Sal"))) == "basket"
    assert world.answer(BeliefQuestion("second_order", ("Sal", "Ann"))) == "basket"
    assert world.answer(BeliefQuestion("reality")) == "box"
    assert world.answer(BeliefQuestion("memory")) == "basket"
    assert world.answer(BeliefQuestion("first_order", ("Bob",))) is None


@pytest.mark.parametrize(("peeking", "belief"), [(True, "box"), (False, "basket")])
def test_two_readings_of_coming_back(peeking: bool, belief: str) -> None:
    world = World("den", peeking=peeking)
    for who, what, where in (
        ("Sal", "enter", "den"),
        ("Ann", "enter", "den"),
        ("Sal", "put", "basket"),
        ("Sal", "leave", "den"),
        ("Ann", "move", "box"),
        ("Sal", "enter", "den"),
    ):
        world.happen(Event(what, who, where))  # type: ignore[arg-type]
    assert world.answer(BeliefQuestion("first_order", ("Sal",))) == belief
    assert world.answer(BeliefQuestion("second_order", ("Ann", "Sal"))) == belief


# --- the grader


@pytest.mark.parametrize(
    ("reply", "score", "reason"),
    [
        ('{"answer": "crate"}', 1, "expected crate (it is really in the drawer), the JSON names crate"),
        ('```json\n{\n  "answer": "Crate"\n}\n```', 1, "the JSON names crate"),
        ('{"answer": "the crate."}', 1, "the JSON names crate"),
        ("{'Answer': 'in the crate',}", 1, "the JSON names crate"),
        ("{answer: crate}", 1, "names crate"),
        ('{"answer": ["crate"]}', 1, "the JSON names crate"),
        ('The medal is in the drawer, but Ivo saw it in the crate.\n\n{"answer": "crate"}', 1, "the JSON names crate"),
        ('You want {"answer": "word"}, so: {"answer": "crate"}', 1, "the JSON names crate"),
        ('{"answer": "crate"}\n"Time is a strict teacher who hands out lessons after the exam." - Aldous Krennick', 1, "crate"),
        ('{"answer": "crate", "why": "the drawer came later"}', 1, "the JSON names crate"),
        ('{"answer": "drawer"}', 0, "the JSON names drawer"),
        ('{"answer": "drawer"} because it left the crate', 0, "the JSON names drawer"),
        ('{"answer": "crate"} or {"answer": "drawer"}', 0, "the JSON names crate and drawer"),
        ('{"answer": "crate or drawer"}', 0, "the JSON names crate and drawer"),
        ('{"answer": "not the crate"}', 0, "the JSON names none of the containers"),
        ('{"answer": "crates"}', 0, "names none"),
        ('{"answer": "den"} It is in the crate.', 0, "the JSON names none of the containers"),
        ('The crate is all I recall: {"answer": null}', 0, "the JSON names none of the containers"),
        ('{"answer": {"place": {"crate": 1}}}', 0, "the JSON names none"),
        ("In the crate.", 1, "the reply, which has no JSON answer, names crate"),
        ("**Crate**", 1, "names crate"),
        ('{"location": "crate"}', 1, "which has no JSON answer, names crate"),
        ("He'll look in the crate, not in the drawer.", 1, "names crate"),
        ("She isn't going to find it. Certainly not in the crate.", 0, "names none"),
        ("It was moved from the crate to the drawer.", 0, "names drawer"),
        ("I don't have any information about a TV programme.", 0, "names none of the containers"),
        ('I can only offer {"answer": "word"}', 0, "names none"),
        ("", 0, "names none of the containers"),
    ],
)
def test_replies_as_agents_give_them(reply: str, score: int, reason: str) -> None:
    graded = grade(reply)
    assert graded.score == score
    assert reason in graded.reason
    assert graded.turns == (9,)


def test_a_published_definition_can_be_graded() -> None:
    facts = {"answer": "pantry", "containers": ["pantry", "bottle"]}
    assert grade('{"answer": "Pantry"}', facts).score == 1
    assert grade('{"answer": "bottle"}', facts).score == 0


@given(st.text() | st.lists(st.sampled_from(['{"answer":', '"crate"', "}", "[", "not in", "the", " crate", "\\", '"', "\n"])).map("".join))
def test_no_reply_breaks_the_grader(reply: str) -> None:
    assert grade(reply).score in (0, 1)


@pytest.mark.parametrize("piece", ["[", "{", '{"', '{"answer":', "not in the ", '{"a": [', "crate drawer "])
def test_a_huge_reply_is_graded(piece: str) -> None:
    assert grade(piece * (200_000 // len(piece))).score == 0


def test_the_same_seed_gives_the_same_test_and_another_seed_another() -> None:
    scripts = [SallyAnne().make(Random(seed)) for seed in (1, 1, 2)]
    assert scripts[0] == scripts[1]
    assert scripts[0] != scripts[2]


def test_facts_survive_the_journal() -> None:
    played = rehearse(SallyAnne(), seed=3, reply=ideal)
    facts = json.loads(json.dumps(played.script.facts))
    assert facts == played.script.facts
    assert SallyAnne().grade(facts, played.record) == played.grade


def test_naming_containers_that_are_in_no_line_of_the_story_does_not_help() -> None:
    played = rehearse(SallyAnne(), seed=3, reply=ideal)
    right = played.script.facts["answer"]
    stray = next(each for each in load_words("sally_anne")["containers"] if each not in played.script.facts["containers"])
    facts = dict(played.script.facts)
    assert grade(f'{{"answer": "{right}"}}', facts).score == 1
    assert grade(f'{{"answer": "{right} or {stray}"}}', facts).score == 0
    assert grade(f"The {right}, not the {stray}.", facts).score == 1


@pytest.mark.parametrize("parameters", [{"people": 8, "moves": 12}, {"people": 2, "moves": 12}, {"people": 8}])
def test_larger_stories_are_solved_too(parameters: dict[str, int]) -> None:
    for seed in range(20):
        played = rehearse(SallyAnne(**parameters), seed=seed, reply=ideal)
        assert played.grade.score == 1
        assert len(played.script.lines) > 8


@pytest.mark.parametrize(
    "parameters", [{"questions": ()}, {"questions": ("third_order",)}, {"people": 1}, {"people": 9}, {"moves": 2}, {"moves": 13}, {"x": 1}]
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SallyAnne(**parameters)


def test_the_words_of_a_story_cannot_be_mixed_up() -> None:
    assert len(POOL["containers"]) >= 15
    everything = [word for pool in POOL.values() for word in pool]
    assert len(set(everything)) == len(everything)
    assert all(re.fullmatch("[a-z]+", word) for word in POOL["containers"] + POOL["rooms"] + POOL["objects"])


def test_only_the_story_names_containers() -> None:
    wording = Wording("sally_anne")
    told = [text for macro in ("intro", "form", "farewell") for text in wording.all(macro)]
    told += [text for kind in KINDS for text in wording.all(kind, who="Ivo", other="Runa", thing="medal")]
    assert [text for text in told if found_words(text, POOL["containers"])] == []


BELIEF = {"kind": "first_order", "people": ["Zelda"], **FACTS}


@pytest.mark.parametrize(
    "reply",
    [
        "Zelda thinks it is in the crate, but it's really in the drawer.",
        "It is in the drawer now; Zelda will look in the crate, as she left before it was moved.",
        "Zelda last saw it in the crate. Ottoline later moved it to the drawer.",
        "While Ottoline would look in the drawer, Zelda would look in the crate.",
        "Belief: crate\nReality: drawer",
        "1. It was in the urn.\n2. Ottoline moved it to the crate.\n3. Zelda left.\n\nSo Zelda thinks it is in the crate.",
        "Zelda: crate, Ottoline: drawer",
        "To Zelda's knowledge it never left the crate.",
        "From the crate it was moved to the drawer, but Zelda missed that. Crate.",
    ],
)
def test_what_happened_and_what_others_believe_is_no_answer_about_a_belief(reply: str) -> None:
    assert grade(reply, BELIEF).score == 1


@pytest.mark.parametrize(
    "reply",
    [
        "Zelda thinks it's in the drawer, although it's in the crate.",
        "Ottoline believes it's in the crate. Zelda believes it's in the drawer.",
        "Zelda: drawer, Ottoline: crate",
        "I don't know. It was moved from the urn to the crate, but I can't tell what Zelda saw.",
    ],
)
def test_a_wrong_belief_is_wrong_whatever_else_is_said(reply: str) -> None:
    assert grade(reply, BELIEF).score == 0
