"""Where two changes meet, nothing is lost in silence: the merge stops with three texts, or says what is unclear."""

import re

import pytest
from merge_notes import BASE, INSIDE, ONE, delta, merged, of

from agentd.domain.errors import FormatInvalid
from agentd.merge.spec_changes import SpecConflict, UnitKind
from agentd.merge.three_way import MergeResult, merge_spec

R1 = "### R1: Write\n\nOne writes."
WRITTEN = "### Scenario: Written\n\n- **Requirement**: R1\n- **WHEN** one writes\n- **THEN** it is there"
WITHOUT_R1 = of(of(of(BASE, f"{R1}\n\n", ""), f"{WRITTEN}\n\n", ""), "R1, R2\n", "R2\n")


def conflicts(main: str | None, yours: str, base: str | None = BASE) -> list[SpecConflict]:
    found = merge_spec(main, yours, base, "notes")
    assert found.text == main
    return list(found.conflicts)


def only(main: str | None, yours: str, base: str | None = BASE) -> tuple[str, str, str | None, str | None, str | None]:
    (found,) = conflicts(main, yours, base)
    return found.kind, found.name, found.base, found.theirs, found.yours


def test_text_changed_on_both_sides_conflicts() -> None:
    main = of(BASE, "One writes.", "One types.")
    yours = delta(requirements="### R1: Write\n\nOne stores.\n")
    assert only(main, yours) == (
        "requirement",
        "notes:R1",
        R1,
        R1.replace("writes", "types"),
        R1.replace("writes", "stores"),
    )
    assert merged(main, delta(requirements="### R1: Write\n\nOne types.\n")) == main


def test_heading_change_and_text_change_do_not_conflict() -> None:
    main = of(BASE, "One writes.", "One types.")
    assert merged(main, delta(renamed="- R1: Write → R7: Store\n")).count("### R7: Store\n\nOne types.\n") == 1
    main = of(BASE, "R1: Write", "R1: Type")
    assert "### R1: Type\n\nOne stores.\n" in merged(main, delta(requirements="### R1: Write\n\nOne stores.\n"))


def test_heading_changed_on_both_sides_conflicts() -> None:
    main = of(BASE, "R1: Write", "R1: Type")
    texts = ("### R1: Write", "### R1: Type")
    assert only(main, delta(renamed="- R1: Write → R1: Store\n")) == (
        UnitKind.HEADING,
        "notes:R1",
        *texts,
        "### R1: Store",
    )
    assert only(main, delta(requirements="### R1: Store\n")) == (UnitKind.HEADING, "notes:R1", *texts, "### R1: Store")
    assert only(main, delta(renamed="- R1 → R7\n")) == (UnitKind.HEADING, "notes:R1", *texts, "### R7: Write")
    assert merged(main, delta(renamed="- R1: Write → R1: Type\n")) == main


def test_unit_changed_here_and_removed_there_conflicts() -> None:
    yours = delta(requirements="### R1: Write\n\nOne stores.\n")
    assert only(WITHOUT_R1, yours) == ("requirement", "notes:R1", R1, None, R1.replace("writes", "stores"))
    renamed = only(WITHOUT_R1, delta(renamed="- R1: Write → R7: Store\n"))
    assert renamed == ("requirement", "notes:R1", R1, None, R1.replace("R1: Write", "R7: Store"))
    changed = WRITTEN.replace("one writes", "one stores")
    assert only(WITHOUT_R1, delta(criteria=changed)) == ("scenario", "notes:R1/Written", WRITTEN, None, changed)
    assert merged(WITHOUT_R1, delta(removed="- R1: Write\n")) == WITHOUT_R1


def test_scenario_added_to_a_requirement_removed_by_others_conflicts() -> None:
    new = f"### Scenario: New\n\n- **Requirement**: R1\n{ONE}".rstrip()
    assert only(WITHOUT_R1, delta(criteria=new)) == ("scenario", "notes:R1/New", None, None, new)
    shared = new.replace("R1", "R1, R2")
    assert only(WITHOUT_R1, delta(criteria=shared)) == ("scenario", "notes:R2/New", None, None, shared)


