"""Attacks on the address at which longspan lends models: none costs anything, and clients with the key are still served afterwards."""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, Final

import openai
import pytest
import trio

from longspan.agents.base import AgentError, Usage
from longspan.agents.memory.guarded_server import LIMITS, Limits
from longspan.agents.memory.lent import LentModels
from longspan.agents.memory.ltm.embedders import EmbeddedTexts, HashEmbedder
from longspan.agents.memory.system import LangChain
from longspan.agents.memory.turns import Turn
from longspan.agents.models.core import ChatMessage, Completion, RefusalError, Tool
from longspan.simulator.base.keys import redact
from tests.attack import tried

CHAT: Final[dict[str, Any]] = {"model": "lent", "messages": [{"role": "user", "content": "When does the tide turn?"}]}
EMBED: Final[dict[str, Any]] = {"model": "lent", "input": ["The tide turns at nine."]}


class Paid:
    """A core and an embedder that count their calls. `gate`, if given, is waited for in each call of the core."""

    name = priced_as = "openai/paid"
    overhead, window, max_output = 0, None, 100
    model = "openai/paid-embedder"

    def __init__(self) -> None:
        self.calls = 0
        self.entered = threading.Semaphore(0)
        self.gate: threading.Event | None = None

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Any = None) -> Completion:
        self.calls += 1
        self.entered.release()
        if self.gate is not None:
            await trio.to_thread.run_sync(self.gate.wait, abandon_on_cancel=True)
        await trio.lowlevel.checkpoint()
        if "refuse" in messages[-1].text:
            raise RefusalError("openai/paid refused", "the model itself", "No.", Usage(5, 0, 2))
        return Completion("At nine.", Usage(3, 0, 2))

    async def use_tools(self, messages: Sequence[ChatMessage], tools: Sequence[Tool], *, may_call: bool = True) -> Completion:
        return await self.complete(messages)

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        self.calls += 1
        return (await HashEmbedder().embed(texts))._replace(tokens=len(texts))


@pytest.fixture
def paid() -> Paid:
    return Paid()


@contextmanager
def lending(paid: Paid, limits: Limits = LIMITS) -> Iterator[LentModels]:
    lent = LentModels(paid, paid, limits)
    try:
        yield lent
    finally:
        lent.close()


@pytest.fixture
def lent(paid: Paid) -> Iterator[LentModels]:
    with lending(paid) as models:
        yield models


@contextmanager
def client(lent: LentModels, retries: int = 0) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=lent.url, api_key=lent.key, max_retries=retries) as made:
        yield made


def check_service(lent: LentModels, paid: Paid, retries: int = 0) -> None:
    """Check that nothing has been paid for, and that OpenAI's client is served."""
    assert (paid.calls, lent.take().usage, lent.tokens) == (0, {}, 0)
    with client(lent, retries) as api:
        answer = api.chat.completions.create(**CHAT)
        assert answer.choices[0].message.content == "At nine."
        assert len(api.embeddings.create(**EMBED).data) == 1
    assert paid.calls == 2
    assert lent.take().usage == {"memory": Usage(3, 0, 2), "embedder": Usage(1)}


def port(lent: LentModels) -> int:
    return int(lent.url.split(":")[2].partition("/")[0])


def connect(lent: LentModels) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port(lent)))


def answer_to(lent: LentModels, sent: bytes) -> tuple[int, str]:
    """Return the status and the message of the error that bytes are answered with, as OpenAI's client would read it."""
    with connect(lent) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it may be refused before all is sent
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(2**16), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert "\n" not in error["message"]
    assert lent.key not in received.decode()
    return int(head.split()[1]), error["message"]


