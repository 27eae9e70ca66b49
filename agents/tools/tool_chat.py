"""A chat model that calls tools: in each turn, it makes rounds of calls until it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, final

from pydantic import Field, TypeAdapter, ValidationError

from longspan.agents.base import AgentError, Message, Tokens, Usage
from longspan.agents.models.chat import MARGIN, MIN_ROOM, ChatAgent, ChatOptions, FittedMessage, cut_middle
from longspan.agents.models.core import ChatMessage, RefusalError, ToolCall, ToolCore, clean_unicode
from longspan.agents.outside.counts import sum_of
from longspan.agents.tools.memories import Memories, cut_for_trace
from longspan.agents.tools.toolbox import Toolbox, ToolResult

__all__ = ["ToolChat", "ToolOptions", "ToolUse"]

MAX_CALLS: Final = 16
"""The maximum calls in one round."""

MAX_NAME: Final = 200
"""The maximum characters of a tool's name in a trace."""

MAX_CHARACTERS: Final = 16
"""The maximum characters of a result per allowed token. It bounds the text before tokens are counted, which is slow."""

MIN_RESULTS: Final = 256
"""The minimum tokens that must remain for results. With less room, the model has to answer."""

NO_ROOM: Final = "(no room for the result)"

SYSTEM: Final = (
    "You talk with a user for a very long time. You are shown only the newest messages; older ones are gone, except for what you have "
    "stored with your tools. Store what may be needed later, such as facts about the user, requests and plans, in the turn in which you "
    "are told. Look up what you need before you answer, unless you have just been told. The user does not see your tools: do not mention "
    "them."
)
"""The default system message."""

_ARGUMENTS: Final = TypeAdapter(dict[str, Any])


class ToolOptions(ChatOptions):
    """How a model calls tools."""

    system: str = SYSTEM
    """The system message. Default: an instruction to store useful facts and to look them up."""
    rounds: int = Field(default=10, ge=1, le=100)
    """The most rounds of tool calls in one turn, each of up to 16 calls, before the model must answer."""
    result_tokens: Tokens = 2000
    """Maximum tokens of a result. The middle of a longer one is cut."""


class ToolUse:
    """The calls of one turn for its trace, and the usage of its rounds."""

    def __init__(self) -> None:
        self.tools: list[dict[str, Any]] = []
        self.written: list[dict[str, Any]] = []
        self.read: list[dict[str, Any]] = []
        self.rounds: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """The usage of all rounds."""
        return sum_of(self.rounds)

    def trace(self) -> dict[str, Any]:
        """Return the trace of a turn. Its last round gave the reply."""
        purposes = ["tools"] * (len(self.rounds) - 1) + ["reply"]
        calls = [{"for": purpose, "usage": asdict(usage)} for purpose, usage in zip(purposes, self.rounds, strict=False)]
        return {"tools": self.tools, "written": self.written, "read": self.read, "calls": calls}


