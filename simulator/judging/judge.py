"""The judge: a model that decides what rules cannot. Never the agent under test."""

from __future__ import annotations

from typing import final

from longspan.simulator.judging.cached_model import CachedModel
from longspan.simulator.queries import statement
from longspan.simulator.stage import Verdict

__all__ = ["LLMJudge"]


@final
class LLMJudge:
    """Gives a dynamic test the verdicts that it waits for (see `stage.Judge`)."""

    def __init__(self, model: CachedModel) -> None:
        self._model = model

    async def judge(self, said: str, text: str) -> Verdict:
        """Whether the statement `said` holds of `text`. A failed judgement is a Verdict with None, and says so."""
        query = statement(said, text)
        found = await self._model.ask(query)
        if isinstance(found, str):
            return Verdict(None, found, by=self._model.by(query), failed=True)
        return Verdict(found.holds, found.why[:500], by=self._model.by(query))
