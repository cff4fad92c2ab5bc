"""The frame of every page of a change: its phase, its tabs, its run, and the decisions that can be made now."""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from agentd.change import Change, ChangeState, readable_documents
from agentd.domain import AgentdError, Phase, Workflow, clock
from agentd.engine import REVIEWER_SPEC, blocking_checks, last_record, next_command
from agentd.web import cost_view, decisions, displayed, document_view, inbox_view, run_view
from agentd.web.decisions import DecisionChoice
from agentd.web.inbox_view import WaitReason
from agentd.web.run_view import ActiveRunView
from agentd.web.site import Site
from agentd.web.tabs import change_tabs

_GOOD = (Phase.CHALLENGED, Phase.COMPLETE, Phase.ARCHIVED)
_BAD = (Phase.REJECTED, Phase.DROPPED)
_APPROVING = ("approve", "approve-with-notes", "accept")
_EXPLAINED = {
    "approve": "The plan counts as approved by you, exactly as you have read it.",
    "approve-with-notes": "Approved by you as read; your notes go to the implementer.",
    "accept": "The open findings count as accepted by you, with your reason.",
    "send-back": "Your reason becomes a finding that must be answered first.",
    "reject": "The change stops here until its plan is edited and challenged again.",
    "plan-wrong": "Back to planning; the code stays as it is, your reason becomes a finding.",
    "fix": "Its author answers the open findings, then it is judged again.",
    "stop": "The run ends here; run the same command to continue.",
}
_OF_CODE = {
    "approve": "The code counts as approved by you, exactly as it is now; its checks run once more.",
    "accept": "The open findings count as accepted by you; the checks run once more.",
}
_ASKS = {
    "approve-with-notes": "Your notes",
    "send-back": "What has to be different?",
    "accept": "Why is that all right?",
    "plan-wrong": "What is wrong with the plan?",
}


@dataclass(frozen=True, slots=True)
class TabLink:
    label: str
    href: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class DecisionOffer:
    """A decision with the texts to offer it."""

    id: str
    label: str
    needs_reason: bool
    is_primary: bool
    explains: str
    asks: str


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What surrounds a page. The defaults are those of a change whose state cannot be read."""

    id: str
    tabs: tuple[TabLink, ...]
    running: ActiveRunView | None
    stamp: str
    """Different after every write to the change's folder."""
    phase: str = ""
    description: str = ""
    is_good: bool = False
    is_bad: bool = True
    last_output_at: str = ""
    choices: tuple[DecisionOffer, ...] = ()
    shown: str = "{}"
    """What a decision sends back, as JSON."""
    waits: str = ""
    waits_since: str = ""
    next: str = ""
    resume: str = ""
    """The label of the button that runs the next command, or empty."""
    is_resume_primary: bool = False
    can_comment: bool = False
    cost: float = 0.0
    budget: float | None = None
    problem: str = ""
    """What cannot be read, and so prevents an approval."""
    hint: str = ""
    blocked: str = ""
    """Why the change cannot be accepted although it can be read."""


def build_frame(site: Site, change: Change, here: str = "") -> PageFrame:
    """Build the frame for tab `here`. Unreadable parts are reported; a run can be stopped in any case."""
    stamp, run = _stamp(change.folder), run_view.active_run_view(change, site.settings)  # not newer than the rest
    try:
        state = change.read()
    except AgentdError as error:
        broken = PageFrame(change.id, tuple(_tabs(change, None, here)), run, stamp, last_output_at=_last_output(run))
        return replace(broken, **_problem(change, error))
    following, waits = _following(change), _waits(site, change, state)
    spending = cost_view.read_costs(change, site.settings)
    frame = PageFrame(
        id=change.id,
        tabs=tuple(_tabs(change, state, here)),
        running=run,
        stamp=stamp,
        phase=state.phase,
        description=state.description,
        is_good=state.phase in _GOOD,
        is_bad=state.phase in _BAD,
        last_output_at=_last_output(run),
        waits=waits.words if waits else "",
        waits_since=waits.since if waits else "",
        next=following,
        resume=_resume(state, following),
        can_comment=state.phase.is_open,
        cost=spending.total,
        budget=spending.budget,
    )
    frame = replace(frame, **_decidable(change, state, run))
    return replace(frame, is_resume_primary=not any(one.is_primary for one in frame.choices))


