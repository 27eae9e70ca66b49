"""The paper's rules, and how far grades agree with the published ones."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.goodai.facts import SCENARIOS, make_facts, make_record
from longspan.scenarios.goodai.files import TestRecord, read_records
from longspan.scenarios.ltm import paper_rules as rules
from longspan.simulator.base.installed import SCENARIOS as GROUP
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.plugins import make_scenario, scenario_class
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.running.preflight.rehearsal import rehearse

RULED = [name for name in find_entry_points(GROUP) if name != "restaurant" and "rules" in scenario_class(name).model_fields]


def by_paper(name: str) -> Scenario:
    return make_scenario(name, {"rules": "paper"} if name in RULED else {})


def answered(*replies: str) -> Record:
    return Record(exchanges=[Exchange(at, "?", reply, asks=True) for at, reply in enumerate(replies)])


# ---- agreement with published scores


class Regraded(NamedTuple):
    test: TestRecord
    score: float | None

    def agrees(self, *, machine: bool = False) -> bool:
        published = self.test.auto_share if machine else self.test.share
        return self.score is not None and abs(self.score - published) < 1e-3


LEAST = {
    "ChapterBreak": 1.0,
    "Colours": 0.99,
    "Jokes": 0.96,
    "Locations Directions": 0.96,
    "NameList": 1.0,
    "Prospective Memory": 0.99,
    "SallyAnne": 0.99,
    "Shopping": 0.98,
    "Spy Meeting": 0.82,
    "Trigger Response": 0.98,
}
"""The share of the recorded tests whose grade by our rules equals the recorded one."""

SHORT = {
    ("Locations Directions", 0): 0.94,  # replies with two ways, the second wrong
    ("Jokes", 1): 0.94,  # passed for a wrong joke, and for all jokes
    ("Spy Meeting", 1): 0.79,  # corrected by hand
    ("Trigger Response", 1): 0.97,  # corrected by hand
}
"""Where half of the agents agrees less."""


@pytest.fixture(scope="module")
def regraded(goodai: Path) -> Mapping[str, list[Regraded]]:
    tests = [test for test in read_records([goodai / "results"]) if test.dataset != "Restaurant"]
    pool = [test.expected_responses for test in tests if test.dataset == "Spy Meeting"]
    found = defaultdict(list)
    for test in tests:
        played = make_record(test)
        known = make_facts(test.dataset, [each.text for each in played.exchanges], test.expected_responses, pool)
        found[test.dataset].append(Regraded(test, by_paper(SCENARIOS[test.dataset]).grade(known, played).score))
    return found


def share(tests: Iterable[Regraded], *, machine: bool = False) -> float:
    return fmean(each.agrees(machine=machine) for each in tests)


@pytest.mark.parametrize("dataset", LEAST)
def test_recorded_transcripts_are_graded_as_they_were(dataset: str, regraded: Mapping[str, list[Regraded]]) -> None:
    """The rules were written with every other agent's transcripts at hand (half 0), the others were set aside (half 1)."""
    tests = regraded[dataset]
    agents = sorted({each.test.agent for tests in regraded.values() for each in tests})
    assert len(tests) >= 39
    assert share(tests) >= LEAST[dataset]
    for half in (0, 1):
        assert share(each for each in tests if agents.index(each.test.agent) % 2 == half) >= SHORT.get((dataset, half), LEAST[dataset])


def test_spy_meetings_agree_better_with_the_machine_than_with_who_corrected_it(regraded: Mapping[str, list[Regraded]]) -> None:
    assert share(regraded["Spy Meeting"], machine=True) >= 0.86


# ---- our own tests by the paper's rules


def test_these_scenarios_have_rules_of_the_papers() -> None:
    assert set(RULED) == {
        "colours",
        "locations",
        "name_list",
        "prospective_memory",
        "sally_anne",
        "shopping",
        "spy_meeting",
        "trigger_response",
    }


@pytest.mark.parametrize("name", RULED)
def test_by_the_papers_rules_ideal_replies_score_in_full_and_ok_scores_nothing(name: str) -> None:
    for seed in range(60):
        played = rehearse(by_paper(name), seed=seed, reply=lambda text, ideal: ideal)
        assert played.grade.score == 1, played.grade.reason
        assert rehearse(by_paper(name), seed=seed, reply=lambda text, ideal: "OK.").grade.score == 0


@pytest.mark.parametrize("name", RULED)
def test_the_rules_change_no_test(name: str) -> None:
    ours, theirs = (rehearse(scenario, seed=1, reply=lambda text, ideal: "OK.") for scenario in (make_scenario(name, {}), by_paper(name)))
    assert ours.script == theirs.script


@pytest.mark.parametrize("name", RULED)
@given(reply=st.text(max_size=200) | st.from_regex(r"[\[{\"':,\\a1/.}\]` \n]{0,80}", fullmatch=True))
def test_no_reply_breaks_the_papers_rules(name: str, reply: str) -> None:
    grade = rehearse(by_paper(name), seed=3, reply=lambda text, ideal: reply).grade
    assert grade.score is None or 0 <= grade.score <= 1
    assert grade.reason


