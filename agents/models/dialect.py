"""What a server rejects in requests for a model, learned from its errors once per process.

After a rejection, the request is sent again with an adaptation of `ADAPTATIONS`. If the error names parts of the request, the adaptation
for the part named first that still changes the request is added, until the server accepts it. If the error names nothing, the request is
repeated once. Then adaptations are tried: each alone, the first two together, the first three, and so on; then all again with the other
name of the maximum tokens. What is accepted applies to all later requests for the model at this address. If nothing is accepted, nothing is
learned and the first error counts.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar, final

import trio

from longspan.agents.models.provider import run_table
from longspan.agents.models.request import Request
from longspan.agents.models.web import RejectedError

__all__ = ["ADAPTATIONS", "Adaptation", "Dialect", "find_dialect"]

Value = TypeVar("Value")


@final
class Adaptation(NamedTuple):
    """A change of requests, and a pattern for errors about the part that it changes. `name` is used in traces and results.

    It is `lossless` if the model gets the same request under other names.
    """

    name: str
    named: re.Pattern[str]
    change: Callable[[Request], Request]
    lossless: bool = False


def _leave_out(name: str, *fields: str, named: str = "") -> Adaptation:
    """Return the adaptation that removes a field, which may have other names or places at other vendors."""
    pattern = re.compile(named or rf"(?<![a-z]){name.replace('_', '_?')}(?![a-z])", re.IGNORECASE)
    return Adaptation(name, pattern, lambda request: request.without(name, *fields))


def _adapt(name: str, named: str, change: Callable[[Request], Request], *, lossless: bool = False) -> Adaptation:
    return Adaptation(name, re.compile(named, re.IGNORECASE), change, lossless)


FORMAT: Final = r"(response|output)_?(format|config|json)|json[_ ]?(schema|object|mode)|structured output|response format|guided|grammar"

QUOTED: Final = re.compile(r"['\"`‘“]([\w.\[\]-]{2,60})['\"`’”]")

ACCEPTED: Final = re.compile(r"expected one of|did you mean|supported (parameters|fields)", re.IGNORECASE)
"""What precedes a list of fields that a server accepts."""

VALUE: Final = re.compile(r"too (large|high|big|many|small|low)|at (most|least)|\brange\b|exceed|(less|greater|more) than", re.IGNORECASE)
"""Complaints about a value. Another name of the maximum tokens would not help."""

LIMIT: Final = _adapt("max_tokens", r"max_?(completion_|output_|new_)?tokens", Request.swap_limit, lossless=True)

ADAPTATIONS: Final = (
    LIMIT,
    _adapt("stream", r"(?<![\w.])stream(ing|ed)?(?!\w)", Request.swap_stream, lossless=True),
    _leave_out("stream_options", named="stream_?options|include_?usage"),
    _leave_out("strict", "response_format.json_schema.strict", "text.format.strict"),
    _leave_out("tool_choice", "toolConfig"),
    _leave_out("seed"),
    _leave_out("repeat_penalty"),
    _leave_out("repetition_penalty"),
    _leave_out(
        "reasoning_effort",
        "reasoning",
        "output_config.effort",
        "thinking",
        "generationConfig.thinkingConfig",
        named=r"(?<![\w-])(reasoning|thinking)|effort",
    ),
    _leave_out("top_p", "generationConfig.topP"),
    _leave_out("temperature", "generationConfig.temperature"),
    _adapt("json_schema", FORMAT, lambda request: request.write_schema(json_object=True)),
    _adapt("response_format", FORMAT, lambda request: request.write_schema(json_object=False)),
    _adapt("empty messages", r"\bempty\b|must have (either )?content|content (is|must be) (required|a string)", Request.fill_empty),
    _adapt("system role", r"\bsystem|\broles?\b|developer (instruction|message)", Request.merge_system),
)
"""All adaptations, in the order in which they are tried. Those that change least come first."""

ELSEWHERE: Final = re.compile(
    r"\bmodel\b.{0,80}\b(not (found|exist|available)|unknown|unavailable|decommissioned|deprecated)|(no such|unknown|invalid) model"
    r"|\btools?\b|api[ _-]?key|credit|quota|billing|balance|payment",
    re.IGNORECASE,
)
"""Errors about something that no adaptation changes."""


Form = Callable[[Request], Mapping[str, Any]]
"""A function that returns the body of a request."""


@final
class Dialect:
    """What a server accepts in requests for one model. `learned` lists the adaptations that it needs."""

    def __init__(self) -> None:
        self.learned: tuple[Adaptation, ...] = ()
        self._settled: set[frozenset[str]] = set()
        """Sets of fields that were accepted together, or for which no adaptation helped. An error that names nothing is not about them."""

    def dropped(self, request: Request, form: Form) -> tuple[str, ...]:
        """Return the names of the learned adaptations that lose a part of a request, which `form` converts to a body."""
        names, before = [], request.brief
        for each in self.learned:
            after = each.change(before)
            names += [each.name] if not each.lossless and form(after) != form(before) else []
            before = after
        return tuple(names)

    async def send(self, request: Request, form: Form, attempt: Callable[[Request], Awaitable[Value]]) -> Value:
        """Return the result of `attempt` for a request, adapted as necessary. `attempt` raises RejectedError if it is rejected.

        Concurrent requests that are rejected wait for the first one, which tries adaptations.
        """
        learned = self.learned
        try:
            value = await attempt(_apply(learned, request))
        except RejectedError as error:
            first = error
        else:
            self._settled.add(_fields(request, form))
            return value
        async with self._lock():
            trials = self._trials(request, form, learned, first)
            with suppress(StopIteration):
                tried = next(trials)
                while True:
                    try:
                        value = await attempt(_apply(tried, request))
                    except RejectedError as error:
                        tried = trials.send(error)
                    else:
                        self.learned = tried
                        return value
        raise first

    def _trials(
        self, request: Request, form: Form, rejected: tuple[Adaptation, ...], error: RejectedError
    ) -> Generator[tuple[Adaptation, ...], RejectedError, None]:
        """Yield the adaptations to try after `error`. Each time, the error of the trial is sent back."""
        tried = rejected
        if self.learned != rejected:  # learned while this request waited
            tried = self.learned
            error = yield tried
        while (each := _find_named(error, _remaining(tried, request, form))) is not None:
            tried = (*tried, each)
            error = yield tried
        fields = _fields(request, form)
        if _names_nothing(error) and fields not in self._settled:
            for guess in _guess(_remaining(tried, request, form)):
                yield (*tried, *guess)
        self._settled.add(fields)

    def _lock(self) -> trio.Lock:
        """Return this dialect's lock in this Trio run."""
        locks: dict[Dialect, trio.Lock] = run_table(_locks)
        return locks.setdefault(self, trio.Lock())


