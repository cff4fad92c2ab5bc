"""A change brought onto the specs of today: what others did is taken in, what both did is marked."""

import pytest
from merge_notes import BASE, ONE, delta, merged, of

from agentd.domain.errors import FormatInvalid
from agentd.merge.three_way import merge_spec, rebase_spec
from agentd.merge.units import find_conflict_markers

WITHOUT_R1 = merged(BASE, delta(removed="- R1\n"))


def rebased(main: str | None, yours: str, base: str | None = BASE) -> str:
    found = rebase_spec(main, yours, base, "notes")
    assert found.conflicts == ()
    assert find_conflict_markers(found.text, "x") == ()
    assert (
        main is None or merge_spec(main, found.text, main, "notes").text == merge_spec(main, yours, base, "notes").text
    )
    return found.text


def open_at(main: str | None, yours: str, base: str | None = BASE) -> str:
    """The text with its marks."""
    found = rebase_spec(main, yours, base, "notes")
    assert found.conflicts == merge_spec(main, yours, base, "notes").conflicts != ()
    assert find_conflict_markers(found.text, "x")
    return found.text


def block(yours: str, base: str, theirs: str) -> str:
    return f"<<<<<<< yours\n{yours}||||||| base\n{base}=======\n{theirs}>>>>>>> theirs\n"


def test_rebase_without_overlap_only_updates_the_version() -> None:
    yours = delta(requirements="### R1 - Write\n\nOne   stores.\n\n\n\n", removed="- Scenario: Lost\n", criteria=ONE)
    main = of(BASE, "version: 2", "version: 7").replace("One reads.", "One reads twice.")
    assert rebased(main, yours) == of(yours, "base_version: 2", "base_version: 7")
    assert rebased(BASE, yours) == yours


def test_unchanged_entries_are_updated_from_the_main_spec() -> None:
    yours = delta(
        requirements="### R1: Write\n\nOne stores.\n\n### R2: Peruse\n\nOne reads.\n",
        criteria="### Scenario: Lost\n\n- **WHEN** it is nowhere\n- **THEN** 404\n",
    )
    main = of(of(of(BASE, "R1: Write", "R1: Type"), "One reads.", "One reads twice."), "404", "410")
    text = rebased(main, yours)
    assert "### R1: Type\n\nOne stores.\n\n### R2: Peruse\n\nOne reads twice.\n" in text
    assert "**THEN** 410" in text


def test_unchanged_entries_removed_by_others_are_dropped() -> None:
    yours = delta(
        requirements="### R1: Write\n\nOne writes.\n\n### R2: Read\n\nOne peruses.\n",
        criteria=BASE[BASE.index("### Scenario: Written") : BASE.index("### Scenario: Both")],
    )
    text = rebased(WITHOUT_R1, yours)
    assert "R1" not in text and "Written" not in text
    assert "One peruses." in text


def test_shared_scenario_no_longer_names_a_removed_requirement() -> None:
    changed = "### Scenario: Both\n\n- **Requirement**: R1, R2\n- **WHEN** x\n- **THEN** y\n"
    assert "- **Requirement**: R2\n- **WHEN** x\n" in rebased(WITHOUT_R1, delta(criteria=changed))


def test_removed_scenario_names_its_requirement_when_the_title_became_ambiguous() -> None:
    twice = f"### Scenario: Written\n\n- **Requirement**: R2\n{ONE}"
    main = of(BASE, "### Scenario: Lost", f"{twice}\n### Scenario: Lost")
    text = rebased(main, delta(removed="- Scenario: Written\n  - **Reason**: over\n"))
    assert "- Scenario: Written\n  - **Reason**: over\n  - **Requirement**: R1\n" in text
    spec_wide = of(
        BASE, "### Scenario: Both", f"### Scenario: Lost\n\n- **Requirement**: R2\n{ONE}\n### Scenario: Both"
    )
    assert "- Scenario: Lost\n  - **Requirement**: none\n" in rebased(spec_wide, delta(removed="- Scenario: Lost\n"))


def test_new_spec_that_exists_by_now_becomes_a_delta() -> None:
    yours = BASE.replace("version: 2", "version: 1")
    main = of(BASE, "\n## Flow", "\n### R9: Nine\n\nnine\n\n## Flow")
    assert rebased(main, yours, None) == of(yours, "version: 1", "base_version: 2")
    text = open_at(of(main, "One reads.", "One peruses."), yours, None)
    assert block("### R2: Read\n\nOne reads.\n", "", "### R2: Read\n\nOne peruses.\n") in text
    assert rebased(None, yours, None) == yours


def test_text_changed_on_both_sides_is_marked_under_one_heading() -> None:
    main = of(of(BASE, "One writes.", "One types."), "R1: Write", "R1: Type")
    text = open_at(main, delta(requirements="### R1: Write\n\nOne stores.\n\n### R2: Read\n\nOne peruses.\n"))
    sides = (f"### R1: Type\n\nOne {word}.\n" for word in ("stores", "writes", "types"))
    assert f"## Requirements\n\n{block(*sides)}\n### R2: Read\n\nOne peruses.\n" in text


def test_scenario_below_a_marked_heading_names_its_requirement() -> None:
    main = of(BASE, "\n## Flow", "\n### R3: New\n\nNew.\n\n## Flow")
    text = open_at(main, delta(requirements="### R3: New\n\nOther.\n\n#### Scenario: Of 3\n\nWHEN a THEN b\n"))
    assert ">>>>>>> theirs\n\n#### Scenario: Of 3\n\n- **Requirement**: R3\n\nWHEN a THEN b\n" in text


