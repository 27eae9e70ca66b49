"""`longspan view` in a process of its own, and its responses."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

START = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", "view"]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Server:
    """A running server. `url`: the URL that it printed. `token`: the token in it. `cookie`: what a browser keeps of it."""

    process: subprocess.Popen[str]
    url: str

    @property
    def home(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def token(self) -> str:
        return self.url.rpartition("token=")[2]

    def at(self, path: str = "") -> str:
        """The URL of a page with the token, for a browser."""
        return f"{self.home}{path}?token={self.token}"

    @property
    def cookie(self) -> str:
        return f"longspan-{self.port}={self.token}"

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Request a path exactly as given, with the cookie unless another is given. `headers` have `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        given = {name.replace("_", "-"): value for name, value in {"Cookie": self.cookie, **headers}.items()}
        connection.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        body = b"" if response.getheader("content-type", "").startswith("text/event-stream") else response.read()
        answer = Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
        connection.close()
        return answer

    def post(self, path: str, form: Mapping[str, str | list[str]] | bytes, **headers: str | None) -> tuple[int, str]:
        """Send a form as one of the server's own pages does. Returns the status, and the location or the text of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        given = {"Origin": self.home.rstrip("/"), "Content-Type": "application/x-www-form-urlencoded", "Cookie": self.cookie} | headers
        body = form if isinstance(form, bytes) else urlencode(form, doseq=True).encode()
        connection.request("POST", path, body, {name: value for name, value in given.items() if value is not None})
        response = connection.getresponse()
        text = response.getheader("location") or response.read().decode()
        connection.close()
        return response.status, text

    def stop(self) -> tuple[int, str]:
        """Interrupt it like Ctrl-C. Returns its exit code and its standard error."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """Run `longspan view` of a folder on a free port. It must exit cleanly."""
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*START, str(folder), "--port", "0", *options], text=True, env=os.environ, **quiet) as process:
        try:
            assert process.stdout is not None
            server = Server(process, process.stdout.readline().strip())
            assert server.url.startswith("http://")
            yield server
            if process.poll() is None:
                assert server.stop() == (0, "")
        finally:
            process.kill()
