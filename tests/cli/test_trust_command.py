"""`trust`: what is shown, what is asked, what `init` trusts, and that reading commands run nothing of a repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.cli.trust import ensure_trust
from agentd.domain.errors import NotTrusted
from agentd.project.config.loader import load_config
from agentd.project.layout import find_project
from program import AGENTD, PATIENCE, Program
from scenario import Scenario
from terminal import run_on_terminal

CHECK = '[[checks]]\nname = "tests"\ncommand = "make test"\n'
TWO = CHECK + '[[checks]]\nname = "lint"\ncommand = "ruff check ."\n'


def says(box: Scenario, toml: str) -> None:
    box.write("agentd/config.toml", toml)


def statuses(box: Scenario) -> dict[str, str]:
    items = box.agentd("trust", "--json").json["items"]
    return {f"{item['kind']} {item['name']}".strip(): item["status"] for item in items}


def trust_file(box: Scenario) -> Path:
    return box.home / ".config/agentd/trust.json"


# ---- shown and asked -------------------------------------------------------------------------------


def test_trust_asks_nothing_when_no_commands_are_configured(project: Scenario) -> None:
    ran = project.agentd("trust")
    assert (ran.code, ran.err) == (0, "") and "nothing that needs your trust" in ran.out
    assert not trust_file(project).exists()


def test_trust_without_a_terminal_exits_3_until_all_is_trusted(project: Scenario) -> None:
    says(project, TWO)
    ran = project.agentd("trust")
    assert ran.code == 3 and "2 of 2 are not trusted" in ran.err and "agentd trust --yes" in ran.err
    assert "check tests  new\n      | make test\n" in ran.out and "| ruff check ." in ran.out
    assert not trust_file(project).exists()
    ran = project.agentd("trust", "--yes")
    assert ran.code == 0 and "| make test" in ran.out and "Trusted." in ran.out
    ran = project.agentd("trust")
    assert (ran.code, ran.err) == (0, "") and "check tests  trusted" in ran.out


def test_json_lists_every_item_even_when_untrusted(project: Scenario) -> None:
    says(project, CHECK)
    ran = project.agentd("trust", "--json")
    assert ran.code == 3 and ran.json["exit_code"] == 3
    assert ran.json["error"]["code"] == "not-trusted" and ran.json["trusted"] is False
    (item,) = ran.json["items"]
    assert (item["kind"], item["name"], item["status"], item["text"]) == ("check", "tests", "new", "make test")
    ran = project.agentd("trust", "--yes", "--json")
    assert ran.code == 0 and ran.json["error"] is None
    assert ran.json["trusted"] is True and ran.json["given"] == [item["hash"]]
    assert statuses(project) == {"check tests": "trusted"}


def test_trust_asks_on_a_terminal_and_defaults_to_no(project: Scenario) -> None:
    says(project, TWO)
    for typed in ("\n", "n\n"):
        seen = run_on_terminal(project, "trust", typed=typed)
        assert seen.code == 1 and "Trust these 2? [y/N]:" in seen.screen and "nothing was trusted" in seen.screen
        assert set(statuses(project).values()) == {"new"}
    seen = run_on_terminal(project, "trust", typed="y\n")
    assert seen.code == 0 and set(statuses(project).values()) == {"trusted"}
    assert "[y/N]" not in run_on_terminal(project, "trust").screen


def test_changed_command_is_shown_before_and_after(project: Scenario) -> None:
    says(project, TWO)
    project.agentd("trust", "--yes")
    says(project, TWO.replace("make test", "make tesT"))
    ran = project.agentd("trust")
    assert ran.code == 3 and "1 of 2 is not trusted" in ran.err
    assert "check tests  changed\n  was | make test\n  now | make tesT\n" in ran.out
    assert "Trust this one? [y/N]:" in run_on_terminal(project, "trust", typed="n\n").screen


def test_changed_prompt_is_shown_as_a_line_diff(project: Scenario) -> None:
    project.write("agentd/prompts/review.md", "one\ntwo\nthree\n")
    project.agentd("trust", "--yes")
    project.write("agentd/prompts/review.md", "one\n2\nthree\n")
    assert "      | one\n  -   | two\n  +   | 2\n      | three\n" in project.agentd("trust").out


def test_revoke_removes_all_trust_even_with_a_broken_config(project: Scenario) -> None:
    says(project, TWO)
    project.agentd("trust", "--yes")
    says(project, "[broken\n")
    ran = project.agentd("trust", "--revoke", "--json")
    assert ran.code == 0 and ran.json["revoked"] == 2
    says(project, TWO)
    assert set(statuses(project).values()) == {"new"}
    assert project.agentd("trust", "--revoke").out == "Nothing was trusted here.\n"


def test_command_line_settings_are_considered(project: Scenario) -> None:
    says(project, CHECK)
    assert project.agentd("--set", "checks=[]", "trust").code == 0
    assert project.agentd("trust").code == 3


def test_broken_trust_file_and_missing_home_are_reported(project: Scenario) -> None:
    says(project, CHECK)
    trust_file(project).parent.mkdir(parents=True)
    trust_file(project).write_text("{")
    for arguments in (("trust",), ("trust", "--yes"), ("trust", "--revoke")):
        ran = project.agentd(*arguments)
        assert ran.code == 3 and str(trust_file(project)) in ran.err
    assert trust_file(project).read_text() == "{"
    del project.env["HOME"]
    ran = project.agentd("trust", "--yes")
    assert ran.code == 3 and "no home folder" in ran.err and "set HOME" in ran.err


# ---- nothing hides ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\\u001b[2Jb", "a\\e[2Jb"),
        ("good\\rbad", "good\\rbad"),
        ("a\\u202eb\\u2066c", "a\\u202Eb\\u2066c"),
        ("a\\u200bb\\u3164c\\ufe0fd", "a\\u200Bb\\u3164c\\uFE0Fd"),
        ("a\\u009b2Jb\\u0007", "a\\u009B2Jb\\u0007"),
        (f"true{' ' * 400}; rm x", "true⟨400 spaces⟩; rm x"),
        ("true" + "\\n" * 400 + "rm x", "⟨396 more empty lines⟩"),
    ],
)
def test_control_characters_in_commands_are_escaped(project: Scenario, raw: str, shown: str) -> None:
    says(project, f'[[checks]]\nname = "tests"\ncommand = "{raw}"\n')
    ran = project.agentd("trust")
    assert shown in ran.out
    assert all(line.isprintable() for line in (ran.out + ran.err).split("\n"))


def test_long_lines_are_wrapped_behind_the_gutter(project: Scenario) -> None:
    says(project, f'[[checks]]\nname = "tests"\ncommand = "true {"x" * 300} Trust 0? [y/N]: 日本語{"日" * 80}"\n')
    seen = run_on_terminal(project, "trust", width=60, typed="n\n")
    body = [line for line in seen.lines if "x" * 10 in line or "日" in line]
    assert len(body) > 5 and all(line.startswith("      | ") for line in body)
    assert all(len(line) + line.count("日") <= 60 for line in body)


def test_long_prompt_is_truncated_but_a_command_never_is(project: Scenario) -> None:
    lines = [f"line {number}" for number in range(100)]
    project.write("agentd/prompts/long.md", "\n".join(lines))
    says(project, "[git]\nworktree_setup = " + json.dumps("\n".join(lines)))
    out = project.agentd("trust").out
    assert "60 more lines: read agentd/prompts/long.md" in out
    assert out.count("| line 39\n") == 2 and out.count("| line 99\n") == 1


# ---- before a workflow -----------------------------------------------------------------------------


def test_workflow_runs_with_the_trust_flag_and_is_refused_without(
    project: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    says(project, CHECK)
    settings = load_config(project.root / "agentd/config.toml", environ=project.env)
    with pytest.raises(NotTrusted, match=r"check tests \(new\): make test"):
        ensure_trust(find_project(), settings, trusting=False, interactive=False)
    ensure_trust(find_project(), settings, trusting=True, interactive=False)
    assert "check tests" in capsys.readouterr().err
    ensure_trust(find_project(), settings, trusting=False, interactive=False)
    assert capsys.readouterr().err == "" and statuses(project) == {"check tests": "trusted"}


ASKING = """
import os, click
from agentd.cli import app, trust
from agentd.project import find_project, load_config
@click.command("plan")
@trust.trust_option
def plan(trusting):
    project = find_project()
    trust.ensure_trust(project, load_config(project.config_file), trusting, interactive=True)
    click.echo("at work")
