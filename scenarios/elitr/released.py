"""Collect marks from released files and from runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.elitr.files import LARGEST, Question, Sheet, Split
from longspan.scenarios.elitr.marks import Mark, Sitting
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import read_packed
from longspan.simulator.base.files.folders import check_file

__all__ = ["JUDGES", "find_rewordings", "marks_in_run", "marks_of", "runs_in"]

JUDGES: Final = {
    "gpt-4-eval": "GPT-4",
    "prometheus-eval": "Prometheus",
    "gold-human-eval": "Gold Human",
    "silver-human-eval": "Silver Human",
}
"""Judges of the released scores: their names in the files and in the paper's tables."""


MANIFEST: Final = "manifest.json"

_SEED: Final = re.compile(r"([?&])seed=(\d+)(?:&|$)")
"""An agent's own seed. With another seed it is another sitting of the same agent."""


@final
class _Answers(NamedTuple):
    """A model's answers in a file, one for each question, by meeting and question."""

    sheet: Sheet
    model: str
    by_question: dict[tuple[str, str], tuple[Question, str, dict[str, float | None]]]

    def same(self, other: _Answers) -> bool:
        """Return whether both have the same answers and, where both have scores, the same scores. One file then repeats the other."""
        if (self.sheet.setting, self.sheet.mode, self.sheet.split) != (other.sheet.setting, other.sheet.mode, other.sheet.split):
            return False
        if self.model != other.model or self.by_question.keys() != other.by_question.keys():
            return False
        pairs = ((mine, other.by_question[key]) for key, mine in self.by_question.items())
        return all(a[1] == b[1] and all(a[2][judge] == b[2][judge] for judge in a[2].keys() & b[2].keys()) for a, b in pairs)


def find_rewordings(sheets: Iterable[Sheet]) -> set[tuple[Split, str, str]]:
    """Return the questions (split, meeting, id) that qa and conv word differently, as far as the sheets have both."""
    asked: dict[tuple[Split, str, str], dict[str, str]] = {}
    for sheet in sheets:
        for meeting in sheet.meetings:
            for question in meeting.questions:
                asked.setdefault((sheet.split, meeting.id, question.id), {})[sheet.setting] = question.question.strip()
    return {key for key, wordings in asked.items() if len(set(wordings.values())) > 1}


def marks_of(sheets: Sequence[Sheet]) -> list[Mark]:
    """Return the marks of all answers in some sheets.

    A model that answers a question several times, in one sheet or in several, has several sittings. If one sheet repeats
    another, their scores are merged instead.
    """
    sittings: list[_Answers] = []
    for answers in (answers for sheet in sheets for answers in _answers(sheet)):
        if twin := next((other for other in sittings if answers.same(other)), None):
            for key, (_, _, scores) in answers.by_question.items():
                twin.by_question[key][2].update(scores)
        else:
            sittings.append(answers)
    differ = find_rewordings(sheets)
    counted: Counter[tuple[Any, ...]] = Counter()
    marks = []
    for answers in sittings:
        place = (answers.model, answers.sheet.setting, answers.sheet.mode or "single", answers.sheet.split)
        counted[place] += 1
        sitting = Sitting(*place, seed=str(counted[place]))
        for (meeting, id), (question, _, scores) in answers.by_question.items():
            points = {JUDGES.get(judge, judge): score for judge, score in scores.items()}
            differs = (sitting.split, meeting, id) in differ
            marks.append(Mark(sitting, meeting, id, question.type, question.place, points, differs))
    return marks


def _answers(sheet: Sheet) -> Iterator[_Answers]:
    """Yield each model's answers in a sheet: the first to each question, then the second, and so on."""
    sittings: dict[tuple[str, int], _Answers] = {}
    for meeting in sheet.meetings:
        for question in meeting.questions:
            times: Counter[str] = Counter()
            for response in question.responses:
                key = (response.model, times[response.model])
                times[response.model] += 1
                answers = sittings.setdefault(key, _Answers(sheet, response.model, {}))
                answers.by_question[meeting.id, question.id] = (question, response.text, dict(response.scores))
    yield from sittings.values()


def runs_in(path: Path) -> list[Path]:
    """Return the run at a path, or the runs in a folder; empty for anything else."""
    if (path / MANIFEST).exists():
        return [path]
    return sorted(manifest.parent for manifest in path.glob(f"*/{MANIFEST}")) if path.is_dir() else []


def marks_in_run(folder: Path) -> list[Mark]:
    """Return the marks of a run from its results: by agent, seed, and the labels of its items. Raises InputError."""
    path = folder / "result.json"
    check_file(path)
    try:
        result = json.loads(read_packed(path, LARGEST))
        marks = [mark for test in result["tests"] if test["scenario"] == "elitr" for mark in _items(result, test)]
    except (ValueError, RecursionError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"{path}: not the results of a run of elitr; `longspan score` makes them again") from error
    if not marks:
        raise InputError(f"{folder}: none of its tests asked questions of elitr; make such a run with `longspan run elitr`")
    return marks


def _items(result: Any, test: Any) -> Iterator[Mark]:
    for item in test["items"]:
        labels, numbers = item["labels"], item["numbers"]
        agent = str(result["agent"])
        own = _SEED.search(agent)
        seed = f"{result['seed']}{f', {own[2]}' if own else ''}"
        sitting = Sitting(_SEED.sub(r"\1", agent).rstrip("?&"), labels["setting"], labels["mode"], labels["split"], seed)
        points = float(numbers["points"]) if item["score"] is not None else None
        known = {"type": labels["type"], "place": labels["position"], "differs": labels["differs"] == "yes"}
        yield Mark(sitting, labels["meeting"], labels["question"], points={labels["judge"]: points}, **known)
