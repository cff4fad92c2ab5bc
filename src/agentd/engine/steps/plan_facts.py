"""A plan as its documents have it: which specs it affects, how much there is to do."""

from dataclasses import dataclass

from agentd.change import Change
from agentd.documents import PROPOSAL_FILE, TASKS_FILE, Scope, decode_text, parse_proposal, parse_tasks, spec_order
from agentd.domain import Complexity, FormatInvalid
from agentd.storage import files


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """`specs` in the order in which they are written."""

    specs: tuple[str, ...] = ()
    scope: Scope | None = None
    files: int = 0
    tasks: int = 0

    @property
    def complexity(self) -> Complexity:
        return Complexity.of(len(self.specs), self.tasks, self.files)

    @property
    def is_small(self) -> bool:
        return self.scope is Scope.PATCH and len(self.specs) <= 1


def read_plan_facts(change: Change) -> PlanFacts | None:
    """None while there is no proposal that can be read."""
    text = _text(change, PROPOSAL_FILE)
    if text is None:
        return None
    try:
        impact = parse_proposal(text).impact
    except FormatInvalid:
        return None
    return PlanFacts(spec_order(impact).ids, impact.scope, impact.affected_files or 0, _tasks(change))


def plan_complexity(change: Change) -> Complexity:
    """What picks the model: medium before a proposal exists."""
    found = read_plan_facts(change)
    return found.complexity if found else Complexity.MEDIUM


def _tasks(change: Change) -> int:
    text = _text(change, TASKS_FILE)
    try:
        return len(parse_tasks(text).tasks) if text is not None else 0
    except FormatInvalid:
        return 0


def _text(change: Change, name: str) -> str | None:
    path = change.folder / name
    try:
        return decode_text(files.read(path), name) if path.is_file() else None
    except FormatInvalid:
        return None  # validation tells what is wrong with it
