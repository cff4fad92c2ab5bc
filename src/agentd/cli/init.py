"""`agentd init`: the files, the checks and the roles a project begins with."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agentd.agents import (
    KEPT,
    DetectedAgent,
    RegistrationResult,
    assign_roles,
    detect_agents,
    register_server,
    role_notes,
    unregister_server,
    wanted_targets,
    write_skills,
)
from agentd.cli import output, text_table
from agentd.domain import AgentdError, AgentMissing, NoProject, Unanswered, UsageError
from agentd.engine import (
    SetupResult,
    commit_setup,
    ensure_agent_installed,
    ignored_files,
    set_up_project,
    uncommitted_files,
)
from agentd.project import (
    CheckSettings,
    Config,
    check_item,
    current_directory,
    find_project,
    git,
    grant_trust,
    load_config,
    propose_checks,
)

_Answers = dict[str, RegistrationResult]
_COMMANDS = "the commands for your own sessions"
_NEXT = 'agentd plan <id> "what should change"'


@click.command("init")
@click.option("--here", is_flag=True, help="Make this folder the project, not the top of the repository.")
@click.option("--force", is_flag=True, help="Write a new config.toml over the present one (a copy is kept).")
@click.option("--commit/--no-commit", default=None, help="Commit agentd/, or do not; else you are asked.")
@click.option("--register", "add", is_flag=True, help="Let your own Claude Code, Gemini CLI and Codex use agentd here.")
@click.option("--unregister", "take_back", is_flag=True, help="Take back what --register wrote, and do nothing else.")
@click.option(
    "--skills/--no-skills", "offer", default=True, help="Write commands like /agentd:plan for your own agents."
)
@output.yes_option
@output.json_option
def command(
    here: bool, force: bool, commit: bool | None, add: bool, take_back: bool, offer: bool, yes: bool, as_json: bool
) -> int:
    """Set up agentd in this repository.

    Writes agentd/ with a config.toml that has checks for what the project uses and roles for the
    agents found on this machine, and commands for your own sessions with them. Run again, it brings
    those commands up to date, seats agents where none was found before, and changes nothing else; what you
    have edited stays as it is.
    """
    repo = git.find_repository(current_directory())
    root = _root(repo, here)
    if take_back:
        if add or force or commit:
            raise UsageError("--unregister does nothing else, so it stands alone", "agentd init --unregister")
        return _unregister(repo, root, as_json)
    asked = output.interactive(as_json, yes)
    overwrite = force and _may_replace(root / "agentd" / "config.toml", asked, yes)
    agents = detect_agents(os.environ, Path(os.path.expanduser("~")))
    roles = assign_roles(agents) if any(agent.installed for agent in agents) else {}
    checks = propose_checks(root)
    outcome = set_up_project(repo, root, roles, checks, overwrite)
    untrusted = _trust(root, checks) if checks and outcome.wrote_config else []
    in_force = load_config(root / "agentd" / "config.toml")
    absent = _absent(in_force)
    answers = register_server(repo, root) if add else {}
    outcome = replace(outcome, skills=_offer(repo, root, agents) if offer else {})
    committed = _commit(repo, outcome, commit, asked, yes)
    data: dict[str, Any] = {
        "project": str(root),
        "files": dict(outcome.files),
        "skills": dict(outcome.skills),
        "copy": str(outcome.copy) if outcome.copy else None,
        "checks": [{"name": check.name, "command": check.command} for check in in_force.checks],
        "roles": {str(role): name for role, name in in_force.roles.items()},
        "notes": [*_ignored(repo, outcome), *untrusted, *_about_seats(in_force, agents, absent)],
        "committed": committed,
        "to_commit": None if committed else _git_commands(repo, root, outcome),
        **_report(answers),
        "next": "agentd doctor" if absent else _NEXT,
    }
    return output.show_result("init", as_json, data, lambda: _render(data, outcome, root, answers), _exit_code(answers))


def _root(repo: git.Repository, here: bool) -> Path:
    """This folder if asked for, else the project we stand in, else the top of the repository."""
    folder = Path(current_directory()).resolve()
    if here and (folder == Path(repo.common) or Path(repo.common) in folder.parents):
        raise UsageError(f"{folder} is git's own folder", "cd to a folder of the project")
    if here:
        return folder
    try:
        return find_project().root
    except NoProject:
        return Path(repo.top)


def _offer(repo: git.Repository, root: Path, agents: Sequence[DetectedAgent]) -> dict[str, str]:
    """After registering: that may have made the folder by which we know that a CLI is used here."""
    return write_skills(repo, root, wanted_targets(root, [agent.name for agent in agents if agent.installed]))


def _unregister(repo: git.Repository, root: Path, as_json: bool) -> int:
    answers = unregister_server(repo, root)
    data = {"project": str(root), **_report(answers)}
    return output.show_result("init", as_json, data, lambda: "\n".join(_answer_lines(answers)), _exit_code(answers))


def _report(answers: _Answers) -> dict[str, Any]:
    refused = {name: {"why": one.why, "entry": one.entry} for name, one in answers.items() if one.why}
    return {"registered": {name: one.word for name, one in answers.items()}, "refused": refused}


def _exit_code(answers: _Answers) -> int:
    return 1 if any(one.word == "refused" for one in answers.values()) else 0


def _may_replace(path: Path, asked: bool, yes: bool) -> bool:
    if not path.exists() or yes:
        return True
    if not asked:
        raise Unanswered(f"{path} is there; writing a new one over it needs a yes", "agentd init --force --yes")
    return click.confirm("Write a new agentd/config.toml over the present one? A copy is kept.", err=True)


def _commit(repo: git.Repository, outcome: SetupResult, commit: bool | None, asked: bool, yes: bool) -> bool:
    names = [] if commit is False else uncommitted_files(repo, outcome)
    if not names:
        return False
    if commit is None and asked:
        commit = click.confirm(f"Commit {_what(names, outcome)} now?", default=True, err=True)
    if commit or (commit is None and yes):
        commit_setup(repo, names)
        return True
    return False


def _trust(root: Path, checks: Sequence[CheckSettings]) -> list[str]:
    """What we just wrote needs no second look. Where that cannot be kept, set-up is done all the same."""
    try:
        grant_trust(find_project(str(root)), map(check_item, checks), os.environ)
        return []
    except (AgentdError, OSError) as error:
        return [f"The checks are not trusted yet: {error}. Mend that, then run agentd trust."]


def _absent(in_force: Config) -> list[AgentMissing]:
    """One for each agent that sits in a role and is not here."""
    missing: dict[str, AgentMissing] = {}
    for role, name in in_force.roles.items():
        try:
            ensure_agent_installed(in_force, role, os.environ)
        except AgentMissing as error:
            missing.setdefault(name, error)
    return list(missing.values())


def _about_seats(in_force: Config, agents: Sequence[DetectedAgent], absent: Sequence[AgentMissing]) -> list[str]:
    """A seat whose agent is not here stays as it is: somebody chose it, or others who work here have that agent."""
    if not any(agent.installed for agent in agents):
        return list(role_notes(agents)) if absent else []
    ways = "install it, name another one under [roles] in agentd/config.toml"
    force = "or have the whole file written anew for what is here: agentd init --force (a copy is kept)"
    return [*(f"{error}: {ways}, {force}." for error in absent), *role_notes(agents, in_force.roles)]


def _ignored(repo: git.Repository, outcome: SetupResult) -> list[str]:
    names = ignored_files(repo, outcome)
    notes = []
    if any(name.endswith("agentd/config.toml") for name in names):
        words = "A .gitignore hides agentd/, so git keeps none of it"
        notes.append(f"{words}; take that line out to keep your specs and reviews.")
    if offered := sorted({os.path.dirname(name) for name in names if name in outcome.skills}):
        notes.append(f"A .gitignore hides {', '.join(offered)}, so the commands there stay on this machine.")
    return notes


def _what(names: Sequence[str], outcome: SetupResult) -> str:
    """What is to be committed, in words."""
    parts = {_COMMANDS if name in outcome.skills else "agentd/" for name in names}
    return " and ".join(sorted(parts))


def _git_commands(repo: git.Repository, root: Path, outcome: SetupResult) -> str | None:
    names = uncommitted_files(repo, outcome)
    homes = {os.path.join(repo.top, os.path.dirname(name)) for name in names if name in outcome.skills}
    own = [str(root / "agentd")] if names and not outcome.skills.keys() >= set(names) else []
    typed = " ".join(os.path.relpath(home) for home in [*own, *sorted(homes)])
    return f'git add {typed} && git commit -m "Set up agentd" -- {typed}' if names else None


def _answer_lines(answers: _Answers) -> list[str]:
    rows = [(f"  {name}", f"{one.word}: {one.why}" if one.why else one.word) for name, one in answers.items()]
    lines = ["MCP server for your own sessions", *text_table.align_rows(rows)]
    for name, one in answers.items():
        if one.entry:
            lines += ["", f"{name} is as it was. To add the entry yourself:"]
            lines += [f"  {line}" for line in one.entry.splitlines()]
        elif one.why:
            lines += ["", f"{name} is as it was. If you want the entry agentd out, take it out yourself."]
    return lines


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    return ["", *([title] if title else []), *text_table.align_rows(rows)] if rows else []


def _render(data: dict[str, Any], outcome: SetupResult, root: Path, answers: _Answers) -> str:
    lines = []
    if outcome.changed:
        lines += [f"agentd is set up in {output.paint(root.name, bold=True)}."]
        files = [(f"  {name}", word) for name, word in data["files"].items() if not name.endswith(".gitkeep")]
        lines += _section("", [row for row in files if row[1] != "kept"])
    else:
        lines += [f"agentd was set up in {output.paint(root.name, bold=True)} already; nothing changed."]
    if outcome.copy:
        lines += [f"  the old config.toml is in {outcome.copy}"]
    offered = [(f"  {name}", word) for name, word in data["skills"].items() if word != KEPT]
    lines += _section("Commands for your own sessions", offered)
    lines += ["", "Checks"]
    lines += text_table.align_rows([(f"  {check['name']}", check["command"]) for check in data["checks"]])
    if not data["checks"]:
        lines += ["  none found: nothing proves the code until agentd/config.toml has one"]
    lines += ["", "Roles"]
    lines += text_table.align_rows([(f"  {role}", name) for role, name in data["roles"].items()])
    if answers:
        lines += ["", *_answer_lines(answers)]
    if data["notes"]:
        lines += ["", *(line for note in data["notes"] for line in output.label("Note", note, output.width()))]
    lines.append("")
    if data["committed"]:
        lines.append("It is committed.")
    elif data["to_commit"]:
        lines += output.following(data["to_commit"], name="Commit")
    return "\n".join([*lines, *output.following(data["next"])])
