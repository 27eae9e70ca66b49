"""An agent that is nothing but a chat model: the newest turns of the conversation go to it with each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, final

import trio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, InputError, Message, Reply, Tokens, Usage
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError, Core, clean
from longspan.agents.models.dry import DryCore
from longspan.agents.models.window import Eviction, Window
from longspan.simulator.errors import first_problem

__all__ = ["ChatAgent", "ChatOptions", "cut_middle"]

CONTEXT: Final = 16_000
"""Tokens of the prompt, where neither the spec nor the core knows better."""

OVERFLOWS: Final = 4
"""How often a block is dropped and the model asked again because its prompt was too long after all."""

TRUSTED: Final = 200
"""Tokens from which on a prompt's reported size says something about how well it was counted."""

MARGIN: Final = 256
"""Tokens that a provider may add to a prompt on its own: a schema, what frames the messages."""

CUT: Final = "\n[...]\n"
"""What stands where a message's middle was."""

SAVED: Final = "chat.json"

LEAST: Final = 64
"""Tokens that have to be left for messages."""

LOW: Final = 0.75
HIGH: Final = 2.0
"""How far a provider's count of a prompt is believed to lie from the core's own."""

Ratio = Annotated[float, Field(ge=LOW, le=HIGH, allow_inf_nan=False)]


class ChatOptions(AgentOptions):
    """`context`: tokens of the prompt at most (default: what the model takes, less its longest answer, or 16k where that is
    not known); `eviction` and `overflow`: what happens when a conversation, or one message, outgrows it."""

    context: Tokens | None = None
    eviction: Eviction = "block"
    timestamps: bool = True
    overflow: Literal["error", "truncate"] = "error"
    system: str = ""


class Cut(BaseModel):
    """A message whose middle was cut: its tokens before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    turn_id: str
    before: int = Field(ge=0)
    after: int = Field(ge=0)


class Answered(BaseModel):
    """The last turn: the same id again is the same request again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    turn_id: str
    reply: str


class Saved(BaseModel):
    """A snapshot, as JSON: the turns in the window, oldest first, as pairs of what the model was and is shown."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[1] = 1
    turns: list[tuple[str, str]]
    last: Answered | None
    ratio: Ratio
    cuts: list[Cut]


class Fitted(NamedTuple):
    """A user's message as the model is shown it, and its tokens."""

    text: str
    tokens: int
    cut: Cut | None


