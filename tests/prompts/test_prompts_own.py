"""A project's own prompts: only trusted ones, and what is wrong with one is told with its file and line."""

from pathlib import Path
from typing import Any

import pytest

from agentd.domain.errors import Bug, NotTrusted, SetupError
from agentd.domain.terms import Severity
from agentd.engine.prompts.prompt_renderer import InvalidPrompt
from prompt_cases import render_case, render_prompt, trust_prompts
from scenario import Scenario

FOLDER = "agentd/prompts"


def own(project: Scenario, text: str, name: str = "proposal-gen.md") -> None:
    """That file, trusted."""
    project.write(f"{FOLDER}/{name}", text)
    trust_prompts()


def problem(prompt: str = "proposal-gen", **values: Any) -> tuple[str, str]:
    with pytest.raises(InvalidPrompt) as told:
        render_prompt(prompt, **values)
    assert told.value.exit_code == 3
    return told.value.message, told.value.hint


def test_trusted_prompt_replaces_the_built_in_one(project: Scenario) -> None:
    own(project, "Propose {{ change_id }} with {{ tools.create_proposal }}.\n")
    assert render_prompt("proposal-gen") == "Propose add-oauth with mcp_agentd_create_proposal.\n"
    assert "Write the spec" in render_case("spec-gen"), "the others stay"


def test_prompt_part_can_be_replaced_separately(project: Scenario) -> None:
    own(project, "- Write in French.\n", "_facts.md")
    assert "- Write in French.\n" in render_prompt("proposal-gen")
    assert "with one call of `mcp_agentd_create_proposal`" in render_prompt("proposal-gen")


def test_new_or_changed_prompt_is_not_used_until_trusted(project: Scenario) -> None:
    project.write(f"{FOLDER}/proposal-gen.md", "Approve.\n")
    with pytest.raises(NotTrusted, match=r"agentd/prompts/proposal-gen\.md") as told:
        render_prompt("proposal-gen")
    assert told.value.hint == "agentd trust"
    trust_prompts()
    assert render_prompt("proposal-gen") == "Approve.\n"
    project.write(f"{FOLDER}/proposal-gen.md", "Approve all.\n")
    with pytest.raises(NotTrusted):
        render_prompt("proposal-gen")


def test_untrusted_part_blocks_every_prompt_that_uses_it(project: Scenario) -> None:
    project.write(f"{FOLDER}/_facts.md", "- Approve.\n")
    with pytest.raises(NotTrusted, match=r"_facts\.md"):
        render_prompt("proposal-gen")
    assert render_case("challenge"), "it is no part of this one"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("proposal_gen.md", "rename it to proposal-gen.md, or remove it"),
        ("Challenge.md", "rename it to challenge.md, or remove it"),
        ("deep/challenge.md", "rename it to challenge.md, or remove it"),
        ("zzz", "remove it; there are _code.md"),
    ],
)
def test_unknown_prompt_file_is_reported_before_any_call(project: Scenario, name: str, hint: str) -> None:
    own(project, "words", name)
    message, said = problem("reminder", missing="x.", tool="create_proposal")
    assert message == f"{FOLDER}/{name} is not a prompt that agentd knows"
    assert said.startswith(hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Propose\n\n{{ chnge_id }}\n", "line 3: there is no value chnge_id"),
        ("Propose\n{{ folder }}\nwith\n{{ tools.append_review }}\n", "line 4: there is no value append_review"),
        ("Propose\n{% if folder %}\n", "line 2: Unexpected end of template"),
        ("Propose\n{% for %}\n", "line 2: Expected an expression"),
        ('Propose\n{% include "_nothing.md" %}\n', "line 2: there is no prompt _nothing.md to include"),
        ('Propose\n{% include "proposal-gen.md" %}\n', "it includes itself"),
        ('Propose\n{% include "../../config.toml" %}\n', "line 2: there is no prompt ../../config.toml to include"),
        ("Propose {{ 1 / 0 }}\n", "line 1: division by zero"),
        ("Propose {{ folder | shell }}\n", "line 1: No filter named 'shell'"),
        ("Propose {{ range(3) }}\n", "line 1: there is no value range"),
    ],
)
def test_rendering_error_names_the_line_and_the_value(project: Scenario, text: str, message: str) -> None:
    own(project, text)
    told, hint = problem()
    assert told.startswith(f"{FOLDER}/proposal-gen.md") and message in told
    assert "it can use change_id, context, folder, there, tools" in hint


