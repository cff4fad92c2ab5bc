import pytest

from agentd.domain.terms import CHANGE_ID, Complexity, FindingState, Phase, ReviewVerdict, Role, is_step


@pytest.mark.parametrize("good", ["a", "add-oauth", "0", "a-", "1-2-3", "a" * 64])
def test_valid_change_ids_match(good: str) -> None:
    assert CHANGE_ID.fullmatch(good)


@pytest.mark.parametrize("bad", ["", "-a", "A", "add_oauth", "a b", "a/b", "..", "é", "a\n", "a" * 65])
def test_invalid_change_ids_do_not_match(bad: str) -> None:
    assert not CHANGE_ID.fullmatch(bad)


@pytest.mark.parametrize(
    ("size", "level"),
    [(0, "low"), (4, "low"), (5, "medium"), (10, "medium"), (11, "high"), (20, "high"), (21, "critical")],
)
def test_complexity_level_changes_at_its_thresholds(size: int, level: str) -> None:
    assert Complexity.of(size, 0, 0) == Complexity.of(0, size, 0) == Complexity.of(0, 0, size) == level


def test_example_is_medium_until_it_has_tasks() -> None:
    assert Complexity.of(3, 0, 7) == "medium"
    assert Complexity.of(3, 7, 7) == "high"


def test_disputed_finding_is_still_open() -> None:
    assert [state for state in FindingState if state.is_open] == ["open", "disputed"]


def test_archived_and_dropped_changes_are_not_open() -> None:
    assert [phase for phase in Phase if not phase.is_open] == ["archived", "dropped"]


def test_challenger_and_reviewer_are_judges() -> None:
    assert [role for role in Role if role.is_judge] == ["challenger", "reviewer"]


def test_needs_fix_is_an_alias_for_needs_changes() -> None:
    assert ReviewVerdict("NEEDS_FIX") is ReviewVerdict.NEEDS_CHANGES
    with pytest.raises(ValueError):
        ReviewVerdict("FINE")


@pytest.mark.parametrize("name", ["clarify", "spec-gen-auth-flow", "implement", "implement-user-model", "plan-gen"])
def test_known_step_names_are_recognized(name: str) -> None:
    assert is_step(name)


@pytest.mark.parametrize("name", ["spec-gen-", "spec-gen-Bad Id", "approve", ""])
def test_unknown_step_names_are_rejected(name: str) -> None:
    assert not is_step(name)
