"""Data that a model writes for a scenario in advance. No data is written while a run is played or graded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, final

from pydantic import BaseModel, ValidationError

from longspan.simulator.base.errors import InputError, StoppedError, first_problem
from longspan.simulator.base.fields import validate_options
from longspan.simulator.base.files.file_io import write_text
from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.contract.queries import Answered, Query
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.results.judging.cached_model import CachedModel, check_model
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import limit_of

__all__ = ["QUESTION_WRITERS", "WRITERS", "Asks", "Writer", "WrittenData", "find_writer", "settings_of", "write_data"]

QUESTION_WRITERS: Final = "longspan.question_writers"
"""The entry-point group of writers of questions about data. It maps a scenario's name to a `Writer`."""
WRITERS: Final = "longspan.writers"
"""The entry-point group of writers. It maps a scenario's name to a `Writer`."""


class Asks(Protocol):
    """A model whose answers are stored and reused."""

    async def ask_all(self, queries: Sequence[Query[Answered]]) -> list[Answered | str]:
        """Return the answer to each query, or the reason for its absence. The queries are sent concurrently."""
        ...


@final
class WrittenData(NamedTuple):
    """The content of files by name, as text or as a value for JSON, and notes about parts that were written again or left out.

    `complete`: whether all that was wanted has been written.
    """

    files: Mapping[str, Any]
    notes: Sequence[str]
    complete: bool = True


class Writer(Protocol):
    """Writes a scenario's data. `Settings` is a pydantic model of its settings."""

    Settings: type[BaseModel]

    async def write(self, settings: Any, asks: Asks, log: Callable[[str], None]) -> WrittenData:
        """Have the model write all the data, and check them. `log` receives lines about the progress.

        Raises InputError if too little of the data passes the checks.
        """
        ...


def find_writer(scenario: str, group: str = WRITERS) -> Writer:
    """Return the writer for a scenario. Raises InputError for a scenario without one."""
    loaded: Writer = load_plugin(group, "writer", scenario)()
    return loaded


def settings_of(writer: Writer, given: Mapping[str, Any]) -> BaseModel:
    """Return a writer's settings. Raises InputError for unknown names and invalid values."""
    try:
        return validate_options(writer.Settings, given)
    except ValidationError as error:
        raise InputError(f"--set: {first_problem(error)}; the settings are {', '.join(writer.Settings.model_fields)}") from None


async def write_data(
    writer: Writer,
    settings: BaseModel,
    spec: str,
    out: Path,
    *,
    answers: Path | None = None,
    max_cost: float = inf,
    log: Callable[[str], None] = lambda line: None,
) -> tuple[list[Path], WrittenData]:
    """Have the model of a spec write a scenario's data into `out`.

    Returns the files and the data. The model's answers are kept in the folder `answers` (default: `out`), so that the same command
    continues after an interruption. Raises InputError for invalid input, and StoppedError if more than `max_cost` dollars could be
    spent.
    """
    check_model(spec, max_cost, role="writer")
    store = AnswerStore.create(answers or out)
    with store.lock("data"):
        model = CachedModel(spec, store, Ledger(limit_of(max_cost)))
        try:
            written = await writer.write(settings, model, log)
        except* StoppedError:
            raise StoppedError(f"the next answer could pass the limit of ${max_cost:.2f}; the same command continues in {out}") from None
        paths = {
            out / name: content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
            for name, content in written.files.items()
        }
        for path, text in paths.items():
            try:
                write_text(path, text)
            except OSError as error:
                raise InputError(f"{path}: cannot be written: {error.strerror}; choose another folder with --out") from error
        return list(paths), written
