"""The settings of a run. A manifest records them, and a grid creates many runs from them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.base.fields import Label, Seed, Span, StartsAt, Whole
from longspan.simulator.base.nights import MAX_NIGHTS
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.base.tokens import EncodingName
from longspan.simulator.contract.script import Placement
from longspan.simulator.suite.suite import Suite

__all__ = ["Branch", "Conditions", "RunSettings"]


Branch = Literal["on", "off", "retell"]
"""How questions about a history are asked."""


class Conditions(BaseModel):
    """The conditions of play, which depend on neither the tests nor the agent.

    `judge`: the spec of a model that decides what rules cannot. `isolated`: each test has its own conversation. `filler`: a file of trivia
    questions to use instead of the built-in source. `filler_size`: the most tokens of a filler message. `definitions`: a folder of
    published tests to play instead of generated ones. `starts_at`: a virtual date without a time zone. `keep_prompts`: whether to store the
    prompts sent to models.

    `branch`: how each question about a history is asked. "on": from a snapshot at the history's end. "off": one after another, in an order
    drawn by the seed. "retell": after playing the history again. `label`: a name that distinguishes these runs from others of the same
    agent. `nights`: the number of virtual nights per span, when an agent can consolidate its memory. `score_farewells`: whether to repeat a
    test's last question after its farewell, if its scenario allows that (`Scenario.asks_again`).

    `twins`: the number of tests to play a second time without their needles. `lesion`: the number of last tokens to keep when a test's
    questions are asked again. `control`: whether to play each test in its own conversation as well (see `Experiment`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str | None = None
    isolated: bool = False
    placement: Placement = "spread"
    tokenizer: EncodingName = "cl100k_base"
    filler: Path | None = None
    filler_size: Whole = Field(default=2000, ge=100, le=100_000)
    definitions: Path | None = None
    starts_at: StartsAt = DEFAULT_START
    keep_prompts: bool = False
    branch: Branch = "on"
    twins: Whole = Field(default=0, ge=0, le=10_000)
    lesion: Tokens | None = None
    control: bool = False
    label: Label | None = None
    nights: Whole = Field(default=0, ge=0, le=MAX_NIGHTS)
    score_farewells: bool = False


class RunSettings(Conditions):
    """The settings of one run. `span` is in tokens, `agent` is a spec, and `pace_s` is the virtual seconds per turn."""

    suite: Suite
    span: Span
    seed: Seed = 0
    agent: str = "notebook"
    pace_s: float = Field(default=DEFAULT_PACE.total_seconds(), ge=0, le=86_400)
