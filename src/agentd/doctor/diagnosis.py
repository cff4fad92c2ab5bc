"""Run all checks, from the machine to the agents, as far as the setup allows."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentd.agents import assign_roles, basic_environment, detect_agents
from agentd.doctor import agent_checks, system_checks
from agentd.doctor.report import PROJECT_SECTION, DoctorReport, DoctorRow, DoctorState, problem_row
from agentd.domain import AgentdError
from agentd.engine import Stage, tools_of
from agentd.project import CONFIG_PATH, Config, Project, current_directory, find_project, git, load_config

# -P: do not import a folder named agentd in the current directory.
_PYTHON = (sys.executable, "-P", "-m")
_SERVER = (*_PYTHON, "agentd", "mcp")
_NAME = "MCP server"


def server_row(project: Project, environ: Mapping[str, str], server: tuple[str, ...] = _SERVER) -> DoctorRow:
    asking = (*_PYTHON, "agentd.doctor.mcp_probe", *server)
    answer = system_checks.probe_program(asking, env=basic_environment(environ), cwd=project.root)
    if answer.failure:
        return DoctorRow(
            PROJECT_SECTION, _NAME, DoctorState.PROBLEM, answer.failure, "agentd mcp, run by hand, says more"
        )
    found = json.loads(answer.out.rpartition("\n")[2])
    expected = [tool.name for tool in tools_of(Stage.UNBOUND)]
    if sorted(found) != sorted(expected):
        words = f"it offers {', '.join(found)}, not {', '.join(expected)}"
        return DoctorRow(PROJECT_SECTION, _NAME, DoctorState.PROBLEM, words, "install agentd anew")
    return DoctorRow(PROJECT_SECTION, _NAME, DoctorState.OK, f"answers with its {len(found)} tools")


def examine(environ: Mapping[str, str], home: Path, flags: Sequence[str] = ()) -> DoctorReport:
    """Run all checks. Every probe has a time limit, and none leaves anything behind."""
    rows = [*system_checks.machine_rows(environ)]
    project = _find_project(rows, environ)
    settings = _settings(rows, project, environ, home, flags)
    if project:
        rows += system_checks.folder_rows(project)
        if settings:
            rows += system_checks.settings_rows(project, settings, environ)
        rows += (server_row(project, environ), *system_checks.run_rows(project))
    if settings:
        with tempfile.TemporaryDirectory(prefix="agentd-") as scratch:
            here = Path(os.path.realpath(scratch))
            rows += agent_checks.agent_rows(agent_checks.AgentEnvironment(project, settings, environ, home, here))
    return DoctorReport(tuple(rows), str(project.root) if project else None, settings.roles if settings else {})


def _find_project(rows: list[DoctorRow], environ: Mapping[str, str]) -> Project | None:
    try:
        repo = git.find_repository(current_directory())
    except AgentdError as error:
        rows.append(problem_row(PROJECT_SECTION, "repository", error))
        return None
    rows.append(system_checks.repository_row(repo, environ))
    try:
        return find_project()
    except AgentdError as error:
        rows.append(problem_row(PROJECT_SECTION, "config", error))
        return None


def _settings(
    rows: list[DoctorRow], project: Project | None, environ: Mapping[str, str], home: Path, flags: Sequence[str]
) -> Config | None:
    """Load the configuration; without a project, use the roles that `init` would assign."""
    try:
        settings = load_config(project.config_file if project else None, flags=flags, environ=environ)
    except AgentdError as error:
        rows.append(problem_row(PROJECT_SECTION, "config", error))
        return None
    if project:
        rows.append(DoctorRow(PROJECT_SECTION, "config", DoctorState.OK, f"{CONFIG_PATH} is valid"))
        return settings
    return replace(settings, roles=assign_roles(detect_agents(environ, home)))
