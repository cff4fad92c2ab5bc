"""A check beside the same one before the first edit: what blocks, what is known, and in which words."""

from dataclasses import replace
from typing import Any

import pytest

from agentd.checks.comparison import check_findings, compare_check
from agentd.checks.result import CheckProblem, CheckResult, ResultCounts, result_from_row
from agentd.documents import records, review_document
from agentd.domain import yaml12
from agentd.domain.errors import StateError
from agentd.domain.terms import CheckStatus, Severity
from plans import EXAMPLE

PASSED, FAILED, COULD_NOT_RUN = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.COULD_NOT_RUN
RECORD = (EXAMPLE / "reviews" / "review-1.yaml").read_text(encoding="utf-8")
ROWS: list[dict[str, Any]] = yaml12.load(RECORD)["checks"]


def failed(*names: str, passed: int = 40, more: int = 0, code: int = 1) -> CheckResult:
    """`more`: failures without a name."""
    tail = "\n".join(f"FAILED {name} - no" for name in names)
    counts = ResultCounts(passed, len(names) + more, 0)
    return CheckResult("tests", "pytest -q", True, FAILED, code, 10, counts, names, tail)


def passed(counts: ResultCounts | None = None) -> CheckResult:
    return CheckResult("tests", "pytest -q", True, PASSED, 0, 10, counts or ResultCounts(41, 0, 0), (), "41 passed")


COULD_NOT = CheckResult("tests", "pytest -q", True, COULD_NOT_RUN, None, 10, None, (), "sh: pytest: not found")


# ---- the record


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_row_matches_the_record(row: dict[str, Any]) -> None:
    result = result_from_row(row)
    before = replace(result, status=CheckStatus(row["before"]["status"]), failed_tests=())
    again = result.row(before, row["tree"], row["at"])
    assert again == row
    assert list(again) == list(row)
    assert yaml12.dump(again) == yaml12.dump(row)


def test_row_without_an_earlier_run_has_no_before() -> None:
    assert failed("a").row(None, "t", "now")["before"] is None
    assert failed("a").row(failed("b").row(None, "t", "then"), "t", "now")["before"] == {
        "status": "failed",
        "failed_tests": ["b"],
    }


def test_damaged_row_is_reported() -> None:
    with pytest.raises(StateError, match="the check tests: status is 'fine'"):
        result_from_row({**ROWS[0], "status": "fine"})


def test_row_of_any_result_can_be_stored_and_rendered() -> None:
    odd = failed("tests/a.py::test[\U0001f600 \ufffd 'x' - y]", "tests/a.py::test_b")
    odd = replace(odd, tail="  indented first\n\n# no comment\n- no item\n: \U0001f600 \ufffd")
    row = odd.row(COULD_NOT, "t", "2026-01-19T11:29:55Z")
    assert yaml12.load(yaml12.dump(row)) == row
    assert result_from_row(row) == replace(odd, problems=())
    record = records.parse_record(RECORD, "record")
    assert "- **Before the first edit**: could not run" in review_document.render_review(replace(record, checks=(row,)))


def test_finding_matches_the_record() -> None:
    """The example's first finding, from the example's first row."""
    now = result_from_row(ROWS[0])
    before = replace(now, status=PASSED, failed_tests=(), counts=ResultCounts(42, 0, 0), exit_code=0)
    expected = records.parse_record(RECORD, "record").findings[0]
    (finding,) = check_findings(now, compare_check(now, before))
    assert replace(finding, id="V1") == expected


# ---- what blocks


@pytest.mark.parametrize(
    ("now", "before", "known", "new", "blocks"),
    [
        (passed(), passed(), (), (), False),
        (passed(), failed("a"), (), (), False),
        (passed(), None, (), (), False),
        (failed("a"), failed("a"), ("a",), (), False),
        (failed("a"), failed("a", "b"), ("a",), (), False),
        (failed("a", "b"), failed("a"), ("a",), ("b",), True),
        (failed("a"), passed(), (), ("a",), True),
        (failed("a"), None, (), ("a",), True),
        (failed("a"), COULD_NOT, (), ("a",), True),
        (failed("a", "a"), failed("a"), ("a",), ("a",), True),
        (failed(), failed(), (), (), True),
        (failed("a", more=1), failed("a"), ("a",), (), True),
        (failed("a"), failed("a", more=1), ("a",), (), True),
        (failed("a", code=2), failed("a"), ("a",), (), True),
        (replace(failed("a"), is_whole=False), failed("a"), ("a",), (), True),
        (replace(failed("a"), command="pytest -k a"), failed("a"), ("a",), (), True),
        (replace(failed("a"), counts=None), failed("a"), ("a",), (), True),
        (replace(failed("a"), counts=None), replace(failed("a"), counts=None), ("a",), (), False),
        (replace(failed(), exit_code=None, counts=None), failed("a"), (), (), True),
        (COULD_NOT, passed(), (), (), True),
        (COULD_NOT, COULD_NOT, (), (), True),
        (passed(ResultCounts(0, 0, 0)), passed(), (), (), True),
        (passed(ResultCounts(0, 0, 41)), passed(), (), (), True),
        (passed(ResultCounts(0, 0, 0)), passed(ResultCounts(0, 0, 0)), (), (), False),
    ],
)
def test_only_failures_known_by_name_do_not_block(
    now: CheckResult, before: CheckResult | None, known: tuple[str, ...], new: tuple[str, ...], blocks: bool
) -> None:
    found = compare_check(now, before)
    assert (found.known, found.new, found.blocks) == (known, new, blocks)
    assert not compare_check(replace(now, required=False), before).blocks


