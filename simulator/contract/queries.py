"""Queries to a judge: a prompt and the format of the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar, final

from jinja2 import Template
from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.base.errors import first_problem
from longspan.simulator.base.templating import make_environment

__all__ = ["Answer", "Free", "Holds", "JudgeAnswers", "Query", "fence", "statement", "template"]

TEMPLATES: Final = Path(__file__).parent / "templates"


class Answer(BaseModel):
    """The base class of judge answers. A subclass has a field for each key of the JSON object. Other keys are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", json_schema_extra={"additionalProperties": False})

    free: ClassVar[bool] = False


class Free(Answer):
    """A free-text answer. A subclass may have a validator that raises ValueError for text that it cannot parse."""

    free: ClassVar[bool] = True

    text: str


@final
class Holds(Answer):
    """Whether a statement holds, and why."""

    holds: bool
    why: str


Answered = TypeVar("Answered", bound=Answer)

JudgeAnswers = Mapping[str, dict[str, Any] | str]
"""A judge's answers by `Query.about`: the fields of the answer, or the reason why there is no answer."""


@final
class Query(BaseModel, Generic[Answered]):
    """A `prompt` to a judge and the type of its `answer`.

    `version` is the name and version number of the prompt's template. It is recorded with the answer. Increase it whenever the template
    changes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    answer: type[Answered]
    version: str

    @property
    def form(self) -> dict[str, Any] | None:
        """The JSON schema of the answer, or None for free text."""
        return None if self.answer.free else _schema(self.answer)

    @cached_property
    def about(self) -> str:
        """The SHA-256, in hexadecimal, of the version, the prompt and the schema."""
        content = json.dumps([self.version, self.prompt, self.form], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()

    def read(self, answer: dict[str, Any] | str) -> Answered | str:
        """Validate an answer's fields. Return the answer, or the reason why it is invalid."""
        if isinstance(answer, str):
            return answer
        try:
            return self.answer.model_validate(answer)
        except ValidationError as error:
            return f"the judge's answer is invalid: {first_problem(error)}"


@lru_cache
def _schema(answer: type[Answer]) -> dict[str, Any]:
    return answer.model_json_schema()


def statement(statement: str, text: str) -> Query[Holds]:
    """Return a query that asks whether a statement holds for `text`."""
    prompt = template(TEMPLATES, "judge").render(statement=statement, text=text, fence=fence(statement, text))
    return Query(prompt=prompt, answer=Holds, version="statement 1")


def fence(*texts: str) -> str:
    """Return a line that delimits texts in a prompt. It is a hash of the texts, so they cannot contain it to end the quotation."""
    return "---- " + hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


@lru_cache
def template(folder: Path, name: str) -> Template:
    """Return the template `name`.j2 in a folder. An undefined variable raises an error."""
    return make_environment(folder, keep_trailing_newline=True).get_template(f"{name}.j2")
