"""Test blocks in Rust, Go, Java, Kotlin, C# and JavaScript, recognized by attributes, annotations, names or calls."""

import re
from collections.abc import Iterator

from agentd.trace.source_blocks import BlockKind, SourceBlock, SourceText

_RUST = re.compile(r"#!?(\[)|\bfn\s+(\w+)|\bmod\s+(\w+)\s*\{|(?<!\w)(?:for|while)\s|\.for_each\s*(\()|[;{}]")
_RUST_TEST = re.compile(r"\btest\b|\brstest\b|\btest_case\b|_test\b|\bquickcheck\b|\bproptest\b")
_GO = re.compile(
    r"^func\s+(?:\([^()\n]{0,200}\)\s*)?(\w+)\s*(?:\[[^\]\n]{0,100}\])?(\()|\b(\w+)\s*:?=\s*func\s*(\()|\bfor\b",
    re.MULTILINE,
)
_GO_TEST = re.compile(r"(?:Test|Fuzz|Example)(?![a-z])(?!Main$)\w*")
_GO_IGNORED = re.compile(r"^//go:build ignore\b", re.MULTILINE)
_MARKED = re.compile(
    r"@([A-Za-z][\w.]*)|(?<![\w)\]])(\[)\s*(?:\w+:\s*)?(?=[A-Z])|\b(?:class|object|interface|record)\s+(\w+)"
    r"|(`[^`\n]{1,200}`|(?<![\w$])[A-Za-z_]\w*)\s*(?:<[^()<>\n]{0,80}>\s*)?(\()|[;{}]"
)
_TESTS = re.compile(
    r"\b(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property|TestCase\w*|Fact|Theory|TestMethod"
    r"|DataTestMethod)\b"
)
_TABLES = re.compile(r"\b(?:ParameterizedTest|RepeatedTest|TestFactory|Property|Theory|TestCase\w*|DataTestMethod)\b")
_SKIPS = re.compile(r"\b(Disabled\w*|Ignore\w*|Explicit)\b|\b(Skip)\s*=")
_NO_METHODS = frozenset(
    {"if", "switch", "catch", "synchronized", "when", "return", "new", "using", "lock", "super", "this"}
)
_BODY = re.compile(r"\s*(?:throws\s[\w.,\s]{1,200}|:\s*[\w<>?.,\s]{1,80})?(?:=[^;{}\n]{0,80})?\{")


def rust_blocks(page: SourceText) -> Iterator[SourceBlock]:
    marks: list[tuple[int, str]] = []
    at = 0
    while match := _RUST.search(page.masked, at):
        at = match.end()
        if match[1]:
            at = page.close(at - 1)
            marks.append((match.start(), page.masked[match.start() : min(at, match.start() + 300)]))
            continue
        if match[2] and (body := page.body(at)):
            yield _rust_function(match, marks, body)
        elif match[3]:
            yield SourceBlock(BlockKind.GROUP, match[3], match.start(), match.start(), at, page.close(at - 1))
        elif match[4]:
            yield SourceBlock(BlockKind.LOOP, "", match.start(), match.start(), at, page.close(at - 1))
        elif match[0][-1].isspace() and (body := page.body(at)):
            yield SourceBlock(BlockKind.LOOP, "", match.start(), match.start(), *body)
        marks = []


def _rust_function(match: re.Match[str], marks: list[tuple[int, str]], body: tuple[int, int]) -> SourceBlock:
    tests = [text for _, text in marks if _RUST_TEST.search(text.partition("(")[0]) and "cfg" not in text]
    ignored = next(((start, "ignore") for start, text in marks if re.match(r"#\[\s*ignore\b", text)), None)
    first = marks[0][0] if marks else match.start()
    is_table = any("case" in text or "rstest" in text or "quickcheck" in text for _, text in marks)
    kind = BlockKind.TEST if tests else BlockKind.HELPER
    return SourceBlock(kind, match[2], first, match.start(), *body, skip=ignored, is_table=is_table)


