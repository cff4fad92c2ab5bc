"""What stands around every page of a change: where it stands, its parts, and what can be decided now."""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

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
    "approve-with-notes": "Approved by you as read; your notes go to whoever builds it.",
    "accept": "The open findings count as accepted by you, with your reason.",
    "send-back": "Your reason becomes a finding that must be answered first.",
    "reject": "The change stops here until its plan is edited and challenged again.",
    "plan-wrong": "Back to planning; the code stays as it is, your reason becomes a finding.",
    "fix": "Whoever made it answers the open findings, then it is judged again.",
    "stop": "The run ends here; the same command goes on later.",
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
    """A choice, in words."""

    id: str
    label: str
    needs_reason: bool
    is_primary: bool
    explains: str
    asks: str


@dataclass(frozen=True, slots=True)
class PageFrame:
    id: str
    phase: str
    description: str
    is_good: bool
    is_bad: bool
    tabs: tuple[TabLink, ...]
    running: ActiveRunView | None
    last_output_at: str
    choices: tuple[DecisionOffer, ...]
    shown: str
    """What is to come back with a decision, as JSON."""
    stamp: str
    """Another one after every write to the change's folder."""
    waits: str
    waits_since: str
    next: str
    resume: str
    """What going on is called; "" where there is nothing to go on with."""
    is_resume_primary: bool
    can_comment: bool
    cost: float
    budget: float | None
    problem: str
    """What cannot be read, and so stands in the way of an approval."""
    hint: str
    blocked: str
    """Why it cannot be accepted, though all of it can be read."""


@dataclass(frozen=True, slots=True)
class _Decidable:
    choices: tuple[DecisionOffer, ...] = ()
    shown: str = "{}"
    problem: str = ""
    hint: str = ""
    blocked: str = ""


def build_frame(site: Site, change: Change, here: str = "") -> PageFrame:
    """`here` is the tab. What cannot be read is told; the rest is there, a run and its stop first."""
    stamp, run = _stamp(change.folder), run_view.active_run_view(change, site.settings)  # no newer than what follows
    try:
        state = change.read()
    except AgentdError as error:
        return _broken(change, here, run, error, stamp)
    decidable, following = _decidable(change, state, run), _following(change)
    waits, spending = _waits(site, change, state), cost_view.read_costs(change, site.settings)
    return PageFrame(
        id=change.id,
        phase=state.phase,
        description=state.description,
        is_good=state.phase in _GOOD,
        is_bad=state.phase in _BAD,
        tabs=tuple(_tabs(change, state, here)),
        running=run,
        last_output_at=_last_output(run),
        choices=decidable.choices,
        shown=decidable.shown,
        stamp=stamp,
        waits=waits.words if waits else "",
        waits_since=waits.since if waits else "",
        next=following,
        resume=_resume(state, following),
        is_resume_primary=not any(one.is_primary for one in decidable.choices),
        can_comment=state.phase.is_open,
        cost=spending.total,
        budget=spending.budget,
        problem=decidable.problem,
        hint=decidable.hint,
        blocked=decidable.blocked,
    )


def _stamp(folder: Path) -> str:
    """Of the files that the watch tells of."""
    found = []
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(OSError):  # gone meanwhile
            there = path.lstat()
            found.append((path.name, there.st_ino, there.st_mtime_ns, there.st_size))
    return hashlib.sha256(repr([one for one in found if not one[0].startswith(".")]).encode()).hexdigest()[:16]


def frame_as_read(around: PageFrame, name: str, digest: str) -> PageFrame:
    """With this document as the page has it: it may have been written since, or just before."""
    shown = json.loads(around.shown)
    return replace(around, shown=json.dumps({**shown, name: digest})) if name in shown else around


def _decidable(change: Change, state: ChangeState, run: ActiveRunView | None) -> _Decidable:
    """No approval of what cannot be read in full."""
    try:
        choices, blocked = decisions.decision_choices(change), _blocked(change, state, run)
        broken = document_view.document_problems(change)
        choices = tuple(one for one in choices if not broken or one.id not in _APPROVING)
        shown = displayed.displayed_state(change) if choices else {}
    except (AgentdError, OSError) as error:
        hint = error.hint if isinstance(error, AgentdError) else ""
        return _Decidable(
            problem=document_view.shorten_paths(change, str(error)), hint=document_view.shorten_paths(change, hint)
        )
    problem = broken[0] if broken else ""
    return _Decidable(tuple(map(_offer, choices)), json.dumps(shown), problem, blocked=blocked)


def _blocked(change: Change, state: ChangeState, run: ActiveRunView | None) -> str:
    """Where code would be accepted but for its checks."""
    is_asked = run is None or run.asked is not None
    if state.phase is not Phase.IMPLEMENTING or not is_asked or not last_record(change, REVIEWER_SPEC):
        return ""
    names = [str(row.get("name")) for row in blocking_checks(change)]
    if not names:
        return ""
    failing = f"check {names[0]} fails" if len(names) == 1 else f"checks {', '.join(names)} fail"
    return f"Accepting is not possible: the required {failing}"


def _following(change: Change) -> str:
    """The next command; none where the records do not say how it stands."""
    try:
        return next_command(change) or ""
    except (AgentdError, OSError):
        return ""


def _waits(site: Site, change: Change, state: ChangeState) -> WaitReason | None:
    try:
        return inbox_view.change_inbox_row(site.project, change.id) if state.phase.is_open else None
    except AgentdError:
        return None  # it went away meanwhile


def _resume(state: ChangeState, following: str) -> str:
    """By the command that comes next."""
    match following.split()[1:2]:
        case [Workflow.PLAN]:
            return "Go on planning" if state.phase is Phase.DRAFTING else "Plan on"
        case [Workflow.IMPL]:
            return "Implement" if state.phase is Phase.CHALLENGED else "Go on"
    return ""


def _broken(change: Change, here: str, run: ActiveRunView | None, error: AgentdError, stamp: str) -> PageFrame:
    return PageFrame(
        id=change.id,
        phase="",
        description="",
        is_good=False,
        is_bad=True,
        tabs=tuple(_tabs(change, None, here)),
        running=run,
        last_output_at=_last_output(run),
        choices=(),
        shown="{}",
        stamp=stamp,
        waits="",
        waits_since="",
        next="",
        resume="",
        is_resume_primary=False,
        can_comment=False,
        cost=0.0,
        budget=None,
        problem=document_view.shorten_paths(change, error.message),
        hint=document_view.shorten_paths(change, error.hint),
        blocked="",
    )


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
    """Those that have something to show; the first document to read comes after the overview."""
    documents = readable_documents(change.folder)
    shown = [(tab.name, tab_path(tab.name)) for tab in change_tabs() if tab.is_shown(documents, state)]
    if documents:
        shown.insert(1, ("read", f"/read/{documents[0]}"))
    for name, path in shown:
        yield TabLink(name.capitalize(), f"/changes/{change.id}{path}", name == here)


def tab_path(name: str) -> str:
    """The address of a tab below its change; the overview is the change's own page."""
    return "" if name == "overview" else f"/{name}"
