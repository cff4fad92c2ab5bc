"""A change's spec in the main spec: each rule of the merge on a page small enough to see whole."""

import re
from pathlib import Path

import pytest
from merge_notes import BASE, INSIDE, ONE, delta, merged, of

from agentd.documents import spec
from agentd.merge.spec_changes import SpecTouch, TouchKind, UnitKind
from agentd.merge.three_way import MergeResult, merge_spec, stamp_version, touched_units

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = DATA / "example"


# ---- the example


def test_example_delta_is_merged_as_expected() -> None:
    base, yours, wanted = (
        (folder / "api-endpoints.md").read_text() for folder in (EXAMPLE / "base", EXAMPLE / "specs", DATA / "merge")
    )
    found = merge_spec(base, yours, base, "api-endpoints")
    assert stamp_version(found.text or "", 4, "2026-01-20", "add-oauth", "api-endpoints") == wanted
    assert [(str(one.kind), one.name, str(one.how)) for one in found.touches] == [
        ("requirement", "api-endpoints:R2", "modified"),
        ("requirement", "api-endpoints:R3", "removed"),
        ("requirement", "api-endpoints:R4", "renamed"),
        ("requirement", "api-endpoints:R5", "added"),
        ("scenario", "api-endpoints:R2/Known token", "removed"),
        ("scenario", "api-endpoints:R2/No credentials", "modified"),
        ("scenario", "api-endpoints:R3/Token in the address", "removed"),
        ("scenario", "api-endpoints:R2/Signed-in user", "added"),
        ("scenario", "api-endpoints:R5/Sign-out", "added"),
        ("scenario", "api-endpoints:R5/Unknown provider", "added"),
    ]


@pytest.mark.parametrize("name", ["auth-flow", "user-model"])
def test_new_spec_is_copied(name: str) -> None:
    yours = (EXAMPLE / "specs" / f"{name}.md").read_text()
    found = merge_spec(None, yours, None, name)
    assert (found.text, found.conflicts) == (yours, ())
    assert {one.how for one in found.touches} == {TouchKind.ADDED}
    assert merge_spec(yours, yours, None, name) == MergeResult(yours, (), ())


def test_delta_without_a_main_spec_becomes_a_spec() -> None:
    yours = delta(requirements="### R1: A\n\na\n", removed="- R2: B\n", renamed="- R3: C → R3: D\n")
    text = merged(None, yours, None)
    assert "base_version" not in text and "Removed" not in text and "Renamed" not in text
    assert text.endswith("## Requirements\n\n### R1: A\n\na\n")


# ---- in place


def test_modified_requirement_keeps_its_position() -> None:
    yours = delta(requirements="### R1: Write\n\nOne *writes*.\n\n- a\n")
    assert merged(BASE, yours) == of(BASE, "One writes.", "One *writes*.\n\n- a")


def test_entry_equal_to_the_base_changes_nothing() -> None:
    yours = delta(
        requirements="### R1 - Write\n\nOne writes.   \n\n### R2: Read\n",
        criteria="#### Scenario: Lost\n\n\n- **WHEN** it is nowhere\n- **THEN** 404\n",
    )
    assert touched_units(yours, BASE, "notes") == ()
    main = of(BASE, "One writes.", "One wrote.")
    assert merge_spec(main, yours, BASE, "notes") == MergeResult(main, (), ())


def test_title_can_be_changed_by_rename_or_entry() -> None:
    wanted = of(BASE, "### R1: Write", "### R1: Write → store")
    assert merged(BASE, delta(renamed="- R1: Write → R1: Write → store\n")) == wanted
    assert merged(BASE, delta(requirements="### R1: Write → store\n")) == wanted
    assert touched_units(delta(requirements="### R1: Store\n"), BASE, "notes") == (
        SpecTouch(UnitKind.REQUIREMENT, "notes:R1", TouchKind.RENAMED),
    )


def test_new_id_replaces_only_structured_references() -> None:
    main = BASE.replace("R1, R2", "`notes:R1`, R2")
    text = merged(main, delta(renamed="- R1: Write → R7: Store\n"), main)
    wanted = main.replace("### R1: Write", "### R7: Store").replace("**: R1\n", "**: R7\n")
    assert text == wanted.replace("`notes:R1`", "`R7`")
    assert "R1 and R2 in prose" in text


