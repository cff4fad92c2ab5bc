"""Handle what a person submits on a page: decisions, stop and resume, comments.

`security` checks beforehand who may post at all.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from agentd.change import (
    Change,
    CommentChanged,
    add_comment,
    comment_anchor,
    edit_comment,
    remove_comment,
    reopen_comment,
    reply_to_comment,
    resolve_comment,
    set_comment_severity,
)
from agentd.documents import Comment, CommentSeverity
from agentd.domain import AgentdError, ChangeNotFound, UsageError, WrongPhase
from agentd.web import decisions, displayed
from agentd.web.decisions import ActionResult
from agentd.web.displayed import StaleItem
from agentd.web.site import Site

_FIELDS = 20  # per form
_FORM = "application/x-www-form-urlencoded"

Value = TypeVar("Value")


class InvalidForm(UsageError):
    hint = "reload the page"


@dataclass(frozen=True, slots=True)
class PostedForm:
    """A form posted about a change. Its fields come from the browser and are not validated."""

    site: Site
    request: Request
    fields: Mapping[str, str]

    @property
    def change(self) -> Change:
        """Return the change; raise WrongPhase if it is no longer open."""
        change = self.site.change(self.request.path_params["id"])
        if not (phase := change.read().phase).is_open:
            raise WrongPhase(f"{change.id} is {phase}", "it can be read, and nothing more")
        return change

    @property
    def is_comment(self) -> bool:
        return self.request.url.path.split("/")[3] == "comments"

    @property
    def comment(self) -> str:
        return str(self.request.path_params["comment"])

    def text(self, name: str) -> str:
        return self.fields.get(name, "")

    def value(self, name: str, read: Callable[[str], Value]) -> Value:
        """Return the parsed field; raise InvalidForm if it is missing or cannot be parsed."""
        try:
            return read(self.fields[name])
        except (KeyError, ValueError, TypeError, RecursionError):
            raise InvalidForm(f"the form has no {name} that can be read") from None


def action_routes(site: Site) -> list[Route]:
    on_change = {"decide": _decide, "stop": _stop, "resume": _resume}
    on_comment = {
        "reply": _reply,
        "edit": _edit,
        "resolve": _resolve,
        "reopen": _reopen,
        "weight": _weigh,
        "remove": _remove,
    }
    of_change = [_route(site, f"/{name}", work) for name, work in on_change.items()]
    of_comments = [
        _route(site, f"/comments/{{comment}}/{name}", partial(_commented, work)) for name, work in on_comment.items()
    ]
    return [*of_change, _route(site, "/comments", partial(_commented, _comment)), *of_comments]


# ---- decisions


@dataclass(frozen=True, slots=True)
class RepeatedDecision:
    """The same decision, offered again for the current state after showing everything that changed."""

    choice: str
    label: str
    reason: str
    shown: str


def _decide(posted: PostedForm) -> Response:
    shown, choice = posted.value("shown", _mapping), posted.value("choice", str)
    change, reason = posted.change, posted.text("reason")
    told = decisions.make_decision(change, choice, reason, shown, posted.site.by, posted.site.settings)
    if not told.changed:
        return _page(posted, told)
    now = displayed.displayed_state(change)
    differences = displayed.stale_items(change, told.changed, shown, now)
    label = next((one.label for one in decisions.decision_choices(change) if one.id == choice), None)
    is_all_told = {one.name for one in differences if one.is_told} == set(told.changed)
    again = RepeatedDecision(choice, label, reason, json.dumps(now)) if label and is_all_told else None
    return _page(posted, told, differences, again)


def _stop(posted: PostedForm) -> Response:
    return _page(posted, decisions.stop_change(posted.change))


def _resume(posted: PostedForm) -> Response:
    budget = posted.value("budget", _amount) if posted.text("budget").strip() else None
    return _page(posted, decisions.resume_change(posted.change, budget, posted.site.settings))


# ---- comments


def _comment(posted: PostedForm) -> Comment:
    weight = posted.value("weight", CommentSeverity)
    change, line = posted.change, posted.value("line", int) if posted.text("line") else 1
    anchor = comment_anchor(
        change, posted.value("document", str), posted.text("quote"), posted.text("before"), posted.text("after"), line
    )
    return add_comment(change, anchor, posted.text("text"), posted.site.by, weight)


def _reply(posted: PostedForm) -> Comment:
    return reply_to_comment(posted.change, posted.comment, posted.value("text", str), posted.site.by)


def _edit(posted: PostedForm) -> Comment:
    number, text = posted.value("number", int), posted.value("text", str)
    return edit_comment(posted.change, posted.comment, number, text, posted.site.by, posted.fields.get("was"))


def _resolve(posted: PostedForm) -> Comment:
    return resolve_comment(posted.change, posted.comment, posted.site.by)


def _reopen(posted: PostedForm) -> Comment:
    return reopen_comment(posted.change, posted.comment, posted.site.by)


def _weigh(posted: PostedForm) -> Comment:
    return set_comment_severity(posted.change, posted.comment, posted.value("weight", CommentSeverity), posted.site.by)


def _remove(posted: PostedForm) -> None:
    remove_comment(posted.change, posted.comment, posted.site.by)


def _commented(work: Callable[[PostedForm], Comment | None], posted: PostedForm) -> Response:
    """Apply a comment action; a script gets the findings before and after: the difference is the person's own."""
    if not _is_asked_by_script(posted):
        work(posted)
        return RedirectResponse(_back(posted), 303)
    before = _open(posted)
    made = work(posted)
    told = {"id": made.id if made else posted.comment, "comment": made and _plain(made)}
    return JSONResponse({**told, "before": before, "shown": _open(posted)})


