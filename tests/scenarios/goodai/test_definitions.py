"""Published definitions, played: GoodAI's own if they are available, and a folder of definitions written for the tests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from longspan.scenarios.goodai.definitions import MAX_BYTES, read
from longspan.simulator.base.errors import InputError, ScenarioError
from longspan.simulator.cli import main
from longspan.simulator.contract.script import LAST, MAX_PAUSE, Script
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.gradebook.commitment import publish_scores, read_published, verify_scores
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import Plan, plan_run, replan_run
from longspan.simulator.running.runner import play_plans, replay_run, resume_run
from longspan.simulator.suite.definitions import Definition, Definitions, read_definitions
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from longspan.simulator.suite.trust import vouch_for

BENCHMARKS = {"1k": 1_000, "32k": 32_000, "32k (isolated)": 32_000, "120k": 120_000, "200k": 200_000, "500k": 500_000}
FUZZ = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
WAITS = {"percentage_finished": st.floats(0, 100), "tokens": st.integers(0, 5000), "time": st.integers(0, 10_000)}

# A folder of definitions written for the tests.

PAGES = [f"{number}. page:\n\nThe lighthouse keeper counted ship number {number} and wrote it down." for number in range(1, 5)]
OPTIONS = [f"Option {number}:\n\nThe next morning there were {number} ships in the bay." for number in range(1, 7)]
TOLD: dict[str, tuple[list[str], list[Any]]] = {
    "ChapterBreak": (["I shall read to you.", *PAGES, "Now six options.", *OPTIONS, "Which one? Give its number."], ["4"]),
    "Colours": (["Blue is my favourite colour.", "Green is my favourite colour.", "Which colour do I like best?"], ["Green"]),
    "Jokes": (
        ["A snail took a taxi, to be on time.", "My umbrella left me; it saw it coming.", "Soup walks into a bar."],
        ["Soup walks into a bar."],
    ),
    "Locations Directions": (
        [
            "Our town has a Mill at its centre.",
            "2 km north of the Mill lies the Fort.",
            "The Quay is 3 km east of the Fort.",
            "How do I get to the Quay?",
        ],
        ["From Mill, go 2km North to Fort.\nFrom Fort, go 3km East to Quay."],
    ),
    "NameList": (["Call me Odalys.", "Call me Fennick.", "Which names were mine? As a JSON list, please."], ["Odalys", "Fennick"]),
    "Prospective Memory": (
        [
            "'A quiet harbour never made a good sailor of anybody.' - Ines Dahl",
            "Append the quote by Ines Dahl to your 3rd response, this one being the first.",
        ],
        [["A quiet harbour never made a good sailor of anybody.", "Ines Dahl", 3]],
    ),
    "Restaurant": ([], []),
    "SallyAnne": (
        [
            "I tell you what is on.",
            "(On TV) Mia entered the barn.",
            "(On TV) Bo entered the barn.",
            "(On TV) The kite is in the sack.",
            "(On TV) Mia exited the barn.",
            "(On TV) Bo moved the kite to the tub.",
            "Where will Mia look for it? Answer as JSON.",
        ],
        ["sack"],
    ),
    "Shopping": (
        ["Put 2 Lamps on my list.", "And 3 Candles.", "Take 1 Lamp off.", "What is on it? As JSON."],
        [["lamp", 1], ["candle", 3]],
    ),
    "Spy Meeting": (
        [
            "Expect word from three.",
            "Come when the larks are up.",
            "Come to where the grain is ground.",
            "Bring what keeps one dry.",
            "When, where, what?",
        ],
        [["dawn", "morning"], ["mill"], ["umbrella", "coat"]],
    ),
    "Trigger Response": (
        ["Whenever I yawn then say: 'the coffee is in the kitchen'", "I just had to yawn.", "What a yawn that was.", "Yawning again."],
        ["the coffee is in the kitchen"] * 3,
    ),
}
"""For each dataset what a test says (Jokes without their question, which is made when it is asked), and what it expects."""
NEEDLES = {"ChapterBreak": 4, "Locations Directions": 2, "SallyAnne": 5, "Spy Meeting": 3}
"""How many lines are needles where not all are that tell something."""


def content(dataset: str) -> dict[str, Any]:
    script, expected = TOLD[dataset]
    lines = len(script) + (dataset == "Jokes")
    asking = lines - 3 if dataset == "Trigger Response" else lines - 1
    waits: list[dict[str, Any]] = [{"percentage_finished": 90 * (k + 1) / (lines - 1)} for k in range(lines - 1)]
    if dataset == "Jokes":
        waits = [wait | {"time": 3600} for wait in waits]
    if dataset == "ChapterBreak":
        waits = [{} for _ in waits]
    return {
        "script": script,
        "is_question": [k >= asking for k in range(lines)],
        "waits": [*waits, {}][:lines],
        "expected_responses": expected,
        "can_be_interleaved": True,
        "is_temporal": dataset == "Jokes",
        "uses_callback": dataset == "Prospective Memory",
    }


def define(folder: Path, dataset: str, id: str, **changed: Any) -> Path:
    path = folder / dataset / f"{id}.def.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content(dataset) | changed), "utf-8")
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with two tests of each dataset, and a span of 4,000 tokens."""
    folder = tmp_path / "written"
    for dataset in TOLD:
        for id in ("0", "b-1"):
            define(folder, dataset, id)
    (folder / "config.yml").write_text("datasets: {args: {memory_span: 4000}}\n")
    return folder


