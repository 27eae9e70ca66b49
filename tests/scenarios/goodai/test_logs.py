"""GoodAI's master logs imported as runs: the conversation is kept and graded, and an invalid file is refused with its line."""

from __future__ import annotations

import copy
import gzip
import json
import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schemas import check_output

from longspan.scenarios.goodai import files, logs, master_log
from longspan.scenarios.goodai.facts import SCENARIOS
from longspan.scenarios.goodai.files import read_records
from longspan.scenarios.goodai.master_log import Type
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import write_json
from longspan.simulator.cli import main
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.gradebook import commitment
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.result import read_result
from longspan.simulator.running import runner
from longspan.simulator.running.imports import ImportOptions, import_run
from longspan.simulator.running.scoring import score_run
from longspan.simulator.suite.definitions import Definitions, read_definitions

KIND = "goodai-log"
NOON = 1_715_000_400.0
"""6 May 2024, 13:00 in Greenwich."""


class Writer:
    """Writes a log as theirs are: each turn takes two seconds, and the next follows at once."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.now = NOON

    def add(self, type: int, test: str = "", **data: Any) -> None:
        self.entries.append({"type": type, "timestamp": self.now, "test_id": test, "data": data})

    def turn(self, test: str, message: str, reply: str, *, asks: bool = False, seconds: float = 2.0) -> None:
        filler = not test
        self.add(Type.FILLER if filler else Type.SENT, test, message=message, is_question=asks)
        self.now += seconds
        self.add(Type.FILLER_REPLY if filler else Type.REPLY, test, message=reply, is_question=asks)


COLOURS, MEMORY, JOKES = "Colours - 0", "Prospective Memory - 0", "Jokes - 0"
TELLING, INSTRUCTION = '"Row quietly." - Ada Reed', "Append the saying of Ada Reed to your 2nd response."
SAYING = "Row quietly."


def log() -> list[dict[str, Any]]:
    """Three tests, one inside the other: a colour, a saying to append to the 2nd reply, and a joke an hour ago."""
    writer = Writer()
    writer.turn("", "You are about to be tested.", "Understood.")
    writer.add(Type.RESET)
    writer.add(Type.BEGINS, COLOURS, tokens=20)
    writer.turn(COLOURS, "My favourite colour is Teal.", "Noted.")
    writer.add(Type.WAIT, COLOURS, tokens=100, time=0)
    writer.add(Type.BEGINS, JOKES, tokens=40)
    writer.turn(JOKES, "A snail walks into a bar. It is still walking.", "Ha.")
    writer.add(Type.WAIT, JOKES, tokens=0, time=3600)
    writer.add(Type.BEGINS, MEMORY, tokens=60)
    writer.turn(MEMORY, TELLING, "Nice.")
    writer.add(Type.WAIT, MEMORY, tokens=900, time=0)
    writer.turn("", "Here are some questions and answers ...", '["Paris"]', seconds=0)
    writer.turn(MEMORY, INSTRUCTION, "I will.", asks=True)
    writer.add(Type.CALLBACK_ON, MEMORY)
    writer.turn(COLOURS, "My favourite colour is Plum.", f"Noted. {SAYING}")
    writer.add(Type.CALLBACK_OFF, MEMORY)
    writer.turn(COLOURS, "What is my favourite colour?", "Plum.", asks=True)
    writer.add(Type.ENDS, COLOURS)
    writer.turn(MEMORY, "Forget my instruction.", "Done.")
    writer.add(Type.ENDS, MEMORY)
    writer.now = NOON + 3611
    writer.turn(JOKES, "Which joke did I tell you about an hour ago?", "The one with the snail that is still walking.", asks=True)
    writer.add(Type.CALL, JOKES, response="yes")
    writer.add(Type.ENDS, JOKES)
    return writer.entries


def written(path: Path, entries: list[Any]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "Wrapper - parrot-1 - 8000"
    folder.mkdir(parents=True)
    return written(folder / "master_log.jsonl", log())


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    return define_all(tmp_path / "defined")


def define_all(folder: Path) -> Path:
    """The definitions that the log was played from, at a span of 500."""
    no: dict[str, Any] = {}
    colours = ["My favourite colour is Teal.", "My favourite colour is Plum.", "What is my favourite colour?"]
    define(folder, COLOURS, colours, [0, 0, 1], ["Plum"])
    define(folder, MEMORY, [TELLING, INSTRUCTION], [0, 1], [[SAYING, "Ada Reed", 2]], uses_callback=True)
    snail = "A snail walks into a bar. It is still walking."
    define(folder, JOKES, [snail], [0, 1], [snail], waits=[{"time": 3600.0}, no], is_temporal=True)
    (folder / "config.yml").write_text("datasets:\n  args:\n    memory_span: 500\n", "utf-8")
    return folder


def define(folder: Path, test: str, script: list[str], asks: list[int], expected: list[Any], **more: Any) -> None:
    dataset, _, example = test.partition(" - ")
    content = {
        "script": script,
        "is_question": [bool(each) for each in asks],
        "waits": [{}] * len(asks),
        "expected_responses": expected,
        "can_be_interleaved": True,
        "is_temporal": False,
        "uses_callback": False,
    } | more
    (folder / dataset).mkdir(parents=True, exist_ok=True)
    (folder / dataset / f"{example}.def.json").write_text(json.dumps(content), "utf-8")


def imported(file: Path, definitions: Path | None = None, *, span: int | None = 500, rules: Any = "longspan") -> RunFolder:
    """A run made of the log, in a new folder next to it."""
    out = file.parent / f"run{len(list(file.parent.iterdir()))}"
    import_run(KIND, file, out, ImportOptions(definitions=read_definitions(definitions) if definitions else None, span=span, rules=rules))
    return RunFolder(out)


def journal(run: RunFolder) -> list[events.Event]:
    return list(read_journal(run.journal("main")))


def messages(run: RunFolder) -> list[events.Message]:
    return [event for event in journal(run) if isinstance(event, events.Message)]


def entry(entries: list[dict[str, Any]], message: str) -> dict[str, Any]:
    """The entry of a message or a reply."""
    return next(each for each in entries if each["data"].get("message") == message)


def in_log(entries: list[dict[str, Any]], *types: Type) -> Iterator[dict[str, Any]]:
    return (each for each in entries if each["type"] in types)


# ---- the conversation


def test_the_journal_is_the_conversation_as_it_was(file: Path, definitions: Path) -> None:
    run = imported(file, definitions)
    assert [(event.kind, event.test, event.needle, event.needs) for event in messages(run)] == [
        ("opening", None, False, None),
        ("line", "colours-0", True, None),
        ("line", "jokes-0", True, None),
        ("line", "prospective_memory-0", True, None),
        ("filler", None, False, None),
        ("question", "prospective_memory-0", False, [3]),
        ("line", "colours-0", True, None),
        ("question", "colours-0", False, [6]),  # the colour before was another
        ("farewell", "prospective_memory-0", False, None),
        ("question", "jokes-0", False, [2]),
    ]
    assert [event.text for event in messages(run)] == [each["data"]["message"] for each in in_log(log(), Type.SENT, Type.FILLER)]
    replies = [event for event in journal(run) if isinstance(event, events.Reply)]
    assert [event.text for event in replies] == [each["data"]["message"] for each in in_log(log(), Type.REPLY, Type.FILLER_REPLY)]
    assert [event.turn for event in replies if not event.asked] == [4]
    assert replies[0].measured == {"latency_s": 2.0}
    assert isinstance(journal(run)[-1], events.Close)


def test_virtual_time_is_the_logs(file: Path) -> None:
    run = imported(file)
    times = [event.sent_at for event in messages(run)]
    assert times[:3] == [datetime(2024, 5, 6, 13, 0, second) for second in (0, 2, 4)]
    assert times[-1] == datetime(2024, 5, 6, 14, 0, 11)
    assert [event for event in journal(run) if isinstance(event, events.Jump)] == [events.Jump(test="jokes-0", to=times[-1])]
    assert run.manifest.starts_at == times[0]


def test_a_leap_that_ends_no_wait_is_no_jump(file: Path) -> None:
    entries = log()
    for each in entries[-4:]:
        each["timestamp"] += 3600  # an hour after the wait was over
    run = imported(written(file, entries))
    assert not [event for event in journal(run) if isinstance(event, events.Jump)]
    assert messages(run)[-1].sent_at == datetime(2024, 5, 6, 15, 0, 11)


def test_time_that_goes_back_stands_still_and_is_told(file: Path) -> None:
    entries = log()
    entry(entries, TELLING)["timestamp"] -= 5
    run = imported(written(file, entries))
    times = [event.sent_at for event in messages(run)]
    assert times == sorted(times)
    assert [entry["error"] for entry in run.incidents()] == ["the log's time goes back by up to 5 s; virtual time stands still there"]


def test_a_watching_test_watches_until_it_speaks_again(file: Path) -> None:
    ends = {event.test: event for event in journal(imported(file)) if isinstance(event, events.End)}
    assert ends["prospective_memory-0"].watched == [6, 7]
    assert ends["colours-0"].watched == []


# ---- grades, and what can be done with the run


def test_definitions_bring_what_was_expected(file: Path, definitions: Path) -> None:
    run = imported(file, definitions, span=None)
    result = grade_run(run)
    assert {test.id: test.score for test in result.tests} == {"colours-0": 1.0, "jokes-0": 1.0, "prospective_memory-0": 1.0}
    assert (result.span, result.agent, result.score) == (500, "Wrapper - parrot-1 - 8000", 3.0)
    assert run.manifest.definitions == definitions.resolve()
    colours = next(test for test in result.tests if test.id == "colours-0")
    assert [(each.needle_turn, each.question_turn) for each in colours.evidence] == [(6, 7)]


def test_without_definitions_tests_are_unscored_and_say_what_would_help(file: Path) -> None:
    run = imported(file)
    result = grade_run(run)
    assert {(test.status, test.score) for test in result.tests} == {("unscored", None)}
    assert all("--definitions" in test.reason for test in result.tests)
    assert result.score is None
    run.correct(Correction(test="colours-0", score=1, why="It says Plum.", by="Ada"))
    assert score_run(run).score_bounds == (1.0, 3.0)


def test_definitions_that_lack_tests_leave_these_unscored_and_the_other_way_round_is_told(file: Path, definitions: Path) -> None:
    (definitions / "Jokes" / "0.def.json").unlink()
    define(definitions, "NameList - 7", ["I am Ada.", "Which names?"], [0, 1], ["Ada"])
    run = imported(file, definitions)
    assert {test.id for test in grade_run(run).tests if test.status == "unscored"} == {"jokes-0"}
    assert run.manifest.left_out == ["name_list-7 is left out: it is not in the log"]


def test_other_definitions_than_the_logs_are_refused(file: Path, definitions: Path) -> None:
    define(definitions, COLOURS, ["My favourite colour is Teal.", "It is Lime.", "What is my favourite colour?"], [0, 0, 1], ["Lime"])
    with pytest.raises(InputError, match=r"line 21: Colours - 0 says 'My favourite colour is Plum.' but is defined to say 'It is Lime.'"):
        imported(file, definitions)


def test_a_span_has_to_come_from_somewhere(file: Path) -> None:
    with pytest.raises(InputError, match="a log has no span; give --definitions DIR"):
        imported(file, span=None)


def test_who_played_is_unknown_where_no_folder_tells(file: Path, tmp_path: Path) -> None:
    elsewhere = file.rename(tmp_path / "logs" / "master_log.jsonl")
    assert imported(elsewhere).manifest.agent == "unknown"
    import_run(KIND, elsewhere, tmp_path / "named", ImportOptions(span=500, agent="Polly"))
    assert RunFolder(tmp_path / "named").manifest.agent == "Polly"


def test_rules_of_the_paper_are_used_where_they_are_asked_for(file: Path, definitions: Path) -> None:
    entries = log()
    entry(entries, "Plum.")["data"]["message"] = "Teal or Plum."
    written(file, entries)
    for rules, expected in {"longspan": 0.0, "paper": 1.0}.items():
        result = grade_run(imported(file, definitions, rules=rules))
        assert next(test.score for test in result.tests if test.id == "colours-0") == expected


def test_it_is_replayed_without_a_conductor_and_nothing_is_written(file: Path, definitions: Path) -> None:
    run = imported(file, definitions)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert trio.run(runner.replay_run, run) == read_result(run)
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["resume", "RUN"], "longspan run ltm --definitions DIR --agent SPEC"),
        (["resume", "RUN", "--agent", "oracle"], "longspan run ltm --definitions DIR --agent SPEC"),
        (["replay", "RUN", "--agent", "silent"], "longspan run ltm --definitions DIR --agent SPEC"),
        (["publish", "RUN"], "an imported run has no commitment"),
    ],
)
def test_what_nobody_can_do_with_it_is_refused_in_a_line(
    arguments: list[str], said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = imported(file)
    with pytest.raises(SystemExit) as leaving:
        main([str(run.path) if each == "RUN" else each for each in arguments])
    error = capsys.readouterr().err
    assert leaving.value.code == 2
    assert said in error
    assert error.count("\n") == 1


def test_it_is_no_proof_of_published_scores(file: Path, tmp_path: Path) -> None:
    run = imported(file)
    result = grade_run(run)
    published = commitment.Published(
        commitment=run.manifest.commitment,
        placement="uniform",
        isolated=False,
        tokenizer="cl100k_base",
        versions={},
        tests=[],
        **{name: getattr(result, name) for name in ("suite", "span", "agent", "score", "score_bounds", "max_score", "scenarios")},
    )
    write_json(tmp_path / "published.json", published)
    with pytest.raises(InputError, match="an imported run has no commitment"):
        list(commitment.verify_scores(commitment.read_published(tmp_path / "published.json"), run))


def test_the_command_prints_results_and_where_they_are(
    file: Path, definitions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "run"
    with pytest.raises(SystemExit) as leaving:
        main(["import", KIND, str(file), "--out", str(out), "--definitions", str(definitions), "--json"])
    assert leaving.value.code == 0
    (found,) = check_output("import", capsys.readouterr().out)
    assert (found["folder"], found["score"]) == (str(out), 3.0)
    assert {path.name for path in out.iterdir()} >= {"manifest.json", "result.json", "report.html", "grades.jsonl", "conversations"}
    assert [path.name for path in out.parent.iterdir()] == ["run"]


MENU = """Waiter: Welcome. Here is the menu:

