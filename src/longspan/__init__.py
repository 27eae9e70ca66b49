"""longspan: one very long conversation that tests the memory of conversational agents.

The names for playing runs and for writing agents, scenarios and scripts are imported from here. Everything else is internal and may
move. Names are loaded at first use, so that importing longspan is fast.
"""

from __future__ import annotations

import os

__version__ = "0.4.0"

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from longspan.agents.base import BaseAgent
    from longspan.agents.memory.memory import Memory, MemoryItem
    from longspan.simulator import reading as grading
    from longspan.simulator.api.checking import check
    from longspan.simulator.api.playing import resume, run, run_async
    from longspan.simulator.api.results import Results, load
    from longspan.simulator.base.errors import AgentError, InputError
    from longspan.simulator.base.tables import Table
    from longspan.simulator.contract import queries
    from longspan.simulator.contract.graded_record import Grade, Item, Marked, Record
    from longspan.simulator.contract.messages import Message, Reply, Usage
    from longspan.simulator.contract.scenario import Scenario
    from longspan.simulator.contract.script import Line, Script, Segment
    from longspan.simulator.contract.stage import Stage
    from longspan.simulator.journal.journal import read_journal
    from longspan.simulator.running.preflight.rehearsal import rehearse

__all__ = [
    "AgentError",
    "BaseAgent",
    "Grade",
    "InputError",
    "Item",
    "Line",
    "Marked",
    "Memory",
    "MemoryItem",
    "Message",
    "Record",
    "Reply",
    "Results",
    "Scenario",
    "Script",
    "Segment",
    "Stage",
    "Table",
    "Usage",
    "check",
    "grading",
    "load",
    "queries",
    "read_journal",
    "rehearse",
    "resume",
    "run",
    "run_async",
]

_HOMES = {
    "agents.base": ("BaseAgent",),
    "agents.memory.memory": ("Memory", "MemoryItem"),
    "simulator.base.errors": ("AgentError", "InputError"),
    "simulator.journal.journal": ("read_journal",),
    "simulator.api.checking": ("check",),
    "simulator.api.playing": ("resume", "run", "run_async"),
    "simulator.api.results": ("Results", "load"),
    "simulator.contract.messages": ("Message", "Reply", "Usage"),
    "simulator.contract.graded_record": ("Grade", "Item", "Marked", "Record"),
    "simulator.contract.scenario": ("Scenario",),
    "simulator.contract.script": ("Line", "Script", "Segment"),
    "simulator.contract.stage": ("Stage",),
    "simulator.base.tables": ("Table",),
    "simulator.running.preflight.rehearsal": ("rehearse",),
}
"""The public names by the modules that define them."""

_MODULES = {"grading": "simulator.reading", "queries": "simulator.contract.queries"}
"""The public names that are modules themselves."""

_HOME = {name: module for module, names in _HOMES.items() for name in names}


if not os.path.isdir(f"{__path__[0]}/simulator"):  # a clone whose links are text files, as from a zip  # noqa: PTH112
    __path__.append(os.path.dirname(os.path.dirname(__path__[0])))  # noqa: PTH120


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        found: Any = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _HOME:
        found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
