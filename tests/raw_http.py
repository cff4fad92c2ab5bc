"""Requests as nobody's library would send them, byte by byte, to a viewer in a process of its own."""

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from program import PATIENCE, Program

SMALL_SITE = (sys.executable, str(Path(__file__).parent / "web" / "small_site.py"))


@dataclass(frozen=True)
class Answer:
    raw: bytes

    @property
    def status(self) -> int:
        match = re.match(rb"HTTP/1\.1 (\d{3}) ", self.raw)
        return int(match[1]) if match else 0

    @property
    def headers(self) -> dict[str, str]:
        """By their names in lower case; one that comes twice is a mistake."""
        lines = self.raw.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        found = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        assert len(dict(found)) == len(found), f"a header twice: {found}"
        return dict(found)

    @property
    def body(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def cookie(self) -> str:
        return self.headers["set-cookie"].partition(";")[0]


@dataclass(frozen=True)
class Server:
    process: "subprocess.Popen[str]"
    link: str

    @property
    def host(self) -> str:
        return self.link.split("/")[2]

    @property
    def port(self) -> int:
        return int(self.host.rpartition(":")[2])

    def raw(self, data: bytes, wait: float = PATIENCE, until: bytes = b"") -> Answer:
        """What comes back on one connection until it closes, `until` has come, or nothing comes for `wait` seconds."""
        with socket.create_connection((self.host.rpartition(":")[0], self.port), timeout=wait) as line:
            with contextlib.suppress(ConnectionError):
                line.sendall(data)
            answer = b""
            with contextlib.suppress(TimeoutError, ConnectionError):
                while chunk := line.recv(65536):
                    answer += chunk
                    if until and until in answer:
                        break
            return Answer(answer)

    def ask(self, path: str = "/", *headers: str, method: str = "GET", host: str = "", body: bytes = b"") -> Answer:
        """With the right Host, unless there is another in `host`; `-` leaves it out."""
        length = [f"Content-Length: {len(body)}"] if body or method == "POST" else []
        hosts = [] if host == "-" else [f"Host: {host or self.host}"]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *hosts, *headers, *length, "Connection: close", "", ""])
        return self.raw(head.encode("latin-1") + body)

    def enter(self, link: str = "") -> str:
        """The header that lets in."""
        path = (link or self.link).split(self.host, 1)[1]
        answer = self.ask(path)
        assert answer.status == 200, answer.raw
        return f"Cookie: {answer.cookie}"

    def stop(self, number: int) -> tuple[int, str]:
        """Its exit code, and all that it said on stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@contextlib.contextmanager
def open_server(
    argv: Sequence[str] = SMALL_SITE, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Iterator[Server]:
    """Until the test is done with it. Its first line on stdout is its link."""
    process = Program(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        link = process.stdout.readline().strip()
        assert link.startswith("http://"), process.communicate()
        yield Server(process, link)
    finally:
        process.kill()
        process.communicate()