Appetizers:
1. Onion Soup
2. Green Salad

Main Courses:
3. Grilled Salmon
4. Mushroom Risotto

What would you like to drink?"""


def test_a_visit_to_the_restaurant_is_graded_by_its_transcript(file: Path) -> None:
    writer, test = Writer(), "Restaurant - 0"
    writer.add(Type.BEGINS, test, tokens=0)
    writer.turn(test, "When I talk to you as the waiter, then you will reply as if you were the customer.", "OK.")
    writer.turn(test, MENU, "A lemonade, please.", asks=True)
    writer.add(Type.CALL, test, response="{}")
    writer.turn(test, "Waiter: Here is your lemonade. What would you like to eat?", "Nothing, I have to go.", asks=True)
    writer.turn(test, "Let's not pretend to be at a restaurant anymore.", "OK.")
    writer.add(Type.ENDS, test)
    run = imported(written(file, writer.entries))
    awards = [event for event in journal(run) if isinstance(event, events.Award)]
    assert [(award.turn, award.points) for award in awards] == [(1, 0.2), (2, 0.0)]
    (visit,) = grade_run(run).tests
    assert (visit.status, visit.score, visit.exempt) == ("scored", 0.2, "stopped")
    assert [event.kind for event in messages(run)] == ["line", "question", "question", "farewell"]


# ---- logs that are damaged


@given(st.data())
@settings(max_examples=60)
def test_a_log_that_ends_anywhere_is_imported_as_far_as_it_goes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    entries = log()
    entries = entries[: data.draw(st.integers(4, len(entries)))]
    file = written(tmp_path_factory.mktemp("cut") / "log.jsonl", entries)
    run = imported(file)
    ended = {SCENARIOS[each["test_id"].partition(" - ")[0]] for each in in_log(entries, Type.ENDS)}
    result = grade_run(run)
    assert {test.scenario for test in result.tests if test.status == "unscored"} == ended
    assert {test.status for test in result.tests} <= {"unscored", "unfinished"}
    assert [event.text for event in messages(run)] == [each["data"]["message"] for each in in_log(entries, Type.SENT, Type.FILLER)]
    whole = isinstance(journal(run)[-1], events.Close)
    assert whole == (len(ended) == len(result.tests) and entries[-1]["type"] not in (Type.SENT, Type.FILLER))
    assert trio.run(runner.replay_run, run) == result


NO_EVENT = "not an event of a master log"


def first(old: str, new: str) -> Callable[[list[str]], list[str]]:
    """A change of a log's first line."""
    return lambda lines: [lines[0].replace(old, new), *lines[1:]]


