"""The suite `counting-stars`: what it makes, what the reference agents score in it, its tables, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from longspan.scenarios.counting_stars.scenario import CountingStars
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import Item, Marked
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite

TINY = {"variant": "6-4", "max_context": "2k"}


def suite(*settings: str, tests: int | None = None, name: str = "counting-stars") -> Suite:
    return load_suite(name).apply_changes(settings, [], [], tests)


def played(chosen: Suite, tmp_path: Path, *, agent: str = "oracle", span: int = 8000, **options: Any) -> Result:
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=chosen, span=span, seed=0, agent=agent, **options), tmp_path)])
    assert outcome.error is None
    assert outcome.result is not None
    return outcome.result


def tables(result: Result) -> Mapping[str, Table]:
    return {table.title: table for table in result.tables}


# ---- playing


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("task", ["searching", "reasoning"])
@pytest.mark.parametrize("delivery", ["message", "scatter"])
def test_the_oracle_has_full_marks_and_silence_none(language: str, task: str, delivery: str, tmp_path: Path) -> None:
    chosen = suite("variant=6-3", "max_context=2k", f"language={language}", f"task={task}", f"delivery={delivery}")
    best, worst = (played(chosen, tmp_path, agent=agent, span=2000) for agent in ("oracle", "silent"))
    assert (best.score, worst.score) == (1, 0)
    assert best.certified == best.at_distance == 1
    if delivery == "message":
        assert best.turns == len(best.tests) == 3
        assert best.filler_tokens == 0
        assert [test.id for test in best.tests] == [test.conversation for test in best.tests]
        assert sorted(test.id for test in best.tests) == ["counting_stars-1333", "counting_stars-2000", "counting_stars-666"]
    else:
        (test,) = best.tests
        assert len(test.evidence) == 6
        assert (test.evidence[0].dealt or 0) > 0.85 * 2000


def test_stars_are_scattered_among_the_tests_of_another_suite(tmp_path: Path) -> None:
    chosen = suite("delivery=scatter", "variant=16-1", tests=1, name="ltm+counting-stars")
    result = played(chosen, tmp_path, span=16_000)
    assert result.score == result.max_score == 12
    (test,) = [test for test in result.tests if test.scenario == "counting_stars"]
    assert test.conversation == "main"
    gaps = sorted(each.tokens for each in test.evidence)
    assert len(gaps) == 16
    assert all(500 < after - before < 1500 for before, after in pairwise(gaps))


def test_a_run_counts_in_its_tokenizer(tmp_path: Path) -> None:
    count = Tokenizer("o200k_base").count
    made = plan_run(
        RunSettings(suite=suite("language=zh", "variant=16-2"), span=8000, seed=0, agent="oracle", tokenizer="o200k_base"), tmp_path
    )
    for (test,) in made.tests.values():
        length = int(test.id.rpartition("-")[2])
        assert 0 <= length - count(test.script.lines[0].text) < 20
    with pytest.raises(InputError, match="use --tokenizer instead of the parameter"):
        plan_run(RunSettings(suite=suite("tokenizer=o200k_base"), span=8000, seed=0, agent="oracle"), tmp_path)


def test_a_test_for_each_length_as_often_as_asked_with_numbers_of_its_own() -> None:
    made = dict(make_scenario("counting_stars", TINY).series(2, "0/counting_stars"))
    assert list(made) == ["500-1", "1000-1", "1500-1", "2000-1", "500-2", "1000-2", "1500-2", "2000-2"]
    assert len({tuple(script.facts["right"]) for script in made.values()}) == 8
    assert made["2000-1"].lines[0].text[:100] == made["500-2"].lines[0].text[:100]
    assert made == dict(make_scenario("counting_stars", TINY).series(2, "0/counting_stars"))


def test_the_published_size_can_be_made() -> None:
    scenario = CountingStars.model_validate({"variant": "32-32", "max_context": "128k"})
    assert scenario.lengths == list(range(4000, 128_001, 4000))
    script = scenario.make(Random(0))
    assert 0 <= 128_000 - Tokenizer().count(script.lines[0].text) < 20
    assert script.lines[0].text.count("★.") == 32


def test_reasoning_tells_the_wrong_number_first() -> None:
    script = CountingStars.model_validate(TINY | {"task": "reasoning"}).make(Random(0))
    lines = [line for line in script.lines[0].text.splitlines() if "mistake: it" in line]
    for right, wrong, line in zip(script.facts["right"], script.facts["wrong"], lines, strict=True):
        assert line.index(f" {wrong} ★") < line.index(f" {right} ★")


def test_a_sky_and_stars_of_ones_own(tmp_path: Path, counting_stars: Path) -> None:
    (tmp_path / "sky.txt").write_text("Once upon a time there was a very long story.\n" * 500, "utf-8")
    data = [f"sky={tmp_path / 'sky.txt'}", f"stars={counting_stars / 'a_stars.txt'}"]
    chosen = load_suite("counting-stars").apply_changes(["variant=32-2", "max_context=3k"], data, [], None)
    made = plan_run(RunSettings(suite=chosen, span=8000, seed=0, agent="oracle"), tmp_path)
    for (test,) in made.tests.values():
        assert test.script.facts["right"][:4] == [15, 117, 42, 69]
        assert "Once upon a time" in test.script.lines[0].text
    assert played(chosen, tmp_path / "runs").score == 1


# ---- grading


@pytest.mark.parametrize(
    ("scoring", "reply", "score"),
    [("membership", "{}", 0), ("membership", "{rest}", 5 / 6), ("slot", "{rest}", 0), ("slot", "{all}", 1), ("membership", "OK.", 0)],
)
def test_scores_go_by_membership_or_by_place(scoring: str, reply: str, score: float) -> None:
    scenario = CountingStars.model_validate(TINY | {"scoring": scoring})

    def answer(text: str, ideal: str) -> str:
        _, _, rest = ideal.partition("[")[2].partition("]")[0].partition(", ")
        return reply.replace("{all}", ideal).replace("{rest}", f"[{rest}]")

    grade = rehearse(scenario, seed=1, reply=answer).grade
    assert grade.score == pytest.approx(score)
    assert len(grade.items) == 6
    assert grade.items[-1].numbers["stars"] == 6


@pytest.mark.parametrize("task", ["searching", "reasoning"])
def test_prompts_of_the_user_are_played_to_the_letter(tmp_path: Path, task: str) -> None:
    path = tmp_path / "prompts.yaml"
    path.write_text("star: 'a {{right}} b'\ncorrected: 'c {{wrong}} d {{ right }} e'\nquestion: 'All, as {\"n\": [x, ...]}?'\n", "utf-8")
    script = CountingStars.model_validate(TINY | {"task": task, "prompts": path}).make(Random(0))
    right, wrong = script.facts["right"], script.facts["wrong"]
    lines = script.lines[0].text.splitlines()
    assert lines[-1] == 'All, as {"n": [x, ...]}?'
    told = (
        [f"a {count} b" for count in right] if wrong is None else [f"c {off} d {count} e" for count, off in zip(right, wrong, strict=True)]
    )
    assert [line for line in lines if line in told] == told
    path.write_text("question: How many?", "utf-8")
    with pytest.raises(InputError, match=f"the prompt {'star' if task == 'searching' else 'corrected'} is missing"):
        CountingStars.model_validate(TINY | {"task": task, "prompts": path}).make(Random(0))


@pytest.mark.parametrize("parameters", [TINY, TINY | {"task": "reasoning", "language": "zh"}, TINY | {"delivery": "scatter"}])
def test_what_other_scenarios_are_held_to(parameters: dict[str, Any]) -> None:
    scenario = make_scenario("counting_stars", parameters)
    quotation = ' "A lantern is patience that learned to burn." - Ottokar Brindle'
    ideals: dict[int, str] = {}
    for seed in range(20):
        ideals[seed] = rehearse(scenario, seed=seed, reply=lambda text, ideal: ideal).record.answer.reply
        assert rehearse(scenario, seed=seed, reply=lambda text, ideal: ideal + quotation).grade.score == 1
    others = [rehearse(scenario, seed=seed, reply=lambda text, ideal, seed=seed: ideals[(seed + 1) % 20]) for seed in ideals]
    assert sum(each.grade.score or 0 for each in others) / 20 <= scenario.chance(others[0].script.facts) + 0.1
    for reply in ("word " * 200_000, "[" * 100_000, '{"a": ' * 20_000, "\x00" * 100_000):
        assert rehearse(scenario, seed=3, reply=lambda text, ideal, reply=reply: reply).grade.score == 0


def test_a_reason_says_what_is_missing() -> None:
    scenario = CountingStars.model_validate(TINY | {"task": "reasoning"})
    known = scenario.make(Random("counting_stars/1")).facts
    right, wrong = known["right"], known["wrong"]
    reply = str([*right[:3], wrong[2], wrong[3]])
    reason = rehearse(scenario, seed=1, reply=lambda text, ideal: reply).grade.reason
    assert reason == (
        "of 6 stars the answer has only the right count for 2, both for 1, only the wrong one for 1; 3 in their places; "
        f"missing: {right[3]}, {right[4]}, {right[5]}"
    )


# ---- tables


def marked(found: Mapping[int, str], *, stars: int = 6) -> list[Marked]:
    """Tests by context length; of each star, whether it was found (1 or 0)."""
    return [
        Marked(f"counting_stars-{length}", 0.5, tuple(_star(length, number, mark, stars) for number, mark in enumerate(line, 1)))
        for length, line in found.items()
    ]


def _star(length: int, number: int, mark: str, stars: int) -> Item:
    numbers = {"star": number, "stars": stars, "context": length, "membership": float(mark), "slot": 0.0}
    return Item(name=f"star {number}", score=float(mark), labels={"context": f"{length:,}"}, numbers=numbers)


def test_the_heatmap_has_the_papers_axes_and_names_the_model_and_its_score(tmp_path: Path) -> None:
    result = played(suite("variant=6-4", "max_context=2k"), tmp_path)
    heatmap = tables(result)["Stars found: oracle, 1.000"]
    assert heatmap.columns == ["star", "500", "1,000", "1,500", "2,000", "mean"]
    assert [row[0] for row in heatmap.rows] == ["1", "2", "3", "4", "5", "6"]
    assert heatmap.across == "context"
    assert heatmap.shades is not None
    assert {shade for row in heatmap.shades for shade in row[1:-1]} == {1}


def test_means_by_length_and_by_position() -> None:
    scenario = CountingStars()
    found = {table.title: table for table in scenario.tables({"one": marked({1000: "111111", 500: "111100"})})}
    assert found["Stars by context length"].rows == [
        ["500", "0.667", "0.000", "6"],
        ["1,000", "1.000", "0.000", "6"],
        ["all", "0.833", "0.000", "12"],
    ]
    assert [row[1] for row in found["Stars by position"].rows] == ["1.000"] * 4 + ["0.500"] * 2 + ["0.833"]


def test_what_is_lost_in_the_middle_and_in_the_tail_is_told_with_a_p_value() -> None:
    tail = dict.fromkeys(range(1000, 9000, 1000), "111100")
    middle = dict.fromkeys(range(1000, 9000, 1000), "110011")
    shown = CountingStars().tables({"tail": marked(tail), "middle": marked(middle), "all": marked(dict.fromkeys(tail, "111111"))})
    rows = {(row[0], row[1]): row[2:] for row in shown[-1].rows}
    assert rows["tail", "tail"] == ["0.000", "1.000", "8", f"{2**-8:.3g}"]
    assert rows["middle", "middle"] == ["0.000", "1.000", "8", f"{2**-8:.3g}"]
    assert rows["tail", "middle"][-1] == "1"
    assert rows["all", "tail"][-1] == "1"
    assert len(shown) == 3 + 3


def test_tables_stand_for_what_there_is() -> None:
    scenario = CountingStars()
    assert scenario.tables({"none": []}) == []
    assert scenario.tables({"corrected by a person": [Marked("counting_stars-1", 1.0)]}) == []
    lost = scenario.tables({"few": marked({500: "1"}, stars=1)})[-1]
    assert [row[-1] for row in lost.rows] == ["too few stars", "too few stars"]
    lost = scenario.tables({"one": marked({500: "111000"})})[-1]
    assert [row[-1] for row in lost.rows] == ["only one text", "only one text"]
    both = scenario.tables({"few": marked({500: "11"}, stars=2), "more": marked({1000: "1111"}, stars=4)})
    by_position = next(table for table in both if table.title == "Stars by position")
    assert by_position.rows == [
        ["1", "1.000", "1.000"],
        ["2", "1.000", "1.000"],
        ["3", "", "1.000"],
        ["4", "", "1.000"],
        ["all", "1.000", "1.000"],
    ]


def test_every_parameter_is_described() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "reference" / "counting-stars.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE) == list(CountingStars.model_fields)


# ---- refused input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["variant=32"], "a variant is M-N"),
        (["variant=0-4"], "1 to 1024 stars"),
        (["variant=4-999"], "1 to 128 lengths"),
        (["variant=4-4-4"], "a variant is M-N"),
        (["max_context=4x"], "a size must be a whole number of tokens"),
        (["max_context=9m"], "must be at most 2000000"),
        (["language=fr"], "'en' or 'zh'"),
        (["variant=64-64", "max_context=8k"], r"has 125; 64 stars, .* need 1,\d\d\d: use --set max_context=\d+k"),
        (["max_context=3"], "the shortest context"),
    ],
)
def test_wrong_parameters_are_refused(settings: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        plan_run(RunSettings(suite=suite(*settings), span=8000, seed=0, agent="oracle"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_length_that_is_suggested_will_do() -> None:
    with pytest.raises(InputError) as refused:
        list(make_scenario("counting_stars", {"variant": "32-8", "max_context": "4k"}).series(1, "0"))
    suggested = re.search(r"max_context=(\d+k)", str(refused.value))
    assert suggested is not None
    assert len(list(make_scenario("counting_stars", {"variant": "32-8", "max_context": suggested[1]}).series(1, "0"))) == 8


def test_data_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("A short text.", "utf-8")
    for data, settings, message in (
        ("sky=none.txt", [], "No such file"),
        (f"sky={tmp_path / 'short.txt'}", [], "give a longer text or a smaller max_context"),
        (f"sky={tmp_path / 'short.txt'}", ["delivery=scatter"], "uses the conversation as its sky"),
        (f"stars={tmp_path / 'short.txt'}", [], "not a file of star lists"),
    ):
        with pytest.raises(InputError, match=message):
            plan_run(
                RunSettings(
                    suite=load_suite("counting-stars").apply_changes(settings, [data], [], None), span=8000, seed=0, agent="oracle"
                ),
                tmp_path / "runs",
            )