def test_unit_removed_here_and_changed_there_conflicts() -> None:
    yours = delta(removed="- R1: Write\n")
    main = of(BASE, "One writes.", "One types.")
    assert only(main, yours) == ("requirement", "notes:R1", R1, R1.replace("writes", "types"), None)
    main = of(BASE, "R1: Write", "R1: Type")
    assert only(main, yours) == ("requirement", "notes:R1", R1, R1.replace("R1: Write", "R1: Type"), None)
    changed = WRITTEN.replace("one writes", "one types")
    main = of(BASE, WRITTEN, changed)
    assert only(main, yours) == ("scenario", "notes:R1/Written", WRITTEN, changed, None)
    assert only(main, delta(removed="- Scenario: Written\n")) == (
        "scenario",
        "notes:R1/Written",
        WRITTEN,
        changed,
        None,
    )
    new = f"### Scenario: New\n\n- **Requirement**: R1\n{ONE}"
    main = of(BASE, "### Scenario: Lost", f"{new}\n### Scenario: Lost")
    assert only(main, yours) == ("scenario", "notes:R1/New", None, new.rstrip(), None)


def test_others_edits_of_a_shared_scenario_survive_a_requirement_removal() -> None:
    main = of(BASE, "one writes and reads", "one types and reads")
    assert "- **Requirement**: R2\n- **WHEN** one types and reads" in merged(main, delta(removed="- R1\n"))
    yours = delta(
        criteria="### Scenario: Both\n\n- **Requirement**: R1, R2\n- **WHEN** one x\n- **THEN** it is the same\n"
    )
    assert "- **Requirement**: R2\n- **WHEN** one x\n" in merged(WITHOUT_R1, yours)


def test_unit_added_differently_on_both_sides_conflicts() -> None:
    main = of(BASE, "\n## Flow", "\n### R3: New\n\nNew.\n\n## Flow")
    yours = delta(requirements="### R3: New\n\nOther.\n")
    assert only(main, yours) == ("requirement", "notes:R3", None, "### R3: New\n\nNew.", "### R3: New\n\nOther.")
    assert merged(main, delta(requirements="### R3: New\n\nNew.\n")) == main
    main = of(BASE, "### Scenario: Lost", f"### Scenario: New\n\n{ONE}\n### Scenario: Lost")
    found = only(main, delta(criteria="### Scenario: New\n\nWHEN x THEN y\n"))
    assert found == (
        "scenario",
        "notes:/New",
        None,
        f"### Scenario: New\n\n{ONE}".rstrip(),
        "### Scenario: New\n\nWHEN x THEN y",
    )


def test_two_new_specs_with_the_same_name_are_merged_by_requirement() -> None:
    one = "# Spec: A\n\n## Overview\n\nmine\n\n## Requirements\n\n### R1: A\n\na\n\n### R2: B\n\nb\n"
    other = "# Spec: A\n\n## Overview\n\ntheirs\n\n## Requirements\n\n### R1: A\n\na\n\n### R3: C\n\nc\n"
    assert merged(other, one, None) == other + "\n### R2: B\n\nb\n"
    assert [found.name for found in conflicts(other.replace("\na\n", "\nx\n"), one, None)] == ["notes:R1"]


def test_rename_to_an_id_taken_by_others_conflicts() -> None:
    main = of(BASE, "\n## Flow", "\n### R7: Seven\n\nSeven.\n\n## Flow")
    (found,) = conflicts(main, delta(renamed="- R1: Write → R7: Store\n"))
    assert (found.kind, found.base, found.theirs, found.yours) == (
        UnitKind.HEADING,
        "### R1: Write",
        "### R7: Seven",
        "### R7: Store",
    )
    assert found.why == "renamed here to R7, which is taken in the main spec"
    before = of(BASE, "### R1: Write", "### R7: Seven\n\nSeven.\n\n### R1: Write")
    assert conflicts(before, delta(renamed="- R1: Write → R7: Store\n")) == [found]


