"""Write a document of the change: never over someone else's edit, and report what the rules find."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agentd.change import Change, LocatedChange, MainSpecs, check_plan, validate_change
from agentd.documents import PROPOSAL_FILE, InvalidDocument, decode_text, proposal_body
from agentd.engine.tools.project_files import SIZE
from agentd.engine.tools.tool import ToolRefusal
from agentd.engine.tools.tool_scope import ToolScope
from agentd.storage import files
from agentd.validation import RuleFinding, count_by_severity, is_valid

MANY = 100  # most findings in one answer

T = TypeVar("T")


def current_text(binding: ToolScope, change: Change, name: str) -> str | None:
    """Return the document's current text, or None if it does not exist.

    Refuse if it changed since this session last read it.
    """
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
    """Write the document and return its hash and the findings about it."""
    ground = binding.ground(change)
    data = text.encode()
    if len(data) > SIZE:
        raise ToolRefusal("too-large", f"{name} would have more than {SIZE // 1_000_000} MB", "split the document")
    binding.settings()  # raises before the write if the configuration cannot be read
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
    """Check a plan that is still being written."""
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
    """Return the project's own specs from the change's tree."""
    return MainSpecs(change.project.changes_in(change.tree).parent / "specs", binding.settings())


def read_or_refuse(work: Callable[[], T]) -> T:
    """Turn an unreadable document on disk into a refusal."""
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
