"""What an exact edit may not do: forge or hide a review, set a task's status, or make a document unreadable."""

from agentd.documents import blocks, frontmatter, proposal, spec, tasks
from agentd.documents import text as base
from agentd.documents.text import BadDocument
from agentd.domain.terms import TaskStatus
from agentd.tools.refusal import Refused


def refuse_edit(name: str, before: str, after: str) -> None:
    fault = _fault(name, after)
    if fault and _fault(name, before) is None:
        raise Refused("invalid-document", fault, "send text that leaves the document readable")
    if name == blocks.NAME and blocks.find(after) != blocks.find(before):
        what = "with this edit there would be other review blocks"
        raise Refused("review-block", what, "leave review tags out, and close every fence and comment")
    if name == tasks.NAME:
        _refuse_status(before, after)


def _fault(name: str, text: str) -> str | None:
    """Why the document cannot be read, None if it can."""
    try:
        document = base.parse(text, name)
        front = frontmatter.read(document)
        if name == blocks.NAME:
            proposal.parse(text)
        elif name != tasks.NAME:
            spec.read(document, front)
    except BadDocument as error:
        return error.message
    return None


def _refuse_status(before: str, after: str) -> None:
    """agentd alone ticks a task."""
    known: dict[str, set[TaskStatus]] = {}
    for one in tasks.parse(before).tasks:
        known.setdefault(one.id, set()).add(one.status)
    for one in tasks.parse(after).tasks:
        if one.status not in known.get(one.id, {TaskStatus.PENDING}):
            raise Refused("not-writable", f"the status of task {one.id} is agentd's to set", "leave it as it was")