def test_same_rename_on_both_sides_does_not_conflict() -> None:
    main = of(BASE, "R1: Write", "R7: Store").replace("**: R1\n", "**: R7\n").replace("**: R1,", "**: R7,")
    assert merged(main, delta(renamed="- R1: Write → R7: Store\n")) == main
    yours = delta(renamed="- R1: Write → R7: Store\n", requirements="### R7: Store\n\nOne stores.\n")
    assert merged(main, yours) == of(main, "One writes.", "One stores.")


def test_requirement_renamed_by_others_counts_as_removed() -> None:
    main = merged(BASE, delta(renamed="- R1: Write → R7: Store\n"))
    yours = delta(requirements="### R1: Write\n\nOne types.\n")
    assert only(main, yours) == ("requirement", "notes:R1", R1, None, R1.replace("writes", "types"))
    assert merged(main, delta(removed="- R1: Write\n")) == main
    written = WRITTEN.replace("R1", "R7")
    assert only(main, delta(removed="- Scenario: Written\n")) == ("scenario", "notes:R7/Written", None, written, None)


@pytest.mark.parametrize("section", ["removed", "renamed"])
def test_removal_or_rename_of_a_unit_added_later_conflicts(section: str) -> None:
    entry = "- R9: Nine" if section == "removed" else "- R9: Nine → R9: Nein"
    yours = delta(removed=entry) if section == "removed" else delta(renamed=entry)
    assert merge_spec(BASE, yours, BASE, "notes") == MergeResult(BASE, (), ())
    main = of(BASE, "\n## Flow", "\n### R9: Nine\n\nnine\n\n## Flow")
    assert only(main, yours) == ("requirement", "notes:R9", None, "### R9: Nine\n\nnine", None)
    main = of(BASE, "### Scenario: Lost", f"### Scenario: New\n\n{ONE}\n### Scenario: Lost")
    scenario = delta(removed="- Scenario: New")
    assert merge_spec(BASE, scenario, BASE, "notes") == MergeResult(BASE, (), ())
    assert only(main, scenario) == ("scenario", "notes:/New", None, f"### Scenario: New\n\n{ONE}".rstrip(), None)


def test_change_to_a_deleted_spec_conflicts() -> None:
    yours = delta(requirements="### R1: Write\n\nOne stores.\n")
    assert only(None, yours) == ("spec", "notes", BASE, None, yours)
    assert merge_spec(None, delta(requirements=f"{R1}\n"), BASE, "notes") == MergeResult(None, (), ())


def test_different_scenarios_of_one_requirement_are_both_merged() -> None:
    first = merged(BASE, delta(criteria=f"### Scenario: One\n\n- **Requirement**: R1\n{ONE}"))
    second = merged(first, delta(criteria=f"### Scenario: Two\n\n- **Requirement**: R1\n{ONE}"))
    assert "Scenario: One" in second and "Scenario: Two" in second


# ---- what cannot be read in one way only

TWICE = "### R1: A\n\na\n\n### R1: B\n\nb\n"


