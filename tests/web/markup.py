"""HTML and SVG as a browser would take them apart: elements with their attributes, and the text in them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...] = ()
    text: str = ""

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


@dataclass
class Markup:
    elements: list[Element] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Comments, declarations and the like."""
    text: str = ""

    def all(self, tag: str, kind: str = "") -> list[Element]:
        return [one for one in self.elements if one.tag == tag and (not kind or kind in one.classes)]

    def one(self, tag: str, kind: str = "") -> Element:
        (found,) = self.all(tag, kind)
        return found

    @property
    def tags(self) -> set[str]:
        return {one.tag for one in self.elements}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Markup()
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        attributes = [(name, value or "") for name, value in attrs]
        assert len(dict(attributes)) == len(attributes), f"an attribute twice in {tag}"
        element = Element(tag, dict(attributes), tuple(one.tag for one in self.open))
        self.seen.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1].tag == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.seen.text += data
        for element in self.open:
            element.text += data

    def handle_comment(self, data: str) -> None:
        self.seen.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.seen.others.append(decl)

    def handle_pi(self, data: str) -> None:
        self.seen.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.seen.others.append(data)


def parse_markup(markup: str) -> Markup:
    """Every tag must be closed, in order."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    assert not reader.open, f"never closed: {reader.open}"
    return reader.seen
