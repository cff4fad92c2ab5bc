"""Check the agents assigned to roles: installed, in a tested version, logged in, and with which models."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentd.agents import (
    CLIS,
    AgentSettings,
    CliProfile,
    LoginStatus,
    allowed_environment,
    detect_login,
    find_program,
    get_adapter,
    parse_playbook,
    suggest_alternative,
)
from agentd.doctor import system_checks
from agentd.doctor.report import DoctorRow, DoctorState, agent_section, problem_row
from agentd.domain import AgentdError
from agentd.project import Config, Project, agent_item, is_trusted
from agentd.storage import files

_VERSION = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")


@dataclass(frozen=True)
class AgentEnvironment:
    """`project` None: check the agents that `init` would assign. `scratch` is an empty folder."""

    project: Project | None
    config: Config
    environ: Mapping[str, str]
    home: Path
    scratch: Path

    @property
    def root(self) -> Path:
        return self.project.root if self.project else self.scratch


def agent_rows(here: AgentEnvironment) -> Iterator[DoctorRow]:
    for name in dict.fromkeys(here.config.roles.values()):
        agent = here.config.agents[name]
        yield from (_playbook(here, agent),) if agent.kind == "scripted" else _program(here, agent)


def _playbook(here: AgentEnvironment, agent: AgentSettings) -> DoctorRow:
    about, path = agent_section(agent.name), here.root / agent.playbook
    other = f"name another one under [agents.{agent.name}] playbook"
    if not path.is_file():  # reading a named pipe would block
        return DoctorRow(about, "playbook", DoctorState.PROBLEM, f"{agent.playbook} is no file of the project", other)
    try:
        parse_playbook(files.read(path).decode(), agent.playbook)
    except AgentdError as error:
        return problem_row(about, "playbook", error)
    except UnicodeError:
        return DoctorRow(about, "playbook", DoctorState.PROBLEM, f"{agent.playbook} is not UTF-8 text", other)
    return DoctorRow(about, "playbook", DoctorState.OK, agent.playbook)


def _program(here: AgentEnvironment, agent: AgentSettings) -> Iterator[DoctorRow]:
    about, known = agent_section(agent.name), CLIS.get(agent.kind)
    env = allowed_environment(agent, here.environ)
    program = find_program(agent.command, env.get("PATH", ""), here.root)
    if program is None:
        where = "no program in the project" if "/" in agent.command else "in no folder of PATH"
        fix = known.to_install if known else get_adapter(agent.kind).install_hint
        if here.project:
            fix += suggest_alternative(agent.kind, lambda name: bool(find_program(name, env.get("PATH", ""))))
        yield DoctorRow(about, "program", DoctorState.PROBLEM, f"{agent.command} is {where}", fix)
        return
    yield DoctorRow(about, "program", DoctorState.OK, program)
    if known:
        yield _version(here, agent, known, program, env)
        yield _login(here, agent, known, env)
    yield from _models(agent)


def _version(
    here: AgentEnvironment, agent: AgentSettings, known: CliProfile, program: str, env: Mapping[str, str]
) -> DoctorRow:
    """Check the version with the CLI's home set to `scratch`, as even `--version` may leave files there."""
    about = agent_section(agent.name)
    if not _is_trusted(here, agent):
        return DoctorRow(about, "version", DoctorState.NOTE, "not asked: this agent is not trusted", "agentd trust")
    answer = system_checks.probe_program(
        (program, *known.version_args), env={**env, known.login.home: str(here.scratch)}, cwd=here.scratch
    )
    if answer.failure:
        return DoctorRow(
            about, "version", DoctorState.PROBLEM, f"it does not start: {answer.failure}", known.to_install
        )
    match = _VERSION.search(answer.out)
    if match and match[0].startswith(f"{known.tested}."):
        return DoctorRow(about, "version", DoctorState.OK, f"{match[0]}, known")
    words = f"{match[0]} is not known" if match else f"not known: it says {answer.out.strip()[:80]!r}"
    return DoctorRow(about, "version", DoctorState.NOTE, words, f"if it fails: {known.to_install}@{known.tested}")


def _is_trusted(here: AgentEnvironment, agent: AgentSettings) -> bool:
    if here.project is None:
        return True
    try:
        item = agent_item(here.project, here.config, agent)
        return item is None or is_trusted(here.project, item, here.environ)
    except AgentdError:
        return False  # the trust row says why


def _login(here: AgentEnvironment, agent: AgentSettings, known: CliProfile, env: Mapping[str, str]) -> DoctorRow:
    """Check the login with the part of our environment that the agent will get."""
    about, seen = agent_section(agent.name), detect_login(known, env, here.home, agent.args)
    match seen.login:
        case LoginStatus.YES:
            return DoctorRow(about, "login", DoctorState.OK, f"by {seen.by}")
        case LoginStatus.UNKNOWN:
            return DoctorRow(
                about, "login", DoctorState.NOTE, f"cannot be seen: {seen.by}", f"if there is none: {known.to_log_in}"
            )
    held_back = [key for key in known.login.keys if here.environ.get(key)]
    if held_back:
        fix = f"name it under [agents.{agent.name}] env in agentd/config.toml"
        return DoctorRow(about, "login", DoctorState.PROBLEM, f"none: {held_back[0]} is set, but not passed on", fix)
    unused = next((key for key in known.login.not_keys if env.get(key)), None)
    words = f"none: {unused} is set, but {agent.kind} does not take it for a login" if unused else "none"
    return DoctorRow(
        about, "login", DoctorState.PROBLEM, words, f"log in with {known.to_log_in}, or set {known.login.keys[0]}"
    )


def _models(agent: AgentSettings) -> Iterator[DoctorRow]:
    about = agent_section(agent.name)
    if agent.models:
        levels: dict[str, list[str]] = {}
        for model in agent.models:
            levels.setdefault(model.model, []).extend(model.complexity)
        words = ", ".join(f"{name} ({' '.join(which)})" for name, which in levels.items())
        yield DoctorRow(about, "models", DoctorState.OK, words)
    elif agent.kind != "command":
        yield DoctorRow(about, "models", DoctorState.OK, "its own default")
    elif any("{model}" in word for word in agent.args):
        fix = f"add one under [[agents.{agent.name}.models]]"
        yield DoctorRow(about, "models", DoctorState.PROBLEM, "its args use {model}, but none is named", fix)
