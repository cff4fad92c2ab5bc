"""What was found in another tool's project, and what becomes of it here."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentd.documents import parse_spec
from agentd.domain import Phase

KEPT = "imported"
"""The folder in a change for original files that are not carried over whole, byte for byte."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Something that could not be mapped, or not exactly; line 0 means the whole file.

    `alike` is the same for many of its kind, where the message says more.
    """

    file: str
    line: int
    message: str
    alike: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ImportedSpec:
    source: str
    id: str
    text: str
    requirements: int
    scenarios: int


@dataclass(frozen=True, slots=True)
class ImportedChange:
    """One change: `files` by their paths in its folder; `bases` the main specs it begins from, None for a new one."""

    source: str
    id: str
    description: str
    created: str
    phase: Phase
    files: Mapping[str, bytes]
    bases: Mapping[str, str | None]
    tasks: int = 0

    @property
    def counts(self) -> Counter[str]:
        """What its specs say."""
        texts = (data.decode() for path, data in self.files.items() if path.startswith("specs/"))
        found: Counter[str] = Counter()
        for one in (parse_spec(text, self.id) for text in texts):
            found["requirements"] += len(one.requirements)
            found["removed"] += len(one.removed)
            found["renamed"] += len(one.renamed)
            found["scenarios"] += len(one.scenarios)
        return found


@dataclass(frozen=True, slots=True)
class ImportedProject:
    """A whole project. What is archived goes by the folder it gets."""

    tool: str
    specs: tuple[ImportedSpec, ...] = ()
    changes: tuple[ImportedChange, ...] = ()
    archived: Mapping[str, ImportedChange] = field(default_factory=dict)
    notes: tuple[ImportNote, ...] = ()
