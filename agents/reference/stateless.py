"""The best player without memory. Its score is `chance`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import final

from longspan.agents.base import AgentError, MemorylessAgent, Message, Reply
from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.installed import SCENARIOS, find_entry_points
from longspan.simulator.contract.plugins import installed_scenarios
from longspan.simulator.contract.scenario import Scenario

__all__ = ["Stateless"]


@final
class Stateless(MemorylessAgent):
    """Answers a message with the guess of the first scenario that has one (`Scenario.guess`), else with "OK."."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    @property
    def models(self) -> Mapping[str, str]:
        """No models: it is free."""
        return {}

    @cached_property
    def _scenarios(self) -> Sequence[Scenario]:
        """The installed scenarios that need no parameters."""
        return list(installed_scenarios({name: {} for name in find_entry_points(SCENARIOS)}).values())

    async def reply(self, message: Message) -> Reply:
        """Answer with the first scenario's guess. Raises AgentError if a guess fails."""
        for scenario in self._scenarios:
            try:
                guess = scenario.guess(message.text)
            except BaseException as error:
                if not is_fault(error):
                    raise
                raise AgentError(f"stateless: the guess of scenario {scenario.name} failed: {one_line(error)}") from error
            if guess is not None:
                return Reply(guess)
        return Reply("OK.")
