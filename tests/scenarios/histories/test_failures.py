"""A turn where an agent forgot becomes a question: in the terminal, in the browser, and asked where the turn was."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser import Open
from tests.view.serving import Server, serving

from longspan.scenarios.histories.failures import find_failure as find_logged
from longspan.scenarios.histories.formats.reading import read_log
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import run_command
from longspan.simulator.contract.plugins import installed_scenarios
from longspan.simulator.contract.question_files import open_review
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.asking import find_failure, past_of

LOG = [
    {"role": "user", "content": "I adopted a cat. Her name is Olive.", "created_at": "2024-03-01T18:05:00Z"},
    {"role": "assistant", "content": "Congratulations to you and Olive!"},
    {"role": "user", "content": "Is the cat a good name for a boat?", "created_at": "2024-03-20T10:00:00Z"},
    {"role": "assistant", "content": "It would be unusual."},
    {"role": "user", "content": "What is my cat called?", "created_at": "2024-04-12T10:00:00Z"},
    {"role": "assistant", "content": "You have not told me."},
    {"role": "user", "content": "She is called Olive!"},
    {"role": "assistant", "content": "Sorry. Olive it is."},
]
CALLED = {"question": "What is my cat called?", "answer": "Olive", "evidence": ["her name is olive"]}
SAVED = CALLED | {"evidence": ["1:1"], "before": "3:1", "confirmed": True}
RUN = "history-log-notebook-seed0"


def write_lines(path: Path, values: list[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, questions, and a run."""
    folder = tmp_path_factory.mktemp("failures")
    log = write_lines(folder / "log.jsonl", LOG)
    asked = write_lines(folder / "asked.jsonl", [CALLED])
    data = ["--data", f"history={log}", "--data", f"questions={asked}"]
    assert run_command(["run", "history", *data, "--agent", "notebook", "--out", str(folder / "runs")]) == 0
    return folder


def ask(made: Path, *more: str) -> int:
    run = str(made / "runs" / RUN)
    return run_command(["ask", run, "2", "--conversation", "history-1", "--agent", "silent", *more])


# ---- asked before a turn


def test_a_question_before_a_turn_is_asked_from_what_came_before(made: Path, tmp_path: Path) -> None:
    questions = write_lines(tmp_path / "q.jsonl", [CALLED, CALLED | {"before": "3:1"}, CALLED | {"before": "what is my CAT called?"}])
    whole, earlier = read_log(made / "log.jsonl", questions=questions)
    assert (whole.id, len(list(whole.turns)), [each.id for each in whole.questions]) == ("1", 8, ["1"])
    assert (earlier.id, [each.id for each in earlier.questions]) == ("1@3:1", ["2", "3"])
    assert [turn.text for turn in earlier.turns] == [said["content"] for said in LOG[:4]]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"before": "1:1"}, "before '1:1' is the first turn: nothing was said before"),
        ({"before": "never said"}, "before 'never said' is neither the id nor a part of a turn"),
        ({"before": "Olive"}, "before 'Olive' is said in several turns"),
        (
            {"before": "3:1", "evidence": ["She is called Olive"]},
            "evidence '3:3' does not come before turn '3:1', where the question is asked",
        ),
        ({"before": " "}, "before: "),
    ],
)
def test_a_question_before_a_wrong_turn_is_an_error(made: Path, tmp_path: Path, question: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match="q.jsonl, line 1: .*" + words):
        list(read_log(made / "log.jsonl", questions=write_lines(tmp_path / "q.jsonl", [CALLED | question])))


def test_a_converted_log_asks_before_the_same_turn(made: Path, tmp_path: Path) -> None:
    both = write_lines(tmp_path / "both.jsonl", [*LOG, CALLED | {"before": "3:1"}])
    for options in ([], ["--scrub"]):
        out = tmp_path / f"plain{len(options)}.jsonl"
        assert run_command(["convert", str(both), str(out), *options]) == 0
        (history,) = read_log(out)
        assert (history.id, len(list(history.turns)), history.questions[0].evidence) == ("1@3:1", 4, ("1:1",))


# ---- in the terminal


