"""Convert released answers with verdicts to labels for `longspan calibrate`: question, gold answer, reply and verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories import locomo_answers, longmemeval_answers
from longspan.scenarios.histories.data_files import Source, find_near
from longspan.scenarios.histories.released_answers import ReleasedAnswer, ReleasedFile, collect_files
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.labels import Row, read_rows

__all__ = ["locomo_rows", "longmemeval_rows"]

LOCOMO: Final = "locomo10.json"


def locomo_rows(paths: Sequence[Path], columns: Sequence[str]) -> list[Row]:
    """Return rows from files of labels and of released answers to LoCoMo's questions, without adversarial ones.

    Most files contain the questions. Otherwise they are read from LoCoMo's own file: among the paths, in the same folder, or in its
    parent. Raises InputError.
    """
    values = _values(paths)
    own = next((each for each in values.values() if locomo_answers.is_gold(each[1])), None) or find_near(paths, LOCOMO)
    gold = locomo_answers.read_gold(*own) if own else None

    def released(name: str, source: Source, value: Any) -> ReleasedFile | None:
        found = locomo_answers.read_answers(name, source, value, gold)
        return found and found._replace(answers=[_add_question(answer, gold) for answer in found.answers if not answer.adversarial])

    def is_else(value: Any) -> bool:
        return locomo_answers.is_gold(value) or locomo_answers.is_audit(value)

    return list(_rows(values, columns, released, is_else, f"name {LOCOMO} too"))


def _add_question(answer: ReleasedAnswer, gold: locomo_answers.Gold | None) -> ReleasedAnswer:
    """Return an answer with its question, read from LoCoMo's own file if the answer's file lacks it."""
    conversation, _, number = answer.question.partition("/")
    if gold is None or (answer.text and answer.gold) or not number.isdecimal():
        return answer
    with suppress(IndexError):  # LoCoMo's file has no such question
        text, reference, _ = gold.conversations[int(conversation)][int(number)]
        return answer._replace(text=answer.text or text, gold=answer.gold or reference or "")
    return answer


def longmemeval_rows(paths: Sequence[Path], columns: Sequence[str]) -> list[Row]:
    """Return rows from files of labels and of released answers to LongMemEval's questions. One of the paths must contain the questions.

    Raises InputError.
    """
    values = _values(paths)
    asked: dict[str, longmemeval_answers.GoldQuestion] = {}
    for _, value in values.values():
        asked |= longmemeval_answers.questions_in(value)

    def released(name: str, source: Source, value: Any) -> ReleasedFile | None:
        found = longmemeval_answers.read_answers(name, source.where, value, asked)
        kinds = {id: each.kind for id, each in asked.items()}
        return found and found._replace(answers=[each._replace(kind=kinds.get(each.question, each.kind)) for each in found.answers])

    return list(_rows(values, columns, released, longmemeval_answers.questions_in, "name a file with the questions too"))


def _values(paths: Sequence[Path]) -> dict[str, tuple[Source, Any]]:
    """Return the files at the paths with their JSON values, or None for files in another format."""
    found: dict[str, tuple[Source, Any]] = {}
    for name, source in collect_files(paths).items():
        found[name] = (source, None)
        with suppress(InputError):
            found[name] = (source, longmemeval_answers.value_of(source))
    return found


def _rows(
    values: Mapping[str, tuple[Source, Any]],
    columns: Sequence[str],
    released: Callable[[str, Source, Any], ReleasedFile | None],
    is_else: Callable[[Any], object],
    remedy: str,
) -> Iterator[Row]:
    for name, (source, value) in values.items():
        found = released(name, source, value)
        if found is not None:
            yield from _labels(source.where, found.answers, columns, remedy)
        elif not is_else(value):
            yield from read_rows(Path(source.where), [*columns, "label"])


def _labels(where: str, answers: Iterable[ReleasedAnswer], columns: Sequence[str], remedy: str) -> Iterator[Row]:
    """Yield a row for each verdict on each answer. Identical answers to the same question are labelled once."""
    seen: set[tuple[str, ...]] = set()
    for answer in answers:
        if not answer.text or not answer.gold:
            raise InputError(f"{where}: question {answer.question!r:.80} lacks its text or its gold answer; {remedy}")
        values = {"kind": answer.kind, "question": answer.text, "reference": answer.gold, "response": answer.reply}
        for judge, verdict in answer.verdicts.items():
            key = (answer.text, answer.gold, answer.reply, judge)
            if key not in seen:
                seen.add(key)
                row = Row({column: values[column] for column in columns} | {"label": float(verdict), "annotator": f"{where}: {judge}"})
                row.where = f"{where}, question {answer.question!r:.80}"
                yield row
