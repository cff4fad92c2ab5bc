"""`init`: what it lays down, what it leaves alone, and what it asks."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from plans import EXAMPLE
from program import AGENTD
from scenario import Scenario
from terminal import run_on_terminal


@pytest.fixture
def fresh(box: Scenario) -> Scenario:
    """A Python project with tests and two of the agents on PATH, logged in."""
    box.write("tests/test_notes.py", "import pytest\n\ndef test_ok():\n    pass\n")
    box.write("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n")
    box.commit("start")
    for name in ("codex", "claude"):
        program = box.home / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    # git and python only: agents that the machine may have are not in the way
    for name in ("git", "python3", "python"):
        import shutil

        (box.home / "bin" / name).symlink_to(shutil.which(name) or shutil.which("python3") or "")
    box.env |= {"PATH": str(box.home / "bin"), "CODEX_API_KEY": "dummy", "ANTHROPIC_API_KEY": "dummy"}
    return box


def tree(box: Scenario) -> dict[str, bytes]:
    return {
        str(path.relative_to(box.root)): path.read_bytes()
        for path in (box.root / "agentd").rglob("*")
        if path.is_file()
    }


def test_init_writes_the_project_files_with_checks_and_roles(fresh: Scenario) -> None:
    ran = fresh.agentd("init")
    assert ran.code == 0, ran.err
    assert sorted(tree(fresh)) == [
        "agentd/.gitignore",
        "agentd/archive/.gitkeep",
        "agentd/changes/.gitkeep",
        "agentd/config.toml",
        "agentd/specs/.gitkeep",
    ]
    config = tomllib.loads((fresh.root / "agentd/config.toml").read_text())
    assert config["project_name"] == "notes-service"
    assert [(check["name"], check["command"]) for check in config["checks"]] == [
        ("tests", "python -m pytest -q"),
        ("lint", "ruff check ."),
    ]
    assert config["roles"] == {
        "planner": "claude",
        "challenger": "codex",
        "implementer": "claude",
        "reviewer": "codex",
    }
    for words in ("python -m pytest -q", "reviewer     codex", "git add agentd", 'agentd plan <id> "'):
        assert words in ran.out, ran.out


def test_init_writes_the_keys_and_defaults_of_the_example(fresh: Scenario) -> None:
    """All keys of the example, each with its default, roles and checks apart."""
    fresh.agentd("init")
    written = tomllib.loads((fresh.root / "agentd/config.toml").read_text())
    example = tomllib.loads((EXAMPLE / "config.toml").read_text())
    for own in ("roles", "checks"):
        del written[own], example[own]
    assert written == example


def test_second_init_changes_nothing(fresh: Scenario) -> None:
    fresh.agentd("init")
    before = tree(fresh)
    ran = fresh.agentd("init")
    assert ran.code == 0 and "nothing changed" in ran.out
    assert tree(fresh) == before


def test_edited_config_is_kept_and_missing_files_are_restored(fresh: Scenario) -> None:
    fresh.agentd("init")
    path = fresh.root / "agentd/config.toml"
    path.write_text(path.read_text().replace("per_change = 10.0 ", "per_change = 3.0 "))
    (fresh.root / "agentd/.gitignore").unlink()
    assert fresh.agentd("init").code == 0
    assert "per_change = 3.0 " in path.read_text()
    assert (fresh.root / "agentd/.gitignore").exists(), "what is missing comes back"


def test_force_asks_and_keeps_a_copy(fresh: Scenario) -> None:
    fresh.agentd("init")
    path = fresh.root / "agentd/config.toml"
    path.write_text("schema_version = 1\n# mine\n")
    ran = fresh.agentd("init", "--force")
    assert ran.code == 1 and "agentd init --force --yes" in ran.err
    seen = run_on_terminal(fresh, "init", "--force", "--no-commit", typed="n\n")
    assert seen.code == 0 and path.read_text().endswith("# mine\n")
    seen = run_on_terminal(fresh, "init", "--force", "--no-commit", typed="y\n")
    assert seen.code == 0 and "[[checks]]" in path.read_text()
    (copy,) = (fresh.root / ".git/agentd/replaced").iterdir()
    assert copy.read_text() == "schema_version = 1\n# mine\n"


def test_init_offers_to_commit_on_a_terminal(fresh: Scenario) -> None:
    fresh.write("staged.txt", "mine")
    fresh.git("add", "staged.txt")
    seen = run_on_terminal(fresh, "init", typed="\n")
    assert seen.code == 0 and "Committed." in seen.screen
    assert fresh.git("log", "-1", "--format=%s") == "Set up agentd"
    changed = fresh.git("show", "--name-only", "--format=", "HEAD").splitlines()
    assert all(name.startswith(("agentd/", ".claude/", ".agents/")) for name in changed)
    assert fresh.git("status", "--porcelain") == "A  staged.txt", "what was staged stays staged"
    seen = run_on_terminal(fresh, "init")
    assert seen.code == 0 and "nothing changed" in seen.screen


def test_init_can_commit_before_the_first_commit(box: Scenario) -> None:
    ran = box.agentd("init", "--commit", "--json")
    assert ran.code == 0 and ran.json["committed"] is True
    assert box.git("status", "--porcelain") == ""


def test_init_reports_missing_agents_and_checks(box: Scenario) -> None:
    ran = box.agentd("init", PATH="/usr/bin:/bin")
    assert ran.code == 0
    assert "none found: add one to agentd/config.toml" in ran.out
    assert "No agents found" in ran.out
    assert "Commented" not in ran.out


# ---- first agentd, then an agent


@pytest.fixture
def early(fresh: Scenario) -> Scenario:
    """Set up before any agent was installed; then came claude."""
    for name in ("codex", "claude"):
        (fresh.home / "bin" / name).rename(fresh.home / name)
    ran = fresh.agentd("init")
    assert "Then run agentd init again." in ran.out and "Next    agentd doctor" in ran.out, ran.out
    (fresh.home / "claude").rename(fresh.home / "bin/claude")
    return fresh


def roles(box: Scenario) -> set[str]:
    return set(tomllib.loads((box.root / "agentd/config.toml").read_text())["roles"].values())


def test_later_installed_agent_is_assigned_by_the_next_init(early: Scenario) -> None:
    path = early.root / "agentd/config.toml"
    path.write_text(path.read_text().replace("per_change = 10.0 ", "per_change = 3.0 "))
    before = path.read_text().splitlines()
    refused = early.agentd("plan", "add-oauth", "Let people sign in")
    assert refused.code == 3 and "or use claude, which is installed: agentd init" in refused.err
    assert "or use claude, which is installed: agentd init" in early.agentd("doctor").out
    ran = early.agentd("init")
    assert "agentd/config.toml  roles filled in" in ran.out and "agentd plan <id>" in ran.out, ran.out
    assert roles(early) == {"claude"}
    after = path.read_text().splitlines()
    assert [line for line in before if line not in after] == [
        "# No agent was found when this was written: once one is installed, `agentd init` puts in who is here.",
        *(f'{role} = "{name}"' for role, name in zip(("planner", "challenger"), ("gemini", "codex"), strict=True)),
        'reviewer = "codex"',
    ]
    (early.home / "codex").rename(early.home / "bin/codex")
    assert early.agentd("init").code == 0 and roles(early) == {"claude"}, "only the first time"


@pytest.mark.parametrize("edit", ['reviewer = "claude"', 'reviewer = "codex"  # hers', 'reviewer = "codex"\n# hers'])
def test_edited_roles_are_kept_and_the_missing_agent_is_reported(early: Scenario, edit: str) -> None:
    path = early.root / "agentd/config.toml"
    path.write_text(path.read_text().replace('reviewer = "codex"', edit, 1))
    before = path.read_bytes()
    ran = early.agentd("init")
    assert path.read_bytes() == before and "nothing changed" in ran.out
    assert "gemini (gemini) is not installed, and it is the planner: install it, assign another" in ran.out
    assert "agentd init --force" in ran.out
    assert "Next    agentd doctor" in ran.out and "agentd plan" not in ran.out
    assert early.agentd("init", "--force", "--yes", "--no-commit").code == 0 and roles(early) == {"claude"}


def test_roles_are_not_reassigned_when_an_agent_is_uninstalled(fresh: Scenario) -> None:
    (fresh.home / "bin/gemini").write_text("#!/bin/sh\n")
    (fresh.home / "bin/gemini").chmod(0o755)
    fresh.env["GEMINI_API_KEY"] = "dummy"
    fresh.agentd("init")
    before = tree(fresh)
    (fresh.home / "bin/gemini").unlink()
    ran = fresh.agentd("init", "--json").json
    assert tree(fresh) == before and ran["next"] == "agentd doctor"
    assert [note for note in ran["notes"] if note.startswith("gemini (gemini) is not installed")]


def test_init_here_makes_a_subfolder_the_project(fresh: Scenario) -> None:
    inner = fresh.root / "packages/api"
    inner.mkdir(parents=True)
    assert fresh.agentd("init", "--here", cwd=inner).code == 0
    assert (inner / "agentd/config.toml").exists() and not (fresh.root / "agentd").exists()
    assert fresh.agentd("list", cwd=inner).code == 0


def test_init_in_a_subfolder_uses_the_repository_root(fresh: Scenario) -> None:
    assert fresh.agentd("init", cwd=fresh.root / "tests").code == 0
    assert (fresh.root / "agentd/config.toml").exists()


def test_init_outside_git_writes_nothing(box: Scenario, tmp_path: Path) -> None:
    ran = box.agentd("init", cwd=tmp_path)
    assert ran.code == 3 and "git init" in ran.err
    assert not (tmp_path / "agentd").exists()


def test_broken_config_is_reported_and_not_overwritten(fresh: Scenario) -> None:
    fresh.write("agentd/config.toml", "[workflow\n")
    ran = fresh.agentd("init")
    assert ran.code == 3 and "agentd/config.toml:1" in ran.err.replace(str(fresh.root) + "/", "")
    assert (fresh.root / "agentd/config.toml").read_text() == "[workflow\n"


def test_init_again_in_a_subproject_keeps_it_the_project(fresh: Scenario) -> None:
    inner = fresh.root / "packages/api"
    inner.mkdir(parents=True)
    assert fresh.agentd("init", "--here", cwd=inner).code == 0
    ran = fresh.agentd("init", cwd=inner)
    assert ran.code == 0 and "nothing changed" in ran.out
    assert not (fresh.root / "agentd").exists()


def test_init_in_the_git_folder_is_refused(fresh: Scenario) -> None:
    ran = fresh.agentd("init", "--here", cwd=fresh.root / ".git")
    assert ran.code == 2 and not (fresh.root / ".git/agentd/config.toml").exists()


def test_init_commits_only_what_it_wrote(fresh: Scenario) -> None:
    fresh.agentd("init", "--commit")
    fresh.write("agentd/changes/wip/STATE.yaml", "change_id: wip\n")
    (fresh.root / "agentd/.gitignore").unlink()
    assert fresh.agentd("init", "--yes").code == 0
    assert fresh.git("status", "--porcelain", "-uall") == "?? agentd/changes/wip/STATE.yaml"


def test_ignored_agentd_folder_is_reported(fresh: Scenario) -> None:
    fresh.write(".gitignore", "agentd/\n")
    ran = fresh.agentd("init", "--commit")
    assert ran.code == 0 and "A .gitignore excludes agentd/" in ran.out


def test_bare_repository_and_deleted_working_folder_are_reported(fresh: Scenario, tmp_path: Path) -> None:
    fresh.git("clone", "-q", "--bare", str(fresh.root), str(tmp_path / "bare.git"))
    ran = fresh.agentd("list", cwd=tmp_path / "bare.git")
    assert ran.code == 3 and "is a bare repository" in ran.err
    (tmp_path / "gone").mkdir()
    command = f"cd '{tmp_path}/gone' && rmdir '{tmp_path}/gone' && '{AGENTD}' list"
    done = subprocess.run(
        ["sh", "-c", command], env=fresh.env | {"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 3 and "the current folder no longer exists" in done.stderr