def test_a_failure_becomes_a_question(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps({"question": "What have I adopted?", "answer": "a cat"}), "utf-8")  # without a newline at the end
    assert ask(made, "--save", str(file), "--answer", "Olive", "--evidence", "Her name is Olive") == 0
    assert read_lines(file)[1:] == [SAVED | {"evidence": ["Her name is Olive"]}]
    assert f"saved     {file}, question 2" in capsys.readouterr().out
    data = ["--data", f"history={made / 'log.jsonl'}", "--data", f"questions={file}"]
    assert run_command(["run", "history", *data, "--agent", "oracle", "--out", str(tmp_path / "runs")]) == 0
    assert "score 100%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("keys", "evidence"),
    [("Olive\n\n", ["1:1"]), ("Olive\n1, 2\n", ["1:1", "1:2"]), ("Olive\nadopted a cat\n", ["adopted a cat"])],
)
def test_the_terminal_asks_for_the_answer_and_its_turn(made: Path, tmp_path: Path, keys: str, evidence: list[str]) -> None:
    file = tmp_path / "mine.jsonl"
    code = "from longspan.simulator.cli import main; main()"
    run = str(made / "runs" / RUN)
    command = [sys.executable, "-c", code, "ask", run, "2", "--conversation", "history-1", "--agent", "silent", "--save", str(file)]
    done = subprocess.run(command, input=keys, capture_output=True, text=True, env=os.environ, check=True)
    assert " 1* - [2024-03-01] user: I adopted a cat. Her name is Olive." in done.stdout
    assert " 2  - [2024-03-01] assistant: Congratulations" in done.stdout
    assert "good name for a boat" not in done.stdout  # a question is no evidence
    assert read_lines(file) == [SAVED | {"evidence": evidence}]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--save", "FILE", "--answer", "Rex", "--evidence", "never said"], "evidence 'never said' is neither the id nor a part"),
        (["--save", "FILE", "--answer", "Rex", "--evidence", "3:3"], "evidence '3:3' does not come before"),
        (["--save", "FILE", "--answer", "Rex", "--evidence", ""], "evidence '' is neither the id nor a part"),
        (["--answer", "Olive"], "name its file with --save"),
        (["--save", "no/folder/q.jsonl", "--answer", "Olive", "--evidence", "1:1"], "no/folder/q.jsonl: cannot be written: No such file"),
        (["--save", "PIPE", "--answer", "Olive", "--evidence", "1:1"], "is not a regular file; name another one"),
        (["--save", "FILE", "--answer", "a\udcff", "--evidence", "1:1"], "is not valid Unicode"),
        (["--save", "FILE", "--answer", " ", "--evidence", "1:1"], "the question needs an answer"),
        (["--save", "TABLE", "--answer", "Olive", "--evidence", "1:1"], "is not in JSON lines; name another file"),
    ],
)
def test_nothing_is_saved_that_would_not_play(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    table = tmp_path / "q.csv"
    table.write_text("question,answer\nWhat?,that\n", "utf-8")
    os.mkfifo(tmp_path / "pipe")
    places = {"FILE": str(tmp_path / "q.jsonl"), "TABLE": str(table), "PIPE": str(tmp_path / "pipe")}
    assert ask(made, *(places.get(word, word) for word in more)) == 2
    assert words in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "q.csv"]
    assert table.read_text("utf-8") == "question,answer\nWhat?,that\n"


def test_only_a_recorded_turn_with_something_before_it_becomes_a_question(made: Path, tmp_path: Path) -> None:
    run = RunFolder(made / "runs" / RUN)
    for turn, conversation, words in [
        (4, "history-1-q000", "turn 4 is not from a recorded history"),
        (0, "history-1", "turn 0 is the first of the log"),
    ]:
        with pytest.raises(InputError, match=words):
            find_failure(run, past_of(run, turn, conversation))
    woven = installed_scenarios(run.manifest.suite.scenarios)["history"].model_copy(update={"delivery": "weave"})
    with pytest.raises(InputError, match="play it again without this setting"):
        find_logged(woven, {"history": "1"}, 2, "What is my cat called?")
    moved = Path(shutil.copytree(run.path, tmp_path / RUN))  # someone else's folder: its log is not read unasked
    with pytest.raises(InputError, match=r"log\.jsonl"):
        find_failure(RunFolder(moved), past_of(RunFolder(moved), 2, "history-1"))


