"""`longspan summhay write`: a model writes a haystack, and what fails its checks is written again or left out, and told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Server

from longspan.scenarios.summhay.scenario import SummHay
from longspan.scenarios.summhay.topic_files import read_haystacks
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main
from longspan.simulator.running.data_writers import find_writer, settings_of, write_data

pytestmark = pytest.mark.usefixtures("openai_key")

TOPIC = "Two bakers quarrel over a recipe for rye bread"
NAMES = "ovens flour customers prizes rivals".split()


class Author:
    """A model that writes as it is asked, and now and then not: `spoil` changes an answer."""

    def __init__(self, spoil: Callable[[str, Any], Any] = lambda kind, answer: answer) -> None:
        self.spoil = spoil
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        kind = next(name for words, name in KINDS.items() if words in prompt)
        self.asked.append(kind)
        answer = self.spoil(kind, getattr(self, kind)(prompt))
        return answer if isinstance(answer, str) else json.dumps(answer)

    def subtopics(self, prompt: str) -> Any:
        there = re.findall(r"^- everything about (\w+)$", prompt, re.MULTILINE)
        fresh = [name for name in NAMES if name not in there][: int(re.findall(r"Think of (\d+)", prompt)[0])]
        return {"subtopics": [{"name": name, "subtopic": f"everything about {name}", "query": f"What about {name}?"} for name in fresh]}

    def insights(self, prompt: str) -> Any:
        (about,) = re.findall(r'the subtopic "everything about (\w+)"', prompt)
        (count,) = re.findall(r"Invent (\d+)", prompt)
        start = 100 * NAMES.index(about) + 10 * len(re.findall(r"^- .* coins\.", prompt, re.MULTILINE))
        things = "mill cellar ladder basket window".split()
        return {
            "insights": [
                {"name": f"{about} {thing}", "insight": f"A {thing} for {about} costs {start + k + 11} coins."}
                for k, thing in enumerate(things[: int(count)])
            ]
        }

    def document(self, prompt: str) -> Any:
        (number,) = re.findall(r"number (\d+) of many", prompt)
        said = re.findall(r"^- (A \w+ for \w+ costs \d+ coins\.)$", prompt, re.MULTILINE)
        return f"Ada: This is talk {'x' * int(number)}.\n" + "\n".join(f"Ben: {each}" for each in said) + "\nAda: so so" * 20

    def check_subtopics(self, prompt: str) -> Any:
        return {"numbers": []}

    check_insights = check_subtopics

    def check_document(self, prompt: str) -> Any:
        text = prompt.partition("Which of these")[0]
        every = re.findall(r"^(\d+)\. (A \w+ for \w+ costs \d+ coins\.)$", prompt, re.MULTILINE)
        return {"numbers": [int(number) for number, statement in every if statement in text]}


KINDS = {
    "Think of": "subtopics",
    "Those to be looked at": "check_subtopics",
    "Invent ": "insights",
    "was written for the subtopic": "check_insights",
    "Which of these statements": "check_document",
    "of many": "document",
}
"""What each prompt is recognised by, the first that fits."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


