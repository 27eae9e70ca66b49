"""TriviaQA as a source of filler, as in the LTM benchmark (GoodAI, section 3.1 and figure 4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import MAX_BYTES, read_packed
from longspan.simulator.filler.filler import Pair

__all__ = ["Trivia"]

REMEDY: Final = "use one of TriviaQA's question files with answers, as JSON or .gz"


@final
class Trivia:
    """The questions of a TriviaQA file in an order that depends on the seed. After the last one, they repeat in another order.

    `path` is JSON, plain or gzipped: `{"Data": [{"Question": ..., "Answer": {"Value": ...}}, ...]}` as published, or with
    `"AnswerValue": ...` in place of the answer. Line breaks and control characters become spaces.

    Raises InputError if the file cannot be read, is not JSON, or has an entry without a question or an answer.
    """

    def __init__(self, path: str | Path, *, seed: int | str = 0) -> None:
        self._seed = seed
        self._pairs = _pairs(Path(path))

    def __len__(self) -> int:
        """The number of questions in the file."""
        return len(self._pairs)

    def reseed(self, seed: str) -> Trivia:
        again = copy(self)
        again._seed = seed
        return again

    def pairs(self) -> Iterator[Pair]:
        for repetition in count():
            order = list(range(len(self._pairs)))
            Random(f"{self._seed}/{repetition}").shuffle(order)
            yield from (self._pairs[place] for place in order)

    def chat(self) -> Iterator[Pair]:
        return iter(())


def _pairs(path: Path) -> list[Pair]:
    data = _read(path)
    entries = data.get("Data") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise InputError(f'{path}: no list "Data" at the top: {REMEDY}')
    if not entries:
        raise InputError(f'{path}: "Data" is empty: {REMEDY}')
    return [_pair(entry, f"{path}: Data[{place}]") for place, entry in enumerate(entries)]


def _read(path: Path) -> Any:
    """Return the content of the JSON file."""
    try:
        return json.loads(read_packed(path, MAX_BYTES, REMEDY).decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}, column {error.colno}: not JSON ({error.msg}): {REMEDY}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8: {REMEDY}") from error
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply: {REMEDY}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON (a number has thousands of digits): {REMEDY}") from error


def _pair(entry: Any, place: str) -> Pair:
    """Return an entry's question and answer."""
    if not isinstance(entry, dict):
        raise InputError(f"{place}: not an object: {REMEDY}")
    answer = entry.get("AnswerValue")
    if answer is None and isinstance(entry.get("Answer"), dict):
        answer = entry["Answer"].get("Value")
    return _text(entry.get("Question"), f"{place}: no question"), _text(answer, f"{place}: no answer")


def _text(value: Any, missing: str) -> str:
    """Return `value` as one line, without control characters and lone surrogates."""
    text = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", value).split()) if isinstance(value, str) else ""
    if not text:
        raise InputError(f"{missing}: {REMEDY}")
    return text