@pytest.mark.parametrize("name", RULED)
def test_the_papers_rules_grade_a_huge_reply(name: str) -> None:
    for reply in ("word " * 200_000, "[" * 100_000, '{"a": ' * 20_000, "[" + ", " * 200_000, "[1" + "0" * 100_000, "[//" * 100_000):
        assert rehearse(by_paper(name), seed=3, reply=lambda text, ideal, reply=reply: reply).grade.reason


# ---- what the rules demand


@pytest.mark.parametrize(("reply", "score"), [("RED.", 1), ("Blue, green or red?", 1), ("I am bored.", 1), ("Crimson.", 0)])
def test_a_colour_counts_wherever_it_stands(reply: str, score: float) -> None:
    assert rules.grade_colours({"colour": "Red"}, answered(reply)).score == score


def test_a_trigger_counts_where_the_phrase_stands() -> None:
    known = {"phrase": "Ahoy there", "triggers": 3}
    assert rules.trigger_response(known, answered("ahoy there!", "Hello.", "Ahoy thereabouts")).score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Ahoy there, my old friend of the sea!", 1),
        ("Ahoy my very old friend of the sea", 1),  # ROUGE-L 14/16
        ("Ahoy, old friend of mine.", 0),  # 8/13
        ("It is you! Ahoy my very old friend of the sea, and good evening", 0),  # a paraphrase among other words: 14/22
        ("sea the of friend old my there ahoy", 0),
        ("", 0),
    ],
)
def test_a_close_paraphrase_of_the_phrase_counts_as_well(reply: str, score: float) -> None:
    assert rules.trigger_response({"phrase": "Ahoy there my old friend of the sea", "triggers": 1}, answered(reply)).score == score


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('["zoe", "Ben"]', 1),
        ('Sure:\n```json\n["Zoe", "Ben",]\n```\nAnd ["Al"].', 1),
        ('["Zoe", "Zoe"]', 1 / 2),
        ('["Zoe", "Ben", "Al", "Bo"]', 2 / 4),
        ('{"names": ["Zoe", "Ben"]}', 0),
        ('[{"name": "Zoe"}, {"name": "Ben"}]', 0),
        ("['Zoe', 'Ben']", 0),
        ("Zoe and Ben", 0),
        ("[]", 0),
    ],
)
def test_names_are_the_text_of_the_first_json(reply: str, score: float) -> None:
    assert rules.name_list({"names": ["Zoe", "Ben"]}, answered(reply)).score == pytest.approx(score)


def entries(*listed: tuple[Any, Any]) -> str:
    return json.dumps([{"item": item, "quantity": quantity} for item, quantity in listed])


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        (entries(("Soap bars", 2), ("Leeks", 3)), 1),
        (entries(("soap", 2), ("leek", 1)), (1 + 1 / 2 + 1) / 3),
        (entries(("soap", 2), ("tea", 1)), (1 / 2 + 1 / 2) / 3),
        (entries(("soap", 1), ("soap", 1), ("soap", 2)), 1),  # (3/2 + 1/2 + 1) / 3
        (entries(("soap", 1), ("soap", 1), ("soap", 2), ("tea", 1)), (3 / 2 + 1 / 2) / 3),
        (entries(("soap", 2), ("soap", 2), ("leek", 3)), 1),  # (3/2 + 3/2 + 1) / 3 is more than all
        ("[]", 1 / 3),
        (entries(("soap", "2"), ("leek", 3)), 0),
        (json.dumps({"items": [{"item": "soap", "quantity": 2}]}), 0),
        ("2 soap and 3 leek", 0),
    ],
)
def test_a_shopping_list_counts_in_thirds(reply: str, score: float) -> None:
    assert rules.grade_shopping({"list": {"soap": 2, "leek": 3}}, answered(reply)).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("With a tent, at noon.", 1),
        ("With a tent, at noon or dawn, on a sled.", 1 / 2),
        ("At noon.", 1 / 2),
        ("At dawn.", 0),
        ("Intentions, at Noon.", 0),
    ],
)
def test_a_third_of_spies_is_lost_once_to_confusion(reply: str, score: float) -> None:
    known = {"accepted": [["tent", "canvas"], ["noon"]], "foreign": [["dawn", "noon"], ["sled"]]}
    assert rules.spy_meeting(known, answered(reply)).score == score


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"answer": "bag"}', 1),
        ('{"answer": "BAG"}', 1),
        ('{"answer": ["bag"]}', 0),
        ('So:\n```json\n{"answer": "bag"}\n```', 1),
        ('{"answer": "the bag"}', 0),
        ("bag", 0),
        ('["bag"]', 0),
    ],
)
def test_a_container_is_the_answer_in_json(reply: str, score: float) -> None:
    assert rules.sally_anne({"answer": "bag"}, answered(reply)).score == score


def test_a_quotation_counts_to_the_letter() -> None:
    quotation = "Well begun is half done, they say; and so it is."
    assert rules.contains_quotation(f"OK.\n'{quotation.upper()}' - Zoe", quotation)
    assert not rules.contains_quotation("Well begun is half done, they said; and so it is.", quotation)
