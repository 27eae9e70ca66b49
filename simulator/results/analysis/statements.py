"""The record of a sweep's contrasts and the times of their statements. It is a journal in the sweep's folder, which shows later changes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.results.analysis.contrasts import Contrasts

__all__ = ["NAME", "Statement", "append_statement", "describe_statements", "hash_design", "read_statements"]

NAME: Final = "contrasts.jsonl"
"""The journal of statements, in a sweep's folder."""


@final
class Statement(BaseModel):
    """A statement at a point in time: the contrasts, with the names of agents in the runs' manifests, and how many runs were planned.

    `sha256` is the hash of the contrasts, `design` the hash of the names of the runs' folders. `begun` and `finished` count the runs that
    had begun or finished by then. `references`: BibTeX for everything that is played.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    design: str = Field(pattern=r"^[0-9a-f]{64}$")
    contrasts: Contrasts
    runs: int = Field(ge=0)
    begun: int = Field(ge=0)
    finished: int = Field(ge=0)
    references: list[Annotated[str, Field(max_length=10_000)]] = Field(default=[], max_length=1_000)

    @property
    def beforehand(self) -> bool:
        """Whether the statement was made before any run began."""
        return not self.begun


def hash_design(names: Collection[str]) -> str:
    """Return a hash of the runs that a sweep will play, by the names of their folders."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def append_statement(out: Path, statement: Statement) -> bool:
    """Journal a statement in a sweep's folder, unless it repeats the last one. Return whether it is new.

    Raises InputError or JournalError for a journal that cannot be read or written.
    """
    known = read_statements(out)
    if known and (known[-1].sha256, known[-1].design) == (statement.sha256, statement.design):
        return False
    JsonLines(out / NAME).append(statement.model_dump(mode="json"))
    return True


def read_statements(out: Path) -> list[Statement]:
    """Return the statements in a sweep's folder, the first one first. Raises InputError or JournalError for a damaged journal."""
    path = out / NAME
    try:
        found = [Statement.model_validate(entry) for entry in JsonLines(path).read()] if out.is_dir() else []
    except ValidationError as error:
        raise InputError(f"{path}: not a journal of contrasts: {first_problem(error)}; move it elsewhere") from None
    if forged := next((each for each in found if each.sha256 != each.contrasts.sha256), None):
        raise InputError(f"{path}: the statement of {forged.at:%Y-%m-%d} does not match its hash; restore the file from a copy")
    return found


def describe_statements(known: Collection[Statement]) -> list[str]:
    """Describe when contrasts were stated, and which changes were made later. The last statement counts."""
    sentences = []
    before: Statement | None = None
    for each in known:
        when = _when(each.at)
        if before is None:
            sentences.append(f"The contrasts were stated on {when}, {_had(each)} (SHA-256 {each.sha256}).")
        elif each.sha256 != before.sha256:
            sentences.append(f"They were changed on {when}, {_had(each)} (SHA-256 {each.sha256}).")
        else:
            sentences.append(f"The runs to be played were changed from {before.runs:,} to {each.runs:,} on {when}, {_had(each)}.")
        before = each
    return sentences


def _had(each: Statement) -> str:
    if each.beforehand:
        return "before any run had begun"
    begun = f" and {each.begun - each.finished:,} more had begun" if each.begun > each.finished else ""
    return f"after {each.finished:,} of {each.runs:,} runs had finished{begun}"


def _when(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
