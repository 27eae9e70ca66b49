"""The published data of Counting-Stars, where it is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import PEER_DATA, skip


@pytest.fixture(scope="session")
def counting_stars() -> Path:
    """The folder of Counting-Stars' published data."""
    folder = (PEER_DATA / "counting-stars").resolve()
    if not folder.is_dir():
        skip(f"there is no published data of Counting-Stars at {PEER_DATA}; LONGSPAN_PEER_DATA names another place")
    return folder
