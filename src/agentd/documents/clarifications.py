"""clarifications.md: questions asked before planning, with the answers."""

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
        questions=tuple(
            _parse_question(document, section, match[1])
            for section in document.sections
            if (match := _TOPIC.match(section.heading.title))
        ),
        lines={key: front.line(key) for key in ("change", "date") if key in front},
    )


def _parse_question(document: Document, section: Section, topic: str) -> Clarification:
    values: dict[str, str] = {}
    for labelled in read_fields(document, section.inner, _LABELS):
        values.setdefault(labelled.label, labelled.full)
    question, answer, rationale = (values.get(label, "") for label in _LABELS)
    return Clarification(topic.strip(), question, answer, rationale, section.span)


def render_clarifications(clarifications: Clarifications) -> str:
    front = frontmatter.render_frontmatter({"change": clarifications.change, "date": clarifications.date})
    parts = ["# Clarifications"]
    for number, question in enumerate(clarifications.questions, 1):
        lines = [render_item(question.question, "**Question**"), render_item(question.answer, "**Answer**")]
        if question.rationale:
            lines.append(render_item(question.rationale, "**Rationale**"))
        parts += [f"## Q{number}: {heading_text(question.topic)}", "\n".join(lines)]
    return front + "\n" + "\n\n".join(parts) + "\n"
