"""Reproduce the figures of Counting-Stars from the raw output files that its authors published: JSON lines, plain or gzip."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.counting_stars.answers import StarMark, mark_stars, read_numbers
from longspan.scenarios.counting_stars.tables import star_tables
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import read_packed
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item, Marked
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

PAPER: Final = "counting-stars"

TABLE1: Final[Mapping[tuple[str, str], float]] = {
    ("gpt4", "32-16"): 0.979,
    ("gpt4", "16-32"): 0.965,
    ("gpt4", "32-32"): 0.968,
    ("gpt4", "64-32"): 0.897,
    ("kimi", "32-16"): 0.846,
    ("kimi", "16-32"): 0.988,
    ("kimi", "32-32"): 0.864,
    ("kimi", "64-32"): 0.931,
}
"""The paper's printed figures for the sky that its files call `stone`, by model and variant (Table 1)."""

MODELS: Final = {"moonshot": "kimi", "gpt-4": "gpt4"}
"""Prefixes of the models' names in the files."""

CHARACTERS_A_TOKEN: Final = 0.725
"""Characters per token of the novel that the files call `stone`, by the authors' ratio. With it, the files have 4k, 8k ... 128k tokens."""

SUFFIXES: Final = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")
LARGEST: Final = 512 * 1024 * 1024
"""Maximum size of a file in bytes, unpacked."""


@final
class _Answer(NamedTuple):
    """A line of a file: the text's length as the file gives it, its stars, the reply, and the model ("" if not named)."""

    size: int
    right: tuple[int, ...]
    reply: str
    model: str


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Grade the answers in raw output files (files, or folders with them) again, by membership and slot by slot.

    The published figures are for membership. The cells belong to the table `raw`, with a row for each file. `rules` have no effect.
    Raises InputError for files in another format.
    """
    files = {name: _answers(path) for name, path in _name_files([file for path in paths for file in _files(path)]).items()}
    marked = {
        name: [_mark_line(number, answer, _context(name, answer)) for number, answer in enumerate(answers, 1)]
        for name, answers in files.items()
    }
    cells: list[Cell] = []
    for name, tests in marked.items():
        items = [item for test in tests for item in test.items]
        for column in ("membership", "slot"):
            ours = round(fmean(item.numbers[column] for item in items), 6)
            published = _printed_figure(name, files[name]) if column == "membership" else None
            cells.append(Cell(paper=PAPER, table="raw", row=name, column=column, ours=ours, published=published, n=len(items)))
    shown = {f"{model} ({name})" if (model := files[name][0].model) else name: tests for name, tests in marked.items()}
    return Reproduction(cells=cells, tables=[_raw_table(marked, cells), *star_tables(shown)])


def _context(name: str, answer: _Answer) -> int:
    """Return a sample's length in tokens if the paper gives a ratio for its sky, otherwise as stated in the file."""
    return round(answer.size / CHARACTERS_A_TOKEN) if name.rpartition("/")[2].startswith("stone_") else answer.size


def _mark_line(number: int, answer: _Answer, context: int) -> Marked:
    stars = mark_stars(answer.right, None, read_numbers(answer.reply))
    items = tuple(_item(at, answer, mark, context) for at, mark in enumerate(stars))
    return Marked(f"line {number}", fmean(mark.membership for mark in stars), items)


def _item(at: int, answer: _Answer, mark: StarMark, context: int) -> Item:
    numbers = {"star": at + 1, "stars": len(answer.right), "context": context, "membership": mark.membership, "slot": mark.slot}
    return Item(name=f"star {at + 1}", score=mark.membership, labels={"context": f"{context:,}"}, numbers=numbers)


def _printed_figure(name: str, answers: Sequence[_Answer]) -> float | None:
    """Return the figure in the paper's Table 1 if the file is one of those behind it."""
    if not re.match(r"stone_[a-z0-9]+_\d+_\d+\.", name.rpartition("/")[2]):
        return None
    model = next((short for begin, short in MODELS.items() if answers[0].model.startswith(begin)), "")
    return TABLE1.get((model, f"{len(answers[0].right)}-{len(answers)}"))


def _raw_table(marked: Mapping[str, Sequence[Marked]], cells: Sequence[Cell]) -> Table:
    rows = []
    for name, tests in marked.items():
        member, slot = (cell for cell in cells if cell.row == name)
        items = [item for test in tests for item in test.items]
        found = sum(item.numbers["membership"] == 1 for item in items)
        printed = f"{member.published:.3f}" if member.published is not None else "not printed"
        rows.append([name, f"{len(tests)}", f"{found}/{len(items)}", f"{member.ours:.3f}", printed, f"{slot.ours:.3f}"])
    columns = ["file", "texts", "stars found", "membership", "printed", "slot by slot"]
    return Table(title="Raw output files", columns=columns, rows=rows)


# ---- files


def _name_files(files: Sequence[Path]) -> dict[str, Path]:
    """Return the files by name, or by path if two have the same name."""
    resolved = list(dict.fromkeys(files))
    names = [file.name for file in resolved]
    return {str(file) if names.count(file.name) > 1 else file.name: file for file in resolved}


def _files(path: Path) -> list[Path]:
    """Return the file itself, or the raw output files in a folder; other files there are ignored."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.name.endswith(SUFFIXES) and file.is_file() and _is_raw(file)]
    if not files:
        raise InputError(f"{path}: no raw output of Counting-Stars found; expected JSON lines with answer and reference_counting_results")
    return files


def _is_raw(path: Path) -> bool:
    with suppress(InputError):
        return next(_lines(path), (0, {}))[1].keys() >= {"answer", "reference_counting_results"}
    return False


def _answers(path: Path) -> list[_Answer]:
    answers = [_answer(path, number, line) for number, line in _lines(path)]
    if not answers:
        raise InputError(f"{path}: the file is empty; expected JSON lines")
    return answers


def _answer(path: Path, number: int, line: Mapping[str, Any]) -> _Answer:
    where = f"{path}, line {number}"
    right = line.get("reference_counting_results")
    if not (isinstance(right, list) and right and all(type(count) is int for count in right)):
        raise InputError(f"{where}: reference_counting_results must be a list of whole numbers")
    size = line.get("sky_size", line.get("context_size", number))
    if type(size) is not int or not 0 <= size < LARGEST:
        raise InputError(f"{where}: sky_size must be a whole number")
    if "answer" not in line:
        raise InputError(f"{where}: answer is missing; a file of questions has none, give the raw output")
    reply, model = line["answer"], line.get("model_name")
    return _Answer(size, tuple(right), reply if isinstance(reply, str) else "", model if isinstance(model, str) else "")


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines, with their line numbers."""
    for number, line in enumerate(BytesIO(read_packed(path, LARGEST)), 1):
        if line.strip():
            yield number, _object(path, number, line)


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}, line {number}: not a JSON object; raw output has one on each line")
    return found