def test_rename_without_a_title_keeps_the_title() -> None:
    assert "### R7: Write\n" in merged(BASE, delta(renamed="- R1 → R7\n"))


def test_renamed_requirement_can_be_changed_under_its_new_id() -> None:
    yours = delta(
        requirements="### R7: Store\n\nOne stores.\n",
        renamed="- R1: Write → R7: Store\n",
        criteria="### Scenario: Written\n\n- **Requirement**: R1\n- **WHEN** one stores\n- **THEN** it is there\n",
    )
    text = merged(BASE, yours)
    assert "### R7: Store\n\nOne stores.\n\n### R2: Read" in text
    assert "- **Requirement**: R7\n- **WHEN** one stores" in text
    assert touched_units(yours, BASE, "notes")[:3] == (
        SpecTouch(UnitKind.REQUIREMENT, "notes:R1", TouchKind.RENAMED),
        SpecTouch(UnitKind.REQUIREMENT, "notes:R7", TouchKind.RENAMED),
        SpecTouch(UnitKind.REQUIREMENT, "notes:R1", TouchKind.MODIFIED),
    )


def test_removing_a_requirement_removes_its_scenarios_except_shared_ones() -> None:
    text = merged(BASE, delta(removed="- R1: Write\n  - **Reason**: over\n"))
    wanted = of(BASE, "### R1: Write\n\nOne writes.\n\n", "")
    wanted = wanted.replace(BASE[BASE.index("### Scenario: Written") : BASE.index("### Scenario: Both")], "")
    assert text == of(wanted, "R1, R2\n", "R2\n")


def test_removing_the_last_unit_leaves_no_trailing_blank_lines() -> None:
    main = BASE[: BASE.index("\n## Appendix")]
    text = merged(main, delta(removed="- Scenario: Lost\n"), main)
    assert text == main[: main.index("\n### Scenario: Lost")]


def test_larger_run_of_blank_lines_around_a_removed_unit_is_kept() -> None:
    main = "## Requirements\n### R1: A\na\n### R2: B\nb\n\n\n### R3: C\nc\n## Acceptance Criteria\n"
    assert merged(main, delta(removed="- R2\n"), main) == main.replace("### R2: B\nb\n", "")
    text = merged(main, delta(removed="- R3\n- R2\n"), main)
    assert text == "## Requirements\n### R1: A\na\n\n\n## Acceptance Criteria\n"


def test_scenario_is_removed_by_title_and_requirement_if_ambiguous() -> None:
    twice = "### Scenario: Written\n\n- **Requirement**: R2\n- **WHEN** x\n- **THEN** y\n"
    main = of(BASE, "### Scenario: Lost", twice + "\n### Scenario: Lost")
    pinned = delta(removed="- Scenario: Written\n  - **Requirement**: R2\n")
    assert merged(main, pinned, main) == BASE
    assert [one.name for one in touched_units(pinned, main, "notes")] == ["notes:R2/Written"]
    assert [one.name for one in touched_units(delta(removed="- Scenario: Lost\n"), main, "notes")] == ["notes:/Lost"]


def test_scenario_can_move_to_another_requirement() -> None:
    moved = "### Scenario: Written\n\n- **Requirement**: R2\n- **WHEN** one writes\n- **THEN** it is there\n"
    yours = delta(removed="- Scenario: Written\n", criteria=moved)
    text = merged(BASE, yours)
    assert text.count("Scenario: Written") == 1
    assert {one.name: one.requirement for one in spec.parse_spec(text, "x").scenarios}["Written"] == "R2"


# ---- new ones


