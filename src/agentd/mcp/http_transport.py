"""Streamable HTTP, on the loopback address only, for clients that can read the token file."""

import hmac
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any, NoReturn

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentd.engine import ToolScope
from agentd.mcp.tool_server import build_server
from agentd.storage import files

HOST = "127.0.0.1"
PATH = "/mcp"
PATIENCE = 2  # seconds for pending responses when the server stops
LARGEST = 4 * 1024 * 1024  # bytes per request


class TokenMiddleware:
    """Rejects every request without the token before anything else sees it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows_token(scope):
            answer = PlainTextResponse("send the token of the token file as a bearer token\n", 401)
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows_token(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


def http_app(binding: ToolScope, port: int, token: str) -> ASGIApp:
    """Build the app. Host and Origin must be ours, so web pages cannot reach it; there is no CORS."""
    names = [f"{name}:{port}" for name in (HOST, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    inner = build_server(binding).streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=LARGEST, host=HOST
    )
    return TokenMiddleware(inner, token)


def _stop(number: int, _frame: object) -> NoReturn:
    """Exit normally, so the token file is removed; uvicorn raises the signal again when it is done."""
    raise SystemExit(128 + number)


def serve_http(binding: ToolScope, port: int, announce: Any) -> None:
    """Serve until stopped. Call `announce` with the URL and the path of the token file."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    token = os.urandom(32).hex()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((HOST, port))
    listening.listen(128)  # from now on, clients wait instead of being refused
    port = listening.getsockname()[1]
    url = f"http://{HOST}:{port}{PATH}"
    file = Path(binding.project.local_state_path("mcp", f"http-{port}.json"))
    files.write(file, json.dumps({"url": url, "token": token, "pid": os.getpid()}).encode(), mode=0o600)
    try:
        announce(url, file)
        config = uvicorn.Config(
            http_app(binding, port, token),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=PATIENCE,
        )
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        file.unlink(missing_ok=True)
        listening.close()
