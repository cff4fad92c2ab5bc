"""A change as one HTML file that needs nothing else: no script, no request, to be kept or sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from agentd.change.folder import Change, readable_documents
from agentd.documents import tasks as task_lists
from agentd.documents.text import decode_text
from agentd.domain import clock
from agentd.domain.errors import AgentdError
from agentd.rendering import chart, graph, links, markdown
from agentd.storage import files
from agentd.viewer import checked, coded, comparing, margin, outlooks, reading, rounds, spent, traced
from agentd.viewer.margin import Note
from agentd.viewer.site import STATIC, environment
from agentd.viewer.spent import Costs


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
    outlook = outlooks.outlook(change, settings)
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
            outlook=outlook,
            specs=[comparing.spec(one, pattern) for one in outlook.specs],
            costs=costs,
            charts=list(_charts(costs)),
        )
    )


def _sections(change: Change, pattern: re.Pattern[str]) -> Iterator[Section]:
    for name in readable_documents(change.folder):
        text = files.read(change.folder / name).decode("utf-8-sig", "replace")
        try:
            html, notes = markdown.render(text, name, is_shared=True).html, margin.notes(change, name, text, pattern)
        except AgentdError as error:
            html, notes = str(Markup("<p>{}</p><pre>{}</pre>").format(error.message, text)), ()
        yield Section(name, links.within(name), Markup(html), notes)  # noqa: S704  made safe there


def _charts(costs: Costs) -> Iterator[tuple[str, Markup]]:
    """The first with the budget."""
    groups = {"By step": costs.by_step, "By model": costs.by_model, "By round": costs.by_round}
    budget = costs.budget
    for title, rows in groups.items():
        if rows:
            yield title, Markup(chart.bars(rows, budget))  # noqa: S704  made safe there
            budget = None


def _graph(change: Change) -> Markup | str:
    if "tasks.md" not in readable_documents(change.folder):
        return ""
    try:
        tasks = task_lists.parse_tasks(decode_text(files.read(change.folder / "tasks.md"), "tasks.md")).tasks
    except (AgentdError, OSError):
        return ""
    return Markup(graph.svg(graph.layers(tasks))) if tasks else ""  # noqa: S704  made safe there
