"""ELITR-Bench's files: questions, and released responses with their scores. JSON, plain, in gzip, or in the zip with its password."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from longspan.simulator.errors import InputError, first_problem, one_line
from longspan.simulator.files import read_packed

__all__ = ["Mode", "Place", "Question", "QuestionType", "Response", "Setting", "Sheet", "SheetMeeting", "Split", "read_sheets"]

Setting = Literal["qa", "conv"]
Mode = Literal["single", "multi"]
Split = Literal["dev", "test"]
QuestionType = Literal["who", "what", "when", "howmany"]
Place = Literal["B", "M", "E", "S"]
"""Where in the transcript the answer stands: its first, second or last third, or several passages."""

PASSWORD: Final = b"utter"
LARGEST: Final = 1 << 28
"""Bytes of a file, unpacked, that are read at most."""

ZIP: Final = b"PK\x03\x04"
_SUFFIX: Final = "_score"

AS_WAS: Final = "call it as it was, such as elitr-bench-qa_dev_st.json"
"""What a file's name has to say stands nowhere else."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


@final
class Response(_Frozen):
    """What a model answered. `scores` by judge as far as they are scores, from 1 to 10; None: a judgement that failed."""

    model: str = Field(min_length=1)
    text: str = Field(alias="generated-response")
    scores: dict[str, float | None]

    @classmethod
    def of(cls, value: Any) -> Response:
        """The response in an entry of a file, whose keys ending in `_score` are judges. Raises ValidationError."""
        entry = value if isinstance(value, dict) else {}
        scores = {key.removesuffix(_SUFFIX): _score(each) for key, each in entry.items() if str(key).endswith(_SUFFIX)}
        return cls.model_validate({**entry, "scores": scores})


@final
class Question(_Frozen):
    """A question, its answer, and what a file holds of models' answers to it."""

    id: str
    type: QuestionType = Field(alias="question-type")
    place: Place = Field(alias="answer-position")
    question: str = Field(min_length=1)
    answer: str = Field(alias="groundtruth-answer")
    responses: list[Response] = Field(default=[], alias="generated-responses")

    @field_validator("id", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) else value

    @field_validator("responses", mode="before")
    @classmethod
    def _responses(cls, value: Any) -> Any:
        return [Response.of(each) for each in value] if isinstance(value, list) else value


@final
class SheetMeeting(_Frozen):
    id: str = Field(min_length=1)
    questions: list[Question]


@final
class Sheet(_Frozen):
    """A file of questions. `mode` is how they were asked, None for questions alone; `file` says where it lay."""

    file: str
    setting: Setting
    split: Split
    mode: Mode | None
    meetings: list[SheetMeeting] = Field(min_length=1)

    @property
    def answered(self) -> bool:
        return any(question.responses for meeting in self.meetings for question in meeting.questions)


def read_sheets(path: Path) -> list[Sheet]:
    """The sheets in a file, a zip or a folder (searched through), by name. What in a zip or folder is no sheet is passed over.

    Raises InputError for a path without any, and for a file that is damaged.
    """
    found = [_sheet(file, value) for file, value in _files(path) if _is_sheet(value)]
    if not found:
        what = "questions by meeting: {split, meetings: [{id, questions}]}, as JSON, in gzip, or in the zip with its password"
        raise InputError(f"{path}: holds nothing of ELITR-Bench; expected {what}")
    return found


def _files(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON values in a path, each with the name of its file."""
    if not path.is_dir():
        yield from _content(path, strict=True)
        return
    for each in sorted(each for each in path.rglob("*") if each.is_file() and each.name.endswith((".json", ".json.gz", ".zip"))):
        yield from _content(each, strict=False)


def _content(path: Path, *, strict: bool) -> Iterator[tuple[str, Any]]:
    """The JSON of a file, or of each in a zip. Not `strict`: what is no JSON, or another's zip, is passed over."""
    content = read_packed(path, LARGEST)
    if content.startswith(ZIP):
        try:
            yield from _in_zip(path)
        except InputError:
            if strict:
                raise
        return
    try:
        yield str(path), json.loads(content)
    except (ValueError, RecursionError) as error:
        if strict:
            raise InputError(f"{path}: not JSON: {one_line(error)}") from error


def _in_zip(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in sorted(archive.infolist(), key=lambda each: each.filename):
                if entry.filename.endswith(".json") and not entry.filename.startswith("__MACOSX"):
                    if entry.file_size > LARGEST:
                        raise InputError(f"{path}: {entry.filename!r:.80} is larger than {LARGEST:,} bytes")
                    yield f"{path}/{entry.filename}", json.loads(archive.read(entry, pwd=PASSWORD))
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, OSError, ValueError, RecursionError) as error:
        remedy = f"its password should be {PASSWORD.decode()}; or unpack it and name the folder"
        raise InputError(f"{path}: cannot be unpacked: {one_line(error)}; {remedy}") from error


def _is_sheet(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("meetings"), list)


def _sheet(file: str, value: dict[str, Any]) -> Sheet:
    name = Path(file).name.casefold()
    setting = re.search(r"(?<![a-z])(qa|conv)(?![a-z])", name)
    mode = re.search(r"(?<![a-z])(st|mt)(?![a-z])", name)
    if not setting:
        raise InputError(f"{file}: its name says neither qa nor conv; {AS_WAS}")
    known = {"file": file, "setting": setting[1], "mode": {"st": "single", "mt": "multi"}[mode[1]] if mode else None}
    split = str(value.get("split", "")).casefold().rstrip("0123456789")  # the test set is the corpus's test2
    try:
        sheet = Sheet.model_validate({"meetings": value["meetings"], "split": split, **known})
    except ValidationError as error:
        raise InputError(f"{file}: not questions of ELITR-Bench: {first_problem(error)}") from None
    if sheet.answered and sheet.mode is None:
        raise InputError(f"{file}: its name says neither st (single) nor mt (multi); {AS_WAS}")
    return sheet


def _score(value: Any) -> float | None:
    """A score from 1 to 10; None for what is none: a judgement that failed is written as a negative number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        score = float(value)
    except ValueError:
        return None
    return score if 1 <= score <= 10 else None