def everywhere(old: str, new: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [line.replace(old, new) for line in lines]


WRONG: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "a torn line": (lambda lines: [*lines, '{"type": 0, "timest'], "line 34: not JSON"),
    "no object": (lambda lines: ["[]", *lines], f"line 1: {NO_EVENT}"),
    "no type": (lambda lines: ["{}", *lines], f"line 1: {NO_EVENT}: type: is missing"),
    "another type": (first('"type": 3', '"type": 11'), f"line 1: {NO_EVENT}: type"),
    "a message that is none": (first('"You are about to be tested."', "7"), f"line 1: {NO_EVENT}: data: message"),
    "no time": (first(str(NOON), "NaN"), f"line 1: {NO_EVENT}: timestamp"),
    "the far future": (first(str(NOON), "1e300"), f"line 1: {NO_EVENT}: timestamp"),
    "a reply to nothing": (lambda lines: lines[1:], "line 1: a reply without a message before it"),
    "no reply": (lambda lines: [lines[0], *lines[2:]], "line 3: expected the reply to the message in line 1"),
    "another's reply": (
        lambda lines: [*lines[:5], lines[5].replace(COLOURS, JOKES), *lines[6:]],
        "line 6: expected the reply to the message in line 5",
    ),
    "an unknown test": (lambda lines: [*lines[:3], *lines[4:]], "line 4: 'Colours - 0' has not begun"),
    "a test that has ended": (lambda lines: [*lines, lines[4]], "line 34: 'Colours - 0' has ended"),
    "a test twice": (lambda lines: [*lines, lines[3]], "line 34: 'Colours - 0' begins again"),
    "an unknown dataset": (everywhere("Colours - 0", "Colors - 0"), "line 4: unknown dataset 'Colors'"),
    "an odd name": (everywhere("Colours - 0", "Colours - ../x"), "line 4: an example's name must be lower case"),
    "nothing": (lambda lines: [], "no test begins in it"),
    "no test": (lambda lines: lines[:2], "no test begins in it"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_log_is_told_with_its_line_and_leaves_nothing_behind(wrong: str, file: Path, tmp_path: Path) -> None:
    change, said = WRONG[wrong]
    file.write_text("\n".join(change(file.read_text("utf-8").splitlines())), "utf-8")
    with pytest.raises(InputError) as error:
        import_run(KIND, file, tmp_path / "out" / "run", ImportOptions(span=500))
    assert said in str(error.value)
    assert str(file) in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_taken_stays_as_it_is(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="taken: already exists; name another folder with --out"):
        import_run(KIND, file, tmp_path / "taken", ImportOptions(span=500))
    assert list((tmp_path / "taken").iterdir()) == []


def test_an_unknown_kind_of_file_is_told_with_those_that_are_known(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no kind of file to import 'tape'; there are goodai-log"):
        import_run("tape", file, tmp_path / "run", ImportOptions(span=500))


def test_a_log_that_unpacks_to_too_much_is_refused(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "master_log.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert len(journal(imported(packed))) > 20
    monkeypatch.setattr(files, "MAX_BYTES", 2000)
    with pytest.raises(InputError, match=r"larger than 2,000 bytes"):
        imported(packed)
    monkeypatch.undo()
    monkeypatch.setattr(master_log, "MAX_EVENTS", 10)
    with pytest.raises(InputError, match="more than 10 events"):
        imported(packed)


def test_text_that_is_no_unicode_is_marked(file: Path) -> None:
    entries = log()
    entry(entries, "Noted.")["data"]["message"] = "Noted \ud800."
    run = imported(written(file, entries))
    assert [event.text for event in journal(run) if isinstance(event, events.Reply)][1] == "Noted ?."


ATOM = st.none() | st.booleans() | st.integers(-2, 20) | st.floats() | st.text(max_size=9)
VALUE = st.recursive(ATOM, lambda each: st.lists(each, max_size=3), max_leaves=4)


@pytest.fixture(scope="module")
def defined(tmp_path_factory: pytest.TempPathFactory) -> Definitions:
    return read_definitions(define_all(tmp_path_factory.mktemp("defined")))


@given(st.data())
@settings(max_examples=150)
def test_whatever_stands_in_a_log_is_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, defined: Definitions, data: st.DataObject
) -> None:
    entries: list[Any] = copy.deepcopy(log())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(entries) - 1))
        change = data.draw(st.sampled_from(["drop", "twice", "swap", "field", "data", "junk"]))
        one = entries[at]
        if change == "drop":
            del entries[at]
        elif change == "twice":
            entries.insert(data.draw(st.integers(0, len(entries))), copy.deepcopy(one))
        elif change == "swap":
            entries[at - 1], entries[at] = entries[at], entries[at - 1]
        elif change == "field" and isinstance(one, dict):
            key = data.draw(st.sampled_from(sorted(one)))
            one[key] = data.draw(VALUE | st.sampled_from([COLOURS, MEMORY, "Restaurant - 0"]))
        elif change == "data" and isinstance(one, dict) and isinstance(one.get("data"), dict):
            one["data"][data.draw(st.sampled_from(["message", "is_question", "time"]))] = data.draw(VALUE)
        else:
            entries[at] = data.draw(VALUE)
    file = written(tmp_path_factory.getbasetemp() / "odd.jsonl", entries)
    try:
        found = logs.read(file, ImportOptions(span=500, definitions=data.draw(st.sampled_from([None, defined]))))
    except InputError:
        return
    said = [each.text for each in found.events if isinstance(each, events.Message)]
    assert said == [each["data"]["message"].encode("utf-8", "replace").decode() for each in in_log(entries, Type.SENT, Type.FILLER)]


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "bytes.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError):
        logs.read(file, ImportOptions(span=500))


# ---- published logs

GPT, LTM = "LLMChatSession - gpt-4o - 128000", "LTMAgentWrapper - together_ai-meta-llama-Llama-3-70b-chat-hf - 8000 - QG_JSON_USER_INFO"
PUBLISHED = [("Benchmark 3 - 1k", GPT), ("Benchmark 3 - 1k", LTM), ("Benchmark 3 - 32k", GPT)]


Published = tuple[list[dict[str, Any]], RunFolder]


@pytest.fixture(scope="module", params=PUBLISHED, ids=lambda each: f"{each[0][14:]} {each[1][:3]}")
def published(request: pytest.FixtureRequest, goodai: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A published log's entries, and the run made of it by the paper's rules."""
    benchmark, agent = request.param
    file = goodai / "runs" / benchmark / agent / "master_log.jsonl.gz"
    out = tmp_path_factory.mktemp("published") / "run"
    import_run(KIND, file, out, ImportOptions(definitions=read_definitions(goodai / "definitions" / benchmark), rules="paper"), Report)
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()], RunFolder(out)


def test_a_published_conversation_is_in_the_journal(published: Published) -> None:
    entries, run = published
    replies = [event.text for event in journal(run) if isinstance(event, events.Reply)]
    assert [event.text for event in messages(run)] == [each["data"]["message"] for each in in_log(entries, Type.SENT, Type.FILLER)]
    assert replies == [each["data"]["message"] for each in in_log(entries, Type.REPLY, Type.FILLER_REPLY)]
    jumps = [event for event in journal(run) if isinstance(event, events.Jump)]
    assert len(jumps) == sum(each["data"]["time"] > 0 for each in in_log(entries, Type.WAIT)) == 12
    assert {event.test.partition("-")[0] for event in jumps} == {"jokes"}
    assert trio.run(runner.replay_run, run) == read_result(run)


def test_every_published_test_is_graded(published: Published) -> None:
    entries, run = published
    result = grade_run(run)
    assert {test.status for test in result.tests} == {"scored"}
    assert len(result.tests) == len(list(in_log(entries, Type.BEGINS)))
    assert result.agent in (GPT, LTM)
    assert result.left_out == []


def test_grades_are_those_recorded(published: Published, goodai: Path) -> None:
    _, run = published
    result = grade_run(run)
    if result.span != 1000:
        return  # the records at 32k are not published
    ours = {test.id: test.score for test in result.tests}
    recorded = {
        f"{SCENARIOS[each.dataset]}-{each.example}": each.share
        for each in read_records([goodai / "results" / "Benchmark 3 - 1k.jsonl.gz"])
        if each.agent == result.agent
    }
    assert ours.keys() == recorded.keys()
    agreement = sum(abs((ours[id] or 0) - recorded[id]) < 1e-3 for id in ours)
    assert agreement == len(ours) == 30


def test_a_report_shows_the_published_conversation(published: Published) -> None:
    entries, run = published
    page = (run.path / "report.html").read_text("utf-8")
    data = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    data += [
        zlib.decompress(b64decode(each), -15) for each in re.findall(r'<script type="text/plain" class="deflated">(.*?)</script>', page)
    ]
    shown = " ".join(" ".join(texts(json.loads(each))) for each in data)
    said = [each["data"]["message"] for each in in_log(entries, Type.SENT, Type.REPLY, Type.FILLER, Type.FILLER_REPLY)]
    # Control characters are shown by their numbers, and of texts that are very long the beginning and the end.
    missing = [text for text in said if re.sub(r"[\x80-\x9f]", lambda found: f"[U+{ord(found[0]):04X}]", text[:15_000]) not in shown]
    assert missing == []


def texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)
