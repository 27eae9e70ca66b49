"""Tests from GoodAI's published definitions (section 3.2): a folder of DATASET/ID.def.json and a config.yml."""

from __future__ import annotations

import hashlib
import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.scenarios.goodai.facts import SCENARIOS, make_facts
from longspan.scenarios.goodai.ideals import ideal_reply
from longspan.scenarios.ltm.jokes import longest_question
from longspan.scenarios.ltm.prospective_memory import outline_test
from longspan.scenarios.ltm.wording import Wording
from longspan.simulator.base import plain_yaml
from longspan.simulator.base.errors import InputError, ScenarioError, first_problem, one_line
from longspan.simulator.base.files.file_io import parse_json, read_packed
from longspan.simulator.contract.script import LAST, MAX_PAUSE, Line, Script
from longspan.simulator.suite.definitions import Definition, Definitions

__all__ = ["read"]

SUFFIX: Final = ".def.json"
CONFIG: Final = "config.yml"
MAX_BYTES: Final = 4 << 20
"""Maximum size of a file. Published ones have about 50,000 bytes."""
NAME: Final = r"[a-z0-9][a-z0-9_-]{0,49}"
"""Pattern for a definition's name, which becomes its test's."""
ANNOUNCED: Final = frozenset({"chapterbreak", "locations", "sally_anne", "spy_meeting"})
"""Scenarios whose first line only announces the following ones, or names something that the second line repeats."""


