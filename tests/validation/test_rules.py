"""Every rule: what it finds, where, and that it finds nothing in the examples."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentd.documents import spec
from agentd.domain.terms import Severity
from agentd.project.config.loader import load_config
from agentd.project.config.settings import ValidationSettings
from agentd.validation.plan_rules import CODE_RULES
from agentd.validation.rule import PlanDocuments, RuleFinding, count_by_severity, is_valid
from agentd.validation.validator import RULES, validate
from assertions import assert_grows_linearly
from plans import EXAMPLE

SEEDS = Path(__file__).parent.parent / "data" / "seeds"
SETTINGS: ValidationSettings = load_config(None, environ={}).validation
NAMES = (
    "clarifications.md",
    "proposal.md",
    "tasks.md",
    "specs/api-endpoints.md",
    "specs/auth-flow.md",
    "specs/user-model.md",
)
MAIN = {"api-endpoints": spec.parse_spec((EXAMPLE / "base/api-endpoints.md").read_text(), "api-endpoints.md")}

Edit = Callable[[str], str]


def plan(edits: dict[str, Edit] | None = None, **changes: object) -> PlanDocuments:
    """The example's plan, some of its documents edited; an edit to nothing removes the document."""
    texts = {name: (EXAMPLE / name).read_text() for name in NAMES}
    for name, edit in (edits or {}).items():
        before = texts.get(name, "")
        texts[name] = edit(before)
        assert texts[name] != before, f"the edit of {name} changes nothing"
    kept = {name: text.encode() for name, text in texts.items() if text}
    return replace(PlanDocuments(kept, MAIN), **changes)  # type: ignore[arg-type]


def swap(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new, 1)


def gone(text: str) -> str:
    return ""


def found(edits: dict[str, Edit], **changes: object) -> tuple[RuleFinding, ...]:
    return validate(plan(edits, **changes), SETTINGS)


def test_example_has_no_findings() -> None:
    assert validate(plan(), SETTINGS) == ()