def test_new_units_are_added_after_similar_ones_with_one_blank_line() -> None:
    yours = delta(
        requirements="### R9: Nine\n\nnine\n\n\n\n### R3: Three\nthree\n",
        criteria=f"### Scenario: Of 9\n\n- **Requirement**: R9\n{ONE}\n"
        f"### Scenario: Of 1\n- **Requirement**: R1\n{ONE}\n\n### Scenario: Of all\n\n{ONE}",
    )
    text = merged(BASE, yours)
    text = of(text, "\n### R9: Nine\n\nnine\n\n### R3: Three\nthree\n", "")
    text = of(text, f"\n### Scenario: Of 1\n- **Requirement**: R1\n{ONE}", "")
    text = of(text, f"\n### Scenario: Of all\n\n{ONE}", "")
    text = of(text, f"\n### Scenario: Of 9\n\n- **Requirement**: R9\n{ONE}", "")
    assert text == BASE
    found = spec.parse_spec(merged(BASE, yours), "x")
    assert [one.id for one in found.requirements] == ["R1", "R2", "R9", "R3"]
    assert [one.name for one in found.scenarios] == ["Written", "Both", "Of 1", "Lost", "Of all", "Of 9"]


def test_new_unit_is_separated_by_a_blank_line() -> None:
    main = "## Requirements\n### R1: A\na\n## Acceptance Criteria\n"
    text = merged(main, delta(requirements="### R2: B\nb\n"), main)
    assert text == "## Requirements\n### R1: A\na\n\n### R2: B\nb\n\n## Acceptance Criteria\n"


def test_scenarios_of_a_new_requirement_stay_together() -> None:
    entries = [
        f"### Scenario: {name}\n\n- **Requirement**: {id_}\n{ONE}"
        for name, id_ in (("A", "R8"), ("B", "R9"), ("C", "R8"))
    ]
    yours = delta(requirements="### R8: X\n\nx\n\n### R9: Y\n\ny\n", criteria="\n".join(entries))
    assert [one.name for one in spec.parse_spec(merged(BASE, yours), "x").scenarios][-3:] == ["A", "C", "B"]


def test_new_scenarios_are_nested_where_the_main_spec_nests_them() -> None:
    yours = delta(
        requirements="### R9: Nine\n\nnine\n",
        criteria=f"### Scenario: Of 1\n\n- **Requirement**: R1\n{ONE}\n##### Detail\n\nd\n\n"
        f"### Scenario: Of 9\n\n- **Requirement**: R9\n{ONE}\n### Scenario: Of 2\n\n- **Requirement**: R2\n{ONE}",
    )
    text = merged(INSIDE, yours, INSIDE)
    assert (
        f"WHEN a THEN b\n\n#### Scenario: Of 1\n\n- **Requirement**: R1\n{ONE}\n###### Detail\n\nd\n\n#### Notes"
        in text
    )
    assert f"One reads.\n\n#### Scenario: Of 2\n\n- **Requirement**: R2\n{ONE}\n### R9: Nine\n\nnine\n\n#### Sc" in text
    assert text.endswith(f"#### Scenario: Of 9\n\n- **Requirement**: R9\n{ONE}\n## Appendix\n")


def test_scenario_moved_out_of_its_requirement_names_it() -> None:
    yours = delta(
        requirements="### R2: Read\n\n"
        "#### Scenario: Fine\n\n- WHEN a\n- THEN b\n\n#### Scenario: Bad\n\nWHEN c THEN d\n"
    )
    text = merged(BASE, yours)
    assert "### Scenario: Fine\n\n- **Requirement**: R2\n- WHEN a\n- THEN b\n" in text
    assert "### Scenario: Bad\n\n- **Requirement**: R2\n\nWHEN c THEN d\n" in text
    assert "One reads." in text


def test_requirement_text_is_changed_around_its_nested_scenarios() -> None:
    yours = delta(requirements="### R1: Write\n\nOne stores.\n\n##### Deep\n\nd\n")
    text = merged(INSIDE, yours, INSIDE)
    scenario = "#### Scenario: Written\n\nWHEN a THEN b\n"
    assert f"### R1: Write\n\nOne stores.\n\n##### Deep\n\nd\n\n{scenario}\n### R2: Read" in text


def test_text_after_the_last_nested_scenario_belongs_to_the_requirement() -> None:
    main = INSIDE[: INSIDE.index("### R2: Read")]
    assert merged(main, delta(removed="- R1\n"), main) == "## Requirements\n\n"