class _PublishedPart(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


@final
class _Wait(_PublishedPart):
    """The waiting time before the next line: a share of the span since the first line, and tokens and seconds since the last."""

    model_config = ConfigDict(extra="forbid")

    percentage_finished: float | None = Field(default=None, ge=0, le=100, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=1_000_000_000)
    time: float | None = Field(default=None, ge=0, le=MAX_PAUSE.total_seconds(), allow_inf_nan=False)

    @property
    def nothing(self) -> bool:
        return self == _Wait()


@final
class _Test(_PublishedPart):
    """A definition's content. A temporal test generates its last question when it asks it, so the script has no text for it."""

    script: list[Annotated[str, Field(pattern=r"\S")]]
    is_question: list[bool]
    waits: list[_Wait]
    expected_responses: list[Any]
    can_be_interleaved: Literal[True] = True
    is_temporal: bool
    uses_callback: bool

    @model_validator(mode="after")
    def _check_fit(self) -> Self:
        lines = len(self.script) + self.is_temporal
        if not lines == len(self.is_question) == len(self.waits):
            raise ValueError(
                f"script ({len(self.script)}), is_question ({len(self.is_question)}) and waits ({len(self.waits)}) must have an entry"
                " for each line, except that a temporal question has none in script"
            )
        if lines and (self.is_question[0] or not self.is_question[-1]):
            raise ValueError("is_question: the first line must not be a question, and the last line must be one")
        return self


@final
class _File(NamedTuple):
    path: Path
    dataset: str
    id: str
    test: _Test

    @property
    def scenario(self) -> str:
        return SCENARIOS[self.dataset]


def read(folder: Path) -> Definitions | None:
    """Read the definitions in a folder as GoodAI publishes them, or return None if it has none. Raises InputError if one is invalid."""
    digest = hashlib.sha256()
    files = []
    for path in sorted(folder.glob(f"*/*{SUFFIX}"), key=lambda path: (path.parent.name, len(path.name), path.name)):
        dataset, id = _place(path)
        content = _content(path)
        digest.update(f"{dataset}/{id} {len(content)}\n".encode() + content)
        files.append(_File(path, dataset, id, _parse_definition(path, content)))
    if not files:
        return None
    pool = [_facts(file)["accepted"] for file in files if file.scenario == "spy_meeting"]
    return Definitions(folder=folder, span=_span(folder), sha256=digest.hexdigest(), tests=[_definition(file, pool) for file in files])


# ---- files


def _place(path: Path) -> tuple[str, str]:
    """Return the dataset and the id of a definition from its path."""
    dataset, id = path.parent.name, path.name.removesuffix(SUFFIX)
    if dataset not in SCENARIOS:
        raise InputError(f"definitions {path.parent.parent}: unknown dataset {dataset!r:.60}; known are {', '.join(SCENARIOS)}")
    if not re.fullmatch(NAME, id):
        raise InputError(f"definitions {path.parent}: a test's name must be at most 50 lower case letters, digits, _ and -, got {id!r:.80}")
    if path.parent.is_symlink():
        raise InputError(f"definitions {path.parent}: is a link; links are not followed, give the folder itself")
    return dataset, id


def _content(path: Path) -> bytes:
    """Return a file's bytes. Links are not followed."""
    if path.is_symlink():
        raise InputError(f"{path}: is a link; links are not followed, give the file itself")
    return read_packed(path, MAX_BYTES)


def _parse_definition(path: Path, content: bytes) -> _Test:
    try:
        return _Test.model_validate(parse_json(content, str(path)))
    except ValidationError as error:
        raise InputError(f"{path}: not a definition: {first_problem(error)}") from None


def _span(folder: Path) -> int | None:
    """Return the span in tokens from the folder's configuration, or None."""
    path = folder / CONFIG
    if not path.exists() and not path.is_symlink():
        return None
    try:
        value = plain_yaml.load_yaml(_content(path))
        for key in ("datasets", "args", "memory_span"):
            value = value.get(key) if isinstance(value, Mapping) else None
    except InputError:
        raise
    except Exception as error:  # YAML errors, and errors of its constructors for invalid values
        raise InputError(f"{path}: not YAML: {plain_yaml.describe_yaml_error(error)}") from error
    if value is not None and (type(value) is not int or not 1 <= value <= 1_000_000_000):
        raise InputError(f"{path}: datasets.args.memory_span must be a number of tokens, got {value!r:.60}")
    return value


# ---- tests


def _definition(file: _File, pool: Sequence[Any]) -> Definition:
    """Return the test that a file defines. Its script is generated once to find errors early."""
    if odd := _odd(file):
        raise InputError(f"{file.path}: {odd}")
    if not file.test.script:
        return Definition(file.id, file.scenario, None)
    write = partial(_write, file, _facts(file, pool))
    try:
        write(Random(0), math.inf)
    except ScenarioError as error:
        raise InputError(f"{file.path}: {error}") from None
    return Definition(file.id, file.scenario, write)


def _odd(file: _File) -> str | None:
    """Return why the scenario cannot play a test of its dataset; None if it can."""
    test, questions = file.test, sum(file.test.is_question)
    if bool(test.script) == (file.scenario == "restaurant"):
        return "script: must be empty for Restaurant and no other dataset"
    if test.is_temporal != (file.scenario == "jokes"):
        return "is_temporal: must be true for Jokes and no other dataset"
    if test.uses_callback != (file.scenario == "prospective_memory"):
        return "uses_callback: must be true for Prospective Memory and no other dataset"
    if test.uses_callback and len(test.script) != 2:
        return f"script: Prospective Memory must have 2 lines, a quotation and where to append it, got {len(test.script)}"
    expected = len(test.expected_responses) if file.scenario == "trigger_response" else min(1, len(test.script))
    return None if questions == expected else f"is_question: expected {expected} questions, got {questions}"


def _facts(file: _File, pool: Sequence[Any] = ()) -> dict[str, Any]:
    try:
        return make_facts(file.dataset, file.test.script, file.test.expected_responses, pool)
    except (InputError, RecursionError) as error:
        raise InputError(f"{file.path}: {one_line(error) if isinstance(error, RecursionError) else error}") from None


def _write(file: _File, known: Mapping[str, Any], random: Random, span: float) -> Script:
    """Return the script of a test at a span. Raises ScenarioError if its waits take longer than the span."""
    farewell = Wording(file.scenario).say(random, "farewell", **_about(file))
    if file.scenario == "prospective_memory":  # its play says the two lines in the facts, then watches
        return Script(facts=known, outline=outline_test(file.test.script[0], file.test.script[1], known["nth"]), farewell=farewell)
    return Script(facts=known, lines=list(_place_lines(_lines(file, known), file.test.waits, span)), farewell=farewell)


def _about(file: _File) -> dict[str, str]:
    """Return the words that a farewell uses: for a trigger response, the rule's condition as the rule words it."""
    if file.scenario != "trigger_response":
        return {}
    rule = re.match(r"Whenever (.{1,300}?),? then ", file.test.script[0])
    return {"when": html.unescape(rule[1]) if rule else "that happens"}


def _lines(file: _File, known: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the test's lines without their waits. A line that directly follows another is sent together with it."""
    texts = [*file.test.script, longest_question()] if file.test.is_temporal else file.test.script
    telling = range(file.scenario in ANNOUNCED, len(texts) - 1)
    if file.scenario == "chapterbreak":  # the options and a line that announces them precede the question
        telling = telling[: -1 - known["openings"]]
    needs = {"colours": (len(telling) - 1,), "jokes": (known.get("asked", 0),)}.get(file.scenario)
    for number, (text, asks) in enumerate(zip(texts, file.test.is_question, strict=True)):
        if asks:
            line = Line(text, ideal=ideal_reply(file.scenario, known), asks=True, needs=needs)
        else:
            line = Line(text, needle=number in telling)
        yield replace(line, together=number > 0 and file.test.waits[number - 1].nothing)


def _place_lines(lines: Iterator[Line], waits: Sequence[_Wait], span: float) -> Iterator[Line]:
    """Yield the lines, each after the wait that its predecessor ends with.

    Shares beyond nine tenths of the span are reduced to nine tenths, because the last question needs the rest.
    """
    at = 0.0
    for line, wait in zip(lines, [_Wait(), *waits], strict=False):
        at = max(at + (wait.tokens or 0) / span, (wait.percentage_finished or 0) / 100)
        if at > 1:
            raise ScenarioError(f"its waits take longer than the span of {span:,} tokens")
        yield line if line.together else replace(line, at=min(at, LAST), pause=timedelta(seconds=wait.time or 0))
