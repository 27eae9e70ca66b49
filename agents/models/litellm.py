"""Chat models of any provider that the library LiteLLM knows: `litellm/PROVIDER/MODEL`.

Its asynchronous functions need asyncio, so each request runs in a thread. LiteLLM finds keys and addresses in the environment. longspan
retries, limits and pays for requests as for its own kinds.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar, Final, final

import trio

from longspan.agents.base import AgentError, Danger, InputError, Usage
from longspan.agents.models.api import ApiOptions, ServerAnswer, dig_value
from longspan.agents.models.api_agent import ApiAgent
from longspan.agents.models.chat import ChatOptions
from longspan.agents.models.limits import TransientError
from longspan.agents.models.openai import OpenAICore
from longspan.agents.models.provider import NO_KEY, Vendor
from longspan.agents.models.request import Request
from longspan.agents.models.web import list_causes, status_error
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.keys import note_key
from longspan.simulator.contract.agent import worst_danger
from longspan.simulator.subject.ledger import price_usage
from longspan.simulator.subject.purse import note_free

__all__ = ["LITELLM", "LiteLLMAgent", "LiteLLMCore"]

SECRETS: Final = ("AWS_BEARER_TOKEN_BEDROCK", "SNOWFLAKE_JWT", "VERTEXAI_CREDENTIALS", "VERTEX_CREDENTIALS")
"""Variables that LiteLLM reads and whose names do not say that they hold a secret."""

LITELLM = Vendor(
    kind="litellm", extra="litellm", module="litellm", keys=(), url="", url_variable="", make=lambda key, url, http: key
)  # fmt: skip


@cache
def _import_library() -> Any:
    """Import LiteLLM, which then downloads no price list, logs nothing and prints nothing. Return None if it is not installed."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    try:
        import litellm
    except ImportError:
        return None
    litellm.suppress_debug_info = True
    warnings.filterwarnings("ignore", "Items .* are using the `ReadOnly` qualifier")  # of its own types
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).disabled = True
    return litellm


@final
class LiteLLMCore(OpenAICore):
    """A chat model of a provider that LiteLLM knows."""

    vendor: ClassVar[Vendor] = LITELLM

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return its danger: some of LiteLLM's providers load a model in this process, or log in."""
        return worst_danger(super().danger(target, options), "use")

    def __init__(self, target: str, options: ApiOptions) -> None:
        provider = target.partition("/")[0]
        listed: Mapping[str, Any] = {}
        if (library := _import_library()) is not None:
            if provider not in list(library.provider_list) or provider == target:
                raise InputError(f"litellm: expected litellm/PROVIDER/MODEL with a provider of LiteLLM's, got litellm/{target!s:.60}")
            listed = _list_model(library, target)
            if options.base_url is None and options.rates is None and price_usage(f"litellm/{target}", Usage(1)) is None:
                options = options.model_copy(update=_list_prices(listed))
        for name in SECRETS:
            note_key(name)
        super().__init__(target, options)
        self.window = self.window or (listed.get("max_input_tokens") if self.provider.official else None)

    async def ask(self, client: Any, request: Request) -> ServerAnswer:
        options, fields = self.options, self.body(request)
        stream = fields.pop("stream", False)
        # LiteLLM checks the fields that it knows, and passes these on as they are.
        extra = {name: fields.pop(name) for name in options.extra_body if name in fields}
        given = {"extra_headers": dict(options.headers), "extra_body": extra, "api_base": options.base_url}
        if client != NO_KEY:
            given["api_key"] = client
        call = partial(
            _complete, fields | {name: value for name, value in given.items() if value},
            model=self.model, stream=stream, timeout=options.timeout, num_retries=0, max_retries=0,
        )  # fmt: skip
        try:
            # A thread cannot be cancelled: an abandoned one ends when LiteLLM's timeout does, and its answer is dropped.
            events = await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
        except Exception as error:
            raise _translate_error(error) from error
        answer = ServerAnswer()
        for event in events:
            self.read_event(event, answer, "delta" if stream else "message")
        if stream and answer.usage is None and not answer.pieces:
            answer.done = False  # LiteLLM adds the end that an interrupted stream lacks
        return answer


def _complete(body: Mapping[str, Any], **options: Any) -> list[Any]:
    """Ask in this thread. Return the answer as JSON, or its pieces."""
    response = _import_library().completion(**body, **options)
    if options["stream"]:
        return [piece.model_dump(warnings=False) for piece in response]
    event = response.model_dump(warnings=False)
    message = dig_value(event, "choices", 0, "message")
    if isinstance(message, dict):
        message["content"] = message.get("content") or ""  # LiteLLM has None for an empty answer
    return [event]


def _list_model(library: Any, target: str) -> Mapping[str, Any]:
    """Return LiteLLM's facts about a model, empty if unknown. Its function for them may ask a server."""
    provider, _, model = target.partition("/")
    for name in (target, model):
        found: Mapping[str, Any] = library.model_cost.get(name) or {}
        if str(found.get("litellm_provider", "")).startswith(provider):
            return found
    return {}


def _list_prices(listed: Mapping[str, Any]) -> dict[str, float]:
    """Return LiteLLM's prices of a model as options, empty if unknown."""
    names = {"price_in": "input_cost_per_token", "price_cached": "cache_read_input_token_cost", "price_out": "output_cost_per_token"}
    prices = {option: listed[name] * 1e6 for option, name in names.items() if isinstance(listed.get(name), int | float)}
    return prices if {"price_in", "price_out"} <= prices.keys() else {}


def _translate_error(error: Exception) -> Exception:
    """Convert LiteLLM's error by the answer that it hides: LiteLLM changes some statuses and drops some headers."""
    import httpx
    import openai

    for cause in list_causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            note_free()
            response = cause.response
            try:
                body = response.content
            except httpx.ResponseNotRead:  # of a stream
                body = str(error).encode()
            return status_error(response.status_code, response.headers, body)
        if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout):
            note_free()
            return TransientError(f"cannot be reached: {one_line(cause)}", attempts=3)
        if isinstance(cause, httpx.TransportError):
            return TransientError(f"closed the connection: {one_line(cause)}")
        if type(cause) is openai.OpenAIError:  # the base of its errors is raised if there is no key
            note_free()
            return AgentError(f"cannot be asked: {one_line(cause)}")
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and 400 <= status < 500:  # LiteLLM itself refuses the request
        note_free()
        return status_error(status, {}, str(error).encode())
    return TransientError(f"gave an unreadable answer: {one_line(error)}")


@final
class LiteLLMAgent(ApiAgent):
    """An agent that is a chat model of a provider that LiteLLM knows."""

    core_class = LiteLLMCore

    class Options(LiteLLMCore.Options, ChatOptions):
        """The options of the agent and the model."""