def test_scenario_changed_on_both_sides_is_marked() -> None:
    old, mine, other = (
        f"### Scenario: Lost\n\n- **WHEN** it is nowhere\n- **THEN** {code}\n" for code in (404, 410, 500)
    )
    assert block(mine, old, other) in open_at(of(BASE, "404", "500"), delta(criteria=mine))


def test_conflicting_removal_is_marked_at_its_line() -> None:
    main = of(BASE, "One writes.", "One types.")
    text = open_at(main, delta(removed="- R1: Write\n  - **Reason**: over\n- R2: Read\n"))
    base, theirs = (f"<!--\n### R1: Write\n\nOne {word}.\n-->\n" for word in ("writes", "types"))
    assert block("- R1: Write\n  - **Reason**: over\n", base, theirs) + "- R2: Read\n" in text


def test_removed_scenario_moved_by_others_names_its_new_requirement() -> None:
    main = merged(BASE, delta(renamed="- R1: Write → R7: Store\n"))
    mine = "- Scenario: Written\n  - **Requirement**: {}\n"
    text = open_at(main, delta(removed=mine.format("R1")))
    start = text.index("<<<<<<<")
    assert text[start:].startswith(f"<<<<<<< yours\n{mine.format('R7')}||||||| base\n=======\n<!--\n### Scenario: Wri")
    assert "Written" not in merged(main, text[:start] + mine.format("R7"), main)


def test_comment_in_a_marked_text_is_escaped() -> None:
    main = of(BASE, "One writes.", "One types. <!-- x -->\n\n<!--\ny\n-->")
    text = open_at(main, delta(removed="- R1: Write\n"))
    assert len(find_conflict_markers(text, "x")) == 4
    assert "y\n--&gt;\n-->\n>>>>>>> theirs\n" in text


def test_conflicting_rename_is_marked_at_its_line_and_entry() -> None:
    main = of(BASE, "R1: Write", "R1: Type")
    text = open_at(main, delta(renamed="- R1: Write → R7: Store\n", requirements="### R7: Store\n\nOne stores.\n"))
    assert block("- R1: Write → R7: Store\n", "<!--\n### R1: Write\n-->\n", "<!--\n### R1: Type\n-->\n") in text
    assert (
        block("### R7: Store\n\nOne stores.\n", "### R1: Write\n\nOne writes.\n", "### R1: Type\n\nOne writes.\n")
        in text
    )


def test_requirement_renamed_here_and_removed_there_can_be_restored() -> None:
    text = open_at(WITHOUT_R1, delta(renamed="- R1: Write → R7: Store\n- R2: Read → R8: Peruse\n"))
    mine, old = "### R7: Store\n\nOne writes.\n", "### R1: Write\n\nOne writes.\n"
    assert block(mine, old, "") in text
    assert "## Renamed\n\n- R2: Read → R8: Peruse\n" in text
    solved = text.replace(block(mine, old, ""), mine)
    assert "### R7: Store\n\nOne writes.\n" in merged(WITHOUT_R1, solved, WITHOUT_R1)


def test_id_taken_on_both_sides_must_be_replaced() -> None:
    main = of(BASE, "\n## Flow", "\n### R7: Seven\n\nSeven.\n\n## Flow")
    mine = "- R1: Write → R7: Store\n"
    text = open_at(main, delta(renamed=mine))
    whole = block(mine, "<!--\n### R1: Write\n-->\n", "<!--\n### R7: Seven\n-->\n")
    with pytest.raises(FormatInvalid, match="R1 cannot become R7: that id is taken; use a free one"):
        merge_spec(main, of(text, whole, mine), main, "notes")
    assert "### R8: Store\n\nOne writes." in merged(main, of(text, whole, mine.replace("R7", "R8")), main)


def test_change_to_a_deleted_spec_is_marked_as_a_whole() -> None:
    yours = delta(requirements="### R1: Write\n\nOne stores.\n")
    text = open_at(None, yours)
    assert text.startswith("---\nid: notes\nversion: 1\n---\n<<<<<<< yours\n")
    lines = text.split("\n")
    assert [lines[line - 1][:7] for line in find_conflict_markers(text, "x")] == [
        "<<<<<<<",
        "|||||||",
        "=======",
        ">>>>>>>",
    ]
    whole = text.replace("<<<<<<< yours\n", "").partition("||||||| base\n")[0]
    assert merged(None, whole, None) == whole
    same = delta(requirements="### R1: Write\n\nOne writes.\n")
    assert rebase_spec(None, same, BASE, "notes").text == same


def test_conflict_markers_in_code_and_comments_are_ignored() -> None:
    four = "<<<<<<< yours\na\n||||||| base\n=======\nb\n>>>>>>> theirs\n"
    assert find_conflict_markers(four, "x") == (1, 3, 4, 6)
    assert find_conflict_markers(f"```\n{four}```\n<!--\n{four}-->\n", "x") == ()
    assert find_conflict_markers("Title\n=======\n\n<<<<<<<x\n>>>>>>>\n", "x") == (5,)
    assert find_conflict_markers(four.replace("\n", "\r\n"), "x") == (1, 3, 4, 6)
