"""A vendor's API at one address: its key, and the client and limiter shared by the whole process."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeVar, final
from urllib.parse import urlsplit

import trio
from pydantic import Field, field_validator

from longspan.agents.base import AgentError, InputError, Tokens, Usage
from longspan.agents.models.core import CoreOptions
from longspan.agents.models.limits import DEFAULT_AT_ONCE, Limiter, SharedLimiter, Slot
from longspan.agents.models.web import check_header, check_url, http_client, is_loopback, translate_error
from longspan.agents.prices import PriceOptions
from longspan.simulator.base.keys import note_key, redact
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.base.process_shares import process_share
from longspan.simulator.contract.agent import will_be_asked
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.purse import current_purse, meter_call, note_used
from longspan.simulator.subject.replies import current_replies
from longspan.simulator.subject.shared_limits import SHARED_LIMITS

__all__ = ["NO_KEY", "Provider", "ProviderOptions", "Vendor", "run_table"]

Value = TypeVar("Value")

NO_KEY: Final = "none"
"""The key sent to a server on this machine if no key is set."""

_clients: Final[trio.lowlevel.RunVar[dict[tuple[object, ...], Any]]] = trio.lowlevel.RunVar("clients")
_limiters: Final[trio.lowlevel.RunVar[dict[tuple[str, str], Limiter]]] = trio.lowlevel.RunVar("limiters")


class ProviderOptions(CoreOptions, PriceOptions):
    """How requests to a provider are made. Of several limits in a process, the strictest applies."""

    base_url: str | None = None
    """A server that speaks the vendor's API. Default: the address that the environment names, or the vendor's."""
    key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """The environment variable that holds the key. Only its name is written to files. Default: the vendor's."""
    headers: Mapping[str, str] = Field(default={}, alias="header.NAME")
    """A header of every request, such as `header.X-Team=memory`; repeat it with other names. It is written to files."""
    timeout: float = Field(default=600.0, gt=0, le=86_400, allow_inf_nan=False)
    """The most seconds that a turn may take, all retries included. One attempt may take half of them."""
    at_once: int | None = Field(default=None, ge=1, le=10_000)
    """The most requests at the same time. Default: 100."""
    rpm: int | None = Field(default=None, ge=1, le=10_000_000)
    """The most requests in any minute."""
    tpm: Tokens | None = None
    """The most tokens of prompts and answers in any minute."""

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: Mapping[str, str]) -> Mapping[str, str]:
        return {check_header(name, value): value for name, value in headers.items()}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A kind of API.

    `extra` installs the library's `module`. `keys` are the environment variables that may hold a key; without any, the library finds it.
    `url` is the address of the vendor's servers, which may have environment variables in braces, and `url_variable` the environment
    variable that overrides it. `make` creates the library's client from key, address and HTTP client.
    """

    kind: str
    extra: str
    module: str
    keys: tuple[str, ...]
    url: str
    url_variable: str
    make: Callable[[str, str, Any], Any]

    def address(self) -> str:
        """Return the address from the environment, or else the vendor's. Raises InputError if it is invalid or incomplete."""
        given = os.environ.get(self.url_variable, "").strip()
        if given:
            return check_url(given, self.url_variable).rstrip("/")
        values = {name: os.environ.get(name, "").strip().rstrip("/") for name in re.findall(r"\{(\w+)\}", self.url)}
        if missing := [name for name, value in values.items() if not value]:
            raise InputError(f"{self.kind} needs an address: set the environment variable {' and '.join(missing)}, or base_url=")
        # Google's global location has no part in the name of its host.
        return check_url(self.url.format_map(values).replace("//global-", "//"), " and ".join(values)) if values else self.url