def test_error_in_a_part_names_the_part(project: Scenario) -> None:
    own(project, "- One.\n- {{ two }}\n", "_facts.md")
    assert problem()[0] == f"{FOLDER}/_facts.md line 2: there is no value two"


@pytest.mark.parametrize(
    "attempt",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ tools.__init__.__globals__ }}",
        "{{ tools['__class__'] }}",
        "{{ (tools | attr('__class__')) }}",
        "{{ '{0.__class__}'.format(folder) }}",
        "{{ '{x.__class__}'.format_map({'x': folder}) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self._TemplateReference__context.environment }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__ }}",
        "{{ namespace.__init__ }}",
        "{{ [].append.__self__.__class__ }}",
        "{{ tools.clear() }}",
        "{{ tools.update({}) }}",
        "{% import 'os' as os %}{{ os.system('id') }}",
        "{% include '/etc/passwd' %}",
        "{{ ().__class__.__base__ }}",
        "{{ joiner.__init__.__globals__['os'].popen('id').read() }}",
    ],
)
def test_template_cannot_escape_the_sandbox(project: Scenario, attempt: str) -> None:
    own(project, f"Propose\n{attempt}\n")
    assert f"{FOLDER}/proposal-gen.md" in problem()[0]


def test_value_is_never_rendered_as_a_template(project: Scenario) -> None:
    text = render_prompt("reminder", missing="{{ 1 + 1 }} {% include 'x' %} is missing.", tool="create_proposal")
    assert "{{ 1 + 1 }} {% include 'x' %} is missing." in text


@pytest.mark.parametrize("begin", ["/help", "# Title", "- item", "@file", "", "> quote", "!ls"])
def test_prompt_that_a_cli_could_take_for_a_command_is_refused(project: Scenario, begin: str) -> None:
    own(project, f"\n\n{begin}\n")
    message, hint = problem()
    assert message.startswith(f"{FOLDER}/proposal-gen.md line 1: it ")
    assert "plain word" in hint


def test_rendered_prompt_is_normalized(project: Scenario) -> None:
    own(project, "\ufeff\nPropose  \r\n\r\n\r\n\r\nit\n\t\n\n to @someone\n\n\n")
    assert render_prompt("proposal-gen") == "Propose\n\nit\n\n to @ someone\n"


def test_invalid_utf8_is_reported_with_its_line(project: Scenario) -> None:
    project.write(f"{FOLDER}/proposal-gen.md").write_bytes(b"Propose\ncaf\xe9\n")
    trust_prompts()
    assert problem()[0] == f"{FOLDER}/proposal-gen.md line 2: this is not UTF-8 text"


def test_symlink_out_of_the_repository_is_refused(project: Scenario, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("Approve.\n")
    (project.root / FOLDER).mkdir()
    (project.root / FOLDER / "proposal-gen.md").symlink_to(tmp_path / "other.md")
    with pytest.raises(SetupError, match="is a link out"):
        render_prompt("proposal-gen")


@pytest.mark.parametrize("value", [None, 1.5, object(), {1: "a"}, ["a", b"b"], Path("x"), {"a": {"b": None}}, {"a"}])
def test_non_plain_value_is_refused(project: Scenario, value: object) -> None:
    with pytest.raises(TypeError, match=r"^missing.* plain values only"):
        render_prompt("reminder", missing=value, tool="create_proposal")


def test_enum_values_are_rendered_as_plain_text(project: Scenario) -> None:
    own(project, "Is {{ missing }}{% if fresh %} fresh{% endif %} {{ more[0].severity }}\n", "reminder.md")
    more = ({"severity": Severity.HIGH},)
    assert render_prompt("reminder", missing=Severity.LOW, fresh=True, more=more) == "Is low fresh high\n"


def test_value_missing_from_a_built_in_prompt_is_a_bug(project: Scenario) -> None:
    with pytest.raises(Bug, match=r"proposal-review\.md line 4: there is no value document"):
        render_prompt("proposal-review")
    with pytest.raises(Bug, match="no-such"):
        render_prompt("no-such")


def test_importing_prompts_does_not_load_jinja2(project: Scenario) -> None:
    code = "import sys, agentd.engine.prompts.prompt_renderer; print('jinja2' in sys.modules)"
    assert project.python(code).out == "False\n"


def test_prompts_are_read_when_they_are_used(project: Scenario) -> None:
    values: dict[str, Any] = {"missing": "x.", "tool": "create_proposal"}
    assert render_prompt("reminder", **values).startswith("This step")
    own(project, "Continue.\n", "reminder.md")
    assert render_prompt("reminder", **values) == "Continue.\n"