def go_blocks(page: SourceText) -> Iterator[SourceBlock]:
    ignored = _GO_IGNORED.search(page.text)
    skip = (ignored.start(), "go:build ignore") if ignored else None
    for match in _GO.finditer(page.masked):
        start = match.start()
        if match[0] == "for":
            if body := _go_loop(page, match.end()):
                yield SourceBlock(BlockKind.LOOP, "", start, start, *body)
            continue
        name = match[1] or match[3]
        if body := page.body(page.close(match.end() - 1)):
            is_test = bool(match[1] and _GO_TEST.fullmatch(name))
            kind = BlockKind.TEST if is_test else BlockKind.HELPER
            yield SourceBlock(kind, name, start, start, *body, skip=skip if is_test else None)


def _go_loop(page: SourceText, at: int) -> tuple[int, int] | None:
    """Return the body of a loop such as `for _, one := range []struct{...}{...} {`: the last pair of braces."""
    open_ = page.masked.find("{", at, at + 300)
    while open_ >= 0:
        end = page.close(open_)
        following = page.after(end)
        if page.masked[following : following + 1] != "{":
            return open_ + 1, end
        open_ = following
    return None


def annotated_blocks(page: SourceText) -> Iterator[SourceBlock]:
    """Yield the blocks of Java, Kotlin and C#: methods with annotations before them."""
    marks: list[tuple[int, str]] = []
    at = 0
    while match := _MARKED.search(page.masked, at):
        at = match.end()
        if match[1]:
            open_ = page.after(at)
            at = page.close(open_) if page.masked[open_ : open_ + 1] == "(" else at
        elif match[2]:
            at = page.close(match.start(2))
        if match[1] or match[2]:
            marks.append((match.start(), page.masked[match.start() : min(at, match.start() + 300)]))
            continue
        if match[3]:
            if body := page.body(at):
                yield SourceBlock(
                    BlockKind.GROUP, match[3], _first(marks, match), match.start(), *body, skip=_skip(marks)
                )
                marks = []
        elif match[4]:
            if block := _method(page, match, marks):
                yield block
                marks = []
        else:
            marks = []


def _method(page: SourceText, match: re.Match[str], marks: list[tuple[int, str]]) -> SourceBlock | None:
    name, open_ = match[4].strip("`"), match.end() - 1
    start = match.start()
    end = page.close(open_)
    if name in _NO_METHODS:
        return None
    if name == "forEach":
        return SourceBlock(BlockKind.LOOP, "", start, start, open_, end)
    body = _BODY.match(page.masked, end)
    if name in ("for", "while", "foreach"):
        inner = page.close(body.end() - 1) if body else end
        return SourceBlock(BlockKind.LOOP, "", start, start, open_, inner)
    if not body or (page.masked[start - 1 : start] == "." if start else False):
        return None
    kind = BlockKind.TEST if any(_TESTS.search(text) for _, text in marks) else BlockKind.HELPER
    is_table = any(_TABLES.search(text) for _, text in marks)
    close = page.close(body.end() - 1)
    return SourceBlock(kind, name, _first(marks, match), start, body.end(), close, skip=_skip(marks), is_table=is_table)


def _first(marks: list[tuple[int, str]], match: re.Match[str]) -> int:
    return marks[0][0] if marks else match.start()


def _skip(marks: list[tuple[int, str]]) -> tuple[int, str] | None:
    for start, text in marks:
        if found := _SKIPS.search(text):
            return start, found[1] or found[2]
    return None


_SCRIPT_TESTS = re.compile(
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
_SCRIPT_SKIPS = ("skip", "todo", "failing", "fails", "fail", "fixme", "skipIf", "runIf")
_KNOWN = frozenset(
    {*_SCRIPT_SKIPS, "only", "each", "for", "concurrent", "sequential", "serial", "parallel", "describe", "slow"}
)
_STRING = re.compile(r"'((?:[^'\\\n]|\\.){0,300}+)|\"((?:[^\"\\\n]|\\.){0,300}+)|`((?:[^`\\]|\\.){0,300}+)", re.DOTALL)


def script_blocks(page: SourceText) -> Iterator[SourceBlock]:
    for match in _SCRIPT_TESTS.finditer(page.masked):
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
    said = next((one for one in more if one in _SCRIPT_SKIPS), word if word[0] == "x" else "")
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
    else:  # an arrow function with a single expression
        body, end = at, page.statement_end(start)
    return SourceBlock(BlockKind.HELPER, match[1] or match[2], match.start(), match.start(), body, end)
