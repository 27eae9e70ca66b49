"""An agent that speaks ACP (Agent Client Protocol): a program that gets and gives lines of JSON-RPC.

    acp:gemini --experimental-acp        acp:python3 agent.py?timeout=600

The program keeps each conversation, as a session, and gets only the newest message. It has no files and no terminal of longspan's, and is
refused every permission that it asks for.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, final

import trio

from longspan.agents.base import AgentError, AgentOptions, Message, Reply
from longspan.agents.models.api import dig_value
from longspan.agents.models.stateful import MAX_ID, ServerPoint
from longspan.agents.models.thinking import trace_thinking
from longspan.agents.outside.exec import split_command
from longspan.agents.outside.program import Program
from longspan.agents.outside.protocol import MAX_BYTES, decode_json, make_printable
from longspan.agents.outside.remote import count_processors, too_slow
from longspan.agents.outside.session_agent import OutsideSessionAgent, SessionOptions

__all__ = ["AcpAgent"]

VERSION: Final = 1

NO_METHOD: Final = -32601
"""JSON-RPC's code for a method that does not exist."""


@final
class AcpAgent(OutsideSessionAgent):
    """An agent behind ACP."""

    class Options(SessionOptions):
        """The options of an agent behind ACP."""

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return the option `at_once`, by default the number of processors, since each conversation runs a process."""
        return super().at_once(target, options) or count_processors()

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        super().__init__(target, options if isinstance(options, SessionOptions) else self.Options(), f"acp:{target}"[:80])
        self._program = Program(split_command("acp", target), os.environ)
        self._abilities: Any = None
        self._asked = 0

    @property
    def rejoins(self) -> bool:
        """Whether it can load a session, assumed so until it is started."""
        return self._abilities is None or dig_value(self._abilities, "loadSession") is True

    async def start(self) -> None:
        if self._abilities is None:
            able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
            answer, _, _ = await self._call("initialize", {"protocolVersion": VERSION, "clientCapabilities": able})
            self._abilities = dig_value(answer, "agentCapabilities") or {}

    async def reply(self, message: Message) -> Reply:
        await self.start()
        if not self.point.id:
            answer, _, _ = await self._call("session/new", self._place)
            session = dig_value(answer, "sessionId")
            if not isinstance(session, str) or not 0 < len(session) <= MAX_ID:
                raise AgentError(f"{self.name}: session/new: answered without a valid sessionId")
            self.point = ServerPoint(id=session)
        prompt = {"sessionId": self.point.id, "prompt": [{"type": "text", "text": self.display(message)}]}
        answer, said, thought = await self._call("session/prompt", prompt)
        return Reply(said, trace=self.point.trace | trace_thinking(thought), refused=dig_value(answer, "stopReason") == "refusal")

    async def rejoin(self, message: Message, reply: Reply) -> bool:
        await self.start()
        if not self.rejoins or not await super().rejoin(message, reply):
            return False
        await self._call("session/load", {"sessionId": self.point.id} | self._place)
        return True

    async def reset(self) -> None:
        await super().reset()
        await self.close()
        self._abilities = None  # of the ended program

    async def close(self) -> None:
        await self._program.end()

    @property
    def _place(self) -> dict[str, Any]:
        return {"cwd": str(Path.cwd()), "mcpServers": []}

    async def _call(self, method: str, params: dict[str, Any]) -> tuple[Any, str, str]:
        """Return a call's result, and what the agent said and thought until then."""
        problem: AgentError | None = None
        try:
            with trio.fail_after(self._timeout):
                await self._program.open()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._program.drain)
                    try:
                        return await self._exchange(method, params)
                    except AgentError as error:  # raised below, so that no group wraps it
                        problem = error
                    finally:
                        nursery.cancel_scope.cancel()
        except trio.TooSlowError:
            problem = AgentError(too_slow(self._timeout, self._program.stderr_hint))
        finally:
            if problem is not None:
                await self._program.kill()
        raise AgentError(f"{self.name}: {method}: {problem}") from None

    async def _exchange(self, method: str, params: dict[str, Any]) -> tuple[Any, str, str]:
        self._asked += 1
        await self._send(id=self._asked, method=method, params=params)
        texts: dict[str, list[str]] = {"agent_message_chunk": [], "agent_thought_chunk": []}
        size = 0
        while (line := await self._program.receive()) is not None:
            size += len(line)
            if size > MAX_BYTES:
                raise AgentError(f"answered with more than {MAX_BYTES:,} bytes")
            told = decode_json(line)
            called, id = dig_value(told, "method"), dig_value(told, "id")
            text = dig_value(told, "params", "update", "content", "text")
            if called == "session/update" and isinstance(text, str):
                texts.get(str(dig_value(told, "params", "update", "sessionUpdate")), []).append(text)
            elif called == "session/request_permission":
                await self._send(id=id, result={"outcome": _refuse(told)})
            elif called is not None and id is not None:
                await self._send(id=id, error={"code": NO_METHOD, "message": f"there is no {make_printable(str(called), 60)}"})
            elif called is None and id == self._asked:
                if (error := dig_value(told, "error")) is not None:
                    raise AgentError(f"failed: {make_printable(str(dig_value(error, 'message') or error))}")
                return dig_value(told, "result"), *("".join(each) for each in texts.values())
        raise await self._program.why_it_ended()

    async def _send(self, **message: Any) -> None:
        await self._program.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def _refuse(request: Any) -> dict[str, str]:
    """Return the outcome of a request for a permission: the option that rejects it, if there is one."""
    options = dig_value(request, "params", "options")
    for option in options if isinstance(options, list) else ():
        if dig_value(option, "kind") in ("reject_once", "reject_always") and isinstance(dig_value(option, "optionId"), str):
            return {"outcome": "selected", "optionId": option["optionId"]}
    return {"outcome": "cancelled"}
