"""Which change a planning command means, and whether there is anything left to plan."""

from dataclasses import dataclass
from pathlib import Path

from agentd.change import entry
from agentd.change.entry import Standing
from agentd.change.folder import Change
from agentd.change.places import Places
from agentd.errors import Unanswered, WrongPhase
from agentd.project import Project
from agentd.terms import Phase, Workflow
from agentd.workflows.verdict import JUDGED, is_edited


@dataclass(frozen=True)
class Opened:
    """`wanted` is the id asked for. `change` is None for one that does not exist yet."""

    wanted: str
    id: str
    change: Change | None
    notes: tuple[str, ...] = ()


def open_plan(project: Project, wanted: str, description: str | None) -> Opened:
    found = entry.resolve(Places(project), wanted, description)
    if found.standing is Standing.NEW:
        taken = (f"{wanted} is taken, so this is {found.id}",) if found.id != wanted else ()
        return Opened(wanted, found.id, None, taken)
    assert found.found
    change = Change(project, found.id, found.found.tree or "", Path(found.found.folder or ""))
    ignored = (f"{found.id} goes on; the new description is ignored",) if description else ()
    return Opened(wanted, found.id, change, ignored)


def begin(project: Project, opened: Opened, description: str, skip_clarify: bool, can_ask: bool) -> Change:
    """The folder and its first STATE.yaml. Questions come first: nothing is made while one is unanswered."""
    folder = project.changes_in(project.tree) / opened.id
    if not (skip_clarify or can_ask or (folder / "clarifications.md").is_file()):
        raise Unanswered(
            f"{opened.id} is new, and nobody is here to answer questions about it",
            "add --skip-clarify to plan it from the description alone",
        )
    return entry.create(project, opened.id, description)


def settled(change: Change, rechallenge: bool = False) -> str | None:
    """What to say when there is nothing to plan; None: there is. A rejected plan is a no."""
    state = change.read()
    phase, is_cut = state.phase, state.run is not None and state.run.workflow == Workflow.PLAN
    if phase in (Phase.DRAFTING, Phase.PROPOSED) or ((is_cut or rechallenge) and phase in JUDGED):
        return None  # a run that was killed after its verdict is ended properly
    if phase is Phase.REJECTED:
        page = f"agentd/changes/{change.id}/CHALLENGE.md"
        what = f"the plan was edited since {page}" if is_edited(change) else f"read {page} and edit the plan"
        raise WrongPhase(f"{change.id} was rejected", f"{what}; then: agentd plan {change.id} --rechallenge")
    if phase is not Phase.CHALLENGED:
        return f"{change.id} is {phase}, which is beyond planning"
    if is_edited(change):
        return f"Planning of {change.id} is complete, but the plan was edited since it was approved"
    return f"Planning of {change.id} is complete"
