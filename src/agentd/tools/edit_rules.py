"""What an exact edit may not do: forge or hide a review, set a task's status, or make a document unreadable."""

from agentd.documents import frontmatter, proposal, review_blocks, spec, tasks
from agentd.documents import text as base
from agentd.documents.text import InvalidDocument
from agentd.domain.terms import TaskStatus
from agentd.tools.refusal import Refused


def refuse_edit(name: str, before: str, after: str) -> None:
    fault = _fault(name, after)
    if fault and _fault(name, before) is None:
        raise Refused("invalid-document", fault, "send text that leaves the document readable")
    if name == review_blocks.PROPOSAL_FILE and review_blocks.find_blocks(after) != review_blocks.find_blocks(before):
        what = "with this edit there would be other review blocks"
        raise Refused("review-block", what, "leave review tags out, and close every fence and comment")
    if name == tasks.TASKS_FILE:
        _refuse_status(before, after)


def _fault(name: str, text: str) -> str | None:
    """Why the document cannot be read, None if it can."""
    try:
        document = base.parse_document(text, name)
        front = frontmatter.read_frontmatter(document)
        if name == review_blocks.PROPOSAL_FILE:
            proposal.parse_proposal(text)
        elif name != tasks.TASKS_FILE:
            spec.read_spec(document, front)
    except InvalidDocument as error:
        return error.message
    return None


def _refuse_status(before: str, after: str) -> None:
    """agentd alone ticks a task."""
    known: dict[str, set[TaskStatus]] = {}
    for one in tasks.parse_tasks(before).tasks:
        known.setdefault(one.id, set()).add(one.status)
    for one in tasks.parse_tasks(after).tasks:
        if one.status not in known.get(one.id, {TaskStatus.PENDING}):
            raise Refused("not-writable", f"the status of task {one.id} is agentd's to set", "leave it as it was")