def _open(posted: PostedForm) -> dict[str, str]:
    """Return the open findings, or {} if the records cannot be read: commenting still works, deciding does not."""
    try:
        return displayed.displayed_findings(posted.change)
    except AgentdError:
        return {}


def _plain(one: Comment) -> dict[str, Any]:
    return {
        "id": one.id,
        "document": one.document,
        "quote": one.anchor.quote,
        "line": one.anchor.line,
        "weight": str(one.severity),
        "state": str(one.state),
        "finding": one.finding,
        "thread": [{"by": entry.by, "at": entry.at, "text": entry.text} for entry in one.thread],
    }


# ---- requests and responses


def _route(site: Site, path: str, work: Callable[[PostedForm], Response]) -> Route:
    async def endpoint(request: Request) -> Response:
        posted = PostedForm(site, request, await _fields(request))
        return await run_in_threadpool(_answered, work, posted)

    return Route(f"/changes/{{id}}{path}", endpoint, methods=["POST"])


def _answered(work: Callable[[PostedForm], Response], posted: PostedForm) -> Response:
    try:
        return work(posted)
    except AgentdError as error:
        if _is_asked_by_script(posted) and posted.is_comment:
            other = {"text": error.text} if isinstance(error, CommentChanged) else {}
            return JSONResponse({"error": error.message, "hint": error.hint, **other}, _status(error))
        return _page(posted, ActionResult(False, error.message, error.hint), status=_status(error))


async def _fields(request: Request) -> dict[str, str]:
    """Return the form fields, or {} if the body is not a form; required fields are then reported as missing."""
    body = await request.body()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return {}
    try:
        return dict(parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        return {}


def _status(error: AgentdError) -> int:
    kinds = {InvalidForm: 400, UsageError: 422, ChangeNotFound: 404}
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), 409)


def _page(
    posted: PostedForm,
    told: ActionResult,
    differences: Sequence[StaleItem] = (),
    again: RepeatedDecision | None = None,
    status: int = 409,
) -> Response:
    """Render the result; `status` is the HTTP status of a failed action."""
    name = "_told.html" if _is_asked_by_script(posted) else "told.html"
    change = posted.request.path_params["id"]
    return posted.site.page(
        posted.request, name, 200 if told.ok else status, told=told, change=change, differences=differences, again=again
    )


def _is_asked_by_script(posted: PostedForm) -> bool:
    return "hx-request" in posted.request.headers


def _back(posted: PostedForm) -> str:
    """Return the page the request came from if it is one of ours, else the page of the change."""
    came = posted.request.headers.get("referer", "").partition("#")[0]
    path = came.removeprefix(f"http://{posted.request.headers.get('host')}")
    if path != came and (path == "/" or path.startswith("/changes/")):
        return path
    return f"/changes/{quote(posted.request.path_params['id'], safe='')}"


def _mapping(text: str) -> dict[str, str]:
    data = json.loads(text)
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ValueError(text)
    return data


def _amount(text: str) -> float:
    amount = float(text)
    if not 0 < amount < math.inf:
        raise ValueError(text)
    return amount
