"""A task, the two notations of its id, and the dependency order of tasks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentd.documents import order as base
from agentd.documents.order import DocumentFault
from agentd.documents.prose import is_empty_phrase
from agentd.documents.text import Span
from agentd.domain import FormatInvalid, Layer, TaskAction, TaskStatus

_NUMBERS = {str(layer): str(number) for number, layer in enumerate(Layer, 1)}
_LAYERS = {number: Layer(name) for name, number in _NUMBERS.items()}
TASK_ID = re.compile(r"(data|logic|integration|testing|[0-9]{1,4})((?:\.[0-9]{1,4}){1,3}[a-z]?)(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A file and the action on it. A missing action is reported as a fault."""

    path: str
    action: TaskAction | None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    """Always numeric: `data.1` is stored as `1.1`."""
    title: str
    layer: Layer | None = None
    files: tuple[TaskFile, ...] = ()
    spec_refs: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    status: TaskStatus = TaskStatus.PENDING
    description: str = ""
    span: Span = field(default=Span(0, 0), compare=False)
    block: Span | None = field(default=None, compare=False)
    """The lines inside its YAML block."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The lines of `id`, `file`, `action`, `spec_ref`, `depends_on` and `status`."""

    @property
    def line(self) -> int:
        return self.span.start

    def at(self, key: str) -> int:
        return self.lines.get(key, self.line)


def canonical_task_id(word: str) -> str:
    """Convert `data.1` to `1.1`. Return anything that is not a task id unchanged."""
    match = TASK_ID.fullmatch(word)
    return _NUMBERS.get(match[1].lower(), match[1]) + match[2].lower() if match else word


def layered_task_id(id_: str) -> str:
    """Convert `1.1` to `data.1`. Return an id outside the four layers unchanged."""
    first, dot, rest = id_.partition(".")
    return f"{_LAYERS[first]}.{rest}" if dot and first in _LAYERS else id_


def task_layer(id_: str) -> Layer | None:
    return _LAYERS.get(id_.partition(".")[0]) if "." in id_ else None


def layer_number(layer: Layer) -> int:
    return int(_NUMBERS[layer])


# ---- dependencies


def unknown_dependencies(tasks: Iterable[Task]) -> tuple[tuple[Task, str], ...]:
    """Return (task, dependency) for each dependency that is not in the list."""
    tasks = tuple(tasks)
    known = {task.id for task in tasks}
    return tuple((task, other) for task in tasks for other in task.depends_on if other not in known)


def dependency_cycle(tasks: Iterable[Task]) -> tuple[str, ...]:
    """Return one cycle of ids, each depending on the next, the first repeated at the end; empty if there is none."""
    depends = _dependencies(tasks)
    return _close_cycle(base.dependency_order(depends).cycle[:-1], depends)


def _close_cycle(cycle: tuple[str, ...], depends: Iterable[str]) -> tuple[str, ...]:
    """Rotate the cycle to start at the task that comes first in the file, and close it."""
    if not cycle:
        return ()
    members = set(cycle)
    first = cycle.index(next(id_ for id_ in depends if id_ in members))
    return (*cycle[first:], *cycle[:first], cycle[first])


def cycle_message(cycle: Sequence[str]) -> str:
    return "Circular dependency detected: " + " → ".join(layered_task_id(id_) for id_ in cycle)


def order_tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Sort dependencies first, otherwise in file order. Ignore unknown dependencies."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.id, []).append(task)
    depends = _dependencies(task for group in groups.values() for task in group)
    ordered = base.dependency_order(depends)
    if ordered.cycle:
        raise FormatInvalid(cycle_message(_close_cycle(ordered.cycle[:-1], depends)))
    return tuple(task for id_ in ordered.ids for task in groups[id_])