@final
class Provider:
    """A vendor's API, called on behalf of `model`.

    Raises InputError without the library, the key or a usable address.
    """

    def __init__(self, vendor: Vendor, model: str, options: ProviderOptions) -> None:
        self._vendor = vendor
        self._options = options
        if not model or not model.isprintable() or ".." in model or set(model) & set(" ?#"):
            raise InputError(f"{vendor.kind}: a model is named {vendor.kind}/MODEL, got {model!r:.60}")
        self.url = check_url(options.base_url).rstrip("/") if options.base_url is not None else vendor.address()
        self.official = self.url == vendor.url
        self.name = f"{vendor.kind if self.official else _provider_name(self.url)}/{model}"
        self.priced_as: str | Rates = options.rates or self.name
        self._purse = current_purse()
        if self._purse is not None:
            self._purse.meters.append(self.priced_as)
        try:
            import_module(vendor.module)
        except ImportError as error:
            raise InputError(f"{vendor.kind}/{model} needs an extra: {install_extra(vendor.extra)}") from error
        self._missing = ""
        self._key = self._find_key()

    def _find_key(self) -> str:
        named = self._options.key_env
        names = (named,) if named is not None else self._vendor.keys
        for name in names:
            key = os.environ.get(name, "").strip()
            if key:
                note_key(name)
                if not key.isascii() or not key.isprintable():
                    raise InputError(
                        f"{self.name}: the environment variable {name} is not a valid key: it has non-ASCII or unprintable characters"
                    )
                return key
        if not will_be_asked() or (named is None and (is_loopback(self.url) or not names)):
            return NO_KEY
        if current_replies() is not None:
            self._missing = " or ".join(names)
            return NO_KEY
        raise InputError(f"{self.name} needs a key: set the environment variable {' or '.join(names)}")

    async def call(self, send: Callable[[Any], Awaitable[tuple[Value, Usage]]], at_most: Usage) -> tuple[Value, Usage]:
        """Call `send` with the library's client, with retries. Return its result and the tokens used.

        `at_most` estimates the maximum tokens. Each attempt is recorded and counts against the limits: `send` should call `note_used` as
        soon as it knows its usage. Raises AgentError, without the key in it, and StoppedError if an attempt could exceed a limit.
        """
        if self._missing and (replies := current_replies()) is not None:
            remedy = f"set the environment variable {self._missing}"
            raise AgentError(f"{self.name}: the reply to a prompt is not in {replies.path}, and there is no key to ask for it: {remedy}")
        limiter = self._limiter()

        async def attempt(slot: Slot) -> tuple[Value, Usage]:
            async with meter_call(self._purse, self.name, self.priced_as, at_most):
                try:
                    value, usage = await send(self._client())
                except Exception as error:
                    raise translate_error(error, limiter.answers) from None
                note_used(usage)
            slot.tokens = usage.input_tokens + usage.output_tokens
            return value, usage

        try:
            return await limiter.call(attempt, timeout=self._options.timeout, tokens=at_most.input_tokens + at_most.output_tokens)
        except AgentError as error:
            # Drop cause and context: a library's errors hold requests, and requests hold keys.
            named = type(error)(redact(f"{self.name}: {error}"))
            vars(named).update(vars(error))
            raise named from None

    def _limiter(self) -> Limiter:
        """Return the limiter of this Trio run. Another run could not use its times."""
        options = self._options
        limiters: dict[tuple[str, str], Limiter] = run_table(_limiters)
        key = (self._vendor.kind, self.url or self.name.split("/")[1])
        if key not in limiters:
            at_once, shared = process_share(options.at_once or DEFAULT_AT_ONCE), SHARED_LIMITS.get()
            limiters[key] = Limiter(at_once) if shared is None else SharedLimiter(shared, key, at_once)
        limiters[key].restrict(process_share(options.at_once), process_share(options.rpm), process_share(options.tpm))
        return limiters[key]

    def _client(self) -> Any:
        """Return the library's client of this Trio run. Creating one takes longer than a request, and it keeps connections open."""
        clients = run_table(_clients)
        headers = self._options.headers
        key = (self._vendor.kind, self.url, self._key, *sorted(headers.items()))
        if key not in clients:
            http = http_client(self.url, headers)
            clients[key] = self._vendor.make(self._key, self.url, http)
            trio.lowlevel.spawn_system_task(_close_with_run, http, name="longspan: an API's connections")
        return clients[key]


async def _close_with_run(http: Any) -> None:
    """Close a client's connections when the Trio run ends, which cancels its system tasks."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.move_on_after(1, shield=True), suppress(Exception):  # the run is over: a failed close must not change its outcome
            await http.aclose()


def run_table(variable: trio.lowlevel.RunVar[dict[Any, Any]]) -> dict[Any, Any]:
    """Return a dictionary that starts empty with each Trio run."""
    try:
        return variable.get()
    except LookupError:
        variable.set({})
        return variable.get()


def _provider_name(url: str) -> str:
    """Return genai-prices' name of the provider at this address, else host and port."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider(None, None, url).id
    except LookupError:
        return urlsplit(url).netloc
