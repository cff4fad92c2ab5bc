"""`agentd init`: create the project's files and configure its checks and roles."""

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

COMMANDS = {"init": (10, "Set up agentd in this repository.")}

_Registrations = dict[str, RegistrationResult]
_COMMANDS = "the commands for your own sessions"
_NEXT = 'agentd plan <id> "what should change"'


@click.command("init")
@click.option("--here", is_flag=True, help="Use this folder as the project root instead of the top of the repository.")
@click.option("--force", is_flag=True, help="Replace config.toml with a new one (keeps a copy).")
@click.option("--commit/--no-commit", default=None, help="Commit agentd/ or not, without asking.")
@click.option(
    "--register",
    "add",
    is_flag=True,
    help="Register agentd's MCP server with the agent CLIs that you use yourself.",
)
@click.option("--unregister", "take_back", is_flag=True, help="Undo --register, and do nothing else.")
@click.option(
    "--skills/--no-skills", "offer", default=True, help="Write commands like /agentd:plan for your own agents."
)
@output.yes_option
@output.json_option
def command(
    here: bool, force: bool, commit: bool | None, add: bool, take_back: bool, offer: bool, yes: bool, as_json: bool
) -> int:
    """Set up agentd in this repository.

    Creates agentd/ with a config.toml that has checks for the tools the project uses and roles for the
    agents installed on this machine, and adds commands to your own agent sessions. Running it again updates
    those commands and assigns agents to roles that have none. It never overwrites your edits.
    """
    repo = git.find_repository(current_directory())
    root = _root(repo, here)
    if take_back:
        if add or force or commit:
            raise UsageError("--unregister cannot be combined with other options", "agentd init --unregister")
        return _unregister(repo, root, as_json)
    can_ask = output.interactive(as_json, yes)
    overwrite = force and _may_replace(root / "agentd" / "config.toml", can_ask, yes)
    agents = detect_agents(os.environ, Path(os.path.expanduser("~")))
    roles = assign_roles(agents) if any(agent.installed for agent in agents) else {}
    checks = propose_checks(root)
    outcome = set_up_project(repo, root, roles, checks, overwrite)
    untrusted = _trust_checks(root, checks) if checks and outcome.wrote_config else []
    config = load_config(root / "agentd" / "config.toml")
    missing_agents = _missing_agents(config)
    registrations = register_server(repo.main, repo.common, root) if add else {}
    outcome = replace(outcome, skills=_write_skills(repo, root, agents) if offer else {})
    committed = _commit(repo, outcome, commit, can_ask, yes)
    data: dict[str, Any] = {
        "project": str(root),
        "files": dict(outcome.files),
        "skills": dict(outcome.skills),
        "copy": str(outcome.copy) if outcome.copy else None,
        "checks": [{"name": check.name, "command": check.command} for check in config.checks],
        "roles": {str(role): name for role, name in config.roles.items()},
        "notes": [*_ignored_notes(repo, outcome), *untrusted, *_role_notes(config, agents, missing_agents)],
        "committed": committed,
        "to_commit": None if committed else _git_commands(repo, root, outcome),
        **_registration_data(registrations),
        "next": "agentd doctor" if missing_agents else _NEXT,
    }
    return output.show_result(
        "init", as_json, data, lambda: _render(data, outcome, root, registrations), _exit_code(registrations)
    )


def _root(repo: git.Repository, here: bool) -> Path:
    """Return this folder with --here, else the enclosing project, else the top of the repository."""
    folder = Path(current_directory()).resolve()
    if here and (folder == Path(repo.common) or Path(repo.common) in folder.parents):
        raise UsageError(f"{folder} is inside the .git folder", "cd to a project folder")
    if here:
        return folder
    try:
        return find_project().root
    except NoProject:
        return Path(repo.top)


def _write_skills(repo: git.Repository, root: Path, agents: Sequence[DetectedAgent]) -> dict[str, str]:
    """Write the session commands. Runs after registering, which may create the folder that marks a CLI as used."""
    return write_skills(repo.top, root, [agent.name for agent in agents if agent.installed])


def _unregister(repo: git.Repository, root: Path, as_json: bool) -> int:
    registrations = unregister_server(repo.main, repo.common, root)
    data = {"project": str(root), **_registration_data(registrations)}
    return output.show_result(
        "init", as_json, data, lambda: "\n".join(_registration_lines(registrations)), _exit_code(registrations)
    )


def _registration_data(registrations: _Registrations) -> dict[str, Any]:
    refused = {name: {"why": result.why, "entry": result.entry} for name, result in registrations.items() if result.why}
    return {"registered": {name: result.word for name, result in registrations.items()}, "refused": refused}


def _exit_code(registrations: _Registrations) -> int:
    return 1 if any(result.word == "refused" for result in registrations.values()) else 0


def _may_replace(path: Path, can_ask: bool, yes: bool) -> bool:
    if not path.exists() or yes:
        return True
    if not can_ask:
        raise Unanswered(f"{path} already exists; confirm that it may be replaced", "agentd init --force --yes")
    return click.confirm("Replace agentd/config.toml? A copy is kept.", err=True)


