"""Types of the JSON that commands print, unless a model of the package describes it. `scripts/output_schema.py` turns them into schemas."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict  # before Python 3.12, pydantic does not accept the one from `typing`

__all__ = [
    "AskedAgain",
    "AskedPrompt",
    "Checked",
    "ComparedGroup",
    "ListedAgent",
    "ListedFormat",
    "ListedMemory",
    "ListedOption",
    "ListedRun",
    "ListedScenario",
    "ListedSuite",
    "ShownTurn",
    "UnreadableRun",
]


class CheckedFinding(TypedDict):
    check: str
    verdict: Literal["good", "note", "bad"]
    what: str


class Checked(TypedDict):
    agent: str
    ready: bool
    findings: list[CheckedFinding]


class ComparedGroup(TypedDict):
    """Runs that play the same tests. `rows` has the applicable columns of the CSV."""

    group: str
    agents: list[str]
    runs: int
    left_out: list[str]
    verdicts: list[str]
    rows: list[dict[str, Any]]
    notes: list[str]


class FoundMemory(TypedDict):
    rank: int
    text: str
    turns: list[int]
    needed: bool


class ShownTurn(TypedDict):
    turn: int
    test: str | None
    kinds: list[str]
    sent_at: str
    text: str
    reply: str | None
    asked: bool
    ideal: str | None
    found: list[FoundMemory]


class AskedMessage(TypedDict):
    role: str
    text: str


AskedPrompt = TypedDict("AskedPrompt", {"model": str, "for": str, "messages": list[AskedMessage]})


class RecordedReply(TypedDict):
    text: str
    trace: dict[str, Any] | None


class NewReply(TypedDict):
    agent: str
    text: str
    trace: dict[str, Any] | None
    cost_usd: dict[str, float | None] | None


class Agreement(TypedDict):
    words: bool
    score: bool | None


class BothGrades(TypedDict):
    recorded: dict[str, Any]
    again: dict[str, Any]


class AskedAgain(TypedDict):
    conversation: str
    turn: int
    test: str | None
    text: str
    expected: str | None
    recorded: RecordedReply | None
    again: NewReply
    agree: Agreement
    grades: BothGrades | None
    prompts: list[AskedPrompt]


class ListedScenario(TypedDict):
    scenario: str
    skills: list[str]
    parameters: dict[str, str]
    description: str


class ListedAgent(TypedDict):
    agent: str
    description: str


class ListedOption(TypedDict):
    option: str
    default: Any
    meaning: str


class ListedMemory(TypedDict):
    memory: str
    needs: str
    installed: str
    description: str


class ListedFormat(TypedDict):
    format: str
    description: str
    smallest_form: str


class ListedSuite(TypedDict):
    suite: str
    tests_per_scenario: int
    scenarios: list[str]
    description: str


class ListedRun(TypedDict):
    folder: str
    suite: str
    scenarios: list[str]
    span: int | None
    agent: str
    label: str | None
    seed: int
    created: str | None
    finished: bool
    score: float | None
    max_score: int | None
    cost_usd: float | None


class UnreadableRun(TypedDict):
    folder: str
    unreadable: str
