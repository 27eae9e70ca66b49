"""Replies as models word them, with the scores that a careful person gives, against the graders.

The replies are in `replies/<scenario>.yaml`: groups with the facts of a test, and replies with their scores. Most were written
before the rules that they are held against. Rules are not written for single replies, so one in twenty may differ.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.contract.plugins import make_scenario

REPLIES: Final = Path(__file__).parent / "replies"
NAMES: Final = sorted(path.stem for path in REPLIES.glob("*.yaml"))

LEAST: Final = 0.95
"""The share of a scenario's scored replies where the grader agrees with a careful person."""
LEAST_OF_ALL: Final = 0.98
"""The same of all scenarios together."""
MOST_LEFT: Final = 0.05
"""The share of a scenario's replies that may be left to a judge."""


class Reply(NamedTuple):
    """The replies, one for each graded message, and the score that they deserve."""

    facts: dict[str, Any]
    question: str
    texts: tuple[str, ...]
    score: float


def replies(name: str) -> list[Reply]:
    groups = yaml.safe_load(REPLIES.joinpath(f"{name}.yaml").read_text("utf-8"))
    return [
        Reply(group.get("facts") or meeting(group["meeting"]), group.get("question", "?"), tuple(texts), float(Fraction(str(score))))
        for group in groups
        for score, *texts in group["replies"]
    ]


def meeting(means: dict[str, str]) -> dict[str, Any]:
    """The facts of a spies' meeting, of the first name of each of its three messages."""
    pool = load_words("spy_meeting")
    entries = {kind: next(entry for entry in pool[kind] if name in entry["names"]) for kind, name in means.items()}
    return {
        "accepted": [[*entry["names"], *entry["also"]] for entry in entries.values()],
        "foreign": [entry["names"] for kind, meant in entries.items() for entry in pool[kind] if entry is not meant],
    }


def graded(name: str, reply: Reply) -> Grade:
    answer, *watched = (Exchange(at, reply.question, text, asks=at == 0) for at, text in enumerate(reply.texts))
    return make_scenario(name, {}).grade(reply.facts, Record((answer,), watched))


@cache
def grades(name: str) -> list[tuple[Reply, Grade]]:
    return [(reply, graded(name, reply)) for reply in replies(name)]


def right(reply: Reply, grade: Grade) -> bool:
    return grade.score is not None and abs(grade.score - reply.score) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_a_grader_agrees_with_a_careful_person(name: str) -> None:
    scored = [(reply, grade) for reply, grade in grades(name) if grade.score is not None]
    differ = [
        f"{reply.score:.3g}, graded {grade.score:.3g} ({grade.reason}): {reply.texts}" for reply, grade in scored if not right(reply, grade)
    ]
    print(*differ, sep="\n")
    assert len(grades(name)) >= 25
    assert 1 - len(differ) / len(scored) >= LEAST, "\n".join(differ)
    assert 1 - len(scored) / len(grades(name)) <= MOST_LEFT


def test_graders_agree_with_a_careful_person_over_all() -> None:
    every = [(reply, grade) for name in NAMES for reply, grade in grades(name) if grade.score is not None]
    assert sum(right(reply, grade) for reply, grade in every) / len(every) >= LEAST_OF_ALL


DOCS = Path(__file__).parents[2] / "docs" / "reference" / "comparability.md"


def test_the_docs_tell_how_far_graders_and_people_agree() -> None:
    told = {
        name: (int(count), float(share))
        for name, count, share in re.findall(r"^\| (\w+) \| (\d+) \| [\d.]+% \| ([\d.]+)% \| \d+ \|", DOCS.read_text("utf-8"), re.MULTILINE)
    }
    known = {name: [right(*each) for each in grades(name)] for name in NAMES}
    known["all"] = [each for name in NAMES for each in known[name]]
    assert told == {name: (len(each), round(100 * sum(each) / len(each), 1)) for name, each in known.items()}
