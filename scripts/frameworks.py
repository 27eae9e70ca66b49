"""Try agent frameworks, each in an environment of its own, and write their table in docs/guides/connecting.md.

    python -m scripts.frameworks FOLDER [NAME ...]

The agents are in scripts/framework_agents. For each: creates its framework's environment in FOLDER if it does not exist, runs `longspan
check`, and asks it for facts that it was told or observed. Without names, all frameworks are tried, and the table is written.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import trio
from scripts.memory_systems import PATIENCE, System, find_failed_checks, find_version, install_system

from longspan.agents.base import Message
from longspan.simulator.contract.agent import can_observe, can_rewind, close_agent, has_snapshots
from longspan.simulator.running.preflight import checkup as checkup_module
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

PAGE: Final = Path(__file__).parents[1] / "docs" / "guides" / "connecting.md"
BEGIN, END = "<!-- table: scripts/frameworks.py -->", "<!-- end of table -->"

AGENTS: Final = Path(__file__).parent / "framework_agents"


class Framework(NamedTuple):
    """A framework's package, and the names of objects in its module of AGENTS with their descriptions."""

    package: str
    module: str
    objects: dict[str, str]

    @property
    def system(self) -> System:
        """The framework as the script of memory systems knows it."""
        return System(self.package, "", (self.package,))


FRAMEWORKS: Final = (
    Framework("pydantic-ai-slim", "pydantic_ai_agent", {"agent": "pydantic-ai `Agent`"}),
    Framework("openai-agents", "openai_agents_agent", {"agent": "OpenAI Agents SDK `Agent`"}),
    Framework(
        "langgraph",
        "langgraph_agent",
        {"agent": "LangGraph graph, LangChain chat model", "stored": "LangGraph graph with a checkpointer"},
    ),
    Framework("llama-index-core", "llamaindex_agent", {"agent": "LlamaIndex agent, `AgentWorkflow`", "engine": "LlamaIndex chat engine"}),
    Framework("google-adk", "google_adk_agent", {"agent": "Google ADK agent, `Runner`"}),
    Framework(
        "crewai", "crewai_agent", {"assistant": "CrewAI `Agent`", "agent": "CrewAI `Crew` with the inputs `{message}` and `{history}`"}
    ),
    Framework("autogen-agentchat", "autogen_agent", {"agent": "AutoGen `AssistantAgent`", "team": "AutoGen team"}),
    Framework("semantic-kernel", "semantic_kernel_agent", {"agent": "Semantic Kernel `ChatCompletionAgent`"}),
    Framework("smolagents", "smolagents_agent", {"agent": "smolagents `CodeAgent`, `ToolCallingAgent`"}),
    Framework("haystack-ai", "haystack_agent", {"agent": "Haystack `Agent`"}),
    Framework("dspy", "dspy_agent", {"agent": "DSPy module with the inputs `message` and `history`"}),
)


class Findings(NamedTuple):
    """What was found about an agent: failed checks, wrong answers, and its abilities."""

    failed: list[str]
    observes: bool
    saves: bool
    rewinds: bool


def main() -> None:
    """Try the named frameworks, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder for environments")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the packages of the frameworks to try")
    given = parser.parse_args()
    folder = given.folder.resolve()
    checkup_module.DEADLINE = PATIENCE
    os.chdir(AGENTS)
    table = ["| object | `observe` | `save`, `load` | `mark`, `rewind` | tried with |", "| --- | --- | --- | --- | --- |"]
    for framework in FRAMEWORKS:
        if given.names and framework.package not in given.names:
            continue
        environment = folder / framework.package
        install_system(framework.system, environment)
        tried = f"{framework.package} {find_version(framework.system, environment)}"
        for name, description in framework.objects.items():
            spec = AgentSpec.parse(f"python:{framework.module}:{name}?interpreter={environment}/bin/python")
            found = trio.run(_try, spec)
            abilities = ["yes" if able else "no" for able in (found.observes, found.saves, found.rewinds)]
            table.append(f"| {' | '.join([description, *abilities, tried])} |")
            print(tried, name, *(found.failed or ["ok"]), file=sys.stderr, flush=True)
    if given.names:
        print(*table, sep="\n")
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + "\n".join([BEGIN, "", *table, "", END]) + after, "utf-8")


async def _try(spec: AgentSpec) -> Findings:
    """Check an agent, and ask two conversations with it for facts that only one was told."""
    failed = await find_failed_checks(str(spec))
    agent, other = make_agent(spec), make_agent(spec)
    start, asked = datetime(2024, 5, 1, 9), 0

    def say(text: str) -> Message:
        nonlocal asked
        asked += 1
        return Message(text, start + timedelta(minutes=asked), f"t-{asked}")

    try:
        await agent.reply(say("My dog is called Rex."))
        await agent.observe(say("My cat is called Ada."), "I see.")
        await other.observe(say("My cat is called Bob."), "I see.")
        for name, each, question, answer in (
            ("a fact that it replied to", agent, "What is my dog called?", "Rex"),
            ("an observed fact", agent, "What is my cat called?", "Ada"),
            ("a fact of another conversation", other, "What is my cat called?", "Bob"),
        ):
            if answer not in (await each.reply(say(question))).text:
                failed.append(name)
        await agent.reset()
        if (await agent.reply(say("What is my dog called?"))).text != "Nothing yet.":
            failed.append("reset")
        return Findings(failed, can_observe(agent), has_snapshots(agent), can_rewind(agent))
    finally:
        await close_agent(agent)
        await close_agent(other)


if __name__ == "__main__":
    main()
