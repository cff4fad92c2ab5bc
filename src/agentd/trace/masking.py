"""A text with its comments and strings blanked, every other character where it was."""

import re
from collections.abc import Iterator

_LINE = r"//[^\n]*+"
_BLOCK = r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
_DOUBLE = r'"(?:[^"\\\n]++|\\.)*+"?'
_SINGLE = r"'(?:[^'\\\n]++|\\.)*+'?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n]{1,10}?)'"
_TRIPLE = r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?'
_RAW_RUST = r'\bb?r(?P<hashes>#{0,8})".*?(?:"(?P=hashes)|\Z)'

_PATTERNS = {
    "rust": rf"{_LINE}|{_BLOCK}|{_RAW_RUST}|{_DOUBLE.replace(chr(92) + 'n', '')}|{_CHARACTER}",
    "go": rf"{_LINE}|{_BLOCK}|`[^`]*+`?|{_DOUBLE}|{_CHARACTER}",
    "java": rf"{_LINE}|{_BLOCK}|{_TRIPLE}|{_DOUBLE}|{_CHARACTER}",
    "csharp": rf'{_LINE}|{_BLOCK}|{_TRIPLE}|@"(?:[^"]++|"")*+"?|{_DOUBLE}|{_CHARACTER}',
}
_HIDDEN = {language: re.compile(pattern, re.DOTALL) for language, pattern in _PATTERNS.items()}
_INK = re.compile(r"[^\n]")

_REGEX = r"/(?![*/\s])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n]){0,200}+\]){1,500}+/"
_SCRIPT = re.compile(rf"{_LINE}|{_BLOCK}|{_DOUBLE}|{_SINGLE}|{_REGEX}|[`{{}}]", re.DOTALL)
_TEMPLATE = re.compile(r"(?:[^`\\$]++|\\.|\$(?!\{))*+(`|\$\{)?", re.DOTALL)
_BEFORE_REGEX = frozenset("(,=:[!&|?{};+-*%~^<>\n")


def mask(text: str, language: str) -> str:
    if language == "javascript":
        return _without(text, _script(text))
    return _HIDDEN[language].sub(lambda match: _INK.sub(" ", match[0]), text)


def _without(text: str, spans: Iterator[tuple[int, int]]) -> str:
    pieces, last = [], 0
    for start, end in spans:
        pieces += [text[last:start], _INK.sub(" ", text[start:end])]
        last = end
    return "".join((*pieces, text[last:]))


def _script(text: str) -> Iterator[tuple[int, int]]:
    """Comments, strings, regular expressions and templates; what stands in `${}` is code again."""
    at = 0
    depth: list[int] = []  # open braces within each `${` we are in
    while match := _SCRIPT.search(text, at):
        at = match.end()
        mark = match[0]
        if mark == "{" and depth:
            depth[-1] += 1
        elif mark == "}" and depth and depth[-1]:
            depth[-1] -= 1
        elif mark == "`" or (mark == "}" and depth):
            if mark == "}":
                depth.pop()
            at = _template_end(text, at, depth)
            yield match.start(), at
        elif mark[0] == "/" and mark[1] not in "/*" and not _may_begin_regex(text, match.start()):
            at = match.start() + 1  # a division
        elif mark not in "{}":
            yield match.span()


def _template_end(text: str, at: int, depth: list[int]) -> int:
    match = _TEMPLATE.match(text, at)
    assert match
    if match[1] == "${":
        depth.append(0)
    return match.end()


def _may_begin_regex(text: str, at: int) -> bool:
    before = text[max(0, at - 80) : at].rstrip(" \t")
    return not before or before[-1] in _BEFORE_REGEX or before.endswith(("return", "typeof", "=>"))