def test_a_log_that_has_changed_is_noticed(made: Path, tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", LOG)
    data = ["--data", f"history={log}", "--data", f"questions={made / 'asked.jsonl'}"]
    assert run_command(["run", "history", *data, "--agent", "silent", "--out", str(tmp_path)]) == 0
    write_lines(log, [LOG[0], LOG[0] | {"content": "He is shy."}, *LOG[1:]])
    run = RunFolder(tmp_path / "history-log-silent-seed0")
    with pytest.raises(InputError, match="has changed since the run"):
        find_failure(run, past_of(run, 2, "history-1"))


def test_a_failure_belongs_to_its_conversation_whatever_the_ids(tmp_path: Path) -> None:
    turns = [{"speaker": "user", "text": "My cat is Olive."}, {"speaker": "assistant", "text": "ok"}, {"speaker": "user", "text": "Which?"}]
    named = [{"conversation": id, "turns": turns} for id in ("a", "a@b")]
    log = write_lines(
        tmp_path / "log.jsonl", [*named, *({"conversation": each["conversation"], **CALLED, "evidence": []} for each in named)]
    )
    assert run_command(["run", "history", "--data", f"history={log}", "--agent", "silent", "--out", str(tmp_path)]) == 0
    run, file = RunFolder(tmp_path / "history-log-silent-seed0"), tmp_path / "q.jsonl"
    find_failure(run, past_of(run, 1, "history-a-b")).save(file, "Which?", "Olive", ["1:1"])
    assert [each["conversation"] for each in read_lines(file)] == ["a@b"]


def test_a_failure_is_saved_once_and_next_to_others(made: Path, tmp_path: Path) -> None:
    run, file = RunFolder(made / "runs" / RUN), tmp_path / "q.jsonl"
    failure = find_failure(run, past_of(run, 2, "history-1"))
    assert failure.save(file, failure.message, "Olive", ["1:1"]) == f"{file}, question 1"
    with pytest.raises(InputError, match="has this question already"):
        failure.save(file, failure.message, "Rex", ["1:1"])
    with pytest.raises(InputError, match="question: must be valid Unicode"):
        failure.save(file, "And the cat's name?\ud800", "Olive", ["1:1"])
    assert failure.save(file, "And the cat's name?", "Olive", ["1:1"]) == f"{file}, question 2"
    assert [each["question"] for each in read_lines(file)] == ["What is my cat called?", "And the cat's name?"]


# ---- in the browser


@pytest.fixture
def file(made: Path) -> Iterator[Path]:
    file = write_lines(made / "review.jsonl", [CALLED | {"evidence": ["1:1"]}, CALLED | {"question": "Whose boat?", "answer": "mine"}])
    yield file
    for path in made.glob("review.jsonl*"):
        path.unlink()


@pytest.fixture
def server(made: Path, file: Path) -> Iterator[Server]:
    with serving(made / "runs", "--questions", str(file), "--from", str(made / "log.jsonl")) as server:
        yield server


def shown_proposal(server: Server) -> str:
    found = re.search(r'name="proposal" value="(\w+)"', server.get("/questions").text)
    return found[1] if found else ""


def test_a_person_reviews_questions_and_adds_a_failure(server: Server, file: Path, visit: Open) -> None:
    visited = visit(server.at())
    page = visited.page
    page.get_by_role("link", name="Questions").click()
    expect(page.get_by_role("heading", level=2)).to_have_text("What is my cat called?")
    expect(page.get_by_role("listitem").last).to_have_text("[2024-03-01] user: I adopted a cat. Her name is Olive.")
    visited.picture("review")
    assert visited.faults() == []
    page.get_by_label("Answer").fill("Olive the cat")
    page.get_by_label("Answer").press("y")  # while one types, no key decides
    page.get_by_label("Answer").fill("Olive the cat")
    page.get_by_label("Answer").blur()
    page.keyboard.press("y")
    expect(page.get_by_role("heading", level=2)).to_have_text("Whose boat?")
    page.get_by_label("Reason to drop").fill("not a fact")
    page.get_by_role("button", name="Drop").click()
    expect(page.get_by_role("status")).to_have_text("No question is left to review.")
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name=RUN).first.click()
    page.locator("#all-turns > summary").click()
    page.get_by_role("link", name="make a question").nth(2).click()
    expect(page.locator("textarea")).to_have_value("What is my cat called?")
    visited.picture("failure")
    assert visited.faults() == []
    page.get_by_label("Right answer").fill("Olive")
    page.get_by_label("I adopted a cat").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text(f"Saved as {file}, question 2.")
    kept, added = read_lines(file)
    assert (kept["answer"], kept["confirmed"], added) == ("Olive the cat", True, SAVED)
    (dropped,) = read_lines(file.with_name("review.jsonl.rejected.jsonl"))
    assert dropped["reason"] == "dropped by a person: not a fact"


