"""What a judge is asked, and what it may answer: a prompt, and the form of the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar, final

from jinja2 import Template
from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.errors import first_problem
from longspan.simulator.templating import environment

__all__ = ["Answer", "Free", "Holds", "JudgeAnswers", "Query", "fence", "statement", "template"]

TEMPLATES: Final = Path(__file__).parent / "templates"


class Answer(BaseModel):
    """What a judge is asked for: subclass it, a field for each key of the JSON object. Keys besides are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", json_schema_extra={"additionalProperties": False})

    free: ClassVar[bool] = False


class Free(Answer):
    """An answer in free words, kept as `text`; a validator of a subclass refuses what it cannot read (ValueError)."""

    free: ClassVar[bool] = True

    text: str


@final
class Holds(Answer):
    """Whether a statement holds, and why."""

    holds: bool
    why: str


Answered = TypeVar("Answered", bound=Answer)

JudgeAnswers = Mapping[str, dict[str, Any] | str]
"""What a judge has said, by `Query.about`: the answer's fields, or in words why there is none."""


@final
class Query(BaseModel, Generic[Answered]):
    """A `prompt` to a judge, and the form of its `answer`. `version` names the prompt's template and its number, which is raised
    when the template changes: it is journaled with the answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    answer: type[Answered]
    version: str

    @property
    def form(self) -> dict[str, Any] | None:
        """The JSON schema of the answer; None for free words."""
        return None if self.answer.free else self.answer.model_json_schema()

    @cached_property
    def about(self) -> str:
        """SHA-256 of what is asked, in hexadecimal."""
        content = json.dumps([self.version, self.prompt, self.form], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()

    def read(self, said: dict[str, Any] | str) -> Answered | str:
        """The answer in what was said, or why it is none."""
        if isinstance(said, str):
            return said
        try:
            return self.answer.model_validate(said)
        except ValidationError as error:
            return f"the judge's answer is not what was asked for: {first_problem(error)}"


def statement(statement: str, text: str) -> Query[Holds]:
    """Whether a statement holds of a text."""
    prompt = template(TEMPLATES, "judge").render(statement=statement, text=text, fence=fence(statement, text))
    return Query(prompt=prompt, answer=Holds, version="statement 1")


def fence(*texts: str) -> str:
    """A line to put before and after a text of the agent's, which the text cannot hold by itself."""
    return "---- " + hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


@lru_cache
def template(folder: Path, name: str) -> Template:
    """The template `name`.j2 in a folder; what it is not given is an error."""
    return environment(folder, keep_trailing_newline=True).get_template(f"{name}.j2")
