"""Read ELITR-Bench's files of questions and of released responses with scores: JSON, gzipped JSON, or the password-protected zip."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from longspan.simulator.base.errors import InputError, first_problem, one_line
from longspan.simulator.base.files.file_io import parse_json, read_packed

__all__ = ["Mode", "Place", "Question", "QuestionType", "Response", "Setting", "Sheet", "SheetMeeting", "Split", "read_sheets"]

Setting = Literal["qa", "conv"]
Mode = Literal["single", "multi"]
Split = Literal["dev", "test"]
QuestionType = Literal["who", "what", "when", "howmany"]
Place = Literal["B", "M", "E", "S"]
"""Position of the answer in the transcript: the first, second or last third, or several passages."""

PASSWORD: Final = b"utter"
LARGEST: Final = 1 << 28
"""Maximum size of a file in bytes, unpacked."""

ZIP: Final = b"PK\x03\x04"
_SUFFIX: Final = "_score"

RENAME: Final = "restore its original name, such as elitr-bench-qa_dev_st.json"
"""Remedy for a renamed file, because its name contains information that is nowhere else."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


@final
class Response(_Frozen):
    """A model's answer. `scores`: from 1 to 10, by judge; None for a judgement that failed."""

    model: str = Field(min_length=1)
    text: str = Field(alias="generated-response")
    scores: dict[str, float | None]

    @classmethod
    def of(cls, value: Any) -> Response:
        """Return the response in an entry of a file, whose keys ending in `_score` are judges. Raises ValidationError."""
        entry = value if isinstance(value, dict) else {}
        scores = {key.removesuffix(_SUFFIX): _score(score) for key, score in entry.items() if str(key).endswith(_SUFFIX)}
        return cls.model_validate({**entry, "scores": scores})


@final
class Question(_Frozen):
    """A question, its answer, and models' answers to it, if the file has any."""

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
        return [Response.of(entry) for entry in value] if isinstance(value, list) else value


@final
class SheetMeeting(_Frozen):
    id: str = Field(min_length=1)
    questions: list[Question]


@final
class Sheet(_Frozen):
    """A file of questions. `mode`: how they were asked, None for a file without answers. `file`: its path."""

    file: str
    setting: Setting
    split: Split
    mode: Mode | None
    meetings: list[SheetMeeting] = Field(min_length=1)

    @property
    def answered(self) -> bool:
        return any(question.responses for meeting in self.meetings for question in meeting.questions)


def read_sheets(path: Path) -> list[Sheet]:
    """Return the sheets in a file, a zip or a folder and its subfolders, by name. Other files in a zip or folder are skipped.

    Raises InputError for a path without any sheet, and for a damaged file.
    """
    sheets = [_sheet(file, value) for file, value in _files(path) if _is_sheet(value)]
    if not sheets:
        what = "questions by meeting: {split, meetings: [{id, questions}]}, as JSON, in gzip, or in the zip with its password"
        raise InputError(f"{path}: no questions of ELITR-Bench found; expected {what}")
    return sheets


def _files(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values in a path, with the names of their files."""
    if not path.is_dir():
        yield from _content(path, strict=True)
        return
    for file in sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith((".json", ".json.gz", ".zip"))):
        yield from _content(file, strict=False)


def _content(path: Path, *, strict: bool) -> Iterator[tuple[str, Any]]:
    """Yield the JSON of a file, or of the files in a zip. Unless `strict`, invalid JSON and other zips are skipped."""
    content = read_packed(path, LARGEST)
    if content.startswith(ZIP):
        try:
            yield from _in_zip(path, content)
        except InputError:
            if strict:
                raise
        return
    try:
        yield str(path), parse_json(content, str(path))
    except InputError:
        if strict:
            raise


def _in_zip(path: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    left = LARGEST
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for entry in sorted(archive.infolist(), key=lambda each: each.filename):
                if entry.filename.endswith(".json") and not entry.filename.startswith("__MACOSX"):
                    left -= entry.file_size
                    if left < 0:
                        raise InputError(f"{path}: its files are larger than {LARGEST:,} bytes; unpack it and give one of them")
                    yield f"{path}/{entry.filename}", parse_json(archive.read(entry, pwd=PASSWORD), f"{path}: {entry.filename!r:.80}")
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, OSError, ValueError) as error:
        remedy = f"its password should be {PASSWORD.decode()}; or unpack it and give the folder"
        raise InputError(f"{path}: cannot be unpacked: {one_line(error)}; {remedy}") from error


def _is_sheet(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("meetings"), list)


def _sheet(file: str, value: dict[str, Any]) -> Sheet:
    name = Path(file).name.casefold()
    setting = re.search(r"(?<![a-z])(qa|conv)(?![a-z])", name)
    mode = re.search(r"(?<![a-z])(st|mt)(?![a-z])", name)
    if not setting:
        raise InputError(f"{file}: its name says neither qa nor conv; {RENAME}")
    known = {"file": file, "setting": setting[1], "mode": {"st": "single", "mt": "multi"}[mode[1]] if mode else None}
    split = str(value.get("split", "")).casefold().rstrip("0123456789")  # the test set is the corpus's test2
    try:
        sheet = Sheet.model_validate({"meetings": value["meetings"], "split": split, **known})
    except ValidationError as error:
        raise InputError(f"{file}: not questions of ELITR-Bench: {first_problem(error)}") from None
    if sheet.answered and sheet.mode is None:
        raise InputError(f"{file}: its name says neither st (single) nor mt (multi); {RENAME}")
    return sheet


def _score(value: Any) -> float | None:
    """Return a score from 1 to 10, or None if it is not one: a failed judgement is recorded as a negative number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        score = float(value)
    except (ValueError, OverflowError):
        return None
    return score if 1 <= score <= 10 else None
