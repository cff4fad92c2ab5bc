"""Tests in JavaScript and TypeScript: `describe` and `it` of the usual runners."""

import re
from collections.abc import Iterator

from agentd.trace.source_blocks import BlockKind, SourceBlock, SourceText

_TESTS = re.compile(
    r"(?<![\w$.])(?P<word>[xf]?(?:describe|context|it|test|specify)|suite)(?P<more>(?:\s{0,80}\.\s{0,8}\w+){0,6})"
    r"(?:<[^()\n]{0,200}>)?\s*(?P<open>\()"
)
_FUNCTIONS = re.compile(
    r"\bfunction\s+([\w$]+)\s*(?:<[^()\n]{0,200}>)?\("
    r"|\b(?:const|let|var)\s+([\w$]+)\s*(?::[^=\n]{0,200})?=\s*(?:async\s*)?"
    r"(?:function\b|\([^()\n]{0,300}\)\s*(?::[^=\n]{0,80})?=>|[\w$]+\s*=>)"
)
_LOOPS = re.compile(r"(?<![\w$.])(?:for|while)\s*(?:await\s*)?(\()|\.(?:forEach|map|every|some)\s*(\()")
_OPTION = re.compile(r"[{,]\s*(skip|todo|only)\s*:\s*(?!false\b)")
_FUNCTION = re.compile(r"=>|\bfunction\b")
_GROUPS = ("describe", "context", "suite")
_SKIPS = ("skip", "todo", "failing", "fails", "fail", "fixme", "skipIf", "runIf")
_KNOWN = frozenset(
    {*_SKIPS, "only", "each", "for", "concurrent", "sequential", "serial", "parallel", "describe", "slow"}
)
_STRING = re.compile(r"'((?:[^'\\\n]|\\.){0,300}+)|\"((?:[^\"\\\n]|\\.){0,300}+)|`((?:[^`\\]|\\.){0,300}+)", re.DOTALL)


def script_blocks(page: SourceText) -> Iterator[SourceBlock]:
    for match in _TESTS.finditer(page.masked):
        if block := _test(page, match):
            yield block
    for match in _FUNCTIONS.finditer(page.masked):
        yield _helper(page, match)
    for match in _LOOPS.finditer(page.masked):
        open_ = match.end() - 1
        end = page.close(open_)
        if match[1] and page.masked[page.after(end) : page.after(end) + 1] == "{":
            end = page.close(page.after(end))
        yield SourceBlock(BlockKind.LOOP, "", match.start(), match.start(), open_, end)


def _test(page: SourceText, match: re.Match[str]) -> SourceBlock | None:
    more = re.findall(r"\w+", match["more"])
    if not _KNOWN.issuperset(more):
        return None
    open_ = match.end() - 1
    second = page.after(page.close(open_))
    if more and page.masked[second : second + 1] == "(":  # `it.each(values)(name, test)`
        open_ = second
    end = page.close(open_)
    if not (string := _STRING.match(page.text, page.after_blank(open_ + 1))):
        return None
    head = _FUNCTION.search(page.masked, open_, min(end, open_ + 1000))
    option = _OPTION.search(page.masked, open_, head.start() if head else min(end, open_ + 1000))
    word = match["word"]
    said = next((one for one in more if one in _SKIPS), word if word[0] == "x" else "")
    said = said or (option[1] if option and option[1] != "only" else "")
    only = "only" in more or word[0] == "f" or (option is not None and option[1] == "only")
    return SourceBlock(
        kind=BlockKind.GROUP if "describe" in more or word.lstrip("xf") in _GROUPS else BlockKind.TEST,
        name=" ".join((string[1] or string[2] or string[3] or "").split()),
        first=match.start(),
        start=open_,
        body=string.end(),
        end=end,
        skip=(match.start(), said) if said else None,
        only=match.start() if only else None,
        is_table="each" in more or "for" in more,
    )


def _helper(page: SourceText, match: re.Match[str]) -> SourceBlock:
    at = match.end()
    if page.masked[at - 1] == "(":
        at = page.close(at - 1)
    start = page.after(at)
    if page.masked[start : start + 1] == "{" or match[1] or page.masked[at - 8 : at] == "function":
        found = page.body(at)
        body, end = found or (at, at)
    else:  # an arrow with one expression
        body, end = at, page.statement_end(start)
    return SourceBlock(BlockKind.HELPER, match[1] or match[2], match.start(), match.start(), body, end)
