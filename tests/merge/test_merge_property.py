"""Two edits of one spec: merged they are both there, they conflict exactly when they meet, and no other byte moves."""

import re

from hypothesis import assume, given
from hypothesis import strategies as st
from merge_documents import Look, delta, looks, page, read, text_of
from merge_model import Edit, State, aligned, apply, edits, meets, states

from agentd.merge.three_way import MergeResult, merge_spec, rebase_spec, touched_units
from agentd.merge.units import find_conflict_markers


class Case:
    """A base, what others made of it, and a change of one's own, as dicts and as texts."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.base = draw(states())
        self.there, self.edit = draw(edits(self.base)), draw(edits(self.base))
        look = draw(looks)
        self.look = look
        self.other_look = draw(looks)
        self.now = apply(self.base, self.there, self.base)
        self.pieces = page(self.now, look)
        self.main, self.before = text_of(self.pieces), text_of(page(self.base, look))
        self.repeated = draw(st.lists(st.sampled_from(["R1", "R2", "AB-R3", "Fine", "Bad input"]), unique=True))
        self.by_heading = draw(st.booleans())
        self.yours = self.as_delta(self.edit, self.other_look)
        gone = (frozenset(self.base.requirements) - frozenset(self.now.requirements)) | self.edit.removed
        for state in (self.base, self.now):
            assume(len(aligned(state.scenarios, gone)) == len(state.scenarios))

    def as_delta(self, edit: Edit, look: Look) -> str:
        return delta(self.base, edit, look, self.repeated, self.by_heading)

    def __repr__(self) -> str:
        return f"=== base\n{self.before}\n=== main\n{self.main}\n=== yours\n{self.yours}\n{self.there}\n{self.edit}"


cases = st.composite(Case)()


def same(found: State, wanted: State) -> bool:
    return (found.requirements, found.scenarios) == (wanted.requirements, wanted.scenarios)


@given(cases)
def test_generated_pages_are_parsed_as_intended(case: Case) -> None:
    assert same(read(case.before), case.base)
    assert same(read(case.main), case.now)


@given(cases)
def test_merge_has_both_edits_or_a_conflict(case: Case) -> None:
    found = merge_spec(case.main, case.yours, case.before, "s")
    assert bool(found.conflicts) == meets(case.base, case.now, case.edit), found.conflicts
    if found.conflicts:
        assert found.text == case.main
        return
    wanted = apply(case.now, case.edit, case.base)
    assert found.text is not None
    assert same(read(found.text), wanted), found.text
    assert bool(found.touches) == (not same(wanted, case.now))
    kept = (case.base.requirements.keys() | case.now.requirements.keys()) - case.edit.removed - case.edit.names.keys()
    gone = case.base.requirements.keys() - case.now.requirements.keys()
    assert kept - gone <= read(found.text).requirements.keys()


@given(cases)
def test_merging_twice_changes_nothing(case: Case) -> None:
    first = merge_spec(case.main, case.yours, case.before, "s")
    if not first.conflicts:
        assert merge_spec(first.text, case.yours, case.before, "s") == MergeResult(first.text, (), ())


@given(cases)
def test_order_of_two_changes_does_not_affect_the_result(case: Case) -> None:
    texts = [case.yours, case.as_delta(case.there, case.other_look)]
    results = []
    for first, second in (texts, texts[::-1]):
        once = merge_spec(case.before, first, case.before, "s")
        assert not once.conflicts
        results.append(merge_spec(once.text, second, case.before, "s"))
    # What others renamed is not known by its old name: a removal there has nothing to remove.
    is_unseen = any(
        one.removed & other.names.keys() for one, other in ((case.edit, case.there), (case.there, case.edit))
    )
    if not any(one.conflicts for one in results) and not is_unseen:
        assert all(one.text for one in results)
        assert same(*(read(one.text or "") for one in results))


def _is_same(unit: str | tuple[str, str], case: Case, after: State) -> bool:
    if isinstance(unit, str):
        return case.now.requirements.get(unit) == after.requirements.get(unit)
    if unit[0] == "group":
        return unit[1] not in case.edit.names.keys() | case.edit.removed
    return case.now.scenarios.get(unit) == after.scenarios.get(unit)


@given(cases)
def test_bytes_outside_the_changed_units_are_kept(case: Case) -> None:
    found = merge_spec(case.main, case.yours, case.before, "s")
    if found.conflicts or found.text is None:
        return
    mine = case.edit
    after = apply(case.now, mine, case.base)
    runs: list[str] = [""]
    for unit, text in case.pieces:
        is_kept = unit is None or _is_same(unit, case, after)
        # Between two units something new may stand; blank lines beside what is gone may go too.
        if is_kept and not (mine.added or mine.new_scenarios):
            runs[-1] += text
        else:
            runs += [text if is_kept else "", ""]
    at = 0
    for run in runs:
        bare = run.strip("\r\n \t")
        if bare:
            at = found.text.find(bare, at)
            assert at >= 0, run
            at += len(bare)
    assert found.text.startswith("\ufeff") == case.main.startswith("\ufeff")
    assert found.text.endswith("\n") == case.main.endswith("\n")
    assert case.look.newline == "\n" or not re.search(r"(?<!\r)\n", found.text)
    assert case.look.newline == "\r\n" or "\r" not in found.text


@given(cases)
def test_rebased_change_merges_to_the_same_result(case: Case) -> None:
    straight = merge_spec(case.main, case.yours, case.before, "s")
    moved = rebase_spec(case.main, case.yours, case.before, "s")
    assert (moved.conflicts, moved.touches) == (straight.conflicts, straight.touches)
    assert bool(find_conflict_markers(moved.text, "s")) == bool(moved.conflicts)
    if not moved.conflicts:
        again = merge_spec(case.main, moved.text, case.main, "s")
        assert (again.text, again.conflicts) == (straight.text, ())
        assert rebase_spec(case.main, moved.text, case.main, "s").text == moved.text


def solved(text: str, side: int) -> str:
    """The text with one of the three sides kept at every mark."""
    out: list[str] = []
    found = set(find_conflict_markers(text, "s"))
    at = -1
    for number, line in enumerate(re.split(r"(?<=\n)", text), 1):
        if number in found:
            at = -1 if line.startswith(">") else at + 1
        elif at in (-1, side):
            out.append(line)
    return "".join(out)


@given(cases, st.integers(0, 2))
def test_resolved_conflict_markers_merge_without_conflict(case: Case, side: int) -> None:
    moved = rebase_spec(case.main, case.yours, case.before, "s")
    assume(moved.conflicts and not any("taken" in one.why for one in moved.conflicts))
    text = solved(moved.text, side)
    assert not find_conflict_markers(text, "s")
    found = merge_spec(case.main, text, case.main, "s")
    assert not found.conflicts


@given(cases)
def test_touched_units_match_the_effect_on_the_base(case: Case) -> None:
    found = touched_units(case.yours, case.before, "s")
    alone = merge_spec(case.before, case.yours, case.before, "s")
    assert found == alone.touches
    assert bool(found) == (not same(apply(case.base, case.edit, case.base), case.base))
