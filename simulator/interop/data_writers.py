"""Data that a model writes for a scenario, once and beforehand: nothing is written while a run is played or graded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, final

from pydantic import BaseModel, ValidationError

from longspan.simulator.answer_store import AnswerStore
from longspan.simulator.errors import InputError, StoppedError, first_problem
from longspan.simulator.files import write_text
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.ledger import Ledger
from longspan.simulator.plugins import load
from longspan.simulator.queries import Answered, Query

__all__ = ["WRITERS", "Asks", "Writer", "Written", "settings_of", "write", "writer"]

WRITERS: Final = "longspan.writers"
"""The entry-point group of writers: a scenario's name, and a `Writer`."""


class Asks(Protocol):
    """A model that is asked. What it has answered before it is not asked again."""

    async def ask_all(self, queries: Sequence[Query[Answered]]) -> list[Answered | str]:
        """The answer to each query, or why there is none. They are asked together."""
        ...


@final
class Written(NamedTuple):
    """Files by name, each as JSON; and what was written again or dropped, in lines for people."""

    files: Mapping[str, Any]
    notes: Sequence[str]


class Writer(Protocol):
    """Writes a scenario's data. `Settings` is a pydantic model of what can be set."""

    Settings: type[BaseModel]

    async def write(self, settings: Any, asks: Asks, told: Callable[[str], None]) -> Written:
        """Have everything written and checked. `told` is told how far it is. Raises InputError where too little comes out."""
        ...


def writer(scenario: str) -> Writer:
    """The writer for a scenario. Raises InputError."""
    made: Writer = load(WRITERS, "writer", scenario)()
    return made


def settings_of(found: Writer, given: Mapping[str, Any]) -> BaseModel:
    """A writer's settings. Raises InputError for what cannot be set so."""
    try:
        return found.Settings.model_validate(dict(given))
    except ValidationError as error:
        raise InputError(f"--set: {first_problem(error)}; what can be set is {', '.join(found.Settings.model_fields)}") from None


async def write(
    found: Writer, settings: BaseModel, spec: str, out: Path, *, most: float = inf, told: Callable[[str], None] = lambda line: None
) -> tuple[list[Path], Sequence[str]]:
    """Have the model of a spec write a scenario's data into `out`; the files, and what was written again or dropped.

    What the model answers is kept there, so that the same command goes on where it was broken off. Raises InputError for what is
    wrong, StoppedError where a limit of `most` dollars would be passed.
    """
    check_model(spec, most)
    store = AnswerStore.create(out)
    with store.lock("data"):
        model = CachedModel(spec, store, Ledger(most))
        try:
            written = await found.write(settings, model, told)
        except* StoppedError:
            raise StoppedError(f"the next answer could pass the limit of ${most:.2f}; the same command goes on in {out}") from None
        paths = {out / name: json.dumps(content, ensure_ascii=False, indent=1) for name, content in written.files.items()}
        for path, text in paths.items():
            try:
                write_text(path, text)
            except OSError as error:
                raise InputError(f"{path}: cannot be written: {error.strerror}; choose another place with --out") from error
        return list(paths), written.notes
