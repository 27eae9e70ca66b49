"""The settings of a run, which its manifest records and from which a grid creates many runs."""

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

MAX_START: Final = datetime(9000, 1, 1)
"""Conversations start before this date, so that virtual time stays within the calendar's range."""


class Conditions(BaseModel):
    """How tests are played, whatever the tests and the agent.

    `judge`: the spec of a model that decides what rules cannot. `isolated`: each test has a conversation to itself. `filler`: a
    file of trivia questions to use instead of the built-in source. `filler_size`: maximum tokens of a filler message. `definitions`: a
    folder of published tests to play instead of generated ones. `starts_at`: a virtual date without a time zone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str | None = None
    isolated: bool = False
    placement: Placement = "uniform"
    tokenizer: EncodingName = "cl100k_base"
    filler: Path | None = None
    filler_size: int = Field(default=2000, ge=100, le=100_000)
    definitions: Path | None = None
    starts_at: NaiveDatetime = Field(default=DEFAULT_START, lt=MAX_START)


class RunSettings(Conditions):
    """The settings of one run. `span` is in tokens, `agent` is a spec, and `pace_s` is the virtual seconds that a turn takes."""

    suite: Suite
    span: int = Field(ge=1)
    seed: int = 0
    agent: str = "notebook"
    pace_s: float = Field(default=DEFAULT_PACE.total_seconds(), ge=0, le=86_400)
