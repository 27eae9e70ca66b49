"""Released answers with the verdicts of judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.histories.data_files import Source, list_sources
from longspan.simulator.base.errors import InputError

__all__ = ["OVERALL", "ReleasedAnswer", "ReleasedFile", "check_answers", "collect_files", "unknown_form"]

OVERALL: Final = "overall"
MAX_KINDS: Final = 50
MAX_NAME: Final = 80


@final
class ReleasedAnswer(NamedTuple):
    """An answer to a question.

    `question` is an id that is the same in all files; `kind` is the file's own name. `verdicts`: whether the answer is right, by the
    name of each judgement, at least one. `text` and `gold`: the question and the gold answer, if the file contains them.
    """

    question: str
    conversation: str
    kind: str
    verdicts: Mapping[str, bool]
    reply: str
    adversarial: bool = False
    text: str = ""
    gold: str = ""

    @property
    def score(self) -> float:
        """Share of judgements that call the answer right."""
        return fmean(self.verdicts.values())

    @property
    def right(self) -> bool:
        """Whether most judgements call the answer right."""
        return 2 * sum(self.verdicts.values()) > len(self.verdicts)


@final
class ReleasedFile(NamedTuple):
    """A file's answers, and its stated or published accuracies by column."""

    name: str
    answers: Sequence[ReleasedAnswer]
    stated: Mapping[str, float]


def collect_files(paths: Sequence[Path]) -> dict[str, Source]:
    """Return the files at the paths by a unique short name. From folders and archives, only JSON files are taken."""
    found: dict[str, Source] = {}
    for path in paths:
        inside = list_sources(path)
        found |= {source.where: source for source in inside if source.name.endswith(".json") or (len(inside) == 1 and not path.is_dir())}
    names = {where: source.name.rpartition("/")[2].removesuffix(".json") for where, source in found.items()}
    counts = Counter(names.values())
    return {name if counts[name := names[where]] == 1 else where: source for where, source in found.items()}


def check_answers(where: str, answers: Iterable[ReleasedAnswer]) -> list[ReleasedAnswer]:
    """Return the answers, after checking that questions are unique and that kinds fit a table. Raises InputError."""
    kept = list(answers)
    if not kept:
        raise InputError(f"{where}: has no answers")
    twice = next((question for question, count in Counter(answer.question for answer in kept).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: question {twice!r:.80} is answered twice; keep one of them")
    kinds = {answer.kind for answer in kept}
    odd = next((kind for kind in kinds if len(kind) > MAX_NAME or not kind.isprintable()), None)
    if odd is not None or len(kinds) > MAX_KINDS:
        what = f"the category {odd!r:.80} is too long or cannot be printed" if odd is not None else f"has more than {MAX_KINDS} categories"
        raise InputError(f"{where}: {what}; pass the file with the verdicts as it was released")
    return kept


def unknown_form(source: Source, value: Any, expected: str) -> InputError:
    """Return an error for a file in none of the known formats."""
    what = f"a {type(value).__name__}" if not isinstance(value, list | dict) else f"keys {', '.join(map(repr, list(_keys(value))[:5]))}"
    return InputError(f"{source.where}: neither answers with verdicts nor gold answers: has {what:.200}; expected {expected}")


def _keys(value: Any) -> Iterable[Any]:
    return value if isinstance(value, dict) else (value[0] if value and isinstance(value[0], dict) else ())