def request(
    lent: LentModels,
    headers: Mapping[str, str | Sequence[str] | None] = {},
    *,
    path: str = "/v1/chat/completions",
    method: str = "POST",
    body: bytes = json.dumps(CHAT).encode(),
) -> bytes:
    """Return a valid request with some headers replaced, repeated or, where they are None, left out."""
    valid = {"Host": f"127.0.0.1:{port(lent)}", "Authorization": f"Bearer {lent.key}", "Content-Type": "application/json"}
    fields = {**valid, "Content-Length": str(len(body)), **headers}
    lines = [f"{method} {path} HTTP/1.1"]
    for name, value in fields.items():
        lines += [f"{name}: {each}" for each in ([value] if isinstance(value, str) else value or ())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


FORM = "application/x-www-form-urlencoded"

HEADERS: Final[dict[str, list[tuple[int, dict[str, Any]]]]] = {
    "keys": [
        *((401, {"Authorization": value}) for value in (None, "", "Bearer", "Bearer ", "Bearer lent", "Bearer none", "Basic {key64}")),
        *((401, {"Authorization": value}) for value in ("{key}", "bearer {key}", "Bearer {key}x", "Bearer {cut}", "Bearer \xff{key}")),
        (401, {"Authorization": ["Bearer {key}", "Bearer {key}"]}),
        (401, {"Authorization": ["Bearer lent", "Bearer {key}"]}),
        *((401, {"Authorization": None, name: "{key}"}) for name in ("X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization")),
    ],
    "hosts": [
        *((421, {"Host": value}) for value in ("evil.example:{port}", "evil.example", "localhost:{port}", "127.0.0.1", "127.0.0.1:1")),
        *((421, {"Host": value}) for value in ("127.0.0.1:{port}.evil.example", "0.0.0.0:{port}", "[::1]:{port}", "")),
        (400, {"Host": None}),
        (400, {"Host": ["127.0.0.1:{port}", "evil.example"]}),
        (421, {"Host": "evil.example:{port}", "X-Forwarded-Host": "127.0.0.1:{port}"}),
    ],
    "pages": [
        *((403, {"Origin": value}) for value in ("https://evil.example", "http://127.0.0.1:{port}", "http://localhost:{port}", "null", "")),
        *((403, {"Sec-Fetch-Site": value}) for value in ("cross-site", "same-site", "same-origin", "")),
        (403, {"Sec-Fetch-Site": ["none", "cross-site"]}),
        (403, {"Origin": "https://evil.example", "Authorization": None, "Content-Type": "text/plain"}),
    ],
    "content types": [
        *(
            (415, {"Content-Type": value})
            for value in (None, "", FORM, "text/plain", "multipart/form-data; boundary=x", "application/jsonx")
        ),
        (415, {"Content-Type": ["application/json", "text/plain"]}),
    ],
    "lengths": [
        *(
            (411, {"Content-Length": value, "Transfer-Encoding": coding})
            for value, coding in ((None, None), (None, "chunked"), ("5", "chunked"))
        ),
        *((400, {"Content-Length": value}) for value in ("-1", "+5", "0x10", "1e3", "5 5", "", "9" * 40, ["5", "6"])),
        *((413, {"Content-Length": value}) for value in (str(LIMITS.body_bytes + 1), "9" * 18)),
        (400, {"Content-Length": "100000"}),  # more than there is
        (400, {"Content-Length": "5"}),  # less than there is
        (400, {"Content-Length": "0"}),
        (431, {"X-Long": "x" * 100_000}),
        (431, {f"X-{number}": "x" for number in range(5_000)}),
        (501, {"Transfer-Encoding": "gzip"}),
    ],
}


@pytest.mark.parametrize("kind", HEADERS)
def test_requests_with_foreign_headers_are_refused(kind: str, lent: LentModels, paid: Paid, capfd: pytest.CaptureFixture[str]) -> None:
    known = {"key": lent.key, "cut": lent.key[:-1], "key64": b64encode(f"user:{lent.key}".encode()).decode(), "port": port(lent)}

    def filled(value: Any) -> Any:
        return value.format(**known) if isinstance(value, str) else value and [filled(each) for each in value]

    for status, headers in HEADERS[kind]:
        assert answer_to(lent, request(lent, {name: filled(value) for name, value in headers.items()}))[0] == status, headers
        tried(f"lent models: {kind}")
    check_service(lent, paid)
    assert lent.asked == 2 + sum(status == 400 and headers.get("Content-Length") in ("5", "0") for status, headers in HEADERS[kind])
    assert capfd.readouterr().err == ""


def test_other_methods_paths_and_protocols_are_refused(lent: LentModels, paid: Paid, capfd: pytest.CaptureFixture[str]) -> None:
    for status, method, path in [
        *((405, method, "/v1/chat/completions") for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "post", "TRACE")),
        *((404, "POST", path) for path in ("/", "/v1", "/v1/models", "/chat/completions", "/v1/v1/embeddings", "/v1/embeddings/", "*")),
        *((404, "POST", path) for path in ("//v1/embeddings", f"{lent.url}/embeddings", "/v1/%65mbeddings", "/v1/../v1/embeddings")),
    ]:
        assert answer_to(lent, request(lent, method=method, path=path))[0] == status, (method, path)
        tried("lent models: methods and paths")
    assert answer_to(lent, request(lent, {"Authorization": None}, path=f"/v1/embeddings?api_key={lent.key}"))[0] == 401
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"\0" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\r\n\r\n",
        b"x" * 100_000,
        b" \r\n\r\n",
    ):
        assert answer_to(lent, garbage)[0] in (400, 421, 431), garbage[:20]
        tried("lent models: other protocols")
    check_service(lent, paid)
    assert capfd.readouterr().err == ""


