"""Experiments: conversations that share their beginning with one of the run's, and from then on lack something that one of its tests
needs."""

from __future__ import annotations

from typing import Any, Literal, final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

__all__ = ["Experiment", "ExperimentKind"]

ExperimentKind = Literal["twin", "lesion"]


@final
class Experiment(BaseModel):
    """A conversation that goes the same way as `conversation` at first, and on its own from a turn of `test` until that test has ended.

    A `twin` leaves it at the test's first needle: where the test would say a needle, something else is said. A `lesion` leaves it at
    the test's first question; each of its questions is asked of an agent that knows nothing but the last `tokens` tokens before it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ExperimentKind
    conversation: str
    test: str
    tokens: int | None = Field(default=None, ge=1)

    @model_serializer(mode="wrap")
    def _known(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}
