"""Shared drawing helpers: SVG elements with escaped text, shortened to fit. The style sheet sets the looks."""

import re
from html import escape
from unicodedata import east_asian_width

# Controls, direction marks and overrides, zero-width spaces, tag characters. The two joiners are part of words.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def readable_text(text: str) -> str:
    """Return text that can be encoded as UTF-8, with line feeds as the only line endings."""
    return _UNWRITABLE.sub(_REPLACEMENT, text).replace("\r\n", "\n").replace("\r", " ")


def visible_plain(text: str) -> str:
    """Make invisible characters visible, for a title or a label; the result is not escaped."""
    return _UNSEEN.sub(lambda match: f"[{_name(match[0])}]", _UNWRITABLE.sub(_REPLACEMENT, text))


def visible_html(text: str) -> str:
    """Make invisible characters visible, as escaped HTML."""
    escaped = escape(_UNWRITABLE.sub(_REPLACEMENT, text))
    return _UNSEEN.sub(lambda match: f'<span class="unseen">{_name(match[0])}</span>', escaped)


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"


CHARACTER = 7.5  # px; width of a narrow character at 13 px, rounded up


def svg_tag(name: str, inner: str = "", **attributes: str | float) -> str:
    """Return an element. Underscores in attribute names become hyphens; `class_` is the class."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{inner}</{name}>"


def escape_words(text: str) -> str:
    return escape(visible_plain(text))


def fit_text(text: str, room: float) -> str:
    """Return one line cut to a width in px; wide characters count twice."""
    line = " ".join(visible_plain(text).split())
    left = room / CHARACTER
    for place, character in enumerate(line):
        left -= 2 if east_asian_width(character) in "WF" else 1
        if left < 0:
            return line[: max(place - 1, 0)] + "…"
    return line


def svg_canvas(kind: str, label: str, width: float, height: float, inner: str) -> str:
    """Return a drawing whose parts are read out one by one, each by its title."""
    box = f"0 0 {_value(width)} {_value(height)}"
    size = {"width": width, "height": height}
    return svg_tag("svg", inner, class_=kind, role="group", aria_label=label, viewBox=box, **size)


def svg_meter(part: float, whole: float) -> str:
    """Draw how much of the whole is used."""
    width, height = 96, 4
    used = width * min(1.0, part / whole) if whole else 0
    bars = svg_tag("rect", class_="room", width=width, height=height, rx=2)
    bars += svg_tag("rect", class_="used over" if part > whole else "used", width=used, height=height, rx=2)
    return svg_canvas("meter", f"{part:.2f} of {whole:.2f} USD", width, height, bars)


def _value(value: str | float) -> str:
    return visible_plain(value) if isinstance(value, str) else f"{round(value, 1):g}"