def planned(definitions: Definitions, out: Path, *, span: int | None = None, seed: int = 0, agent: str = "oracle", **more: Any) -> Plan:
    suite = more.pop("suite", load_suite("ltm").apply_changes([], [], [], definitions.max_tests))
    return plan_run(
        RunSettings(suite=suite, span=span or definitions.span or 0, seed=seed, agent=agent, definitions=definitions.folder, **more), out
    )


def run(each: Plan) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(lambda: play_plans([each], pages=Report))
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


def said(folder: RunFolder, conversation: str = "main") -> dict[str, list[str]]:
    """What each test said."""
    found: dict[str, list[str]] = {}
    for event in read_journal(folder.journal(conversation)):
        if isinstance(event, events.Message) and event.test is not None and event.kind != "farewell":
            found.setdefault(event.test, []).append(event.text)
    return found


def assert_as_defined(folder: RunFolder, definitions: Definitions) -> None:
    """Word for word what the definitions say was said, but for what they leave to be made."""
    messages = said(folder)
    for each in definitions.tests:
        (path,) = definitions.folder.glob(f"{DATASETS[each.scenario]}/{each.id}.def.json")
        script = json.loads(path.read_text("utf-8"))["script"]
        spoken = messages.pop(f"{each.scenario}-{each.id}")
        if each.scenario == "jokes":
            assert " ago" in spoken.pop()
        assert spoken == script or (each.scenario == "restaurant" and spoken and not script)
    assert messages == {}


DATASETS = {
    "chapterbreak": "ChapterBreak",
    "colours": "Colours",
    "jokes": "Jokes",
    "locations": "Locations Directions",
    "name_list": "NameList",
    "prospective_memory": "Prospective Memory",
    "restaurant": "Restaurant",
    "sally_anne": "SallyAnne",
    "shopping": "Shopping",
    "spy_meeting": "Spy Meeting",
    "trigger_response": "Trigger Response",
}


# The published definitions, played.


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_oracle_has_full_marks_on_all_that_is_published(benchmark: str, goodai: Path, tmp_path: Path) -> None:
    definitions = read_definitions(goodai / "definitions" / f"Benchmark 3 - {benchmark}")
    assert definitions.span == BENCHMARKS[benchmark]
    folder, result = run(planned(definitions, tmp_path))
    assert [(test.id, test.reason) for test in result.tests if test.score != 1] == []
    assert result.score == result.max_score == (10 if benchmark == "1k" else 11)
    assert len(result.tests) == len(definitions.tests) == 3 * result.max_score
    assert result.certified == result.at_distance == 1
    assert_as_defined(folder, definitions)


@pytest.mark.parametrize(("agent", "settings"), [("oracle", []), ("oracle", ["rules=paper"]), ("silent", [])])
def test_what_is_published_isolated(agent: str, settings: list[str], goodai: Path, tmp_path: Path) -> None:
    definitions = read_definitions(goodai / "definitions" / "Benchmark 3 - 32k (isolated)")
    suite = load_suite("ltm").apply_changes(settings, [], [], None)
    _, result = run(planned(definitions, tmp_path, suite=suite, agent=agent, isolated=True))
    assert result.score == (11 if agent == "oracle" else 0), [(test.id, test.reason) for test in result.tests if test.score != 1]