DEEP: Final = 100_000

TEXTS: Final[list[bytes]] = [
    *(b"", b"null", b"5", b'"x"', b"[]", b"[{}]", b"{}", b"{", b"\xff\xfe", b'{"messages": "\xc3"}', b"{'a': 1}", b"{} {}"),
    *(b"[" * DEEP, b'{"messages":' * DEEP, b'{"messages": ' + b"[" * DEEP + b"]" * DEEP + b"}", b'{"n": 1' + b"0" * 5_000 + b"}"),
    *(
        json.dumps(CHAT | EMBED)[:-1].encode() + b', "temperature": %b}' % number
        for number in (b"NaN", b"1e400", b"-Infinity", b"01", b".5")
    ),
    *(json.dumps(CHAT | EMBED)[:-1].encode() + b', "%b": []}' % name for name in (b"messages", b"input", b"model")),
    json.dumps(CHAT | EMBED).encode("utf-16"),
    json.dumps(CHAT | EMBED).encode()[:-1],
]

ODD: Final[list[Any]] = [5, 1.5, True, "x", [5], [[]], {"a": 1}, [None]]
"""Values that fit no field but where it is said otherwise."""


def said(content: Any) -> list[Any]:
    return [{"role": "user", "content": content}]


FIELDS: Final[dict[str, list[Any]]] = {
    "messages": [
        *(None, [], *ODD),
        *([{"role": role, "content": "x"}] for role in (None, "tool", *ODD)),
        *(said(content) for content in (5, 1.5, True, {"a": 1}, [5], [[]], [{}], [{"type": 5}], [{"type": "text", "text": [5]}])),
        [{"role": "user", "content": "x"}] * 5 + [5] * 100_000,
    ],
    "stream": [True, 1, "yes", [5], {"a": 1}],
    "max_tokens": [0, -1, 1.5, "x", True, [5], 10**30 + 0.5],
    "max_completion_tokens": [0, -1, 1.5, "x", True, [5]],
    "response_format": [
        *ODD,
        {"type": 5},
        *({"type": "json_schema", "json_schema": schema} for schema in ODD if schema != {"a": 1}),
        *({"type": "json_schema", "json_schema": {"schema": schema}} for schema in ODD if schema != {"a": 1}),
    ],
    "tools": [
        *ODD,
        *([{"type": "function", "function": function}] for function in (None, {}, *ODD)),
        *([{"function": {"name": name}}] for name in (None, "", 5, [5])),
        *([{"function": {"name": "keep", "description": each}}] for each in (5, [5])),
        *([{"function": {"name": "keep", "parameters": each}}] for each in (5, "x", [5], True)),
    ],
}

