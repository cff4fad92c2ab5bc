"""The whole look: from the machine to the agents, as far as what is there allows."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentd.doctor import ground, place, seats, server
from agentd.doctor.rows import PROJECT, Report, Row, State, problem
from agentd.domain.errors import AgentdError
from agentd.project import config, detection, git
from agentd.project.config import Config
from agentd.project.layout import CONFIG_PATH, Project, current_directory, find_project


def examine(environ: Mapping[str, str], home: Path, flags: Sequence[str] = ()) -> Report:
    """Every probe has a clock, and none writes anything that stays."""
    rows = [*ground.rows(environ)]
    project = _find(rows, environ)
    settings = _settings(rows, project, environ, home, flags)
    if project:
        rows += place.folders(project)
        if settings:
            rows += place.settings(project, settings, environ)
        rows += (server.row(project, environ), *place.runs(project))
    if settings:
        with tempfile.TemporaryDirectory(prefix="agentd-") as scratch:
            here = Path(os.path.realpath(scratch))
            rows += seats.rows(seats.Surroundings(project, settings, environ, home, here))
    return Report(tuple(rows), str(project.root) if project else None, settings.roles if settings else {})


def _find(rows: list[Row], environ: Mapping[str, str]) -> Project | None:
    try:
        repo = git.find_repository(current_directory())
    except AgentdError as error:
        rows.append(problem(PROJECT, "repository", error))
        return None
    rows.append(place.repository(repo, environ))
    try:
        return find_project()
    except AgentdError as error:
        rows.append(problem(PROJECT, "config", error))
        return None


def _settings(
    rows: list[Row], project: Project | None, environ: Mapping[str, str], home: Path, flags: Sequence[str]
) -> Config | None:
    """Without a project, the roles are those that `init` would give."""
    try:
        settings = config.load_config(project.config_file if project else None, flags=flags, environ=environ)
    except AgentdError as error:
        rows.append(problem(PROJECT, "config", error))
        return None
    if project:
        rows.append(Row(PROJECT, "config", State.OK, f"{CONFIG_PATH} is valid"))
        return settings
    return replace(settings, roles=detection.assign_roles(detection.detect_agents(environ, home)))
