"""What runners print is read: recorded output of real ones, and any other text does no harm."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.checks import audits, runner
from agentd.checks.result import MAX_NAME_LENGTH, MAX_NAMES, NOTHING, ResultCounts
from assertions import assert_grows_linearly
from plans import EXAMPLE

DATA = EXAMPLE.parent / "checks"


def sample(name: str) -> str:
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


PYTEST = (
    "tests/test_notes.py::TestGroup::test_in_class",
    "tests/test_notes.py::test_needs_it",
    "tests/test_notes.py::test_strict",
    "tests/test_notes.py::test_text[a - b]",
    "tests/test_notes.py::test_text[c]d]",
    "tests/test_notes.py::test_used_state_is_refused",
)
UNITTEST = (
    "tests.test_notes.Notes.test_broken",
    "tests.test_notes.Notes.test_documented",
    "tests.test_notes.Notes.test_refused",
    "tests.test_notes.Notes.test_subs (i=1)",
    "tests.test_notes.Notes.test_unexpected",
)
NODE = (
    "test/notes.test.js > group > fails",
    "test/notes.test.js > group > inner > fails",
    "test/notes.test.js > is refused",
    "test/notes.test.js > parent > child fails",
    "test/other.test.js > is refused",
)
GO = (
    "example.com/notes.TestRefused",
    "example.com/notes.TestTable/bad_one",
    "example.com/notes/other.TestRefused",
)
CARGO = ("notes: src/lib.rs - add", "src/lib.rs: tests::is_refused", "tests/flow.rs: is_refused")


@pytest.mark.parametrize(
    ("name", "counts", "failed"),
    [
        ("pytest-q", (4, 6, 2), PYTEST),
        ("pytest-plain", (4, 6, 2), PYTEST),
        ("pytest-v", (4, 6, 2), PYTEST),
        ("pytest-xdist", (4, 6, 2), PYTEST),
        ("pytest-passed", (1, 0, 0), ()),
        ("pytest-none", (0, 0, 0), ()),
        ("pytest-collection", (0, 1, 0), ()),
        ("pytest-subtests", (0, 2, 0), ("test_a.py::test_a", "test_a.py::test_a [round] (i=1)")),
        ("unittest-plain", (1, 6, 2), UNITTEST),
        ("unittest-v", (1, 6, 2), UNITTEST),
        ("unittest-passed", (1, 0, 1), ()),
        ("unittest-twice", (2, 0, 2), ()),
        ("unittest-none", (0, 0, 0), ()),
        ("unittest-import", (1, 1, 0), ()),
        *((f"node{version}-spec", (3, 5, 2), NODE) for version in (18, 20, 22, 24)),
        *((f"node{version}-tap", (3, 5, 2), NODE) for version in (18, 20, 22, 24)),
        *((f"node{version}-broken", (1, 1, 0), ()) for version in (18, 20, 22, 24)),
        ("node20-broken-tap", (1, 1, 0), ()),
        *((f"node{version}-none", (0, 0, 0), ()) for version in (18, 20, 22, 24)),
        ("node20-npm", (1, 0, 0), ()),
        ("go-v", (3, 3, 1), GO),
        ("go-json", (3, 3, 1), GO),
        ("go-plain", None, GO),
        ("go-passed", None, ()),
        ("go-none", (0, 0, 0), ()),
        ("go-broken", None, ()),
        ("go-broken-v", (1, 3, 0), ("example.com/notes/c.TestC",)),
        ("go-broken-json", (1, 3, 0), ("example.com/notes/c.TestC",)),
        ("cargo-all", (3, 3, 1), CARGO),
        ("cargo-q", (3, 3, 1), ("is_refused", "src/lib.rs - add", "tests::is_refused")),
        ("cargo-passed", (2, 0, 0), ()),
        ("cargo-plain", (2, 1, 1), ("src/lib.rs: tests::is_refused",)),
        ("jest", (1, 3, 2), ("notes.test.js › group › fails", "notes.test.js › is refused")),
        ("vitest", (1, 3, 2), ("notes.test.js > group > fails", "notes.test.js > is refused")),
    ],
)
def test_runner_output_is_parsed(name: str, counts: tuple[int, int, int] | None, failed: tuple[str, ...]) -> None:
    summary = runner.read_test_summary(sample(name), 1)
    assert summary.runner == re.match("[a-z]+", name)[0]  # type: ignore[index]
    assert summary.counts == (counts and ResultCounts(*counts))
    assert tuple(sorted(summary.failed_tests)) == failed


@pytest.mark.parametrize("name", ["cargo-broken", "pytest-internal", "npm-audit", "pip-audit"])
def test_output_without_a_summary_has_no_counts(name: str) -> None:
    assert runner.read_test_summary(sample(name), 1) == NOTHING


@pytest.mark.parametrize("name", ["pytest-stopped", "pytest-collection", "cargo-plain"])
def test_summary_of_a_runner_that_stopped_early_is_incomplete(name: str) -> None:
    assert not runner.read_test_summary(sample(name), 1).is_whole
    assert runner.read_test_summary(sample("pytest-q"), 1).is_whole
    assert runner.read_test_summary(sample("cargo-all"), 1).is_whole


def test_failures_of_several_runners_are_added() -> None:
    both = runner.read_test_summary(sample("pytest-q") + sample("node20-tap"), 1)
    assert both.counts == ResultCounts(7, 11, 4)
    assert set(both.failed_tests) == {*PYTEST, *NODE}


def test_omitted_test_names_do_not_change_the_count() -> None:
    lines = [f"FAILED test_a.py::test_{number} - x" for number in range(MAX_NAMES + 5)]
    text = "\n".join(("=== short test summary info ===", *lines, f"{len(lines)} failed in 1.00s"))
    summary = runner.read_test_summary(text, 1)
    assert summary.counts == ResultCounts(0, MAX_NAMES + 5, 0)
    assert len(summary.failed_tests) == MAX_NAMES
    long = f"=== short test summary info ===\nFAILED a.py::test[{'x' * MAX_NAME_LENGTH}]\n1 failed in 1.00s"
    assert runner.read_test_summary(long, 1).failed_tests == ()


def test_unittest_names_from_older_python_versions_are_parsed() -> None:
    text = sample("unittest-plain").replace("(tests.test_notes.Notes.test_refused)", "(tests.test_notes.Notes)")
    assert "tests.test_notes.Notes.test_refused" in runner.read_test_summary(text, 1).failed_tests


def test_crashed_cargo_binary_is_a_failure_without_a_name() -> None:
    text = sample("cargo-passed").replace("test result: ok. 1 passed; 0 failed;", "Segmentation fault", 1)
    summary = runner.read_test_summary(text, 101)
    assert summary.counts == ResultCounts(1, 1, 0)
    assert summary.failed_tests == ()


def test_text_printed_by_a_test_is_not_a_result(tmp_path: Path) -> None:
    """The error of one test in the samples says "not ok 9 - really"."""
    assert "not ok 9 - really" in sample("node20-tap")
    assert not [name for name in runner.read_test_summary(sample("node20-tap"), 1).failed_tests if "really" in name]


def test_terminated_command_has_no_summary() -> None:
    assert runner.read_test_summary(sample("pytest-q"), None) == NOTHING


# ---- any text


PIECES = sorted({line for path in DATA.glob("*.txt") for line in path.read_text(encoding="utf-8").split("\n")})


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=60), st.integers(0, 255))
def test_arbitrary_output_never_fails_the_parsers(lines: list[str], code: int) -> None:
    text = "\n".join(lines)
    summary = runner.read_test_summary(text, code)
    if summary.counts:
        assert min(summary.counts.passed, summary.counts.failed, summary.counts.skipped) >= 0
    assert len(audits.read_audit(text)) <= audits.MAX_PROBLEMS
    tail = runner.output_tail(text, summary.failure_lines)
    assert len(tail) <= runner.TAIL_CHARACTERS
    assert tail.count("\n") < runner.TAIL_LINES


@given(st.binary(max_size=200))
def test_arbitrary_bytes_become_plain_text(data: bytes) -> None:
    text = runner.clean_output(data)
    assert not [letter for letter in text if letter < " " and letter not in "\n\t"]
    assert text == runner.clean_output(text.encode())


UNITS = {
    "pytest lines": "=== short test summary info ===\nFAILED a::b - c\nERROR a\nSUBFAILED(x) a::b\n1 failed in 1s\n",
    "verbose lines": "a::b FAILED [ 1%]\n[gw0] [ 1%] ERROR a::b\n1 failed in 1s\n",
    "unittest lines": "=" * 70 + "\nFAIL: a (b.c)\nRan 1 test in 1s\nOK\n",
    "unfinished TAP": "TAP version 13\n# tests 1\n# pass 1\n# fail 1\nnot ok 1 - x\n  ---\n",
    "nested TAP": "TAP version 13\n# Subtest: a\n    # Subtest: b\n    not ok 1 - b\nnot ok 1 - a\n",
    "node's list": "▶ a\n  ✖ b (1ms)\n✖ a (1ms)\n✖ failing tests:\ntest at a:1:1\n✖ b (1ms)\n",
    "cargo lines": "failures:\n    a\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;\n",
    "go lines": "--- FAIL: A/b/c (0.00s)\nFAIL\tp\t0.01s\n",
    "go events": '{"Action":"fail","Package":"p","Test":"A"}\n{"Action":"fail","Package":"q"}\n',
    "jest lines": "FAIL a (1 s)\n  ● b\nTests:       1 failed, 1 total\n",
    "vitest lines": " FAIL  a > b\n      Tests  1 failed (1)\n",
    "npm lines": "# npm audit report\n\na  1\nSeverity: high\nb - https://c\n",
    "pip lines": "Name Version ID Fix Versions\n---- ------- -- ------------\na    1       b\n",
    "cargo audit lines": "Crate:     a\nID:        b\n",
    "open braces": "{\n",
    "nested braces": '{"a":[',
    "blank lines": "\n",
    "returns": "a\r",
    "escapes": "\x1b[",
    "titles": "\x1b]",
    "exclamation marks": "!!! ",
    "colons": "a::",
    "digits": "1 a, ",
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_parsing_takes_linear_time(unit: str) -> None:
    def look(text: str) -> None:
        cleaned = runner.clean_output(text.encode())
        runner.output_tail(cleaned, runner.read_test_summary(cleaned, 1).failure_lines)
        audits.read_audit(cleaned)

    assert_grows_linearly(look, "", unit, count=2000)
