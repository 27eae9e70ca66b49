"""Personal data are replaced in a log, always alike, and how many of them is measured on labelled messages."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.scenarios.histories.formats.reading import read_conversations, read_log
from longspan.scenarios.histories.scrubbing.replacements import _NAMES, _SYLLABLES, make_name
from longspan.scenarios.histories.scrubbing.scrubber import NO_GUARANTEE, Scrubber
from longspan.simulator.cli import run_command

MESSAGES = Path(__file__).with_name("personal_messages.txt")
LABEL = re.compile(r"<(name|address|phone|card|account|email|url|ip|key)>(.*?)</\1>")

LOG = [
    {"role": "user", "content": "Hi, I'm Priya. My sister Anneke de Vries moved to 221B Baker Street, London NW1 6XE."},
    {"role": "assistant", "content": "Shall I remind you to visit Anneke, Priya?"},
    {"role": "user", "content": "ANNEKE's phone: +44 20 7946 0958, mail anneke@vries.example.nl, card 4539 1488 0343 6467."},
    {"role": "user", "content": "export TOKEN=ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 and IBAN DE89 3704 0044 0532 0130 00, priya"},
    {"question": "Who is Priya's sister?", "answer": "Anneke de Vries", "evidence": ["My sister Anneke de Vries"]},
]
ORIGINALS = ("priya", "anneke", "vries", "baker", "7946", "4539", "ghp_a1b2", "3704")


def scrubbed(text: str) -> tuple[str, Scrubber]:
    scrubber = Scrubber()
    scrubber.learn([text])
    return scrubber.scrub(text), scrubber


def test_the_questions_of_a_scrubbed_log_still_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log := tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in LOG), "utf-8")
    out = tmp_path / "out.jsonl"
    assert run_command(["convert", str(log), str(out), "--scrub", "--show"]) == 0
    told = capsys.readouterr().out
    assert "scrubbed " in told
    assert "name: Anneke -> " in told
    assert NO_GUARANTEE in told
    text = out.read_text("utf-8")
    assert [word for word in ORIGINALS if word in text.casefold()] == []
    (history,) = read_log(out)
    (question,) = history.questions
    said = [turn.text for turn in history.turns]
    sister = str(question.answer).split()[0]
    assert sister in said[0]
    assert sister in said[1]
    assert sister.upper() in said[2], "capitals stay"
    assert question.evidence == (history.turns[0].id,)
    assert re.search(r"\bDE\d\d(?: \d{4}){4} \d\d\b", said[3])
    assert run_command(["convert", str(log), str(tmp_path / "plain.jsonl"), "--show"]) == 2
    assert "Priya" in log.read_text(), "the log stays as it was"


def rates(lines: list[str]) -> tuple[float, float]:
    """Return the share of the labelled data that is found as a whole, and the share of what is found that is labelled."""
    labelled: list[bool] = []
    right: list[bool] = []
    for line in lines:
        spans: list[tuple[int, int]] = []
        for match in LABEL.finditer(line):
            tags = sum(len(earlier[0]) - len(earlier[2]) for earlier in LABEL.finditer(line, 0, match.start()))
            start = match.start() - tags
            spans.append((start, start + len(match[2])))
        text = LABEL.sub(lambda match: match[2], line)
        scrubber = Scrubber()
        scrubber.learn([text])
        found = scrubber.find(text)
        covered = {place for each in found for place in range(each.start, each.end)}
        for start, end in spans:
            words = [match for match in re.finditer(r"\w+", text[start:end]) if match[0] not in ("de", "van")]
            labelled.append(all(covered.issuperset(range(start + word.start(), start + word.end())) for word in words))
        right += [any(each.start < end and each.end > start for start, end in spans) for each in found]
    return sum(labelled) / len(labelled), sum(right) / len(right)


def test_questions_in_a_file_of_their_own_are_scrubbed_like_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, log, questions = tmp_path / "whole.jsonl", tmp_path / "log.jsonl", tmp_path / "questions.jsonl"
    lines = [f"{json.dumps(row)}\n" for row in LOG]
    for path, content in ((whole, lines), (log, lines[:-1]), (questions, lines[-1:])):
        path.write_text("".join(content), "utf-8")
    assert run_command(["convert", str(whole), str(tmp_path / "one.jsonl"), "--scrub"]) == 0
    assert run_command(["convert", str(log), str(tmp_path / "two.jsonl"), "--scrub", "--questions", str(questions)]) == 0
    assert (tmp_path / "one.jsonl").read_text("utf-8") == (tmp_path / "two.jsonl").read_text("utf-8")
    with log.open("a", encoding="utf-8") as file:
        file.write('{"conversation": "ben", "turns": [{"speaker": "user", "text": "Hi."}]}\n')
    assert run_command(["convert", str(log), str(tmp_path / "plain.jsonl"), "--questions", str(questions)]) == 0
    assert "left out, without a question: ben\n" in capsys.readouterr().out
    assert [history.id for history in read_log(tmp_path / "plain.jsonl")] == ["1"]


def test_most_labelled_data_are_replaced_and_little_else() -> None:
    """The recogniser was written with the messages at odd places. The others were only used to measure it."""
    lines = MESSAGES.read_text("utf-8").splitlines()
    recall, precision = rates(lines[::2])
    assert (recall, precision) >= (0.95, 0.95)
    recall, precision = rates(lines[1::2])
    assert recall >= 0.85
    assert precision >= 0.9


@pytest.mark.parametrize(
    "text",
    [
        "I met Will at the station. Will you be there in May?",
        "The meeting on 2024-03-01 at 14:30 costs 1,234,567.89 dollars, see version 2.14.3 and chapters 12-14.",
        "My favourite color is called Willow. Everyone said Google's Python docs on Monday were great.",
        "See https://docs.example.com/guide/page-2?lang=en and src/app/main.py, line 120.",
    ],
)
def test_what_is_not_personal_stays(text: str) -> None:
    result, scrubber = scrubbed(text)
    kinds = {kind for kind, _ in scrubber.replaced}
    assert kinds <= {"name"}
    assert all(word in result for word in ("Will you", "May") if word in text)
    assert [
        word
        for word in ("Everyone", "Google", "Monday", "2024-03-01", "2.14.3", "https://docs", "main.py")
        if word in text and word not in result
    ] == []


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1 ",
        "a@",
        "my name is ",
        "Aa ",
        ":",
        "https://",
        "Aa Street 1, ",
        "password: ",
        "-----BEGIN PRIVATE KEY-----",
        "account 1 ",
        "A-",
    ],
)
def test_long_texts_take_no_longer_than_their_length(piece: str) -> None:
    scrubbed(piece * (20_000 // len(piece)))  # the limit of every test is the check: a quadratic pattern takes minutes


def test_many_names_take_no_longer_than_the_text() -> None:
    scrubbed("my name is Will. " + "Will " * 30_000)
    all_short = {"".join(syllables).capitalize().casefold() for syllables in product(_SYLLABLES, repeat=3)}
    assert len(make_name(1, {*all_short, *map(str.casefold, _NAMES)}, family=False)) > 6, "there is always another name"


def test_names_outside_texts_do_not_leak_and_ids_stay_different(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"role": "user", "name": "Zbigniew", "content": "My sister is Anneke, write to zb@kl.pl.", "id": "anneke-1"},
        {"role": "assistant", "content": "Hi Anneke", "id": "alda-1"},
        {"role": "user", "name": "Zbigniew", "content": "Whose mail is it?", "id": "zb@kl.pl"},
        {"role": "user", "content": "And whose is ZB@kl.pl?", "id": "ZB@kl.pl"},
        {"question": "Whose?", "answer": "Zbigniew", "kind": "on Anneke", "evidence": ["anneke-1"], "before": "zb@kl.pl"},
    ]
    group = [{"turns": [{"speaker": each, "text": "ok"} for each in ("Smith, Jo (Bob)", "mark", "x_1", "Alda")]}]
    for number, each in enumerate((rows, group)):
        (log := tmp_path / f"log{number}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in each), "utf-8")
        assert run_command(["convert", str(log), str(tmp_path / f"out{number}.jsonl"), "--scrub"]) == 0
    told = capsys.readouterr().out + (tmp_path / "out0.jsonl").read_text("utf-8")
    assert [word for word in ("zbigniew", "anneke", "kl.pl") if word in told.casefold()] == []
    (conversation,) = read_conversations(tmp_path / "out0.jsonl")
    assert conversation.befores == {"1": conversation.parts[0].turns[2].id}
    assert conversation.questions[0].evidence == (conversation.parts[0].turns[0].id,)
    speakers = (tmp_path / "out1.jsonl").read_text("utf-8")
    assert [word for word in ("Smith", "Jo", "Bob", "mark", "x_1", "Alda") if word in speakers] == []


@pytest.mark.parametrize("data", ["tel:0048123456789", "Phone:555-123-4567", "My password is: hunter2x"])
def test_data_may_follow_a_colon(data: str) -> None:
    assert data.partition(":")[2].strip() not in scrubbed(data)[0]
    assert scrubbed("from 10:30 20 2024")[0] == "from 10:30 20 2024"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["Priya", "王小明", "O'Connor", "Анна"]))
def test_any_text_is_scrubbed_alike(text: str, name: str) -> None:
    scrubber = Scrubber()
    scrubber.learn([text, f"My name is {name}. 我叫{name}。Меня зовут {name}."])
    assert scrubber.scrub(text) == scrubber.scrub(text)
    assert name not in scrubber.scrub(f"{name}, {name}!")