INPUTS: Final[list[Any]] = [None, 5, 1.5, True, {"a": 1}, [], [5], [[1, 2]], [["x"]], [None], ["x", 5], ["x", ["y"]], [5] * 1_000_000]


def test_hostile_bodies_are_refused_in_one_line(lent: LentModels, paid: Paid, capfd: pytest.CaptureFixture[str]) -> None:
    bodies = [("/v1/chat/completions", json.dumps(CHAT | {field: value}).encode()) for field, values in FIELDS.items() for value in values]
    bodies += [("/v1/embeddings", json.dumps({"input": value}).encode()) for value in INPUTS]
    bodies += [("/v1/embeddings", json.dumps(EMBED | {"encoding_format": value}).encode()) for value in (5, [5], True)]
    bodies += [(path, text) for path in ("/v1/chat/completions", "/v1/embeddings") for text in TEXTS]
    for path, body in bodies:
        status, message = answer_to(lent, request(lent, path=path, body=body))
        assert (status, len(message) < 500) == (400, True), (body[:200], message)
        tried("lent models: hostile bodies")
    check_service(lent, paid)
    assert capfd.readouterr().err == ""


def test_a_body_that_is_too_large_is_refused_before_it_is_read(paid: Paid) -> None:
    with lending(paid, Limits(body_bytes=1_000)) as lent:
        for size in (1_001, 10_000_000):
            assert answer_to(lent, request(lent, body=b" " * size))[0] == 413
            tried("lent models: large bodies")
        assert answer_to(lent, request(lent, {"Content-Length": "9999", "Expect": "100-continue"}, body=b""))[0] == 413
        check_service(lent, paid)


def test_texts_that_are_odd_but_valid_are_answered(lent: LentModels, paid: Paid) -> None:
    for content in (None, "", [], [{"type": "image_url", "image_url": {}}], [{"type": "text"}], "\ud800", "\0", "x" * 1_000_000):
        body = json.dumps(CHAT | {"messages": said(content), "max_tokens": 10**12, "tools": None, "stream": False}).encode()
        with connect(lent) as connection:
            connection.sendall(request(lent, {"Expect": "100-continue"}, body=body))
            received = b"".join(iter(lambda: connection.recv(2**16), b""))
        assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), content
    assert paid.calls == 8


def test_what_a_refusal_took_is_counted(lent: LentModels, paid: Paid) -> None:
    with client(lent) as api, pytest.raises(openai.BadRequestError, match="refused"):
        api.chat.completions.create(model="lent", messages=[{"role": "user", "content": "refuse"}])
    assert lent.take().usage == {"memory": Usage(5, 0, 2)}


# Connections that are held open.


def test_a_flood_of_half_open_requests_locks_nobody_out_and_holds_no_threads(paid: Paid) -> None:
    with lending(paid, Limits(seconds=inf)) as lent:
        _flood(lent, paid)


def _flood(lent: LentModels, paid: Paid) -> None:
    whole = request(lent, body=b" " * 1_000)
    starts = [b"", b"P", whole[:50], request(lent, {"Authorization": None}, body=b"")[:-2]]
    check_service(lent, paid)
    before, paid.calls = threading.active_count(), 0
    with ExitStack() as opened, client(lent) as api:
        held = []
        for number in range(300):
            held.append(opened.enter_context(connect(lent)))
            held[-1].sendall(starts[number % len(starts)])
            if number % 60 == 59:
                with ThreadPoolExecutor(8) as pool:
                    list(pool.map(lambda _: api.chat.completions.create(**CHAT), range(8)))
        assert threading.active_count() == before
        for connection in held[: 300 - LIMITS.strangers]:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        tried("lent models: half-open requests", 300)
    assert paid.calls == 40


