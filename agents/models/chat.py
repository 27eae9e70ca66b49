"""An agent that is just a chat model: each prompt contains the newest turns of the conversation and the message."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, final

import trio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, InputError, Message, Reply, Tokens, Usage
from longspan.agents.models.core import (
    ChatMessage,
    Completion,
    ContextOverflowError,
    Core,
    OnRefusal,
    RefusalError,
    as_sent,
    clean_unicode,
    more_room,
    stamp_message,
)
from longspan.agents.models.dry import DryCore
from longspan.agents.models.model_speed import pace_of
from longspan.agents.models.window import Eviction, Window
from longspan.simulator.base.errors import first_problem
from longspan.simulator.contract.agent import Pace
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.prompt_log import note_prompt

__all__ = ["ChatAgent", "ChatOptions", "cut_middle"]

CONTEXT: Final = 16_000
"""The default tokens of a prompt, if neither the spec nor the core sets them."""

OVERFLOWS: Final = 4
"""The maximum retries of a prompt that exceeds the provider's limit. Each retry drops a block of turns."""

MIN_MEASURED: Final = 200
"""Shorter prompts do not correct our token count by the provider's."""

MARGIN: Final = 256
"""Tokens that a provider may add to a prompt, such as a schema and the framing of messages."""

CUT_MARK: Final = "\n[...]\n"
"""The replacement of a long message's middle."""

SNAPSHOT: Final = "chat.json"

UNLIMITED: Final = 10**12
"""Tokens that no prompt has."""

MIN_ROOM: Final = 64
"""The minimum tokens for messages."""

MIN_RATIO: Final = 0.75
MAX_RATIO: Final = 2.0
"""Bounds on the ratio of a provider's count of a prompt to the core's."""

Complete = Callable[[list[ChatMessage]], Awaitable[Completion]]
"""A function that prompts a model."""

Ratio = Annotated[float, Field(ge=MIN_RATIO, le=MAX_RATIO, allow_inf_nan=False)]


class ChatOptions(AgentOptions):
    """Options for the part of a conversation that a model sees."""

    context: Tokens | None = None
    """Maximum tokens of a prompt: system message, turns and the new message. Default: the model's window minus its longest answer, or
    16k if that is unknown."""
    eviction: Eviction = "block"
    """Eviction when the context is full: `block` drops the oldest quarter together, so that prompts begin alike and the provider can
    read them from its cache; `sliding` drops turn by turn."""
    timestamps: bool = True
    """Each message begins with its virtual date and time. A run in which each test has a separate conversation sets it to false."""
    overflow: Literal["error", "truncate"] = "error"
    """Treatment of a single message larger than the context: `error` ends the conversation, `truncate` cuts the message's middle."""
    on_refusal: OnRefusal = "reply"
    """Treatment of a refusal by the model: it counts as a `reply`, or as an `error` that ends the conversation."""
    system: str = ""
    """A system message."""


class Cut(BaseModel):
    """A message whose middle was cut, and its tokens before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    turn_id: str
    before: int = Field(ge=0)
    after: int = Field(ge=0)


class LastTurn(BaseModel):
    """The last turn. The same id again means a repeated request."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    turn_id: str
    reply: str
    refused: bool = False


class ShownTurn(NamedTuple):
    """A turn as prompts show it."""

    turn_id: str
    text: str
    reply: str


class ChatSnapshot(BaseModel):
    """A snapshot, as JSON. `turns`: the turns in the window, oldest first."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[2] = 2
    turns: list[ShownTurn]
    last: LastTurn | None
    ratio: Ratio
    cuts: list[Cut]


class _Read(BaseModel):
    """A part of a trace. Only some of its fields are needed."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _CallUsage(_Read):
    input_tokens: int = Field(default=0, ge=0)


class _TracedCall(_Read):
    usage: _CallUsage = _CallUsage()


class _Recent(_Read):
    turns: int = Field(ge=0)


