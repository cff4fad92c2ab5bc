"""A plan that changes what another open change changes too is told so while both can still be altered."""

from agentd.change import ChangeLocator, build_overlap_index, format_names, read_touched
from agentd.domain import WarningIssued
from agentd.engine.steps.step_context import StepContext


def warn_overlaps(desk: StepContext) -> None:
    """A word of warning, once in a run for each thing that both change. It is no finding and stops nothing."""
    change, warned = desk.change, desk.run.warned
    touches = read_touched(str(change.folder), desk.config.validation.requirement_pattern)
    if not touches:
        return
    for rival in build_overlap_index(ChangeLocator(change.project).open()).rivals(change.id, touches):
        names = [name for name in rival.requirements if f"{rival.id} {name}" not in warned]
        warned.update(f"{rival.id} {name}" for name in names)
        if names:
            verb = "is" if len(names) == 1 else "are"
            words = f"{format_names(names)} {verb} changed by {rival.id} ({rival.phase}) too"
            desk.run.emit(WarningIssued(code="overlap", message=f"{words}; whoever archives second may have to rebase"))