@pytest.mark.parametrize(
    ("path", "form", "status", "words"),
    [
        ("/questions", {"proposal": "of another page", "decision": "keep"}, 422, "the file has changed meanwhile"),
        ("/questions", {"proposal": "NEXT"}, 422, "choose Keep or Drop"),
        (f"/runs/{RUN}/question", {"turn": "2", "conversation": "history-1", "question": "Q?", "answer": "Olive"}, 422, "needs evidence"),
        (f"/runs/{RUN}/question", {"turn": "9", "conversation": "history-1", "question": "Q?", "answer": "Olive"}, 422, "has no turn 9"),
        (f"/runs/{RUN}/question", {"turn": "-1", "conversation": "x", "question": "Q?"}, 422, "has no conversation"),
        ("/runs/../question", {"turn": "2"}, 405, "only GET and HEAD"),
    ],
)
def test_a_wrong_form_changes_nothing(server: Server, file: Path, path: str, form: dict[str, str], status: int, words: str) -> None:
    before = file.read_bytes()
    shown = shown_proposal(server)
    found, text = server.post(path, {name: value.replace("NEXT", shown) for name, value in form.items()})
    assert (found, words in text) == (status, True)
    for headers in ({"Origin": "http://evil.example"}, {"Cookie": None}):
        assert server.post(path, {"proposal": shown, "decision": "keep"}, **headers)[0] == 403
    assert file.read_bytes() == before


def test_any_question_can_be_decided_once(server: Server, file: Path, tmp_path: Path) -> None:
    real = write_lines(
        tmp_path / "real.jsonl",
        [
            {"question": " Two\nlines " + "ж" * 9000, "answer": "a\nb"},
            {"question": "Which?", "answer": "A", "options": ["A", "B"]},
            {"question": "The same?", "answer": "1"},
            {"question": "The same?", "answer": "1", "before": "2:1"},
        ],
    )
    file.unlink()
    file.symlink_to(real)

    def decide(**form: str) -> tuple[int, str]:
        return server.post("/questions", {"proposal": shown_proposal(server), "decision": "keep"} | form)

    assert decide(answer="ab")[0] == 303  # what a browser sends of an answer in two lines
    status, text = decide(answer="C")
    assert (status, "answer must be one of the options" in text) == (422, True)
    assert decide(answer="B")[0] == 303
    stale = shown_proposal(server)
    assert decide()[0] == 303
    assert decide(proposal=stale, decision="drop")[0] == 422
    kept = read_lines(real)
    assert file.is_symlink()
    assert [each.get("confirmed") for each in kept] == [True, True, True, None]
    assert [each["answer"] for each in kept[:2]] == ["a\nb", "B"]


def test_a_review_does_not_undo_what_another_program_added(made: Path, file: Path) -> None:
    review = open_review(file, made / "log.jsonl")
    assert ask(made, "--save", str(file), "--answer", "Olive", "--evidence", "1:1") == 0
    before = file.read_bytes()
    for decide in (review.keep, partial(review.drop, "")):
        with pytest.raises(InputError, match="has changed meanwhile; start again"):
            decide()
    assert file.read_bytes() == before
    rejected = file.with_name("review.jsonl.rejected.jsonl")
    assert not rejected.exists()
    rejected.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"rejected.jsonl: is not UTF-8; move it away"):
        open_review(file, made / "log.jsonl").drop("")


def test_without_a_file_of_questions_there_are_no_such_pages(made: Path) -> None:
    with serving(made / "runs") as server:
        assert server.get("/questions").status == 404
        assert server.get(f"/runs/{RUN}/question?conversation=history-1&turn=2").status == 404
        assert "data-question-page" not in server.get(f"/runs/{RUN}/report").text
