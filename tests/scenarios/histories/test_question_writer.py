"""`longspan write history` proposes questions about a log and keeps the sound ones; `longspan confirm` reviews them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.loopback import Server

from longspan.scenarios.histories.formats.reading import read_log
from longspan.scenarios.histories.question_proposals import KINDS, read_draft
from longspan.simulator.cli import run_command

pytestmark = pytest.mark.usefixtures("openai_key")

NAMES = "Dora Elke Finn Gila Hugo Iris Jana Karl".split()
PLACES = "Arle Bonn Cork Dover Ely Faro Ghent Hull".split()
DISHES = "ramen paella moussaka goulash risotto tacos lasagne borscht".split()
DONT_KNOW = "I don't know."


@pytest.fixture
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


def write_log(path: Path) -> Path:
    """Write a log of four sessions: where people keep drums, what they cook, when they open shops, and where some drums moved."""
    said = [
        [f"My friend {name} keeps a drum in {place}." for name, place in zip(NAMES, PLACES, strict=True)],
        [f"I really love {dish} when {name} cooks for me." for name, dish in zip(NAMES, DISHES, strict=True)],
        [f"Today {name} opened a shop on the corner." for name in NAMES],
        [f"My friend {name} now keeps a drum in {place}." for name, place in zip(NAMES[:4], PLACES[4:], strict=True)],
    ]
    turns = [
        {"role": role, "content": text, "created_at": f"2024-0{month}-01T09:{minute:02}:00"}
        for month, session in enumerate(said, 1)
        for minute, line in enumerate(session)
        for role, text in (("user", line), ("assistant", "Noted."))
    ]
    path.write_text("".join(f"{json.dumps(turn)}\n" for turn in turns), "utf-8")
    return path


def propose(kind: str, lines: str) -> str:
    """Write a question about lines, as a good model does."""
    name = re.findall(r"friend (\w+)|when (\w+)|Today (\w+)", lines)[-1]
    who = next(filter(None, name))
    place, dish, date = re.findall(r"drum in (\w+)", lines), re.findall(r"love (\w+)", lines), re.findall(r"\[(.*?)\]", lines)
    if kind == "abstention":
        return f"Question: Where does {who} keep {re.findall(r'[(](.*)[)]', lines)[-1]} things?\nOther: tuba"
    if kind == "multi-session" and place and dish:
        return f"Question: Where is the drum of {who}, and which dish do I love there?\nAnswer: {place[-1]} and {dish[-1]}"
    if kind == "temporal-reasoning":
        return f"1. **Question:** On what date did {who} open a shop?\n**Answer:** {date[-1]}."
    if dish:
        return f"Question: Which dish do I love when {who} cooks?\nAnswer: {dish[-1]}"
    return f"Question: Where does {who} keep a drum?\nAnswer:\n{place[-1] if place else 'the corner'}"


def answer(question: str, lines: str) -> str:
    """Answer from lines, as a good model does."""
    who = next((name for name in NAMES if name in question), "nobody")
    place = re.findall(rf"{who} (?:now )?keeps a drum in (\w+)", lines)
    dish = re.findall(rf"love (\w+) when {who}", lines)
    date = re.findall(rf"\[(.*?)\] user: Today {who} opened", lines)
    if "tuba" in question:
        return DONT_KNOW
    if "and which" in question:
        return f"{place[-1]} and {dish[-1]}" if place and dish else DONT_KNOW
    found = date if "date" in question else dish if "dish" in question else place
    return found[-1] if found else DONT_KNOW


def model(spoil: Callable[[str, str], str] = lambda what, text: text) -> Callable[[str], str]:
    """Return a model. `spoil` changes its texts: proposals, answers from lines (`seen`), and answers without any (`blind`)."""

    def reply(prompt: str) -> str:
        if prompt.startswith("Write a question"):
            kind = next(kind for kind, instruction in KINDS.items() if instruction in prompt)
            return spoil("proposal", propose(kind, prompt.partition("Now these lines:")[2]))
        lines, _, question = prompt.rpartition("Question: ")
        return spoil("seen" if "- [" in lines else "blind", answer(question, lines))

    return reply


def write(server: Server, folder: Path, count: int) -> tuple[int, list[dict[str, str]], list[dict[str, str]]]:
    log, out = write_log(folder / "log.jsonl"), folder / "q.jsonl"
    out.unlink(missing_ok=True)
    arguments = ["write", "history", "--from", str(log), "--model", server.model(), "--questions", str(count), "--out", str(out)]
    code = run_command(arguments)
    files = [[json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in (out, Path(f"{out}.rejected.jsonl"))]
    return code, files[0], files[1]


def test_questions_of_every_kind_are_written_once_paid_and_read(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.reply = model()
    code, questions, _ = write(server, tmp_path, 12)
    assert code == 0
    assert {each["kind"] for each in questions} == set(KINDS)
    assert "accepted    2 abstention" in capsys.readouterr().out
    (history,) = read_log(tmp_path / "log.jsonl", questions=tmp_path / "q.jsonl")
    assert len(history.questions) == len(questions) == 12
    moved = {"Arle", "Bonn", "Cork", "Dover"}
    assert not moved & {each.get("answer") for each in questions}, "a later turn changes these"
    # Half of the answers are lost, as after an interruption: the result is the same, and only the other half is paid for.
    paid, before = len(server.asked), (tmp_path / "q.jsonl").read_bytes()
    store = tmp_path / "q.jsonl.answers" / "judgements.jsonl"
    kept = store.read_bytes().splitlines(keepends=True)
    store.write_bytes(b"".join(kept[: len(kept) // 2]))
    assert write(server, tmp_path, 12)[0] == 0
    assert (tmp_path / "q.jsonl").read_bytes() == before
    assert len(server.asked) - paid == len(kept) - len(kept) // 2
    code, questions, rejected = write(server, tmp_path, 60)
    assert (code, len(questions) < 60) == (1, True), "the log has fewer passages"
    assert "changed by later turns" in {each["reason"] for each in rejected}
    assert not {f"Where does {name} keep a drum?" for name in NAMES[:4]} & {
        each["question"] for each in questions if each.get("answer") in moved
    }


@pytest.mark.parametrize(
    ("reason", "spoil"),
    [
        ("no question", lambda what, text: "\x1b]0;x\x07<think>{}</think>" if what == "proposal" else text),
        ("no answer", lambda what, text: text.partition("Answer")[0] if what == "proposal" else text),
        ("question too long", lambda what, text: "Question: " + "why " * 9999 + "\nAnswer: x" if what == "proposal" else text),
        (
            "the question is about the assistant",
            lambda what, text: "Question: What do you like in Arle?\nAnswer: tea" if what == "proposal" else text,
        ),
        ("the question contains the answer", lambda what, text: "Question: Is Dora in Arle?\nAnswer: Arle" if what == "proposal" else text),
        ("the answer is not in the evidence", lambda what, text: re.sub(r"(Answer:\s*)\w+", r"\1Quito", text)),
        ("wrong from the evidence", lambda what, text: DONT_KNOW + " \x00" if what == "seen" else text),
        ("right without the evidence", lambda what, text: " ".join(PLACES + DISHES) if what == "blind" else text),
    ],
)
def test_a_rejected_proposal_is_kept_with_its_reason(server: Server, tmp_path: Path, reason: str, spoil: Callable[[str, str], str]) -> None:
    server.reply = model(spoil)
    code, _, rejected = write(server, tmp_path, 8)
    assert code == (0 if reason == "wrong from the evidence" and not rejected else 1) or len(rejected) > 3
    assert reason in {each["reason"] for each in rejected}
    assert all(len(json.dumps(each)) < 2000 for each in rejected)


@pytest.mark.parametrize(
    ("text", "draft"),
    [
        ("Sure!\nquestion - 1: Who?\nAnswer: `Dora`.", ("Who?", "Dora")),
        ("Question: Who?\nAnswer: A\nQuestion: What?\nAnswer: B", ("Who?", "A")),
        ("**Question:** Who\x1b[2J?\n\n**Answer:**\nDora", ("Who[2J?", "Dora")),
        ("Answer: Dora", "no question"),
        ("Question: Who?\nAnswer: ...", "no answer"),
        ("", "no question"),
    ],
)
def test_labels_are_read_tolerantly(text: str, draft: tuple[str, str] | str) -> None:
    assert read_draft(text) == draft


def confirm(folder: Path, keys: str, *more: str) -> str:
    code = "from longspan.simulator.cli import main; main()"
    command = [sys.executable, "-c", code, "confirm", str(folder / "q.jsonl"), *more]
    done = subprocess.run(command, input=keys, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (2 if "longspan: " in done.stderr else 0), done.stderr
    return done.stdout + done.stderr


def test_a_person_confirms_edits_and_drops(tmp_path: Path) -> None:
    log, file = write_log(tmp_path / "log.jsonl"), tmp_path / "q.jsonl"
    asked = [{"question": f"Where is the drum of {name}?", "answer": "x", "evidence": [f"1:{2 * at + 1}"]} for at, name in enumerate(NAMES)]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in asked), "utf-8")
    assert "its log is not known; name it with --from LOG" in confirm(tmp_path, "")
    shown = confirm(tmp_path, "y\n\ne\nBonn\nn\nnot a fact\nq\ny\n", "--from", str(log))
    assert "[2024-01-01] user: My friend Dora keeps a drum in Arle." in shown
    assert "2 confirmed, 5 left, 1 dropped this time" in shown
    saved = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [each.get("confirmed", False) for each in saved] == [True, True, *[False] * 5]
    assert saved[1]["answer"] == "Bonn"
    dropped = json.loads(Path(f"{file}.rejected.jsonl").read_text("utf-8"))
    assert dropped["reason"] == "dropped by a person: not a fact"
    assert "drum of Gila" in confirm(tmp_path, "", "--from", str(log)), "it continues with the first that nobody confirmed"
    (history,) = read_log(log, questions=file)
    assert len(history.questions) == 7


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals")
def test_one_key_suffices_on_a_terminal(tmp_path: Path) -> None:
    log, file = write_log(tmp_path / "log.jsonl"), tmp_path / "q.jsonl"
    file.write_text('{"question": "Who?", "answer": "Dora", "evidence": ["1:1"]}\n' * 2, "utf-8")
    controller, terminal = os.openpty()
    code = "from longspan.simulator.cli import main; main()"
    command = [sys.executable, "-c", code, "confirm", str(file), "--from", str(log)]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, text=True) as process:
        os.write(controller, b"yq")
        assert "1 confirmed, 1 left" in process.communicate(timeout=60)[0]
    os.close(controller)
    os.close(terminal)
