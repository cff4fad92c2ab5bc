"""A change as one self-contained HTML file without scripts or requests, to keep or send."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from agentd.change import Change, readable_documents
from agentd.domain import AgentdError, clock
from agentd.storage import files
from agentd.web import (
    annotations,
    archive_view,
    checks_view,
    code_view,
    cost_view,
    document_view,
    rounds_view,
)
from agentd.web.annotations import Annotation
from agentd.web.markup import links, markdown
from agentd.web.site import STATIC_FOLDER, template_environment


@dataclass(frozen=True, slots=True)
class ExportSection:
    name: str
    id: str
    html: Markup
    notes: tuple[Annotation, ...]


def export_change(change: Change, settings: tuple[str, ...] = ()) -> str:
    """Render the current state of the change."""
    pattern, problem = document_view.requirement_pattern(change, settings)
    state, costs, code = change.read(), cost_view.read_costs(change, settings), code_view.read_code(change)
    outlook = archive_view.read_archive_view(change, settings)
    return (
        template_environment()
        .get_template("export.html")
        .render(
            change=change.id,
            state=state,
            style=Markup((STATIC_FOLDER / "style.css").read_text(encoding="utf-8")),  # noqa: S704  our own file
            at=clock.now(),
            open=annotations.open_annotations(change),
            sections=list(_sections(change, pattern)),
            rounds=[rounds_view.round_view(change, one) for one in rounds_view.read_rounds(change)],
            problems=[*filter(None, [problem]), *document_view.document_problems(change)],
            graph=_graph(change),
            trace=checks_view.read_trace(change, pattern),
            checks=checks_view.read_checks(change),
            files=code.files,
            notes={path: {0: some} for path, some in code_view.code_notes(change).items()},
            outlook=outlook,
            specs=[archive_view.spec_diff(one, pattern) for one in outlook.specs],
            costs=costs,
            charts=cost_view.cost_charts(costs, costs.budget),
        )
    )


def _sections(change: Change, pattern: re.Pattern[str]) -> Iterator[ExportSection]:
    for name in readable_documents(change.folder):
        text = files.read(change.folder / name).decode("utf-8-sig", "replace")
        try:
            html, notes = (
                markdown.render_markdown(text, name, is_shared=True).html,
                annotations.document_annotations(change, name, text, pattern),
            )
        except AgentdError as error:
            html, notes = str(Markup("<p>{}</p><pre>{}</pre>").format(error.message, text)), ()
        yield ExportSection(name, links.shared_prefix(name), Markup(html), notes)  # noqa: S704  escaped there


def _graph(change: Change) -> Markup:
    try:
        return document_view.task_picture(document_view.read_tasks(change))
    except (AgentdError, OSError):
        return Markup()