def test_groups_under_acceptance_criteria_follow_their_requirement() -> None:
    groups = f"### R1: A\n\n#### Scenario: X\n\n{ONE}\n### R2\n\n#### Scenario: Y\n\n{ONE}"
    main = f"### R1: A\n\na\n\n### R2: B\n\nb\n\n## Acceptance Criteria\n\n{groups}"
    text = merged(main, delta(renamed="- R1: A → R5: E\n", removed="- R2: B\n"), main)
    assert text == f"### R5: E\n\na\n\n## Acceptance Criteria\n\n### R5: A\n\n#### Scenario: X\n\n{ONE}"
    text = merged(main, delta(criteria=f"### Scenario: Of all\n\n{ONE}"), main)
    assert f"## Acceptance Criteria\n\n### Scenario: Of all\n\n{ONE}\n### R1: A\n" in text


def test_missing_section_headings_are_created() -> None:
    main = "# Spec: Notes\n\n## Overview\n\nWhat notes are.\n\n## Appendix\n\nx"
    yours = delta(requirements="### R1: A\n\na\n", criteria=f"### Scenario: X\n\n- **Requirement**: R1\n{ONE}")
    assert merged(main, yours, main) == (
        "# Spec: Notes\n\n## Overview\n\nWhat notes are.\n\n## Requirements\n\n### R1: A\n\na\n\n## Appendix\n\nx\n\n"
        "## Acceptance Criteria\n\n### Scenario: X\n\n- **Requirement**: R1\n- **WHEN** a\n- **THEN** b"
    )
    assert merged("", yours, "").startswith("## Requirements\n\n### R1: A\n\na\n\n## Acceptance Criteria\n\n### Scen")


def test_line_endings_byte_order_mark_and_missing_final_newline_are_kept() -> None:
    main = "\ufeff" + BASE.rstrip("\n").replace("\n", "\r\n")
    yours = delta(
        requirements="### R1: Write\n\nOne stores.\n\n### R3: C\n\nc\n",
        removed="- R2\n",
        criteria=f"### Scenario: New\n\n{ONE}",
    )
    text = merged(main, yours, main)
    plain = merged(BASE, yours)
    assert text == "\ufeff" + plain.rstrip("\n").replace("\n", "\r\n")
    assert merged(BASE, yours.replace("\n", "\r\n")) == plain


def test_requirement_pattern_without_a_title_is_supported() -> None:
    pattern = re.compile(r"^## (REQ-\d+)")
    scenario = "### Scenario: X\n\n- Requirement: REQ-1\n- WHEN a\n- THEN b\n"
    main = f"## REQ-1 Write\n\nOne writes.\n\n## Acceptance Criteria\n\n{scenario}"
    assert "## REQ-7 Write\n" in merged(main, delta(renamed="- REQ-1 → REQ-7\n"), main, pattern)
    assert "Requirement: REQ-7\n" in merged(main, delta(renamed="- REQ-1 → REQ-7\n"), main, pattern)
    yours = "## REQ-1 Store\n\nOne stores.\n\n## REQ-2 Read\n\nOne reads.\n"
    text = merged(main, yours, main, pattern)
    assert text.startswith("## REQ-1 Store\n\nOne stores.\n\n## REQ-2 Read\n\nOne reads.\n\n## Acc")


# ---- frontmatter


def test_version_stamp_keeps_every_other_byte() -> None:
    text = "---\nid: x  # mine\n# a note\nversion: 3 # third\n\nother: [a,\n  b]\n---\n# Spec\n---\nversion: 9\n"
    assert stamp_version(text, 4, "2026-01-20", "add-x", "x") == (
        "---\nid: x  # mine\n# a note\nversion: 4 # third\n\nother: [a,\n  b]\n"
        "archived: 2026-01-20\nchange: add-x\n---\n# Spec\n---\nversion: 9\n"
    )
    crlf = text.replace("\n", "\r\n")
    assert stamp_version(crlf, 4, "2026-01-20", "add-x", "x") == stamp_version(
        text, 4, "2026-01-20", "add-x", "x"
    ).replace("\n", "\r\n")
    once = stamp_version(text, 4, "2026-01-20", "add-x", "x")
    assert stamp_version(once, 4, "2026-01-20", "add-x", "x") == once


def test_version_stamp_adds_missing_frontmatter() -> None:
    assert stamp_version("# Spec\n", 1, "2026-01-20", "add-x", "x") == (
        "---\nversion: 1\narchived: 2026-01-20\nchange: add-x\n---\n\n# Spec\n"
    )
