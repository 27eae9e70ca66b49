"""What a run is made from: one model, which a manifest keeps, and a grid multiplies into many runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, NaiveDatetime

from longspan.simulator.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.script import Placement
from longspan.simulator.suite import Suite
from longspan.simulator.tokens import EncodingName

__all__ = ["Conditions", "RunSettings"]

LATEST: Final = datetime(9000, 1, 1)
"""Conversations start before this date, so that the calendar holds all that they take."""


class Conditions(BaseModel):
    """How tests are played, whichever they are and whoever answers.

    `judge`: the spec of a model that decides what rules cannot. `isolated`: each test in a conversation of its own.
    `filler`: a file of questions instead of the almanac; `filler_size`: the most tokens of a filler message.
    `definitions`: a folder of published tests to play instead of generated ones. `starts_at`: a virtual date, of no zone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str | None = None
    isolated: bool = False
    placement: Placement = "uniform"
    tokenizer: EncodingName = "cl100k_base"
    filler: Path | None = None
    filler_size: int = Field(default=2000, ge=100, le=100_000)
    definitions: Path | None = None
    starts_at: NaiveDatetime = Field(default=DEFAULT_START, lt=LATEST)


class RunSettings(Conditions):
    """One run: a suite at a `span` in tokens, made from a seed, against the agent that a spec names; a turn takes `pace_s`
    virtual seconds."""

    suite: Suite
    span: int = Field(ge=1)
    seed: int = 0
    agent: str = "notebook"
    pace_s: float = Field(default=DEFAULT_PACE.total_seconds(), ge=0, le=86_400)
