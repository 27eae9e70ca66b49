"""Scoring a run: its journals are graded, and the grades, the results and the report are written into its folder."""

from __future__ import annotations

from typing import Any

from longspan.simulator.errors import JournalError
from longspan.simulator.files import write_json
from longspan.simulator.grading.grades import Result, TestResult, grade_run
from longspan.simulator.report import Reading, write_report
from longspan.simulator.run_folder import RunFolder

__all__ = ["score"]


def score(run: RunFolder) -> Result:
    """Grade a run from its journals and write result.json, report.html and, where a grade is new, a round of grades.jsonl.

    Earlier rounds are kept. Raises JournalError for a journal that is damaged or a disk that refuses.
    """
    reading = Reading(run)
    result = grade_run(run, reading.heard)
    known = run.grades()
    latest = {str(entry.get("id")): {key: value for key, value in entry.items() if key != "round"} for entry in known}
    grades = [_grade_line(test) for test in result.tests]
    if any(latest.get(line["id"]) != line for line in grades):
        number = max((each for entry in known if isinstance(each := entry.get("round"), int)), default=0) + 1
        run.add_grades([{"round": number} | line for line in grades])
    try:
        write_json(run.path / "result.json", result)
        write_report(run, result, reading)
    except OSError as error:
        raise JournalError(f"{run.path}: the results cannot be written: {error.strerror}; `longspan score` writes them again") from error
    return result


def _grade_line(test: TestResult) -> dict[str, Any]:
    line: dict[str, Any] = test.model_dump(mode="json", include={"id", "conversation", "status", "machine_score", "reason", "turns"})
    return line
