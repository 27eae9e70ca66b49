"""The published questions with transcripts that the user brings: the ELITR Minuting Corpus (LINDAT 11234/1-4692), or files of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from longspan.scenarios.elitr.corpus import Asked, Meeting
from longspan.scenarios.elitr.files import Question, Sheet, SheetMeeting, Split, read_sheets
from longspan.simulator.errors import InputError
from longspan.simulator.files import read_packed, stamp

__all__ = ["published"]

CORPUS: Final = "the ELITR Minuting Corpus (https://hdl.handle.net/11234/1-4692)"
QUESTIONS: Final = "ELITR-Bench's data.zip (https://github.com/utter-project/ELITR-Bench), or a folder with what is in it"
LARGEST: Final = 10_000_000
"""Characters of a transcript at most."""

MOST: Final = 200_000
"""Files of a folder that are looked at."""

_REVISED: Final = re.compile(r"transcript_MAN(\d*).*\.txt", re.IGNORECASE)
"""The corpus's transcripts: with the number of manual revisions, if there were several."""


def published(transcripts: Path | None, questions: Path | None, split: Split, most: int) -> list[Meeting]:
    """The first meetings of a split, at most so many, with their questions in both wordings.

    `transcripts`: a folder, the corpus's own tree or flat (`meeting_en_dev_001.txt`). `questions`: the zip or a folder; None: they
    lie among the transcripts. Raises InputError for what is missing or damaged.
    """
    if transcripts is None:
        raise InputError(f"--data questions={questions}: the transcripts are missing: --data elitr=DIR names a folder with {CORPUS}")
    if not transcripts.is_dir():
        raise InputError(f"--data elitr={transcripts}: there is no such folder; it should hold {CORPUS}")
    sheets = {sheet.setting: sheet for sheet in _sheets(transcripts, questions) if sheet.split == split}
    if set(sheets) != {"qa", "conv"}:
        missing = " and ".join(sorted({"qa", "conv"} - set(sheets)))
        where = questions or transcripts
        raise InputError(f"{where}: the {split} questions of {missing} are missing: --data questions=PATH names {QUESTIONS}")
    found = _files(str(transcripts), tuple(meeting.id for meeting in sheets["qa"].meetings))
    other = {meeting.id: meeting for meeting in sheets["conv"].meetings}
    meetings = []
    for meeting in sheets["qa"].meetings[:most]:
        if meeting.id not in found:
            raise InputError(f"{transcripts}: there is no transcript of {meeting.id}; it should hold {CORPUS}")
        meetings.append(Meeting(meeting.id, _lines(found[meeting.id]), list(_asked(meeting, other.get(meeting.id)))))
    return meetings


def _sheets(transcripts: Path, questions: Path | None) -> list[Sheet]:
    where = questions or transcripts
    if not where.exists():
        raise InputError(f"--data questions={where}: there is no such file or folder; it should be {QUESTIONS}")
    try:
        return _read(str(where), stamp(where, f"it should be {QUESTIONS}"))
    except InputError as error:
        remedy = "" if questions else f"; --data questions=PATH names {QUESTIONS}"
        raise InputError(f"{error}{remedy}") from error


@lru_cache(maxsize=4)
def _read(where: str, changed: tuple[int, int]) -> list[Sheet]:
    return [sheet for sheet in read_sheets(Path(where)) if not sheet.answered]


def _asked(meeting: SheetMeeting, other: SheetMeeting | None) -> Iterator[Asked]:
    """A meeting's questions in both wordings; the answers are those of qa."""
    conv = {question.id: question for question in other.questions} if other else {}
    for question in meeting.questions:
        twin: Question = conv.get(question.id, question)
        yield Asked(question.id, question.type, question.place, question.question.strip(), twin.question.strip(), question.answer.strip())


def _files(folder: str, meetings: Sequence[str]) -> dict[str, Path]:
    """The transcript of each meeting: in a folder of its name, the one revised most often; or a text file of its name."""
    found: dict[str, tuple[int, Path]] = {}
    for path in sorted(islice(Path(folder).rglob("*.txt"), MOST)):
        revised = _REVISED.fullmatch(path.name)
        name, rank = (path.parent.name, 1 + int(revised[1] or 1)) if revised else (path.stem, 1)
        if name in meetings and rank > found.get(name, (0, path))[0]:
            found[name] = (rank, path)
    return {name: path for name, (_, path) in found.items()}


def _lines(path: Path) -> list[str]:
    """The transcript's lines, without blank ones. Raises InputError for one that is empty or too large."""
    text = read_packed(path, 4 * LARGEST, "name the transcript of a meeting").decode("utf-8-sig", "replace")
    if len(text) > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} characters: not the transcript of a meeting")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path}: the transcript is empty")
    return lines
