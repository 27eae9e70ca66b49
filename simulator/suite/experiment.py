"""Experiments: replays of a test's conversation with one change, in its needles, the agent's knowledge, or the distance."""

from __future__ import annotations

from typing import Any, Literal, final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

__all__ = ["Experiment", "ExperimentKind"]

ExperimentKind = Literal["twin", "lesion", "control"]


@final
class Experiment(BaseModel):
    """A conversation that plays a `test` of `conversation` again.

    A twin or a lesion shares the beginning of `conversation`, diverges at a turn of `test`, and stops when that test has ended. A `twin`
    diverges at the test's first needle: other lines replace its needles. A `lesion` diverges at the test's first question: each question
    goes to an agent that knows only the last `tokens` tokens before it.

    A `control` shares nothing. The test has its own conversation, with nothing between its lines.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ExperimentKind
    conversation: str
    test: str
    tokens: int | None = Field(default=None, ge=1)

    @property
    def shares(self) -> bool:
        """Whether the experiment shares its beginning with the other conversation."""
        return self.kind != "control"

    @model_serializer(mode="wrap")
    def _known(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}