@pytest.mark.parametrize(
    ("yours", "told"),
    [
        (delta(requirements=TWICE), "specs/notes.md:18: R1 occurs twice, first on line 14"),
        (delta(criteria=f"### Scenario: X\n\n{ONE}\n### Scenario: X\n\n{ONE}"), "the scenario 'X' occurs twice"),
        (delta(requirements="### Login\n\na\n\n### R3: C\n\nc\n"), "'Login' is not a requirement and would be lost"),
        (delta(requirements="### R3\n\na\n"), "'R3' cannot be read as a requirement"),
        (delta(removed="- the old one\n"), "'the old one' names no requirement and no scenario"),
        (delta(requirements="### R3: C\n\n```\nopen\n"), "a code fence or comment is not closed; close it with ```"),
        (delta(requirements="### R1: A\n\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"), ":16: an unresolved conflict"),
        (delta(requirements=f"{R1}\n", removed="- R1\n"), "R1 is removed and written as well"),
        (delta(removed="- R1\n- R1: Write\n"), "R1 is removed twice"),
        (delta(removed="- R1\n", renamed="- R1 → R7\n"), "R1 → R7: one of the two is removed as well"),
        (delta(removed="- R7\n", renamed="- R1 → R7\n"), "R1 → R7: one of the two is removed as well"),
        (delta(renamed="- R1: A → R2: B\n"), "R1 cannot become R2: that id is taken"),
        (delta(renamed="- R1 → R7\n- R2 → R7\n"), "one of the two is renamed twice"),
        (delta(renamed="- R1: Write → R1: Write\n"), "R1 keeps its name"),
        (
            delta(renamed="- R1 → R7\n", requirements=f"{R1}\n"),
            "R1 is renamed to R7 and written as well; write it as R7",
        ),
        (
            delta(renamed="- R1: Write → R1: A\n", requirements="### R1: B\n"),
            "one title under Renamed and another here",
        ),
        (delta(removed="- R1\n", criteria=f"{WRITTEN}\n"), "'Written' is of R1, which is removed"),
        (delta(removed="- Scenario: Written\n", criteria=f"{WRITTEN}\n"), "'Written' is removed and written as well"),
    ],
)
def test_self_contradictory_change_is_refused(yours: str, told: str) -> None:
    with pytest.raises(FormatInvalid, match=re.escape(told)) as error:
        merge_spec(BASE, yours, BASE, "notes")
    assert error.value.message.startswith("specs/notes.md:")


@pytest.mark.parametrize(
    ("main", "base", "told"),
    [
        (TWICE, BASE, "agentd/specs/notes.md:5: R1 occurs twice, first on line 1"),
        (BASE, TWICE, "base/notes.md:5: R1 occurs twice, first on line 1"),
        (
            BASE.replace("### R1: Write", "### R1"),
            BASE,
            "agentd/specs/notes.md:14: 'R1' cannot be read as a requirement",
        ),
        (
            of(BASE, "R1 and R2 in prose.", "```"),
            BASE,
            "agentd/specs/notes.md:49: a code fence or comment is not closed",
        ),
    ],
)
def test_unreadable_main_spec_or_base_is_named(main: str, base: str, told: str) -> None:
    with pytest.raises(FormatInvalid, match=re.escape(told)):
        merge_spec(main, delta(requirements="### R3: C\n\nc\n"), base, "notes")


def test_ambiguous_scenario_title_is_refused() -> None:
    twice = f"### Scenario: Written\n\n- **Requirement**: R2\n{ONE}"
    main = of(BASE, "### Scenario: Lost", f"{twice}\n### Scenario: Lost")
    with pytest.raises(FormatInvalid, match="'Written' is a scenario of R1 and R2; write"):
        merge_spec(main, delta(removed="- Scenario: Written\n"), main, "notes")


def test_merge_that_would_duplicate_a_scenario_is_refused() -> None:
    twice = f"### Scenario: Both\n\n- **Requirement**: R2\n{ONE}"
    main = of(BASE, "### Scenario: Lost", f"{twice}\n### Scenario: Lost")
    with pytest.raises(FormatInvalid, match="two scenarios 'Both' would be of R2"):
        merge_spec(main, delta(removed="- R1\n"), main, "notes")


def test_result_that_would_be_parsed_differently_is_refused() -> None:
    """The heading goes to another level than its text can bear."""
    yours = delta(criteria=f"### Scenario: New\n\n- **Requirement**: R1\n{ONE}\n###### Six\n\nx\n\n##### Five\n\ny\n")
    main = INSIDE.replace("#### ", "##### ")
    with pytest.raises(FormatInvalid, match=r"specs/notes.md:1: 'Scenario: New' would not read back as intended"):
        merge_spec(main, yours, main, "notes")


def test_notes_among_the_requirements_of_the_main_spec_are_kept() -> None:
    main = of(BASE, "## Flow", "### Notes\n\nAbout R1.\n\n## Flow")
    text = merged(main, delta(requirements="### R3: C\n\nc\n"), main)
    assert text == of(main, "### Notes", "### R3: C\n\nc\n\n### Notes")