_locks: Final[trio.lowlevel.RunVar[dict[Dialect, trio.Lock]]] = trio.lowlevel.RunVar("dialects")


@cache
def find_dialect(*server: str) -> Dialect:
    """Return this process's dialect of a server, which its kind, its address and a model identify."""
    return Dialect()


def _apply(adaptations: Iterable[Adaptation], request: Request) -> Request:
    for each in adaptations:
        request = each.change(request)
    return request


def _remaining(applied: Sequence[Adaptation], request: Request, form: Form) -> list[Adaptation]:
    """Return the adaptations that would change a request to which others were `applied`."""
    request = _apply(applied, request.brief)
    body = form(request)
    return [each for each in ADAPTATIONS if each not in applied and form(each.change(request)) != body]


def _fields(request: Request, form: Form) -> frozenset[str]:
    """Return the names of a body's fields, and of the fields inside them. A system message counts as one."""
    body = form(request.brief)
    names = frozenset(name for value in (body, *body.values()) if isinstance(value, Mapping) for name in value)
    return names | {"system"} if request.system else names


def _find_named(error: RejectedError, adaptations: Sequence[Adaptation]) -> Adaptation | None:
    """Return the adaptation of what an error names first: as its parameter, in quotation marks, or anywhere."""
    complaint = ACCEPTED.split(error.text)[0]
    for text in (error.parameter, " ".join(QUOTED.findall(complaint)), complaint):
        named = [(match.start(), each) for each in adaptations if (match := each.named.search(text))]
        named = [found for found in named if found[1] is not LIMIT or not VALUE.search(complaint)]
        if named:
            return min(named, key=lambda found: found[0])[1]
    return None


def _names_nothing(error: RejectedError) -> bool:
    """Return whether an error may be about any part of a request. A missing page is not, unless it mentions parameters."""
    known = ELSEWHERE.search(error.text) or any(each.named.search(error.text) for each in ADAPTATIONS)
    return not known and (error.status != HTTPStatus.NOT_FOUND or "param" in error.text)


def _guess(adaptations: Sequence[Adaptation]) -> Iterator[Sequence[Adaptation]]:
    """Yield sets of adaptations to try blindly, and none at first. All are tried under one name of the limit before the other."""
    others = [each for each in adaptations if not each.lossless]
    for limit in ((), (LIMIT,))[: 1 + (LIMIT in adaptations)]:
        yield limit
        yield from ((*limit, each) for each in others)
        yield from ((*limit, *others[:number]) for number in range(2, len(others) + 1))
