"""The documents of a change as rules see them: texts, and what stands around them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentd.documents import blocks, frontmatter
from agentd.documents import text as base
from agentd.documents.frontmatter import BadFrontmatter, Frontmatter
from agentd.documents.spec import Spec
from agentd.documents.text import BadDocument, Document
from agentd.rules.finding import Findings

KINDS = {"proposal.md": "proposal", "tasks.md": "tasks", "clarifications.md": "clarifications"}


def _nothing(path: str) -> bool:
    return False


@dataclass(frozen=True)
class Plan:
    """`texts` by short name; `main` are the project's own specs by id; `exists` knows paths from the project root.

    While a plan is being made, what is not there yet is not missing: `complete` says that it should be.
    """

    texts: Mapping[str, bytes]
    main: Mapping[str, Spec] = field(default_factory=dict)
    complete: bool = True
    folder: str = ""
    exists: Callable[[str], bool] = _nothing


@dataclass(frozen=True, slots=True)
class Page:
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


def open_page(name: str, data: bytes, findings: Findings) -> Page | None:
    """None, with a finding, for what cannot be read any further."""
    try:
        text = base.decode(data, name)
        if name == "proposal.md" and "<review" in text:
            text = blocks.own_part(text).rstrip("\r\n") + "\n"
        document = base.parse(text, name)
        return Page(name, KINDS.get(name, "spec"), document, frontmatter.read(document))
    except BadFrontmatter as error:
        findings.bad_frontmatter(error)
    except BadDocument as error:
        findings.add(name, error.line, "unreadable", error.problem, "save the file as UTF-8 text")
    return None
