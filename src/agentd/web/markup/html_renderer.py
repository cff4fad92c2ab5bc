"""How each kind of token is written as HTML: all text escaped, raw HTML too."""

import re
from collections.abc import Sequence
from typing import Any

from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from agentd.web.markup import visible_text

_LANGUAGE = re.compile(r"[a-z0-9_+#.-]{1,30}")
_BOXES = {"x": ("done", " checked"), " ": ("not done", "")}
_WAIVED = ("waived", "")


class SafeRenderer(RendererHTML):
    """A method is found by the type of a token; all others are written as their tag with its attributes."""

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return visible_text.visible_html(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return visible_text.visible_html(tokens[idx].content)

    def html_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _pre("raw", tokens[idx])

    def source(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _pre("source", tokens[idx])

    def as_written(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f'<span class="as-written">{visible_text.visible_html(tokens[idx].content)}</span>'

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{visible_text.visible_html(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _code(tokens[idx])

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _code(tokens[idx])

    def task_box(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        label, checked = _BOXES.get(tokens[idx].content, _WAIVED)
        return f'<input type="checkbox" disabled aria-label="{label}"{checked}> '


def _code(token: Token) -> str:
    word = (token.info.split() or [""])[0].lower()
    text = visible_text.visible_html(token.content)
    if word == "mermaid":
        return f'<figure class="diagram"{_lines(token)}><pre class="mermaid-source">{text}</pre></figure>\n'
    language = f' class="language-{word}"' if _LANGUAGE.fullmatch(word) else ""
    return f"<pre{_lines(token)}><code{language}>{text}</code></pre>\n"


def _pre(kind: str, token: Token) -> str:
    return f'<pre class="{kind}"{_lines(token)}>{visible_text.visible_html(token.content)}</pre>\n'


def _lines(token: Token) -> str:
    return f' data-line="{token.attrGet("data-line")}" data-end="{token.attrGet("data-end")}"'
