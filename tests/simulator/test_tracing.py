"""OpenTelemetry: the spans that a collector on loopback gets, and the spans below them when agents make their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Server
from tests.loopback.otlp import Collector, Seen

from longspan.simulator.cli import main
from longspan.simulator.subject.tracing import collector as exporter

MAIN = "from longspan.simulator.cli import main; main()"

RUN = ("run", "--scenario", "colours", "--tests", "1", "--span", "2k", "--out", "runs")

NAME = "ltm-2k-{}-seed0"

OWN_SPANS = """
import asyncio
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("mine")
"""
"""The beginning of a module that makes spans of its own, by OpenTelemetry's way of setting it up."""

MINE = (
    OWN_SPANS
    + """
class Mine:
    async def reply(self, message):
        return await asyncio.create_task(self.answer(message))

    async def answer(self, message):
        assert not hasattr(trace.get_current_span(), "attributes")  # they could tell what is tested
        with tracer.start_as_current_span("mine", attributes={"turn": message.turn_id}):
            return "OK."

    def observe(self, message, reply):
        with tracer.start_as_current_span("mine", attributes={"turn": message.turn_id}):
            pass
"""
)

SERVER = (
    OWN_SPANS
    + """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = {}
        if request["call"] == "hello":
            answer = {"protocol": 1, "can": ["observe"]}
        if request["call"] in ("reply", "observe"):
            above = TraceContextTextMapPropagator().extract({name.lower(): value for name, value in self.headers.items()})
            with tracer.start_as_current_span("mine", above, attributes={"turn": request["turn"]}):
                answer = {"text": "OK."} if request["call"] == "reply" else {}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
)

PROGRAM = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    with open("requests.jsonl", "a") as log:
        log.write(line)
    answers = {"hello": {"protocol": 1, "can": ["observe"]}, "reply": {"text": "No.", "refused": True}}
    print(json.dumps(answers.get(request["call"], {})), flush=True)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder, and an environment that says nothing of collectors but to use no proxy's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector().running() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.address)
        yield running


def run(*arguments: str) -> int:
    """Run a command of longspan. Return its exit code."""
    with pytest.raises(SystemExit) as leaving:
        main([*arguments])
    return int(leaving.value.code or 0)


def turns(collector: Collector) -> list[Seen]:
    """Return the spans of turns in their order."""
    spans = [*collector.named("invoke_agent "), *collector.named("observe ")]
    return sorted(spans, key=lambda span: int(span.attributes["longspan.turn"]))


def journal(name: str) -> list[dict[str, Any]]:
    path = Path("runs") / name / "conversations" / "main" / "journal.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def assert_documented(collector: Collector) -> None:
    """Check that the guide names every attribute and every kind of span."""
    documented = set(re.findall(r"`([\w.]+)[` ]", (Path(__file__).parents[2] / "docs" / "guides" / "tracing.md").read_text("utf-8")))
    assert {name for span in collector.spans for name in [span.name.split()[0], *span.attributes]} <= documented


def assert_own_spans_are_below(collector: Collector) -> None:
    """Check that each turn has below it one span of the agent's own, which names the same turn."""
    spans = turns(collector)
    assert len(spans) == len(collector.named("mine")) > 5
    for span in spans:
        assert [(own.name, own.attributes["turn"]) for own in collector.below(span)] == [("mine", span.attributes["longspan.turn_id"])]


def test_a_model_has_a_span_for_each_turn_and_each_call_without_texts(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, openai_key: None
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=memory")
    with Server(reply=lambda text: "A reply that nobody exports.").running() as server:
        agent = f"openai/some?base_url={server.base_url('openai')}&context=2k"
        assert run(*RUN, "--agent", agent, "--otel") == 0
    (folder,) = Path("runs").iterdir()
    (first,) = collector.named("invoke_workflow ")
    events = journal(folder.name)
    replies = [event for event in events if event["type"] == "reply"]
    assert [span.attributes["longspan.asked"] for span in turns(collector)] == [event["asked"] for event in replies]
    for span, event in zip(turns(collector), replies, strict=True):
        about = span.attributes
        assert (span.trace, span.parent, span.service, span.failed) == (first.trace, first.id, "longspan", False)
        assert (about["longspan.turn"], about["longspan.run"]) == (event["turn"], folder.name)
        assert (about["gen_ai.conversation.id"], about["gen_ai.agent.name"]) == (f"{folder.name}/main", "openai/some")
        calls = collector.below(span)
        assert [call.name for call in calls] == ["chat some"] * event["asked"]
        for part in [span, *calls] if event["asked"] else ():
            used = part.attributes["gen_ai.usage.input_tokens"], part.attributes["gen_ai.usage.output_tokens"]
            assert used == (event["usage"]["input_tokens"], event["usage"]["output_tokens"])
            assert part.attributes["gen_ai.request.model"] == "some"
            assert span.start <= part.start < part.end <= span.end
    assert_documented(collector)
    sent = b"".join(collector.bodies)
    assert b"nobody exports" not in sent
    assert not any(event["text"].encode() in sent for event in events if event["type"] == "message")
    assert {headers["x-team"] for headers in collector.headers} == {"memory"}


def test_memories_are_spans_and_texts_are_exported_when_asked_for(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    assert run(*RUN, "--otel") == 0
    events = journal(NAME.format("notebook"))
    traces = {event["turn"]: event.get("trace") or {} for event in events if event["type"] == "reply"}
    texts = {(event["type"], event["turn"]): event["text"] for event in events if event["type"] in ("message", "reply")}
    assert any(trace.get("read") for trace in traces.values())
    assert any(trace.get("written") for trace in traces.values())
    for span in turns(collector):
        turn, about = span.attributes["longspan.turn"], span.attributes
        told = {"search_memory": traces[turn].get("read"), "upsert_memory": traces[turn].get("written")}
        below = {each.name: each.attributes["gen_ai.memory.record.count"] for each in collector.below(span)}
        assert below == {name: len(memories) for name, memories in told.items() if memories}
        (message,), (reply,) = (json.loads(about[f"gen_ai.{way}.messages"]) for way in ("input", "output"))
        assert message == {"role": "user", "parts": [{"type": "text", "content": texts["message", turn]}]}
        assert reply["parts"] == [{"type": "text", "content": texts["reply", turn]}]
    assert_documented(collector)


def test_the_spans_of_a_class_in_this_process_are_below_its_turns(here: Path, collector: Collector) -> None:
    (here / "traced_in_process.py").write_text(MINE)
    assert run(*RUN, "--agent", "python:traced_in_process:Mine", "--otel") == 0
    assert_own_spans_are_below(collector)


def test_the_spans_of_a_class_in_another_interpreter_are_below_its_turns(here: Path, collector: Collector) -> None:
    (here / "traced_elsewhere.py").write_text(MINE)
    assert run(*RUN, "--agent", f"python:traced_elsewhere:Mine?interpreter={sys.executable}", "--otel") == 0
    assert_own_spans_are_below(collector)


def test_an_interpreter_without_opentelemetry_is_not_disturbed(here: Path, collector: Collector) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], check=True)
    (here / "plain.py").write_text(
        "import sys\nclass Mine:\n    def reply(self, message):\n        return str('opentelemetry' in sys.modules)\n"
    )
    assert run(*RUN, "--agent", "python:plain:Mine?interpreter=bare/bin/python", "--otel") == 0
    (folder,) = Path("runs").iterdir()
    assert {event["text"] for event in journal(folder.name) if event["type"] == "reply" and event["asked"]} == {"False"}


def test_the_spans_of_a_server_are_below_its_turns(collector: Collector) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert run(*RUN, "--agent", f"http://127.0.0.1:{int(server.stdout.readline())}/", "--otel") == 0
        finally:
            server.kill()
    assert_own_spans_are_below(collector)


def test_a_program_is_told_the_name_of_each_turns_span(here: Path, collector: Collector) -> None:
    (here / "agent.py").write_text(PROGRAM)
    agent = f"exec:{sys.executable} agent.py"
    assert run(*RUN, "--agent", agent, "--otel") == 0
    requests = [json.loads(line) for line in (here / "requests.jsonl").read_text().splitlines()]
    told = {request["turn"]: request["traceparent"] for request in requests if request["call"] in ("reply", "observe")}
    assert told == {span.attributes["longspan.turn_id"]: f"00-{span.trace}-{span.id}-01" for span in turns(collector)}
    assert all(span.attributes.get("longspan.refused", False) == span.attributes["longspan.asked"] for span in turns(collector))
    assert_documented(collector)


def test_without_the_option_nothing_is_exported_or_told(here: Path, collector: Collector) -> None:
    (here / "agent.py").write_text(PROGRAM)
    assert run(*RUN, "--agent", f"exec:{sys.executable} agent.py") == 0
    assert "traceparent" not in (here / "requests.jsonl").read_text()
    assert collector.bodies == []


STUCK = """
import threading
from pathlib import Path

class Stuck:
    def __init__(self):
        self.turns = 0

    def observe(self, message, reply):
        self.turns += 1

    def reply(self, message):
        self.turns += 1
        if self.turns > 4 and not Path("resumed").exists():
            threading.Event().wait()
        return "OK."
"""


def test_a_killed_run_continues_its_trace(here: Path, collector: Collector) -> None:
    (here / "stuck.py").write_text(STUCK)
    quick = os.environ | {"OTEL_BSP_SCHEDULE_DELAY": "10"}
    command = [sys.executable, "-c", MAIN, *RUN, "--agent", "python:stuck:Stuck", "--otel"]
    with subprocess.Popen(command, env=quick, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as playing:
        collector.wait(lambda: any(span.attributes["longspan.turn"] == 4 for span in turns(collector)))
        playing.send_signal(signal.SIGKILL)
    (here / "resumed").touch()
    (folder,) = Path("runs").iterdir()
    assert run("resume", str(folder), "--otel") == 0
    assert len({span.trace for span in collector.spans}) == 1
    first, again = collector.named("invoke_workflow ")
    assert {span.parent for span in turns(collector)} == {first.id, again.id}
    assert [span.attributes["longspan.turn"] for span in turns(collector)] == list(range(len(turns(collector))))
    (catch_up,) = collector.named("catch_up ")
    assert (catch_up.parent, catch_up.attributes["longspan.turn"]) == (again.id, again.attributes["longspan.turn"])


@contextmanager
def answering(answer: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives this answer to everybody, or none. Yield its address and the requests' beginnings."""
    asked: list[bytes] = []
    over = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                with closing(connection):
                    beginning = connection.recv(2000)
                    if over.is_set():
                        return
                    asked.append(beginning)
                    if answer is None:
                        over.wait()
                        return
                    with closing(connection.makefile("wb")) as stream:
                        stream.write(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        finally:
            over.set()
            if serving.is_alive():
                socket.create_connection(listener.getsockname()).close()
            serving.join()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "did not take them in time"),
        (b"HTTP/1.1 403 \x1b[31mGo away\r\ncontent-length: 99999999999\r\n\r\n", "answered 403"),
        (b"HTTP/1.1 302 Found\r\nlocation: {elsewhere}/v1/traces\r\n\r\n", "answered 302"),
        (b"HTTP/1.1 503 Later\r\nretry-after: 99999999999\r\n\r\n", "answered 503"),
        (b"\x00\xff" * 50, "cannot be reached"),
    ],
    ids=["silence", "no", "redirect", "later", "garbage"],
)
def test_a_bad_collector_costs_a_line_at_the_end(
    answer: bytes | None,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    collector: Collector,
) -> None:
    monkeypatch.setattr(exporter, "CLOSE_SECONDS", 0.2 if answer is None else 60.0)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    with answering(answer and answer.replace(b"{elsewhere}", collector.address.encode())) as (address, asked):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        assert run(*RUN, "--otel", "--json") == 0
    *progress, said = capsys.readouterr().err.splitlines()
    assert said == f"13 of 13 spans were not exported: {address}/v1/traces {problem}"
    assert all(line.startswith("ltm-2k-notebook-seed0: 1") for line in progress)
    assert asked
    assert (collector.bodies, caplog.records) == ([], [])


def test_a_collector_that_is_down_costs_a_line_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    monkeypatch.setattr(exporter, "CLOSE_SECONDS", 60.0)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://me:secret@{address}")
    assert run(*RUN, "--otel", "--json") == 0
    *_, said = capsys.readouterr().err.splitlines()
    assert said == f"13 of 13 spans were not exported: http://{address}/v1/traces cannot be reached"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "--otel: OTEL_EXPORTER_OTLP_PROTOCOL=grpc: longspan speaks http/protobuf only"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "--otel: OTEL_EXPORTER_OTLP_ENDPOINT is not an address"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[", "--otel: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an address"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "--otel: OpenTelemetry's environment variables cannot be used: ValueError: max_queue_size"),
    ],
)
def test_an_environment_that_cannot_be_used_is_refused_before_anything_is_made(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    monkeypatch.setenv(name, value)
    assert run(*RUN, "--otel") == 2
    error = capsys.readouterr().err
    assert (error.count("\n"), said in error) == (1, True), error
    assert list(here.iterdir()) == []


def test_the_processes_of_a_sweep_export_too(here: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "sweep.yaml").write_text(json.dumps({"scenarios": ["colours"], "tests": 1, "spans": ["2k"], "agents": ["silent", "oracle"]}))
    assert run("sweep", "sweep.yaml", "--jobs", "2", "--otel", "--json") == 0
    runs = {path.name for path in Path("runs", "sweep").iterdir() if path.is_dir()}
    assert len(runs) == len({span.trace for span in collector.spans}) == 2
    assert {span.attributes["longspan.run"] for span in turns(collector)} == runs
