"""States and edits of merge_model as people write them: in many looks, each piece of the page known by its unit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from merge_model import Edit, Scenarios, State

from agentd.documents import spec

Piece = tuple[str | tuple[str, str] | None, str]
"""What a piece of a page is, None for what belongs to no unit, and its text."""


@dataclass(frozen=True)
class Look:
    newline: str
    mark: str
    end: str
    gap: str
    inside: int
    """How deep scenarios stand in their requirements; 0 for a section of their own, 9 for groups in it."""
    colon: str
    field: str
    intro: str
    between: str
    after: str

    def write(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Line endings, the byte order mark and the end of the file as they are here."""
        written = [(unit, text.replace("\n", self.newline)) for unit, text in pieces]
        unit, last = written[-1]
        written[-1] = (unit, last.rstrip("\r\n") + self.end.replace("\n", self.newline))
        return [(written[0][0], self.mark + written[0][1]), *written[1:]]


looks = st.builds(
    Look,
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    end=st.sampled_from(["\n", "", "\n\n\n"]),
    gap=st.sampled_from(["\n\n", "\n", "\n\n\n\n", "\n \t\n"]),
    inside=st.sampled_from([0, 0, 3, 4, 5, 9]),
    colon=st.sampled_from([": ", " - "]),
    field=st.sampled_from(
        ["- **Requirement**: {}", "**Requirements:** {}", "* Requirement: {}", "- Requirement: `{}`"]
    ),
    intro=st.sampled_from(["", "All of these hold.\n\n", "<!-- first -->\n\n"]),
    between=st.sampled_from(["", "## Flow\n\n```mermaid\ngraph\n### R1: x\n```\n\n", "## Odd & ends\n\nprose\n\n\n"]),
    after=st.sampled_from(["", "## Appendix\n\n- Requirement: R1\n"]),
)

HEAD = "---\nid: s  # mine\ntype: spec\ntitle: S\nversion: 3\n---\n\n# Spec: S\n\n## Overview\n\nWhat it is.\n\n"
DELTA = "---\nid: s\ntype: spec\ntitle: S\nbase_version: 3\n---\n\n# Spec: S\n\n## Overview\n\nWhat changes.\n\n"


def steps(word: str) -> str:
    return f"- **WHEN** {word}\n- **THEN** it is {word}"


def scenario(look: Look, title: str, refs: tuple[str, ...], word: str, level: int, is_named: bool) -> str:
    field = "" if not refs or (is_named and len(refs) == 1) else look.field.format(", ".join(refs)) + "\n"
    # A field that is no list item would swallow the steps, a list below a heading need not.
    field = field + "\n" if field.startswith("**") else field
    return f"{'#' * level} Scenario: {title}\n\n{field}{steps(word)}"


def page(state: State, look: Look) -> list[Piece]:
    pieces: list[Piece] = [(None, HEAD + "## Requirements\n\n" + look.intro)]
    left = dict(state.scenarios)
    for id_, (title, text) in state.requirements.items():
        own, notes = text.split("\n\n#### Notes") if look.inside in (4, 5) and "#### Notes" in text else (text, None)
        gap = look.gap if notes is None else "\n\n"
        pieces.append((id_, f"### {id_}{look.colon}{title}\n\n{own}{gap}"))
        for key in [key for key in left if look.inside in (3, 4, 5) and key[0] == id_]:
            pieces.append((key, scenario(look, key[1], *left.pop(key), look.inside, True) + look.gap))
        if notes is not None:
            pieces.append((id_, f"#### Notes{notes}{look.gap}"))
    pieces.append((None, look.between))
    if left or look.inside in (0, 9):
        pieces.append((None, "## Acceptance Criteria\n\n"))
    owners = dict.fromkeys(key[0] for key in sorted(left, key=lambda key: bool(key[0])))
    for owner in owners if look.inside == 9 else [None]:
        if owner:
            pieces.append((("group", owner), f"### {owner}\n\n"))
        for key in [key for key in left if owner in (None, key[0])]:
            text = scenario(look, key[1], *left.pop(key), 4 if owner else 3, owner is not None)
            pieces.append((key, text + look.gap))
    pieces.append((None, look.after))
    return look.write([piece for piece in pieces if piece[1]])


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(text for _, text in pieces)


def delta(base: State, edit: Edit, look: Look, repeated: Sequence[str], by_heading: bool) -> str:
    """The edit as a delta. `repeated` are requirements and scenarios written though nothing of them changes."""
    ids = {old: new for old, (new, _) in edit.names.items()}
    bodies = {id_: base.requirements[id_] for id_ in base.requirements if id_ in edit.texts or id_ in repeated}
    bodies = {
        id_: (title, edit.texts.get(id_, text)) for id_, (title, text) in bodies.items() if id_ not in edit.removed
    }
    renamed: list[str] = []
    for old, (new, title) in edit.names.items():
        if by_heading and old == new:
            bodies[old] = (title, edit.texts.get(old, base.requirements[old][1]))
        else:
            renamed.append(f"- {old}: {base.requirements[old][0]} → {new}: {title}")
    entries = {ids.get(id_, id_): (edit.names.get(id_, ("", title))[1], text) for id_, (title, text) in bodies.items()}
    entries |= edit.added
    written: Scenarios = {key: (base.scenarios[key][0], word) for key, word in edit.scenarios.items()}
    for key, value in base.scenarios.items():
        if key[1] in repeated and key not in edit.dropped and not edit.removed.intersection(value[0]):
            written.setdefault(key, value)
    written |= edit.new_scenarios
    state = State(
        entries,
        {
            (ids.get(owner, owner), title): (tuple(ids.get(ref, ref) for ref in refs), word)
            for (owner, title), (refs, word) in written.items()
        },
    )
    removed = [f"- {id_}: {base.requirements[id_][0]}\n  - **Reason**: over" for id_ in sorted(edit.removed)]
    for owner, title in sorted(edit.dropped):
        removed.append(f"- Scenario: {title}\n  - **Requirement**: {owner or 'none'}")
    text = text_of(page(state, look)).replace("\r\n", "\n").replace(HEAD, DELTA)
    for title, lines in (("Removed", removed), ("Renamed", renamed)):
        if lines:
            at = re.search(r"^## Requirements$", text, re.MULTILINE)
            assert at
            text = text[: at.start()] + f"## {title}\n\n" + "\n".join(lines) + "\n\n" + text[at.start() :]
    return text.replace("\n", look.newline)


def read(text: str) -> State:
    """The dicts of a page, by the reader of specs."""
    found = spec.parse_spec(text, "s.md")
    assert not found.strays
    scenarios: Scenarios = {}
    for one in found.scenarios:
        refs = tuple(ref for ref in (one.requirement, *one.also) if ref)
        assert (one.requirement, one.name) not in scenarios
        assert one.then == (f"it is {one.when[0]}",)
        scenarios[(one.requirement, one.name)] = (refs, one.when[0])
    requirements = {}
    for each in found.requirements:
        assert each.id not in requirements
        priority = f"**Priority**: {each.priority}\n\n" if each.priority else ""
        requirements[each.id] = (each.title, priority + each.text)
    return State(requirements, scenarios)
