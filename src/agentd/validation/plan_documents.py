"""The documents of a change as rules see them: texts, and what stands around them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentd.documents import (
    Document,
    Frontmatter,
    InvalidDocument,
    InvalidFrontmatter,
    Spec,
    decode_text,
    parse_document,
    read_frontmatter,
    text_before_blocks,
)
from agentd.validation.rule_findings import FindingCollector

DOCUMENT_KINDS = {"proposal.md": "proposal", "tasks.md": "tasks", "clarifications.md": "clarifications"}


def _nothing(path: str) -> bool:
    return False


@dataclass(frozen=True)
class PlanDocuments:
    """`texts` by short name; `main` are the project's own specs by id; `exists` knows paths from the project root.

    While a plan is being made, what is not there yet is not missing: `complete` says that it should be.
    """

    texts: Mapping[str, bytes]
    main: Mapping[str, Spec] = field(default_factory=dict)
    complete: bool = True
    folder: str = ""
    exists: Callable[[str], bool] = _nothing


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A document that could be read, and what kind it is; a proposal without its review blocks."""

    name: str
    kind: str
    document: Document
    front: Frontmatter

    @property
    def spec_id(self) -> str:
        return spec_id(self.name)


def spec_id(name: str) -> str:
    return name.removeprefix("specs/").removesuffix(".md")


def open_document(name: str, data: bytes, findings: FindingCollector) -> PlanDocument | None:
    """None, with a finding, for what cannot be read any further."""
    try:
        text = decode_text(data, name)
        if name == "proposal.md" and "<review" in text:
            text = text_before_blocks(text).rstrip("\r\n") + "\n"
        document = parse_document(text, name)
        return PlanDocument(name, DOCUMENT_KINDS.get(name, "spec"), document, read_frontmatter(document))
    except InvalidFrontmatter as error:
        findings.bad_frontmatter(error)
    except InvalidDocument as error:
        findings.add(name, error.line, "unreadable", error.problem, "save the file as UTF-8 text")
    return None