def test_what_does_not_fit_the_span_is_left_out_and_told(goodai: Path, tmp_path: Path) -> None:
    definitions = read_definitions(goodai / "definitions" / "Benchmark 3 - 32k")
    made = planned(definitions, tmp_path, span=2_000)
    assert len(made.manifest.left_out) == 3
    assert all(line.startswith("chapterbreak-") and "the span is 2,000" in line for line in made.manifest.left_out)
    assert len(made.tests["main"]) == 30


# That folder, played.


@pytest.mark.parametrize("span", [2_000, 4_000, 120_000])
def test_a_folder_is_played_word_for_word_and_can_be_solved(span: int, written: Path, tmp_path: Path) -> None:
    definitions = read_definitions(written)
    folder, result = run(planned(definitions, tmp_path, span=span))
    assert [(test.id, test.reason) for test in result.tests if test.score != 1] == []
    assert {test.id for test in result.tests} == {f"{scenario}-{id}" for scenario in DATASETS for id in ("0", "b-1")}
    assert result.certified == result.at_distance == 1
    assert_as_defined(folder, definitions)


def test_nothing_is_given_away(written: Path, tmp_path: Path) -> None:
    _, result = run(planned(read_definitions(written), tmp_path, agent="silent"))
    assert [(test.id, test.reason) for test in result.tests if test.score != 0] == []


def test_evidence_is_measured_from_what_carries_the_answer(written: Path, tmp_path: Path) -> None:
    _, result = run(planned(read_definitions(written), tmp_path))
    for test in result.tests:
        dataset = DATASETS[test.scenario]
        if dataset != "Restaurant":
            telling = content(dataset)["is_question"].count(False)
            one = dataset in ("Colours", "Jokes")
            questions = content(dataset)["is_question"].count(True)
            assert len(test.evidence) == questions * (1 if one else NEEDLES.get(dataset, telling)), test.id


def test_time_passes_before_the_line_that_waits_for_it(written: Path, tmp_path: Path) -> None:
    shutil.rmtree(written)
    define(written, "Colours", "0", waits=[{"time": 7200}, {"percentage_finished": 90, "time": 86_400}, {}])
    folder, _ = run(planned(read_definitions(written), tmp_path, span=2_000))
    sent = [event for event in read_journal(folder.journal("main")) if isinstance(event, events.Message) and event.test]
    first, second, question = (event.sent_at for event in sent)
    assert second - first >= timedelta(hours=2)
    assert question - second >= timedelta(days=1)


def test_another_seed_is_another_order_of_the_same_tests(written: Path, tmp_path: Path) -> None:
    definitions = read_definitions(written)
    one, other = (run(planned(definitions, tmp_path, seed=seed))[0] for seed in (1, 2))
    assert list(said(one)) != list(said(other))
    made = {id: lines for id, lines in said(one).items() if "restaurant" not in id and "jokes" not in id}
    assert made == {id: lines for id, lines in said(other).items() if id in made}


def test_the_suite_says_what_is_played_and_with_which_parameters(written: Path, tmp_path: Path) -> None:
    suite = Suite(name="few", tests=1, scenarios={"colours": {}, "restaurant": {"dishes": 8}})
    made = planned(read_definitions(written), tmp_path, suite=suite)
    tests = {test.id: test for test in made.tests["main"]}
    assert set(tests) == {"colours-0", "restaurant-0"}
    assert len(tests["restaurant-0"].script.facts["dishes"]) == 8
    (line,) = made.manifest.left_out
    assert "shopping" in line
    assert "suite few does not play them" in line


def test_what_the_suite_would_play_and_nobody_defined_is_told(written: Path, tmp_path: Path) -> None:
    shutil.rmtree(written / "Jokes")
    (line,) = planned(read_definitions(written), tmp_path).manifest.left_out
    assert line == "jokes cannot be played: the definitions have no test of it"


def test_definitions_are_placed_as_in_the_paper(written: Path, tmp_path: Path) -> None:
    assert planned(read_definitions(written), tmp_path).manifest.placement == "uniform"


