"""What pydantic finds wrong is told in our words, of every kind of problem that it knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticKnownError, core_schema

from longspan.simulator.base.errors import first_problem, journal_text, one_line

FIGURES = {"gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length"}

ITS_WORDS = re.compile(r"[Ii]nput|valid |Field|[Ss]hould|[Uu]nable|Value error|Assertion|parse|pydantic|errors\.|type=", re.ASCII)


def contexts() -> dict[str, dict[str, Any] | None]:
    """Each kind of problem that pydantic knows, with a context that it accepts."""
    names = ("error", "class_name", "expected", "pattern", "discriminator", "tag", "expected_tags", "attribute", "method_name", "class")
    numbers = (*FIGURES, "tz_expected", "tz_actual", "actual_length", "max_digits", "decimal_places", "whole_digits", "expected_version")
    texts = ("field_type", "encoding", "encoding_error", "expected_schemes")
    everything: dict[str, Any] = {name: f"a {name}" for name in (*names, *texts)} | dict.fromkeys(numbers, 3)
    found: dict[str, dict[str, Any] | None] = {}
    for kind in get_args(core_schema.ErrorType):
        try:
            PydanticKnownError(kind)
            found[kind] = None
        except TypeError:
            found[kind] = everything | ({"error": ValueError("the reason")} if kind in ("value_error", "assertion_error") else {})
    return found


def problem(kind: str, context: dict[str, Any] | None, *place: int | str) -> ValidationError:
    details = InitErrorDetails(type=kind, loc=place, input="an input", ctx=context or {})
    return ValidationError.from_exception_data("Thing", [details])


def test_no_word_of_pydantic_reaches_a_user() -> None:
    for kind, context in contexts().items():
        error = problem(kind, context, "runs", 0, "function-after[check(), list[int]]", "seeds")
        told = first_problem(error)
        assert told.startswith("runs.0.seeds: ")
        assert "an input" not in told
        for text in (told, one_line(error), journal_text(error)):
            assert not ITS_WORDS.search(text.removeprefix("ValidationError: ").replace("is not valid", "").replace("valid Unicode", ""))
            assert "{" not in text
            assert "\n" not in text


class Thing(BaseModel):
    number: int = 0
    share: Annotated[float, Field(ge=0, le=1)] = 0
    names: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    either: Annotated[int, Field(lt=5)] | Annotated[str, Field(pattern="^a+$")] = 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"number": "many"}, "number: must be a whole number"),
        ({"number": 1.5}, "number: must be a whole number"),
        ({"share": 2}, "share: must be at most 1"),
        ({"names": []}, "names: must not be empty"),
        ({"names": ["a", 2]}, "names.1: must be text"),
        ({"names": ["a", "b", "c"]}, "names: must have at most 2 items"),
        ([], "must be an object with keys"),
        ({"either": 7}, "either: must be less than 5"),
    ],
)
def test_problems_are_told_with_their_place(given: Any, told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Thing.model_validate(given)
    assert first_problem(caught.value) == told


def test_a_problem_that_somebody_else_describes_is_told_as_they_do() -> None:
    error = PydanticCustomError("beyond", "lies {far} beyond", {"far": "well"})
    details = InitErrorDetails(type=error, loc=("place",), input=1)
    assert first_problem(ValidationError.from_exception_data("Thing", [details])) == "place: lies well beyond"


def test_pydantics_problems_are_read_in_one_place() -> None:
    root = Path(__file__).parents[2]
    read = [
        path.relative_to(root).as_posix()
        for folder in ("simulator", "scenarios", "agents")
        for path in (root / folder).rglob("*.py")
        if re.search(r"\.errors\(|\[.msg.\]", path.read_text("utf-8"))
    ]
    assert sorted(read) == ["simulator/base/errors.py", "simulator/base/pydantic_errors.py", "simulator/cli/__init__.py"]
