"""Access control for the viewer: only a browser that opened the link, and no other site, host name or program."""

import contextlib
import hmac
import html
import os
import re
import secrets
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentd.domain import SetupError

LARGEST = 1024 * 1024  # bytes of one form
ENTER = "/enter"
STATIC = "/static/"
METHODS = ("GET", "HEAD", "POST")
FORM = b"application/x-www-form-urlencoded"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST = 2000  # characters of a redirect target
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">{head}'
    "<title>agentd</title></head>"
    "<body><main><h1>agentd</h1><p>{words}</p></main></body></html>"
)


@dataclass(frozen=True)
class CheckedRequest:
    """The parts of a request that matter here."""

    method: str
    path: str
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    def all(self, name: bytes) -> list[bytes]:
        return [value for one, value in self.headers if one.lower() == name]

    @property
    def is_reading(self) -> bool:
        return self.method in ("GET", "HEAD")

    @property
    def is_opening(self) -> bool:
        """Whether this is a navigation, not a load from within a page, as far as the browser says."""
        return self.is_reading and self.all(b"sec-fetch-mode") in ([], [b"navigate"])


class AccessGuard:
    """Wraps the whole application. Refused requests never reach it, and every response gets the security headers."""

    def __init__(self, app: ASGIApp, token: str, names: Collection[str], csrf: str, ticket: str = "") -> None:
        """Wrap `app`.

        `token` can be used repeatedly: it is shown in one terminal, for all browsers of its reader.
        `ticket` works once: it goes to the browser on a command line, which other users of the machine can see.
        """
        self._app = app
        self._token = token.encode()
        self._ticket = ticket.encode()
        self._names = {name.lower().encode() for name in names}
        self._origins = {b"http://" + name for name in self._names}
        self._csrf = csrf.encode()
        port = next(iter(names)).rpartition(":")[2]
        self._cookie = f"agentd-{port}"  # cookies are shared by all ports of a host; two viewers must not share one
        self._pass = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = CheckedRequest(scope["method"], scope["path"], scope["query_string"], tuple(scope["headers"]))
        send = _with_headers(send, asked.path)
        answer = self._refusal(asked)
        if answer is None and asked.path == ENTER:
            answer = self._enter(asked)
        if answer is None and not self._has_pass(asked):
            answer = _page(403, "This page is closed. Run <code>agentd view</code> in a terminal and open its link.")
        if answer is None and asked.method == "POST":
            answer, receive = await self._posted(asked, receive)
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, asked: CheckedRequest) -> Response | None:
        """Return a refusal for a request that no browser showing one of our pages would send, else None."""
        hosts = asked.all(b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            return _page(421, "Nothing is served under this host name.")
        if asked.method not in METHODS:
            return _page(405, "This method is not allowed.", {"Allow": ", ".join(METHODS)})
        if _CONTROL.search(asked.path):
            return _page(400, "There is no such page.")
        if not self._is_ours(asked):
            return _page(403, "Another page asked for this, so it is refused.")
        return None

    def _is_ours(self, asked: CheckedRequest) -> bool:
        origins, sites = asked.all(b"origin"), asked.all(b"sec-fetch-site")
        if not set(origins) <= self._origins:
            return False
        if asked.method == "POST":
            return bool(origins or sites) and set(sites) <= {b"same-origin"}
        if asked.path == ENTER and asked.is_opening:
            return True  # from anywhere, such as a chat: the token proves intent
        return set(sites) <= {b"same-origin"} or (sites == [b"none"] and asked.is_opening)

    def _enter(self, asked: CheckedRequest) -> Response:
        if asked.method != "GET":
            return _page(405, "This method is not allowed.", {"Allow": "GET"})
        try:
            values = parse_qsl(asked.query.decode("latin-1"), keep_blank_values=True, max_num_fields=10)
        except ValueError:
            values = []
        tokens = [value for name, value in values if name == "token"]
        places = [value for name, value in values if name == "next"] or ["/"]
        if len(places) > 1 or not is_local(places[0]):
            return _page(400, "This link leads to another site, so it is refused.")
        if len(tokens) != 1 or not (self._opens(tokens[0].encode()) or self._has_pass(asked)):
            return _page(403, "This link is not valid. Run <code>agentd view</code> in a terminal and open its link.")
        return self._opened(places[0])

    def _opens(self, token: bytes) -> bool:
        if self._ticket and hmac.compare_digest(token, self._ticket):
            self._ticket = b""
            return True
        return hmac.compare_digest(token, self._token)

    def _opened(self, place: str) -> Response:
        """Return a page that redirects itself: after a cross-site HTTP redirect, browsers withhold strict cookies."""
        target = html.escape(quote(place, safe="/?&=%#:;,@!$'()*+~-._"))
        head = f'<meta http-equiv="refresh" content="0; url={target}">'
        answer = _page(200, f'<a href="{target}">Open</a>', head=head)
        answer.set_cookie(self._cookie, self._pass, path="/", httponly=True, samesite="strict")
        return answer

    def _has_pass(self, asked: CheckedRequest) -> bool:
        parts = [part.strip().partition(b"=") for line in asked.all(b"cookie") for part in line.split(b";")]
        mine = [value for name, _, value in parts if name == self._cookie.encode()]
        return any(hmac.compare_digest(value, self._pass.encode()) for value in mine)

    async def _posted(self, asked: CheckedRequest, receive: Receive) -> tuple[Response | None, Receive]:
        """Check a form and return a `receive` that replays it, or a response if it is refused."""
        lengths = asked.all(b"content-length")
        body = None if any(int(one) > LARGEST for one in lengths if one.isdigit()) else await _body(receive)
        if body is None:
            return _page(413, "The form is too large."), receive
        if not self._has_csrf(asked, body):
            return _page(403, "This form is not from this viewer. Load its page again."), receive
        return None, _again(body, receive)

    def _has_csrf(self, asked: CheckedRequest, body: bytes) -> bool:
        given = asked.all(b"x-csrf-token")
        if not given and asked.all(b"content-type")[:1] and asked.all(b"content-type")[0].lower().startswith(FORM):
            given = [value.encode("latin-1") for name, value in _fields(body) if name == "csrf"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._csrf)


def is_local(place: str) -> bool:
    """Return whether every browser reads this as a path of this server."""
    is_path = place.startswith("/") and not place.startswith("//")
    return is_path and "\\" not in place and not _CONTROL.search(place) and len(place) <= _LONGEST


def _fields(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("latin-1"), keep_blank_values=True, max_num_fields=1000, encoding="latin-1")
    except ValueError:
        return []


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if it is too large or the sender disconnected."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > LARGEST:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays the body, then continues with the original."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed


def _with_headers(send: Send, path: str) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            is_file = path.startswith(STATIC) and message["status"] in (200, 206, 304)
            ours = {**HEADERS, "cache-control": "no-cache" if is_file else "no-store"}
            message = {**message, "headers": [*_kept(message.get("headers", ())), *_encoded(ours)]}
        await send(message)

    return sent


def _kept(headers: Collection[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    mine = {*(name.encode() for name in HEADERS), b"cache-control", b"server"}
    return [(name, value) for name, value in headers if name.lower() not in mine]


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _page(status: int, words: str, headers: dict[str, str] | None = None, head: str = "") -> Response:
    """Return a plain page: a stranger gets no style sheet and learns nothing about the project."""
    return HTMLResponse(_PAGE.format(head=head, words=words), status, headers)


SHORTEST = 32
_LONGEST_TOKEN = 512
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


def read_or_create_token(path: Path) -> str:
    with contextlib.suppress(FileExistsError):
        _make(path)
    token = _read(path).strip()
    if not SHORTEST <= len(token) <= _LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        words = f"{path} holds no token: {SHORTEST} to {_LONGEST_TOKEN} letters, digits and . _ ~ + / = -"
        raise SetupError(words, f"rm {path}, and a random one is made")
    return token


def _make(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_urlsafe(32)}\n")


def _read(path: Path) -> str:
    """Read the token file, checking the same handle that is read."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            raise SetupError(f"{path} is no file", "name another with --token-file")
        if seen.st_uid != os.getuid():
            raise SetupError(f"{path} belongs to another user", "name another with --token-file")
        if seen.st_mode & 0o077:
            raise SetupError(f"others can read {path}, so its token is no secret", f"rm {path}, and a new one is made")
        return file.read(_LONGEST_TOKEN + 3).decode("latin-1")