class _TracedPrompt(_Read):
    """The last prompt of a turn according to its trace: its turns, and its tokens by our count and the provider's."""

    recent: _Recent | None = None
    prompt_tokens: int = Field(default=0, ge=0)
    calls: list[_TracedCall] = Field(default_factory=list)


class FittedMessage(NamedTuple):
    """A user message as the model sees it, and its tokens."""

    text: str
    tokens: int
    cut: Cut | None


class ChatAgent(BaseAgent):
    """An agent that prompts `core` with the system message, the newest turns that fit into the context, and the new message.

    Each message is counted once. If the provider's count of the last prompt differs from the core's, the window is scaled to it. Raises
    InputError if the context exceeds the model's window or leaves no room for messages.
    """

    takes_target = True

    def __init__(self, core: Core, options: ChatOptions, target: str = "") -> None:
        super().__init__(target, options)
        self.core = core
        self.options = options
        self.context = _context(core, options)
        self._system = [ChatMessage("system", clean_unicode(options.system))] if options.system else []
        self._fixed = sum(core.count(message.text) + core.overhead for message in self._system)
        if self._fixed + MIN_ROOM > self.context:
            system = f"; the system message has {self._fixed:,} tokens" if self._fixed else ""
            raise InputError(f"{core.name}: context={self.context} leaves no room for messages{system}")
        self._window: Window[ShownTurn] = Window(self.context - self._fixed, options.eviction)
        self._forget()
        self._marked = self._window.copy(), self._last, self._cuts, self._ratio

    def _forget(self) -> None:
        self._window.clear()
        self._last: LastTurn | None = None
        self._cuts: list[Cut] = []
        self._set_ratio(1.0)

    @property
    def models(self) -> Mapping[str, str | Rates]:
        """The model, with its price."""
        return {"agent": self.core.priced_as}

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """Return the maximum tokens for answering `message`."""
        prompt = self._window.used + self._size(self._display(message))
        tokens = self._fixed + min(prompt, self._window.max_tokens)
        return {"agent": Usage(round(tokens * max(1.0, self._ratio)) + MARGIN, 0, self.core.max_output)}

    async def pace(self) -> Pace | None:
        """Time the model if it runs in this process."""
        return await pace_of(self.core)

    def without_model(self) -> DryChat:
        """Return this agent without its model, for estimates."""
        return DryChat(DryCore(self.core), self.options, self.target)

    async def reply(self, message: Message) -> Reply:
        if self._last is not None and self._last.turn_id == message.turn_id:
            return Reply(self._last.reply, refused=self._last.refused)  # without usage: a repetition uses nothing more
        fitted = self._fit(message)
        trace: dict[str, Any] = {}
        try:
            text, usage = await self._answer(message, fitted, trace)
        except RefusalError as refusal:
            if self.options.on_refusal == "error":
                raise
            text, usage = refusal.text, refusal.usage
            trace["refusal"] = refusal.why
        self._add(message, fitted, text, refused="refusal" in trace)
        trace |= self._take_cuts(message.turn_id)
        return Reply(text, usage, trace, refused="refusal" in trace)

    async def observe(self, message: Message, reply: str) -> None:
        if self._last is None or self._last.turn_id != message.turn_id:
            self._add(message, self._fit(message), clean_unicode(reply))

    async def replay(self, message: Message, reply: Reply) -> None:
        """Add a turn that the agent answered before an interruption, so that later prompts stay the same as without it.

        Raises AgentError if the trace is invalid: it may come from a file.
        """
        try:
            told = _TracedPrompt.model_validate(reply.trace or {})
        except ValidationError as error:
            raise AgentError(f"the trace of turn {message.turn_id} cannot be read: {first_problem(error)}") from None
        fitted = self._fit(message)
        if told.recent is not None:
            self._window.keep(told.recent.turns)
        used = told.calls[-1].usage.input_tokens if told.calls else reply.usage.input_tokens if reply.usage else 0
        if told.prompt_tokens >= MIN_MEASURED and used and not reply.refused:
            self._set_ratio(used / told.prompt_tokens)
        self._add(message, fitted, clean_unicode(reply.text), refused=reply.refused)
        self._cuts = []

    async def complete(self, prompt: str, *, schema: Mapping[str, Any] | None) -> Reply:
        """Return the model's answer to `prompt` alone, as JSON if a `schema` is given.

        The conversation is unaffected. Calls may overlap.
        """
        prompt = clean_unicode(prompt)
        size = self._size(prompt)
        if size > self.context:
            raise AgentError(f"{self.core.name}: a prompt of {size:,} tokens is larger than the context of {self.context:,}")
        completion = await self.core.complete([ChatMessage("user", prompt)], schema=schema)
        return Reply(completion.text, completion.usage, completion.told)

    def show_all(self) -> None:
        """Drop no turn from now on."""
        self.context = UNLIMITED
        self._set_ratio(1.0)

    async def reset(self) -> None:
        self._forget()

    async def mark(self) -> None:
        self._marked = self._window.copy(), self._last, list(self._cuts), self._ratio

    async def rewind(self) -> None:
        window, self._last, cuts, ratio = self._marked
        self._window, self._cuts = window.copy(), list(cuts)
        self._set_ratio(ratio)

    async def save(self, folder: Path) -> None:
        saved = ChatSnapshot(turns=list(self._window), last=self._last, ratio=self._ratio, cuts=self._cuts)
        await trio.Path(folder / SNAPSHOT).write_text(saved.model_dump_json(), "utf-8")

    async def load(self, folder: Path) -> None:
        path = folder / SNAPSHOT
        try:
            saved = ChatSnapshot.model_validate_json(await trio.Path(path).read_bytes())
        except OSError as error:
            raise AgentError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise AgentError(f"{path}: not a snapshot of this kind of agent: {first_problem(error)}") from None
        self._forget()
        for turn in saved.turns:
            self._window.add(turn, self._size(turn.text) + self._size(turn.reply))
        self._last, self._cuts = saved.last, list(saved.cuts)
        self._set_ratio(saved.ratio)
        self._window.make_room(0)

    # One message.

    def _display(self, message: Message) -> str:
        """Return a message as the model sees it."""
        text = clean_unicode(message.text)
        return stamp_message(text, message.sent_at) if self.options.timestamps else text

    def _size(self, text: str) -> int:
        return self.core.count(text) + self.core.overhead

    def _message_size(self, message: ChatMessage) -> int:
        return self._size(message.text if message.raw is None else json.dumps(message.raw))

    def _fit(self, message: Message) -> FittedMessage:
        """Return the message, cut if it exceeds the whole window. Raises AgentError if `overflow` forbids cutting."""
        text = self._display(message)
        tokens, max_tokens = self._size(text), self._window.max_tokens
        if tokens <= max_tokens:
            return FittedMessage(text, tokens, None)
        if self.options.overflow == "error":
            raise AgentError(
                f"{self.core.name}: a message of {tokens:,} tokens is larger than the whole window of {max_tokens:,}: "
                f"{more_room(self.core, self.context)}, or overflow=truncate"
            )
        text = cut_middle(text, max_tokens - self.core.overhead, self.core.count)
        cut = Cut(turn_id=message.turn_id, before=tokens, after=self._size(text))
        return FittedMessage(text, cut.after, cut)

    def _add(self, message: Message, fitted: FittedMessage, reply: str, *, refused: bool = False) -> None:
        """Add a finished turn."""
        tokens = fitted.tokens + self._size(reply)
        self._window.make_room(tokens)
        self._window.add(ShownTurn(message.turn_id, fitted.text, reply), tokens)
        self._last = LastTurn(turn_id=message.turn_id, reply=reply, refused=refused)
        if fitted.cut is not None:
            self._cuts.append(fitted.cut)

    def _take_cuts(self, turn_id: str) -> dict[str, Any]:
        """Return the trace of how this message and messages observed since the last reply were cut, and clear it."""
        cuts = {cut.turn_id: {"from": cut.before, "to": cut.after} for cut in self._cuts}
        self._cuts = []
        trace: dict[str, Any] = {"truncated": cuts.pop(turn_id)} if turn_id in cuts else {}
        return trace | {"truncated_before": cuts} if cuts else trace

    # The model.

    async def _answer(self, message: Message, fitted: FittedMessage, trace: dict[str, Any]) -> tuple[str, Usage]:
        """Return the reply and the tokens used, and record details in `trace`. Raises RefusalError."""
        completion = await self._ask(fitted, trace)
        trace |= completion.told
        return completion.text, completion.usage

    async def _ask(
        self, fitted: FittedMessage, trace: dict[str, Any], after: Sequence[ChatMessage] = (), complete: Complete | None = None
    ) -> Completion:
        """Return the model's answer from `complete`, by default the core's, and record the prompt's contents in `trace`.

        `after` holds the messages that follow this one so far. If the prompt exceeds the provider's limit, retry a few times with fewer
        turns.
        """
        complete = complete or self.core.complete
        for _ in range(OVERFLOWS):
            try:
                return await self._try(fitted, trace, after, complete)
            except ContextOverflowError as error:
                if not self._window:
                    raise AgentError(f"{error}; a single message is larger than the model's window: set a smaller context=") from None
                self._window.drop_block()
        return await self._try(fitted, trace, after, complete)

    async def _try(self, fitted: FittedMessage, trace: dict[str, Any], after: Sequence[ChatMessage], complete: Complete) -> Completion:
        tokens = fitted.tokens + sum(map(self._message_size, after))
        self._window.make_room(tokens)
        counted = self._fixed + self._window.used + tokens
        oldest = next(iter(self._window), None)
        trace["recent"] = {"turns": len(self._window), "since": oldest.turn_id if oldest is not None else None}
        trace["prompt_tokens"] = counted
        prompt = [*self._prompt(fitted.text), *after]
        note_prompt(self.core.name, as_sent(prompt))
        completion = await complete(prompt)
        if counted >= MIN_MEASURED:
            self._set_ratio(completion.usage.input_tokens / counted)
        return completion

    def _prompt(self, text: str) -> list[ChatMessage]:
        messages = list(self._system)
        for turn in self._window:
            messages += (ChatMessage("user", turn.text), ChatMessage("assistant", turn.reply))
        messages.append(ChatMessage("user", text))
        return messages

    def _set_ratio(self, ratio: float) -> None:
        """Set the provider's tokens per token of our count."""
        self._ratio = min(max(ratio, MIN_RATIO), MAX_RATIO)
        self._window.max_tokens = max(0, int(self.context / self._ratio) - self._fixed)


