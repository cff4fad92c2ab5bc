"""The commands that `init` writes for a person's own sessions: theirs once edited, brought up to date until then."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from agentd.agents.skills import seal_text
from program import AGENTD
from scenario import Result, Scenario
from terminal import run_on_terminal

CLAUDE = {f".claude/commands/agentd/{name}.md" for name in ("plan", "impl", "archive")}
GEMINI = {f".gemini/commands/agentd/{name}.toml" for name in ("plan", "impl", "archive")}
CODEX = {f".agents/skills/agentd-{name}/SKILL.md" for name in ("plan", "impl", "archive")}
PLAN = ".claude/commands/agentd/plan.md"
EDITED, FOREIGN = "kept: edited", "kept: not agentd's"


@pytest.fixture
def bare(box: Scenario) -> Scenario:
    """A repository on a machine with git and no agent."""
    box.write("README.md", "notes\n")
    box.commit("start")
    (box.home / "bin").mkdir()
    found = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (box.home / "bin" / "git").symlink_to(found)
    box.env["PATH"] = str(box.home / "bin")
    return box


def install(box: Scenario, name: str) -> None:
    program = box.home / "bin" / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


def words(box: Scenario, *arguments: str, cwd: Path | None = None) -> dict[str, str]:
    ran = box.agentd("init", *arguments, "--json", cwd=cwd)
    assert ran.code == 0, ran
    found: dict[str, str] = ran.json["skills"]
    return found


def there(box: Scenario) -> set[str]:
    found = {path.relative_to(box.root).as_posix() for path in box.root.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith((".git/", "agentd/")) and name != "README.md"}


def older(path: Path) -> str:
    """The file as an earlier version of agentd would have written it: other words, and a mark that fits them."""
    head, mark, rest = path.read_text().partition("# ")
    after = rest.partition("\n")[2].replace("Plan a change of this project", "Make a plan")
    path.write_text(seal_text(head, after))
    assert mark and "Make a plan" in after
    return path.read_text()


def test_claude_code_commands_are_always_written(bare: Scenario) -> None:
    ran = bare.agentd("init")
    assert ran.code == 0 and there(bare) == CLAUDE
    assert "Commands for your own sessions" in ran.out
    assert all(f"  {name}" in ran.out for name in CLAUDE)


@pytest.mark.parametrize(
    ("program", "folder", "files"),
    [("gemini", ".gemini", GEMINI), ("codex", ".codex", CODEX), ("codex", ".agents", CODEX)],
)
def test_commands_for_another_cli_are_written_where_it_is_installed_or_used(
    bare: Scenario, program: str, folder: str, files: set[str]
) -> None:
    (bare.root / folder).mkdir()
    assert words(bare).keys() == CLAUDE | files
    (bare.root / folder).rename(bare.home / "away")
    install(bare, program)
    assert words(bare).keys() == CLAUDE | files


def test_folders_created_by_register_count_immediately(bare: Scenario) -> None:
    assert words(bare, "--register").keys() == CLAUDE | GEMINI | CODEX
    ran = bare.agentd("init", "--register")
    assert "nothing changed" in ran.out and "Commands for" not in ran.out


def test_no_skills_option_neither_writes_nor_removes_commands(bare: Scenario) -> None:
    assert words(bare, "--no-skills") == {} and there(bare) == set()
    words(bare)
    assert words(bare, "--no-skills") == {} and there(bare) == CLAUDE


def test_second_init_changes_nothing_and_restores_a_deleted_command(bare: Scenario) -> None:
    assert set(words(bare).values()) == {"written"}
    before = (bare.root / PLAN).read_bytes()
    assert set(words(bare).values()) == {"kept"}
    (bare.root / PLAN).unlink()
    found = words(bare)
    assert found.pop(PLAN) == "written" and set(found.values()) == {"kept"}
    assert (bare.root / PLAN).read_bytes() == before


def test_older_command_file_is_updated(bare: Scenario) -> None:
    words(bare)
    path = bare.root / PLAN
    new = path.read_text()
    assert older(path) != new
    ran = bare.agentd("init")
    assert path.read_text() == new
    assert "nothing changed" not in ran.out
    assert f"  {PLAN}  refreshed" in ran.out


def test_command_edited_by_the_user_is_kept_and_reported(bare: Scenario) -> None:
    words(bare)
    path = bare.root / PLAN
    edited = path.read_text().replace("at most 5 questions", "at most 2 questions")
    path.write_text(edited)
    ran = bare.agentd("init")
    assert ran.code == 0 and f"  {PLAN}  {EDITED}" in ran.out and "nothing changed" in ran.out
    assert path.read_text() == edited
    older(path)
    path.write_text(path.read_text() + "Be polite.\n")
    assert words(bare)[PLAN] == EDITED and path.read_text().endswith("Be polite.\n")


def test_foreign_command_file_is_never_touched(bare: Scenario) -> None:
    path = bare.write(PLAN, "my own plan\n")
    assert words(bare)[PLAN] == FOREIGN
    assert path.read_text() == "my own plan\n"
    path.write_bytes(b"\xff\xfe not text")
    assert words(bare)[PLAN] == FOREIGN


def test_line_endings_changed_by_git_are_not_an_edit(bare: Scenario) -> None:
    words(bare)
    path = bare.root / PLAN
    data = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(data)
    assert words(bare)[PLAN] == "kept" and path.read_bytes() == data


def test_commands_are_written_into_a_subfolder_project_with_spaces(bare: Scenario) -> None:
    inner = bare.root / "my packages" / "the api"
    inner.mkdir(parents=True)
    ran = bare.agentd("init", "--here", "--json", cwd=inner)
    assert ran.json["skills"].keys() == {f"my packages/the api/{name}" for name in CLAUDE}
    assert (inner / PLAN).exists() and not (bare.root / ".claude").exists()
    typed = bare.agentd("init", cwd=bare.root / "my packages" / "the api" / "agentd").out
    (line,) = [line for line in typed.splitlines() if line.startswith("Commit  ")]
    done = subprocess.run(
        ["/bin/sh", "-c", line.removeprefix("Commit  ")], cwd=inner / "agentd", env=bare.env, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert bare.git("status", "--porcelain") == ""


def test_commands_are_committed_together_with_agentd(bare: Scenario) -> None:
    bare.write("mine.txt", "not yours")
    seen = run_on_terminal(bare, "init", typed="\n")
    assert "Commit agentd/ and the commands for your own sessions now?" in seen.screen
    names = set(bare.git("show", "--name-only", "--format=", "HEAD").splitlines())
    assert names > CLAUDE and all(name.startswith(("agentd/", ".claude/")) for name in names)
    assert bare.git("status", "--porcelain") == "?? mine.txt"


def test_edited_and_foreign_commands_are_not_committed(bare: Scenario) -> None:
    bare.write(PLAN, "my own plan\n")
    assert bare.agentd("init", "--commit").code == 0
    assert bare.git("status", "--porcelain", "-uall") == f"?? {PLAN}"


def test_only_updated_commands_are_offered_for_commit(bare: Scenario) -> None:
    assert bare.agentd("init", "--commit").code == 0
    older(bare.root / PLAN)
    bare.commit("an older version")
    ran = bare.agentd("init", "--json")
    home = ".claude/commands/agentd"
    assert ran.json["to_commit"] == f'git add {home} && git commit -m "Set up agentd" -- {home}'
    seen = run_on_terminal(bare, "init", typed="\n")
    assert "Commit the commands for your own sessions now?" in seen.screen
    assert bare.git("status", "--porcelain") == ""


def test_ignored_commands_are_written_but_not_committed_and_reported(bare: Scenario) -> None:
    bare.write(".gitignore", "/.claude/\n")
    bare.commit("ignored")
    ran = bare.agentd("init", "--commit")
    assert ran.code == 0 and there(bare) - {".gitignore"} == CLAUDE
    assert "A .gitignore excludes .claude/commands/agentd, so the commands there stay on this machine." in ran.out
    assert "A .gitignore excludes agentd/" not in ran.out
    assert not bare.git("ls-files", ".claude") and bare.git("ls-files", "agentd")


@pytest.mark.parametrize("link", [".claude", ".claude/commands", ".claude/commands/agentd", PLAN])
def test_nothing_is_written_through_a_symlink(bare: Scenario, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    path = bare.root / link
    path.parent.mkdir(parents=True, exist_ok=True)
    if link == PLAN:
        outside.write_text("theirs\n")
    else:
        outside.mkdir()
    path.symlink_to(outside)
    ran = bare.agentd("init", "--commit", "--json")
    assert ran.code == 0
    words = ran.json["skills"][PLAN]
    assert words == f"not written: {link} is a symbolic link, and agentd does not write through links"
    assert path.is_symlink()
    assert outside.read_text() == "theirs\n" if link == PLAN else not any(outside.iterdir())
    assert (bare.root / "agentd/config.toml").exists()


def test_file_in_place_of_a_folder_and_vice_versa_are_reported(bare: Scenario) -> None:
    (bare.root / PLAN).mkdir(parents=True)
    assert words(bare)[PLAN] == f"not written: {PLAN} is not a file"
    bare.write(".gemini", "a note\n")
    install(bare, "gemini")
    found = words(bare)
    assert {found[name] for name in GEMINI} == {"not written: .gemini is not a folder"}


def drop_the_right_to_overrule() -> None:
    """What makes root write where the modes say no."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def as_anybody(box: Scenario, *arguments: str) -> Result:
    done = subprocess.run(
        [AGENTD, *arguments],
        cwd=box.root,
        env=box.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=drop_the_right_to_overrule,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_unwritable_folder_is_reported_and_the_rest_is_written(bare: Scenario) -> None:
    folder = bare.root / ".claude"
    folder.mkdir(mode=0o555)
    (bare.root / ".gemini").mkdir()
    ran = as_anybody(bare, "init", "--commit", "--json")
    assert ran.code == 0, ran
    found = ran.json["skills"]
    assert all(found[name].startswith("not written: cannot write ") for name in CLAUDE)
    assert all("Permission denied" in found[name] for name in CLAUDE)
    assert {found[name] for name in GEMINI} == {"written"}
    assert (bare.root / "agentd/config.toml").exists() and not any(folder.iterdir())
