"""The judge: a model that decides where rules cannot. Never the agent under test."""

from __future__ import annotations

from typing import final

from longspan.simulator.contract.queries import statement
from longspan.simulator.contract.stage import Verdict
from longspan.simulator.results.judging.cached_model import CachedModel

__all__ = ["LLMJudge"]


@final
class LLMJudge:
    """Returns the verdicts that dynamic tests wait for (see `stage.Judge`)."""

    def __init__(self, model: CachedModel) -> None:
        self._model = model

    async def judge(self, said: str, text: str) -> Verdict:
        """Judge whether the statement `said` is true of `text`. If the judge fails, the verdict is None, with the reason."""
        query = statement(said, text)
        answer = await self._model.ask(query)
        if isinstance(answer, str):
            return Verdict(None, answer, by=self._model.by(query), failed=True)
        return Verdict(answer.holds, answer.why[:500], by=self._model.by(query))
