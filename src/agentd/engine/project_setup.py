"""Write the files of `agentd init`. Existing files are kept, except a configuration to be replaced or without roles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentd.agents import OURS
from agentd.domain import Role, clock
from agentd.project import CheckSettings, assign_template_roles, git, render_template
from agentd.storage import files

GITIGNORE = """\
# written for each run, for the agents alone
/changes/*/GEMINI.md
/changes/*/AGENTS.md
# left by a process that was killed while it wrote
.*.tmp
"""
FOLDERS = ("specs", "changes", "archive")
SEATED = "roles filled in"


@dataclass(frozen=True)
class SetupResult:
    """What setup did to each file.

    `files` are paths relative to the repository's top: written, kept, replaced (with a backup copy), or SEATED.
    `skills` are the commands for a person's own sessions: written, refreshed, kept, or skipped, with the reason.
    """

    files: Mapping[str, str]
    copy: Path | None = None
    skills: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        ours = (word for word in self.skills.values() if word in OURS)
        return any(word != "kept" for word in (*self.files.values(), *ours))

    @property
    def to_keep(self) -> tuple[str, ...]:
        """Return the files to commit. Skills that are not agentd's are excluded."""
        return (*self.files, *(name for name, word in self.skills.items() if word in OURS))

    @property
    def wrote_config(self) -> bool:
        return any(
            name.endswith("agentd/config.toml") and word in ("written", "replaced") for name, word in self.files.items()
        )


def set_up_project(
    repo: git.Repository, root: Path, roles: Mapping[Role, str], checks: Sequence[CheckSettings], replace_config: bool
) -> SetupResult:
    home = root / "agentd"
    name = root.name.encode(errors="surrogateescape").decode(errors="replace")  # folder names need not be UTF-8
    config = render_template(name, roles, checks)
    filled = _with_roles(home / "config.toml", roles)
    wanted = {home / "config.toml": config, home / ".gitignore": GITIGNORE}
    wanted.update({home / name / ".gitkeep": "" for name in FOLDERS if not _has_files(home / name)})
    outcome: dict[str, str] = {}
    copy = None
    for path, text in wanted.items():
        place = path.relative_to(repo.top).as_posix()
        if not path.exists():
            outcome[place] = "written"
        elif path.name == "config.toml" and replace_config and path.read_bytes() != text.encode():
            copy = Path(repo.common, "agentd", "replaced", f"config-{clock.new_run_id()}.toml")
            files.write(copy, files.read(path))
            outcome[place] = "replaced"
        elif path.name == "config.toml" and filled:
            outcome[place], text = SEATED, filled
        else:
            outcome[place] = "kept"
            continue
        files.write(path, text.encode(errors="surrogateescape"))
    return SetupResult(outcome, copy)


def uncommitted_files(repo: git.Repository, outcome: SetupResult) -> list[str]:
    """Return the files of this setup with uncommitted changes; other changes in the repository are ignored."""
    rows = git.run(repo.top, "status", "--porcelain", "--untracked-files=all", "-z", "--", *outcome.to_keep).split("\0")
    return [row[3:] for row in rows if row]


def ignored_files(repo: git.Repository, outcome: SetupResult) -> list[str]:
    """Return the files that git will not track because a .gitignore excludes them."""
    only = ("--others", "--ignored", "--exclude-standard")
    names = git.run(repo.top, "ls-files", "-z", *only, "--", *outcome.to_keep)
    return [name for name in names.split("\0") if name]


def commit_setup(repo: git.Repository, names: Sequence[str]) -> None:
    """Commit these files and nothing else; other staged changes stay staged."""
    git.run(repo.top, "add", "--", *names)
    git.run(repo.top, "commit", "--quiet", "--message", "Set up agentd", "--only", "--", *names)


def _with_roles(path: Path, roles: Mapping[Role, str]) -> str:
    """Return an existing configuration with its unassigned roles filled in; empty if there is nothing to fill in."""
    if not roles or not path.is_file():
        return ""
    text = files.read(path).decode(errors="surrogateescape")
    filled = assign_template_roles(text, roles)
    return filled if filled != text else ""


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
