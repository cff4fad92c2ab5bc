"""What context may be made of: the change's own documents, and files of the project that git does not ignore."""

import os

from agentd.change import Change
from agentd.documents import InvalidDocument, one_line, parse_spec
from agentd.domain import CHANGE_ID
from agentd.engine.tools.project_files import ProjectFiles, ReadFile
from agentd.engine.tools.refusal import ToolRefusal
from agentd.project import git

_SPECS = "agentd/specs"
_TITLE = 100  # characters


class ContextReader:
    """Reads as the tools do, so no link leads out, and neither secrets nor other changes are there."""

    def __init__(self, change: Change) -> None:
        self.folder = f"agentd/changes/{change.id}"
        self._root = os.path.realpath(os.path.join(change.tree, change.project.prefix))
        self._own = ProjectFiles(self._root, self.folder, others_hidden=True)
        # No change's folder is looked into, where GEMINI.md and AGENTS.md are agentd's.
        self._project = ProjectFiles(self._root, None, others_hidden=True)

    def own(self, name: str) -> str | None:
        """A document of the change. Behind a link may be anything, so that is not read."""
        return self._plain(self._own, f"{self.folder}/{name}")

    def of_project(self, path: str) -> ReadFile | None:
        """A text file of the project; None if it is not there, or git ignores it or what it links to."""
        try:
            file = self._project.read(path)
        except ToolRefusal:
            return None
        return file if all(map(self._is_kept, {file.path, file.place})) else None

    def _is_kept(self, path: str) -> bool:
        """Tracked, or new and not ignored."""
        options = ("--cached", "--others", "--exclude-standard")
        return bool(git.run(self._root, "ls-files", *options, "--", f":(literal){path}", failing=""))

    def tracked(self) -> list[str]:
        """What git tracks of the project, but for agentd's own folder."""
        names = git.run(self._root, "ls-files", "-z", "--", ".", ":(exclude)agentd", failing="").split("\0")
        return [name for name in names if name]

    def spec_ids(self) -> list[str]:
        try:
            entries = self._project.entries(_SPECS).entries
        except ToolRefusal:
            return []
        names = [one.name.removesuffix(".md") for one in entries if one.kind == "file" and one.name.endswith(".md")]
        return [name for name in names if CHANGE_ID.fullmatch(name)]

    def main_spec(self, id_: str) -> tuple[str, str | None]:
        """Path and text of the project's own spec; None if it is not there, or is a link."""
        name = f"{_SPECS}/{id_}.md"
        return name, self._plain(self._project, name)

    def spec_title(self, id_: str) -> str:
        name, text = self.main_spec(id_)
        try:
            return one_line(parse_spec(text, name).title)[:_TITLE] if text else ""
        except InvalidDocument:
            return ""

    def _plain(self, ground: ProjectFiles, path: str) -> str | None:
        try:
            file = ground.read(path)
        except ToolRefusal:
            return None
        return file.data.decode() if file.place == path else None