def _commit(repo: git.Repository, outcome: SetupResult, commit: bool | None, can_ask: bool, yes: bool) -> bool:
    names = [] if commit is False else uncommitted_files(repo, outcome)
    if not names:
        return False
    if commit is None and can_ask:
        commit = click.confirm(f"Commit {_describe_files(names, outcome)} now?", default=True, err=True)
    if commit or (commit is None and yes):
        commit_setup(repo, names)
        return True
    return False


def _trust_checks(root: Path, checks: Sequence[CheckSettings]) -> list[str]:
    """Trust the checks that were just written. A failure becomes a note and does not stop the setup."""
    try:
        grant_trust(find_project(str(root)), map(check_item, checks), os.environ)
        return []
    except (AgentdError, OSError) as error:
        return [f"The checks are not trusted yet: {error}. Fix that, then run agentd trust."]


def _missing_agents(config: Config) -> list[AgentMissing]:
    """Return one error per agent that has a role but is not installed."""
    missing: dict[str, AgentMissing] = {}
    for role, name in config.roles.items():
        try:
            ensure_agent_installed(config, role, os.environ)
        except AgentMissing as error:
            missing.setdefault(name, error)
    return list(missing.values())


def _role_notes(config: Config, agents: Sequence[DetectedAgent], missing_agents: Sequence[AgentMissing]) -> list[str]:
    """Explain missing agents. Their roles stay: they may be intended, or installed on a colleague's machine."""
    if not any(agent.installed for agent in agents):
        return list(role_notes(agents)) if missing_agents else []
    options = "install it, assign another agent under [roles] in agentd/config.toml"
    force = "or regenerate the file for the installed agents: agentd init --force (keeps a copy)"
    return [*(f"{error}: {options}, {force}." for error in missing_agents), *role_notes(agents, config.roles)]


def _ignored_notes(repo: git.Repository, outcome: SetupResult) -> list[str]:
    names = ignored_files(repo, outcome)
    notes = []
    if any(name.endswith("agentd/config.toml") for name in names):
        notes.append("A .gitignore excludes agentd/; remove that line to keep your specs and reviews in git.")
    if folders := sorted({os.path.dirname(name) for name in names if name in outcome.skills}):
        notes.append(f"A .gitignore excludes {', '.join(folders)}, so the commands there stay on this machine.")
    return notes


def _describe_files(names: Sequence[str], outcome: SetupResult) -> str:
    """Name what will be committed."""
    parts = {_COMMANDS if name in outcome.skills else "agentd/" for name in names}
    return " and ".join(sorted(parts))


def _git_commands(repo: git.Repository, root: Path, outcome: SetupResult) -> str | None:
    names = uncommitted_files(repo, outcome)
    folders = {os.path.join(repo.top, os.path.dirname(name)) for name in names if name in outcome.skills}
    agentd_folder = [str(root / "agentd")] if names and not outcome.skills.keys() >= set(names) else []
    paths = " ".join(os.path.relpath(folder) for folder in [*agentd_folder, *sorted(folders)])
    return f'git add {paths} && git commit -m "Set up agentd" -- {paths}' if names else None


def _registration_lines(registrations: _Registrations) -> list[str]:
    rows = [
        (f"  {name}", f"{result.word}: {result.why}" if result.why else result.word)
        for name, result in registrations.items()
    ]
    lines = ["MCP server for your own sessions", *text_table.align_rows(rows)]
    for name, result in registrations.items():
        if result.entry:
            lines += ["", f"{name} was not changed. To add the entry yourself:"]
            lines += [f"  {line}" for line in result.entry.splitlines()]
        elif result.why:
            lines += ["", f"{name} was not changed. To remove the agentd entry, edit the file yourself."]
    return lines


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    return ["", *([title] if title else []), *text_table.align_rows(rows)] if rows else []


def _render(data: dict[str, Any], outcome: SetupResult, root: Path, registrations: _Registrations) -> str:
    lines = []
    if outcome.changed:
        lines += [f"agentd is set up in {output.paint(root.name, bold=True)}."]
        files = [(f"  {name}", word) for name, word in data["files"].items() if not name.endswith(".gitkeep")]
        lines += _section("", [row for row in files if row[1] != "kept"])
    else:
        lines += [f"agentd is already set up in {output.paint(root.name, bold=True)}; nothing changed."]
    if outcome.copy:
        lines += [f"  the old config.toml is in {outcome.copy}"]
    skills = [(f"  {name}", word) for name, word in data["skills"].items() if word != KEPT]
    lines += _section("Commands for your own sessions", skills)
    lines += ["", "Checks"]
    lines += text_table.align_rows([(f"  {check['name']}", check["command"]) for check in data["checks"]])
    if not data["checks"]:
        lines += ["  none found: add one to agentd/config.toml, or the code will not be tested"]
    lines += ["", "Roles"]
    lines += text_table.align_rows([(f"  {role}", name) for role, name in data["roles"].items()])
    if registrations:
        lines += ["", *_registration_lines(registrations)]
    if data["notes"]:
        lines += ["", *(line for note in data["notes"] for line in output.label("Note", note, output.width()))]
    lines.append("")
    if data["committed"]:
        lines.append("Committed.")
    elif data["to_commit"]:
        lines += output.following(data["to_commit"], name="Commit")
    return "\n".join([*lines, *output.following(data["next"])])
