"""What a repository wants to run: values in its config.toml that are or become commands, and its prompts.

Values equal to agentd's defaults need no trust, nor do those from the user's file, the environment or `--set`. But a
file in the repository always needs trust, no matter which layer names it.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentd.domain import SetupError, printable
from agentd.project.config.config_schema import AGENT
from agentd.project.config.layer_merge import AGENTS, ConfigLeaf
from agentd.project.config.layers import LayerRank
from agentd.project.config.settings import AgentSettings, CheckSettings, Config
from agentd.project.config.template import default_tree
from agentd.project.layout import Project
from agentd.storage import files

PROMPTS = os.path.join("agentd", "prompts")
_PROMPT_BYTES = 1 << 20
# These define what the other keys mean, so they are part of the text whichever layer sets them.
_MEANING = ("kind", "command", "playbook")


class UnreadablePrompt(SetupError):
    hint = "put the text itself into a file there, or remove it"


class TrustKind(StrEnum):
    CHECK = "check"
    AGENT = "agent"
    WORKTREE_SETUP = "worktree-setup"
    PROMPT = "prompt"


@dataclass(frozen=True)
class TrustItem:
    """One thing to trust. The text is what the user is shown; bytes that are not UTF-8 are surrogates in it."""

    kind: TrustKind
    name: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.kind} {self.name}".rstrip()

    @property
    def hash(self) -> str:
        return files.hash_bytes("\0".join((self.kind, self.name, self.text)).encode("utf-8", "surrogateescape"))


def check_item(check: CheckSettings) -> TrustItem:
    return TrustItem(TrustKind.CHECK, check.name, check.command)


def prompt_item(name: str, data: bytes) -> TrustItem:
    return TrustItem(TrustKind.PROMPT, name, data.decode("utf-8", "surrogateescape"))


def trust_items(project: Project, config: Config) -> tuple[TrustItem, ...]:
    """Return everything in this repository that needs trust with this configuration, trusted or not."""
    return (
        *_checks(config),
        *_worktree_setup(config),
        *(item for agent in config.agents.values() if (item := agent_item(project, config, agent))),
        *(prompt_item(name, data) for name, data in prompt_overrides(project).items()),
    )


def _checks(config: Config) -> Iterator[TrustItem]:
    if _is_repositorys(config.leaves[("checks",)], []):
        yield from map(check_item, config.checks)


def _worktree_setup(config: Config) -> Iterator[TrustItem]:
    leaf = config.leaves[("git", "worktree_setup")]
    if _is_repositorys(leaf, ""):
        yield TrustItem(TrustKind.WORKTREE_SETUP, "", leaf.value)


def agent_item(project: Project, config: Config, agent: AgentSettings) -> TrustItem | None:
    """Return the item, or None if the repository does not configure this agent, so there is nothing to trust."""
    keys = _repositorys_keys(config, agent)
    named = list(_files_named(project, agent))
    if not keys and not named:
        return None
    leaves = {key: config.leaves.get((AGENTS, agent.name, key)) for key in map(str, AGENT.keys)}
    lines = [f"{key} = {_json(leaf.value)}" for key, leaf in leaves.items() if leaf and key in (*_MEANING, *keys)]
    return TrustItem(TrustKind.AGENT, agent.name, "\n".join([*lines, *named]))


def _repositorys_keys(config: Config, agent: AgentSettings) -> set[str]:
    defaults = {"kind": agent.name, **default_tree()[AGENTS].get(agent.kind, {})}
    return {
        str(path[2])
        for path, leaf in config.leaves.items()
        if path[:2] == (AGENTS, agent.name) and _is_repositorys(leaf, defaults.get(str(path[2]), []))
    }


def _is_repositorys(leaf: ConfigLeaf, default: object) -> bool:
    return leaf.layer.rank is LayerRank.PROJECT and leaf.value != default


def _files_named(project: Project, agent: AgentSettings) -> Iterator[str]:
    """Yield the repository's files named in an agent's command, with their hashes: they are read or run with it."""
    programs = [word for word in (agent.command if "/" in agent.command else "", agent.playbook) if word]
    # Scripts of an interpreter and `--file=x` count; most arguments do not name a file.
    arguments = [part for word in agent.args for part in (word, word.partition("=")[2]) if part]
    told = [_file(project, path) for path in _paths(project, programs)]
    told += [_file(project, path) for path in _paths(project, arguments) if os.path.isfile(path)]
    yield from dict.fromkeys(line for line in told if line)


def _paths(project: Project, words: Sequence[str]) -> Iterator[str]:
    """Return the paths as the agent will resolve them: from the project's root, which `{tree}` also stands for."""
    root = str(project.root)
    return (os.path.join(root, word.replace("{tree}", root)) for word in words)


def _file(project: Project, path: str) -> str | None:
    """Describe a file; None if it is not in the repository. For a link, the target counts: a commit can change it."""
    real, plain = os.path.realpath(path), os.path.normpath(path)
    if _inside(project, real):
        shown = _json(os.path.relpath(real, project.tree))
        return (
            f"{shown} = {files.hash_bytes(files.read(Path(real)))}" if os.path.isfile(real) else f"{shown} is not there"
        )
    return f"{_json(os.path.relpath(plain, project.tree))} leads to {_json(real)}" if _inside(project, plain) else None


def _inside(project: Project, path: str) -> bool:
    return os.path.commonpath((project.tree, path)) == project.tree


def prompt_overrides(project: Project) -> Mapping[str, bytes]:
    """Return the repository's own prompts by their path under agentd/prompts/, as they are now.

    Nothing outside the repository is read, and anything that is not a regular file is refused. Code that uses a prompt
    gets it from here, so that nothing is used that was not shown.
    """
    top = os.path.join(project.root, PROMPTS)
    if not os.path.lexists(top):
        return {}
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(_placed(project, top), onerror=_raise):
        for name in sorted(names) + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, os.path.realpath(top))] = _prompt(project, path)
    return dict(sorted(found.items()))


def _prompt(project: Project, path: str) -> bytes:
    real = _placed(project, path)
    seen = os.stat(real)
    if not stat.S_ISREG(seen.st_mode):
        raise UnreadablePrompt(f"{_shown(project, path)} is no file, and prompts are files")
    if seen.st_size > _PROMPT_BYTES:
        raise UnreadablePrompt(
            f"{_shown(project, path)} is larger than 1 MiB, which no prompt is", "shorten it or remove it"
        )
    return files.read(Path(real))


def _placed(project: Project, path: str) -> str:
    real = os.path.realpath(path)
    if not _inside(project, real):
        raise UnreadablePrompt(f"{_shown(project, path)} is a link out of the repository")
    if not os.path.exists(real):
        raise UnreadablePrompt(f"{_shown(project, path)} is a link to nothing")
    return real


def _shown(project: Project, path: str) -> str:
    return printable(os.path.relpath(path, project.root))


def _raise(error: OSError) -> None:
    raise error


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
