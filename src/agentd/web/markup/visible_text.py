"""Text as it is shown: what would be invisible, or would turn the order of the words, is written out."""

import re
from html import escape

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