def _problem(change: Change, error: Exception) -> dict[str, Any]:
    hint = error.hint if isinstance(error, AgentdError) else ""
    return {
        "problem": document_view.shorten_paths(change, str(error)),
        "hint": document_view.shorten_paths(change, hint),
    }


def _stamp(folder: Path) -> str:
    """Return a hash of the name, time and size of the watched files."""
    found = []
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(OSError):  # removed in the meantime
            there = path.lstat()
            found.append((path.name, there.st_ino, there.st_mtime_ns, there.st_size))
    return hashlib.sha256(repr([one for one in found if not one[0].startswith(".")]).encode()).hexdigest()[:16]


def frame_as_read(around: PageFrame, name: str, digest: str) -> PageFrame:
    """Use the hash of the document as shown on the page, as it may have been written before or since."""
    shown = json.loads(around.shown)
    return replace(around, shown=json.dumps({**shown, name: digest})) if name in shown else around


def _decidable(change: Change, state: ChangeState, run: ActiveRunView | None) -> dict[str, Any]:
    """Return the fields about decisions. A change that cannot be read completely cannot be approved."""
    try:
        choices, blocked = decisions.decision_choices(change), _blocked(change, state, run)
        problems = document_view.document_problems(change)
        choices = tuple(one for one in choices if not problems or one.id not in _APPROVING)
        shown = displayed.displayed_state(change) if choices else {}
    except (AgentdError, OSError) as error:
        return _problem(change, error)
    offers = tuple(map(_offer, choices))
    return {"choices": offers, "shown": json.dumps(shown), "problem": "".join(problems[:1]), "blocked": blocked}


def _blocked(change: Change, state: ChangeState, run: ActiveRunView | None) -> str:
    """Return why code cannot be accepted if only its checks prevent it, else ""."""
    is_asked = run is None or run.asked is not None
    if state.phase is not Phase.IMPLEMENTING or not is_asked or not last_record(change, REVIEWER_SPEC):
        return ""
    names = [str(row.get("name")) for row in blocking_checks(change)]
    if not names:
        return ""
    failing = f"check {names[0]} fails" if len(names) == 1 else f"checks {', '.join(names)} fail"
    return f"Accepting is not possible: the required {failing}"


def _following(change: Change) -> str:
    """Return the next command, or "" if the records cannot be read."""
    try:
        return next_command(change) or ""
    except (AgentdError, OSError):
        return ""


def _waits(site: Site, change: Change, state: ChangeState) -> WaitReason | None:
    try:
        return inbox_view.change_inbox_row(site.project, change.id) if state.phase.is_open else None
    except AgentdError:
        return None  # removed in the meantime


def _resume(state: ChangeState, following: str) -> str:
    """Return the label of the resume button for the next command."""
    match following.split()[1:2]:
        case [Workflow.PLAN]:
            return "Revise and re-challenge" if state.phase is Phase.PROPOSED and state.verdict else "Continue planning"
        case [Workflow.IMPL] if state.phase is Phase.CHALLENGED:
            return "Implement"
        case [Workflow.IMPL]:
            return "Fix and re-review" if state.verdict else "Continue implementing"
    return ""


def _offer(choice: DecisionChoice) -> DecisionOffer:
    is_code = choice.workflow == Workflow.IMPL
    explains = (_OF_CODE.get(choice.id) if is_code else None) or _EXPLAINED.get(choice.id, "")
    asks = _ASKS.get(choice.id, "Why?")
    return DecisionOffer(choice.id, choice.label, choice.needs_reason, choice.is_primary, explains, asks)


def _last_output(run: ActiveRunView | None) -> str:
    if run is None or run.quiet_for is None:
        return ""
    return f"{clock.utc_now() - timedelta(seconds=run.quiet_for):%Y-%m-%dT%H:%M:%SZ}"


def _tabs(change: Change, state: ChangeState | None, here: str) -> Iterator[TabLink]:
    """Yield the tabs that have something to show; the first document comes after the overview."""
    documents = readable_documents(change.folder)
    shown = [(tab.name, tab_path(tab.name)) for tab in change_tabs() if tab.is_shown(documents, state)]
    if documents:
        shown.insert(1, ("read", f"/read/{documents[0]}"))
    for name, path in shown:
        yield TabLink(name.capitalize(), f"/changes/{change.id}{path}", name == here)


def tab_path(name: str) -> str:
    """Return the address of a tab below its change; the overview is the change's own page."""
    return "" if name == "overview" else f"/{name}"
