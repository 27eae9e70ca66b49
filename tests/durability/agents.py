"""Stateful agents: every reply depends on all messages before, so that one lost turn changes everything after it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from longspan.simulator.contract.messages import Message

WORDS = ["sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef"]


def reply_from(state: str) -> str:
    """Return 1 to 30 words derived from the state."""
    count = 1 + int(state[:4], 16) % 30
    return " ".join(WORDS[int(digit, 16) % len(WORDS)] for digit in state[:count])


def after(state: str, text: str, reply: str) -> str:
    return hashlib.sha256(f"{state}|{text}|{reply}".encode()).hexdigest()


class Forgetful:
    """Has state but cannot save it, so that all turns must be shown to it again."""

    def __init__(self) -> None:
        self.state = hashlib.sha256(b"").hexdigest()

    def reply(self, message: Message) -> str:
        reply = reply_from(self.state)
        self.state = after(self.state, message.text, reply)
        return reply

    def observe(self, message: Message, reply: str) -> None:
        self.state = after(self.state, message.text, reply)


class Keeper(Forgetful):
    """Has state and snapshots."""

    def save(self, folder: Path) -> None:
        (folder / "state.txt").write_text(self.state)

    def load(self, folder: Path) -> None:
        self.state = (folder / "state.txt").read_text()


class Deaf:
    """Neither saves nor observes, so that all turns are sent to it again."""

    def __init__(self) -> None:
        self.state = hashlib.sha256(b"").hexdigest()

    def reply(self, message: Message) -> str:
        reply = reply_from(self.state)
        self.state = after(self.state, message.text, "")
        return reply


class Remote:
    """Keeps its state in a child process that speaks JSON lines and ends with its parent."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-S", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, **request: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise ConnectionError("the agent's process has gone")
        return str(json.loads(answer))

    def reply(self, message: Message) -> str:
        return self.call(do="reply", text=message.text)

    def observe(self, message: Message, reply: str) -> None:
        self.call(do="observe", text=message.text, reply=reply)

    def save(self, folder: Path) -> None:
        (folder / "state.txt").write_text(self.call(do="state"))

    def load(self, folder: Path) -> None:
        self.call(do="become", state=(folder / "state.txt").read_text())

    def __del__(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


SERVER = """
import hashlib, json, sys
state = hashlib.sha256(b"").hexdigest()
words = ["sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef"]
def after(text, reply):
    return hashlib.sha256(f"{state}|{text}|{reply}".encode()).hexdigest()
for line in sys.stdin:
    ask = json.loads(line)
    answer = "done"
    if ask["do"] == "reply":
        answer = " ".join(words[int(digit, 16) % 8] for digit in state[: 1 + int(state[:4], 16) % 30])
        state = after(ask["text"], answer)
    elif ask["do"] == "observe":
        state = after(ask["text"], ask["reply"])
    elif ask["do"] == "become":
        state = ask["state"]
    else:
        answer = state
    print(json.dumps(answer), flush=True)
"""