@pytest.mark.parametrize(
    ("now", "before", "fewer"),
    [
        (passed(ResultCounts(30, 0, 11)), passed(), 11),
        (passed(ResultCounts(50, 0, 0)), passed(), 0),
        (replace(failed("a", passed=3), is_whole=False), passed(), 0),
        (replace(passed(), counts=None), passed(), 0),
        (passed(), None, 0),
    ],
)
def test_tests_that_no_longer_run_are_counted_in_a_complete_run(
    now: CheckResult, before: CheckResult | None, fewer: int
) -> None:
    assert compare_check(now, before).fewer == fewer


@pytest.mark.parametrize(
    ("now", "before", "why"),
    [
        (failed("a"), passed(), "ended with exit code 1; 1 test failed that did not fail before the first edit: a."),
        (
            failed("a", "b", "c"),
            failed("a"),
            "ended with exit code 1; 2 tests failed that did not fail before the first edit: b, c."
            " 1 test failed before too.",
        ),
        (failed("a"), failed("a"), "ended with exit code 1; 1 test failed, as before the first edit: a."),
        (failed("a"), None, "ended with exit code 1; 1 test failed: a. It was not run before the first edit."),
        (failed("a"), COULD_NOT, "ended with exit code 1; 1 test failed: a. It could not run before the first edit."),
        (failed(), passed(), "ended with exit code 1. It passed before the first edit."),
        (
            failed("a", more=1),
            failed("a"),
            "ended with exit code 1; 1 test failed: a. It failed before the first edit too, but the failures cannot be"
            " compared by name.",
        ),
        (
            failed(*"abcdefg"),
            passed(),
            "ended with exit code 1; 7 tests failed that did not fail before the first edit: a, b, c, d, e and 2 more.",
        ),
        (
            failed(*"abcde"),
            passed(),
            "ended with exit code 1; 5 tests failed that did not fail before the first edit: a, b, c, d, e.",
        ),
        (
            replace(failed(), exit_code=None),
            passed(),
            "was stopped at its time limit. It passed before the first edit.",
        ),
        (COULD_NOT, passed(), "could not run, so nothing was checked."),
        (passed(), passed(), "passed."),
        (passed(ResultCounts(0, 0, 1)), passed(), "no longer ran any tests; 41 tests ran before the first edit."),
    ],
)
def test_comparison_explains_why_the_check_failed(now: CheckResult, before: CheckResult | None, why: str) -> None:
    assert compare_check(now, before).why == f"`pytest -q` {why}"


# ---- findings


def test_finding_for_a_check_that_could_not_run_suggests_a_fix() -> None:
    (finding,) = check_findings(COULD_NOT, compare_check(COULD_NOT, None))
    assert finding.title == "Required check could not run: tests"
    assert finding.suggestion == "Install what `pytest -q` needs, or fix the check in agentd/config.toml."
    assert finding.evidence == records.Evidence(check="tests", quote="sh: pytest: not found")


def test_finding_without_test_names_quotes_the_failure_line() -> None:
    lint = replace(failed(), command="ruff check .", counts=None, tail="a.py:1:1: F401\nFound 1 error.\n[1 fixable]")
    (finding,) = check_findings(lint, compare_check(lint, None))
    assert finding.suggestion == "Make `ruff check .` pass without weakening it."
    assert finding.evidence and finding.evidence.quote == "Found 1 error."


def test_finding_quotes_the_time_limit() -> None:
    late = replace(failed(), exit_code=None, tail="1 error so far\n[ended at its time limit of 600 s]")
    evidence = check_findings(late, compare_check(late, None))[0].evidence
    assert evidence and evidence.quote == "[ended at its time limit of 600 s]"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tests.test_a.Notes.test_adds", "FAIL: test_adds (tests.test_a.Notes)"),
        ("test/a.test.js > group > is refused", "✖ is refused (1.2ms)"),
        ("test/a.test.js > is refused", "not ok 2 - is refused"),
        ("example.com/notes.TestTable/bad_one", "--- FAIL: TestTable/bad_one (0.00s)"),
        ("src/lib.rs: tests::is_refused", "test tests::is_refused ... FAILED"),
    ],
)
def test_finding_quotes_the_line_that_names_the_test(name: str, line: str) -> None:
    result = replace(failed(name), tail=f"some error\n{line}\n  at {name}\nFAILED (failures=1)")
    evidence = check_findings(result, compare_check(result, passed()))[0].evidence
    assert evidence and evidence.quote == line


def test_problem_becomes_a_finding_of_its_check() -> None:
    problem = CheckProblem("jinja2 2.4.1: CVE-2019-10906", "Fixed in 2.10.1.", Severity.LOW, "Upgrade it.")
    audit = replace(failed(), name="audit", required=False, tail="Name\njinja2 2.4.1 CVE-2019-10906 2.10.1")
    (finding,) = check_findings(replace(audit, problems=(problem,)), compare_check(audit, None))
    assert (finding.severity, finding.by, finding.where) == (Severity.LOW, "check:audit", "check audit")
    assert (finding.title, finding.what, finding.suggestion) == (problem.title, problem.what, problem.suggestion)
    assert finding.evidence and finding.evidence.quote == "jinja2 2.4.1 CVE-2019-10906 2.10.1"


def test_check_findings_combine_failure_and_problems() -> None:
    problem = CheckProblem("No test ran", "It ran no test.", Severity.MEDIUM)
    lost = replace(passed(ResultCounts(0, 0, 0)), problems=(problem,))
    titles = ["Required check ran no tests: tests", "No test ran"]
    assert [one.title for one in check_findings(lost, compare_check(lost, passed()))] == titles
    assert [one.title for one in check_findings(lost, compare_check(lost, None))] == titles[1:]
    assert check_findings(failed("a"), compare_check(failed("a"), failed("a"))) == []
