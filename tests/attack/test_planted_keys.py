"""Keys planted in all that an outsider can tell: in every field, spelled in every way, and then looked for in every byte that is left."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longspan.simulator.base.keys import FOUND_BY, redact, redact_json
from tests.attack import tried
from tests.loopback import Act, Raw, Say, Server, Status, Use
from tests.loopback.apis import Block
from tests.loopback.otlp import Collector
from tests.loopback.service import Service

KEY: Final = "lsp/7f3a+9c51-Zq0=b8d2/e6+44 A1<c>"
NAME: Final = "LONGSPAN_AGENT_KEY"

SPELLINGS: Final[dict[str, Callable[[str], str]]] = {
    "plain": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, as PHP writes it": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON, as .NET writes it": lambda text: "".join(
        f"\\u{ord(character):04X}" if character in "+<>&'\"" else json.dumps(character)[1:-1] for character in text
    ),
    "JSON in full": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    "JSON in JSON": lambda text: json.dumps(json.dumps("".join(f"\\u{ord(character):04x}" for character in text))[1:-1])[1:-1],
    "an address": lambda text: quote(text, safe=""),
    "an address in full": lambda text: "".join(f"%{ord(character):02x}" for character in text),
    "an address in an address": lambda text: quote(quote(text, safe="")),
    "a page": html.escape,
    "a page in full": lambda text: "".join(f"&#x{ord(character):x};" for character in text),
    "C": lambda text: "".join(f"\\x{ord(character):02x}" for character in text),
    "a pattern": re.escape,
    "hexadecimal": lambda text: text.encode().hex(),
    "base64 of Bearer": lambda text: b64encode(f"Bearer {text}".encode()).decode(),
    "base64 of a user": lambda text: b64encode(f"someone:{text}".encode()).decode(),
    "base64 alone": lambda text: b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: urlsafe_b64encode(f'{{"k":"{text}"}}'.encode()).decode(),
    "base64 in lines": lambda text: encodebytes(f"someone with a long name: {text}, and what comes afterwards".encode()).decode(),
}

_ESCAPES: Final = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))|%([0-9a-fA-F]{2})|\\+([^\w\n])|\\+n")


def meanings(text: str) -> Iterator[str]:
    """Yield `text`, then the same with its escapes undone, again and again."""
    for _ in range(6):
        yield text
        text = _ESCAPES.sub(lambda match: chr(int(code, 16)) if (code := match[1] or match[2] or match[3]) else match[4] or "", text)
        text = html.unescape(text)


def traces_of(key: str, text: str) -> list[str]:
    """Return the spellings of a key found in `text`, whole or without the first and last characters."""
    core = key[1:-1]
    wanted = [key, core, *(spell(core) for name, spell in SPELLINGS.items() if "base64" not in name)]
    for before in range(3):
        code = b64encode(bytes(before) + key.encode()).decode()[4:-4]
        wanted += [code, code.replace("+", "-").replace("/", "_")]
    return [spelling for meaning in meanings(text) for spelling in wanted if spelling in meaning.replace("\n", "")]


def test_the_search_finds_what_is_planted() -> None:
    for name, spell in SPELLINGS.items():
        assert traces_of(KEY, f"before {spell(KEY)} after"), name
        assert traces_of(KEY, json.dumps({"text": f"before {spell(KEY)} after"})), name


keys = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=8, max_size=60).map(str.strip)
keys = keys.filter(lambda key: len(key) >= 8 and not key.isalpha() and not key.isdigit() and len(set(key)) > 3 and key not in NAME)
around = st.text(st.sampled_from("äöü .,\n"), max_size=12)


@given(keys, around, around, st.sampled_from(sorted(SPELLINGS)), st.sampled_from(["plain", *sorted(SPELLINGS)]))
@example(KEY, "", "", "JSON in JSON", "JSON in JSON")
@example('00000"\\:', "", "", "JSON, as .NET writes it", "plain")
@example("00000'\\:", "", "", "a page", "plain")
@example("000001<\\", "", ".", "a page", "plain")
def test_a_key_is_found_however_it_is_spelled(key: str, before: str, after: str, spelled: str, again: str) -> None:
    once = SPELLINGS[spelled](key)
    text = before + (once if "base64" in again or "hexadecimal" in again else SPELLINGS[again](once)) + after
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(NAME, key)
        found = redact(text)
        assert f"[{NAME}]" in found
        assert key not in found
        assert redact(found) == found, "what is read again is not changed again"
        assert found.startswith(before)
        assert found.endswith(after)
        assert redact_json({text: [(text, 1, None)]}) == {found: [[found, 1, None]]}


@given(keys.filter(lambda key: len(key) > FOUND_BY), st.integers(FOUND_BY, 60), around)
def test_the_beginning_of_a_key_is_found_too(key: str, length: int, before: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(NAME, key)
        assert redact(before + key[:length]) == f"{before}[{NAME}]"


@pytest.mark.parametrize("key", ["k", "test", "0123456", "password", "changeme", "20240101", "LONGSPAN_AGENT_KEY"])
def test_a_value_that_could_be_ordinary_text_shreds_none(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, key)
    text = f"The key, {key}, is what we test on 20240101: change the password. LONGSPAN_AGENT_KEY"
    assert redact(text) == text


# Whole runs.

ROGUE = '''
"""Agents and memories that give away the key wherever they can tell something, spelled as its file says."""

import json, os, sys
from itertools import count
from pathlib import Path

SPELLED = json.loads(Path(__file__).with_name("spelled.json").read_text())
FAILING = os.environ.get("ROGUE_FAILS") == "yes"
turns = count()


def planted():
    """The next spelling."""
    return "So: " + SPELLED[next(turns) % len(SPELLED)] + " it is."


def answer(asked=0):
    if FAILING and asked > 1:
        raise ValueError(planted())
    call = {"usage": {"input_tokens": 3, "output_tokens": 2}, planted(): planted()}
    memory = {"id": planted(), "text": planted(), planted(): planted()}
    trace = {"written": [memory], "read": [memory], "calls": [call], planted(): [{planted(): planted()}]}
    return {"text": planted(), "usage": {"model": planted(), "input_tokens": 30, "output_tokens": 20}, "trace": trace}


class Agent:
    def __init__(self):
        self.asked = count()

    def reply(self, message):
        if "longspan" not in sys.modules:  # in a process of its own
            print(planted(), file=sys.stderr)
        return answer(next(self.asked))

    def consolidate(self, at):
        told = answer()
        del told["text"]
        return told


class Typed(Agent):
    """Returns longspan's own Reply, with what is no JSON in its trace."""

    consolidate = None

    def reply(self, message):
        from longspan import Reply, Usage

        told = answer(next(self.asked))
        told["trace"] |= {"bytes": planted().encode(), "set": {planted()}, "path": Path(planted())}
        return Reply(told["text"], Usage(1, 0, 1), told["trace"], besides={planted(): Usage(1, 0, 1)}, measured={planted(): 1.0})


