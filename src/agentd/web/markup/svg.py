"""Shared by all drawings: SVG elements with escaped text, shortened to fit. The style sheet sets the looks."""

import re
from html import escape
from unicodedata import east_asian_width

# Controls, marks and overrides of direction, zero-width spaces, tag characters. The two joiners are part of words.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def readable_text(text: str) -> str:
    """Text that can be written as UTF-8, in lines that end as everywhere here: by a line feed alone."""
    return _UNWRITABLE.sub(_REPLACEMENT, text).replace("\r\n", "\n").replace("\r", " ")


def visible_plain(text: str) -> str:
    """For a title or a label, not yet escaped."""
    return _UNSEEN.sub(lambda match: f"[{_name(match[0])}]", _UNWRITABLE.sub(_REPLACEMENT, text))


def visible_html(text: str) -> str:
    """As HTML."""
    escaped = escape(_UNWRITABLE.sub(_REPLACEMENT, text))
    return _UNSEEN.sub(lambda match: f'<span class="unseen">{_name(match[0])}</span>', escaped)


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"


CHARACTER = 7.5  # what a narrow one takes at 13 px, rather more than less


def svg_tag(name: str, inner: str = "", **attributes: str | float) -> str:
    """Underscores in names of attributes are hyphens; `class_` is the class."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{inner}</{name}>"


def escape_words(text: str) -> str:
    return escape(visible_plain(text))


def fit_text(text: str, room: float) -> str:
    """On one line, cut to a width in px; wide characters count twice."""
    line = " ".join(visible_plain(text).split())
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
    return visible_plain(value) if isinstance(value, str) else f"{round(value, 1):g}"
