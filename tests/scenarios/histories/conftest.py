"""Published histories, if they are available, and small files of the same forms, made up."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PEER_DATA, skip

from longspan.simulator.cli import main

MADE_UP_KINDS = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
    "abstention",
)
"""The kinds of questions about a history that is made up."""

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a cat."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Show me!", "blip_caption": "a photo of a dog"},
            ],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [
            {"question": "What did Ada adopt?", "answer": "a cat", "evidence": ["D1:1 D1:9"], "category": 4},
            {"question": "What did Ben adopt?", "adversarial_answer": "a cat", "evidence": ["D1:1"], "category": 5},
        ],
    }
]

LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "How many cats do I have?",
        "answer": 2,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["answer_b", "noise", "noise"],
        "haystack_dates": ["2023/05/22 (Mon) 10:00", "2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "Two cats!", "has_answer": True},
                {"role": "assistant", "content": "Lovely.", "has_answer": False},
            ],
            [{"role": "user", "content": "Hello."}],
            [{"role": "user", "content": "Hello again."}, {"role": "assistant", "content": "Hi."}],
        ],
        "answer_session_ids": ["answer_b", "answer_c"],
    },
    {
        "question_id": "q2_abs",
        "question_type": "single-session-user",
        "question": "What is my hamster called?",
        "answer": "You did not say.",
        "question_date": "2023/05/30",
        "haystack_session_ids": ["s"],
        "haystack_dates": ["2023/05/20"],
        "haystack_sessions": [[{"role": "user", "content": "Hello."}]],
        "answer_session_ids": [],
    },
]

BEAM_CHAT = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "My cat is Olive. ->-> 1,2"},
                {"role": "assistant", "id": 1, "content": "Noted: a -> b."},
            ]
        ],
    },
    {"batch_number": 2, "time_anchor": None, "turns": [[{"role": "user", "id": 2, "content": "No, Oliver. ->-> 2,N/A"}]]},
]

BEAM_QUESTIONS = {
    "knowledge_update": [
        {"question": "My cat?", "answer": "Oliver", "rubric": ["says Oliver"], "source_chat_ids": {"a": [0], "b": [2, 7]}}
    ],
    "abstention": [{"question": "My dog?", "ideal_response": "You did not say.", "rubric": ["says so"]}],
}

DOCUMENTS = [
    {"id": "u_0", "content": "[SYSTEM] Persona: Ada\n\n[USER] User: I like jazz.\n\n[ASSISTANT] Fine.", "user_id": "u", "timestamp": None}
]

QUERIES = [
    {
        "id": "p1",
        "query": "Any music tonight?\n\n(a) Rock.\n(b) Jazz, as you like it.",
        "gold_answers": ["(b) Jazz, as you like it.", "b"],
        "gold_ids": ["u_0", "u_1"],
        "user_id": "u",
        "meta": {"question_type": "suggest_new_ideas"},
    }
]

CONTEXTS = {
    "c": [
        {"role": "system", "content": "Persona: Ada"},
        {"role": "user", "content": "User: I like jazz."},
        {"role": "system", "content": "Persona: Ada"},
        {"role": "user", "content": "User: No, rock."},
        {"role": "assistant", "content": "Fine."},
    ]
}

ROWS = [
    {
        "question_id": f"p{end}",
        "question_type": "suggest_new_ideas",
        "user_question_or_message": "Any music tonight?",
        "correct_answer": "(b)",
        "all_options": """['(a) Rock.', "(b) Jazz, it's what you like."]""",
        "shared_context_id": "c",
        "end_index_in_shared_context": str(end),
    }
    for end in (2, 5)
]

PLAIN = [
    {
        "turns": [{"speaker": "user", "text": "My cat is Olive."}, {"speaker": "assistant", "text": "Hi, Olive!"}],
        "at": "2024-03-01T18:05:00Z",
    },
    {"question": "My cat?", "answer": "Olive", "kind": "fact", "evidence": ["1:1"], "at": "2024-03-02", "options": ["Olive", "Oliver"]},
]

SMALL: dict[str, dict[str, Any]] = {
    "locomo": {"locomo10.json": LOCOMO},
    "longmemeval": {"longmemeval_s.json": LONGMEMEVAL},
    "beam": {"chat.json": BEAM_CHAT, "probing_questions/probing_questions.json": BEAM_QUESTIONS},
    "personamem": {"questions_32k.csv": ROWS, "shared_contexts_32k.jsonl": [CONTEXTS]},
    "converted": {"queries_32k.json": QUERIES, "documents_32k.json": DOCUMENTS},
    "history": {"mine.jsonl": PLAIN},
}
"""The files of a small history in each form."""

Write = Callable[[dict[str, Any]], Path]


@pytest.fixture
def small(tmp_path: Path) -> Callable[[str], tuple[str, dict[str, Any]]]:
    """A function that returns the reader's name and copies of the files of one of the forms in SMALL."""
    return lambda form: ("personamem" if form == "converted" else form, copy.deepcopy(SMALL[form]))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes files, by their names, into a folder, and returns the path to give to a reader."""

    def write(files: dict[str, Any]) -> Path:
        folder = tmp_path / "data"
        for name, value in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".csv"):
                with path.open("w", encoding="utf-8", newline="") as file:
                    keys = dict.fromkeys(key for row in value for key in row)
                    writer = csv.DictWriter(file, keys)
                    writer.writeheader()
                    writer.writerows(value)
            elif name.endswith(".jsonl"):
                path.write_text("".join(f"{json.dumps(line)}\n" for line in value), "utf-8")
            else:
                path.write_text(json.dumps(value), "utf-8")
        return folder

    return write


def published(name: str) -> Path:
    folder = (PEER_DATA / name).resolve()
    if not folder.is_dir():
        skip(f"there is no published data of {name} at {PEER_DATA}; LONGSPAN_PEER_DATA names another place")
    return folder


@pytest.fixture(scope="session")
def locomo() -> Path:
    """LoCoMo's ten conversations."""
    return published("locomo") / "locomo10.json.gz"


@pytest.fixture(scope="session")
def beam() -> Path:
    """A folder of BEAM's chats, by size."""
    return published("beam")


@pytest.fixture(scope="session")
def personamem() -> Path:
    """A folder with PersonaMem, 32k, as a harness converted it."""
    return published("personamem")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Call longspan; return the exit code and what it prints, on one line."""

    def called(*arguments: str | Path) -> tuple[int, str]:
        with pytest.raises(SystemExit) as exiting:
            main(list(map(str, arguments)))
        assert isinstance(exiting.value.code, int)
        printed = capsys.readouterr()
        return exiting.value.code, " ".join((printed.out + printed.err).split())

    return called
