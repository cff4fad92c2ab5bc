"""The commands in the project's files: written, brought up to date, and left alone where a person has edited them."""

import re
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from string import Template

from agentd.agents.skills.skill_targets import SKILL_TARGETS, SKILL_WORKFLOWS, SkillTarget, SkillWorkflow
from agentd.domain import Refusal, SetupError
from agentd.project import git
from agentd.storage import files

_WORDS = "written by agentd, which leaves it alone once you edit it"
_MARK = re.compile(r"^# ([0-9a-f]{16}) " + re.escape(_WORDS) + r"\n", re.MULTILINE)


def seal_text(before: str, after: str) -> str:
    return f"{before}# {_hash(before + after)} {_WORDS}\n{after}"


def has_seal(text: str) -> bool:
    return _MARK.search(text) is not None


def is_seal_broken(text: str) -> bool:
    """For one of ours."""
    mark = _MARK.search(text)
    return mark is None or mark[1] != _hash(text[: mark.start()] + text[mark.end() :])


def _hash(text: str) -> str:
    return files.hash_bytes(text.encode()).removeprefix("sha256:")[:16]


_PARTS = ("rules", "wait")


def render_skill(cli: SkillTarget, workflow: SkillWorkflow) -> str:
    parts = {name: _filled(f"_{name}.md", cli.values).strip() for name in _PARTS}
    body = _filled(f"{workflow.name}.md", {**cli.values, **parts})
    return seal_text(*cli.format(workflow, body))


def _filled(file: str, values: Mapping[str, str]) -> str:
    text = resources.files(__package__).joinpath(file).read_text("utf-8")
    return Template(text).substitute(values)


WRITTEN, REFRESHED, KEPT = "written", "refreshed", "kept"
OURS = (WRITTEN, REFRESHED, KEPT)  # as agentd has it
_EDITED, _FOREIGN, _NOT_WRITTEN = "kept: edited", "kept: not agentd's", "not written"


def wanted_targets(root: Path, installed: Collection[str]) -> tuple[SkillTarget, ...]:
    """Claude Code always; another if its program is here or the project has a folder of it."""
    return tuple(
        cli
        for cli in SKILL_TARGETS
        if cli.name in ("claude", *installed) or any((root / folder).is_dir() for folder in cli.folders)
    )


def write_skills(repo: git.Repository, root: Path, clis: Collection[SkillTarget]) -> dict[str, str]:
    """What became of each file, by its path from the repository's top."""
    texts = {root / cli.path(workflow): render_skill(cli, workflow) for cli in clis for workflow in SKILL_WORKFLOWS}
    return {path.relative_to(repo.top).as_posix(): _lay(root, path, text) for path, text in texts.items()}


def _lay(root: Path, path: Path, text: str) -> str:
    """One that cannot be written is told; it is no reason for set-up to fail."""
    try:
        _check_real(root, path)
        word = _word(files.read(path) if path.exists() else None, text)
        if word in (WRITTEN, REFRESHED):
            files.write(path, text.encode())
        return word
    except (Refusal, SetupError) as error:
        return f"{_NOT_WRITTEN}: {error.message}"
    except OSError as error:
        return f"{_NOT_WRITTEN}: {error.strerror or error}"


def _word(data: bytes | None, text: str) -> str:
    if data is None:
        return WRITTEN
    there = data.decode("utf-8", "replace").replace("\r\n", "\n")  # git may have checked it out that way
    if not has_seal(there):
        return _FOREIGN
    if is_seal_broken(there):
        return _EDITED
    return KEPT if there == text else REFRESHED


def _check_real(root: Path, path: Path) -> None:
    """A link may lead out of the project, so agentd writes through none."""
    steps = [path, *path.parents]
    for one in reversed(steps[: steps.index(root)]):
        if one.is_symlink():
            raise Refusal(f"{one.relative_to(root)} is a symbolic link, and agentd does not write through one")
        if one.exists() and one.is_dir() is (one == path):
            raise Refusal(f"{one.relative_to(root)} is not a {'file' if one == path else 'folder'}")
