"""Runs a user's agent or memory class in another Python environment, 3.8 or newer: `python:module:Class?interpreter=PATH`.

    PATH bridge.py module:Class '{"option": "value"}' agent

Built-in adapters are named by file, `/path/adapter.py:Class`. Their option `models`, an address, becomes `Models` with the key from the
environment variable LONGSPAN_LENT_KEY.

The bridge imports only the standard library and the user's module. It speaks longspan's protocol on standard input and output, and hides
both from the class: prints go to standard error, and standard input is empty. Async methods run in one asyncio loop. The loop also runs
between calls, but stops during calls of plain code.
"""

from __future__ import annotations

import asyncio
import dataclasses
import faulthandler
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

KEY_VARIABLE = "LONGSPAN_LENT_KEY"
"""The environment variable with the key of `models`: all users of a machine can read command lines."""


class Message(NamedTuple):
    """A message to the agent."""

    text: str
    sent_at: datetime
    turn_id: str


class Turn(NamedTuple):
    """A turn for a memory. `reply` may be empty."""

    turn_id: str
    text: str
    sent_at: datetime
    reply: str

    @property
    def document(self) -> str:
        """The turn's full text, with the speakers' roles if there is a reply."""
        return f"user: {self.text}\nassistant: {self.reply}" if self.reply else self.text


class Models:
    """The model and the embedder that longspan lends to a memory system, at an address that speaks OpenAI's API.

    `url` is the base address, and `key` the API key that it requires.
    """

    name = "lent"
    """The name of both the model and the embedder."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        """The length of the embedder's vectors."""
        self._dimensions = self._dimensions or len(self.embed(["length"])[0])
        return self._dimensions

    def embed(self, texts: Any) -> Any:
        """Return a unit vector for each of `texts`."""
        texts = list(texts)
        found = self.ask("embeddings", {"model": self.name, "input": texts})["data"] if texts else []
        return [each["embedding"] for each in sorted(found, key=lambda each: int(each["index"]))]

    def ask(self, route: str, body: Any) -> Any:
        """Return the answer to a request. Raises RuntimeError for an HTTP error."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = Request(f"{self.url}/{route}", json.dumps(body).encode(), headers)  # noqa: S310 - the address is longspan's own
        try:
            with build_opener(ProxyHandler({})).open(request) as answer:
                return json.loads(answer.read())
        except HTTPError as error:
            raise RuntimeError(f"{route}: {error.read().decode(errors='replace')[:300]}") from None


COMMON = {"consolidate": "at", "save": "folder", "load": "folder", "mark": "", "rewind": "", "reset": "", "close": ""}
METHODS = {
    "agent": {"reply": "message", "observe": "message, reply", **COMMON},
    "memory": {"add": "turns, at", "search": "query, k, at", "forget": "text, at", "settle": "", **COMMON},
}
"""The methods that longspan calls, by a class's role, and their parameters."""

PAIRS = {"save": "load", "load": "save", "mark": "rewind", "rewind": "mark"}
"""Methods that longspan calls only if the class has the other one too."""

NEEDED = {
    "agent": {"reply": " that returns a str"},
    "memory": {"add": "", "search": " that returns a list of str, or of dicts with text"},
}
"""The methods that a class must have, by its role, and what they return."""


