"""An agent that speaks A2A (Agent2Agent), by its JSON-RPC binding in version 0.3 or 1.0.

    a2a:https://agent.example/path        a2a:http://127.0.0.1:9999?timeout=60

The address is the one above `/.well-known/agent-card.json`. The agent keeps each conversation, as a context, and gets only the newest
message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any, Final, NamedTuple, final
from urllib.parse import quote, urlsplit

import trio
from pydantic import Field

from longspan.agents.base import AgentError, AgentOptions, Danger, Message, Reply
from longspan.agents.models.api import dig_value
from longspan.agents.models.stateful import MAX_ID, ServerPoint
from longspan.agents.models.web import check_url, is_loopback
from longspan.agents.outside.http import ASCII, KEY, Connection
from longspan.agents.outside.protocol import decode_json, make_printable
from longspan.agents.outside.remote import too_slow
from longspan.agents.outside.session_agent import OutsideSessionAgent, SessionOptions
from longspan.simulator.base.errors import InputError

__all__ = ["A2aAgent"]

CARD: Final = "/.well-known/agent-card.json"

FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 2.0
"""Seconds before a task that is not finished is asked for again: the first pause, which doubles up to the maximum."""

UNFINISHED: Final = ("submitted", "working")
ANSWERED: Final = ("completed", "input-required", "rejected")


class _Interface(NamedTuple):
    """Where and how the agent is called: its address, the version of the protocol, and the tenant that requests name, if any."""

    url: str
    version: str
    tenant: str | None

    @property
    def is_old(self) -> bool:
        """Whether it is of a version before 1.0, which has other names."""
        return self.version.startswith("0.")


@final
class A2aAgent(OutsideSessionAgent):
    """An agent behind A2A."""

    class Options(SessionOptions):
        """The options of an agent behind A2A."""

        key_env: str = Field(default=KEY, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
        """The environment variable that holds the key, which is sent as a bearer token."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return "call": it sends requests to its target."""
        return "call"

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        self.url = check_url(quote(target, safe=ASCII), "agent over A2A", settings.key_env).rstrip("/")
        super().__init__(target, settings, f"a2a:{self.url}")
        self._connection = Connection(self.url, settings.key_env)
        self._interface: _Interface | None = None
        self._sender = token_hex(8)

    async def reply(self, message: Message) -> Reply:
        try:
            with trio.fail_after(self._timeout):
                reply = await self._ask(self.display(message), message.turn_id)
        except trio.TooSlowError:
            raise AgentError(f"{self.name}: {too_slow(self._timeout)}") from None
        except AgentError as error:
            raise AgentError(f"{self.name}: {error}") from None
        return replace(reply, trace=self.point.trace)

    async def _ask(self, text: str, turn: str) -> Reply:
        """Send a message, and wait until its task is finished or needs another message."""
        if self._interface is None:
            self._interface = await self._find_interface()
        old, known = self._interface.is_old, {"contextId": self.point.id, "taskId": self.point.task}
        message = {
            # An agent may recognise a message that is sent again by its id.
            "messageId": f"{self.point.id or self._sender}-{turn}",
            "role": "user" if old else "ROLE_USER",
            "parts": [{"text": text} | ({"kind": "text"} if old else {})],
            **({"kind": "message"} if old else {}),
            **{name: id for name, id in known.items() if id},
        }
        wait = {"blocking": True} if old else {}  # later versions wait unless told otherwise
        params = {"message": message, "configuration": {"acceptedOutputModes": ["text/plain"], **wait}}
        answer = await self._call("message/send" if old else "SendMessage", params, repeatable=False)
        if not old:  # named by its kind
            answer = next((answer[kind] for kind in ("task", "message") if isinstance(dig_value(answer, kind), dict)), answer)
        pause, id = FIRST_PAUSE, dig_value(answer, "id")
        while (state := _state(answer)) in UNFINISHED and isinstance(id, str):
            await trio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)
            answer = await self._call("tasks/get" if old else "GetTask", {"id": id, "historyLength": 1}, repeatable=True)
        context = dig_value(answer, "contextId") or self.point.id
        if not isinstance(context, str) or not 0 < len(context) <= MAX_ID:
            raise AgentError("answered without a valid contextId, so that it cannot continue a conversation")
        if self.point.id and context != self.point.id:
            raise AgentError("answered in another context: it has lost the conversation")
        said = _said(answer)
        if state is not None and state not in ANSWERED:
            raise AgentError(f"its task is {make_printable(state)}{f': {make_printable(said)}' if said else ''}")
        self.point = ServerPoint(id=context, task=id[:MAX_ID] if state == "input-required" and isinstance(id, str) else "")
        return Reply(said, refused=state == "rejected")

    async def _find_interface(self) -> _Interface:
        """Return the interface that the agent's card names."""
        try:
            card = decode_json(await self._connection.send(None, repeatable=True, url=self.url + CARD))
        except AgentError as error:
            raise AgentError(f"its card, {self.url}{CARD}: {error}") from None
        return _choose_interface(card, self.url)

    async def _call(self, method: str, params: dict[str, Any], *, repeatable: bool) -> Any:
        """Return the result of a JSON-RPC call."""
        assert self._interface is not None  # noqa: S101
        url, version, tenant = self._interface
        params |= {"tenant": tenant} if tenant else {}
        body = json.dumps({"jsonrpc": "2.0", "id": token_hex(8), "method": method, "params": params}).encode()
        answer = decode_json(await self._connection.send(body, repeatable=repeatable, url=url, headers={"A2A-Version": version}))
        if (error := dig_value(answer, "error")) is not None:
            details = dig_value(error, "message") or error
            raise AgentError(f"failed: {make_printable(details if isinstance(details, str) else json.dumps(details))}")
        result = dig_value(answer, "result")
        if not isinstance(result, dict):
            raise AgentError(f"gave an answer without a result: {make_printable(json.dumps(answer))}")
        return result


