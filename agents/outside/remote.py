"""What agents in another process have in common, however messages get there."""

from __future__ import annotations

import json
from abc import abstractmethod
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple, TypeVar, final

import trio
from pydantic import Field

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Message, Reply, Usage
from longspan.agents.outside.protocol import VERSION, Ability, Answer, Call, Done, Given, Hello, Saved, decoded, line, read

__all__ = ["Dropped", "RemoteAgent", "RemoteOptions", "Request"]

FAREWELL: Final = 5.0
"""Seconds that an agent has for taking note that its conversation is over."""

STATE: Final = "state.json"
"""In a snapshot: what the agent answered to `save`, and the virtual time of the last message."""

FILES: Final = "files"
"""In a snapshot: the folder that an agent on this machine may write to."""

Kind = TypeVar("Kind", bound=Answer)


class RemoteOptions(AgentOptions):
    """`timeout`: seconds that any one answer may take."""

    timeout: float = Field(default=600.0, gt=0, le=86_400, allow_inf_nan=False)


class Request(NamedTuple):
    """A request as it is sent: one line, JSON. `repeatable`: sent twice it does no harm; `now`: the virtual time, where it is known."""

    call: Call
    line: bytes
    repeatable: bool
    now: datetime | None


class RemoteAgent(BaseAgent):
    """Asks an agent in another process, and makes up for what it cannot do.

    Contact is made when it is first needed. Until then it is taken to be able to do everything. `name` is how errors call it.
    """

    takes_target = True
    shares_disk = False

    def __init__(self, target: str, options: AgentOptions | None, name: str) -> None:
        super().__init__(target, options)
        self.name = name
        self._timeout = options.timeout if isinstance(options, RemoteOptions) else RemoteOptions().timeout
        self._hello: Hello | None = None
        self._greeted = False
        self._conversation = token_hex(16)
        self._now: datetime | None = None
        self._dropped = Dropped()

    @property
    def has_snapshots(self) -> bool:
        """Whether it can both save and load."""
        return self._can("save") and self._can("load")

    @property
    def observes(self) -> bool:
        """Whether it can be told of turns."""
        return self._can("observe")

    @property
    def repeatable(self) -> bool:
        """Whether it says that a turn id given twice does no harm."""
        return self._hello is not None and self._hello.repeatable

    async def start(self) -> None:
        """Make contact, so that it is known what the agent can do."""
        if not self._greeted:
            self._hello = await self._ask("hello", Hello, protocol=VERSION)
            self._greeted = True

    async def reply(self, message: Message) -> Reply:
        await self.start()
        self._now = message.sent_at
        given = await self._ask("reply", Given, **_fields(message))
        return self._dropped.onto(given.reply())

    async def observe(self, message: Message, reply: str) -> None:
        await self.start()
        self._now = message.sent_at
        if self._can("observe"):
            await self._ask("observe", Done, **_fields(message), reply=reply)
        else:
            self._dropped.add((await self._ask("reply", Given, **_fields(message))).reply())

    async def reset(self) -> None:
        await self.start()
        self._dropped = Dropped()
        if self._can("reset"):
            await self._ask("reset", Done)
        else:
            await self._renew()

    async def save(self, folder: Path) -> None:
        await self.start()
        saved = await self._ask("save", Saved, **await self._files(folder))
        snapshot = {"state": saved.state, "now": self._now.isoformat() if self._now else None}
        await trio.Path(folder / STATE).write_text(json.dumps(snapshot), "ascii")

    async def load(self, folder: Path) -> None:
        state, self._now = await _snapshot(folder / STATE)
        await self._renew()
        await self.start()
        if not self.has_snapshots:
            raise AgentError(f"{self.name} has no snapshots: it has to be able to `save` and to `load`")
        await self._ask("load", Done, state=state, **await self._files(folder))

    async def close(self) -> None:
        """Tell the agent that the conversation is over, and let go of it."""
        with trio.move_on_after(FAREWELL, shield=True), suppress(AgentError):
            if self._greeted and self._can("close"):
                await self._ask("close", Done)
        await self._renew()

    @abstractmethod
    async def exchange(self, request: Request) -> bytes:
        """The answer to a request: all of it, unread. Raises AgentError. Cancelled where it takes too long."""

    @property
    def last_words(self) -> str:
        """What it said last besides its answers, for errors; empty where that is not known."""
        return ""

    async def leave(self) -> None:
        """End whatever is there for this conversation alone. Never fails, and is not cancelled."""

    async def _renew(self) -> None:
        """Go on with an agent that knows nothing."""
        await self.leave()
        self._greeted = False
        self._conversation = token_hex(16)

    def _can(self, ability: Ability) -> bool:
        return self._hello is None or ability in self._hello.can

    async def _files(self, folder: Path) -> dict[str, str]:
        """The field that tells an agent on this machine where its files are to be; none for others."""
        if not self.shares_disk:
            return {}
        files = trio.Path(folder / FILES)
        await files.mkdir(exist_ok=True)
        return {"folder": str(await files.absolute())}

    async def _ask(self, call: Call, kind: type[Kind], **fields: Any) -> Kind:
        """What the agent answers to a call. Raises AgentError, in one line that names the agent and the call."""
        harmless = call not in ("reply", "observe") or self.repeatable
        request = Request(call, line(call, self._conversation, fields), harmless, self._now)
        answered = False
        try:
            with trio.fail_after(self._timeout):
                answer = await self.exchange(request)
            answered = True
            return read(answer, kind)
        except trio.TooSlowError:
            problem = f"no whole answer within {self._timeout:g} s{self.last_words}; if it needs longer, ?timeout=SECONDS gives it more"
        except AgentError as error:
            problem = str(error)
        finally:
            self._greeted &= answered  # it may be another that answers the next time
        raise AgentError(f"{self.name}: {call}: {problem}")


@final
class Dropped:
    """What replies cost that were asked for and dropped: those of an agent that can only be asked, never told."""

    def __init__(self) -> None:
        self._usage: Usage | None = None

    def add(self, reply: Reply) -> None:
        """Keep what a reply cost that is dropped."""
        used = [*([self._usage] if self._usage else []), *([reply.usage] if reply.usage else []), *reply.besides.values()]
        if used:
            self._usage = Usage(
                sum(each.input_tokens for each in used), sum(each.cached_tokens for each in used), sum(each.output_tokens for each in used)
            )

    def onto(self, reply: Reply) -> Reply:
        """The next reply, with what was dropped before it as a part of its own."""
        usage, self._usage = self._usage, None
        return Reply(reply.text, reply.usage, reply.trace, {**reply.besides, "dropped": usage}) if usage else reply


def _fields(message: Message) -> dict[str, str]:
    return {"turn": message.turn_id, "sent_at": message.sent_at.isoformat(), "text": message.text}


async def _snapshot(path: Path) -> tuple[Any, datetime | None]:
    """The state and the virtual time in a snapshot. Raises AgentError for what is none."""
    try:
        found = decoded(await trio.Path(path).read_bytes())
        now = found["now"]
        return found["state"], datetime.fromisoformat(now) if now is not None else None
    except OSError as error:
        raise AgentError(f"{path}: cannot be read: {error.strerror}") from error
    except (AgentError, LookupError, TypeError, ValueError):
        raise AgentError(f"{path}: not a snapshot of an agent in another process") from None