@final
class DryChat(ChatAgent):
    """A chat agent without its model, for estimates: it gives prepared replies and counts the tokens that it would have used."""

    def __init__(self, core: DryCore, options: ChatOptions, target: str) -> None:
        super().__init__(core, options, target)
        self._dry = core

    def prompt(self, ideal: str) -> None:
        """Set the next reply."""
        self._dry.reply = ideal


def cut_middle(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return the start and end of `text`, equally long, with a mark between them: at most `max_tokens` tokens by `count`."""
    low, high = 0, len(text) // 2
    while low < high:
        keep = (low + high + 1) // 2
        if count(_ends(text, keep)) <= max_tokens:
            low = keep
        else:
            high = keep - 1
    return _ends(text, low)


def _ends(text: str, keep: int) -> str:
    return text[:keep] + CUT_MARK + text[len(text) - keep :]


def _context(core: Core, options: ChatOptions) -> int:
    """Return the maximum tokens of a prompt. Raises InputError if the model's window is too small."""
    room = core.window - core.max_output if core.window is not None else None
    if room is not None and room < 1:
        raise InputError(f"{core.name}: max_tokens={core.max_output} leaves no room for a prompt in the model's {core.window:,} tokens")
    if options.context is None:
        return CONTEXT if room is None else room
    if room is not None and options.context > room:
        raise InputError(
            f"{core.name}: a context of {options.context:,} tokens and an answer of {core.max_output:,} "
            f"are more than the model's {core.window:,}: set context={room} or less"
        )
    return options.context
