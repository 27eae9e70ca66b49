"""From released files, and from runs of ours, to marks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.elitr.files import LARGEST, Question, Sheet, Split
from longspan.scenarios.elitr.marks import Mark, Sitting
from longspan.simulator.errors import InputError
from longspan.simulator.files import read_packed

__all__ = ["JUDGES", "differing", "marks_in_run", "marks_of", "runs_in"]

JUDGES: Final = {
    "gpt-4-eval": "GPT-4",
    "prometheus-eval": "Prometheus",
    "gold-human-eval": "Gold Human",
    "silver-human-eval": "Silver Human",
}
"""Who gave the released scores, as the files and as the paper's tables name them."""


MANIFEST: Final = "manifest.json"

_SEED: Final = re.compile(r"([?&])seed=\d+(?:&|$)")
"""An agent's own seed: with another it is the same agent, which sat again."""


@final
class _Answers(NamedTuple):
    """What a model answered in a file, one answer to a question, with where each belongs."""

    sheet: Sheet
    model: str
    found: dict[tuple[str, str], tuple[Question, str, dict[str, float | None]]]

    def same(self, other: _Answers) -> bool:
        """Whether both are the same answers with the same scores, as far as both have them: a file that repeats another."""
        if (self.sheet.setting, self.sheet.mode, self.sheet.split) != (other.sheet.setting, other.sheet.mode, other.sheet.split):
            return False
        if self.model != other.model or self.found.keys() != other.found.keys():
            return False
        pairs = ((mine, other.found[key]) for key, mine in self.found.items())
        return all(a[1] == b[1] and all(a[2][judge] == b[2][judge] for judge in a[2].keys() & b[2].keys()) for a, b in pairs)


def differing(sheets: Iterable[Sheet]) -> set[tuple[Split, str, str]]:
    """The questions (split, meeting, id) that qa and conv ask in other words, as far as the sheets hold both."""
    asked: dict[tuple[Split, str, str], dict[str, str]] = {}
    for sheet in sheets:
        for meeting in sheet.meetings:
            for question in meeting.questions:
                asked.setdefault((sheet.split, meeting.id, question.id), {})[sheet.setting] = question.question.strip()
    return {key for key, wordings in asked.items() if len(set(wordings.values())) > 1}


def marks_of(sheets: Sequence[Sheet]) -> list[Mark]:
    """The marks of all answers in some sheets. A model that answers a question several times, in a sheet or in several, sat
    several times, unless one sheet repeats another: then their scores are put together."""
    sittings: list[_Answers] = []
    for each in (answers for sheet in sheets for answers in _answers(sheet)):
        if twin := next((other for other in sittings if each.same(other)), None):
            for key, (_, _, scores) in each.found.items():
                twin.found[key][2].update(scores)
        else:
            sittings.append(each)
    differ = differing(sheets)
    counted: Counter[tuple[Any, ...]] = Counter()
    found = []
    for each in sittings:
        place = (each.model, each.sheet.setting, each.sheet.mode or "single", each.sheet.split)
        counted[place] += 1
        sitting = Sitting(*place, seed=str(counted[place]))
        for (meeting, id), (question, _, scores) in each.found.items():
            points = {JUDGES.get(judge, judge): score for judge, score in scores.items()}
            odd = (sitting.split, meeting, id) in differ
            found.append(Mark(sitting, meeting, id, question.type, question.place, points, odd))
    return found


def _answers(sheet: Sheet) -> Iterator[_Answers]:
    """Each model's answers in a sheet: the first to each question, then the second, and so on."""
    sat: dict[tuple[str, int], _Answers] = {}
    for meeting in sheet.meetings:
        for question in meeting.questions:
            times: Counter[str] = Counter()
            for response in question.responses:
                key = (response.model, times[response.model])
                times[response.model] += 1
                answers = sat.setdefault(key, _Answers(sheet, response.model, {}))
                answers.found[meeting.id, question.id] = (question, response.text, dict(response.scores))
    yield from sat.values()


def runs_in(path: Path) -> list[Path]:
    """The run that a path is, or the runs in the folder that it is; none where it is neither."""
    if (path / MANIFEST).exists():
        return [path]
    return sorted(each.parent for each in path.glob(f"*/{MANIFEST}")) if path.is_dir() else []


def marks_in_run(folder: Path) -> list[Mark]:
    """The marks of a run of ours, from its results: by its agent, its seed, and the labels of its items. Raises InputError."""
    path = folder / "result.json"
    try:
        result = json.loads(read_packed(path, LARGEST))
        marks = [mark for test in result["tests"] if test["scenario"] == "elitr" for mark in _items(result, test)]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not the results of a run of elitr; `longspan score` makes them again") from error
    if not marks:
        raise InputError(f"{folder}: none of its tests asked questions of elitr; `longspan run elitr` makes such a run")
    return marks


def _items(result: Any, test: Any) -> Iterator[Mark]:
    for item in test["items"]:
        labels, numbers = item["labels"], item["numbers"]
        model = _SEED.sub(r"\1", str(result["agent"])).rstrip("?&")
        sitting = Sitting(model, labels["setting"], labels["mode"], labels["split"], str(result["seed"]))
        points = float(numbers["points"]) if item["score"] is not None else None
        known = {"type": labels["type"], "place": labels["position"], "differs": labels["differs"] == "yes"}
        yield Mark(sitting, labels["meeting"], labels["question"], points={labels["judge"]: points}, **known)
