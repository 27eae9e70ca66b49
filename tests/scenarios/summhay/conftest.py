"""The published data of Summary of a Haystack, where it is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import PEER_DATA, skip


@pytest.fixture(scope="session")
def summhay() -> Path:
    """The folder with two news topics and a hundred annotated samples."""
    folder = (PEER_DATA / "summhay").resolve()
    if not folder.is_dir():
        skip(f"there is no published data at {PEER_DATA}; LONGSPAN_PEER_DATA names another place")
    return folder