def wrote(server: Server, author: Author, out: Path, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    server.reply = author
    made = find_writer("summhay")
    given = {"topic": TOPIC, "subtopics": 3, "insights": 4, "documents": 12, "words": 110} | settings
    (path,), written = trio.run(lambda: write_data(made, settings_of(made, given), server.model(), out))
    return json.loads(path.read_text("utf-8")), list(written.notes)


def test_a_haystack_is_written_and_played(server: Server, tmp_path: Path) -> None:
    topic, notes = wrote(server, Author(), tmp_path)
    assert notes == []
    assert [len(subtopic["insights"]) for subtopic in topic["subtopics"]] == [4, 4, 4]
    assert len(topic["documents"]) == 12
    for subtopic in topic["subtopics"]:
        for insight in subtopic["insights"]:
            holding = [document for document in topic["documents"] if insight["insight"] in document["document_text"]]
            assert holding == [document for document in topic["documents"] if insight["insight_id"] in document["insights_included"]]
            assert len(holding) >= 2
    (haystack,) = read_haystacks(tmp_path, None)
    assert (haystack.topic, haystack.domain, haystack.generated) == (TOPIC, "conversation", False)
    script = SummHay(data=tmp_path).series(1, "0")
    assert [id for id, _ in script] == ["1-1", "1-2", "1-3"]


def test_what_was_answered_is_not_asked_again(server: Server, tmp_path: Path) -> None:
    first = wrote(server, Author(), tmp_path)
    again = Author()
    assert wrote(server, again, tmp_path) == first
    assert again.asked == []


def test_what_fails_is_written_again_with_what_was_wrong_with_it(server: Server, tmp_path: Path) -> None:
    tries: list[str] = []

    def spoil(kind: str, answer: Any) -> Any:
        tries.append(kind)
        if kind == "subtopics" and tries.count(kind) == 1:
            answer["subtopics"][1] = answer["subtopics"][0]
        if kind == "insights" and tries.count(kind) == 1:
            answer["insights"][0]["insight"] = "somebody did something"
            answer["insights"][1] = answer["insights"][2]
        if kind == "document" and tries.count(kind) == 3:
            return "Too short."
        if kind == "document" and tries.count(kind) == 5:
            return re.sub(r"Ben: .*", "Ben: Hm.", answer, count=1)
        return answer

    topic, notes = wrote(server, Author(spoil), tmp_path)
    assert notes == []
    assert (tries.count("subtopics"), tries.count("insights"), tries.count("document")) == (2, 4, 14)
    assert len({subtopic["subtopic"] for subtopic in topic["subtopics"]}) == 3
    insights = [insight["insight"] for subtopic in topic["subtopics"] for insight in subtopic["insights"]]
    assert len(set(insights)) == 12
    assert "somebody did something" not in insights
    prompts = [text for each in server.asked for _, text in each.texts]
    assert any("it has 2 words instead of 110" in prompt for prompt in prompts)
    assert any("it does not say this: A " in prompt for prompt in prompts)
    assert any("somebody did something (names no number, date or name)" in prompt for prompt in prompts)


def test_what_goes_on_failing_is_left_out_and_told(server: Server, tmp_path: Path) -> None:
    def spoil(kind: str, answer: Any) -> Any:
        return answer.replace("costs 11 coins", "is dear") if kind == "document" else answer

    topic, notes = wrote(server, Author(spoil), tmp_path)
    texts = "".join(document["document_text"] for document in topic["documents"])
    assert "is dear" not in texts
    assert any(re.fullmatch(r"document \d+ was left out: it does not say this: A mill for ovens costs 11 coins\.", note) for note in notes)
    assert any("insight i1-1 was left out: it is in 0 documents" in note for note in notes)
    assert notes == topic["topic_metadata"]["dropped"]
    assert "i1-1" not in json.dumps(topic["subtopics"])


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        ("subtopics", "I cannot.", "the writer gave no usable answer"),
        ("subtopics", {"subtopics": []}, "found no distinct subtopics"),
        ("insights", {"insights": []}, "no subtopic with enough insights"),
        ("document", "No.", "too few documents"),
        ("check_document", "Who knows.", "too few documents"),
    ],
)
def test_a_writer_that_cannot_is_told_off_in_a_line(server: Server, tmp_path: Path, kind: str, answer: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        wrote(server, Author(lambda found, given: answer if found == kind else given), tmp_path, documents=4)
    assert list(tmp_path.glob("topic_*")) == []


def test_at_the_command_line(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.reply = Author()
    given = ["summhay", "write", "--writer", server.model(), "--out", str(tmp_path / "bread"), "--set", f"topic={TOPIC}"]
    small = [part for name in ("subtopics=2", "insights=3", "documents=6", "words=110", "name=rye") for part in ("--set", name)]
    with pytest.raises(SystemExit) as leaving:
        main([*given, *small])
    assert leaving.value.code == 0
    assert f"wrote   {tmp_path / 'bread' / 'topic_rye.json'}" in capsys.readouterr().out
    for wrong, words in (("documents=0", "must be at least 4"), ("x=1", "unknown key"), ("x", "NAME=VALUE")):
        with pytest.raises(SystemExit) as leaving:
            main([*given, "--set", wrong])
        assert leaving.value.code == 2
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*given[:3], "silent", *given[4:]])
    assert capsys.readouterr().err == "longspan: --writer silent: this kind of agent cannot write; name a model, such as openai/gpt-4o\n"
