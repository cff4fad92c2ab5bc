"""The entry of a change in agentd/specs/CHANGELOG.md, newest first (pure)."""

from collections.abc import Sequence

from agentd.documents import embed_text, one_line
from agentd.domain import pluralize
from agentd.engine.archive.preview import SpecPreview
from agentd.merge import SpecTouch, TouchKind, UnitKind

CHANGELOG_FILE = "CHANGELOG.md"
_TITLE = "# Changelog of the specs"
_WORDS = {
    TouchKind.ADDED: "added",
    TouchKind.MODIFIED: "changed",
    TouchKind.REMOVED: "removed",
    TouchKind.RENAMED: "renamed",
}


def add_changelog_entry(
    text: str | None, change_id: str, date: str, description: str, specs: Sequence[SpecPreview]
) -> str:
    """Under the title, above all older entries; a person's own words above the first entry stay there."""
    lines = [f"## {date}: {change_id}", "", embed_text(one_line(description)), "", *(_line(one) for one in specs)]
    entry = "\n".join(lines if specs else [*lines, "No spec changed."])
    if not (text or "").strip():
        return f"{_TITLE}\n\n{entry}\n"
    assert text is not None
    newline = "\r\n" if "\r\n" in text else "\n"
    at = 0 if text.startswith("## ") else text.find("\n## ") + 1
    if at == 0 and not text.startswith("## "):
        return f"{text.rstrip()}{newline * 2}{entry.replace(chr(10), newline)}{newline}"
    return f"{text[:at]}{entry.replace(chr(10), newline)}{newline * 2}{text[at:]}"


def describe_spec_change(outcome: SpecPreview) -> str:
    """New, version 1; or version 4: R5 added, R2 changed, 3 scenarios."""
    if outcome.is_new:
        return f"new, version {outcome.version}"
    if outcome.after is None:
        return "as it is already"
    return f"version {outcome.version}: {', '.join(_touches(outcome.touches))}"


def _line(outcome: SpecPreview) -> str:
    return f"- `{outcome.id}`: {describe_spec_change(outcome)}"


def _touches(touches: Sequence[SpecTouch]) -> list[str]:
    """Requirements by id; scenarios, which are many, by number."""
    own = dict.fromkeys(
        f"{one.name.partition(':')[2]} {_WORDS[one.how]}" for one in touches if one.kind is not UnitKind.SCENARIO
    )
    scenarios = [one.how for one in touches if one.kind is UnitKind.SCENARIO]
    counts = [(scenarios.count(how), _WORDS[how]) for how in dict.fromkeys(scenarios)]
    return [*own, *(f"{pluralize(count, 'scenario')} {word}" for count, word in counts)]
