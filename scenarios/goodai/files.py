"""Read GoodAI's files, identified by content: recorded results (JSON lines, or a folder of JSON files) and the cost of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, NamedTuple, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.file_io import MAX_BYTES, parse_json, read_packed

__all__ = ["LoggedTurn", "RunStats", "TestRecord", "json_lines", "read_records", "run_stats"]

_SAID = re.compile(r"\s*(Test|System|Agent) \(([^()\n]{1,40})\): ?", re.IGNORECASE)


class LoggedTurn(NamedTuple):
    """A turn of a task log: a message of the test's conversation and the reply to it ("" if the log ends before it)."""

    text: str
    reply: str


@final
class TestRecord(BaseModel):
    """A recorded test: its lines, and the replies that GoodAI's benchmark expected and the score it gave.

    `score` of `max_score` is the published score; `auto_score` is the machine's, if a person corrected it. `tokens` of the
    conversation include the message that ends the test. Entries of `task_log` are "Test (TIME): ...", "System (TIME): ..."
    (filler) and "Agent (TIME): ...".
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    benchmark: str = ""
    agent: str
    dataset: str
    example: Annotated[str, BeforeValidator(str)]
    task_log: list[str]
    expected_responses: list[Any]
    actual_responses: list[Any]
    reasoning: list[Any] | str = ""
    score: float = Field(allow_inf_nan=False)
    max_score: float = Field(gt=0, allow_inf_nan=False)
    auto_score: float | None = Field(default=None, allow_inf_nan=False)
    tokens: int = 0

    @property
    def share(self) -> float:
        """The recorded score in [0, 1]: a shopping list that repeats items may have been given more, and a grade ends at 1."""
        return min(1.0, self.points)

    @property
    def points(self) -> float:
        """The recorded score as a share of the greatest, which it may exceed. The paper's sums are made of these shares."""
        return self.score / self.max_score

    @property
    def auto_share(self) -> float:
        """The machine's score in [0, 1]: the recorded one unless a person corrected it."""
        return self.share if self.auto_score is None else min(1.0, self.auto_score / self.max_score)

    @property
    def why(self) -> str:
        """The recorded reason, in one line."""
        reasons = [self.reasoning] if isinstance(self.reasoning, str) else [str(reason) for reason in self.reasoning]
        return " ".join("; ".join(reasons).split())

    @property
    def said(self) -> list[LoggedTurn]:
        """The turns of the conversation in the task log."""
        turns: list[LoggedTurn] = []
        for entry in self.task_log:
            match = _SAID.match(entry)
            text = entry[match.end() :] if match else entry
            if match and match[1].casefold() != "agent":
                turns.append(LoggedTurn(text, ""))
            elif match and turns:
                turns[-1] = LoggedTurn(turns[-1].text, turns[-1].reply + text)
        return turns


@final
class RunStats(BaseModel):
    """The cost of a run of GoodAI's benchmark, in dollars and seconds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    agent_costs_usd: float
    managing_costs_usd: float = 0.0
    duration: float
    total_tokens: int = 0


def read_records(paths: Sequence[Path]) -> list[TestRecord]:
    """Return the recorded tests in files of JSON lines (plain or gzip) and in folders of results, in order, each once.

    Folders are searched for files, and other files in them are skipped. Raises InputError for a path without recorded tests, a file
    given by name that contains anything else, and a damaged file.
    """
    tests: dict[tuple[str, str, str, str], TestRecord] = {}
    for path in paths:
        records = list(_in_folder(path) if path.is_dir() else _in_file(path))
        if not records and not (path.is_dir() and run_stats([path])):
            raise InputError(f"{path}: no recorded tests found; expected JSON lines with agent, dataset, task_log and score")
        tests |= {(test.benchmark, test.agent, test.dataset, test.example): test for test in records}
    return list(tests.values())


def run_stats(paths: Iterable[Path]) -> dict[tuple[str, str], RunStats]:
    """Return the run statistics in the folders among `paths`, by benchmark and agent, which the files' paths name."""
    found = {}
    for folder in paths:
        for path in sorted(folder.rglob("runstats.json")) if folder.is_dir() else ():
            try:
                stats = RunStats.model_validate_json(read_packed(path, MAX_BYTES))
            except ValidationError as error:
                raise InputError(f"{path}: not the statistics of a run: {first_problem(error)}") from None
            found[_benchmark(path.resolve().parent), path.resolve().parent.name] = stats
    return found


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a file's lines, with the line numbers. Raises InputError for an invalid line."""
    for number, line in enumerate(BytesIO(read_packed(path, MAX_BYTES)), 1):
        if line.strip():
            yield number, parse_json(line, f"{path}, line {number}")


def _in_file(path: Path) -> Iterator[TestRecord]:
    """Yield the tests of a file with one JSON object, or one on each line."""
    try:
        whole = json.loads(read_packed(path, MAX_BYTES))
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        yield _record(path, "", whole)
        return
    for number, value in json_lines(path):
        yield _record(path, f", line {number}", value)


def _in_folder(folder: Path) -> Iterator[TestRecord]:
    """Yield the tests in the folder's files: JSON objects with a task log."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        try:
            if b'"task_log"' in read_packed(path, MAX_BYTES):
                yield from _in_file(path)
        except InputError:
            if path.name.partition(".")[2] in ("json", "jsonl", "json.gz", "jsonl.gz"):
                raise


def _record(path: Path, where: str, value: Any) -> TestRecord:
    """Return a recorded test. In a results folder (BENCHMARK/results/AGENT/DATASET/EXAMPLE_0.json) its path identifies it."""
    place = path.resolve()
    known = {
        "benchmark": _benchmark(place.parent.parent),
        "agent": place.parent.parent.name,
        "dataset": place.parent.name,
        "example": place.name.partition(".")[0].rpartition("_")[0] or place.name.partition(".")[0],
    }
    try:
        return TestRecord.model_validate((known if not where else {}) | value if isinstance(value, dict) else value)
    except ValidationError as error:
        raise InputError(f"{path}{where}: not a recorded test: {first_problem(error)}") from None


def _benchmark(agent: Path) -> str:
    """Return the benchmark of an agent's folder: BENCHMARK/results/AGENT or BENCHMARK/AGENT."""
    above = agent.parent
    return above.parent.name if above.name == "results" else above.name
