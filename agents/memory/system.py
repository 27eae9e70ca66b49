"""Third-party memory systems by name, such as `memory/haystack?answerer=...&interpreter=haystack-env/bin/python`.

Each system has an adapter: a file in `systems/` that imports the system's package but nothing from longspan, so it also runs in other
Python environments. It defines a class `Adapter` like a user's memory (see `python.py`). The first argument, `models`, is the model and
embedder that longspan lends (`Models` in agents/outside/bridge.py). To add a system, write its adapter and a class here, and register the
class in the entry-point group `longspan.memories`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, final

from pydantic import ConfigDict, Field

from longspan.agents.base import AgentOptions, InputError
from longspan.agents.memory.lent import EMBEDDER, MODEL, LentModels
from longspan.agents.memory.ltm.embedders import HashEmbedder, choose_embedder_option, make_embedder
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.outside import RemoteMemory
from longspan.agents.memory.python import PythonMemory
from longspan.agents.memory.turns import Turn
from longspan.agents.models.core import make_core
from longspan.agents.outside.bridge import KEY_VARIABLE, Models
from longspan.agents.outside.python import KeptProgram, bridge_command, check_arguments
from longspan.agents.outside.remote import RemoteOptions
from longspan.simulator.base.fields import option_names
from longspan.simulator.contract.plugins import find_class
from longspan.simulator.subject.ledger import Rates

__all__ = ["SystemMemory", "SystemOptions"]

ADAPTERS: Final = Path(__file__).parent / "systems"
"""The folder of adapters."""


class SystemOptions(RemoteOptions):
    """Options that are not declared here are the adapter's own."""

    model_config = ConfigDict(frozen=True, extra="allow")

    interpreter: str | None = None
    """The Python of another environment, which has the system's package. Default: longspan's own."""
    model: str = ""
    """The model that is lent to a system that needs one, as KIND/MODEL, such as `openai/gpt-4o-mini` or `local`."""
    model_options: Mapping[str, str] = Field(default={}, alias="model.NAME")
    """The lent model's option NAME, such as `model.base_url`."""
    embedder: str = "minilm"
    """The embedder that is lent to a system that needs one. Default: `local`, if it is installed."""
    embedder_url: str | None = None
    """The address of the embedder openai/MODEL."""


