"""Shared by all pages: the project, the person, the templates and their filters."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from agentd.change import Change, ChangeLocator, check_change_id
from agentd.domain import ChangeNotFound, format_usd, format_usd_of, pluralize, seconds_since
from agentd.project import Project, git

_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h"))


def format_age(at: str | None) -> str:
    """Return an age such as `4 min`, `3 h` or `2 days`."""
    seconds = seconds_since(at or "", datetime.now(UTC))
    return format_span(max(0.0, seconds)) if seconds is not None else ""


def format_span(seconds: float) -> str:
    for limit, unit, name in _STEPS:
        if seconds < limit:
            return f"{int(seconds // unit)} {name}"
    days = int(seconds // 86400)
    return pluralize(days, "day")


def format_duration(seconds: float) -> str:
    """Return a duration, with tenths if it is short."""
    return f"{seconds:.1f} s" if seconds < 10 else format_span(seconds)


def format_moment(at: str | None, zone: tzinfo | None = None) -> str:
    """Return `16 Nov 2026, 14:05` in the local time zone, or in `zone`."""
    if not at:
        return ""
    try:
        return f"{datetime.fromisoformat(at.replace('Z', '+00:00')).astimezone(zone):%-d %b %Y, %H:%M}"
    except ValueError:
        return at


def format_moment_utc(at: str | None) -> str:
    """Return a moment in UTC, for readers in other time zones."""
    return format_moment(at, UTC)


def format_clock(at: str) -> str:
    """Return `14:05:09` in the local time zone."""
    try:
        return f"{datetime.fromisoformat(at.replace('Z', '+00:00')).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def display_person(by: str | None) -> str:
    """Return `dev` for `person:dev`, `codex` for `agent:codex`."""
    return (by or "").removeprefix("person:").removeprefix("agent:")


def display_words(name: Any) -> str:
    """Return `needs revision` for NEEDS_REVISION."""
    return str(name).replace("_", " ").replace("-", " ").lower()


def capitalize_first(text: str, name: str = "") -> str:
    """Capitalize the first letter, unless the text starts with `name`, which keeps its spelling."""
    return text if name and text.startswith(name) else text[:1].upper() + text[1:]


FILTERS = {
    "age": format_age,
    "clock": format_clock,
    "first_up": capitalize_first,
    "money": format_usd,
    "money_of": format_usd_of,
    "moment": format_moment,
    "moment_utc": format_moment_utc,
    "person": display_person,
    "plural": pluralize,
    "span": format_span,
    "took": format_duration,
    "words": display_words,
}


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
        """Return an open or archived change."""
        places = ChangeLocator(self.project)
        try:
            found = places.find(check_change_id(change_id))
        except ChangeNotFound:
            ended = places.find_archived(change_id)
            if ended is None or ended.folder is None:
                raise
            found = ended
        assert found.folder
        return Change(self.project, change_id, found.tree or self.project.tree, Path(found.folder))


def create_site(project: Project, csrf: str, settings: tuple[str, ...] = ()) -> Site:
    return Site(project, f"person:{git.user_name(project.tree)}", csrf, settings, template_environment())


@cache
def template_environment() -> Environment:
    """Return an environment that escapes everything except `Markup` and fails on missing values."""
    made = Environment(
        loader=PackageLoader("agentd.web"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals["has"] = lambda name: (STATIC_FOLDER / name).is_file()
    return made