def test_early_placement_is_refused(written: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--placement early"):
        planned(read_definitions(written), tmp_path, placement="early")


# Again.


def test_a_run_is_played_again_resumed_and_verified(written: Path, tmp_path: Path) -> None:
    folder, result = run(planned(read_definitions(written), tmp_path, agent="notebook"))
    assert str(written) in (folder.path / "report.html").read_text("utf-8")
    assert trio.run(replay_run, folder) == result
    publish_scores(folder, tmp_path / "published.json")
    assert all(check.holds for check in verify_scores(read_published(tmp_path / "published.json"), folder))
    journal = folder.journal("main")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    outcome = trio.run(resume_run, RunFolder(folder.path), "notebook")
    assert outcome.error is None
    assert outcome.result == result


def test_a_limit_on_the_tests_is_kept_when_a_run_is_planned_again(written: Path, tmp_path: Path) -> None:
    made = planned(read_definitions(written), tmp_path, suite=load_suite("ltm").apply_changes([], [], [], 1))
    assert {test.id for test in made.tests["main"]} == {f"{scenario}-0" for scenario in DATASETS}
    again = replan_run(made.manifest, "silent", tmp_path)
    assert again.tests == made.tests


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: define(folder, "Colours", "0", expected_responses=["Blue"]), "changed since the run was made"),
        (lambda folder: define(folder, "Colours", "2"), "changed since the run was made"),
        (lambda folder: (folder / "Colours" / "0.def.json").unlink(), "changed since the run was made"),
        (lambda folder: (folder / "Colours" / "0.def.json").rename(folder / "Colours" / "3.def.json"), "changed since the run"),
        (lambda folder: (folder / "Colours" / "0.def.json").write_text("{"), "0.def.json: not JSON"),
        (shutil.rmtree, "folder does not exist"),
    ],
)
def test_definitions_that_changed_are_refused(change: Callable[[Path], Any], message: str, written: Path, tmp_path: Path) -> None:
    folder, _ = run(planned(read_definitions(written), tmp_path, agent="silent"))
    change(written)
    for again in (lambda: trio.run(replay_run, folder), lambda: trio.run(resume_run, folder, "silent")):
        with pytest.raises(InputError, match=message) as raised:
            again()
        assert str(written) in str(raised.value)


def test_the_configuration_may_change_once_a_run_has_its_span(written: Path, tmp_path: Path) -> None:
    folder, result = run(planned(read_definitions(written), tmp_path, agent="silent"))
    (written / "config.yml").unlink()
    assert trio.run(replay_run, folder) == result


@pytest.mark.parametrize(
    ("place", "message"),
    [
        *((place, "folder does not exist") for place in ("\0", "nowhere", "a" * 5000)),
        ("\ud800", "definitions: must be valid Unicode"),
    ],
)
def test_a_manifest_may_name_any_folder(place: str, message: str, written: Path, tmp_path: Path) -> None:
    changed = planned(read_definitions(written), tmp_path).manifest.model_copy(update={"definitions": Path(place)})
    with pytest.raises(InputError, match="names a file or a model to use"):
        replan_run(changed, "silent", tmp_path)
    vouch_for(changed)
    with pytest.raises(InputError, match=message):
        replan_run(changed, "silent", tmp_path)


# The command line.


