"""The pages: each reads what it shows, and changes nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from agentd.change import Change, readable_documents
from agentd.documents import Task, decode_text, parse_tasks
from agentd.domain import AgentdError, TaskStatus
from agentd.storage import files
from agentd.web import (
    annotations,
    archive_view,
    checks_view,
    code_view,
    cost_view,
    diff_view,
    displayed,
    document_view,
    inbox_view,
    rounds_view,
    run_view,
)
from agentd.web.annotations import Annotation
from agentd.web.code_view import FileDiff
from agentd.web.inbox_view import InboxRow
from agentd.web.markup import cost_chart, markdown, svg, task_graph
from agentd.web.page_frame import build_frame, frame_as_read
from agentd.web.site import Site

_STORY = 200  # events
_GROUPS = ("Waiting for you", "Running", "Others")

Show = Callable[[Site, Request, Change], Response]


def page_routes(site: Site) -> list[Route]:
    parts: dict[str, Show] = {
        "": _overview,
        "/bar": _bar,
        "/read/{document:path}": _read,
        "/rounds": _rounds,
        "/tasks": _tasks,
        "/trace": _trace,
        "/checks": _checks,
        "/code": _code,
        "/specs": _specs,
        "/specs/{spec}.md": _spec,
        "/cost": _cost,
        "/run": _run,
        "/export": _export,
    }

    def inbox(request: Request) -> Response:
        with displayed.page_request(site.project):
            return _inbox(site, request)

    return [
        Route("/", inbox),
        *(Route(f"/changes/{{id}}{path}", _of_change(site, show)) for path, show in parts.items()),
    ]


def _of_change(site: Site, show: Show) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        with displayed.page_request(site.project):
            return show(site, request, site.change(request.path_params["id"]))

    return page


# ---- the inbox


@dataclass(frozen=True, slots=True)
class _InboxEntry:
    row: InboxRow
    meter: Markup


def _inbox(site: Site, request: Request) -> Response:
    rows = [
        _InboxEntry(row, _meter(row.cost, row.budget)) for row in inbox_view.inbox_rows(site.project, site.settings)
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


def _meter(cost: float, budget: float | None) -> Markup:
    return Markup(svg.svg_meter(cost, budget)) if budget else Markup()  # noqa: S704  made of numbers


# ---- a change


def _overview(site: Site, request: Request, change: Change) -> Response:
    around = build_frame(site, change, "overview")
    history = tuple(reversed(change.read().history)) if around.phase else ()
    where = change.folder.relative_to(change.tree).as_posix()
    return site.page(
        request,
        "overview.html",
        frame=around,
        problems=document_view.document_problems(change),
        documents=document_view.list_documents(change),
        open=annotations.open_annotations(change),
        history=history,
        where=where,
    )


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
    )  # first: no newer than the text
    found = document_view.read_document(change, name, pattern)
    return site.page(
        request,
        "read.html",
        frame=frame_as_read(around, name, found.hash),
        documents=[replace(one, hash=found.hash) if one.name == name else one for one in listed],
        problems=[*filter(None, [problem]), *document_view.document_problems(change)],
        read=found,
        contents=found.page.contents,
        html=Markup(found.page.html),  # noqa: S704  cleaned there
    )


def _rounds(site: Site, request: Request, change: Change) -> Response:
    return site.page(
        request,
        "rounds.html",
        frame=build_frame(site, change, "rounds"),
        rounds=[diff_view.round_view(change, one) for one in rounds_view.read_rounds(change)],
        problems=annotations.annotation_problems(change),
    )


def _tasks(site: Site, request: Request, change: Change) -> Response:
    tasks: tuple[Task, ...] = ()
    problem = ""
    try:
        if "tasks.md" in readable_documents(change.folder):
            tasks = parse_tasks(decode_text(files.read(change.folder / "tasks.md"), "tasks.md")).tasks
    except (AgentdError, FileNotFoundError) as error:
        problem = str(error)
    done = sum(task.status is not TaskStatus.PENDING for task in tasks)
    return site.page(
        request,
        "tasks.html",
        frame=build_frame(site, change, "tasks"),
        tasks=tasks,
        lead=f"{done} of {len(tasks)} tasks done or waived." if tasks else "",
        picture=Markup(task_graph.task_graph_svg(task_graph.layout_tasks(tasks))) if tasks else "",  # noqa: S704  made safe there
        problem=problem,
    )


def _trace(site: Site, request: Request, change: Change) -> Response:
    pattern, problem = document_view.requirement_pattern(change, site.settings)
    found = checks_view.read_trace(change, pattern)
    return site.page(request, "trace.html", frame=build_frame(site, change, "trace"), trace=found, problem=problem)


def _checks(site: Site, request: Request, change: Change) -> Response:
    return site.page(
        request, "checks.html", frame=build_frame(site, change, "checks"), checks=checks_view.read_checks(change)
    )


def _code(site: Site, request: Request, change: Change) -> Response:
    """All of it; or, with `from` and `to`, what changed between two reviews."""
    older, newer = request.query_params.get("from", ""), request.query_params.get("to", "")
    if older and newer:
        found, problem, left, notes = rounds_view.code_difference(change, older, newer), "", 0, {}
        lead = "What changed between two reviews."
    else:
        code = code_view.read_code(change)
        found, problem, left, notes = code.files, code.problem, code.files_left_out, code_view.code_notes(change)
        lead = _lead(found, code.trees.is_now)
    placed, elsewhere = _placed(found, notes)
    return site.page(
        request,
        "code.html",
        frame=build_frame(site, change, "code"),
        files=found,
        notes=placed,
        elsewhere=elsewhere,
        lead=lead,
        left_out=left,
        problem=problem,
        is_between=bool(older and newer),
        address=f"{request.url.path}?{request.url.query}" if older else request.url.path,
    )


def _lead(found: Iterable[FileDiff], is_now: bool) -> str:
    found = tuple(found)
    added, removed = sum(one.added for one in found), sum(one.removed for one in found)
    when = "now" if is_now else "when it was judged last"
    return f"{len(found)} files, {added} lines added and {removed} removed, from the first edit until {when}."


def _placed(
    found: Iterable[FileDiff], notes: dict[str, tuple[Annotation, ...]]
) -> tuple[dict[str, dict[int, list[Annotation]]], list[Annotation]]:
    """By file and line, where that line is shown; and those that have no place in the diff."""
    shown = {one.path: {line.new for hunk in one.hunks for line in hunk.lines if line.new} | {0} for one in found}
    placed: dict[str, dict[int, list[Annotation]]] = {}
    elsewhere = []
    for path, some in notes.items():
        for note in some:
            if note.line in shown.get(path, ()):
                placed.setdefault(path, {}).setdefault(note.line, []).append(note)
            else:
                elsewhere.append(note)
    return placed, elsewhere


def _specs(site: Site, request: Request, change: Change) -> Response:
    found = archive_view.read_archive_view(change, site.settings)
    pattern, _ = document_view.requirement_pattern(
        change, site.settings
    )  # the outlook tells what is wrong with the configuration
    specs = [diff_view.spec_diff(one, pattern) for one in found.specs]
    return site.page(request, "specs.html", frame=build_frame(site, change, "specs"), outlook=found, specs=specs)


def _spec(site: Site, request: Request, change: Change) -> Response:
    """One of them whole, as it would be read after the archive."""
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
        html=Markup(page.html) if page else "",  # noqa: S704  cleaned there
    )


def _cost(site: Site, request: Request, change: Change) -> Response:
    costs = cost_view.read_costs(change, site.settings)
    groups = {"By step": costs.by_step, "By model": costs.by_model, "By round": costs.by_round}
    made = [(title, Markup(cost_chart.render_bars(rows))) for title, rows in groups.items() if rows]  # noqa: S704
    return site.page(
        request,
        "cost.html",
        frame=build_frame(site, change, "cost"),
        costs=costs,
        pictures=made,
        meter=_meter(costs.total, costs.budget),
    )


def _run(site: Site, request: Request, change: Change) -> Response:
    story = tuple(reversed(run_view.run_history(change, _STORY)))
    return site.page(
        request, "run.html", frame=build_frame(site, change, "run"), last=run_view.last_run(change), story=story
    )


def _export(site: Site, request: Request, change: Change) -> Response:
    from agentd.web import html_export  # late: it is seldom asked for

    headers = {"Content-Disposition": f'attachment; filename="{change.id}.html"'}
    return HTMLResponse(html_export.export_change(change, site.settings), headers=headers)