class Bridge:
    """A wrapper that answers requests with an instance of the class, created at the first request. `role`: agent or memory."""

    def __init__(self, target: str, arguments: dict[str, str], role: str = "agent") -> None:
        self.target = target
        self.arguments = arguments
        self.role = role
        self.object: Any = None
        self.loop = asyncio.new_event_loop()

    def answer(self, request: Any) -> Any:
        """Return the answer to a request. Errors of the class propagate."""
        with attach_to_turn(request.get("traceparent")):
            return self.serve(request)

    def serve(self, request: Any) -> Any:
        call = request["call"]
        if self.object is None:
            self.object = self.make()
        if call == "hello":
            return self.hello()
        if call == "reply":
            return as_answer(self.call("reply", parse_message(request)))
        if call == "observe":
            self.call("observe", parse_message(request), request["reply"])
        elif call == "add":
            return as_items(self.call("add", [as_turn(turn) for turn in request["turns"]], datetime.fromisoformat(request["at"])))
        elif call == "search":
            return as_items(self.call("search", request["query"], request["k"], datetime.fromisoformat(request["at"])))
        elif call == "consolidate":
            worked = self.call("consolidate", datetime.fromisoformat(request["at"]))
            return as_items(worked) if self.role == "memory" else as_work(worked)
        elif call == "forget":
            return as_items(self.call("forget", request["text"], datetime.fromisoformat(request["at"])))
        elif call == "settle":
            self.call("settle")
        elif call == "reset" and not self.has("reset"):
            self.close()
            self.object = self.make()
        elif call in ("reset", "mark", "rewind"):
            self.call(call)
        else:
            self.call(call, Path(request["folder"]))
        return {}

    def make(self) -> Any:
        module, _, path = self.target.rpartition(":")
        arguments: dict[str, Any] = dict(self.arguments)
        if module.endswith(".py"):
            cls: Any = from_file(module)
            arguments["models"] = Models(self.arguments["models"], os.environ[KEY_VARIABLE])
        else:
            cls = importlib.import_module(module)
        for name in path.split("."):
            cls = getattr(cls, name)
        frameworks = from_file(str(Path(__file__).with_name("frameworks.py")), "longspan_frameworks")
        made = frameworks.copy_finished(cls, arguments) if frameworks.is_finished(cls) else cls(**arguments)
        instance = self.run(made) if inspect.isawaitable(made) else made
        if self.role == "agent":
            instance = frameworks.adapt(instance)
        problem = find_problem(instance, self.role)
        if problem:
            raise TypeError(problem)
        return instance

    def has(self, *names: str) -> bool:
        return all(callable(getattr(self.object, name, None)) for name in names)

    def hello(self) -> Any:
        can = ["reset", *["observe"] * self.has("observe"), *["save", "load"] * self.has("save", "load")]
        can += ["mark", "rewind"] * self.has("mark", "rewind") + ["settle"] * self.has("settle") + ["consolidate"] * self.has("consolidate")
        can += ["forget"] * (self.role == "memory" and self.has("forget"))
        declared = {name: getattr(self.object, name, False) is True for name in ("repeatable", "read_only_search")}
        return {"protocol": 1, "can": can, **declared}

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the object and await its result."""
        result = getattr(self.object, name)(*arguments)
        return self.run(result) if inspect.isawaitable(result) else result

    def run(self, awaitable: Any) -> Any:
        """Run the loop until `awaitable` finishes, even if another task raises SystemExit or stops the loop."""
        task = self.loop.create_task(wait_for(awaitable))
        while not task.done() and not self.loop.is_closed():
            with suppress(BaseException):  # errors of the task itself are raised below
                self.loop.run_until_complete(task)
        return task.result()

    def requests(self, file: Any) -> Iterator[Any]:
        """Yield requests from a file, read in a thread."""
        with ThreadPoolExecutor(1) as reader:
            while True:
                line = self.run(self.loop.run_in_executor(reader, file.readline))
                if not line:
                    return
                yield json.loads(line)

    def close(self) -> None:
        if self.has("close"):
            self.call("close")

    def end(self) -> None:
        """Let the object close its resources, then cancel the remaining tasks."""
        try:
            self.close()
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.run(end_of(left))
            self.run(self.loop.shutdown_asyncgens())
            self.loop.close()


def find_problem(instance: Any, role: str) -> str:
    """Describe a method that an agent or a memory lacks, or that cannot be called as longspan does; "" if there is none."""
    for name, parameters in METHODS[role].items():
        expected = parameters.split(", ") if parameters else []
        written = f"`def {name}({', '.join(['self', *expected])})`"
        method = getattr(instance, name, None)
        if not callable(method):
            if name in NEEDED[role]:
                return f"it has no method {name}{find_other_role(instance, role) or f': add {written}{NEEDED[role][name]}'}"
        elif callable(getattr(instance, PAIRS.get(name, name), None)):
            taken = find_mismatch(method, len(expected))
            if taken is not None:
                return f"{name} takes {join_words(taken)}, but longspan passes {join_words(expected)}: write {written}"
    return ""


def find_other_role(instance: Any, role: str) -> str:
    """Name the spec of a memory that is given as an agent, or of an agent that is given as a memory; "" for other objects."""
    other, prefix, options = ("memory", "memory/", "?answerer=KIND/MODEL") if role == "agent" else ("agent", "", "")
    if not all(callable(getattr(instance, name, None)) for name in NEEDED[other]):
        return ""
    spec = f"{prefix}python:{type(instance).__module__}:{type(instance).__qualname__}{options}"
    return f", but {' and '.join(NEEDED[other])}: it is {'a memory' if prefix else 'an agent'}, so name it {spec}"


def find_mismatch(method: Any, count: int) -> Any:
    """Return the names of a method's parameters if it cannot be called with `count` arguments by position, otherwise None."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return None  # written in C: only a call can tell
    try:
        signature.bind(*range(count))
    except TypeError:
        return list(signature.parameters)
    return None


def join_words(words: Any) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]])) or "nothing"


def from_file(path: str, name: str = "longspan_adapter") -> Any:
    """Import a file under a private name, since it may have the name of the package that it imports."""
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def attach_to_turn(traceparent: Any) -> Iterator[None]:
    """Attach the class's spans to the turn's span, if OpenTelemetry is installed here."""
    with ExitStack() as afterwards:
        if traceparent is not None:
            with suppress(Exception):  # absent or broken tracing must not stop the agent
                from opentelemetry.context import attach, detach
                from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

                afterwards.callback(detach, attach(TraceContextTextMapPropagator().extract({"traceparent": traceparent})))
        yield


async def wait_for(awaitable: Any) -> Any:
    return await awaitable


async def end_of(tasks: Any) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def parse_message(request: Any) -> Message:
    return Message(request["text"], datetime.fromisoformat(request["sent_at"]), request["turn"])