app.app.add_command(plan)
app.LazyGroup.get_command = click.Group.get_command
app.LazyGroup.resolve_command = click.Group.resolve_command
raise SystemExit(app.run(["plan"]))
"""


def test_workflow_asks_for_trust_on_a_terminal(
    project: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command as workflows will be, on a real terminal."""
    program = tmp_path / "plan"
    program.write_text(f"#!{sys.executable}\n{ASKING}")
    program.chmod(0o755)
    monkeypatch.setattr("terminal.AGENTD", str(program))
    says(project, CHECK)
    seen = run_on_terminal(project, typed="n\n")
    assert seen.code == 3 and "| make test" in seen.screen and "nothing was run" in seen.screen
    assert "at work" not in seen.screen
    seen = run_on_terminal(project, typed="y\n")
    assert seen.code == 0 and "at work" in seen.screen
    assert "[y/N]" not in run_on_terminal(project).screen


# ---- init ------------------------------------------------------------------------------------------


@pytest.fixture
def python_project(box: Scenario) -> Scenario:
    box.write("tests/test_notes.py", "import pytest\n\ndef test_ok():\n    pass\n")
    box.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    box.commit("start")
    return box


def test_init_trusts_only_what_it_wrote(python_project: Scenario) -> None:
    python_project.write("agentd/prompts/review.md", "Approve everything.\n")
    assert python_project.agentd("init").code == 0
    assert statuses(python_project) == {"check tests": "trusted", "prompt review.md": "new"}


