"""Requirements as they will be: what a change's specs say, over what the project's own specs say today (pure)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentd.documents import (
    Document,
    RemovedItem,
    Scenario,
    Span,
    Spec,
    one_line,
    parse_document,
    read_frontmatter,
    read_spec,
)


@dataclass(frozen=True, slots=True)
class SpecText:
    """A spec with its text; `path` from the project's root."""

    id: str
    path: str
    document: Document
    spec: Spec

    def shown(self, scenario: Scenario) -> "ScenarioText":
        words = self.document.words(Span(scenario.span.start + 1, scenario.span.end))
        return ScenarioText(scenario.name, words, self.path)


@dataclass(frozen=True, slots=True)
class ScenarioText:
    """A scenario in the words of its document, and where that is."""

    title: str
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class RequirementText:
    """A requirement, or under the id of a spec alone what belongs to the whole of it."""

    ref: str
    title: str
    text: str
    scenarios: tuple[ScenarioText, ...]
    path: str


def read_spec_text(text: str, id_: str, path: str, pattern: re.Pattern[str]) -> SpecText:
    document = parse_document(text, path)
    return SpecText(id_, path, document, read_spec(document, read_frontmatter(document), pattern))


def requirement_texts(
    refs: Sequence[str], own: Mapping[str, SpecText], main: Mapping[str, SpecText]
) -> list[RequirementText]:
    """Those that are named, each once; then what each of their specs has without a requirement."""
    found = [_told(ref, own, main) for ref in dict.fromkeys(refs)]
    specs = dict.fromkeys(ref.partition(":")[0] for ref in refs)
    return [*found, *(_whole(own[id_]) for id_ in specs if id_ in own and any(_unnamed(own[id_])))]


def _told(ref: str, own: Mapping[str, SpecText], main: Mapping[str, SpecText]) -> RequirementText:
    """What the change says of it, and where a delta is silent what holds today."""
    spec_id, _, id_ = ref.partition(":")
    new = own.get(spec_id)
    old = main.get(spec_id) if new is None or new.spec.is_delta else None
    renamed = next((one for one in new.spec.renamed if one.new.id == id_), None) if new else None
    removed = next((one for one in new.spec.removed if one.id == id_), None) if new else None
    old_id = renamed.old.id if renamed else id_
    now = new.spec.requirement(id_) if new else None
    stated = now or (old.spec.requirement(old_id) if old else None)
    title = renamed.new.title if renamed and not now else stated.title if stated else ""
    text = stated.text if stated else ""
    place = old if old and not now and not removed else new
    path = place.path if place else ""
    if removed and not now:
        return RequirementText(ref, title or removed.title, _gone(removed, text), (), path)
    scenarios = [*_shown(ref, own), *(_kept(old_id, ref, old, own) if old else ())]
    return RequirementText(ref, title, text, tuple(scenarios), path)


def _gone(removed: RemovedItem, text: str) -> str:
    reason = f" {removed.reason}" if removed.reason else ""
    until = f"\n\nIt said until now:\n\n{text}" if text else ""
    return f"This change removes it.{reason}{until}"


def _shown(ref: str, own: Mapping[str, SpecText]) -> Iterator[ScenarioText]:
    """What any spec of the change shows of it."""
    for one in own.values():
        yield from (one.shown(scenario) for scenario in one.spec.scenarios if ref in _refs(one, scenario))


def _kept(old_id: str, ref: str, old: SpecText, own: Mapping[str, SpecText]) -> Iterator[ScenarioText]:
    """Scenarios of today that go on: neither removed nor replaced by one of the same name."""
    new = own.get(old.id)
    gone = {one_line(one.title) for one in new.spec.removed if not one.id} if new else set()
    gone |= {one_line(one.title) for one in _shown(ref, own)}
    for scenario in old.spec.scenarios:
        if f"{old.id}:{old_id}" in _refs(old, scenario) and one_line(scenario.name) not in gone:
            yield old.shown(scenario)


def _refs(where: SpecText, scenario: Scenario) -> list[str]:
    return [one if ":" in one else f"{where.id}:{one}" for one in (scenario.requirement, *scenario.also) if one]


def _unnamed(where: SpecText) -> Iterator[Scenario]:
    return (one for one in where.spec.scenarios if not one.requirement)


def _whole(where: SpecText) -> RequirementText:
    scenarios = tuple(map(where.shown, _unnamed(where)))
    return RequirementText(where.id, where.spec.title, "The spec as a whole.", scenarios, where.path)
