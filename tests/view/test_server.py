"""`longspan view` over HTTP: its pages, the requests it refuses, and many or broken clients."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.base.terminal import quote_command
from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import write_report
from longspan.simulator.pages.view.guard import HEADERS
from longspan.simulator.pages.view.run_list import RunList
from longspan.simulator.results.gradebook.gradebook import grade_run
from tests.sealing import change_json
from tests.view.conftest import ORACLE, SILENT
from tests.view.serving import Server, serving


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one-line error of `longspan view` for invalid arguments."""
    with pytest.raises(SystemExit) as leaving:
        main(["view", *arguments])
    printed = capsys.readouterr()
    assert (leaving.value.code, printed.out) == (2, "")
    assert printed.err.startswith("longspan: ")
    assert printed.err.count("\n") == 1
    return printed.err


# Starting and stopping.


def test_it_prints_its_address_and_stops_with_ctrl_c_whatever_clients_do(made: Path) -> None:
    with serving(made) as server:
        assert server.url == f"{server.home}?token={server.token}"
        assert server.get("/").status == 200
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(f"GET /runs/{ORACLE}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {server.cookie}\r\n\r\n".encode())
            assert b"200" in client.recv(100)
            assert server.stop() == (0, "")


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing: folder does not exist" in refused(capsys, str(tmp_path / "nothing"))