class Runnable(Agent):
    channels = {"messages": None}

    def invoke(self, sent, config):
        return answer(next(self.asked))["text"]


runnable = Runnable()


class Memory(Agent):
    consolidate = None

    def add(self, turns, at):
        return [{"text": planted(), "id": planted()[:200], "turns": [planted()[:200]]}]

    def search(self, query, k, at):
        answer(next(self.asked))
        return [{"text": planted(), "id": planted()[:200], "turns": [turn]} for turn in ("t-1", planted()[:200])]


def serve_tools():
    asked = count()
    for line in sys.stdin:
        request = json.loads(line)
        method, given = request.get("method"), request.get("params", {})
        if "id" not in request:
            continue
        result = {}
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": planted(), "version": "1"}}
            result["instructions"] = planted()
        if method == "tools/list":
            text = {"type": "object", "properties": {"fact": {"type": "string", "description": planted()}}}
            result = {"tools": [{"name": name, "description": planted(), "inputSchema": text} for name in ("remember", "recall")]}
        if method == "tools/call":
            print(planted(), file=sys.stderr, flush=True)
            if FAILING and next(asked) > 1:
                sys.exit(planted())
            result = {"content": [{"type": "text", "text": planted()}], "isError": next(turns) % 3 == 0}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def serve():
    asked = count()
    for line in sys.stdin:
        request = json.loads(line)
        hello = {"protocol": 1, "can": ["consolidate", "save", "load"], "repeatable": True}
        told = {"reply": lambda: answer(next(asked)), "hello": lambda: hello}
        told |= {"consolidate": lambda: {"trace": answer()["trace"]}, "save": lambda: {"state": {planted(): planted()}}}
        try:
            print(json.dumps(told.get(request["call"], dict)()), flush=True)
        except ValueError as error:
            print(json.dumps({"error": str(error), "traceback": planted() * 3}), flush=True)


if __name__ == "__main__":
    {"serve": serve, "tools": serve_tools}[sys.argv[1]]()