class ChatAgent(BaseAgent):
    """Asks `core` with the system message, the newest turns that fit into the context, and the new message.

    Each message is counted once. Where the provider counts otherwise than the core, its own count of the last prompt is what
    the window goes by. Raises InputError for a context that the model does not have, or that leaves no room for messages.
    """

    takes_target = True

    def __init__(self, core: Core, options: ChatOptions, target: str = "") -> None:
        super().__init__(target, options)
        self.core = core
        self.options = options
        self.context = _context(core, options)
        self._system = [ChatMessage("system", clean(options.system))] if options.system else []
        self._fixed = sum(core.count(message.text) + core.overhead for message in self._system)
        if self._fixed + LEAST > self.context:
            taken = f"; the system message has {self._fixed:,} tokens" if self._fixed else ""
            raise InputError(f"{core.name}: context={self.context} leaves no room for messages{taken}")
        self._window: Window[tuple[ChatMessage, ChatMessage]] = Window(self.context - self._fixed, options.eviction)
        self._forget()

    def _forget(self) -> None:
        self._window.clear()
        self._last: Answered | None = None
        self._cuts: list[Cut] = []
        self._weigh(1.0)

    @property
    def models(self) -> Mapping[str, str]:
        """The model that is paid for."""
        return {"agent": self.core.name}

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """The most that answering `message` can use."""
        prompt = self._window.used + self._size(self._shown(message))
        most = self._fixed + min(prompt, self._window.most)
        return {"agent": Usage(round(most * max(1.0, self._ratio)) + MARGIN, 0, self.core.most_output)}

    def without_model(self) -> DryChat:
        """This agent with a model that says what it is told to: for estimates."""
        return DryChat(DryCore(self.core), self.options, self.target)

    async def reply(self, message: Message) -> Reply:
        if self._last is not None and self._last.turn_id == message.turn_id:
            return Reply(self._last.reply)  # nothing more was used
        fitted = self._fit(message)
        completion = await self._ask(fitted)
        self._add(message, fitted, completion.text)
        trace, self._cuts = self._told(message.turn_id), []
        return Reply(completion.text, completion.usage, trace)

    async def observe(self, message: Message, reply: str) -> None:
        if self._last is None or self._last.turn_id != message.turn_id:
            self._add(message, self._fit(message), clean(reply))

    async def complete(self, prompt: str, *, schema: Mapping[str, Any] | None) -> Reply:
        """The model's answer to `prompt` alone, JSON where there is a `schema`; no conversation is kept. Calls may overlap."""
        prompt = clean(prompt)
        size = self._size(prompt)
        if size > self.context:
            raise AgentError(f"{self.core.name}: a prompt of {size:,} tokens is larger than the context of {self.context:,}")
        completion = await self.core.complete([ChatMessage("user", prompt)], schema=schema)
        return Reply(completion.text, completion.usage)

    async def reset(self) -> None:
        self._forget()

    async def save(self, folder: Path) -> None:
        turns = [(user.text, reply.text) for user, reply in self._window]
        saved = Saved(turns=turns, last=self._last, ratio=self._ratio, cuts=self._cuts)
        await trio.Path(folder / SAVED).write_text(saved.model_dump_json(), "utf-8")

    async def load(self, folder: Path) -> None:
        path = folder / SAVED
        try:
            saved = Saved.model_validate_json(await trio.Path(path).read_bytes())
        except OSError as error:
            raise AgentError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise AgentError(f"{path}: not a snapshot of this kind of agent: {first_problem(error)}") from None
        self._forget()
        for turn in saved.turns:
            self._window.add(_exchange(*turn), sum(map(self._size, turn)))
        self._last, self._cuts = saved.last, list(saved.cuts)
        self._weigh(saved.ratio)
        self._window.make_room(0)

    # One message.

    def _shown(self, message: Message) -> str:
        """A message as the model is shown it. The time is absolute, so that it stays the same in every later prompt."""
        text = clean(message.text)
        return f"[{message.sent_at:%a %Y-%m-%d %H:%M:%S}] {text}" if self.options.timestamps else text

    def _size(self, text: str) -> int:
        return self.core.count(text) + self.core.overhead

    def _fit(self, message: Message) -> Fitted:
        """The message, cut where it is larger than the whole window and may be. Raises AgentError where it may not."""
        text = self._shown(message)
        tokens, most = self._size(text), self._window.most
        if tokens <= most:
            return Fitted(text, tokens, None)
        if self.options.overflow == "error":
            raise AgentError(
                f"{self.core.name}: one message of {tokens:,} tokens is larger than the whole window of {most:,}: "
                "take a larger context=, or overflow=truncate"
            )
        text = cut_middle(text, most - self.core.overhead, self.core.count)
        cut = Cut(turn_id=message.turn_id, before=tokens, after=self._size(text))
        return Fitted(text, cut.after, cut)

    def _add(self, message: Message, fitted: Fitted, reply: str) -> None:
        """Note a turn that is over."""
        tokens = fitted.tokens + self._size(reply)
        self._window.make_room(tokens)
        self._window.add(_exchange(fitted.text, reply), tokens)
        self._last = Answered(turn_id=message.turn_id, reply=reply)
        if fitted.cut is not None:
            self._cuts.append(fitted.cut)

    def _told(self, turn_id: str) -> dict[str, Any] | None:
        """What was cut since the last reply: of this message, and of messages it was only told of."""
        own = {cut.turn_id: {"from": cut.before, "to": cut.after} for cut in self._cuts}
        trace: dict[str, Any] = {"truncated": own.pop(turn_id)} if turn_id in own else {}
        return (trace | {"truncated_before": own} if own else trace) or None

    # The model.

    async def _ask(self, fitted: Fitted) -> Completion:
        """The model's answer. A prompt that is too long for it after all is made shorter, a few times."""
        for _ in range(OVERFLOWS):
            try:
                return await self._try(fitted)
            except ContextOverflowError as error:
                if not self._window:
                    raise AgentError(f"{error}; one message is larger than the model's window: take a smaller context=") from None
                self._window.drop_block()
        return await self._try(fitted)

    async def _try(self, fitted: Fitted) -> Completion:
        self._window.make_room(fitted.tokens)
        counted = self._fixed + self._window.used + fitted.tokens
        completion = await self.core.complete(self._prompt(fitted.text))
        if counted >= TRUSTED:
            self._weigh(completion.usage.input_tokens / counted)
        return completion

    def _prompt(self, text: str) -> list[ChatMessage]:
        messages = list(self._system)
        for exchange in self._window:
            messages += exchange
        messages.append(ChatMessage("user", text))
        return messages

    def _weigh(self, ratio: float) -> None:
        """Take `ratio` as the provider's tokens for each of ours."""
        self._ratio = min(max(ratio, LOW), HIGH)
        self._window.most = max(0, int(self.context / self._ratio) - self._fixed)


@final
class DryChat(ChatAgent):
    """A chat agent without its model, for estimates: it answers what it is told to, and counts what asking would have used."""

    def __init__(self, core: DryCore, options: ChatOptions, target: str) -> None:
        super().__init__(core, options, target)
        self._dry = core

    def prompt(self, ideal: str) -> None:
        """The next reply is to be `ideal`."""
        self._dry.reply = ideal


def _exchange(user: str, reply: str) -> tuple[ChatMessage, ChatMessage]:
    return ChatMessage("user", user), ChatMessage("assistant", reply)


def cut_middle(text: str, most: int, count: Callable[[str], int]) -> str:
    """The beginning and the end of `text`, equally long, with a mark between them: at most `most` tokens by `count`."""
    low, high = 0, len(text) // 2
    while low < high:
        keep = (low + high + 1) // 2
        if count(_ends(text, keep)) <= most:
            low = keep
        else:
            high = keep - 1
    return _ends(text, low)


def _ends(text: str, keep: int) -> str:
    return text[:keep] + CUT + text[len(text) - keep :]


def _context(core: Core, options: ChatOptions) -> int:
    """Tokens that a prompt may have."""
    room = core.window - core.most_output if core.window is not None else None
    if room is not None and room < 1:
        raise InputError(f"{core.name}: answers of {core.most_output:,} tokens leave nothing of the model's {core.window:,} for a prompt")
    if options.context is None:
        return CONTEXT if room is None else room
    if room is not None and options.context > room:
        raise InputError(
            f"{core.name}: a context of {options.context:,} tokens and an answer of {core.most_output:,} "
            f"are more than the model's {core.window:,}: take context={room} or less"
        )
    return options.context
