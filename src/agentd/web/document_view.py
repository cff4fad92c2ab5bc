"""The documents of a change as pages, with their annotations; the overview and the tasks."""

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from agentd.change import (
    Change,
    document_hash,
    linked_documents,
    plan_files,
    readable_documents,
    reviewable_part,
)
from agentd.documents import REQUIREMENT_PATTERN, Task, decode_text, parse_tasks
from agentd.domain import AgentdError, TaskStatus
from agentd.engine import change_project
from agentd.project import load_config
from agentd.storage import files
from agentd.web import annotations, displayed
from agentd.web.annotations import Annotation
from agentd.web.markup import markdown, svg, task_graph
from agentd.web.markup.markdown import RenderedDocument
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query

_LARGEST = 4_000_000  # characters; enough for any document a person reads


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """`is_plan`: part of what is approved. `open`: open findings and comments on it."""

    name: str
    label: str
    hash: str
    is_plan: bool
    open: int = 0


@dataclass(frozen=True, slots=True)
class DocumentView:
    name: str
    hash: str
    page: RenderedDocument
    notes: tuple[Annotation, ...]
    problem: str = ""


def list_documents(change: Change) -> tuple[ListedDocument, ...]:
    """Return the documents in the order they are created."""
    open_ones = Counter(one.document for one in annotations.open_annotations(change))
    plan = {path.relative_to(change.folder).as_posix() for path in plan_files(change.folder)}
    found = []
    for name in readable_documents(change.folder):
        label = name.removeprefix("specs/").removesuffix(".md") if name.startswith("specs/") else name
        found.append(ListedDocument(name, label, _hash(change, name), name in plan, open_ones[name]))
    return tuple(found)


def read_document(change: Change, name: str, pattern: re.Pattern[str]) -> DocumentView:
    """Render a document. Text and hash come from the same bytes, which are kept to show later changes."""
    data = files.read(change.folder / name)
    digest = displayed.remember_text(reviewable_part(name, data))
    whole = data.decode("utf-8-sig", "replace")
    text, problem = whole[:_LARGEST], _cut(whole)
    try:
        return DocumentView(
            name,
            digest,
            markdown.render_markdown(text, name),
            annotations.document_annotations(change, name, text, pattern),
            problem,
        )
    except AgentdError as error:  # show the plain text instead
        plain = f'<pre class="source">{html.escape(svg.readable_text(text))}</pre>'
        return DocumentView(
            name, digest, RenderedDocument(name, plain, ()), (), ". ".join(filter(None, (error.message, problem)))
        )


def document_problems(change: Change) -> tuple[str, ...]:
    """Return what cannot be read, or is not shown because it is a symbolic link."""
    told = [
        f"{name} is a symbolic link and is not read: replace it with the file itself"
        for name in linked_documents(change.folder)
    ]
    return tuple(shorten_paths(change, words) for words in (*annotations.annotation_problems(change), *told))


def shorten_paths(change: Change, words: str) -> str:
    """Make paths relative to the worktree, so an export does not reveal its location."""
    return words.replace(f"{change.tree}/", "")


def requirement_pattern(change: Change, settings: Sequence[str] = ()) -> tuple[re.Pattern[str], str]:
    """Return the pattern of requirement ids; if the configuration is unreadable, the default one and the reason."""
    try:
        return load_config(change_project(change).config_file, flags=settings).validation.requirement_pattern, ""
    except AgentdError as error:
        return (
            REQUIREMENT_PATTERN,
            f"{shorten_paths(change, error.message)}; requirements are found by the default pattern",
        )


def _cut(whole: str) -> str:
    left = len(whole) - _LARGEST
    return f"It is cut off here: {left} of its {len(whole)} characters, at its end, are not shown" if left > 0 else ""


def _hash(change: Change, name: str) -> str:
    try:
        return document_hash(change.folder / name)
    except (AgentdError, OSError):
        return ""


# ---- pages


def _overview_values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    try:
        history = change.read().history
    except AgentdError:
        history = ()  # the bar reports what cannot be read
    return {
        "problems": document_problems(change),
        "documents": list_documents(change),
        "open": annotations.open_annotations(change),
        "history": history[::-1],
        "where": change.folder.relative_to(change.tree).as_posix(),
    }


def _tasks_values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    tasks: tuple[Task, ...] = ()
    problem = ""
    try:
        tasks = read_tasks(change)
    except (AgentdError, FileNotFoundError) as error:
        problem = str(error)
    done = sum(task.status is not TaskStatus.PENDING for task in tasks)
    return {
        "tasks": tasks,
        "lead": f"{done} of {len(tasks)} tasks done or waived." if tasks else "",
        "picture": task_picture(tasks),
        "problem": problem,
    }


def read_tasks(change: Change) -> tuple[Task, ...]:
    if "tasks.md" not in readable_documents(change.folder):
        return ()
    return parse_tasks(decode_text(files.read(change.folder / "tasks.md"), "tasks.md")).tasks


def task_picture(tasks: Sequence[Task]) -> Markup:
    return Markup(task_graph.task_graph_svg(task_graph.layout_tasks(tasks)) if tasks else "")  # noqa: S704  escaped there


TABS = (
    ChangeTab("overview", 10, _overview_values),
    ChangeTab("tasks", 40, _tasks_values, lambda documents, state: "tasks.md" in documents),
)
