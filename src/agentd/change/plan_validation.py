"""The validation rules applied to a change on disk."""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agentd.change.folder import Change
from agentd.change.locator import LocatedChange
from agentd.documents import InvalidDocument, Spec, decode_text, parse_spec
from agentd.domain import Phase, Severity
from agentd.project import Project, ValidationSettings
from agentd.storage import files
from agentd.validation import PlanDocuments, RuleFinding, fix_document, validate

_PARALLEL_FROM = 200  # changes; for fewer, starting processes takes longer than it saves


class MainSpecs(Mapping[str, Spec]):
    """The project's own specs in a worktree, each read on first access."""

    def __init__(self, folder: Path, settings: ValidationSettings) -> None:
        self._folder = folder
        self._pattern = settings.requirement_pattern
        self._read: dict[str, Spec | None] = {}
        self._ids = sorted(path.stem for path in folder.glob("*.md") if path.name != "CHANGELOG.md")

    def __getitem__(self, spec_id: str) -> Spec:
        if spec_id not in self._read:
            self._read[spec_id] = self._load(spec_id)
        spec = self._read[spec_id]
        if spec is None:
            raise KeyError(spec_id)
        return spec

    def _load(self, spec_id: str) -> Spec | None:
        name = f"{spec_id}.md"
        try:
            return parse_spec(decode_text(files.read(self._folder / name), name), name, self._pattern)
        except (FileNotFoundError, InvalidDocument):
            return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def validate_change(project: Project, found: LocatedChange, settings: ValidationSettings) -> tuple[RuleFinding, ...]:
    return _Validator(project, settings).validate(found)


def validate_changes(
    project: Project, changes: Sequence[LocatedChange], settings: ValidationSettings
) -> list[tuple[RuleFinding, ...]]:
    """Return each change's findings, in order. Many changes are validated in parallel."""
    if len(changes) < _PARALLEL_FROM or (os.cpu_count() or 1) == 1:
        return _validate_chunk(project, changes, settings)
    import multiprocessing  # deferred: only for hundreds of changes
    from concurrent.futures import ProcessPoolExecutor

    size = max(_PARALLEL_FROM // 4, len(changes) // ((os.cpu_count() or 1) * 4))
    chunks = [changes[start : start + size] for start in range(0, len(changes), size)]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        parts = pool.map(_validate_chunk, [project] * len(chunks), chunks, [settings] * len(chunks))
        return [findings for part in parts for findings in part]


def _validate_chunk(
    project: Project, changes: Sequence[LocatedChange], settings: ValidationSettings
) -> list[tuple[RuleFinding, ...]]:
    validator = _Validator(project, settings)
    return [validator.validate(found) for found in changes]


class _Validator:
    """A validator that reads each worktree's own specs once."""

    def __init__(self, project: Project, settings: ValidationSettings) -> None:
        self._project = project
        self._settings = settings
        self._main: dict[str, MainSpecs] = {}

    def validate(self, found: LocatedChange) -> tuple[RuleFinding, ...]:
        assert found.tree and found.folder
        if found.summary.problem:
            hint = "fix it, or restore it from git"
            return (RuleFinding("STATE.yaml", 1, "unreadable", Severity.HIGH, found.summary.problem, hint),)
        tree = found.tree
        root = os.path.join(tree, self._project.prefix)
        if tree not in self._main:
            self._main[tree] = MainSpecs(Path(root, "agentd", "specs"), self._settings)
        texts = read_plan_texts(found.folder)
        plan = PlanDocuments(
            texts=texts,
            main=self._main[tree],
            complete=found.summary.phase is not Phase.DRAFTING or "tasks.md" in texts,
            folder=os.path.relpath(found.folder, root),
            exists=lambda path: os.path.exists(os.path.join(root, path)),
        )
        return validate(plan, self._settings)


def check_plan(
    change: Change, settings: ValidationSettings, texts: Mapping[str, bytes] | None = None, complete: bool = False
) -> tuple[RuleFinding, ...]:
    """Validate a plan that is being written, from the change's folder or from `texts`."""
    root = change.project.changes_in(change.tree).parent.parent
    plan = PlanDocuments(
        texts=read_plan_texts(str(change.folder)) if texts is None else texts,
        main=MainSpecs(root / "agentd" / "specs", settings),
        complete=complete,
        folder=f"agentd/changes/{change.id}",
        exists=lambda path: (root / path).exists(),
    )
    return validate(plan, settings)


def remaining_faults(change: Change, settings: ValidationSettings) -> tuple[RuleFinding, ...]:
    """Return the high-severity findings in a complete plan that cannot be fixed automatically."""
    texts = read_plan_texts(str(change.folder)) | {
        name: new for name, (_, new) in fixed_documents(change, settings).items()
    }
    findings = check_plan(change, settings, texts, complete=True)
    return tuple(finding for finding in findings if finding.severity is Severity.HIGH)


def read_plan_texts(folder: str) -> dict[str, bytes]:
    """Return the documents that are validated, by short name."""
    names = ["clarifications.md", "proposal.md", "tasks.md"]
    with contextlib.suppress(OSError):
        names += sorted(f"specs/{name}" for name in os.listdir(f"{folder}/specs") if name.endswith(".md"))
    texts = {name: _read(f"{folder}/{name}") for name in names}
    return {name: data for name, data in texts.items() if data is not None}


def _read(path: str) -> bytes | None:
    """Return the content, or None if missing. A link, a pipe or an unreadable file is returned as non-text bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return _NOT_TEXT
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return _NOT_TEXT
    with open(handle, "rb") as file:
        return file.read()


_NOT_TEXT = b"\0"


def fixed_documents(change: Change, settings: ValidationSettings) -> dict[str, tuple[bytes, bytes]]:
    """Return the documents with mechanical errors that can be fixed: before and after."""
    main = MainSpecs(change.project.changes_in(change.tree).parent / "specs", settings)
    texts = read_plan_texts(str(change.folder))
    after = {}
    for name, data in texts.items():
        own = main.get(Path(name).stem) if name.startswith("specs/") else None
        version = (own.version or 1) if own else None
        new = fix_document(name, data, change.id, version, settings)
        if new != data:
            after[name] = (data, new)
    return after


def write_fixes(
    change: Change, settings: ValidationSettings, token: str | None = None
) -> dict[str, tuple[bytes, bytes]]:
    """Write the fixes to disk, unless another run is working on the change."""
    with change.writing(token):
        fixed = fixed_documents(change, settings)
        for name, (_, new) in fixed.items():
            files.write(change.folder / name, new)
    return fixed
