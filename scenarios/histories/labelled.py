"""Released answers with verdicts as labels for `longspan calibrate`: question, gold answer, reply and verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories import locomo_answers, longmemeval_answers
from longspan.scenarios.histories.sources import Source, near
from longspan.scenarios.histories.verdicts import Answer, Released, collect
from longspan.simulator.base.errors import InputError
from longspan.simulator.judging.labels import Row, read_rows

__all__ = ["locomo_rows", "longmemeval_rows"]

LOCOMO: Final = "locomo10.json"


def locomo_rows(paths: Sequence[Path], columns: Sequence[str]) -> list[Row]:
    """Return the rows of files of labels and of released answers to LoCoMo's questions. Adversarial ones are left out.

    Most of the files contain the questions; otherwise they come from LoCoMo's own: among the paths, beside them, or in the folder above.
    Raises InputError.
    """
    values = _values(paths)
    own = next((each for each in values.values() if locomo_answers.is_gold(each[1])), None) or near(paths, LOCOMO)
    gold = locomo_answers.read_gold(*own) if own else None

    def released(name: str, source: Source, value: Any) -> Released | None:
        found = locomo_answers.read_answers(name, source, value, gold)
        return found and found._replace(answers=[_asked(answer, gold) for answer in found.answers if not answer.adversarial])

    def is_else(value: Any) -> bool:
        return locomo_answers.is_gold(value) or locomo_answers.is_audit(value)

    return list(_rows(values, columns, released, is_else, f"name {LOCOMO} too"))


def _asked(answer: Answer, gold: locomo_answers.Gold | None) -> Answer:
    """Return an answer with its question, taken from LoCoMo's own file if the answer's file lacks it."""
    conversation, _, number = answer.question.partition("/")
    if gold is None or (answer.text and answer.gold) or not number.isdecimal():
        return answer
    with suppress(IndexError):  # LoCoMo's file has no such question
        text, reference, _ = gold.conversations[int(conversation)][int(number)]
        return answer._replace(text=answer.text or text, gold=answer.gold or reference or "")
    return answer


def longmemeval_rows(paths: Sequence[Path], columns: Sequence[str]) -> list[Row]:
    """Return the rows of files of labels and of released answers to LongMemEval's questions, which a file among the paths has.

    Raises InputError.
    """
    values = _values(paths)
    asked: dict[str, longmemeval_answers.GoldQuestion] = {}
    for _, value in values.values():
        asked |= longmemeval_answers.questions_in(value)

    def released(name: str, source: Source, value: Any) -> Released | None:
        found = longmemeval_answers.read_answers(name, source.where, value, asked)
        kinds = {id: each.kind for id, each in asked.items()}
        return found and found._replace(answers=[each._replace(kind=kinds.get(each.question, each.kind)) for each in found.answers])

    return list(_rows(values, columns, released, longmemeval_answers.questions_in, "name a file with the questions too"))


def _values(paths: Sequence[Path]) -> dict[str, tuple[Source, Any]]:
    """Return the files at the paths with their JSON values, or None where they are something else."""
    found: dict[str, tuple[Source, Any]] = {}
    for name, source in collect(paths).items():
        found[name] = (source, None)
        with suppress(InputError):
            found[name] = (source, longmemeval_answers.value_of(source))
    return found


def _rows(
    values: Mapping[str, tuple[Source, Any]],
    columns: Sequence[str],
    released: Callable[[str, Source, Any], Released | None],
    is_else: Callable[[Any], object],
    remedy: str,
) -> Iterator[Row]:
    for name, (source, value) in values.items():
        found = released(name, source, value)
        if found is not None:
            yield from _labels(source.where, found.answers, columns, remedy)
        elif not is_else(value):
            yield from read_rows(Path(source.where), [*columns, "label"])


def _labels(where: str, answers: Iterable[Answer], columns: Sequence[str], remedy: str) -> Iterator[Row]:
    """Yield a row for each verdict on each answer. A question asked twice and answered alike is labelled once."""
    seen: set[tuple[str, ...]] = set()
    for answer in answers:
        if not answer.text or not answer.gold:
            raise InputError(f"{where}: does not say what question {answer.question!r:.80} asks, or its gold answer; {remedy}")
        values = {"kind": answer.kind, "question": answer.text, "reference": answer.gold, "response": answer.reply}
        for judge, verdict in answer.verdicts.items():
            key = (answer.text, answer.gold, answer.reply, judge)
            if key not in seen:
                seen.add(key)
                row = Row({column: values[column] for column in columns} | {"label": float(verdict), "annotator": f"{where}: {judge}"})
                row.where = f"{where}, question {answer.question!r:.80}"
                yield row
