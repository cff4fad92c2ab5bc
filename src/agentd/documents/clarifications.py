"""clarifications.md: what was asked before planning, and what the person answered."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentd.documents import frontmatter
from agentd.documents import text as base
from agentd.documents.prose import heading_text, read_fields, render_item
from agentd.documents.text import Document, Section, Span

CLARIFICATIONS_FILE = "clarifications.md"

_TOPIC = re.compile(r"q(?:uestion)?\s*+\d++\s*+[:.–—-]?\s*+(.*)$", re.IGNORECASE)
_LABELS = ("question", "answer", "rationale")


@dataclass(frozen=True, slots=True)
class Clarification:
    topic: str
    question: str
    answer: str
    rationale: str = ""
    span: Span = field(default=Span(0, 0), compare=False)

    @property
    def line(self) -> int:
        return self.span.start


@dataclass(frozen=True, slots=True)
class Clarifications:
    change: str
    date: str
    questions: tuple[Clarification, ...]
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)


def parse_clarifications(text: str, name: str = CLARIFICATIONS_FILE) -> Clarifications:
    document = base.parse_document(text, name)
    front = frontmatter.read_frontmatter(document)
    return Clarifications(
        change=front.string("change"),
        date=front.string("date"),
        questions=_questions(document),
        lines={key: front.line(key) for key in ("change", "date") if key in front},
    )


def _questions(document: Document) -> tuple[Clarification, ...]:
    found = ((section, _TOPIC.match(section.heading.title)) for section in document.sections)
    return tuple(_question(document, section, match[1]) for section, match in found if match)


def _question(document: Document, section: Section, topic: str) -> Clarification:
    values: dict[str, str] = {}
    for one in read_fields(document, section.inner, _LABELS):
        values.setdefault(one.label, one.full)
    question, answer, rationale = (values.get(label, "") for label in _LABELS)
    return Clarification(topic.strip(), question, answer, rationale, section.span)


def render_clarifications(clarifications: Clarifications) -> str:
    front = frontmatter.render_frontmatter({"change": clarifications.change, "date": clarifications.date})
    parts = ["# Clarifications"]
    for number, one in enumerate(clarifications.questions, 1):
        lines = [render_item(one.question, "**Question**"), render_item(one.answer, "**Answer**")]
        if one.rationale:
            lines.append(render_item(one.rationale, "**Rationale**"))
        parts += [f"## Q{number}: {heading_text(one.topic)}", "\n".join(lines)]
    return front + "\n" + "\n\n".join(parts) + "\n"
