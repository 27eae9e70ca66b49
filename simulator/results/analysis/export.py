"""Exports of runs for other programs: as tidy tables of tests and turns, or as eval logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, get_args

from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.base.files.file_io import write_new_file, write_new_folder
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.results.analysis.inspect_log import log_writer
from longspan.simulator.results.analysis.rows import TESTS, TURNS, Row, Rows, escape_surrogates, rows_of
from longspan.simulator.results.analysis.spreadsheet import write_csv
from longspan.simulator.results.graded_runs import GradedRun, Unusable, name_runs

__all__ = ["FORMATS", "Format", "export_runs"]

Format = Literal["csv", "jsonl", "parquet", "inspect"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

Add = Callable[[Sequence[Row]], None]
Write = Callable[[GradedRun, Rows], None]


def export_runs(runs: Sequence[GradedRun], format: Format, out: Path) -> list[Unusable]:
    """Write runs to the new folder `out` in their order, and return the runs that are left out because of damaged journals.

    Writes the files `tests` and `turns` as CSV, JSON lines or Parquet, or an Inspect AI log for each run. If `out` has the format's file
    extension, it gets the tests, and a file next to it, whose name ends in `-turns`, the turns. Everything is created atomically. Raises
    InputError if `out` exists or cannot be written, or if a package is missing.
    """
    unusable: list[Unusable] = []
    called = name_runs(runs)
    with _writers(format, out) as write:
        for run in runs:
            try:
                write(run, rows_of(called[run.folder.path], run))
            except JournalError as error:
                unusable.append(Unusable(run.folder.path, str(error)))
        if len(unusable) == len(runs):
            raise InputError(f"nothing can be exported: {unusable[0].why}")
    return unusable


@contextmanager
def _writers(format: Format, out: Path) -> Iterator[Write]:
    with ExitStack() as files:
        if format != "inspect" and out.suffix.lower() == f".{format}":
            tests_file = files.enter_context(write_new_file(out))
            turns_file = files.enter_context(write_new_file(out.with_stem(f"{out.stem}-turns")))
        else:
            folder = files.enter_context(write_new_folder(out))
            if format == "inspect":
                yield log_writer(folder)
                return
            tests_file, turns_file = folder / f"tests.{format}", folder / f"turns.{format}"
        open_table = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[format]
        tests = files.enter_context(open_table(tests_file, TESTS))
        turns = files.enter_context(open_table(turns_file, TURNS))

        def write(run: GradedRun, rows: Rows) -> None:
            tests(rows.tests)
            turns(rows.turns)

        yield write


# ---- files


@contextmanager
def _csv(path: Path, columns: Mapping[str, type]) -> Iterator[Add]:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        write_csv(file, list(columns), [])
        yield lambda rows: write_csv(file, list(columns), _clean(rows, columns), head=False)


@contextmanager
def _jsonl(path: Path, columns: Mapping[str, type]) -> Iterator[Add]:
    with path.open("x", encoding="utf-8", newline="\n") as file:

        def add(rows: Sequence[Row]) -> None:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in _clean(rows, columns))

        yield add


@contextmanager
def _parquet(path: Path, columns: Mapping[str, type]) -> Iterator[Add]:
    try:
        pa: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(f"--format parquet needs an extra: {install_extra('parquet')}") from error
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(path, schema) as writer:

        def add(rows: Sequence[Row]) -> None:
            writer.write_table(pa.Table.from_pylist(list(_clean(rows, columns)), schema=schema))

        yield add


def _clean(rows: Iterable[Row], columns: Mapping[str, type]) -> Iterator[Row]:
    """Yield rows with every column in order, and with strings that can be encoded."""
    for row in rows:
        yield {name: escape_surrogates(value) if isinstance(value := row.get(name), str) else value for name in columns}