def longspan(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def manifests(out: Path) -> list[Manifest]:
    return [RunFolder(path).manifest for path in sorted(out.iterdir())]


def test_the_command_takes_the_span_of_the_folder_unless_it_is_given_one(written: Path, tmp_path: Path) -> None:
    command = ["run", "--definitions", str(written), "--scenario", "colours", "--agent", "oracle", "--json", "--out"]
    assert longspan(*command, str(tmp_path / "own")) == 0
    assert [made.span for made in manifests(tmp_path / "own")] == [4_000]
    assert longspan(*command, str(tmp_path / "given"), "--span", "2k", "--span", "3k", "--tests", "1") == 0
    assert [made.span for made in manifests(tmp_path / "given")] == [2_000, 3_000]
    assert [len(made.conversations["main"]) for made in manifests(tmp_path / "given")] == [1, 1]
    (path,) = (tmp_path / "own").iterdir()
    assert path.name == "ltm-4k-definitions-oracle-seed0"


def test_all_that_is_defined_is_played_unless_a_number_is_given(written: Path, tmp_path: Path) -> None:
    for number in range(2, 6):
        define(written, "Colours", str(number))
    command = ["run", "--definitions", str(written), "--scenario", "colours", "--agent", "silent", "--json"]
    assert longspan(*command, "--out", str(tmp_path / "runs")) == 0
    assert len(manifests(tmp_path / "runs")[0].conversations["main"]) == 6


@pytest.mark.parametrize("where", [".", "written/Colours", "written/Colours/0.def.json", "nowhere"])
def test_a_folder_of_something_else_is_refused(where: str, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert longspan("run", "--definitions", str(tmp_path / where)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "goodai" in told or "folder does not exist" in told


def test_without_any_span_one_is_asked_for(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (written / "config.yml").unlink()
    assert longspan("run", "--definitions", str(written)) == 2
    assert "no span given; set one with --span" in capsys.readouterr().err


# Waits.


def colours(folder: Path, *waits: dict[str, Any]) -> Definition:
    """A test of colours with these waits after its lines."""
    texts = [f"{colour} is my favourite colour." for colour in ("Red", "Blue", "Green", "White", "Black")][: len(waits) - 1]
    asks = [*(False for _ in texts), True]
    define(folder, "Colours", "0", script=[*texts, "Which is it?"], is_question=asks, waits=list(waits), expected_responses=["Red"])
    definitions = read(folder)
    assert definitions is not None
    return definitions.tests[0]


def script_of(definition: Definition, span: int) -> Script:
    assert definition.write is not None
    return definition.write(Random(0), span)


def test_waits_become_places_in_the_span(tmp_path: Path) -> None:
    test = colours(tmp_path, {"percentage_finished": 30}, {"tokens": 1000, "time": 60}, {}, {"time": 90.5}, {"percentage_finished": 95}, {})
    lines = script_of(test, 10_000).lines
    assert [line.at for line in lines] == [0, 0.3, pytest.approx(0.4), None, pytest.approx(0.4), LAST]
    assert [line.together for line in lines] == [False, False, False, True, False, False]
    assert [line.pause.total_seconds() for line in lines] == [0, 0, 60, 0, 90.5, 0]


def test_waits_for_tokens_that_outlast_the_span_leave_the_test_out(tmp_path: Path) -> None:
    colours(tmp_path / "long", {"tokens": 1500}, {"tokens": 1500}, {})
    definitions = read_definitions(tmp_path / "long")
    with pytest.raises(InputError, match="colours-0 is left out: its waits take longer than the span of 2,000 tokens"):
        planned(definitions, tmp_path, span=2_000, suite=load_suite("ltm").apply_changes([], [], ["colours"], 1))
    assert planned(definitions, tmp_path, span=4_000).tests["main"]


@FUZZ
@given(waits=st.lists(st.fixed_dictionaries({}, optional=WAITS), min_size=2, max_size=6), span=st.integers(1000, 500_000))
def test_whatever_the_waits_the_shares_rise_and_leave_room_for_the_question(
    waits: list[dict[str, Any]], span: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    test = colours(tmp_path_factory.mktemp("waits"), *waits)
    try:
        lines = script_of(test, span).lines
    except ScenarioError:
        assert sum(wait.get("tokens", 0) for wait in waits[:-1]) > 0  # shares of the span alone always fit
        return
    shares = [line.at for line in lines if line.at is not None]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] <= LAST
    for line, wait in zip(lines[1:], waits, strict=False):
        assert line.together == (wait == {})
        assert line.at is None or line.at >= min(LAST, wait.get("percentage_finished", 0) / 100)
        assert line.pause == timedelta(seconds=wait.get("time", 0))


# Faults in a folder.

THREE = content("Colours")["script"]


@pytest.mark.parametrize(
    ("dataset", "changed", "message"),
    [
        ("Colours", {"script": None}, "script: must be a list"),
        ("Colours", {"script": ["one", 2, "three"]}, r"script.1: must be text"),
        ("Colours", {"script": ["one", " ", "three"]}, "script.1"),
        ("Colours", {"script": ["one", "tw\ud800o", "three"]}, "Colours/0.def.json"),
        ("Colours", {"script": THREE[:2]}, r"script \(2\), is_question \(3\) and waits \(3\)"),
        ("Colours", {"script": []}, r"script \(0\)"),
        ("Colours", {"script": [], "is_question": [], "waits": []}, "must be empty for Restaurant and no other dataset"),
        ("Colours", {"is_question": [False, False]}, r"is_question \(2\)"),
        ("Colours", {"is_question": [0, 0, 1]}, "is_question.0: must be true or false"),
        ("Colours", {"is_question": [True, False, True]}, "the first line must not be a question"),
        ("Colours", {"is_question": [False, True, True]}, "expected 1 questions, got 2"),
        ("Colours", {"is_question": [False, True, False]}, "the last line must be one"),
        ("Colours", {"waits": [{}, {}]}, r"waits \(2\)"),
        ("Colours", {"waits": [{}, {"tokens": -1}, {}]}, "waits.1.tokens: must be at least 0"),
        ("Colours", {"waits": [{}, {"tokens": 10**400}, {}]}, "waits.1.tokens"),
        ("Colours", {"waits": [{}, {"tokens": 1.5}, {}]}, "waits.1.tokens: must be a whole number"),
        ("Colours", {"waits": [{"percentage_finished": 101}, {}, {}]}, "waits.0.percentage_finished"),
        ("Colours", {"waits": [{"percentage_finished": float("nan")}, {}, {}]}, "waits.0.percentage_finished"),
        ("Colours", {"waits": [{"percentage_finished": True}, {}, {}]}, "waits.0.percentage_finished"),
        ("Colours", {"waits": [{"time": -1}, {}, {}]}, "waits.0.time"),
        ("Colours", {"waits": [{"time": MAX_PAUSE.total_seconds() + 1}, {}, {}]}, "waits.0.time"),
        ("Colours", {"waits": [{"moon": "full"}, {}, {}]}, "waits.0.moon: unknown key"),
        ("Colours", {"waits": [{"a\nb" * 1000: 1}, {}, {}]}, "waits.0.a ba b.* unknown key"),
        ("Colours", {"expected_responses": []}, "expected responses are not as published"),
        ("Colours", {"expected_responses": "Green"}, "expected_responses: must be a list"),
        ("Colours", {"can_be_interleaved": False}, "can_be_interleaved: must be True"),
        ("Colours", {"uses_callback": True}, "uses_callback: must be true for Prospective Memory and no other dataset"),
        ("Jokes", {"is_temporal": False, "script": [*TOLD["Jokes"][0], "Which joke?"]}, "is_temporal: must be true for Jokes"),
        ("Jokes", {"script": [*TOLD["Jokes"][0], "Which joke?"]}, "a temporal question has none in script"),
        ("Jokes", {"expected_responses": ["Knock, knock."]}, "does not tell the expected joke"),
        ("Prospective Memory", {"expected_responses": [["A quotation.", "Somebody", "third"]]}, "expected responses are not as published"),
        ("Restaurant", content("Colours"), "must be empty for Restaurant and no other dataset"),
        ("Trigger Response", {"expected_responses": ["coffee"]}, "expected 1 questions, got 3"),
        ("Spy Meeting", {"expected_responses": [["dawn"], "mill"]}, "expected responses are not as published"),
    ],
)
def test_what_is_wrong_in_a_definition_is_told_with_its_file(dataset: str, changed: dict[str, Any], message: str, written: Path) -> None:
    path = define(written, dataset, "0", **changed)
    with pytest.raises(InputError, match=message) as raised:
        read(written)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def missing(field: str) -> bytes:
    return json.dumps({name: value for name, value in content("Colours").items() if name != field}).encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b"[]", "not a definition"),
        (b'{"script": ["a"]}', "is_question: is missing"),
        (missing("script"), "script: is missing"),
        (missing("waits"), "waits: is missing"),
        (missing("expected_responses"), "expected_responses: is missing"),
        (missing("is_temporal"), "is_temporal: is missing"),
        (b" " * (MAX_BYTES + 1), "larger than"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_no_definition_is_told_with_its_file(text: bytes, message: str, written: Path) -> None:
    path = written / "Colours" / "0.def.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message) as raised:
        read(written)
    assert str(raised.value).startswith(f"{path}: ")


def test_an_unknown_dataset_is_told(written: Path) -> None:
    (written / "Colours").rename(written / "Colors\nof")
    with pytest.raises(InputError, match=r"unknown dataset 'Colors\\nof'; known are ChapterBreak, Colours"):
        read(written)


@pytest.mark.parametrize("id", ["A", "a b", "", "x" * 51, "-a", "é", "a\nb"])
def test_names_that_no_test_can_have_are_told(id: str, written: Path) -> None:
    define(written, "Colours", id)
    with pytest.raises(InputError, match="a test's name must be at most 50 lower case letters") as raised:
        read(written)
    assert "\n" not in str(raised.value)


def link_file(folder: Path, outside: Path) -> None:
    (folder / "Colours" / "0.def.json").unlink()
    (folder / "Colours" / "0.def.json").symlink_to(define(outside, "Colours", "0"))


def link_dataset(folder: Path, outside: Path) -> None:
    define(outside, "Colours", "0")
    shutil.rmtree(folder / "Colours")
    (folder / "Colours").symlink_to(outside / "Colours")


def link_configuration(folder: Path, outside: Path) -> None:
    (folder / "config.yml").unlink()
    (folder / "config.yml").symlink_to(outside)


def pipe(folder: Path, outside: Path) -> None:
    (folder / "Colours" / "0.def.json").unlink()
    os.mkfifo(folder / "Colours" / "0.def.json")


@pytest.mark.parametrize("place", [link_file, link_dataset, link_configuration, pipe])
def test_links_and_pipes_are_not_read(place: Callable[[Path, Path], None], written: Path, tmp_path: Path) -> None:
    place(written, tmp_path / "outside")
    with pytest.raises(InputError, match=r"a (link|pipe)"):
        read(written)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets: {args: {memory_span: 0}}", "must be a number of tokens, got 0"),
        ("datasets: {args: {memory_span: true}}", "must be a number of tokens, got True"),
        ("datasets: {args: {memory_span: 32k}}", "must be a number of tokens, got '32k'"),
        ("datasets: {args: {memory_span: 99999999999999999999}}", "must be a number of tokens"),
        ("datasets: [", "not YAML"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
        ("[" * 5000, "not YAML"),
        ("a: &a [*a]\ndatasets: 2001-99-99", "not YAML"),
    ],
)
def test_what_is_wrong_in_the_configuration_is_told(text: str, message: str, written: Path) -> None:
    (written / "config.yml").write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        read(written)
    assert str(raised.value).startswith(f"{written / 'config.yml'}: ")


@pytest.mark.parametrize("text", ["", "[]", "datasets: 3", "datasets: {args: []}", "datasets: {args: {memory_span: null}}"])
def test_a_configuration_need_not_give_a_span(text: str, written: Path) -> None:
    (written / "config.yml").write_text(text)
    definitions = read(written)
    assert definitions is not None
    assert definitions.span is None


@st.composite
def damaged(draw: st.DrawFn, dataset: str) -> Any:
    """A definition with some of it replaced by whatever JSON can hold."""
    value: Any = deepcopy(content(dataset))
    for _ in range(draw(st.integers(1, 3))):
        places = list(parts(value))
        holder, key = draw(st.sampled_from(places))
        holder[key] = deepcopy(draw(JSON | st.sampled_from([holder[each] for holder, each in places])))
    return value


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places in a JSON value that another can be put in."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()):
        yield value, key
        yield from parts(inner)


@FUZZ
@given(data=st.data(), dataset=st.sampled_from(sorted(TOLD)))
def test_any_damage_is_an_error_in_one_line_or_a_test_that_can_be_played(
    data: st.DataObject, dataset: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    define(folder, dataset, "0").write_text(json.dumps(data.draw(damaged(dataset))))
    try:
        made = planned(read_definitions(folder), folder / "runs", span=2_000, isolated=data.draw(st.booleans()))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert {test.status for test in run(made)[1].tests} == {"scored"}


@FUZZ
@given(text=st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
@example(text=b"2001-99-99")
@example(text=b"? {}")
def test_any_file_is_an_error_in_one_line_or_none(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    for path in (define(folder, "Colours", "0"), folder / "config.yml"):
        before = path.read_bytes() if path.exists() else b"{}"
        path.write_bytes(text)
        try:
            assert read(folder) is not None
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
        path.write_bytes(before)
