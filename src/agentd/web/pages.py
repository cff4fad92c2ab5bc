"""The pages. GET requests only read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from agentd.change import Change, readable_documents
from agentd.web import archive_view, cost_view, displayed, document_view, inbox_view
from agentd.web.inbox_view import InboxRow
from agentd.web.markup import markdown
from agentd.web.page_frame import build_frame, frame_as_read, tab_path
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, change_tabs

_GROUPS = ("Waiting for you", "Running", "Others")

Show = Callable[[Site, Request, Change], Response]


def page_routes(site: Site) -> list[Route]:
    others: dict[str, Show] = {
        "/bar": _bar,
        "/read/{document:path}": _read,
        "/specs/{spec}.md": _spec,
        "/export": _export,
    }
    tabs = {tab_path(tab.name): partial(_show_tab, tab) for tab in change_tabs()}

    def inbox(request: Request) -> Response:
        with displayed.page_request(site.project):
            return _inbox(site, request)

    return [
        Route("/", inbox),
        *(Route(f"/changes/{{id}}{path}", _of_change(site, show)) for path, show in (tabs | others).items()),
    ]


def _of_change(site: Site, show: Show) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        with displayed.page_request(site.project):
            return show(site, request, site.change(request.path_params["id"]))

    return page


def _show_tab(tab: ChangeTab, site: Site, request: Request, change: Change) -> Response:
    frame = build_frame(site, change, tab.name)  # first: a decision must not cover anything newer than what is shown
    return site.page(request, f"{tab.name}.html", frame=frame, **tab.values(site, change, request.query_params))


# ---- the inbox


@dataclass(frozen=True, slots=True)
class _InboxEntry:
    row: InboxRow
    meter: Markup


def _inbox(site: Site, request: Request) -> Response:
    rows = [
        _InboxEntry(row, cost_view.render_meter(row.cost, row.budget))
        for row in inbox_view.inbox_rows(site.project, site.settings)
    ]
    groups = [(_GROUPS[number], list(some)) for number, some in groupby(rows, lambda one: _group(one.row))]
    name = site.project.root.name
    return site.page(
        request,
        "inbox.html",
        groups=groups,
        project=name,
        archived=inbox_view.archived_rows(site.project),
        group=_GROUPS[0],
    )


def _group(row: InboxRow) -> int:
    return 0 if row.waits else 1 if row.is_running else 2


# ---- a change


def _bar(site: Site, request: Request, change: Change) -> Response:
    return site.page(request, "_foot.html", frame=build_frame(site, change))


def _read(site: Site, request: Request, change: Change) -> Response:
    name = request.path_params["document"]
    if name not in readable_documents(change.folder):
        raise HTTPException(404)
    pattern, problem = document_view.requirement_pattern(change, site.settings)
    around, listed = (
        build_frame(site, change, "read"),
        document_view.list_documents(change),
    )  # first: must not be newer than the text
    found = document_view.read_document(change, name, pattern)
    return site.page(
        request,
        "read.html",
        frame=frame_as_read(around, name, found.hash),
        documents=[replace(one, hash=found.hash) if one.name == name else one for one in listed],
        problems=[*filter(None, [problem]), *document_view.document_problems(change)],
        read=found,
        contents=found.page.contents,
        html=Markup(found.page.html),  # noqa: S704  sanitized there
    )


def _spec(site: Site, request: Request, change: Change) -> Response:
    """Show a complete spec as it would be after archiving."""
    found = archive_view.whole_spec(change, request.path_params["spec"], site.settings)
    if found is None:
        raise HTTPException(404)
    page = markdown.render_markdown(found.after, f"specs/{found.id}.md") if found.after is not None else None
    return site.page(
        request,
        "spec.html",
        frame=build_frame(site, change, "specs"),
        spec=found,
        contents=page.contents if page else (),
        html=Markup(page.html) if page else "",  # noqa: S704  sanitized there
    )


def _export(site: Site, request: Request, change: Change) -> Response:
    from agentd.web import html_export  # deferred: rarely used

    headers = {"Content-Disposition": f'attachment; filename="{change.id}.html"'}
    return HTMLResponse(html_export.export_change(change, site.settings), headers=headers)