def _choose_interface(card: Any, url: str) -> _Interface:
    """Return the JSON-RPC interface in an agent's card, the newest if there are several.

    Raises AgentError if there is none, and InputError for one of another server, which must not get the key.
    """
    first = {"url": dig_value(card, "url"), "transport": dig_value(card, "preferredTransport") or "JSONRPC"}
    version = dig_value(card, "protocolVersion") or "0.3"
    found = [
        _Interface(str(at), str(dig_value(each, "protocolVersion") or version), dig_value(each, "tenant"))
        for each in [*_items(card, "supportedInterfaces"), first, *_items(card, "additionalInterfaces")]
        if (at := dig_value(each, "url")) and (dig_value(each, "protocolBinding") or dig_value(each, "transport")) == "JSONRPC"
    ]
    if not found:
        raise AgentError(f"its card names no interface for JSON-RPC: {make_printable(json.dumps(card))}")
    chosen = min(found, key=lambda each: each.is_old)
    if not _is_same_server(check_url(chosen.url, "the address in the agent's card"), url):
        raise InputError(f"a2a:{url}: its card names another server, {make_printable(chosen.url)}: use a2a: with that server's address")
    return chosen


def _is_same_server(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    same_host = first.hostname == second.hostname or (is_loopback(one) and is_loopback(other))
    return same_host and (first.scheme, first.port) == (second.scheme, second.port)


def _state(answer: Any) -> str | None:
    """Return the state of a task as version 0.3 names it; None for a message."""
    state = dig_value(answer, "status", "state")
    return state.lower().removeprefix("task_state_").replace("_", "-") if isinstance(state, str) else None


def _said(answer: Any) -> str:
    """Return the text of a task or a message: of its artifacts, or else of its status, or of its own parts."""
    artifacts = map(_text, _items(answer, "artifacts"))
    return "\n".join(filter(None, artifacts)) or _text(dig_value(answer, "status", "message")) or _text(answer)


def _text(message: Any) -> str:
    """Return the text of a message's or an artifact's parts."""
    texts = [dig_value(part, "text") for part in _items(message, "parts")]
    return "".join(text for text in texts if isinstance(text, str))


def _items(value: Any, name: str) -> list[Any]:
    """Return a list in JSON, empty if it is missing."""
    found = dig_value(value, name)
    return found if isinstance(found, list) else []
