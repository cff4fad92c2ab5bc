"""A few pages behind the viewer's guard and server, started as a program: `small_site.py`. Prints its address."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agentd.web import web_server
from agentd.web.security import AccessGuard

TOKEN, TICKET, CSRF = "t0ken" * 8, "t1cket" * 8, "csrf" * 10
SECRET = "what only its reader may see"


def page(request: Request) -> Response:
    return PlainTextResponse(SECRET, headers={"Server": "small", "Cache-Control": "public"})


async def form(request: Request) -> Response:
    return Response(await request.body())


async def events(request: Request) -> Response:
    async def told() -> AsyncIterator[str]:
        while True:
            yield "x"
            await asyncio.sleep(0.05)

    return EventSourceResponse(told())


def slow(request: Request) -> Response:
    print("at work", flush=True)
    time.sleep(600)  # longer than any test waits
    return PlainTextResponse("")


def broken(request: Request) -> Response:
    raise ValueError("\x1b[2J is what a document said")


def main() -> int:
    routes = [
        Route("/", page),
        Route("/form", form, methods=["POST"]),
        Route("/events", events),
        Route("/slow", slow),
        Route("/broken", broken),
        Mount("/static", StaticFiles(directory=Path(__file__).parents[1] / "data" / "example")),
    ]
    address = web_server.resolve_address(sys.argv[1] if len(sys.argv) > 1 else web_server.HOST, 0)
    return web_server.serve_app(
        lambda at: AccessGuard(Starlette(routes=routes), TOKEN, at.names, CSRF, TICKET),
        address,
        lambda at: print(at.url, flush=True),
    )


if __name__ == "__main__":
    sys.exit(main())
