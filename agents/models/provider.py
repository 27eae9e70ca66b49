"""A vendor's API at one address: its key, and the client and the limiter that all in the process who ask it share."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import Any, Final, TypeVar, final
from urllib.parse import urlsplit

import trio
from pydantic import Field

from longspan.agents.base import AgentError, InputError, Tokens, Usage
from longspan.agents.models.core import CoreOptions
from longspan.agents.models.limits import AT_ONCE, Limiter, SharedLimiter, Slot
from longspan.agents.models.web import check_url, explained, http_client, is_loopback
from longspan.simulator.agent import will_be_asked
from longspan.simulator.sweeps.shared_limits import GATE

__all__ = ["Provider", "ProviderOptions", "Vendor"]

Value = TypeVar("Value")

NO_KEY: Final = "none"
"""What a server on this machine is sent where there is no key."""

SHORT: Final = 8
"""Characters below which a key is too short to be looked for in texts."""

_clients: Final[trio.lowlevel.RunVar[dict[tuple[str, str, str], Any]]] = trio.lowlevel.RunVar("clients")
_limiters: Final[trio.lowlevel.RunVar[dict[tuple[str, str], Limiter]]] = trio.lowlevel.RunVar("limiters")


class ProviderOptions(CoreOptions):
    """`base_url`: a server that speaks the vendor's API; `timeout`: seconds that a turn may take; `at_once`, `rpm`, `tpm`:
    most requests at once, requests a minute and tokens a minute. Of these the strictest in the process holds."""

    base_url: str | None = None
    timeout: float = Field(default=600.0, gt=0, le=86_400, allow_inf_nan=False)
    at_once: int | None = Field(default=None, ge=1, le=10_000)
    rpm: int | None = Field(default=None, ge=1)
    tpm: Tokens | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A kind of API: the `extra` that installs the `module` of its library, the environment variables that may hold a key,
    the address of its own servers, and how to make the library's client from key, address and HTTP client."""

    kind: str
    extra: str
    module: str
    keys: tuple[str, ...]
    url: str
    make: Callable[[str, str, Any], Any]


@final
class Provider:
    """Asks a vendor's API on behalf of `model`.

    Raises InputError where the library, the key or a usable address is missing.
    """

    def __init__(self, vendor: Vendor, model: str, options: ProviderOptions) -> None:
        self._vendor = vendor
        self._options = options
        if not model or not model.isprintable() or ".." in model or set(model) & set(" ?#"):
            raise InputError(f"{vendor.kind}: a model is named {vendor.kind}/MODEL, got {model!r:.60}")
        self.url = check_url(options.base_url) if options.base_url is not None else vendor.url
        self.own = self.url == vendor.url
        self.name = f"{vendor.kind if self.own else _host(self.url)}/{model}"
        try:
            import_module(vendor.module)
        except ImportError as error:
            raise InputError(f"{vendor.kind}/{model} needs more than longspan itself: pip install 'longspan[{vendor.extra}]'") from error
        self._key = self._find_key()
        self._secret = self._key if len(self._key) >= SHORT else ""

    def _find_key(self) -> str:
        for name in self._vendor.keys:
            key = os.environ.get(name, "").strip()
            if key:
                if not key.isascii() or not key.isprintable():
                    raise InputError(f"{self.name}: what the environment variable {name} holds is no key: it has odd characters in it")
                return key
        if is_loopback(self.url) or not will_be_asked():
            return NO_KEY
        raise InputError(f"{self.name} needs a key: put it into the environment variable {' or '.join(self._vendor.keys)}")

    def scrubbed(self, text: str) -> str:
        """`text` without the key."""
        return text.replace(self._secret, "[key]") if self._secret else text

    async def call(self, send: Callable[[Any], Awaitable[tuple[Value, Usage]]], *, tokens: float) -> tuple[Value, Usage]:
        """What `send` gives, called with the library's client and tried again where that may help; and the tokens used.

        `tokens`: about how many that will be. Raises AgentError, without the key in it.
        """
        limiter = self._limiter()

        async def attempt(slot: Slot) -> tuple[Value, Usage]:
            try:
                value, usage = await send(self._client())
            except Exception as error:
                raise explained(error, limiter.answers) from None
            slot.tokens = usage.input_tokens + usage.output_tokens
            return value, usage

        try:
            return await limiter.call(attempt, timeout=self._options.timeout, tokens=tokens)
        except AgentError as error:
            # Neither its cause nor its context goes along: a library's errors hold requests, and requests hold keys.
            raise type(error)(self.scrubbed(f"{self.name}: {error}")) from None

    def _limiter(self) -> Limiter:
        """The limiter of this Trio run: its times are the run's."""
        given = self._options
        known: dict[tuple[str, str], Limiter] = _of_run(_limiters)
        key = (self._vendor.kind, self.url)
        if key not in known:
            most, gate = _share(given.at_once or AT_ONCE), GATE.get()
            known[key] = Limiter(most) if gate is None else SharedLimiter(gate, key, most)
        known[key].restrict(_share(given.at_once), _share(given.rpm), _share(given.tpm))
        return known[key]

    def _client(self) -> Any:
        """The library's client of this Trio run: making one takes longer than a request, and it keeps its connections."""
        known = _of_run(_clients)
        key = (self._vendor.kind, self.url, self._key)
        if key not in known:
            http = http_client(self.url, self._secret)
            known[key] = self._vendor.make(self._key, self.url, http)
            trio.lowlevel.spawn_system_task(_close_at_the_end, http, name="longspan: an API's connections")
        return known[key]


async def _close_at_the_end(http: Any) -> None:
    """Close a client's connections when the Trio run ends, which cancels its system tasks."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.move_on_after(1, shield=True), suppress(Exception):
            await http.aclose()


def _of_run(variable: trio.lowlevel.RunVar[dict[Any, Any]]) -> dict[Any, Any]:
    """A table that begins empty with each Trio run."""
    try:
        return variable.get()
    except LookupError:
        variable.set({})
        return variable.get()


def _host(url: str) -> str:
    """Whose server it is: the provider that genai-prices knows by its address, or else host and port."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider(None, None, url).id
    except LookupError:
        return urlsplit(url).netloc


def _share(limit: float | None) -> float:
    """This process's share of a limit, at least 1, where several play a sweep (see simulator/workers.py); inf without one."""
    return inf if limit is None else max(1, limit // int(os.environ.get("LONGSPAN_PROCESSES", "1")))
