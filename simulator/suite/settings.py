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
"""How the questions about a told history are asked."""


class Conditions(BaseModel):
    """The conditions of play, which do not depend on the tests and the agent.

    `judge`: the spec of a model that decides where rules cannot. `isolated`: each test has its own conversation. `filler`: a file of trivia
    questions to use instead of the built-in source. `filler_size`: maximum tokens of a filler message. `definitions`: a folder of published
    tests to play instead of generated ones. `starts_at`: a virtual date without a time zone. `keep_prompts`: the prompts sent to models are
    kept.

    `branch`: how each question about a history is asked. "on": from the state at the history's end. "off": one after another, in an order
    drawn by the seed. "retell": after a separate telling. `label`: a name that distinguishes these runs from others of the same agent.
    `nights`: the number of virtual nights in every span, when an agent can consolidate its memory. `score_farewells`: after a farewell, the
    test's last question is asked once more, where its scenario allows that (`Scenario.asks_again`).

    `twins`: the number of tests that are played a second time without their needles. `lesion`: a test's questions are asked again with only
    this many tokens of the conversation before them. `control`: each test is also played in its own conversation (see `Experiment`).
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
    """The settings of one run. `span` is in tokens, `agent` is a spec, and `pace_s` is the virtual seconds that a turn takes."""

    suite: Suite
    span: Span
    seed: Seed = 0
    agent: str = "notebook"
    pace_s: float = Field(default=DEFAULT_PACE.total_seconds(), ge=0, le=86_400)
