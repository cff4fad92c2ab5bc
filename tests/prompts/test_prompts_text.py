"""What each agent reads, word by word, and what must hold for all of it."""

import re
from importlib import resources

import pytest

import snapshots
from agentd.agents.adapters import adapter_of
from agentd.config.model import Kind
from agentd.documents.self_review import SelfReview, self_review
from agentd.terms import ChallengeVerdict, Severity
from agentd.tools.table import TOOLS, tools_of
from asked import CASES, CLIS, ask_case, stage_of
from support import Box

MUST = {
    "clarify": {"ask_questions"},
    "proposal-gen": {"create_proposal"},
    "proposal-review": {"edit_file"},
    "spec-gen": {"create_spec", "write_spec"},
    "spec-review": {"edit_file"},
    "tasks-gen": {"create_tasks"},
    "tasks-review": {"edit_file"},
    "plan-gen": {"create_proposal", "create_spec", "create_tasks", "validate_change"},
    "plan-review": {"edit_file", "validate_change"},
    "format-fix": {"edit_file", "validate_change"},
    "challenge": {"append_review"},
    "reproposal": {"edit_file", "answer_finding", "validate_change"},
}
FILES = sorted(file.name for file in resources.files("agentd.prompts").iterdir() if file.name.endswith(".md"))
REVIEWS = [case for case in CASES if "-review" in case]


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("case", CASES)
def test_an_agent_reads_exactly_this(project: Box, case: str, cli: Kind) -> None:
    snapshots.check(f"prompts/{cli}/{case}.md", ask_case(case, cli))


def test_every_snapshot_and_every_prompt_is_looked_at() -> None:
    kept = {path.relative_to(snapshots.DATA / "prompts").as_posix() for path in snapshots.DATA.glob("prompts/**/*.md")}
    assert kept == {f"{cli}/{case}.md" for cli in CLIS for case in CASES}
    whole = {file.removesuffix(".md") for file in FILES if not file.startswith("_")}
    assert whole == {prompt for prompt, _ in CASES.values()}


@pytest.mark.parametrize("case", CASES)
def test_it_has_a_form_that_every_cli_passes_on_untouched(project: Box, case: str) -> None:
    text = ask_case(case)
    assert re.match(r"[A-Z][a-z]+ ", text)
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert "\n\n\n" not in text
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert not re.search(r"@\S", text)
    assert "{{" not in text and "{%" not in text
    assert len(text) < 12_000


@pytest.mark.parametrize("file", FILES)
def test_no_file_holds_the_sign_that_brings_another_in_nor_anything_but_plain_letters(file: str) -> None:
    text = (resources.files("agentd.prompts") / file).read_text()
    assert "@" not in text
    assert text.isascii()


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("case", CASES)
def test_it_names_its_stages_tools_as_that_cli_calls_them_and_no_others(project: Box, case: str, cli: Kind) -> None:
    prompt, _ = CASES[case]
    text = ask_case(case, cli)
    name_of = adapter_of(cli).tool_name
    there = {tool.name for tool in TOOLS if f"`{name_of(tool.name)}`" in text}
    assert there <= {tool.name for tool in tools_of(stage_of(prompt))}
    assert there >= MUST.get(prompt, set())
    rest = text
    for tool in TOOLS:
        rest = rest.replace(f"`{name_of(tool.name)}`", "")
    bare = [tool.name for tool in TOOLS if re.search(rf"\b{tool.name}\b", rest)]
    assert not bare, "a tool is only ever called by its whole name"


@pytest.mark.parametrize("case", REVIEWS)
def test_a_self_review_is_shown_the_two_lines_it_may_end_with(project: Box, case: str) -> None:
    *_, first, second = ask_case(case).splitlines()
    assert (self_review(first), self_review(second)) == (SelfReview.PASS, SelfReview.NEEDS_REVISION)


@pytest.mark.parametrize("case", [case for case in CASES if case not in REVIEWS])
def test_nobody_else_is_told_of_them(project: Box, case: str) -> None:
    assert "<review>" not in ask_case(case)


def test_the_challenger_is_told_every_verdict_severity_and_word(project: Box) -> None:
    first, again = ask_case("challenge"), ask_case("challenge-again")
    for word in (*ChallengeVerdict, *Severity):
        assert f"`{word}`" in first
    for word in ("fixed", "open", "withdrawn"):
        assert f"- `{word}`:" in again and f"- `{word}`:" not in first
    assert "`previous`" not in first


def test_a_finding_stands_below_its_id_whatever_is_in_it(project: Box) -> None:
    lines = ask_case("reproposal").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("C1 "))
    until = lines.index("", at)
    assert all(line.startswith("    ") for line in lines[at + 1 : until])
    assert any("user@ example.com" in line for line in lines[at:until])


def test_clarifications_are_in_the_context_file_so_no_prompt_sends_anybody_there(project: Box) -> None:
    assert not [case for case in CASES if "clarifications" in ask_case(case)]
