"""The judge: a model that decides what rules cannot. Asked once for each content, at temperature 0; never the agent under test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, final

import trio
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import BaseModel, ConfigDict, ValidationError

from simulator.agent import Completes
from simulator.errors import InputError, JournalError, LongspanError, StoppedError, first_problem, one_line
from simulator.folder import RunFolder
from simulator.ledger import Costs, Ledger, models_of
from simulator.lenient_json import find_json
from simulator.messages import Message, Reply
from simulator.scenario import Ask
from simulator.specs import AgentSpec, make_agent
from simulator.stage import Verdict

__all__ = ["VERSION", "Answer", "Judgement", "LLMJudge", "completing"]

VERSION: Final = 1
"""Of the prompts: raised when a template changes, so that no answer to an older one is taken for an answer to it."""

TEMPLATES: Final = Path(__file__).parent / "templates"

_NO_TIME: Final = datetime(2000, 1, 1)
"""A judge is told no time."""


class Answer(BaseModel):
    """What a judge is asked for: subclass it, a field for each key of the JSON object. Keys besides are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", json_schema_extra={"additionalProperties": False})


@final
class Holds(Answer):
    """Whether a statement holds, and why."""

    holds: bool
    why: str


Answered = TypeVar("Answered", bound=Answer)


@final
class Judgement(BaseModel):
    """An answer that was paid for: to which content (`key`), by whom, and what it cost. `answer` None: it could not be read.

    `about` is `Ask.about` of the statement that was judged; empty for other prompts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    about: str = ""
    by: str
    answer: dict[str, Any] | None
    why: str = ""
    usage: dict[str, int] | None = None
    cost_usd: dict[str, float | None] | None = None


@final
class LLMJudge:
    """Judges with the model that a spec names, and keeps each answer in the run's `judgements.jsonl`.

    The same content is asked once, also by a later scoring of the run. Answers that failed are not kept: they are asked again.
    """

    def __init__(self, spec: str, run: RunFolder, ledger: Ledger | None = None) -> None:
        self.spec = _cold(AgentSpec.parse(spec))
        self._agent = completing(self.spec)
        self._run = run
        self._ledger = ledger or Ledger()
        self._known = {each.key: each for each in _kept(run)}
        self._asking: dict[str, trio.Lock] = {}

    @property
    def by(self) -> str:
        """Who judges, for the journal: the spec and the version of the prompts."""
        return f"{self.spec}, prompt {VERSION}"

    async def judge(self, statement: str, text: str) -> Verdict:
        """Whether `statement` holds of `text`. A failed judgement is a Verdict with None, and says so."""
        fence = hashlib.sha256(f"{statement}\n{text}".encode("utf-8", "replace")).hexdigest()[:16]
        prompt = _template("judge").render(statement=statement, text=text, fence=f"---- {fence}")
        found = await self.ask(prompt, Holds, about=Ask(statement=statement, text=text).about)
        if isinstance(found, str):
            return Verdict(None, found, by=self.by, failed=True)
        return Verdict(found.holds, found.why[:500], by=self.by)

    async def ask(self, prompt: str, answer: type[Answered], about: str = "") -> Answered | str:
        """The model's answer to a prompt, or why there is none. What it has been asked before it is not asked again.

        Raises StoppedError where a limit of dollars would be passed, JournalError where the answer cannot be kept.
        """
        schema = answer.model_json_schema()
        content = json.dumps([self.by, prompt, schema], sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        async with self._asking.setdefault(key, trio.Lock()):
            if key not in self._known:
                found = (await self._ask(key, prompt, schema)).model_copy(update={"about": about})
                read = _read(answer, found)
                if isinstance(read, str):
                    self._run.incident(conversation="", type="judge_error", about=about, error=read)
                    return read
                self._run.judged(found.model_dump(mode="json"))
                self._known[key] = found
        return _read(answer, self._known[key])

    async def _ask(self, key: str, prompt: str, schema: Mapping[str, Any]) -> Judgement:
        costs: Costs | None = None
        message = Message(prompt, _NO_TIME, key[:16])
        models = models_of(self._agent)
        named = {"judge": models["agent"]} if models else models
        try:
            async with self._ledger.paying(named, self._ledger.worst(self._agent, message)) as account:
                reply = await self._agent.complete(prompt, schema=schema)
                costs = account.settle({"judge": reply.usage} if reply.usage else {})
        except (StoppedError, JournalError):
            raise
        except LongspanError as error:
            return Judgement(key=key, by=self.by, answer=None, why=f"the judge failed: {error}")
        except Exception as error:
            return Judgement(key=key, by=self.by, answer=None, why=f"the judge failed: {one_line(error)}")
        usage = _counted(reply)
        answer = _object(reply.text)
        why = "" if answer is not None else f"the judge's answer holds no JSON object: {reply.text!r:.100}"
        return Judgement(key=key, by=self.by, answer=answer, why=why, usage=usage, cost_usd=costs)


def completing(spec: AgentSpec) -> Completes:
    """The agent of a spec, as one that completes prompts. Raises InputError for a kind that does not."""
    agent = make_agent(spec)
    if not isinstance(agent, Completes):
        raise InputError(f"--judge {spec}: this kind of agent cannot judge; a model can, such as openai/gpt-4o")
    return agent


def _cold(spec: AgentSpec) -> AgentSpec:
    """The spec at temperature 0, unless it says another."""
    if "temperature" in spec.options:
        return spec
    return AgentSpec.parse(f"{spec}{'&' if spec.options else '?'}temperature=0")


def _object(text: str) -> dict[str, Any] | None:
    """The last JSON object in a text."""
    objects = [found.value for found in find_json(text[:100_000]) if isinstance(found.value, dict)]
    return objects[-1] if objects else None


def _counted(reply: Reply) -> dict[str, int] | None:
    return asdict(reply.usage) if reply.usage else None


def _read(answer: type[Answered], found: Judgement) -> Answered | str:
    """What was asked for, or why it is not there."""
    if found.answer is None:
        return found.why
    try:
        return answer.model_validate(found.answer)
    except ValidationError as error:
        return f"the judge's answer is not what was asked for: {first_problem(error)}"


def _kept(run: RunFolder) -> list[Judgement]:
    try:
        return [Judgement.model_validate(entry) for entry in run.judgements()]
    except ValidationError as error:
        raise JournalError(f"{run.path / 'judgements.jsonl'}: not a judgement: {first_problem(error)}; move it away") from None


@lru_cache
def _template(name: str) -> Template:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701
    return environment.get_template(f"{name}.j2")
