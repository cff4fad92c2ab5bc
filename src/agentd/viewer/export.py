"""A change as one HTML file that needs nothing else: no script, no request, to be kept or sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from agentd import clock, files
from agentd.change.folder import Change, documents
from agentd.documents import tasks as task_lists
from agentd.documents.text import decode
from agentd.errors import AgentdError
from agentd.rendering import chart, graph, links, markdown
from agentd.viewer import checked, coded, comparing, margin, reading, rounds, spent, traced
from agentd.viewer.margin import Note
from agentd.viewer.site import STATIC, environment


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    id: str
    html: Markup
    notes: tuple[Note, ...]


def export(change: Change, settings: tuple[str, ...] = ()) -> str:
    """As it is now."""
    pattern, problem = reading.pattern(change, settings)
    state, costs, code = change.read(), spent.costs(change, settings), coded.code(change)
    return (
        environment()
        .get_template("export.html")
        .render(
            change=change.id,
            state=state,
            style=Markup((STATIC / "style.css").read_text(encoding="utf-8")),  # noqa: S704  our own
            at=clock.now(),
            open=margin.left(change),
            sections=list(_sections(change, pattern)),
            rounds=[comparing.told(change, one) for one in rounds.rounds(change)],
            problems=[*filter(None, [problem]), *reading.problems(change)],
            graph=_graph(change),
            trace=traced.trace(change, pattern),
            checks=checked.checks(change),
            files=code.files,
            notes={path: {0: some} for path, some in coded.notes(change).items()},
            costs=costs,
            cost=Markup(chart.bars(costs.by_step, costs.budget)) if costs.by_step else "",  # noqa: S704  made safe there
        )
    )


def _sections(change: Change, pattern: re.Pattern[str]) -> Iterator[Section]:
    for name in documents(change.folder):
        text = files.read(change.folder / name).decode("utf-8-sig", "replace")
        try:
            html, notes = markdown.render(text, name, is_shared=True).html, margin.notes(change, name, text, pattern)
        except AgentdError as error:
            html, notes = str(Markup("<p>{}</p><pre>{}</pre>").format(error.message, text)), ()
        yield Section(name, links.within(name), Markup(html), notes)  # noqa: S704  made safe there


def _graph(change: Change) -> Markup | str:
    if "tasks.md" not in documents(change.folder):
        return ""
    try:
        tasks = task_lists.parse(decode(files.read(change.folder / "tasks.md"), "tasks.md")).tasks
    except (AgentdError, OSError):
        return ""
    return Markup(graph.svg(graph.layers(tasks))) if tasks else ""  # noqa: S704  made safe there