def test_a_port_that_is_taken_is_refused(made: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--port 0 picks a free port" in refused(capsys, str(made), "--port", str(server.port))


@pytest.mark.parametrize("host", ["192.0.2.1", "not a name", "::ffff:1.2.3.4.5", "x" * 300])
def test_an_address_that_is_not_this_machines_is_refused(made: Path, capsys: pytest.CaptureFixture[str], host: str) -> None:
    assert f"--host {host:.80}" in refused(capsys, str(made), "--host", host, "--port", "0")


@pytest.mark.parametrize("module", ["starlette", "hypercorn"])
def test_a_missing_extra_is_named(made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    for name in [name for name in sys.modules if name.startswith(("longspan.simulator.pages.view", module))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    assert refused(capsys, str(made)) == f"longspan: longspan view needs an extra: {install_extra('view')}\n"


# Access.


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:80", "192.0.2.1", "127.0.0.1.evil.example", "", "localhost.evil.example", "[::2]"),
        *("[::1].evil.example", "[::1]evil", "[::1]:80.evil.example", "[::1", "[localhost]", "localhost:evil.example", "127.0.0.1:80:evil"),
    ],
)
def test_another_host_name_is_refused(server: Server, host: str) -> None:
    answer = server.get("/", Host=host)
    assert answer.status in (400, 421)
    assert ORACLE not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1234", "[::1]", "[::1]:80", "127.8.9.10"])
def test_this_machines_names_are_allowed(server: Server, host: str) -> None:
    assert server.get("/", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "no-cors"},
        {"Origin": "http://evil.example", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_pages_of_other_sites_are_refused(server: Server, headers: dict[str, str]) -> None:
    assert server.get(f"/runs/{ORACLE}/events", **headers).status == 403


def test_its_own_pages_and_links_from_other_sites_are_allowed(server: Server) -> None:
    assert server.get("/", Origin=server.home.rstrip("/"), Host=f"127.0.0.1:{server.port}").status == 200
    assert server.get("/", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors").status == 200
    assert server.get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    assert server.get(f"/runs/{ORACLE}/report", method=method).status == 405


@pytest.mark.parametrize(
    "path", ["/", f"/runs/{ORACLE}/report", f"/runs/{ORACLE}/live", f"/runs/{ORACLE}/events", "/nothing", "/assets/live.js"]
)
def test_every_response_has_the_security_headers(server: Server, path: str) -> None:
    for answer in (server.get(path), server.get(path, method="HEAD"), server.get(path, Host="evil.example")):
        assert {name: answer.headers[name.lower()] for name in HEADERS if name != "Content-Security-Policy"} == {
            name: value for name, value in HEADERS.items() if name != "Content-Security-Policy"
        }
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 's")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "server" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104
def test_everything_needs_the_token(made: Path, host: str) -> None:
    with serving(made, "--host", host) as server:
        assert len(server.token) >= 40
        assert server.url.endswith(f"/?token={server.token}")
        wrong = [{"Cookie": ""}, {"Cookie": f"longspan-{server.port}=wrong"}, {"Cookie": "=;;\xff"}, {"Cookie": f"other={server.token}"}]
        paths = ["/", f"/runs/{ORACLE}/report", f"/runs/{ORACLE}/events", "/assets/base.css", "/?token=", "/?token=wrong", "/?token=%ff"]
        for path in paths:
            for headers in wrong:
                answer = server.get(path, **headers)
                assert answer.status == 403
                assert "Open the address that <code>longspan view</code> printed" in answer.text
                assert ORACLE not in answer.text + str(answer.headers)
                assert "set-cookie" not in answer.headers
        own = {"Origin": server.home.rstrip("/"), "Cookie": ""}
        for method in ("POST", "PUT", "DELETE"):
            assert server.get(f"/runs/{ORACLE}/annotate", method, **own).status == 403
        first = server.get(f"/?text=a+b&token={server.token}")
        assert first.status == 303
        assert first.headers["location"] == "/?text=a+b"
        cookie = first.headers["set-cookie"]
        assert "httponly" in cookie.lower()
        assert "samesite=lax" in cookie.lower()
        kept = {"Cookie": cookie.partition(";")[0]}
        assert server.get("/", **kept).status == 200
        others = {"Cookie": f'state={{"a": [1]}}; b[c]=d; {kept["Cookie"]}'}  # of other servers of this host
        assert server.get("/", **others).status == 200
        assert server.get(f"/runs/{ORACLE}/report", Host="evil.example", **kept).status == 421
        if host == "0.0.0.0":  # noqa: S104
            assert server.get("/", Host=f"192.0.2.1:{server.port}", **kept).status == 200, "an address cannot be rebound"
        assert server.get(f"//evil.example/?token={server.token}").headers["location"] == "/evil.example/"


# Content.


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../manifest.json",
        "/runs/%2e%2e/report",
        "/runs/..%2f..%2fetc/report",
        f"/runs/{ORACLE}%2f..%2f{SILENT}/report",
        "/runs//report",
        f"/runs/{ORACLE}/manifest.json",
        f"/runs/{ORACLE}/report/../../../etc/passwd",
        "/assets/../__init__.py",
        "/assets/%2e%2e%2fpages.py",
        "/assets/run.css",
        f"/{ORACLE}/report.html",
        "/etc/passwd",
        "/runs/nothing/live",
        "/runs/nothing/events",
        f"/runs/{ORACLE}%00/report",
        "/compare?run=..",
        "/compare?run=nothing",
    ],
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    answer = server.get(path)
    assert answer.status == 404
    assert "This run or page does not exist" in answer.text


def test_a_report_equals_the_written_one(server: Server, made: Path) -> None:
    run = RunFolder(made / ORACLE)
    answer = server.get(f"/runs/{ORACLE}/report")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    added = [b'<a href="/">All runs</a>', f' data-run="{quote_command(made / ORACLE)}"'.encode()]
    added.append(b', and the <a href="card.svg" download>card</a>')
    assert [answer.body.count(each) for each in added] == [1, 1, 1]
    body = answer.body
    for each in added:
        body = body.replace(each, b"")
    assert body == write_report(run, grade_run(run)).read_bytes()


def test_a_report_is_made_once_until_something_that_it_shows_changes(made: Path, tmp_path: Path) -> None:
    runs = RunList(tmp_path)
    run = RunFolder(Path(shutil.copytree(made / ORACLE, tmp_path / ORACLE)))
    state = runs.state(ORACLE)
    write_report(run, grade_run(run))
    assert runs.state(ORACLE) == state, "a report that is written changes nothing"
    path = run.journal("main")
    path.write_bytes(path.read_bytes()[:-1])
    assert runs.state(ORACLE) != state


@pytest.fixture(scope="module")
def damaged(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with damaged runs."""
    runs = tmp_path_factory.mktemp("damaged")
    for name in ("report", "journal", "manifest", "result", "impossible", "unfinished"):
        shutil.copytree(made / ORACLE, runs / name)
    (runs / "report" / "report.html").write_text("<script>alert(1)</script>")
    journal = runs / "journal" / "conversations" / "main" / "journal.jsonl"
    times = (journal.stat().st_atime_ns, journal.stat().st_mtime_ns)
    journal.write_bytes(b"<script>\x00\n" + journal.read_bytes())
    os.utime(journal, ns=times)
    (runs / "manifest" / "manifest.json").write_text('{"format": "<script>"}')
    (runs / "result" / "result.json").write_text("{")
    change_json(runs / "impossible" / "result.json", lambda result: result["tests"][0].update(chance=-7.0))
    (runs / "unfinished" / "result.json").unlink()
    with serving(runs) as server:
        yield server


def test_a_report_html_in_the_folder_is_not_served(damaged: Server) -> None:
    answer = damaged.get("/runs/report/report")
    assert answer.status == 200
    assert b"alert(1)" not in answer.body


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/runs/journal/report", "damaged at line 1: it has no checksum"),
        ("/runs/manifest/report", "manifest.json: damaged: it has no checksum"),
        ("/runs/manifest/live", "manifest.json: damaged: it has no checksum"),
        ("/runs/manifest/events", "manifest.json: damaged: it has no checksum"),
        ("/runs/result/report", "result.json: damaged: it has no checksum"),
        ("/runs/impossible/report", "is out of range; `longspan score` rewrites it"),
        ("/runs/unfinished/report", "has no results"),
        ("/compare?run=unfinished", "no run can be used"),
        ("/compare", "no runs selected"),
    ],
)
def test_the_error_page_has_the_reason(damaged: Server, path: str, text: str) -> None:
    answer = damaged.get(path)
    assert answer.status == 422
    assert text in answer.text
    assert "<script>" not in answer.text


def test_damaged_runs_are_listed_with_the_others(damaged: Server) -> None:
    listed = damaged.get("/")
    assert listed.status == 200
    assert listed.text.count(' class="why">damaged: ') == 4
    assert listed.text.count('name="run"') == 1
    assert damaged.get("/runs/unfinished/live").status == 200


def test_filters_are_in_the_address(server: Server) -> None:
    listed = server.get("/?agent=silent&text=isolated").text
    assert "1 of 3 runs" in listed
    assert "0.00 of 1</span>" in listed
    assert ORACLE not in listed
    assert '<option selected value="silent">' in listed
    assert "No runs match." in server.get("/?agent=%3Cscript%3E&span=x").text


def test_scores_are_listed_with_their_shares(server: Server) -> None:
    listed = server.get("/").text
    assert "<b>100%</b> 2.00 of 2" in listed
    assert "<b>0%</b> 0.00 of 1" in listed


def test_an_empty_list_says_how_to_start_a_run(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert "No runs yet." in server.get("/").text


# Many, slow and broken clients.


def test_many_clients_follow_at_once(server: Server) -> None:
    request = f"GET /runs/{ORACLE}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {server.cookie}\r\n\r\n".encode()
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(60)]
    for client in clients:
        client.sendall(request)
    for number, client in enumerate(clients):
        seen = b""
        while b'"closed": true' not in seen:
            seen += client.recv(65536)
        assert seen.count(b"event: turn") == seen.count(b'"replyTokens"') > 20, number
    with ThreadPoolExecutor(8) as pool:
        assert {answer.status for answer in pool.map(server.get, ["/"] * 40)} == {200}
    for client in clients:
        client.close()
    assert server.get("/").status == 200


def test_slow_and_broken_clients_do_not_block_others(server: Server) -> None:
    tls, http2 = b"\x16\x03\x01\x02\x00\x01\x00" * 50, b"PRI * HTTP/2.0\r\n\r\n"
    parts = [b"", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", tls, http2, b"A" * 40_000]
    clients = []
    for part in parts * 4:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(part)
        clients.append(client)
    assert server.get(f"/runs/{ORACLE}/report").status == 200
    for client in clients:
        client.close()
    assert server.get("/").status == 200


def test_websockets_are_refused(server: Server) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    assert server.get(f"/runs/{ORACLE}/events", **upgrade, Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==").status >= 400
    assert server.get("/").status == 200