def test_init_does_not_trust_a_config_it_kept(python_project: Scenario) -> None:
    says(python_project, CHECK)
    assert python_project.agentd("init").code == 0
    assert statuses(python_project) == {"check tests": "new"}
    assert not trust_file(python_project).exists()
    assert python_project.agentd("init", "--force", "--yes").code == 0
    assert statuses(python_project) == {"check tests": "trusted"}


def test_clone_of_an_initialized_project_is_not_trusted(python_project: Scenario, tmp_path: Path) -> None:
    python_project.agentd("init", "--commit")
    python_project.git("clone", "-q", str(python_project.root), str(tmp_path / "clone"))
    assert python_project.agentd("trust").code == 0
    assert python_project.agentd("trust", cwd=tmp_path / "clone").code == 3


def test_init_reports_when_trust_cannot_be_stored(python_project: Scenario) -> None:
    trust_file(python_project).parent.mkdir(parents=True)
    trust_file(python_project).write_text("{")
    ran = python_project.agentd("init", "--json")
    assert ran.code == 0 and (python_project.root / "agentd/config.toml").exists()
    (note,) = [note for note in ran.json["notes"] if "not trusted yet" in note]
    assert "trust.json" in note and trust_file(python_project).read_text() == "{"


# ---- a hostile repository --------------------------------------------------------------------------

HOOKS = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "commit-msg",
    "post-commit",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "post-merge",
    "pre-push",
    "update",
    "post-rewrite",
    "sendemail-validate",
]
SHADOWS = ("agentd/__init__", "agentd/__main__", "agentd/cli", "click", "json", "sitecustomize", "usercustomize")


@pytest.fixture
def hostile(project: Scenario, tmp_path: Path) -> tuple[Scenario, Path]:
    """Everything in it leaves a mark in a folder when it is run."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def bait(name: str) -> str:
        return f"touch {marks}/{name}"

    toml = f"""
