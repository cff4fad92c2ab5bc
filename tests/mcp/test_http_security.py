"""The HTTP server against strangers: without the token, from another page, with too much, or in disguise."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from hostile_session import make_project, snapshot

from agentd.engine.tools.tool import Stage
from mcp_session import http_server, over_http, staged, text_of
from program import AGENTD, PATIENCE, Program
from scenario import Scenario

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read_file"}}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "stranger", "version": "1"},
    },
}
BODY = json.dumps(INITIALIZE).encode()
JSON = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"


@dataclass(frozen=True)
class Served:
    process: "subprocess.Popen[str]"
    port: int
    token: str
    file: Path
    room: Path

    @property
    def key(self) -> str:
        return f"Authorization: Bearer {self.token}\r\n"

    @property
    def host(self) -> str:
        return f"Host: 127.0.0.1:{self.port}\r\n"

    def raw(self, data: bytes, wait: float = PATIENCE, until: bytes = b"") -> bytes:
        """What comes back on one connection until it closes, `until` has come, or nothing comes for `wait` seconds."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as line:
            with contextlib.suppress(ConnectionError):
                line.sendall(data)
            answer = b""
            with contextlib.suppress(TimeoutError, ConnectionError):
                while chunk := line.recv(65536):
                    answer += chunk
                    if until and until in answer:
                        break
            return answer

    def request(self, method: str = "POST", headers: str = "", body: bytes = BODY, path: str = "/mcp") -> bytes:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\n{headers}{length}Connection: close\r\n\r\n"
        return self.raw(head.encode("latin-1") + body)

    def is_alive(self) -> None:
        answer = self.request(headers=self.host + self.key + JSON)
        assert status(answer) == 200 and b'"serverInfo"' in answer


def status(answer: bytes) -> int:
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(match[1]) if match else 0


@contextlib.contextmanager
def serving(room: Path) -> Iterator[Served]:
    box = make_project(room)
    process = Program(
        [AGENTD, "mcp", "--http"],
        cwd=box.root,
        env=box.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        url = process.stderr.readline().split()[-1]
        file = Path(process.stderr.readline().split(maxsplit=4)[-1].strip())
        token = json.loads(file.read_text())["token"]
        yield Served(process, int(url.split(":")[2].split("/")[0]), token, file, room)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe
            pipe.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("http")) as served:
        yield served


TOKENS = {
    "no token": "",
    "an empty one": "Authorization: \r\n",
    "no word after Bearer": "Authorization: Bearer \r\n",
    "a wrong one": "Authorization: Bearer wrong\r\n",
    "another scheme": "Authorization: Basic {token}\r\n",
    "the token alone": "Authorization: {token}\r\n",
    "a letter more": "Authorization: Bearer {token}0\r\n",
    "a letter less": "Authorization: Bearer {short}\r\n",
    "capitals": "Authorization: Bearer {upper}\r\n",
    "twice": "Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n",
    "a wrong one after it": "Authorization: Bearer {token}\r\nAuthorization: Bearer wrong\r\n",
    "two in one line": "Authorization: Bearer {token}, Bearer {token}\r\n",
    "bytes that are no text": "Authorization: Bearer \xff\xfe\r\n",
    "in a cookie": "Cookie: token={token}\r\n",
    "in another header": "X-Authorization: Bearer {token}\r\n",
    "a very long one": "Authorization: Bearer " + "x" * 20_000 + "\r\n",
}


@pytest.mark.parametrize("name", TOKENS)
def test_request_without_the_token_is_refused(server: Served, name: str) -> None:
    token = server.token
    header = TOKENS[name].format(token=token, short=token[:-1], upper=token.upper())
    answer = server.request(headers=server.host + header + JSON)
    assert status(answer) == 401
    assert b"serverInfo" not in answer and token.encode() not in answer
    server.is_alive()


