"""A verdict is read from four forms and never from prose; in doubt it is unknown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents.verdict_text import SelfReviewResult, read_self_review, read_verdict
from agentd.domain.terms import ChallengeVerdict, ReviewVerdict
from assertions import assert_grows_linearly

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ("**Verdict**: APPROVED", "APPROVED", 1),
        ("Words.\n\nVerdict: approved ✅\nSummary: fine", "APPROVED", 3),
        ("**Verdict:** Needs revision", "NEEDS_REVISION", 1),
        ("- __Verdict__: `needs-revision`.", "NEEDS_REVISION", 1),
        ("Final verdict: ❌ **REJECTED**", "REJECTED", 1),
        ("\ufeff**Verdict**: [APPROVED]\r\n", "APPROVED", 1),
        ("**Verdict**:\n\nAPPROVED", "APPROVED", 3),
        ("**Verdict**:\n\n\nAPPROVED", "APPROVED", 4),
        ("**Verdict**: APPROVED\n```\ncode\n```\nmore about the code", "APPROVED", 1),
        ("## Verdict\n\n**APPROVED**\n\nAll is well.", "APPROVED", 3),
        ("## Verdict\n\nGood work overall.\n\n**Verdict**: APPROVED", "APPROVED", 5),
        ("## Verdict: REJECTED", "REJECTED", 1),
        ("### Verdict\nNEEDS_REVISION: two things are missing", "NEEDS_REVISION", 2),
        ("Verdict: NEEDS_REVISION (2 high)", "NEEDS_REVISION", 1),
        ("## Verdict\n- [x] APPROVED\n- [ ] NEEDS_REVISION\n- [ ] REJECTED", "APPROVED", 2),
        ("- [ ] APPROVED - go on\n- [X] NEEDS_REVISION - mend it\n", "NEEDS_REVISION", 2),
        ("- [x] **APPROVED** - go on\n- [ ] REJECTED - start anew\n", "APPROVED", 1),
        ("Verdict: APPROVED\n\n- [ ] APPROVED\n- [ ] REJECTED", "APPROVED", 1),
        ('<review status="approved" iteration="2">\n\nx\n\n</review>', "APPROVED", 1),
    ],
)
def test_each_verdict_format_is_read_with_its_line(text: str, word: str, line: int) -> None:
    found = read_verdict(text, "challenge")
    assert (found.word, found.line) == (word, line)
    assert found.verdict is ChallengeVerdict(word)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "This cannot be approved.",
        "APPROVED",
        "The verdict is APPROVED.",
        "<review>PASS</review>",
        "> **Verdict**: APPROVED",
        "    Verdict: APPROVED",
        "## Verdict\n\n    APPROVED",
        "    - [x] APPROVED\n    - [ ] REJECTED",
        "```\nVerdict: APPROVED\n```",
        "<!--\nVerdict: APPROVED\n-->",
        "~~~\n- [x] APPROVED\n- [ ] REJECTED",
        "## Verdict\n\nThis cannot be approved.",
        "**Verdict**: APPROVED with conditions",
        "**Verdict**: APPROVED, if the tests pass",
        "**Verdict**: APPROVED\nwith conditions",
        "**Verdict**: APPROVED\n  with conditions",
        "**Verdict**: APPROVED " + "." * 200,
        "**Verdict**: not APPROVED",
        "**Verdict**: NOT_APPROVED",
        "**Verdict**: !APPROVED",
        "**Verdict**: APPROVED?",
        "**Verdict**: ~~APPROVED~~",
        "**Verdict**: ❌ APPROVED",
        "**Verdict**: ~~REJECTED~~ APPROVED",
        "**Verdict**: REJECTED: no, APPROVED",
        "**Verdict**: UNAPPROVED",
        "**Verdict**: APPROVEDISH",
        "**Verdict**: Rejected alternatives are listed",
        "**Verdict**: NEEDS_CHANGES",
        "**Verdict**: PASS",
        "**Verdict**: APPROVED\n\n**Verdict**: REJECTED",
        "**Verdict**: APPROVED\n\n- [ ] APPROVED\n- [x] REJECTED",
        "**Verdict**: APPROVED\n\n## Verdict\n\nI have doubts.",
        "- [x] APPROVED",
        "- [x] APPROVED\n- [x] REJECTED",
        "- [x] APPROVED with care\n- [ ] REJECTED",
        "- [x] APPROVED - if mended\n- [ ] REJECTED",
        "- [x] Approved by the team",
        '<review status="approved" iteration="2">\n\n**Verdict**: REJECTED\n\n</review>',
        '<review status="approved" iteration="2">\n</review>\n\n**Verdict**: REJECTED',
        '<review iteration="2" reviewer="x">\n</review>\n\n**Verdict**: \n',
        "**Verdict**: APPROVED\0",
    ],
)
def test_other_text_is_never_a_verdict(text: str) -> None:
    found = read_verdict(text, "challenge")
    assert found.verdict is None
    assert found.why


@pytest.mark.parametrize(
    "text",
    [
        "**Verdict**: [APPROVED | NEEDS_REVISION | REJECTED]",
        "**Verdict**: APPROVED / NEEDS_REVISION / REJECTED",
        "Verdict: APPROVED, NEEDS_REVISION or REJECTED",
        "**Verdict**: [your verdict]",
        "**Verdict**: <verdict>",
        "**Verdict**: TBD",
        "**Verdict**: TBD\nwhen the tests have run",
        "**Verdict**: ...",
        "**Verdict**:",
        "**Verdict**: <!-- APPROVED -->",
        "## Verdict\n\n<!-- one of APPROVED, REJECTED -->\n\n## Issues\n",
        "## Verdict\n\n- [ ] APPROVED - go on\n- [ ] REJECTED - start anew\n",
    ],
)
def test_untouched_template_is_unfilled(text: str) -> None:
    found = read_verdict(text, "challenge")
    assert (found.word, found.line is not None) == ("unfilled", True)


def test_each_record_kind_has_its_own_verdicts() -> None:
    assert read_verdict("Verdict: needs fix", "review").verdict is ReviewVerdict.NEEDS_CHANGES
    assert read_verdict("Verdict: MAJOR ISSUES", "review").verdict is ReviewVerdict.MAJOR_ISSUES
    found = read_verdict("Verdict: REJECTED", "review")
    assert found.word == "UNKNOWN"
    assert found.why == "'REJECTED' is not a verdict here; write one of APPROVED, NEEDS_CHANGES, MAJOR_ISSUES"


def test_latest_block_counts() -> None:
    def block(status: str, iteration: int) -> str:
        return f'<review status="{status}" iteration="{iteration}">\n\n**Verdict**: {status}\n\n</review>\n\n'

    text = block("approved", 2) + block("rejected", 1)
    assert read_verdict(text, "challenge").word == "APPROVED"
    text = block("approved", 2) + block("rejected", 2)
    assert (read_verdict(text, "challenge").word, read_verdict(text, "challenge").line) == ("REJECTED", 7)


def test_example_verdicts_are_read() -> None:
    def verdict(name: str, kind: str) -> str:
        return read_verdict((EXAMPLE / name).read_text(), kind).word

    assert verdict("proposal.md", "challenge") == "APPROVED"
    assert verdict("CHALLENGE.md", "challenge") == "APPROVED"
    assert verdict("REVIEW.md", "review") == "NEEDS_CHANGES"
    assert verdict("tasks.md", "challenge") == "UNKNOWN"


@given(st.text("APROVEDapproved*_`: \n#-[x]<>!~", max_size=80))
def test_any_text_has_a_result(text: str) -> None:
    found = read_verdict("**Verdict**: " + text, "challenge")
    assert found.word in (*ChallengeVerdict, "unfilled", "UNKNOWN")


@pytest.mark.parametrize(
    ("start", "unit", "count"),
    [
        ("**Verdict**: ", "APPROVED ", 20_000),
        ("**Verdict**: ", "<!--", 40_000),
        ("**Verdict**: ", "*", 200_000),
        ("- [x] ", "needs ", 30_000),
        ("", "## Verdict\n", 500),
        ("", "**Verdict**:\n", 500),
        ("", "**Verdict**:\n***\n", 500),
        ("", '<review status="approved">\n', 500),
    ],
)
def test_parsing_takes_linear_time(start: str, unit: str, count: int) -> None:
    assert_grows_linearly(
        lambda text: (read_verdict(text, "challenge"), read_self_review(text)), start, unit, count=count
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("All is well.\n\n<review>PASS</review>\n", SelfReviewResult.PASS),
        ("<review>PASS</review> no: <review>NEEDS_REVISION</review>", SelfReviewResult.NEEDS_REVISION),
        ("<review> needs_revision </review>\nMended.\n<review>pass</review>", SelfReviewResult.PASS),
        ("<review>\nPASS\n</review>", SelfReviewResult.PASS),
        ("`<review>PASS</review>`", SelfReviewResult.PASS),
        ("I will end with `<review>PASS</review>`.", SelfReviewResult.MISSING),
        ("```\n<review>PASS</review>\n```", SelfReviewResult.MISSING),
        ("<review>NEEDS_REVISION</review>\n```\n<review>PASS</review>\n", SelfReviewResult.NEEDS_REVISION),
        ("PASS", SelfReviewResult.MISSING),
        ("<review>MAYBE</review>", SelfReviewResult.MISSING),
        ("\0\ud800<review>PASS</review>", SelfReviewResult.PASS),
        ("", SelfReviewResult.MISSING),
    ],
)
def test_last_marker_in_plain_text_counts(text: str, expected: SelfReviewResult) -> None:
    assert read_self_review(text) is expected
