"""A scripted model on 127.0.0.1 that speaks the APIs of the three vendors, and remembers what it was asked.

Each conversation has its own base address (`/s/<name>`), a list of turns that it answers in order, and a log. What a
vendor's stream looks like is in `gemini_api`, `codex_api` and `claude_api`; each has `answer(request, turn)`.
"""

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """The model calls a tool of agentd's server, by its plain name."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer of the model. Tokens are what the API reports for it; `cached` is part of `tokens_in`."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens_in: int = 100
    tokens_out: int = 10
    cached: int = 0
    # Faults: an HTTP status instead of an answer, silence, or a stream that breaks off
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # without the scenario's prefix
    headers: Mapping[str, str]  # names in lower case
    body: Any
    size: int


class Api(Protocol):
    def is_turn(self, request: Request) -> bool:
        """False for what the CLI asks on the side (a title, a summary, a probe): answered apart, no turn is used."""
        ...

    def answer(self, request: Request, turn: Turn) -> tuple[str, list[bytes]]:
        """The content type, and the pieces of the body: one is sent after the other, a cut stream lacks the last."""
        ...

    def aside(self, request: Request) -> tuple[str, list[bytes]]: ...

    def refusal(self, turn: Turn) -> bytes:
        """The vendor's JSON for an HTTP error."""
        ...


class Conversation:
    """The turns of one test, and what was asked. The last turn is repeated when the script is used up."""

    def __init__(self, api: Api, base: str, turns: Sequence[Turn]) -> None:
        self.api = api
        self.base = base
        self.asked: list[Request] = []  # every turn's request, in order
        self.asides: list[Request] = []
        self._turns = list(turns)
        self._lock = threading.Lock()
        self.over = threading.Event()

    def next_turn(self, request: Request) -> Turn | None:
        with self._lock:
            if not self.api.is_turn(request):
                self.asides.append(request)
                return None
            self.asked.append(request)
            return self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]


class Model:
    """The server; `scenario()` gives an address to point a CLI at."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}
        model = self

        class Handler(_Handler):
            conversations = model._conversations

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def conversation(self, api: Api, *turns: Turn) -> Conversation:
        name = f"n{len(self._conversations)}"
        conversation = Conversation(api, f"http://127.0.0.1:{self.port}/s/{name}", turns)
        self._conversations[name] = conversation
        return conversation

    def close(self) -> None:
        for conversation in self._conversations.values():
            conversation.over.set()
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def running() -> Iterator[Model]:
    model = Model()
    try:
        yield model
    finally:
        model.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    conversations: Mapping[str, Conversation]

    def _serve(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        _, _, name, path = [*self.path.split("/", 3), "", "", ""][:4]
        conversation = self.conversations.get(name)
        if conversation is None:
            self._send(404, "application/json", [b"{}"])
            return
        headers = {key.lower(): value for key, value in self.headers.items()}
        request = Request(self.command, f"/{path}", headers, _json(data), len(data))
        turn = conversation.next_turn(request)
        if turn is None:
            self._send(200, *conversation.api.aside(request))
        elif turn.hang:
            conversation.over.wait(600)
        elif turn.status != 200:
            self._send(turn.status, "application/json", [conversation.api.refusal(turn)], turn.headers)
        else:
            kind, pieces = conversation.api.answer(request, turn)
            self._send(200, kind, pieces[:-1] if turn.cut else pieces, turn.headers, is_cut=turn.cut)

    def _send(
        self,
        status: int,
        kind: str,
        pieces: list[bytes],
        headers: Mapping[str, str] | None = None,
        is_cut: bool = False,
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            if piece and self.command != "HEAD":
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        if is_cut:
            time.sleep(0.05)
            self.close_connection = True
            self.connection.close()
        elif self.command != "HEAD":
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_HEAD = _serve  # noqa: N815 - the names that the library calls

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Quiet."""


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def sse(event: str | None, data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
