from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longspan.agents.base import AgentError, InputError, Message, Reply
from longspan.agents.outside import http
from longspan.agents.outside.http import KEY, HttpAgent
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

Act = Callable[[socket.socket], None]


def message(text: str = "x") -> Message:
    return Message(text, datetime(2024, 5, 1, 9, 0), "t-1")


class Server:
    """A server with an act for each connection in turn; it repeats the last one.

    `asked` are the requests: head and body.
    """

    def __init__(self, *acts: Act) -> None:
        self.acts = list(acts)
        self.asked: list[tuple[bytes, Any]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.over = threading.Event()

    def agent(self, **options: Any) -> HttpAgent:
        return HttpAgent(f"//127.0.0.1:{self.port}/agent", HttpAgent.Options(**{"timeout": 20, **options}))

    @contextmanager
    def running(self) -> Iterator[Server]:
        thread = threading.Thread(target=self._serve)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    connection.settimeout(20)
                    self.asked.append(_request(connection))
                    act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
                    act(connection)


def _request(connection: socket.socket) -> tuple[bytes, Any]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
    while len(body) < length:
        body += connection.recv(65_536)
    return head, json.loads(body)


def raw(data: bytes) -> Act:
    return lambda connection: connection.sendall(data)


def plain(body: bytes | dict[str, Any], status: str = "200 OK", headers: str = "") -> Act:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return raw(f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\n{headers}\r\n".encode("latin-1") + content)


def again_and_again(data: bytes) -> Act:
    def act(connection: socket.socket) -> None:
        while True:
            connection.sendall(data)

    return act


def reset(connection: socket.socket) -> None:
    """Reset the connection, so that the other side sees an error."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


HELLO = plain({"protocol": 1})
REPEATABLE = plain({"protocol": 1, "repeatable": True})
OK = plain({"text": "OK."})


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    with ExitStack() as stack:
        yield lambda *acts: stack.enter_context(Server(*acts).running())


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "RETRY_PAUSES", (0.01, 0.01))
    monkeypatch.delenv(KEY, raising=False)


def ask(agent: HttpAgent) -> Reply:
    return trio.run(agent.reply, message())


# The address.


@pytest.mark.usefixtures("install")
@pytest.mark.parametrize(
    ("spec", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost:8000/an/agent/?timeout=9", "http://localhost:8000/an/agent/"),
        ("https://agent.example/a%26b?timeout=9", "https://agent.example/a&b"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("http://127.0.0.1/é ö", "http://127.0.0.1/%C3%A9%20%C3%B6"),
        ("http://127.0.0.1/50%2525", "http://127.0.0.1/50%25"),
        ("http://agent:8000/", "http://agent:8000/"),
    ],
)
def test_an_address_is_a_spec(spec: str, url: str) -> None:
    agent = make_agent(AgentSpec.parse(spec))
    assert isinstance(agent, HttpAgent)
    assert agent.url == url


@pytest.mark.usefixtures("install")
@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("http", "http(s)://host:port/path"),
        ("http:8000", "http(s)://host:port/path"),
        ("http/127.0.0.1:8000", "http(s)://host:port/path"),
        ("http:///path", "http(s)://host:port/path"),
        ("http://host:99999/", "http(s)://host:port/path"),
        ("http://host:0/", "http(s)://host:port/path"),
        ("http://[::1/", "http(s)://host:port/path"),
        ("http://ho st/", "http(s)://host:port/path"),
        ("http://host\r\nx: y/", "http(s)://host:port/path"),
        ("http://hößt/", "http(s)://host:port/path"),
        ("http://host/#part", "http(s)://host:port/path"),
        ("https://me:secret@host/", f"set the key in {KEY}"),
        ("https://@host/", f"set the key in {KEY}"),
        ("https://host/a%3Ftoken=secret", f"a query in the address would be written to files, and may hold a key; set the key in {KEY}"),
        ("https://host/%3Fsecret?timeout=9", f"set the key in {KEY}"),
        ("https://host%3Fsecret", f"set the key in {KEY}"),
        ("http://host/?speed=7", "unknown option 'speed'"),
        ("http://host/?timeout=0", "greater than 0"),
    ],
)
def test_an_invalid_address_is_rejected(spec: str, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)) as caught:
        make_agent(AgentSpec.parse(spec))
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


# The key.


def test_the_key_is_sent_as_a_bearer_token(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "marker-4711")
    server = serve(HELLO, OK)
    ask(server.agent())
    assert b"authorization: bearer marker-4711" in server.asked[0][0].lower()


def test_without_a_key_none_is_sent(serve: Callable[..., Server]) -> None:
    server = serve(HELLO, OK)
    ask(server.agent())
    assert b"authorization" not in server.asked[0][0].lower()


def test_the_key_is_not_sent_unencrypted_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "marker-4711")
    HttpAgent("//localhost:8000/")
    with pytest.raises(InputError, match="use an https address, or unset it") as caught:
        HttpAgent("//agent.example:8000/")
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel"])
def test_an_invalid_key_is_rejected(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, key)
    with pytest.raises(InputError, match="is not a valid key") as caught:
        HttpAgent("//localhost:8000/")
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "act",
    [
        plain(b"you sent marker-4711", "500 Oh"),
        plain(b"", "302 Found", "location: http://elsewhere/marker-4711\r\n"),
        plain({"error": "no such key: marker-4711"}),
        plain(b"marker-4711"),
        raw(b"HTTP/9.9 marker-4711\r\n\r\n"),
    ],
)
def test_an_echoed_key_is_in_no_error(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, act: Act) -> None:
    monkeypatch.setenv(KEY, "marker-4711")
    with pytest.raises(AgentError) as caught:
        ask(serve(HELLO, act).agent())
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_echoed_key_is_in_no_reply(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "marker-4711")
    server = serve(HELLO, plain({"text": "marker-4711", "trace": {"marker-4711": "marker-4711"}}))
    assert ask(server.agent()) == Reply(f"[{KEY}]", None, {f"[{KEY}]": f"[{KEY}]"})


# Answers.


@pytest.mark.parametrize(
    ("act", "part"),
    [
        (plain(b"", "404 Not Found"), "rejected the request (404)"),
        (plain(b"<h1>no\x1b[31m\xff</h1>", "500 Oh"), "rejected the request (500 <h1>no�[31m�</h1>)"),
        (plain({"error": "bad key"}, "401 Unauthorized"), f'rejected the request (401 {{"error": "bad key"}}); to send a key, set {KEY}'),
        (plain(b"", "302 Found", "location: https://elsewhere/\r\n"), "redirects to https://elsewhere/ (302): redirects are not followed"),
        (plain(b"", "308 Permanent Redirect"), "redirects to nowhere (308)"),
        (plain(b"", "304 Not Modified"), "redirects to nowhere (304)"),
        (plain(b"", "204 No Content"), "text: is missing"),
        (plain(b""), "text: is missing"),
        (plain(b"<html>"), "not JSON: <html>"),
        (plain(b'{"text": "\xff"}'), "not UTF-8"),
        (plain({"error": "no luck"}), "failed: no luck"),
        (plain(b"\x1f\x8b", headers="content-encoding: gzip\r\n"), "answered with content-encoding gzip"),
        (raw(b""), "gave an unreadable answer"),
        (raw(b"hello\r\n\r\n"), "gave an unreadable answer"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"), "gave an unreadable answer"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"), "gave an unreadable answer"),
        (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), "gave an unreadable answer"),
        (raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 10**6 + b"\r\n\r\n"), "gave an unreadable answer"),
        (again_and_again(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), "no complete answer within"),
        (lambda c: (raw(b"HTTP/1.1 200 OK\r\n\r\n")(c), again_and_again(b"x" * 10**6)(c))[0], "answered with more than 33,554,432 bytes"),
        (lambda c: (raw(b"HTTP/1.1 500 Oh\r\n\r\n")(c), again_and_again(b"x" * 10**6)(c))[0], "answered with more than 33,554,432 bytes"),
    ],
)
def test_an_invalid_answer_is_a_one_line_error(serve: Callable[..., Server], act: Act, part: str) -> None:
    server = serve(HELLO, act)
    with pytest.raises(AgentError, match=re.escape(part)) as caught:
        ask(server.agent(timeout=3))
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 600
    assert text.startswith(f"http://127.0.0.1:{server.port}/agent: reply: ")


def test_a_slow_or_silent_server_is_abandoned_after_the_timeout(serve: Callable[..., Server]) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while not server.over.wait(0.05):
            connection.sendall(b" ")

    def nothing(connection: socket.socket) -> None:
        connection.recv(1)

    for act in (drip, nothing):
        server = serve(HELLO, act)
        with pytest.raises(AgentError, match=r"reply: no complete answer within 0\.5 s; set \?timeout=SECONDS"):
            ask(server.agent(timeout=0.5))


def test_a_server_that_does_not_read_is_abandoned_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        agent = HttpAgent(f"//127.0.0.1:{deaf.getsockname()[1]}/", HttpAgent.Options(timeout=0.5))
        with pytest.raises(AgentError, match="hello: no complete answer within"):
            trio.run(agent.reply, message("x" * 10**7))


def test_a_call_can_be_cancelled(serve: Callable[..., Server]) -> None:
    asked = threading.Event()

    def hang(connection: socket.socket) -> None:
        asked.set()
        connection.recv(1)

    server = serve(HELLO, hang)

    async def whole() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.agent().reply, message())
            await trio.to_thread.run_sync(asked.wait)
            nursery.cancel_scope.cancel()

    trio.run(whole)
    assert len(server.asked) == 2


# Retries.


def test_a_server_that_is_still_starting_is_retried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    agent = HttpAgent(f"//127.0.0.1:{port}/")
    with pytest.raises(AgentError, match=r"hello: cannot be reached: .*; is it running\? \(tried 3 times\)"):
        ask(agent)


@pytest.mark.parametrize(
    "passing",
    [
        reset,
        plain(b"", "503 Service Unavailable"),
        plain(b"", "429 Too Many Requests"),
        raw(b""),
        raw(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"text": "O'),
        raw(b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"tex'),
    ],
)
def test_a_turn_is_repeated_only_for_a_repeatable_agent(serve: Callable[..., Server], passing: Act) -> None:
    server = serve(REPEATABLE, passing, OK)
    assert ask(server.agent()).text == "OK."
    assert [body["call"] for _, body in server.asked] == ["hello", "reply", "reply"]
    assert server.asked[1][1] == server.asked[2][1], "the same turn id, in the same conversation"
    server = serve(HELLO, passing, OK)
    with pytest.raises(AgentError, match=r"closed the connection|is unavailable|gave an unreadable answer"):
        ask(server.agent())
    assert len(server.asked) == 2


def test_the_pause_that_a_server_asks_for_is_waited_for(serve: Callable[..., Server]) -> None:
    busy = [plain(b"", "429 Too Many Requests", f"retry-after: {seconds}\r\n") for seconds in (1, 0, 0)]
    server = serve(HELLO, *busy, plain(b"", "503 Service Unavailable", "retry-after: 0\r\n"), OK)
    started = time.monotonic()
    assert ask(server.agent()).text == "OK."
    assert time.monotonic() - started >= 1
    assert [body["call"] for _, body in server.asked] == ["hello", *["reply"] * 5], "also where the agent is not repeatable"


def test_a_pause_beyond_the_timeout_is_an_error_at_once(serve: Callable[..., Server]) -> None:
    server = serve(HELLO, plain(b"", "503 Service Unavailable", "retry-after: 3600\r\n"))
    with pytest.raises(AgentError, match=r"reply: is unavailable \(503\); it asks for a pause of 3600 s, which exceeds \?timeout=SECONDS"):
        ask(server.agent(timeout=20))


def test_harmless_calls_are_retried_for_any_agent(serve: Callable[..., Server]) -> None:
    server = serve(reset, HELLO, OK)
    assert ask(server.agent()).text == "OK."


def test_a_server_that_stays_unavailable_is_an_error(serve: Callable[..., Server]) -> None:
    server = serve(REPEATABLE, reset)
    with pytest.raises(AgentError, match=r"reply: closed the connection.*\(tried 3 times\)"):
        ask(server.agent())


def test_no_proxy_is_used_for_this_machine(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    assert ask(serve(HELLO, OK).agent()).text == "OK."


HEADERS = [b"HTTP/1.1 200 OK\r\n", b"\r\n", b"content-length: 13\r\n", b"transfer-encoding: chunked\r\n", b"d\r\n"]
pieces = st.binary(max_size=80) | st.sampled_from([*HEADERS, b'{"text": "x"}'])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pieces, max_size=6), st.booleans())
def test_anything_a_server_sends_is_a_reply_or_an_agent_error(hasty: None, sent: list[bytes], greets: bool) -> None:
    with Server(*([HELLO] if greets else []), raw(b"".join(sent))).running() as server:
        try:
            outcome = ask(server.agent(timeout=5)).text
        except AgentError as error:
            outcome = str(error).removeprefix(f"http://127.0.0.1:{server.port}/agent: ")
    assert outcome == "x" or outcome.startswith(("hello: ", "reply: "))