def as_turn(turn: Any) -> Turn:
    return Turn(turn["turn"], turn["text"], datetime.fromisoformat(turn["sent_at"]), turn["reply"])


def as_items(result: Any) -> Any:
    """Convert a result of `add` or `search` to the protocol: None, a list of memories, or a dict with them as `items`."""
    if result is None:
        return {"items": None}
    if isinstance(result, dict):
        return {**with_usage(result), "items": as_items(result.get("items"))["items"]}
    if isinstance(result, str) or not hasattr(result, "__iter__"):
        raise TypeError(f"it returned {type(result).__name__}; it must return a list of memories, or a dict with these as items")
    return {"items": [as_item(item) for item in result]}


def as_item(item: Any) -> Any:
    """Convert a memory to the protocol: a str, a dict, or an object with text, turns, score, id, at and derived."""
    if isinstance(item, str):
        return {"text": item}
    if not isinstance(item, dict):
        if not hasattr(item, "text"):
            raise TypeError(f"a memory is {type(item).__name__}; it must be a str, or a dict with text, turns, score, id and at")
        names = ("text", "turns", "score", "id", "at", "derived")
        item = {name: getattr(item, name) for name in names if getattr(item, name, None) is not None}
    fields = {name: value for name, value in item.items() if value is not None}
    if "turns" in fields:
        fields["turns"] = list(fields["turns"])
    if isinstance(fields.get("id"), int):
        fields["id"] = str(fields["id"])
    if isinstance(fields.get("at"), datetime):
        fields["at"] = fields["at"].isoformat()
    if "score" in fields:
        fields["score"] = float(fields["score"])
    return fields


def as_work(told: Any) -> Any:
    """Convert a result of `consolidate` to the protocol: None, a dict, or an object with usage, trace and cost_usd."""
    if told is None or isinstance(told, dict):
        return with_usage(told or {})
    if not hasattr(told, "usage"):
        raise TypeError(f"consolidate returned {type(told).__name__}; it must return nothing, or a dict with usage, cost_usd and trace")
    answer = as_answer(told)
    return {name: answer[name] for name in ("usage", "trace", "cost_usd", "besides", "measured")}


def as_answer(reply: Any) -> Any:
    """Convert a result of `reply` to the protocol: a str, a dict, or an object with text, usage, trace and refused."""
    if isinstance(reply, str):
        return {"text": reply}
    if isinstance(reply, dict):
        return with_usage(reply)
    if not hasattr(reply, "text"):
        raise TypeError(f"reply returned {type(reply).__name__}; it must return a str, or a dict with text, usage, cost_usd and trace")
    names = ("usage", "trace", "cost_usd", "besides", "measured")
    fields = {name: getattr(reply, name, None) for name in names}
    return with_usage({"text": reply.text, "refused": getattr(reply, "refused", False), **fields})


def with_usage(answer: Any) -> Any:
    """Convert usage objects in an answer, including its components' usage."""
    found = {"usage": as_usage(answer["usage"])} if "usage" in answer else {}
    if isinstance(answer.get("besides"), dict):
        found["besides"] = {part: as_usage(usage) for part, usage in answer["besides"].items()}
    return {**answer, **found}


def as_usage(usage: Any) -> Any:
    """Convert a reply's usage to the protocol: None, a dict, or an object's fields."""
    if usage is None or isinstance(usage, dict):
        return usage
    if hasattr(usage, "_asdict"):
        return usage._asdict()
    try:
        return to_plain(usage)
    except TypeError:
        named = getattr(usage, "__dict__", {}).items()
        # Since Python 3.13, classes have int attributes such as __firstlineno__.
        fields = {name: value for name, value in named if isinstance(value, int) and not name.startswith("__")}
    if not fields:
        raise TypeError(f"usage is {type(usage).__name__}; it must be a dict or an object with input_tokens and output_tokens")
    return fields


def to_plain(value: Any) -> Any:
    """Convert a dataclass or a vendor's object, such as OpenAI's usage, to a dict."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def one_line(error: BaseException) -> str:
    words = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def give_hint(error: BaseException, call: str) -> str:
    """Return advice if the class treated the message as its text."""
    mistaken = call == "reply" and isinstance(error, (AttributeError, TypeError)) and "Message" in str(error)
    return "; reply is given a message, and its text is message.text" if mistaken else ""


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    faulthandler.enable(all_threads=False)
    bridge = Bridge(sys.argv[1], json.loads(sys.argv[2]), *sys.argv[3:])
    for request in bridge.requests(requests):
        try:
            answer = json.dumps(bridge.answer(request), allow_nan=False, default=to_plain)
            print(end="", flush=True)
        except BaseException as error:  # also KeyboardInterrupt: Ctrl-C does not reach this process
            traceback.print_exc()
            answer = json.dumps({"error": one_line(error) + give_hint(error, request["call"]), "traceback": traceback.format_exc()})
        answers.write(answer.encode() + b"\n")
        answers.flush()
    bridge.end()


if __name__ == "__main__":
    main()
