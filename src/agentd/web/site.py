"""What all pages share: the project, the person who looks on, and the templates."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from agentd.change import Change, ChangeLocator, check_change_id
from agentd.domain import ChangeNotFound
from agentd.project import Project, git
from agentd.web import filters

STATIC_FOLDER = Path(__file__).parent / "static"


@dataclass(frozen=True)
class Site:
    project: Project
    by: str
    """Who decides and comments here: `person:<name>`."""
    csrf: str
    settings: tuple[str, ...]
    """Settings of the command line, `--set`."""
    templates: Environment

    def page(self, request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        text = self.templates.get_template(name).render(site=self, path=request.url.path, **values)
        return HTMLResponse(text, status)

    def change(self, change_id: str) -> Change:
        """An open one, or one that is in the archive."""
        places = ChangeLocator(self.project)
        try:
            found = places.find(check_change_id(change_id))
        except ChangeNotFound:
            ended = places.ended(change_id)
            if ended is None or ended.folder is None:
                raise
            found = ended
        assert found.folder
        return Change(self.project, change_id, found.tree or self.project.tree, Path(found.folder))


def create_site(project: Project, csrf: str, settings: tuple[str, ...] = ()) -> Site:
    return Site(project, f"person:{git.user_name(project.tree)}", csrf, settings, template_environment())


@cache
def template_environment() -> Environment:
    """Everything is escaped but what a module has made safe; a value that is missing is a mistake of ours."""
    made = Environment(
        loader=PackageLoader("agentd.web"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(filters.FILTERS)
    made.globals["has"] = lambda name: (STATIC_FOLDER / name).is_file()
    return made
