"""A spec as plain dicts, edits of it, and what two of them must come to: written without a look at the merge."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

Requirements = dict[str, tuple[str, str]]
Scenarios = dict[tuple[str, str], tuple[tuple[str, ...], str]]

TITLES = ("Login", "Log-out", "Error → body", "`GET /me`: who")
TEXTS = (
    "A person signs in.",
    "**Priority**: high\n\nA person signs in, once.",
    "Two lines\nwith a [link](x).\n\n- item\n  - nested",
    "Code:\n\n```\n### R1: not here\n\n## Removed\n```",
    "<!-- a note -->\n\nAfter a note.",
    "It works.\n\n#### Notes\n\nMore of it.",
)
STEPS = ("one", "two", "three", "`four`")
NAMES = ("Fine", "Bad input", "Fine again")
OLD, NEW = ("R1", "R2", "AB-R3", "R10"), ("R5", "R6", "R11")


@dataclass(frozen=True)
class State:
    requirements: Requirements
    scenarios: Scenarios


@dataclass(frozen=True)
class Edit:
    """What one side does. Scenarios are named by their requirement as it is called in the base."""

    texts: dict[str, str] = field(default_factory=dict)
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    added: Requirements = field(default_factory=dict)
    scenarios: dict[tuple[str, str], str] = field(default_factory=dict)
    dropped: frozenset[tuple[str, str]] = frozenset()
    new_scenarios: Scenarios = field(default_factory=dict)


# ---- what edits come to


def without(scenarios: Scenarios, gone: frozenset[str]) -> Scenarios:
    """Those that name only what is gone go; others no longer name it."""
    left: Scenarios = {}
    for (_, title), (refs, steps) in scenarios.items():
        kept = tuple(ref for ref in refs if ref not in gone)
        if kept or not refs:
            left[(kept[0] if kept else "", title)] = (kept, steps)
    return left


def called(scenarios: Scenarios, ids: dict[str, str]) -> Scenarios:
    return {
        (ids.get(owner, owner), title): (tuple(ids.get(ref, ref) for ref in refs), steps)
        for (owner, title), (refs, steps) in scenarios.items()
    }


def apply(state: State, edit: Edit, base: State) -> State:
    """The edit of the base on what others made of it, where the two do not meet; what is there already is left."""
    origin = origins(base, state, edit)
    finally_ = {old: new for new, old in origin.items()} | {old: new for old, (new, _) in edit.names.items()}
    lost = frozenset(set(base.requirements) - {origin.get(id_, id_) for id_ in state.requirements})
    scenarios = called(state.scenarios, origin)
    for key in [*edit.scenarios, *edit.dropped]:
        (found,) = aligned({key: base.scenarios[key]}, edit.removed | lost)
        if found in scenarios:
            refs, _ = scenarios.pop(found)
            if key in edit.scenarios:
                scenarios[found] = (refs, edit.scenarios[key])
    scenarios.update(edit.new_scenarios)
    scenarios = called(without(scenarios, edit.removed), finally_)
    requirements: Requirements = {}
    for id_, (title, text) in {**state.requirements, **edit.added}.items():
        old = origin.get(id_, id_)
        if old not in edit.removed:
            new, new_title = edit.names.get(old, (id_, title))
            requirements[new] = (new_title, edit.texts.get(old, text))
    return State(requirements, scenarios)


def origins(base: State, there: State, edit: Edit) -> dict[str, str]:
    """How what others renamed just as the edit does is called in the base."""
    return {
        new: old
        for old, (new, _) in edit.names.items()
        if old in base.requirements and old not in there.requirements and new in there.requirements
    }


# ---- do they meet


def meets(base: State, there: State, edit: Edit) -> bool:
    """Whether a state that others made of the base leaves no room for the edit."""
    return any(_meeting(base, there, edit))


def _meeting(base: State, there: State, edit: Edit) -> Iterator[bool]:
    origin = origins(base, there, edit)
    now = {origin.get(id_, id_): (id_, *value) for id_, value in there.requirements.items()}
    for id_, text in edit.texts.items():
        yield clash(base.requirements[id_][1], now[id_][2] if id_ in now else None, text)
    for id_, name in edit.names.items():
        yield clash((id_, base.requirements[id_][0]), now[id_][:2] if id_ in now else None, name)
        yield name[0] != id_ and name[0] in there.requirements and id_ in there.requirements
    for id_, new in edit.added.items():
        yield clash(None, there.requirements.get(id_), new)
    for id_ in edit.removed:
        yield clash((id_, *base.requirements[id_]), now.get(id_), None)
    lost = frozenset(set(base.requirements) - set(now))
    gone = lost | edit.removed
    before, after = aligned(base.scenarios, gone), aligned(called(there.scenarios, origin), gone)
    for key in [*edit.scenarios, *edit.dropped]:
        (found,) = aligned({key: base.scenarios[key]}, gone)
        wanted = (before[found][0], edit.scenarios[key]) if key in edit.scenarios else None
        yield clash(before[found], after.get(found), wanted)
        # One that others took to a requirement of another name is not gone.
        others = [(name, refs) for name, (refs, word) in after.items() if (name[1], word) == (key[1], before[found][1])]
        is_elsewhere = any(
            set(refs) - set(base.requirements) - {""} for name, refs in others if name not in edit.new_scenarios
        )
        is_lost = bool(lost & set(base.scenarios[key][0]) - edit.removed)
        yield key in edit.dropped and found not in after and is_lost and is_elsewhere
    for key, value in edit.new_scenarios.items():
        yield clash(None, after.get(key), value) or not lost.isdisjoint(value[0])
    for key in {**before, **after}:
        sides = [side[key] for side in (before, after) if key in side]
        if any(refs and all(ref in edit.removed for ref in refs) for refs, _ in sides):
            yield key in after and before.get(key) != after[key]


def clash(base: object, theirs: object, yours: object) -> bool:
    return base not in (theirs, yours) and theirs != yours if base is not None else theirs not in (None, yours)


def aligned(scenarios: Scenarios, gone: frozenset[str]) -> Scenarios:
    """Without naming what is gone, where something else is left to name."""
    found: Scenarios = {}
    for (_, title), (refs, steps) in scenarios.items():
        kept = tuple(ref for ref in refs if ref not in gone) or refs
        found[(kept[0] if kept else "", title)] = (kept, steps)
    return found


# ---- made ones


@st.composite
def states(draw: st.DrawFn) -> State:
    ids = draw(st.lists(st.sampled_from(OLD), max_size=4, unique=True))
    requirements = {id_: (draw(st.sampled_from(TITLES)), draw(st.sampled_from(TEXTS))) for id_ in ids}
    return State(requirements, draw(scenarios_of(ids, 5)))


@st.composite
def scenarios_of(
    draw: st.DrawFn, ids: list[str], most: int, taken: frozenset[tuple[str, str]] = frozenset()
) -> Scenarios:
    """A title names several requirements at most once, so that nothing falls together when one of them goes."""
    found: Scenarios = {}
    for _ in range(draw(st.integers(0, most))):
        refs = tuple(draw(st.lists(st.sampled_from(ids), max_size=2, unique=True))) if ids else ()
        title = draw(st.sampled_from(NAMES))
        others = {**found, **dict.fromkeys(taken)}
        key = (refs[0] if refs else "", title)
        is_free = key not in others and (len(refs) < 2 or all(key[1] != title for key in others))
        if is_free and not any(title == key[1] and value and len(value[0]) > 1 for key, value in others.items()):
            found[key] = (refs, draw(st.sampled_from(STEPS)))
    return found


@st.composite
def edits(draw: st.DrawFn, state: State) -> Edit:
    ids = list(state.requirements)
    some = st.lists(st.sampled_from(ids), max_size=2, unique=True) if ids else st.just([])
    removed = frozenset(draw(some)[:1])
    left = [id_ for id_ in ids if id_ not in removed]
    free = list(NEW)
    names: dict[str, tuple[str, str]] = {}
    for id_ in draw(some):
        new = draw(st.sampled_from([id_, *free]))
        name = (new, draw(st.sampled_from(TITLES)))
        if id_ in left and name != (id_, state.requirements[id_][0]):
            names[id_] = name
            free = [one for one in free if one != new]
    texts = {id_: draw(st.sampled_from(TEXTS)) for id_ in draw(some) if id_ in left}
    added = {
        id_: (draw(st.sampled_from(TITLES)), draw(st.sampled_from(TEXTS)))
        for id_ in (draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else [])
    }
    return replace(
        draw(scenario_edits(state, [*left, *added], removed)),
        texts={id_: text for id_, text in texts.items() if text != state.requirements[id_][1]},
        names=names,
        removed=removed,
        added=added,
    )


@st.composite
def scenario_edits(draw: st.DrawFn, state: State, ids: list[str], removed: frozenset[str]) -> Edit:
    stay = [key for key, (refs, _) in state.scenarios.items() if not removed.intersection(refs)]
    chosen = draw(st.lists(st.sampled_from(stay), max_size=3, unique=True)) if stay else []
    dropped = frozenset(key for key in chosen if draw(st.booleans()))
    changed = {key: draw(st.sampled_from(STEPS)) for key in chosen if key not in dropped}
    taken = frozenset(state.scenarios)
    busy = {title for _, title in taken if any(t == title and len(v[0]) > 1 for (_, t), v in state.scenarios.items())}
    new = draw(scenarios_of(ids, 2, taken))
    return Edit(
        scenarios={key: steps for key, steps in changed.items() if steps != state.scenarios[key][1]},
        dropped=dropped,
        new_scenarios={key: value for key, value in new.items() if key[1] not in busy},
    )
