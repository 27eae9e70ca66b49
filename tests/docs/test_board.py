"""The board of results: attacks on submitted runs are rejected or visible."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.board import FILES, INTRODUCTION, Row, make_board, read_sweep

import longspan
from longspan.simulator.base.files.checksums import checksum

SWEEP = "suites: [reach]\nspans: [2k]\nseeds: [0, 1, 2]\nagents: [notebook, oracle, 'python:cheat:Cheat']\n"
CHEAT = '''
from longspan.agents.reference.oracle import Oracle

class Cheat(Oracle):
    """Is given the expected replies, under another name."""
'''
