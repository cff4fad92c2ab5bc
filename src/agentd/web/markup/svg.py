"""What the drawings share: marks of SVG with escaped words, cut to the room they have. Looks are the style sheet's."""

from html import escape
from unicodedata import east_asian_width

from agentd.web.markup import visible_text

CHARACTER = 7.5  # what a narrow one takes at 13 px, rather more than less


def svg_tag(name: str, inner: str = "", **attributes: str | float) -> str:
    """Underscores in names of attributes are hyphens; `class_` is the class."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{inner}</{name}>"


def escape_words(text: str) -> str:
    return escape(visible_text.visible_plain(text))


def fit_text(text: str, room: float) -> str:
    """On one line, cut to a width in px; wide characters count twice."""
    line = " ".join(visible_text.visible_plain(text).split())
    left = room / CHARACTER
    for place, character in enumerate(line):
        left -= 2 if east_asian_width(character) in "WF" else 1
        if left < 0:
            return line[: max(place - 1, 0)] + "…"
    return line


def svg_canvas(kind: str, label: str, width: float, height: float, inner: str) -> str:
    """Its parts are read one by one, each by its title."""
    box = f"0 0 {_value(width)} {_value(height)}"
    size = {"width": width, "height": height}
    return svg_tag("svg", inner, class_=kind, role="group", aria_label=label, viewBox=box, **size)


def svg_meter(part: float, whole: float) -> str:
    """How much of something is used."""
    width, height = 96, 4
    used = width * min(1.0, part / whole) if whole else 0
    bars = svg_tag("rect", class_="room", width=width, height=height, rx=2)
    bars += svg_tag("rect", class_="used over" if part > whole else "used", width=used, height=height, rx=2)
    return svg_canvas("meter", f"{part:.2f} of {whole:.2f} USD", width, height, bars)


def _value(value: str | float) -> str:
    return visible_text.visible_plain(value) if isinstance(value, str) else f"{round(value, 1):g}"
