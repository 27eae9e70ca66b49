"""ELITR-Bench's published data, if it is available, and substitutes for transcripts, which may not be published with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import PEER_DATA, skip

from longspan.scenarios.elitr.files import read_sheets


@pytest.fixture(scope="session")
def elitr() -> Path:
    """The folder of ELITR-Bench's published data."""
    folder = (PEER_DATA / "elitr").resolve()
    if not folder.is_dir():
        skip(f"there is no published data at {PEER_DATA}; LONGSPAN_PEER_DATA names another place")
    return folder


@pytest.fixture(scope="session")
def transcripts(elitr: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the corpus's own, with a made-up transcript for each published meeting."""
    folder = tmp_path_factory.mktemp("corpus")
    for sheet in read_sheets(elitr / "data.zip"):
        for meeting in sheet.meetings:
            own = folder / "elitr-minuting-corpus-en" / sheet.split / meeting.id
            own.mkdir(parents=True, exist_ok=True)
            text = "".join(f"(PERSON{n % 3}) Line {n} of {meeting.id}.\nAnd it goes on.\n" for n in range(40))
            (own / "transcript_MAN_annot03.txt").write_text("An older revision.\n", "utf-8")
            (own / "transcript_MAN2_annot07.txt").write_text(text, "utf-8")
            (own / "minutes_GENER_annot01.txt").write_text("- not a transcript\n", "utf-8")
    return folder