@final
class ToolChat(ChatAgent):
    """A chat agent that runs the tools that `core` calls and prompts it again with their results.

    Later prompts contain messages and replies, but not the calls between them. Results are cut to the room left in the context. The model
    has to answer after `rounds` rounds, or when results fill the context. `memories`: everything stored so far.
    """

    def __init__(self, core: ToolCore, options: ToolOptions) -> None:
        super().__init__(core, options)
        self._core = core
        self._settings = options
        self._toolbox: Toolbox | None = None
        self.memories = Memories()

    def equip(self, toolbox: Toolbox) -> None:
        """Set the tools. Their maker's instructions follow the system message. Raises AgentError if they do not fit."""
        self._toolbox = toolbox
        text = "\n\n".join(filter(None, (clean_unicode(self.options.system), clean_unicode(toolbox.instructions))))
        self._system = [ChatMessage("system", text)] if text else []
        described = json.dumps([tool._asdict() for tool in toolbox.tools], default=dict)
        self._fixed = sum(self._size(message.text) for message in self._system) + self.core.count(described)
        if self._fixed + MIN_ROOM > self.context:
            raise AgentError(
                f"{toolbox.name}: its tools take {self._fixed:,} tokens: too many for context={self.context}; set a larger one"
            )
        self._set_ratio(self._ratio)

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """Return the maximum tokens for answering `message`: all rounds, each with a full context."""
        rounds = self._settings.rounds + 1
        tokens = round(self.context * max(1.0, self._ratio)) + MARGIN
        return {"agent": Usage(rounds * tokens, 0, rounds * self.core.max_output)}

    async def reset(self) -> None:
        await super().reset()
        self.memories = Memories()

    def remember(self, turn: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Record a tool's arguments as a memory of `turn`, unless the tool only reads. Return the memory as a trace lists it, if any."""
        assert self._toolbox is not None  # noqa: S101
        return None if self._toolbox.reads(name) else self.memories.store(turn, arguments)

    async def _answer(self, message: Message, fitted: FittedMessage, trace: dict[str, Any]) -> tuple[str, Usage]:
        use, shown = ToolUse(), dict[str, Any]()
        try:
            text = await self._converse(message.turn_id, fitted, use, shown)
        except RefusalError as refusal:
            use.rounds.append(refusal.usage)
            raise RefusalError(str(refusal), refusal.why, refusal.text, use.usage) from None
        finally:
            trace |= shown | use.trace()
        return text, use.usage

    async def _converse(self, turn: str, fitted: FittedMessage, use: ToolUse, shown: dict[str, Any]) -> str:
        """Return the model's answer. `shown` receives the contents of all rounds' prompts."""
        assert self._toolbox is not None  # noqa: S101
        after: list[ChatMessage] = []
        for number in range(self._settings.rounds + 1):
            may_call = number < self._settings.rounds and self._room(fitted, after) >= MIN_RESULTS
            ask = partial(self._core.use_tools, tools=self._toolbox.tools, may_call=may_call)
            completion = await self._ask(fitted, shown, after, ask)
            use.rounds.append(completion.usage)
            if not completion.calls:
                break
            after.append(ChatMessage("assistant", completion.text, raw=completion.raw))
            for place, call in enumerate(completion.calls):
                room = self._room(fitted, after) // (len(completion.calls) - place)
                after.append(ChatMessage("tool", await self._result(turn, call, place, room, use), call))
        shown |= completion.told
        return completion.text

    async def _result(self, turn: str, call: ToolCall, place: int, room: int, use: ToolUse) -> str:
        """Run a tool and record it. Return the message to the model, with at most `room` tokens."""
        assert self._toolbox is not None  # noqa: S101
        noted: dict[str, Any] = {"tool": call.name[:MAX_NAME]}
        use.tools.append(noted)
        if place >= MAX_CALLS:
            result = ToolResult(f"not called: at most {MAX_CALLS} calls at once", failed=True)
        elif (arguments := _arguments(call)) is None:
            result = ToolResult("its arguments are not a JSON object", failed=True)
        else:
            noted["arguments"] = arguments
            result = await self._toolbox.call(call.name, arguments)
        text = self._cut(clean_unicode(result.text), room)
        noted["result"] = cut_for_trace(text)
        if result.failed:
            noted["failed"] = True
            return f"Error: {text}"
        shown = self.memories.find_shown(text)
        written = self.remember(turn, call.name, noted["arguments"])
        use.written += [written] if written is not None else []
        found_other = self._toolbox.reads(call.name) and any(map(str.isalnum, text))  # not "[]"
        use.read += shown or ([{"text": cut_for_trace(text)}] if found_other else [])
        return text

    # Sizes.

    def _room(self, fitted: FittedMessage, after: Sequence[ChatMessage]) -> int:
        """Return the tokens left for results once all earlier turns are dropped from the prompt."""
        return self._window.max_tokens - fitted.tokens - sum(map(self._message_size, after))

    def _cut(self, text: str, room: int) -> str:
        if room < MIN_ROOM + self.core.overhead:
            return NO_ROOM
        tokens = min(self._settings.result_tokens, room - self.core.overhead)
        keep = tokens * MAX_CHARACTERS // 2
        if len(text) > 2 * keep or self.core.count(text) > tokens:
            text = text if len(text) <= 2 * keep else text[:keep] + text[-keep:]
            return cut_middle(text, tokens, self.core.count)
        return text


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments that a model wrote, None if they are not a JSON object."""
    try:
        return _ARGUMENTS.validate_json(call.arguments or "{}")
    except ValidationError:
        return None