def test_requests_that_do_not_end_in_time_are_dropped(paid: Paid) -> None:
    with lending(paid, Limits(seconds=0.25)) as lent, ExitStack() as opened:
        whole = request(lent)
        for cut in (0, 1, 40, len(whole) - 200, len(whole) - 1):
            connection = opened.enter_context(connect(lent))
            connection.sendall(whole[:cut])
            assert connection.recv(1) == b""
            tried("lent models: slow requests")
        refused = opened.enter_context(connect(lent))
        refused.sendall(request(lent, {"Authorization": None, "Content-Length": "1000"}))
        received = b"".join(iter(lambda: refused.recv(2**16), b""))
        assert received[:13] in (b"HTTP/1.1 401 ", b""), "the connection ends, though on a busy machine it may end before the answer"
        check_service(lent, paid, retries=9)


def test_requests_above_the_limit_are_told_to_come_again(paid: Paid) -> None:
    paid.gate = threading.Event()
    with lending(paid, Limits(callers=2)) as lent, client(lent) as api, ThreadPoolExecutor(2) as pool:
        running = [pool.submit(api.chat.completions.create, **CHAT) for _ in range(2)]
        for _ in running:
            paid.entered.acquire()
        with pytest.raises(openai.InternalServerError, match="at most 2 requests at the same time"):
            api.embeddings.create(**EMBED)
        assert paid.calls == 2
        paid.gate.set()
        assert [each.result().choices[0].message.content for each in running] == ["At nine."] * 2
        assert len(api.embeddings.create(**EMBED).data) == 1


# The life of the address.


def test_after_it_is_closed_nothing_is_answered_or_paid(paid: Paid) -> None:
    paid.gate = threading.Event()
    with lending(paid) as lent, connect(lent) as halfway, connect(lent) as running, client(lent) as api:
        whole, at, key = request(lent), port(lent), lent.key
        running.sendall(whole)
        paid.entered.acquire()
        halfway.sendall(whole[:-1])
        assert redact(f"it said {key}") == "it said [LONGSPAN_LENT_KEY]"
        lent.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", at))
        with suppress(ConnectionError):
            halfway.sendall(whole[-1:])
            assert halfway.recv(1) == b""
        with suppress(ConnectionResetError):
            assert running.recv(1) == b""
        with pytest.raises(openai.APIConnectionError):
            api.chat.completions.create(**CHAT)
        with pytest.raises(AgentError, match="closed"):
            _ = lent.url
        paid.gate.set()
    assert paid.calls == 1
    assert lent.take().usage == {}


def test_a_closed_address_is_closed_even_if_its_thread_was_busy() -> None:
    class Busy(Paid):
        async def complete(self, *messages: Any, **options: Any) -> Completion:
            self.entered.release()
            busy.wait()
            return await super().complete(*messages, **options)

    busy, core = threading.Event(), Busy()
    with lending(core) as lent, connect(lent) as connection:
        at = port(lent)
        connection.sendall(request(lent))
        core.entered.acquire()
        threading.Timer(0.2, busy.set).start()
        lent.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", at))


def test_an_address_that_cannot_be_opened_is_an_error_where_it_is_asked_for(paid: Paid) -> None:
    lent = LentModels(paid, paid)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(AgentError, match="cannot open an address on this machine"):
            _ = lent.url
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    check_service(lent, paid)
    lent.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_memory_in_another_process_gets_the_key_where_other_users_cannot_read_it() -> None:
    async def add() -> None:
        memory = LangChain("", LangChain.Options.model_validate({"embedder": "hash", "interpreter": sys.executable}))
        try:
            await memory.start()
            await memory.add([Turn("t1", "The tide turns at nine.", datetime(2024, 5, 7, 18), "")], datetime(2024, 5, 7, 18))
            key = memory.lender.key.encode()
            assert [path for path in processes("cmdline") if key in path.read_bytes()] == []
            assert [path for path in processes("environ") if key in path.read_bytes()] != []
            assert key not in b"".join(f"{name}={value}".encode() for name, value in os.environ.items())
        finally:
            await memory.close()

    trio.run(add)


def processes(file: str) -> list[Path]:
    """Return the files of this name of processes that this process started."""
    found = [Path("/proc", each, file) for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()]
    return [Path("/proc/self", file), *found]
