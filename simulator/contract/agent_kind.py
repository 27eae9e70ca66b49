"""What the class of a kind of agent says before there is an agent: its options, its limits and what it could do with a stranger's spec."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from longspan.simulator.contract.agent import Danger
from longspan.simulator.contract.findings import Examination

__all__ = ["AgentKind", "AgentOptions"]


class AgentOptions(BaseModel):
    """An agent's options. Subclass it as `Options` inside the agent, with a pydantic field for each option."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentKind:
    """The base of all agents' classes. A spec's target and options are passed to each method as the constructor gets them."""

    pinned: ClassVar[bool] = True
    """Whether the spec and longspan's version identify the agent under test. Like `danger`, it is only read from built-in classes."""

    class Options(AgentOptions):
        """No options."""

    @classmethod
    def make(cls, target: str, options: AgentOptions) -> Any:
        """Create an agent. A kind whose options decide what runs the agent may return another class's instance."""
        return cls(target, options)  # type: ignore[call-arg]  # BaseAgent's constructor

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return how many conversations such agents hold concurrently in a process; None for no limit."""
        return None

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the worst that an untrusted target and options could make the agent do, None if it is harmless.

        The default is to run code.

        Addresses need not be found: `trust` searches for them itself. Only built-in classes are asked, since asking imports the class.
        """
        return "run"

    @classmethod
    def from_environment(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return options that the environment sets because the spec does not, such as a model's address.

        The run's manifest records them.
        """
        return {}

    @classmethod
    def defaults_here(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the options whose defaults depend on what is installed here. A new run's manifest records them."""
        return {}

    @classmethod
    def source(cls, target: str) -> Path | None:
        """Return the file with the code of the agent under test, if that is the user's own."""
        return None

    @classmethod
    def examination(cls, target: str, options: AgentOptions) -> Examination | None:
        """Return the checks of the agent before a run; None if there are none."""
        return None