def _dependencies(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return the dependencies by id. A duplicate id has those of both tasks."""
    depends: dict[str, list[str]] = {}
    for task in tasks:
        depends.setdefault(task.id, []).extend(task.depends_on)
    return depends


ACTIONS = "CREATE, MODIFY or DELETE"
MAX_LENGTH = 10_000  # characters; anything longer is not a list of names

_PIECES = re.compile(r"`([^`]*+)`|[,;]|\s(?:and|&)\s")
_ASIDE = re.compile(r"\([^()]*+\)")
_REFERENCE = re.compile(r"(?:specs/)?([a-z0-9][a-z0-9-]{0,63})(?:\.md)?[:#]([a-z0-9][a-z0-9.-]{0,63})", re.IGNORECASE)
_LONE = re.compile(r"[a-z](?=[a-z.-]*+[0-9])[a-z0-9.-]{0,63}", re.IGNORECASE)
_REQUIREMENT = re.compile(r"(?:[a-z]{1,32}-)?R[0-9]{1,6}", re.IGNORECASE)
_SPLIT = re.compile(r"[\s,;&]+")
_FILLERS = frozenset({"", "and", "task", "tasks", "none", "n/a", "-", "nothing"})
_KNOWN = {str(action): action for action in TaskAction}
_AROUND = " \t*_`\"'[](){}."


@dataclass(slots=True)
class TaskValueReader:
    """Parse the values of one task and collect faults."""

    id: str
    faults: list[DocumentFault] = field(default_factory=list)

    def fault(self, line: int, rule: str, message: str) -> None:
        self.faults.append(DocumentFault(line, rule, f"task {self.id}: {message}" if self.id else message))

    def files(self, value: Any, line: int, *, literal: bool) -> list[TaskFile]:
        """Parse one or more files. In YAML (`literal`), a path may contain spaces."""
        if isinstance(value, list):
            return [one for entry in value for one in self.files(entry, line, literal=literal)]
        if isinstance(value, dict):
            return self._parse_mapping(value, line)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and not _is_too_long(value):
            return _spread_actions(
                [one for piece in _split_pieces(str(value)) for one in self._file(*piece, line, literal)]
            )
        if value is not None:
            self.fault(line, "task-file", "the file must be a path, such as src/app.py")
        return []

    def _parse_mapping(self, value: dict[Any, Any], line: int) -> list[TaskFile]:
        path = value.get("path", value.get("file"))
        if not isinstance(path, str) or not path.strip():
            self.fault(line, "task-file", "a file needs a path and an action")
            return []
        return [TaskFile(path.strip(), self.action(value.get("action"), line), line)]

    def _file(self, words: str, code: str | None, line: int, literal: bool) -> list[TaskFile]:
        word, rest = _split_action(words, code is not None)
        path = _strip_path(rest) if code is None else code.strip()
        if not path or is_empty_phrase(path):
            if word:
                self.fault(line, "task-file", f"'{word}' has no path")
            return []
        if code is None and not literal and any(letter.isspace() for letter in path):
            self.fault(line, "task-file", f"'{path[:60]}' is not a path; write `path/to/file` (CREATE)")
            return []
        return [TaskFile(path, self.action(word or None, line), line)]

    def action(self, value: Any, line: int) -> TaskAction | None:
        if value is None or value == "":
            return None
        word = value.strip(_AROUND).upper() if isinstance(value, str) else ""
        if word in _KNOWN:
            return _KNOWN[word]
        self.fault(line, "task-action", f"unknown action '{str(value)[:60]}'; use {ACTIONS}")
        return None

    def status(self, value: Any, line: int) -> TaskStatus:
        if value is None:
            return TaskStatus.PENDING
        word = str(value).strip(_AROUND).lower()
        if word in tuple(TaskStatus):
            return TaskStatus(word)
        self.fault(line, "task-status", f"unknown status '{str(value)[:60]}'; use pending, done or waived")
        return TaskStatus.PENDING

    def references(self, value: Any, line: int) -> list[str]:
        """Parse references such as `spec:R1`. A bare `R2` belongs to the spec before it. Custom ids are allowed."""
        found: list[str] = []
        spec = ""
        for word in self._split_words(value, line, "task-spec-ref", "the spec reference must be text"):
            match = _REFERENCE.fullmatch(word)
            if match:
                spec = match[1].lower()
                found.append(f"{spec}:{_requirement_id(match[2])}")
            elif spec and _LONE.fullmatch(word):
                found.append(f"{spec}:{_requirement_id(word)}")
            else:
                self.fault(line, "task-spec-ref", f"'{word[:60]}' is not a spec reference; write <spec>:R1")
                break
        return found

    def ids(self, value: Any, line: int) -> list[str]:
        found: list[str] = []
        for word in self._split_words(value, line, "task-depends", "dependencies must be task ids"):
            if not TASK_ID.fullmatch(word) and not (word.isascii() and word.isdecimal()):
                self.fault(line, "task-depends", f"'{word[:60]}' is not a task id; write ids such as 1.1 or data.1")
                break
            found.append(canonical_task_id(word))
        return found

    def _split_words(self, value: Any, line: int, rule: str, problem: str) -> list[str]:
        values = value if isinstance(value, list) else [value]
        if any(isinstance(one, bool | list | dict) or _is_too_long(one) for one in values):
            self.fault(line, rule, problem)
            return []
        text = " ".join(str(one) for one in values if one is not None)
        text = re.sub(r"(?<=\w):\s++", ":", _ASIDE.sub(" ", text))
        words = (word.strip(_AROUND) for word in _SPLIT.split(text))
        return [word for word in words if word.lower() not in _FILLERS]


def _requirement_id(word: str) -> str:
    """Convert `r1` to R1. Return ids of any other form unchanged."""
    return word.upper() if _REQUIREMENT.fullmatch(word) else word


def _split_pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the text between separators, and the code span in it."""
    words: list[str] = []
    code: str | None = None
    last = 0
    for match in _PIECES.finditer(text):
        words.append(text[last : match.start()])
        last = match.end()
        if match[1] is None or code is not None:
            yield "".join(words), code
            words, code = [], None
        if match[1] is not None:
            code = match[1]
    yield "".join(words) + text[last:], code


def _split_action(words: str, has_code: bool) -> tuple[str, str]:
    """Return the action, in brackets or before or after the path, and the remaining text."""
    words = words.strip()
    if words.endswith((")", "]")):
        at = words.rfind("(" if words[-1] == ")" else "[")
        inside = words[at + 1 : -1].strip(_AROUND)
        apart = words[at - 1].isspace() if at > 0 else has_code and at == 0
        if at >= 0 and (apart or _is_action(inside)):
            return inside, words[:at].strip()
    first, _, rest = words.partition(" ")
    if _is_action(first.strip("*_:[]()")):
        return first.strip("*_:[]()"), rest.strip(" \t-–—:→")
    rest, _, last = words.rpartition(" ")
    if _is_action(last.strip("*_[]()")):
        return last.strip("*_[]()"), rest.strip(" \t-–—:→")
    return "", words


def _strip_path(path: str) -> str:
    """Strip quotes or bold markers around a path; `__init__.py` keeps its underscores."""
    path = path.strip(" \t\"'")
    return path.strip("*").strip() if path.startswith("**") and path.endswith("**") else path


def _is_action(word: str) -> bool:
    return word.upper() in _KNOWN


def _is_too_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > MAX_LENGTH


def _spread_actions(files: list[TaskFile]) -> list[TaskFile]:
    """Apply an action to the preceding files without one: `a, b (CREATE)`."""
    action: TaskAction | None = None
    spread: list[TaskFile] = []
    for file in reversed(files):
        action = file.action or action
        spread.append(TaskFile(file.path, action, file.line))
    return spread[::-1]
