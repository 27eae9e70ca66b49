"""The published questions with the user's transcripts: the ELITR Minuting Corpus (LINDAT 11234/1-4692), or files from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from longspan.scenarios.elitr.corpus import Meeting, MeetingQuestion
from longspan.scenarios.elitr.files import Question, Sheet, SheetMeeting, Split, read_sheets
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import file_stamp, read_packed

__all__ = ["read_meetings"]

CORPUS: Final = "the ELITR Minuting Corpus (https://hdl.handle.net/11234/1-4692)"
QUESTIONS: Final = "ELITR-Bench's data.zip (https://github.com/utter-project/ELITR-Bench), or a folder with its contents"
LARGEST: Final = 10_000_000
"""Maximum length of a transcript in characters."""

MAX_FILES: Final = 200_000
"""Maximum number of files in a folder."""

_REVISED: Final = re.compile(r"transcript_MAN(\d*).*\.txt", re.IGNORECASE)
"""The corpus's transcripts, with the number of manual revisions if there were several."""


def read_meetings(transcripts: Path | None, questions: Path | None, split: Split, count: int) -> list[Meeting]:
    """Return the first meetings of a split, at most `count`, with their questions in both wordings.

    `transcripts`: a folder, either the corpus's own tree or flat (`meeting_en_dev_001.txt`). `questions`: the zip or a folder; None if
    they are in the folder of the transcripts. Raises InputError for missing or damaged files.
    """
    if transcripts is None:
        raise InputError(f"--data questions={questions}: the transcripts are missing: --data elitr=DIR names a folder with {CORPUS}")
    if not transcripts.is_dir():
        raise InputError(f"--data elitr={transcripts}: the folder does not exist; it should be {CORPUS}")
    sheets = {sheet.setting: sheet for sheet in _sheets(transcripts, questions) if sheet.split == split}
    if set(sheets) != {"qa", "conv"}:
        missing = " and ".join(sorted({"qa", "conv"} - set(sheets)))
        where = questions or transcripts
        raise InputError(f"{where}: the {split} questions of {missing} are missing: --data questions=PATH names {QUESTIONS}")
    files = _files(str(transcripts), tuple(meeting.id for meeting in sheets["qa"].meetings))
    other = {meeting.id: meeting for meeting in sheets["conv"].meetings}
    meetings = []
    for meeting in sheets["qa"].meetings[:count]:
        if meeting.id not in files:
            raise InputError(f"{transcripts}: the transcript of {meeting.id} is missing; the folder should be {CORPUS}")
        meetings.append(Meeting(meeting.id, _lines(files[meeting.id]), list(_read_questions(meeting, other.get(meeting.id)))))
    return meetings


def _sheets(transcripts: Path, questions: Path | None) -> list[Sheet]:
    where = questions or transcripts
    if not where.exists():
        raise InputError(f"--data questions={where}: does not exist; it should be {QUESTIONS}")
    try:
        return _read(str(where), file_stamp(where, f"it should be {QUESTIONS}"))
    except InputError as error:
        remedy = "" if questions else f"; --data questions=PATH names {QUESTIONS}"
        raise InputError(f"{error}{remedy}") from error


@lru_cache(maxsize=4)
def _read(where: str, changed: tuple[int, int]) -> list[Sheet]:
    return [sheet for sheet in read_sheets(Path(where)) if not sheet.answered]


def _read_questions(meeting: SheetMeeting, other: SheetMeeting | None) -> Iterator[MeetingQuestion]:
    """Yield a meeting's questions in both wordings. Both have the answers of qa."""
    conv = {question.id: question for question in other.questions} if other else {}
    for question in meeting.questions:
        twin: Question = conv.get(question.id, question)
        yield MeetingQuestion(
            question.id, question.type, question.place, question.question.strip(), twin.question.strip(), question.answer.strip()
        )


def _files(folder: str, meetings: Sequence[str]) -> dict[str, Path]:
    """Return the transcript of each meeting: the most revised one in a folder of its name, or a plain-text file of its name."""
    best: dict[str, tuple[int, Path]] = {}
    for path in sorted(islice(Path(folder).rglob("*.txt"), MAX_FILES)):
        revised = _REVISED.fullmatch(path.name)
        name, rank = (path.parent.name, 1 + int(revised[1] or 1)) if revised else (path.stem, 1)
        if name in meetings and rank > best.get(name, (0, path))[0]:
            best[name] = (rank, path)
    return {name: path for name, (_, path) in best.items()}


def _lines(path: Path) -> list[str]:
    """Return the transcript's lines without blank ones. Raises InputError if it is empty or too large."""
    text = read_packed(path, 4 * LARGEST, "name the transcript of a meeting").decode("utf-8-sig", "replace")
    if len(text) > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} characters: not the transcript of a meeting")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path}: the transcript is empty")
    return lines