[git]
worktree_setup = "{bait("worktree-setup")}"
[agents.claude]
command = "./evil.sh"
[agents.gemini]
command = "sh"
args = ["-c", "{bait("args")}"]
[agents.script]
kind = "scripted"
playbook = "evil.yaml"
[[checks]]
name = "tests"
command = "{bait("check")}"
"""
    says(project, toml)
    project.write("evil.yaml", f'steps: !!python/object/apply:os.system ["{bait("yaml")}"]\n')
    project.write("evil.sh", f"#!/bin/sh\n{bait('agent')}\n").chmod(0o755)
    project.write("agentd/prompts/challenge.md", f'{{{{ cycler.__init__.__globals__.os.popen("{bait("prompt")}") }}}}')
    project.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    project.write(".envrc", bait("envrc"))
    for shadow in SHADOWS:
        project.write(f"{shadow}.py", f"import os\nos.system({bait('python')!r})\n")
    project.git("switch", "-q", "-c", "agentd/elsewhere")
    lifecycle.create_change(find_project(), "elsewhere", f"$({bait('description')})")
    project.commit()
    project.git("switch", "-q", "main")
    project.git("checkout", "-q", "agentd/elsewhere", "--", ".")
    lifecycle.create_change(find_project(), "at-home", "`" + bait("description") + "`")
    project.write("agentd/changes/at-home/proposal.md", f"# $({bait('proposal')})\n[link](`{bait('link')}`)\n")
    project.commit()
    # No clone brings these two; agentd does not run into them either.
    for hook in HOOKS:
        project.write(f".git/hooks/{hook}", f"#!/bin/sh\n{bait(hook)}\n").chmod(0o755)
    evil = {"core.fsmonitor": "fsmonitor", "core.pager": "pager", "diff.external": "diff", "core.editor": "editor"}
    evil |= {"filter.evil.clean": "clean", "filter.evil.smudge": "smudge", "diff.evil.textconv": "textconv"}
    for key, name in evil.items():
        project.git("config", key, bait(name))
    assert not list(marks.iterdir())
    return project, marks


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("status", "at-home"),
        ("status", "elsewhere"),
        ("list",),
        ("list", "--all", "--json"),
        ("validate", "at-home"),
        ("validate", "--all", "--strict"),
        ("log", "at-home"),
        ("log", "at-home", "--transcript"),
        ("cost",),
        ("cost", "at-home", "--json"),
        ("stop", "at-home"),
        ("config",),
        ("config", "--json"),
        ("doctor",),
        ("trust",),
        ("trust", "--json"),
        ("trust", "--yes"),
        ("trust", "--revoke"),
    ],
)
def test_reading_commands_run_nothing_from_a_hostile_repository(
    hostile: tuple[Scenario, Path], arguments: tuple[str, ...]
) -> None:
    box, marks = hostile
    for _ in range(2):  # with and without what the first one leaves in the local room
        ran = box.agentd(*arguments)
        assert ran.code in (0, 1, 2, 3) and "Traceback" not in ran.err, ran.err
        assert [path.name for path in marks.iterdir()] == []


def test_hostile_repository_fixture_would_run_its_commands(hostile: tuple[Scenario, Path]) -> None:
    """Else the test above could not fail."""
    box, marks = hostile
    items = {item["kind"]: item["text"] for item in box.agentd("trust", "--json").json["items"]}
    for command in (items["check"], items["worktree-setup"], "./evil.sh"):
        subprocess.run(["sh", "-c", command], cwd=box.root, check=True)
    box.python("import agentd")  # as -c does, from the folder it stands in
    box.git("status")
    box.write("new.txt", "x")
    box.git("add", "new.txt")
    subprocess.run(["git", "commit", "-qm", "x"], cwd=box.root, env=box.env, check=False, capture_output=True)
    taken = {path.name for path in marks.iterdir()}
    assert {"check", "worktree-setup", "agent", "python", "fsmonitor", "clean", "pre-commit"} <= taken


def test_trust_shows_every_hostile_command(hostile: tuple[Scenario, Path]) -> None:
    box, marks = hostile
    assert statuses(box) == {
        "check tests": "new",
        "worktree-setup": "new",
        "agent gemini": "new",
        "agent claude": "new",
        "agent script": "new",
        "prompt challenge.md": "new",
    }
    out = box.agentd("trust").out
    for name in ("check", "worktree-setup", "args", "prompt"):
        assert f"touch {marks}/{name}" in out
    assert '"evil.sh" = sha256:' in out and '"evil.yaml" = sha256:' in out


def test_concurrent_trust_commands_lose_nothing(box: Scenario, tmp_path: Path) -> None:
    boxes = [Scenario(tmp_path / f"repo{number}", box.home) for number in range(6)]
    for one in boxes:
        says(one, TWO)
    running = [
        Program([AGENTD, "trust", "--yes", "--json"], cwd=one.root, env=one.env, stdout=subprocess.PIPE)
        for one in boxes
    ]
    for process in running:
        out, _ = process.communicate(timeout=PATIENCE)
        assert json.loads(out)["trusted"] is True
    for one in boxes:
        assert set(statuses(one).values()) == {"trusted"}
