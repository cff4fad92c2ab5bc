"""Write and update agentd's commands in the project, leaving files that a person has edited alone."""

import re
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from string import Template

from agentd.agents.skills.skill_targets import SKILL_TARGETS, SKILL_WORKFLOWS, SkillTarget, SkillWorkflow
from agentd.domain import Refusal, SetupError
from agentd.project import git
from agentd.storage import files

_SEAL_TEXT = "written by agentd, which leaves it alone once you edit it"
_MARK = re.compile(r"^# ([0-9a-f]{16}) " + re.escape(_SEAL_TEXT) + r"\n", re.MULTILINE)


def seal_text(before: str, after: str) -> str:
    return f"{before}# {_hash(before + after)} {_SEAL_TEXT}\n{after}"


def has_seal(text: str) -> bool:
    return _MARK.search(text) is not None


def is_seal_broken(text: str) -> bool:
    """Return whether a file written by agentd has been edited since."""
    mark = _MARK.search(text)
    return mark is None or mark[1] != _hash(text[: mark.start()] + text[mark.end() :])


def _hash(text: str) -> str:
    return files.hash_bytes(text.encode()).removeprefix("sha256:")[:16]


_PARTS = ("rules", "wait")


def render_skill(cli: SkillTarget, workflow: SkillWorkflow) -> str:
    parts = {name: _fill_template(f"_{name}.md", cli.values).strip() for name in _PARTS}
    body = _fill_template(f"{workflow.name}.md", {**cli.values, **parts})
    return seal_text(*cli.format(workflow, body))


def _fill_template(file: str, values: Mapping[str, str]) -> str:
    text = resources.files(__package__).joinpath(file).read_text("utf-8")
    return Template(text).substitute(values)


WRITTEN, REFRESHED, KEPT = "written", "refreshed", "kept"
OURS = (WRITTEN, REFRESHED, KEPT)  # the file is agentd's current version
_EDITED, _FOREIGN, _NOT_WRITTEN = "kept: edited", "kept: not agentd's", "not written"


def wanted_targets(root: Path, installed: Collection[str]) -> tuple[SkillTarget, ...]:
    """Return the CLIs to write commands for: Claude Code always, others if installed or used in the project."""
    return tuple(
        cli
        for cli in SKILL_TARGETS
        if cli.name in ("claude", *installed) or any((root / folder).is_dir() for folder in cli.folders)
    )


def write_skills(repo: git.Repository, root: Path, clis: Collection[SkillTarget]) -> dict[str, str]:
    """Write the commands. Return the result for each file, by path relative to the repository's top."""
    texts = {root / cli.path(workflow): render_skill(cli, workflow) for cli in clis for workflow in SKILL_WORKFLOWS}
    return {path.relative_to(repo.top).as_posix(): _write_skill(root, path, text) for path, text in texts.items()}


def _write_skill(root: Path, path: Path, text: str) -> str:
    """Write one file and return the result. A failure is reported but does not end the setup."""
    try:
        _check_no_links(root, path)
        result = _decide(files.read(path) if path.exists() else None, text)
        if result in (WRITTEN, REFRESHED):
            files.write(path, text.encode())
        return result
    except (Refusal, SetupError) as error:
        return f"{_NOT_WRITTEN}: {error.message}"
    except OSError as error:
        return f"{_NOT_WRITTEN}: {error.strerror or error}"


def _decide(data: bytes | None, text: str) -> str:
    if data is None:
        return WRITTEN
    current = data.decode("utf-8", "replace").replace("\r\n", "\n")  # git may check it out with CRLF
    if not has_seal(current):
        return _FOREIGN
    if is_seal_broken(current):
        return _EDITED
    return KEPT if current == text else REFRESHED


def _check_no_links(root: Path, path: Path) -> None:
    """Refuse links on the path, which may lead out of the project."""
    parts = [path, *path.parents]
    for part in reversed(parts[: parts.index(root)]):
        if part.is_symlink():
            raise Refusal(f"{part.relative_to(root)} is a symbolic link, and agentd does not write through links")
        if part.exists() and part.is_dir() is (part == path):
            raise Refusal(f"{part.relative_to(root)} is not a {'file' if part == path else 'folder'}")
