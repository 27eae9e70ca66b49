"""Published histories are read whole: every turn, question and label of evidence."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from longspan.scenarios.histories import read_histories
from longspan.scenarios.histories.locomo import KINDS
from longspan.scenarios.histories.token_f1 import locomo_score


def load(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def test_locomo_is_read_whole(locomo: Path) -> None:
    histories = read_histories("locomo", locomo)
    published = load(locomo)
    assert len(histories) == 10
    for history, sample in zip(histories, published, strict=True):
        sessions = {name: said for name, said in sample["conversation"].items() if re.fullmatch(r"session_\d+", name)}
        assert {session.id for session in history.sessions} == sessions.keys()
        assert {(turn.id, turn.speaker, turn.text, turn.image) for turn in history.turns} == {
            (said["dia_id"], said["speaker"], said["text"], said.get("blip_caption", "")) for each in sessions.values() for said in each
        }
        assert all(session.at for session in history.sessions)
        for question, asked in zip(history.questions, sample["qa"], strict=True):
            assert (question.text, question.kind) == (asked["question"], KINDS[asked["category"]])
            assert question.answer == (str(asked["answer"]) if "answer" in asked else None)
            assert question.trap == asked.get("adversarial_answer", "")
            labels = set(re.split(r"[;\s]+", " ".join(asked["evidence"]))) - {""}
            assert {*question.evidence, *question.unknown} == labels
    assert str(histories[0].sessions[0].at) == "2023-05-08 13:56:00"


def test_locomo_has_the_known_counts(locomo: Path) -> None:
    questions = [question for history in read_histories("locomo", locomo) for question in history.questions]
    kinds = Counter(question.kind for question in questions)
    assert kinds == {"single-hop": 841, "adversarial": 446, "temporal": 321, "multi-hop": 282, "open-domain": 96}
    answerable = [question for question in questions if question.answerable]
    assert (len(questions), len(answerable), sum(bool(question.evidence) for question in answerable)) == (1986, 1540, 1535)
    assert sorted(label for question in questions for label in question.unknown) == ["D", "D10:19", "D30:05", "D4:36", "D:11:26"]


def test_repeating_locomos_questions_earns_something_by_f1(locomo: Path) -> None:
    questions = [question for history in read_histories("locomo", locomo) for question in history.questions if question.answerable]
    assert fmean(locomo_score(each.kind, each.text, each.answer or "") for each in questions) == pytest.approx(0.038, abs=0.0005)


def test_beam_is_read_whole_without_the_markers(beam: Path) -> None:
    histories = read_histories("beam", beam)
    assert [history.id for history in histories] == ["100K/1", "100K/2", "100K/3", "100K/10", "100K/11", "500K/1"]
    for history in histories:
        folder = beam / history.id
        chosen = next(path for name in ("chat_trunecated", "chat") if (path := folder / f"{name}.json.gz").exists())
        said = [each for batch in load(chosen) for exchange in batch["turns"] for each in exchange]
        cut = [each["content"].removeprefix(turn.text) for turn, each in zip(history.turns, said, strict=True)]
        assert {re.sub(r"\d+", "1", rest) for rest in cut} <= {"", " ->-> 1,1", " ->-> 1,N/A"}
        assert [turn.id for turn in history.turns] == [str(each["id"]) for each in said]
        assert not any("->->" in turn.text for turn in history.turns)
        assert history.remarks[0].endswith(f" what the user says: {sum(map(bool, cut))}")
        probing = load(folder / "probing_questions" / "probing_questions.json.gz")
        assert [(question.kind, question.text, question.rubric) for question in history.questions] == [
            (kind, asked["question"], tuple(asked["rubric"])) for kind, every in probing.items() for asked in every
        ]
        assert (len(history.questions), history.unknown) == (20, 0)
        assert all(question.answer for question in history.questions)
        assert all(session.at for session in history.sessions)
        unlabelled = {question.kind for question in history.questions if not question.evidence}
        assert unlabelled <= {"abstention", "knowledge_update"}


def test_beam_is_read_packed_as_it_is_unpacked(beam: Path, tmp_path: Path) -> None:
    chats = read_histories("beam", beam / "100K")
    assert chats == read_histories("beam", beam)[:5]
    assert read_histories("beam", beam / "100K" / "10") == chats[3:4]
    zipped = shutil.make_archive(str(tmp_path / "chats"), "zip", beam, "100K/10")
    with tarfile.open(tmp_path / "chats.tar.gz", "w:gz") as tar:
        tar.add(beam / "100K" / "10", "100K/10")
    assert read_histories("beam", zipped) == read_histories("beam", tmp_path / "chats.tar.gz") == chats[3:4]


def test_personamem_is_read_whole(personamem: Path) -> None:
    histories = read_histories("personamem", personamem)
    assert histories == read_histories("personamem", personamem / "queries_32k.json.gz")
    documents = {document["id"]: document for document in load(personamem / "documents_32k.json.gz")}
    queries = {query["id"]: query for query in load(personamem / "queries_32k.json.gz")}
    sessions = [session for history in histories for session in history.sessions]
    assert sorted(session.id for session in sessions) == sorted(documents)
    for session in sessions:
        content = "\n\n".join(f"[{turn.speaker.upper()}] {turn.text}" for turn in session.turns)
        assert content == documents[session.id]["content"]
    questions = {question.id: question for history in histories for question in history.questions}
    assert len(questions) == 589
    for id, query in queries.items():
        question = questions[id]
        assert query["query"] == "\n".join([f"{question.text}\n", *question.options])
        assert (question.answer, list(question.sessions)) == (query["gold_answers"][0], query["gold_ids"])
        assert len(question.options) == 4