@pytest.mark.parametrize("path", ["/mcp", "/", "/mcp/", "/docs", "/mcp?token={token}", "/../mcp", "//mcp", "*"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE", "PUT", "HEAD", "TRACE", "PATCH", "BREW"])
def test_every_method_and_path_needs_the_token(server: Served, method: str, path: str) -> None:
    answer = server.request(method, server.host + JSON, b"", path.format(token=server.token))
    assert status(answer) in (401, 400)
    assert b"access-control" not in answer.lower()


HOSTS = [
    "example.org",
    "example.org:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1.example.org:{port}",
    "[::1]:{port}",
]


@pytest.mark.parametrize("host", HOSTS)
def test_foreign_host_header_is_refused(server: Served, host: str) -> None:
    """A name that a stranger lets point to this machine."""
    answer = server.request(headers=f"Host: {host.format(port=server.port)}\r\n" + server.key + JSON)
    assert 400 <= status(answer) < 500 and b"serverInfo" not in answer
    server.is_alive()


def test_missing_or_duplicate_host_header_is_refused(server: Served) -> None:
    for hosts in ("", server.host + "Host: example.org\r\n", "Host: example.org\r\n" + server.host):
        answer = server.request(headers=hosts + server.key + JSON)
        assert 400 <= status(answer) < 500 and b"serverInfo" not in answer
    server.is_alive()


ORIGINS = [
    "http://example.org",
    "null",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1:1",
    "http://127.0.0.1",
    "file://",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_foreign_origin_is_refused(server: Served, origin: str) -> None:
    headers = server.host + server.key + JSON + f"Origin: {origin.format(port=server.port)}\r\n"
    answer = server.request(headers=headers)
    assert 400 <= status(answer) < 500 and b"serverInfo" not in answer
    assert b"access-control" not in answer.lower()
    server.is_alive()


@pytest.mark.parametrize("key", [True, False], ids=["with the token", "without"])
def test_no_cors_headers_are_ever_sent(server: Served, key: bool) -> None:
    asking = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
    for origin in ("http://example.org", f"http://127.0.0.1:{server.port}"):
        for method in ("OPTIONS", "POST", "GET"):
            headers = server.host + (server.key if key else "") + JSON + f"Origin: {origin}\r\n" + asking
            answer = server.request(method, headers, BODY if method == "POST" else b"")
            assert b"access-control" not in answer.lower()


def test_websocket_upgrade_is_refused(server: Served) -> None:
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    answer = server.raw(f"GET /mcp HTTP/1.1\r\n{server.host}{upgrade}\r\n".encode(), until=b"\r\n\r\n")
    assert status(answer) == 401


def test_server_listens_only_on_loopback(server: Served) -> None:
    listening = [
        row.split()[1]
        for name in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        if row.split()[3] == "0A" and row.split()[1].endswith(f":{server.port:04X}")
    ]
    assert listening == [f"0100007F:{server.port:04X}"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=PATIENCE)


def test_token_file_belongs_only_to_its_owner(server: Served) -> None:
    seen = server.file.stat()
    assert stat.S_IMODE(seen.st_mode) == 0o600 and seen.st_uid == os.getuid()
    assert len(server.token) >= 32


def test_token_file_is_created_with_owner_only_permissions(tmp_path: Path) -> None:
    """Watched by the kernel's own account: the rights with which the program makes each file of that folder."""
    code = (
        "import os, sys\n"
        "real = os.open\n"
        "def watched(path, flags, mode=0o777, **more):\n"
        "    if flags & os.O_CREAT and b'http-' in os.fsencode(path):\n"
        "        print('made with', oct(mode), file=sys.stderr, flush=True)\n"
        "    return real(path, flags, mode, **more)\n"
        "os.open = watched\n"
    )
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "sitecustomize.py").write_text(code)
    box = make_project(tmp_path / "room")
    server = Program(
        [AGENTD, "mcp", "--http"],
        cwd=box.root,
        env={**box.env, "PYTHONPATH": str(tmp_path / "early")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        umask=0,
    )
    try:
        assert server.stderr and server.stderr.readline() == "made with 0o600\n"
    finally:
        server.terminate()
        server.communicate()


LARGE = 5 * 1024 * 1024


def test_body_over_the_limit_is_refused_before_it_is_read(server: Served) -> None:
    body = b'{"jsonrpc": "2.0", "x": "' + b"x" * LARGE + b'"}'
    assert status(server.request(headers=server.host + server.key + JSON, body=body)) == 413
    server.is_alive()


def test_chunked_body_over_the_limit_is_refused(server: Served) -> None:
    head = (
        f"POST /mcp HTTP/1.1\r\n{server.host}{server.key}{JSON}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    assert status(server.raw(head.encode() + chunk * 80 + b"0\r\n\r\n")) == 413
    server.is_alive()


def test_large_body_without_the_token_is_not_read(server: Served) -> None:
    assert status(server.request(headers=server.host + JSON, body=b"x" * LARGE)) in (401, 413)
    server.is_alive()


BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "half a JSON": BODY[:40],
    "no UTF-8": b'{"jsonrpc": "\xff\xfe"}',
    "a list": b"[]",
    "a number": b"7",
    "a deep nest": b"[" * 100_000,
    "no such method": b'{"jsonrpc": "2.0", "id": 1, "method": "shell"}',
    "a call without a session": json.dumps(CALL).encode(),
    "half a character": b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_invalid_body_is_a_client_error(server: Served, name: str) -> None:
    answer = server.request(headers=server.host + server.key + JSON, body=BODIES[name])
    assert 400 <= status(answer) < 500 or b'"error"' in answer
    assert b"Traceback" not in answer and b'File "' not in answer
    server.is_alive()


def smuggled(server: Served) -> dict[str, bytes]:
    inner = f"POST /mcp HTTP/1.1\r\n{server.host}{JSON}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
    head = f"POST /mcp HTTP/1.1\r\n{server.host}{server.key}{JSON}".encode()
    return {
        "two lengths": head + b"Content-Length: 5\r\nContent-Length: 500\r\n\r\nhello" + inner,
        "a length and chunks": head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
        "a strange encoding": head + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
        "a negative length": head + b"Content-Length: -5\r\n\r\n" + inner,
        "a length that is no number": head + b"Content-Length: 5x\r\n\r\nhello" + inner,
        "a folded header": head + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n" + inner,
        "a blank before the colon": head + b"Content-Length : 5\r\n\r\nhello" + inner,
        "a lone line feed": head.replace(b"\r\n", b"\n") + b"Content-Length: 0\n\n" + inner,
        "a NUL in a header": head + b"X: a\0b\r\nContent-Length: 0\r\n\r\n" + inner,
        "a header without end": head + b"X: " + b"x" * 200_000,
        "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
    }


@pytest.mark.parametrize("name", list(smuggled(Served(None, 0, "", Path(), Path()))))  # type: ignore[arg-type]
def test_smuggled_request_is_not_served(server: Served, name: str) -> None:
    """The hidden one has no token, so wherever the server sees its start, it must not be served."""
    answer = server.raw(smuggled(server)[name], wait=2)
    assert b"serverInfo" not in answer
    server.is_alive()


def test_requests_write_nothing_to_disk(server: Served) -> None:
    before = snapshot(server.room)
    for header in ("", server.key):
        server.request(headers=server.host + header + JSON, body=b"{}")
    assert snapshot(server.room) == before
    assert server.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with an open stream"])
def test_stopped_server_removes_its_token_file(tmp_path: Path, number: signal.Signals, busy: bool) -> None:
    with contextlib.ExitStack() as stack, serving(tmp_path / "room") as served:
        served.is_alive()
        if busy:
            answer = served.request(headers=served.host + served.key + JSON).decode()
            session = re.search(r"mcp-session-id: (\S+)", answer)
            assert session
            line = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE))
            wanted = f"Mcp-Session-Id: {session[1]}\r\nAccept: text/event-stream\r\n"
            line.sendall(f"GET /mcp HTTP/1.1\r\n{served.host}{served.key}{wanted}\r\n".encode())
            assert status(line.recv(1000)) == 200
        served.process.send_signal(number)
        assert served.process.wait(timeout=PATIENCE) in (130, 143)
        assert not served.file.exists() and list(served.file.parent.iterdir()) == []
        assert served.process.stderr and "Traceback" not in served.process.stderr.read()


def test_two_concurrent_clients_are_both_served(project: Scenario) -> None:
    async def talk() -> None:
        with staged(project, Stage.PLAN) as on, http_server(on) as (url, token):
            async with over_http(url, token) as one, over_http(url, token, "legacy") as two:
                async with anyio.create_task_group() as group:
                    for client in (one, two) * 10:
                        group.start_soon(client.call_tool, "read_file", {"path": "proposal.md"})
                for client in (one, two):
                    assert text_of(await client.call_tool("read_file", {"path": "README.md"})) == "notes\n"

    anyio.run(talk)
