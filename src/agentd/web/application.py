"""The web application behind `agentd view`: pages, actions and live updates."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from agentd.domain import AgentdError, ChangeNotFound, UsageError
from agentd.web import actions, displayed, live_updates, pages
from agentd.web.site import STATIC_FOLDER, Site


def build_app(site: Site) -> Starlette:
    """Build the application. Access control is in `security`, not here."""
    watch = live_updates.FileWatcher(site.project)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with watch.running():
            yield
        displayed.forget()

    routes = [*pages.page_routes(site), *actions.action_routes(site), *live_updates.live_routes(watch)]
    return Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC_FOLDER))],
        lifespan=lifespan,
        exception_handlers={
            AgentdError: lambda request, error: _problem(site, request, error),
            HTTPException: lambda request, error: _missing(site, request, error),
        },
    )


def _problem(site: Site, request: Request, error: Exception) -> Response:
    assert isinstance(error, AgentdError)
    status = 404 if isinstance(error, ChangeNotFound | UsageError) else 409
    return site.page(request, "problem.html", status, message=error.message, hint=error.hint)


def _missing(site: Site, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = "There is no such page." if error.status_code == 404 else error.detail
    return site.page(request, "problem.html", error.status_code, message=words, hint="")
