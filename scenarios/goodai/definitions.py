"""Definitions that GoodAI published (section 3.2): a folder of DATASET/ID.def.json and a config.yml, as tests of ours."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.scenarios.goodai.facts import SCENARIOS, facts
from longspan.scenarios.goodai.ideals import ideal
from longspan.scenarios.ltm.jokes import longest_question
from longspan.scenarios.ltm.prospective_memory import outline
from longspan.scenarios.ltm.wording import Wording
from longspan.simulator.definitions import Definition, Definitions
from longspan.simulator.errors import InputError, ScenarioError, first_problem, one_line
from longspan.simulator.script import LAST, Line, Script
from longspan.simulator.stage import MAX_WAIT

__all__ = ["read"]

SUFFIX: Final = ".def.json"
CONFIG: Final = "config.yml"
LARGEST: Final = 4 << 20
"""Bytes of a file that are read at most: a published one has some 50,000."""
NAME: Final = r"[a-z0-9][a-z0-9_-]{0,49}"
"""What a definition may be called: it names its test."""
ANNOUNCED: Final = frozenset({"chapterbreak", "sally_anne", "spy_meeting"})
"""Scenarios whose first line only says what is to come."""


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


@final
class _Wait(_Published):
    """What must have passed before the next line: a share of the span since the first, tokens and seconds since the last."""

    model_config = ConfigDict(extra="forbid")

    percentage_finished: float | None = Field(default=None, ge=0, le=100, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=1_000_000_000)
    time: float | None = Field(default=None, ge=0, le=MAX_WAIT.total_seconds(), allow_inf_nan=False)

    @property
    def nothing(self) -> bool:
        return self == _Wait()


@final
class _Test(_Published):
    """A definition's content. The last question of a temporal one is made when it is asked, and has no text."""

    script: list[Annotated[str, Field(pattern=r"\S")]]
    is_question: list[bool]
    waits: list[_Wait]
    expected_responses: list[Any]
    can_be_interleaved: Literal[True] = True
    is_temporal: bool
    uses_callback: bool

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        said = len(self.script) + self.is_temporal
        if not said == len(self.is_question) == len(self.waits):
            raise ValueError(
                f"script ({len(self.script)}), is_question ({len(self.is_question)}) and waits ({len(self.waits)}) have to go together:"
                " one of each for a line, but no script for a temporal question"
            )
        if said and (self.is_question[0] or not self.is_question[-1]):
            raise ValueError("is_question: the first line tells something, and the last one asks")
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
    """The definitions in a folder as GoodAI publishes them; None where it holds none. Raises InputError for what is wrong."""
    digest = hashlib.sha256()
    files = []
    for path in sorted(folder.glob(f"*/*{SUFFIX}"), key=lambda path: (path.parent.name, len(path.name), path.name)):
        dataset, id = _place(path)
        content = _content(path)
        digest.update(f"{dataset}/{id} {len(content)}\n".encode() + content)
        files.append(_File(path, dataset, id, _parsed(path, content)))
    if not files:
        return None
    pool = [_facts(each)["accepted"] for each in files if each.scenario == "spy_meeting"]
    return Definitions(folder=folder, span=_span(folder), sha256=digest.hexdigest(), tests=[_definition(each, pool) for each in files])


# ---- files


def _place(path: Path) -> tuple[str, str]:
    """The dataset and the id that a definition's place gives it."""
    dataset, id = path.parent.name, path.name.removesuffix(SUFFIX)
    if dataset not in SCENARIOS:
        raise InputError(f"definitions {path.parent.parent}: there is no dataset {dataset!r:.60}; there are {', '.join(SCENARIOS)}")
    if not re.fullmatch(NAME, id):
        raise InputError(f"definitions {path.parent}: a test is named in lower case letters, digits, _ and -, at most 50, got {id!r:.80}")
    if path.parent.is_symlink():
        raise InputError(f"definitions {path.parent}: a link, and not a folder of its own")
    return dataset, id


