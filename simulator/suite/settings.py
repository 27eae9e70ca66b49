"""The settings of a run. Its manifest records them, and a grid creates many runs from them."""

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
"""How the questions about a history that is told are asked."""


class Conditions(BaseModel):
    """How tests are played, whatever the tests and the agent.

    `judge`: the spec of a model that decides where rules cannot. `isolated`: each test has a conversation to itself. `filler`: a file of
    trivia questions to use instead of the built-in source. `filler_size`: maximum tokens of a filler message. `definitions`: a folder of
    published tests to play instead of generated ones. `starts_at`: a virtual date without a time zone. `keep_prompts`: the prompts sent to
    models are kept. `branch`: each question about a history is asked from the state at the history's end (on), one after the other in an
    order drawn by the seed (off), or after a telling of its own (retell). `twins`: how many tests are played a second time without their
    needles; `lesion`: how many tokens of the conversation are left before a test's questions when these are asked again; `control`: each
    test is also played in a conversation to itself (see `Experiment`). `label`: a name that tells these runs apart from others of the same
    agent. `nights`: how many virtual nights fall in every span, for an agent to put its memory in order. `score_farewells`: after a
    farewell, the test's last question is asked once more, where its scenario allows that (`Scenario.asks_again`).
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