@pytest.mark.parametrize("path", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_older_documents_have_no_high_findings(path: Path) -> None:
    findings = validate(PlanDocuments({f"specs/{path.name}": path.read_bytes()}, complete=False), SETTINGS)
    assert [one for one in findings if one.severity is Severity.HIGH] == []


# name of the case: document, edit, rule, severity, what stands on its line (the first line if nothing), words
TASKS = "tasks.md"
AUTH = "specs/auth-flow.md"
CASES: dict[str, tuple[str, Edit, str, str, str, str]] = {
    "no frontmatter": (AUTH, lambda t: t[t.index("# Spec") :], "frontmatter-missing", "low", "", "no frontmatter"),
    "broken frontmatter": (AUTH, swap("type: spec", "type: [spec"), "frontmatter-invalid", "high", "title: ", ""),
    "frontmatter key twice": (
        AUTH,
        swap("type: spec", "id: x"),
        "frontmatter-invalid",
        "high",
        "id: x",
        "occurs twice",
    ),
    "section missing": (
        "proposal.md",
        swap("## Why", "## Because"),
        "heading-missing",
        "high",
        "",
        "`## Why` is missing",
    ),
    "section empty": (
        "proposal.md",
        lambda t: re.sub(r"(?s)(## Why\n).*?(?=## What)", r"\1\n<!-- later -->\n\n", t),
        "heading-missing",
        "high",
        "## Why",
        "`## Why` is empty",
    ),
    "requirement unreadable": (
        AUTH,
        swap("### R2: ", "### Requirement two: "),
        "requirement-format",
        "high",
        "### Requirement two: ",
        "cannot be read",
    ),
    "requirement without title": (
        AUTH,
        lambda t: re.sub("### R2: .*", "### R2", t),
        "requirement-untitled",
        "medium",
        "### R2",
        "R2 has no title",
    ),
    "requirement twice": (
        AUTH,
        swap("### R2: ", "### R1: "),
        "requirement-duplicate",
        "high",
        "### R1: Provider callback",
        "R1 occurs twice, first on line",
    ),
    "no requirement that can be read": (
        AUTH,
        lambda t: re.sub("### R[0-9]+: ", "### On ", t),
        "requirement-format",
        "high",
        "### On ",
        "cannot be read",
    ),
    "requirement without text": (
        AUTH,
        swap("### R2: ", "### R7: Empty\n\n**Priority**: high\n\n### R2: "),
        "requirement-untitled",
        "medium",
        "### R7: ",
        "R7 has no text",
    ),
    "scenario twice": (
        AUTH,
        lambda t: t + "\n" + t[t.index("### Scenario: ") :].replace("Scenario: ", "Scenario 2: ", 1),
        "requirement-duplicate",
        "high",
        "### Scenario 2: ",
        "occurs twice, first on line",
    ),
    "steps without words": (
        AUTH,
        lambda t: t + "\n### Scenario: Empty\n\n- **WHEN**\n- **THEN**\n\nA note.\n",
        "scenario-format",
        "high",
        "### Scenario: Empty",
        "does not say WHEN and THEN",
    ),
    "scenario of two requirements": (
        AUTH,
        swap("- **Requirement**: R1", "- **Requirement**: R1, R9"),
        "spec-ref-unknown",
        "high",
        "### Scenario: ",
        "R9 does not exist",
    ),
    "placeholder in lower case": (
        AUTH,
        swap("## Requirements", "- tbd.\n\n## Requirements"),
        "placeholder",
        "medium",
        "- tbd",
        "tbd is left",
    ),
    "fence left open": (
        AUTH,
        swap("## Acceptance", "~~~~text\n\n## Acceptance"),
        "heading-missing",
        "high",
        "~~~~text",
        "is never closed, so everything below is hidden",
    ),
    "comment left open": (
        "proposal.md",
        swap("## Why", "<!-- a -->\n<!-- b\n\n## Why"),
        "heading-missing",
        "high",
        "<!-- b",
        "the comment opened in line ",
    ),
    "link with blanks": (
        AUTH,
        swap("## Requirements", "See [this](<my file.md>).\n\n## Requirements"),
        "link-broken",
        "medium",
        "See [this]",
        "my file.md does not exist",
    ),
    "scenario without then": (
        AUTH,
        lambda t: t.replace("**THEN**", "**AND**"),
        "scenario-format",
        "high",
        "### Scenario: ",
        "does not say WHEN and THEN",
    ),
    "no scenario": (
        AUTH,
        lambda t: t[: t.index("### Scenario")] + "None.\n",
        "scenario-count",
        "high",
        "## Acceptance Criteria",
        "0 scenarios",
    ),
    "scenario of nothing": (
        AUTH,
        swap("- **Requirement**: R1", "- **Requirement**: R9"),
        "spec-ref-unknown",
        "high",
        "### Scenario: ",
        "R9 does not exist",
    ),
    "placeholder": (
        AUTH,
        swap("## Requirements", "TBD by somebody\n\n## Requirements"),
        "placeholder",
        "medium",
        "TBD by",
        "TBD is left",
    ),
    "broken link": (
        AUTH,
        swap("## Requirements", "See [this](missing.md#x).\n\n## Requirements"),
        "link-broken",
        "medium",
        "See [this]",
        "missing.md",
    ),
    "spec missing": (AUTH, gone, "spec-missing", "high", "- id: auth-flow", "specs/auth-flow.md does not exist"),
    "spec unnamed": (
        "specs/other.md",
        lambda t: (EXAMPLE / AUTH).read_text(),
        "spec-unnamed",
        "medium",
        "",
        "does not name this spec",
    ),
    "reference unknown": (
        TASKS,
        swap("user-model:R1", "user-model:R7"),
        "spec-ref-unknown",
        "high",
        "user-model:R7",
        "user-model:R7 does not exist",
    ),
    "task without id": (
        TASKS,
        lambda t: t.replace("### Task 1.1: ", "### Task: ").replace('id: "1.1"\n', ""),
        "task-format",
        "high",
        "### Task: ",
        "",
    ),
    "task twice": (
        TASKS,
        lambda t: t.replace('"1.2"', '"1.1"').replace("Task 1.2", "Task 1.1"),
        "task-duplicate",
        "high",
        "### Task 1.1: Store identities",
        "1.1 appears twice",
    ),
    "unknown action": (TASKS, swap("action: CREATE", "action: PAINT"), "task-format", "high", "PAINT", "PAINT"),
    "absolute path": (
        TASKS,
        swap("src/notes/models/user.py", "/etc/passwd"),
        "task-path",
        "high",
        "/etc/passwd",
        "is not relative",
    ),
    "path that leads out": (
        TASKS,
        swap("src/notes/models/user.py", "src/../../x.py"),
        "task-path",
        "high",
        "src/../../x.py",
        "leads out",
    ),
    "path into agentd": (
        TASKS,
        swap("src/notes/models/user.py", "agentd/config.toml"),
        "task-path",
        "high",
        "agentd/config.toml",
        "not the project's own",
    ),
    "path into git": (
        TASKS,
        swap("src/notes/models/user.py", ".GIT/hooks/x"),
        "task-path",
        "high",
        ".GIT/hooks/x",
        "not the project's own",
    ),
    "dependency unknown": (
        TASKS,
        swap('["1.1"]', '["9.9"]'),
        "dependency-unknown",
        "high",
        '["9.9"]',
        "depends on 9.9",
    ),
    "requirement without task": (
        TASKS,
        swap("user-model:R2", "user-model:R1"),
        "requirement-without-task",
        "medium",
        "### R2: ",
        "no task works on R2",
    ),
    "task without requirement": (
        TASKS,
        swap("spec_ref: auth-flow:R1\n", ""),
        "task-without-requirement",
        "low",
        "### Task 2.1",
        "belongs to no requirement",
    ),
    "too long": (
        AUTH,
        lambda t: t + "".join(f"word {n}\n" for n in range(1, 401)),
        "too-long",
        "low",
        "word 323",
        "478 lines",
    ),
    "not text": (AUTH, lambda t: t + "\0", "unreadable", "high", "\0", "NUL"),
    "removed of nothing": (
        "specs/api-endpoints.md",
        swap("- R3: ", "- R8: "),
        "spec-ref-unknown",
        "high",
        "- R8: ",
        "R8 does not exist",
    ),
    "renamed of nothing": (
        "specs/api-endpoints.md",
        swap("- R4: ", "- R8: "),
        "spec-ref-unknown",
        "high",
        "- R8: ",
        "R8 does not exist",
    ),
    "removed that says nothing": (
        "specs/api-endpoints.md",
        swap("- R3: ", "- the third: "),
        "requirement-format",
        "high",
        "- the third",
        "names no requirement",
    ),
    "removal in a new spec": (
        AUTH,
        lambda t: t + "\n## Removed\n\n- R9: Old\n",
        "spec-ref-unknown",
        "high",
        "## Removed",
        "no such spec yet",
    ),
    "written and removed": (
        "specs/api-endpoints.md",
        swap("- R3: ", "- R2: "),
        "requirement-duplicate",
        "high",
        "### R2: ",
        "both written and removed",
    ),
    "no spec id": (
        "proposal.md",
        swap("- id: user-model", "- id: User Model"),
        "spec-ref-unknown",
        "high",
        "- id: User Model",
        "'User Model' is not a spec id",
    ),
    "spec depends on nothing": (
        "proposal.md",
        swap("depends: [user-model]", "depends: [models]"),
        "dependency-unknown",
        "high",
        "- id: auth-flow",
        "depends on models",
    ),
    "specs in a circle": (
        "proposal.md",
        swap("depends: []", "depends: [auth-flow]"),
        "dependency-cycle",
        "high",
        "- id: user-model",
        "Circular dependency detected: user-model → auth-flow → user-model",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_finds_its_violation(case: str) -> None:
    file, edit, rule, severity, mark, words = CASES[case]
    edited = plan({file: edit})
    findings = validate(edited, SETTINGS)
    matching = [one for one in findings if one.rule == rule and words in one.message and one.severity == severity]
    assert matching, findings
    one = matching[0]
    text = edited.texts[one.file].decode() if one.file in edited.texts else ""
    assert one.line == text[: text.index(mark)].count("\n") + 1, one
    assert all(one.hint for one in findings)


def test_every_configured_rule_is_covered() -> None:
    tried = {case[2] for case in CASES.values()} - {"unreadable"}
    assert tried == {rule.name for rule in RULES}
    assert {rule.name: rule.severity for rule in (*RULES, *CODE_RULES)} == dict(SETTINGS.severity)


def test_circular_tasks_are_reported_as_in_the_contract() -> None:
    def circle(text: str) -> str:
        return text.replace("depends_on: []", 'depends_on: ["2.1"]', 1).replace(
            "depends_on: []", "depends_on: [data.1]"
        )

    (one,) = found({TASKS: circle})
    assert one.message == "Circular dependency detected: data.1 → logic.1 → data.1"
    assert (one.file, one.line, one.rule, one.severity) == ("tasks.md", 18, "dependency-cycle", "high")


def test_placeholder_in_code_or_a_comment_is_ignored() -> None:
    quiet = "`TODO` is a word.\n\n```\nTBD\n```\n\n<!-- FIXME -->\n\n## Requirements"
    assert found({AUTH: swap("## Requirements", quiet)}) == ()


@pytest.mark.parametrize(
    "link",
    [
        "https://example.com/x",
        "mailto:a@b.c",
        "#overview",
        "user-model.md",
        "../proposal.md#why",
        "src/notes/a%20b.py",
        "<src/notes/a b.py>",
        "<https://example.com/a b>",
    ],
)
def test_valid_link_has_no_finding(link: str) -> None:
    there = {
        "agentd/changes/add-oauth/specs/user-model.md",
        "agentd/changes/add-oauth/proposal.md",
        "src/notes/a b.py",
    }
    edits = {AUTH: swap("## Requirements", f"See [this]({link}).\n\n## Requirements")}
    assert found(edits, folder="agentd/changes/add-oauth", exists=there.__contains__) == ()


def test_documents_missing_from_an_incomplete_plan_are_not_reported() -> None:
    edits: dict[str, Edit] = {TASKS: gone, AUTH: gone}
    assert found(edits, complete=False) == ()
    rules = {(one.file, one.rule) for one in found(edits)}
    assert rules == {("tasks.md", "document-missing"), ("proposal.md", "spec-missing")}


def test_delta_that_only_removes_needs_no_requirement_or_scenario() -> None:
    text = (
        "---\nid: api-endpoints\ntype: spec\nbase_version: 1\n---\n\n"
        "# Spec: API endpoints\n\n## Overview\n\nLess.\n\n## Removed\n\n- R3: Token\n"
    )
    edits: dict[str, Edit] = {
        "specs/api-endpoints.md": lambda t: text,
        TASKS: lambda t: t.replace("spec_ref: api-endpoints:R5", "spec_ref: api-endpoints:R3"),
    }
    assert found(edits) == ()


def test_unreadable_spec_does_not_cause_task_findings() -> None:
    findings = found({AUTH: swap("type: spec", "type: [spec")})
    assert {one.rule for one in findings} == {"frontmatter-invalid"}


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        (AUTH, swap("### R2: ", "### Notes\n\nWords.\n\n### R2: ")),
        (AUTH, swap("### R1: ", "### Functional\n\nThe first ones.\n\n### R1: ")),
        (AUTH, swap("## Overview", "## 1. Overview")),
        (AUTH, swap("## Requirements", "## **2. Requirements**")),
        (AUTH, swap("## Acceptance Criteria", "## **Acceptance Criteria**")),
        (AUTH, swap("- **Requirement**: R1", "- **Requirement**: user-model:R7")),
        (AUTH, swap("- **Requirement**: R1", "- **Requirement**: auth-flow:R1")),
        (AUTH, swap("### Scenario: ", "### 1. Scenario: ")),
        (AUTH, swap("## Acceptance", "## Removed\n\nNone.\n\n## Renamed\n\n- n/a\n\n## Acceptance")),
        (AUTH, lambda t: t + "\n### Scenario: Plain\n\n- When it rains\n- Then the roof closes\n"),
        (AUTH, lambda t: t + "\n### Scenario: Code\n\n```gherkin\nWhen it rains\nThen it closes\n```\n"),
        (AUTH, lambda t: "\n\n" + t),
        (AUTH, lambda t: t + "word\n" * (SETTINGS.max_lines["spec"] - t.count("\n"))),
        (TASKS, lambda t: t + "\n## Testing\n\n- [ ] all tests pass\n"),
    ],
)
def test_valid_variations_have_no_findings(file: str, edit: Edit) -> None:
    assert found({file: edit}) == ()


def test_unclosed_fence_is_reported_once() -> None:
    (one,) = found({AUTH: swap("## Requirements", "~~~~\n\n## Requirements")})
    assert (one.rule, one.message.split(" ")[2]) == ("heading-missing", "fence")
    (one,) = found({"proposal.md": swap("## Why", "```\n\n## Why")})
    assert (one.rule, one.message.split(" ")[2]) == ("heading-missing", "fence")
    rules = [one.rule for one in found({AUTH: lambda t: t.replace("## Overview", "## O") + "\n```\nx\n"})]
    assert rules == ["heading-missing", "heading-missing"]


def test_unclosed_block_in_tasks_is_reported_once() -> None:
    last = (EXAMPLE / TASKS).read_text().rindex("```")
    findings = found({TASKS: lambda t: t[:last] + t[last + 3 :]})
    assert [one.rule for one in findings if one.severity is Severity.HIGH] == ["heading-missing"]


@pytest.mark.parametrize("heading", ["### R2", "### R2.Provider callback", "#### R2: P", "### Requirement 2: P"])
def test_malformed_requirement_heading_is_reported_once(heading: str) -> None:
    (one,) = found({AUTH: swap("### R2: Provider callback", heading)})
    assert one.rule in ("requirement-format", "requirement-untitled")


@pytest.mark.parametrize("pattern", [r"^### (FR-\d+): (.+)$", r"^### (REQ\.\d+): (.+)$", r"^### (AUTH-R\d+): (.+)$"])
def test_tasks_may_refer_to_custom_requirement_ids(pattern: str) -> None:
    prefix = pattern[6:].split("\\d")[0].replace("\\", "")
    own = replace(SETTINGS, requirement_pattern=re.compile(pattern))
    texts = {name: re.sub(r"\bR(?=[0-9])", prefix, (EXAMPLE / name).read_text()).encode() for name in NAMES}
    main = {
        "api-endpoints": spec.parse_spec(
            re.sub(r"\bR(?=[0-9])", prefix, (EXAMPLE / "base/api-endpoints.md").read_text()),
            "x.md",
            own.requirement_pattern,
        )
    }
    assert validate(PlanDocuments(texts, main), own) == ()


def test_findings_are_sorted_by_file_and_line() -> None:
    findings = found(
        {
            AUTH: lambda t: t + "TODO\n\nTBD\n",
            TASKS: swap("user-model:R1", "user-model:R7"),
            "proposal.md": lambda t: t.replace("## Why", "## W"),
        }
    )
    assert [(one.file, one.line) for one in findings] == sorted((one.file, one.line) for one in findings)
    assert len({one.file for one in findings}) > 2


def test_severities_are_configurable_and_off_disables_a_rule() -> None:
    edits: dict[str, Edit] = {AUTH: lambda t: t + "TODO\n"}
    assert is_valid(found(edits)) and not is_valid(found(edits), strict=True)
    grades = {**SETTINGS.severity, "placeholder": Severity.HIGH}
    assert not is_valid(validate(plan(edits), replace(SETTINGS, severity=grades)))
    assert validate(plan(edits), replace(SETTINGS, severity={**grades, "placeholder": None})) == ()
    assert count_by_severity(found(edits)) == {"high": 0, "medium": 1, "low": 0}


def test_patterns_are_configurable() -> None:
    own = replace(
        SETTINGS,
        requirement_pattern=re.compile(r"^###\s+(REQ-\d+)\s+(.*)$"),
        scenario_pattern=re.compile("Expect:"),
        scenario_min_count=2,
    )
    text = (
        "# Spec: x\n\n## Overview\n\nx\n\n## Requirements\n\n### REQ-1 First\n\nx\n\n"
        "## Acceptance Criteria\n\n### Scenario: a\n\nExpect: b\n"
    )
    findings = validate(PlanDocuments({"specs/x.md": text.encode()}, complete=False), own)
    assert {one.rule for one in findings} == {"frontmatter-missing", "scenario-count"}


SPEC = "## Overview\n\nx\n\n## Requirements\n\n"


@pytest.mark.parametrize(
    ("name", "start", "unit"),
    [
        ("specs/x.md", SPEC, "### R1: Title\n\ntext\n\n"),
        ("specs/x.md", SPEC, "### no requirement\n"),
        ("specs/x.md", SPEC, "### Scenario: s\n- **Requirement**: R9\n- WHEN a\n"),
        ("specs/x.md", SPEC, "### Scenario: s\n```gherkin\nWhen a\n```\n"),
        ("specs/x.md", SPEC, "### Scenario: s\n- Requirement: R1\n- **WHEN**\n"),
        ("specs/x.md", SPEC + "### Scenario: s\n- Requirement: R1", ", R9"),
        ("specs/x.md", SPEC + "<!--\n", "a\n# b\n"),
        ("specs/x.md", SPEC, "todo\n- tbd x\n"),
        ("specs/x.md", SPEC, "### R1.1 a..-..-\n"),
        ("specs/x.md", "\n---\n", "a: b\n"),
        ("specs/x.md", SPEC, "TODO [a](b) "),
        ("specs/x.md", SPEC, "`[`](`"),
        ("specs/x.md", SPEC + "## Removed\n\n", "- R8: x\n"),
        ("proposal.md", "## Affected Specs\n\n", "- a\n- B\n"),
        ("tasks.md", "", "### Task 1.1: T\n\n```yaml\nfile: ../x\nspec_ref: a:R1\ndepends_on: [9.9]\n```\n\n"),
        ("tasks.md", "", "- [ ] 1.1 T\n  - File: /x\n"),
        ("tasks.md", "", "### 1.1 T\n- File: /x\n"),
        ("tasks.md", "### Task 1.1: T\n", "```\nfile: x\n```\n"),
        ("tasks.md", "- [ ] 1.1 T\n", "## Testing\n- [ ] x\n"),
    ],
)
def test_validation_takes_linear_time(name: str, start: str, unit: str) -> None:
    assert_grows_linearly(lambda text: validate(PlanDocuments({name: text.encode()}), SETTINGS), start, unit, count=200)


BOMB = "---\na0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)) + "---\n"


@pytest.mark.parametrize("name", ["proposal.md", "specs/x.md", "tasks.md", "clarifications.md"])
@pytest.mark.parametrize(
    "text",
    [BOMB, "x" * 10_000_000, "- " * 5_000_000, "".join(f"### R{n}: t\n" for n in range(10_000)), "[" * 10_000_000],
    ids=["alias bomb", "10 MB line", "10 MB of bullets", "10,000 headings", "10 MB of brackets"],
)
def test_huge_and_malicious_documents_are_validated(name: str, text: str) -> None:
    findings = validate(PlanDocuments({name: text.encode()}), SETTINGS)
    assert findings and (text is not BOMB or any("anchors" in one.message for one in findings))
