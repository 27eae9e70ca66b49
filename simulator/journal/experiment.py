"""Experiments: a test's conversation played again with one thing changed: its needles, what the agent knows, or the distance."""

from __future__ import annotations

from typing import Any, Literal, final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

__all__ = ["Experiment", "ExperimentKind"]

ExperimentKind = Literal["twin", "lesion", "control"]


@final
class Experiment(BaseModel):
    """A conversation in which a `test` of `conversation` is played again.

    A twin or a lesion goes the same way as `conversation` at first, and on its own from a turn of `test` until that test has ended.
    A `twin` leaves it at the test's first needle: where the test would say a needle, something else is said. A `lesion` leaves it at
    the test's first question; each of its questions is asked of an agent that knows nothing but the last `tokens` tokens before it.

    A `control` shares nothing: the test has a conversation to itself, with nothing between its lines.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ExperimentKind
    conversation: str
    test: str
    tokens: int | None = Field(default=None, ge=1)

    @property
    def shares(self) -> bool:
        """Whether it shares its beginning with the other conversation."""
        return self.kind != "control"

    @model_serializer(mode="wrap")
    def _known(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}
