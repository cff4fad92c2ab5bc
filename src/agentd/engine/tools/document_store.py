"""Writing a document of the change: never over somebody's edit, and with a look at what the rules say."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agentd.change import Change, LocatedChange, MainSpecs, check_plan, validate_change
from agentd.documents import PROPOSAL_FILE, InvalidDocument, decode_text, proposal_body
from agentd.engine.tools.project_files import SIZE
from agentd.engine.tools.tool import ToolRefusal
from agentd.engine.tools.tool_scope import ToolScope
from agentd.storage import files
from agentd.validation import RuleFinding, count_by_severity, is_valid

MANY = 100  # findings in one answer

T = TypeVar("T")


def current_text(binding: ToolScope, change: Change, name: str) -> str | None:
    """The document as it is now, None if it is not there; refused if it moved since this session saw it."""
    ground = binding.ground(change)
    digest = ground.digest(name)
    if digest != binding.seen.get((change.id, name)):
        instead = f"read agentd/changes/{change.id}/{name} again, then repeat"
        raise ToolRefusal("stale", f"{name} changed since this session read it", instead)
    if digest is None:
        return None
    try:
        return decode_text(ground.read(name).data, name)
    except InvalidDocument as error:
        raise ToolRefusal("binary", error.message, "tell the person") from None


def store_document(binding: ToolScope, change: Change, name: str, text: str, revised: bool) -> dict[str, Any]:
    """Write it and say how it stands."""
    ground = binding.ground(change)
    data = text.encode()
    if len(data) > SIZE:
        raise ToolRefusal("too-large", f"{name} would have more than {SIZE // 1_000_000} MB", "split the document")
    binding.settings()  # whatever cannot be read is told before the write
    binding.will_write(name, files.hash_bytes(data))
    ground.write(name, data)
    binding.seen[change.id, name] = files.hash_bytes(data)
    found = [one for one in check_documents(binding, change) if one.file == name]
    return {
        "file": f"agentd/changes/{change.id}/{name}",
        "sha256": files.hash_bytes((proposal_body(text) if name == PROPOSAL_FILE else text).encode()),
        "revised": revised,
        "validation": summarize_findings(found),
    }


def check_documents(
    binding: ToolScope, change: Change, texts: dict[str, bytes] | None = None
) -> tuple[RuleFinding, ...]:
    """The rules on a plan that is being made."""
    return check_plan(change, binding.settings(), texts)


def check_whole_plan(binding: ToolScope, found: LocatedChange) -> tuple[RuleFinding, ...]:
    return validate_change(binding.project, found, binding.settings())


def summarize_findings(findings: list[RuleFinding] | tuple[RuleFinding, ...], strict: bool = False) -> dict[str, Any]:
    number = count_by_severity(findings)
    return {
        "valid": is_valid(findings, strict),
        **{f"{severity}_count": count for severity, count in number.items()},
        "findings": [
            {
                "file": one.file,
                "line": one.line,
                "rule": one.rule,
                "severity": str(one.severity),
                "message": one.message,
            }
            for one in findings[:MANY]
        ],
    }


def read_main_specs(binding: ToolScope, change: Change) -> MainSpecs:
    """The project's own specs, as the change's tree has them."""
    return MainSpecs(change.project.changes_in(change.tree).parent / "specs", binding.settings())


def read_or_refuse(work: Callable[[], T]) -> T:
    """A document on disk that cannot be read is a person's to mend."""
    try:
        return work()
    except InvalidDocument as error:
        raise ToolRefusal(
            "invalid-document", error.message, "mend that line with edit_file, or tell the person"
        ) from None


def require_once(words: Sequence[str], code: str, instead: str) -> None:
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise ToolRefusal(code, f"'{word[:100]}' stands twice", instead)
        seen.add(word)
