"""The code of a change as it is shown: its diff, the findings at its lines, the trace matrix and the checks."""

from collections.abc import Iterator

import pytest

from agentd.change.folder import Change
from agentd.domain.errors import Refusal
from agentd.project import git
from agentd.project.layout import find_project
from agentd.web import checks_view, code_view, rounds_view
from agentd.web.code_view import FileDiff
from agentd.web.markup.diff_hunks import DiffLineKind
from plans import BAD_CODE, GOOD_CODE, GREETING_TEST
from playbooks import answer, edit, finding, implement, report, say, usage
from scenario import Scenario
from trace_example import begun, implemented

QUOTED = {"file": "greeting.py", "line": 1, "quote": "return f"}
FLAW = finding("medium", "It is cold", requirement="greeting:R1", evidence=QUOTED)


def by_path(files: tuple[FileDiff, ...]) -> dict[str, FileDiff]:
    return {one.path: one for one in files}


def shown(one: FileDiff) -> list[tuple[str, int | None, int | None, str]]:
    return [(str(line.kind), line.old, line.new, line.text) for hunk in one.hunks for line in hunk.lines]


# ---- a change that was built, reviewed, mended and reviewed again


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scenario, Change]]:
    root = tmp_path_factory.mktemp("read")
    with Scenario(root / "notes-service", root / "home").with_project().entered() as box:
        steps = {
            "implement-greeting": implement(BAD_CODE),
            "review": report("NEEDS_CHANGES", FLAW),
            "resolve": [
                edit("greeting.py", "{name}", "{name or 'world'}"),
                answer("V2", "fixed", "Warmer."),
                answer("V1", "fixed", "Mended."),
                usage(0.02),
                say("Mended."),
            ],
            "review/2": report("APPROVED", previous=[{"id": "V2", "state": "fixed", "note": "Warm."}]),
        }
        box.greeting_approved(steps)
        ran = box.run("impl")
        assert ran.code == 0, ran.out + ran.err
        yield box, Change(find_project(), "greet", str(box.root), box.folder)


def test_diff_starts_at_the_first_edit_and_has_line_numbers(built: tuple[Scenario, Change]) -> None:
    files = by_path(code_view.read_code(built[1]).files)
    assert list(files) == ["greeting.py", "tests/test_greeting.py"], "agentd's own files are no code"
    one = files["greeting.py"]
    assert (one.status, one.added, one.removed, one.is_binary, one.is_big) == ("CREATE", 5, 0, False, False)
    assert shown(one) == [("added", None, number, line) for number, line in enumerate(GOOD_CODE.splitlines(), 1)]


def test_finding_is_placed_at_the_line_of_its_quote(built: tuple[Scenario, Change]) -> None:
    notes = code_view.code_notes(built[1])
    assert list(notes) == ["greeting.py"]
    (note,) = notes["greeting.py"]
    assert (note.id, note.line, note.state, note.is_orphaned) == ("V2", 5, "fixed", False)
    assert [(one.what, one.text) for one in note.said[1:]] == [("fixed", "Warmer."), ("fixed", "Warm.")]


def test_changes_between_two_reviews_are_shown_by_word(built: tuple[Scenario, Change]) -> None:
    second, first = (one for one in rounds_view.read_rounds(built[1]) if one.kind == "review")
    assert first.older_tree == built[1].read().base.tree and second.older_tree == first.tree != second.tree
    (one,) = code_view.code_difference(built[1], second.older_tree, second.tree)
    removed, added = [line for hunk in one.hunks for line in hunk.lines if line.kind is not DiffLineKind.SAME]
    assert (removed.old, removed.new, added.old, added.new) == (5, None, None, 5)
    assert [part.text.strip() for part in added.parts if part.is_changed] == ["or 'world'"]
    assert "".join(part.text for part in removed.parts) == removed.text == '    return f"Hello, {name}!"'
    assert {one.id for one in second.closed} == {"V1", "V2"}


@pytest.mark.parametrize("tree", ["", "HEAD", "HEAD^{tree}", "--output=x", "0" * 40])
def test_only_full_tree_ids_are_compared(built: tuple[Scenario, Change], tree: str) -> None:
    base = built[1].read().base.tree or ""
    with pytest.raises(Refusal):
        code_view.code_difference(built[1], base, tree)


def test_checks_show_their_earlier_result_and_output(built: tuple[Scenario, Change]) -> None:
    found = checks_view.read_checks(built[1])
    (row,) = found.rows
    assert (row.name, row.status, row.before, row.is_required, row.blocks) == ("tests", "passed", "passed", True, False)
    assert row.counts and row.counts.passed == 3 and row.counts_before and row.counts_before.passed == 1
    assert "OK" in row.output and row.at and not found.is_baseline and not found.problem


def test_finished_change_has_no_trace_gaps(built: tuple[Scenario, Change]) -> None:
    found = checks_view.read_trace(built[1])
    assert found.is_implemented and found.gaps == 0 and not found.problem
    assert [(row.requirement, row.document, row.files) for row in found.rows] == [
        ("greeting:R1", "specs/greeting.md", ("greeting.py",)),
        ("greeting:R2", "specs/greeting.md", ("tests/test_greeting.py",)),
    ]


def test_blocking_check_says_why(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(BAD_CODE)}).change
    project.run("impl", "--rounds", "0")
    (row,) = checks_view.read_checks(change).rows
    assert row.blocks and row.status == "failed" and "did not fail before the first edit" in row.why
    assert row.new_failures == row.failed_tests != () and "AssertionError" in row.output


# ---- gaps


