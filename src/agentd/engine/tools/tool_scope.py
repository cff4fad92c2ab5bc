"""What a server is bound to: a project, optionally one change, a stage and a run."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.change import Change, ChangeLocator
from agentd.domain import AgentdError, Busy, ChangeNotFound, NotCheckedOut
from agentd.engine.tools.project_files import ProjectFiles
from agentd.engine.tools.tool import Stage, ToolRefusal
from agentd.project import Project

if TYPE_CHECKING:
    from agentd.project import ValidationSettings


SERVED_FILE = "served"  # in the run's folder: the MCP server of its call started
WRITTEN_FILE = "written.jsonl"  # in the run's folder: the documents the agent wrote, with the hash of each text


@dataclass
class ToolScope:
    """The scope of a server.

    `seen` holds the hash of each document (change, name) as this session last saw it. If it differs, the document is
    stale.
    """

    project: Project
    stage: Stage = Stage.UNBOUND
    change: Change | None = None
    token: str | None = None
    seen: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def change_of(self, arguments: dict[str, Any]) -> Change:
        """Return the bound change or, on an unbound server, the change named in the arguments."""
        asked = arguments.get("change_id")
        if self.change:
            if asked not in (None, self.change.id):
                raise ToolRefusal("wrong-change", f"this server is bound to {self.change.id}", "leave change_id out")
            return self.change
        if not asked:
            raise ToolRefusal("bad-argument", "change_id is missing", "send the id of a change")
        return self.find(asked)

    def find(self, change_id: str) -> Change:
        try:
            found = ChangeLocator(self.project).find(change_id)
        except ChangeNotFound as error:
            raise ToolRefusal("not-found", error.message, error.hint) from None
        except NotCheckedOut as error:
            raise ToolRefusal("not-found", error.message, f"ask the person to run {error.hint}") from None
        return Change(self.project, change_id, found.tree or "", Path(found.folder or ""))

    def ground(self, change: Change | None) -> ProjectFiles:
        """Return the files that may be read, and the folder of the change's own documents."""
        tree = change.tree if change else self.project.tree
        root = os.path.realpath(os.path.join(tree, self.project.prefix))
        folder = f"agentd/changes/{change.id}" if change else None
        return ProjectFiles(root, folder, others_hidden=self.change is not None)

    @contextmanager
    def writing(self, change: Change) -> Iterator[None]:
        """Hold the write lock under the run's token. A run that has ended can no longer write."""
        try:
            with change.writing(self.token):
                yield
        except Busy as error:
            raise ToolRefusal("busy", error.message, "try again later") from None

    def settings(self) -> "ValidationSettings":
        from agentd.project import load_config  # deferred: most calls only read a file

        try:
            return load_config(self.project.config_file).validation
        except AgentdError as error:
            raise ToolRefusal(
                "failed", f"agentd/config.toml cannot be read: {error.message}", "tell the person"
            ) from None

    def served(self) -> None:
        """Mark in the run's folder that a client has asked for the tools."""
        if self.token:
            with suppress(OSError):  # the run is over
                self.run_file(SERVED_FILE).touch()

    def will_write(self, name: str, digest: str) -> None:
        """Record a write in advance, so that the text counts as the agent's if its step is interrupted."""
        if self.token:
            with open(self.run_file(WRITTEN_FILE), "a", encoding="utf-8") as file:
                file.write(json.dumps([name, digest]) + "\n")

    def run_file(self, name: str) -> Path:
        """Return the path of a file in the run's folder, where the step collects reports."""
        if not self.token:
            raise ToolRefusal("failed", "this server has no run", "tell the person")
        return run_folder(self.project, self.token) / name

    def run_data(self, name: str) -> Any:
        try:
            return json.loads(self.run_file(name).read_bytes())
        except FileNotFoundError:
            return None


def run_folder(project: Project, token: str) -> Path:
    return Path(project.local_state_path("runs", token))


def open_run_scope(project: Project, change_id: str, stage: Stage, token: str) -> ToolScope:
    """Return the scope of a server for one run. It has seen the change's documents as they are now."""
    found = ChangeLocator(project).find(change_id)
    change = Change(project, change_id, found.tree or "", Path(found.folder or ""))
    binding = ToolScope(project, stage, change, token)
    ground = binding.ground(change)
    names = ["proposal.md", "tasks.md", "clarifications.md"]
    specs = change.folder / "specs"
    names += [f"specs/{path.name}" for path in sorted(specs.glob("*.md"))] if specs.is_dir() else []
    for name in names:
        try:
            binding.seen[change.id, name] = ground.digest(name)
        except ToolRefusal:
            continue  # a link or folder in its place is refused when a tool asks for it
    return binding
