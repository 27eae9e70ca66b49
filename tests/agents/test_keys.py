"""Keys stay in the environment: runs from the command line, with a search for the key in all their files and output."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.forked import longspan
from tests.loopback import Act, Raw, Server, Status

KEY = "sk-marker-7f3a9c51-marker"
VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}


def run(server: Server, kind: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    spec = f"{kind}/some-model?base_url={server.base_url(kind)}&timeout=10"
    where = ["--out", str(folder / "runs"), "--agent", spec]
    command = ["run", "--scenario", "colours", "--span", "2k", *where, *more]
    keys = dict.fromkeys(VARIABLES.values(), KEY)
    return longspan(*command, where=folder, env=os.environ | keys)


def left_behind(folder: Path, done: subprocess.CompletedProcess[str]) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()) + (done.stdout + done.stderr).encode()


@pytest.mark.parametrize("kind", VARIABLES)
def test_a_key_is_in_no_file_and_no_output_of_a_run(server: Server, kind: str, tmp_path: Path) -> None:
    judge = f"{kind}/some-model?base_url={server.base_url(kind)}"
    done = run(server, kind, tmp_path, "--judge", judge)
    assert done.returncode == 0, done.stderr
    assert any(KEY in value for asked in server.asked for value in asked.headers.values())
    found = left_behind(tmp_path, done)
    assert b"some-model" in found
    assert KEY.encode() not in found


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        *((kind, Status(401, f"Incorrect API key provided: {KEY}")) for kind in VARIABLES),
        ("openai", Raw(f"<h1>{KEY}</h1>".encode(), 403)),
    ],
)
def test_nor_of_a_run_interrupted_by_an_answer_with_the_key(server: Server, kind: str, act: Act, tmp_path: Path) -> None:
    server.always = act
    done = run(server, kind, tmp_path)
    assert done.returncode == 1
    found = left_behind(tmp_path, done)
    assert b"rejected the key" in found
    assert KEY.encode() not in found
