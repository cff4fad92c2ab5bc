"""The plan, impl and archive commands for a person's own CLI sessions, as files in the project.

Files that a person has edited are left alone.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from string import Template

from agentd.agents.protocol import SkillFiles, SkillWorkflow
from agentd.agents.registry import CLIS
from agentd.domain import Refusal, SetupError
from agentd.storage import files

SKILL_WORKFLOWS = (
    SkillWorkflow(
        "plan",
        "Plan a change with agentd, challenged by another vendor's agent",
        'ID "what should change"',
        ("list", "config", "plan", "wait", "status", "view", "impl"),
        asks=True,
    ),
    SkillWorkflow(
        "impl",
        "Implement a planned change with agentd, with checks and a review",
        "ID",
        ("list", "plan", "impl", "wait", "status", "view"),
    ),
    SkillWorkflow(
        "archive", "Archive a finished change with agentd and merge its specs", "ID", ("list", "archive", "rebase")
    ),
)

_SEAL_TEXT = "written by agentd, which leaves it alone once you edit it"
_SEAL = re.compile(r"^# ([0-9a-f]{16}) " + re.escape(_SEAL_TEXT) + r"\n", re.MULTILINE)


def render_skill(skills: SkillFiles, workflow: SkillWorkflow) -> str:
    parts = {name: _fill_template(f"_{name}.md", skills.values).strip() for name in ("rules", "wait")}
    return seal_text(*skills.format(workflow, _fill_template(f"{workflow.name}.md", {**skills.values, **parts})))


def seal_text(before: str, after: str) -> str:
    """Join the parts with a comment that shows whether they have been edited since."""
    return f"{before}# {_hash(before + after)} {_SEAL_TEXT}\n{after}"


def _fill_template(file: str, values: Mapping[str, str]) -> str:
    text = Path(__file__).with_name("skill_templates").joinpath(file).read_text("utf-8")
    return Template(text).substitute(values)


def _hash(text: str) -> str:
    return files.hash_bytes(text.encode()).removeprefix("sha256:")[:16]


WRITTEN, REFRESHED, KEPT = "written", "refreshed", "kept"
OURS = (WRITTEN, REFRESHED, KEPT)  # the file is agentd's current version
_EDITED, _FOREIGN, _NOT_WRITTEN = "kept: edited", "kept: not agentd's", "not written"


def skill_paths() -> set[str]:
    """Return the path of every command that agentd may write, relative to the project."""
    return {
        cli.skills.path.format(workflow.name) for cli in CLIS.values() if cli.skills for workflow in SKILL_WORKFLOWS
    }


def write_skills(top: str, root: Path, installed: Collection[str]) -> dict[str, str]:
    """Write the commands for each CLI that is installed or used in the project.

    Return the result for each file, by its path relative to `top`.
    """
    results = {}
    for name, cli in CLIS.items():
        skills = cli.skills
        if skills is None or not (
            skills.always or name in installed or any((root / folder).is_dir() for folder in skills.folders)
        ):
            continue
        for workflow in SKILL_WORKFLOWS:
            path = root / skills.path.format(workflow.name)
            results[path.relative_to(top).as_posix()] = _write_skill(root, path, render_skill(skills, workflow))
    return results


def _write_skill(root: Path, path: Path, text: str) -> str:
    """Write one file and return the result. A failure is reported but does not stop the setup."""
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
    seal = _SEAL.search(current)
    if seal is None:
        return _FOREIGN
    if seal[1] != _hash(current[: seal.start()] + current[seal.end() :]):
        return _EDITED
    return KEPT if current == text else REFRESHED


def _check_no_links(root: Path, path: Path) -> None:
    """Refuse links on the path, because they may lead outside the project."""
    parts = [path, *path.parents]
    for part in reversed(parts[: parts.index(root)]):
        if part.is_symlink():
            raise Refusal(f"{part.relative_to(root)} is a symbolic link, and agentd does not write through links")
        if part.exists() and part.is_dir() is (part == path):
            raise Refusal(f"{part.relative_to(root)} is not a {'file' if part == path else 'folder'}")