def test_trace_gaps_name_what_is_missing(project: Scenario) -> None:
    change = begun(project)
    assert {row.gaps for row in checks_view.read_trace(change).rows} == {("file", "test")}
    project.write("src/notes/models/user.py", "class User: ...\n")
    first = checks_view.read_trace(change).rows[0]
    assert (first.requirement, first.gaps) == ("user-model:R1", ("test",))
    (change.folder / "tasks.md").write_text("# Tasks\n")
    assert checks_view.read_trace(change).rows[0].gaps == ("task", "file", "test")


def test_only_tasks_are_required_before_there_is_code(project: Scenario) -> None:
    change = project.greeting_approved({}).change
    found = checks_view.read_trace(change)
    assert not found.is_implemented and found.gaps == 0 and len(found.rows) == 2
    assert (
        code_view.read_code(change).files == ()
        and code_view.read_code(change).problem == ""
        and checks_view.read_checks(change).rows == ()
    )


def test_weakened_tests_are_reported(project: Scenario) -> None:
    project.write("tests/test_greeting.py", GREETING_TEST)
    change = implemented(project)
    project.write(
        "tests/test_greeting.py",
        GREETING_TEST.replace('"Hello, Ann!")', 'greet("Ann"))').replace("def test_nobody", "def nobody"),
    )
    weakened = checks_view.read_trace(change).weakened
    assert weakened and {one.path for one in weakened} == {"tests/test_greeting.py"}


def test_missing_base_tree_is_reported_and_the_plan_is_shown(project: Scenario) -> None:
    change = implemented(project)
    state = (change.folder / "STATE.yaml").read_text()
    (change.folder / "STATE.yaml").write_text(state.replace(str(change.read().base.tree), "1" * 40))
    assert "which is not in this repository" in code_view.read_code(change).problem
    found = checks_view.read_trace(change)
    assert "which is not in this repository" in found.problem and len(found.rows) > 2
    (change.folder / "STATE.yaml").write_text("phase: [")
    assert (
        code_view.read_code(change).problem
        and checks_view.read_checks(change).problem
        and checks_view.read_trace(change).problem
    )


# ---- hostile and large


def test_file_content_cannot_imitate_another_file_in_the_diff(project: Scenario) -> None:
    change = begun(project)
    lines = "one\rdiff --git a/README.md b/README.md\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-gone\n"
    (project.root / "trick.txt").write_bytes(lines.encode())
    (project.root / 'a "b" ü\t.txt').write_text("named oddly\n")
    files = by_path(code_view.read_code(change).files)
    assert sorted(files) == ['a "b" ü\t.txt', "trick.txt"]
    assert [row[3] for row in shown(files["trick.txt"])] == [
        "one[U+000D]diff --git a/README.md b/README.md",
        "--- a/x",
        "+++ b/x",
        "@@ -1 +1 @@",
        "-gone",
    ]
    assert shown(files['a "b" ü\t.txt']) == [("added", None, 1, "named oddly")]


def test_bidirectional_control_characters_are_made_visible(project: Scenario) -> None:
    change = begun(project)
    project.write("x.py", "access = 'user\u202e'  # \u2066admin\n")
    assert shown(code_view.read_code(change).files[0])[0][3] == "access = 'user[U+202E]'  # [U+2066]admin"


def test_long_file_is_truncated_with_a_count(project: Scenario) -> None:
    change = begun(project)
    project.write("long.txt", "".join(f"line {number}\n" for number in range(2000)))
    project.write("longer.txt", "x\n" * 30_000)
    project.write("wide.txt", "y" * 50_000 + "\n")
    files = by_path(code_view.read_code(change).files)
    assert (files["long.txt"].added, len(shown(files["long.txt"])), files["long.txt"].left_out) == (2000, 1500, 500)
    assert (files["longer.txt"].hunks, files["longer.txt"].left_out, files["longer.txt"].is_big) == ((), 30_000, True)
    assert len(shown(files["wide.txt"])[0][3]) == 1001


def test_binary_files_symlinks_and_text_marked_binary_are_distinguished(project: Scenario) -> None:
    project.write("kind", "a file\n")
    change = begun(project)
    (project.root / "image.png").write_bytes(b"\x89PNG\0\0")
    project.write(".gitattributes", "hidden.txt binary\n")
    project.write("hidden.txt", "to be seen\n")
    (project.root / "kind").unlink()
    (project.root / "kind").symlink_to("README.md")
    files = by_path(code_view.read_code(change).files)
    assert files["image.png"].is_binary and not files["image.png"].hunks
    assert not files["hidden.txt"].is_binary and files["hidden.txt"].added == 1
    assert shown(files["kind"]) == [
        ("removed", 1, None, "a file"),
        ("added", None, 1, "README.md"),
        ("aside", None, None, " No newline at end of file"),
    ]


# ---- a change that has ended


def test_archived_change_shows_the_reviewed_code(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.complete_short_titles()
    project.write("short-titles.py", "DONE = 'later'\n")
    assert project.agentd("archive", "short-titles").code == 0
    folder = next((project.root / "agentd/archive").glob("*-short-titles"))
    ended = Change(find_project(), "short-titles", str(project.root), folder)
    assert not code_view.code_trees(ended).is_now
    assert [row[3] for row in shown(by_path(code_view.read_code(ended).files)["short-titles.py"])] == ["DONE = True"]
    assert checks_view.read_trace(ended).is_implemented


def test_reading_code_changes_neither_index_nor_files(project: Scenario) -> None:
    project.with_notes(start="specs")
    change = project.notes_complete("short-titles", {})
    project.write("staged.py", "x\n")
    project.git("add", "staged.py")
    before = project.git("status", "--porcelain"), git.snapshot(change.tree)
    (
        code_view.read_code(change),
        checks_view.read_trace(change),
        checks_view.read_checks(change),
        code_view.code_notes(change),
    )
    assert (project.git("status", "--porcelain"), git.snapshot(change.tree)) == before