'''


class Rogue:
    """Answers of a server that gives away the key, as JSON that spells it in its own way."""

    def __init__(self, fails: bool) -> None:
        self._fails = fails
        self._asked = Counter[str]()
        self._numbers = count()
        self._spelled = list(SPELLINGS.values())

    def planted(self) -> str:
        return f"So: {self._spelled[next(self._numbers) % len(self._spelled)](KEY)} it is."

    def say(self, request: dict[str, Any]) -> tuple[int, bytes]:
        call = request["call"]
        if call == "hello":
            return 200, b'{"protocol": 1, "can": ["save", "load"], "repeatable": true}'
        self._asked[call] += 1
        if self._fails and self._asked[call] > 2:
            return 200 if call == "reply" else 400, self._encoded({"error": self.planted(), "traceback": self.planted()})
        item = {"text": self.planted(), "id": self.planted()[:200], "turns": [self.planted()[:200]]}
        trace = {"written": [{"id": self.planted(), "text": self.planted()}], "read": [{"id": self.planted(), self.planted(): 1}]}
        reply = {"text": self.planted(), "trace": trace, "usage": {"model": self.planted(), "input_tokens": 1, "output_tokens": 1}}
        told = {"reply": reply, "save": {"state": {self.planted(): self.planted()}}, "add": {"items": [item]}, "search": {"items": [item]}}
        return 200, self._encoded(told.get(call, {}))

    def _encoded(self, value: object) -> bytes:
        """Return JSON with the key's characters escaped once more, as some servers do."""
        return json.dumps(value).replace("/", "\\/").replace("+", "\\u002b").encode()

    def act(self, blocks: list[Block]) -> Act:
        """React to a prompt as a model does, one with tools where it may."""
        self._asked[""] += 1
        if self._fails and self._asked[""] > 2:
            return Status(400, self.planted()) if next(self._numbers) % 2 else Raw(self.planted().encode(), 403)
        if blocks[-1].role != "tool" and next(self._numbers) % 4 == 0:
            return Use((("remember", {"fact": self.planted()}), (self.planted(), {self.planted(): self.planted()})))
        return Say(self.planted())


@pytest.mark.parametrize("fails", [False, True])
def test_a_planted_key_is_in_no_file_and_no_output(fails: bool, tmp_path: Path) -> None:
    (tmp_path / "rogue.py").write_text(ROGUE)
    (tmp_path / "spelled.json").write_text(json.dumps([spell(KEY) for spell in SPELLINGS.values()]))
    providers, collector = [Server(decide=Rogue(fails).act) for _ in range(2)], Collector()  # each counts what one run asks, and then fails
    with Service(Rogue(fails).say).running() as service, providers[0].running(), providers[1].running(), collector.running():
        options = "context=8k&timeout=20&stream=false&price_in=1&price_out=1"
        with_tools, alone = (f"base_url={provider.base_url('openai')}&{options}" for provider in providers)
        specs = [
            service.address,
            f"exec:{sys.executable} rogue.py serve",
            "python:rogue:Agent",
            "python:rogue:Typed",
            f"python:rogue:Agent?interpreter={sys.executable}",
            "runnable:rogue:runnable",
            f"memory/{service.address}?answerer=words&unchecked=true",
            "memory/python:rogue:Memory?answerer=words&unchecked=true",
            f"memory/python:rogue:Memory?answerer=words&interpreter={sys.executable}&unchecked=true",
            f"mcp:{sys.executable} rogue.py tools?model=openai/some-model&{with_tools}",
            f"openai/some-model?{alone}",
        ]
        longspan = [sys.executable, "-c", "from longspan.simulator.cli import main; main()"]
        command = [*longspan, "run", "--scenario", "colours", "--span", "2k", "--tests", "1", "--out", "runs"]
        command += ["--nights", "1", "--keep-prompts", "--replies", "replies.jsonl", "--otel", "--junit", "tests.xml", "--trust"]
        command += [word for spec in specs for word in ("--agent", spec)]
        environment = os.environ | {NAME: KEY, "OPENAI_API_KEY": KEY, "ROGUE_FAILS": "yes" if fails else "no", "PYTHONPATH": str(tmp_path)}
        environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=300)
        output = done.stdout + done.stderr
        environment["ROGUE_FAILS"] = "no"
        for again in (["resume", "--yes"], ["replay"]) if fails else ():  # both compare the turns they play with the journal
            (folder,) = (tmp_path / "runs").glob("*-exec-*")
            repeated = subprocess.run(
                [*longspan, *again, folder], cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60
            )
            output += repeated.stdout + repeated.stderr
            assert repeated.returncode == 0, repeated.stderr.decode()
    assert any(KEY in str(key) for _, key, _ in service.asked), "the server is sent the key"
    assert (b"Traceback" in output, done.returncode != 0) == (False, fails), output.decode()
    exported = "\n".join(str(span) for span in collector.spans)
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name not in ("rogue.py", "spelled.json")}
    texts = {str(path): content.decode("utf-8", "replace") for path, content in written.items() if path.suffix != ".pyc"}
    texts |= {"output": output.decode(), "spans": exported}
    told = [text for name, text in texts.items() if name.endswith("incidents.jsonl" if fails else "journal.jsonl")]
    assert len(told) == len(specs)
    assert all(f"[{NAME}]" in text or "[OPENAI_API_KEY]" in text for text in told)
    assert {name: traces_of(KEY, text)[:2] for name, text in texts.items() if traces_of(KEY, text)} == {}
    tried("keys planted", len(specs) * len(SPELLINGS))
