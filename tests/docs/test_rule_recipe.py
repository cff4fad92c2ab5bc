"""The recipe "Add a validation rule" of CONTRIBUTING.md, followed in a copy of the source."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from plans import EXAMPLE
from scenario import Scenario

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text().partition("### Add a validation rule")[2].partition("\n##")[0]
CHANGE = "agentd/changes/add-oauth"
STATE = (EXAMPLE / "STATE.yaml").read_text().replace("setup: branch", "setup: in-place")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `src` with the rule of the recipe, added to the file that the recipe names."""
    source = tmp_path_factory.mktemp("recipe") / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("static", "__pycache__"))
    (code,) = re.findall(r"```python\n(.*?)```", RECIPE, re.DOTALL)
    (file,) = re.findall(r"`src/(\S+\.py)`", RECIPE)
    with (source / file).open("a") as module:
        module.write("\n\n" + code)
    return source


@pytest.fixture
def shouting(project: Scenario, source: Path) -> Scenario:
    """A project with a heading in capitals, and the changed agentd as a new process."""
    project.write(f"{CHANGE}/STATE.yaml", STATE.replace("branch: agentd/add-oauth", "branch: null"))
    project.write(f"{CHANGE}/proposal.md", "# Change: add-oauth\n\n## LOUD\n")
    project.program = (sys.executable, "-m", "agentd")
    project.env["PYTHONPATH"] = str(source)
    return project


def found(box: Scenario) -> list[tuple[str, int, str]]:
    ran = box.agentd("validate", "add-oauth", "--json")
    assert "findings" in ran.json, ran
    findings = ran.json["findings"]
    return [(one["file"], one["line"], one["severity"]) for one in findings if one["rule"] == "shouting"]


def test_new_rule_is_found_with_its_default_severity(shouting: Scenario) -> None:
    assert found(shouting) == [("proposal.md", 3, "low")]


@pytest.mark.parametrize(("word", "severities"), [("off", []), ("high", ["high"])])
def test_new_rule_can_be_turned_off_and_regraded(shouting: Scenario, word: str, severities: list[str]) -> None:
    shouting.write("agentd/config.toml", f'schema_version = 1\n[validation.severity]\nshouting = "{word}"\n')
    assert [severity for *_, severity in found(shouting)] == severities


def test_new_rule_is_in_the_configuration_and_in_the_template(shouting: Scenario) -> None:
    values = shouting.agentd("config").out
    assert re.search(r"validation\.severity\.shouting\s+default\s+low", values)
    program = "from agentd.project.config.template import template; print(template())"
    assert '\nshouting = "low"\n' in shouting.execute(sys.executable, "-c", program).out


def test_unchanged_agentd_does_not_know_the_rule(project: Scenario) -> None:
    project.write("agentd/config.toml", 'schema_version = 1\n[validation.severity]\nshouting = "off"\n')
    ran = project.agentd("config")
    assert ran.code == 3 and "unknown key validation.severity.shouting" in ran.err