class SystemMemory(Memory):
    """A third-party memory system. Subclasses name the adapter, whose memory does the work."""

    tells_turns = False
    name: ClassVar[str]
    """The system's name in specs."""
    module: ClassVar[str]
    """The module that must be installed; empty for a service."""
    package: ClassVar[str]
    """The distribution that provides it; empty for a service."""
    service: ClassVar[bool] = False
    """Whether it is a service that pays for its models, at an unknown cost."""
    embeds: ClassVar[bool] = True
    """Whether it needs an embedder."""
    infers: ClassVar[bool] = False
    """Whether a model is optional. A lent model is used unless `infer=false`."""

    class Options(SystemOptions):
        """The system's options."""

    @classmethod
    def defaults_here(cls, options: AgentOptions) -> Mapping[str, str]:
        """Return the installed default embedder, unless the options name one or none is needed."""
        return {} if "embedder" in options.model_fields_set or not cls.embeds else choose_embedder_option()

    @property
    def file(self) -> str:
        """The name of its adapter's module."""
        return self.name.replace("-", "_")

    @classmethod
    def installed(cls) -> str | None:
        """Return the version of its package in this environment; None if it has no package or lacks it."""
        try:
            return version(cls.package) if cls.package else None
        except PackageNotFoundError:
            return None

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        settings = options if isinstance(options, SystemOptions) else SystemOptions()
        spec = f"memory/{self.name}"
        adapter = find_class(f"longspan.agents.memory.systems.{self.file}:Adapter")
        own: dict[str, Any] = dict(settings.model_extra or {})
        check_arguments(adapter, {"models": None, **own}, self.name)
        if settings.interpreter is None and self.module and find_spec(self.module) is None:
            raise InputError(
                f"{spec} needs the package {self.package}: pip install {self.package}, here or in another environment, selected "
                f"with interpreter=ENVIRONMENT/bin/python"
            )
        core = make_core(spec, settings.model, settings.model_options, option_names(SystemOptions)) if settings.model else None
        if settings.model and core is None:
            raise InputError(
                f"{spec}: model= takes KIND/MODEL, such as model=openai/gpt-4o-mini or model=local; got {settings.model!r:.60}"
            )
        embedder = make_embedder(settings.embedder, settings.embedder_url) if self.embeds else HashEmbedder()
        self.lender: LentModels = LentModels(core, embedder)
        self._models: dict[str, str | Rates] = {} if core is None else {MODEL: core.priced_as}
        if embedder.model is not None:
            self._models[EMBEDDER] = embedder.model
        if core is not None and self.infers:
            own = {"infer": "true", **own}
        if settings.interpreter is None:
            target = f"longspan.agents.memory.systems.{self.file}:Adapter"
            arguments = {"models": Models(self.lender.url, self.lender.key), **own}
            self.memory: Memory = PythonMemory(target, settings, arguments=arguments, name=spec)
        else:
            named = f"{ADAPTERS / self.file}.py:Adapter"
            command = bridge_command(named, settings.interpreter, {"models": self.lender.url, **own}, "memory")
            program = KeptProgram(spec, settings, spec, command, variables={KEY_VARIABLE: self.lender.key})
            self.memory = RemoteMemory(program, settings, spec)

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models lent to it; None for a service. Other models that a system calls are unknown."""
        return self.memory.models if self.service else self._models

    def used(self) -> Used:
        """Return the usage of the lent models, and the usage of others that the adapter reports."""
        lent, told = self.lender.take(), self.memory.used()
        return Used({**told.usage, **lent.usage}, told.cost_usd)

    async def close(self) -> None:
        try:
            await self.memory.close()
        finally:
            self.lender.close()

    @property
    def has_snapshots(self) -> bool:
        """Whether the inner memory supports snapshots."""
        return self.memory.has_snapshots

    @property
    def read_only_search(self) -> bool:
        """Whether a search leaves the inner memory unchanged."""
        return self.memory.read_only_search

    async def start(self) -> None:
        await self.memory.start()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        return await self.memory.add(turns, at)

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        return await self.memory.search(query, k, at)

    @property
    def consolidates(self) -> bool:
        """Whether the inner memory consolidates."""
        return self.memory.consolidates

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        return await self.memory.consolidate(at)

    @property
    def forgets(self) -> bool:
        """Whether the inner memory can forget."""
        return self.memory.forgets

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        return await self.memory.forget(text, at)

    async def settle(self) -> None:
        await self.memory.settle()

    async def size(self) -> int | None:
        return await self.memory.size()

    async def reset(self) -> None:
        await self.memory.reset()

    async def save(self, folder: Path) -> None:
        await self.memory.save(folder)

    async def load(self, folder: Path) -> None:
        await self.memory.load(folder)


@final
class LangGraph(SystemMemory):
    """LangGraph's InMemoryStore: turns by their vectors."""

    name, module, package = "langgraph", "langgraph", "langgraph"


@final
class LangChain(SystemMemory):
    """LangChain's InMemoryVectorStore: turns by their vectors."""

    name, module, package = "langchain", "langchain_core", "langchain-core"


@final
class Haystack(SystemMemory):
    """Haystack's InMemoryDocumentStore: turns by BM25."""

    name, module, package, embeds = "haystack", "haystack", "haystack-ai", False


@final
class LlamaIndex(SystemMemory):
    """LlamaIndex's VectorMemoryBlock: turns by their vectors."""

    name, module, package = "llamaindex", "llama_index", "llama-index-core"


@final
class LangMem(SystemMemory):
    """LangMem's tools over LangGraph's store: turns by their vectors, or, with a model, memories that its manager extracts."""

    name, module, package, infers = "langmem", "langmem", "langmem", True


@final
class Txtai(SystemMemory):
    """txtai's embeddings database: turns by their vectors."""

    name, module, package = "txtai", "txtai", "txtai"


@final
class SemanticKernel(SystemMemory):
    """Semantic Kernel's SemanticTextMemory: turns by their vectors."""

    name, module, package = "semantic-kernel", "semantic_kernel", "semantic-kernel"


@final
class AutoGen(SystemMemory):
    """AutoGen's ListMemory: returns everything for every query."""

    name, module, package, embeds = "autogen", "autogen_core", "autogen-core", False
    whole = tells_turns = True


@final
class Mem0(SystemMemory):
    """mem0 over a local Qdrant: turns by their vectors, or with a model the facts that it extracts."""

    name, module, package, infers = "mem0", "mem0", "mem0ai", True


@final
class Letta(SystemMemory):
    """Letta's archival memory at a server: turns by the vectors of the server's embedder."""

    name, module, package, embeds, service = "letta", "", "", False, True