def _content(path: Path) -> bytes:
    """A file's bytes. Links, devices and whatever else is no file of the folder's are not read."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: a link or a device, and not a file of its own")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} bytes: no definition is")
    return content


def _parsed(path: Path, content: bytes) -> _Test:
    try:
        return _Test.model_validate(json.loads(content))
    except ValidationError as error:
        raise InputError(f"{path}: not a definition: {first_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {one_line(error)}") from error


def _span(folder: Path) -> int | None:
    """The span in tokens that the folder's configuration gives; None where there is none."""
    path = folder / CONFIG
    if not path.exists() and not path.is_symlink():
        return None
    try:
        value = yaml.safe_load(_content(path))
        for key in ("datasets", "args", "memory_span"):
            value = value.get(key) if isinstance(value, Mapping) else None
    except InputError:
        raise
    except Exception as error:  # YAML's own errors, and what its constructors raise for values that are none
        raise InputError(f"{path}: not YAML: {one_line(error)}") from error
    if value is not None and (type(value) is not int or not 1 <= value <= 1_000_000_000):
        raise InputError(f"{path}: datasets.args.memory_span is a number of tokens, got {value!r:.60}")
    return value


# ---- tests


def _definition(file: _File, pool: Sequence[Any]) -> Definition:
    """The test that a file defines. Its script is written once, so that what is wrong is told at the door."""
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
    """What keeps a test from being played by the scenario of its dataset; None where nothing does."""
    test, questions = file.test, sum(file.test.is_question)
    if bool(test.script) == (file.scenario == "restaurant"):
        return "script: a restaurant's is made as it is played, and no other is empty"
    if test.is_temporal != (file.scenario == "jokes"):
        return "is_temporal: so are jokes, and no other test"
    if test.uses_callback != (file.scenario == "prospective_memory"):
        return "uses_callback: so does prospective memory, and no other test"
    if test.uses_callback and len(test.script) != 2:
        return f"script: prospective memory tells a quotation and says where to append it, got {len(test.script)} lines"
    wanted = len(test.expected_responses) if file.scenario == "trigger_response" else min(1, len(test.script))
    return None if questions == wanted else f"is_question: expected {wanted} questions, got {questions}"


def _facts(file: _File, pool: Sequence[Any] = ()) -> dict[str, Any]:
    try:
        return facts(file.dataset, file.test.script, file.test.expected_responses, pool)
    except (InputError, RecursionError) as error:
        raise InputError(f"{file.path}: {one_line(error) if isinstance(error, RecursionError) else error}") from None


def _write(file: _File, known: Mapping[str, Any], random: Random, span: float) -> Script:
    """The script of a test at a span. Raises ScenarioError where its waits take longer than that."""
    farewell = Wording(file.scenario).say(random, "farewell", **_about(file))
    if file.scenario == "prospective_memory":  # its play says the facts' two lines, and then watches
        return Script(facts=known, outline=outline(*file.test.script[:2]), farewell=farewell)
    return Script(facts=known, lines=list(_placed(_lines(file, known), file.test.waits, span)), farewell=farewell)


def _about(file: _File) -> dict[str, str]:
    """What a farewell names: of a trigger response, when the rule applies, as the rule says it."""
    if file.scenario != "trigger_response":
        return {}
    rule = re.match(r"Whenever (.{1,300}?),? then ", file.test.script[0])
    return {"when": html.unescape(rule[1]) if rule else "that happens"}


def _lines(file: _File, known: Mapping[str, Any]) -> Iterator[Line]:
    """What the test says, without its waits. A line that directly follows another is said together with it."""
    said = [*file.test.script, longest_question()] if file.test.is_temporal else file.test.script
    telling = range(file.scenario in ANNOUNCED, len(said) - 1)
    if file.scenario == "chapterbreak":  # before the question stand the options, and a line that announces them
        telling = telling[: -1 - known["openings"]]
    needs = {"colours": (len(telling) - 1,), "jokes": (known.get("asked", 0),)}.get(file.scenario)
    for number, (text, asks) in enumerate(zip(said, file.test.is_question, strict=True)):
        if asks:
            line = Line(text, ideal=ideal(file.scenario, known), asks=True, needs=needs)
        else:
            line = Line(text, needle=number in telling)
        yield replace(line, together=number > 0 and file.test.waits[number - 1].nothing)


def _placed(lines: Iterator[Line], waits: Sequence[_Wait], span: float) -> Iterator[Line]:
    """The lines, each after the wait that its predecessor ends with.

    All shares of the span that lie beyond nine tenths of it become that: the last question needs the rest.
    """
    at = 0.0
    for line, wait in zip(lines, [_Wait(), *waits], strict=False):
        at = max(at + (wait.tokens or 0) / span, (wait.percentage_finished or 0) / 100)
        if at > 1:
            raise ScenarioError(f"its waits take longer than the span of {span:,} tokens")
        yield line if line.together else replace(line, at=min(at, LAST), pause=timedelta(seconds=wait.time or 0))
