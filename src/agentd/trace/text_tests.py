"""Find tests in brace languages by scanning the text."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from agentd.trace import python_tests
from agentd.trace.brace_languages import annotated_blocks, go_blocks, rust_blocks, script_blocks
from agentd.trace.source_blocks import BlockKind, SourceBlock, SourceText
from agentd.trace.test_cases import (
    UNBOUNDED,
    Assertion,
    HelperCall,
    ScannedTests,
    SkipMark,
    TestCase,
    TestGroup,
    language_of,
)

Blocks = Callable[[SourceText], Iterator[SourceBlock]]

BLOCKS: dict[str, Blocks] = {
    "javascript": script_blocks,
    "rust": rust_blocks,
    "go": go_blocks,
    "java": annotated_blocks,
    "csharp": annotated_blocks,
}

_OF_T = (
    "is|isNot|not|like|deepEqual|notDeepEqual|equal|notEqual|strictEqual|same|notSame|match|ok|notOk|true|false|truthy"
    "|falsy|throws|throwsAsync|notThrows|rejects|resolves|pass|fail|regex|snapshot"
)
_TESTIFY = "Equal|NotEqual|True|False|Nil|NotNil|NoError|ErrorIs|ErrorAs|Contains|Len|Empty|Panics|JSONEq|ElementsMatch"

ASSERTIONS = {
    "javascript": re.compile(
        r"(?<![\w$.])(?:expect(?:TypeOf|\.soft|\.poll|\.element)?|assert(?:\.\w+){0,3}|assert\w+)\s*(\()"
        rf"|(?<![\w$.])t\.(?:assert\.\w+|{_OF_T})\s*(\()|\.should\b"
    ),
    "rust": re.compile(r"\b(?:\w{1,40}_)?assert\w{0,60}!\s*([(\[{])|\bpanic!\s*(\()"),
    "go": re.compile(
        r"(?<![\w.])[tbf]\.(?:Errorf?|Fatalf?|Fail|FailNow)\s*(\()|(?<![\w.])(?:assert|require)\.\w+\s*(\()"
        rf"|\.(?:{_TESTIFY})f?\s*(\()"
    ),
    "java": re.compile(
        r"\bAssert(?:ions)?\.\w+\s*(\()|\bassert\w*\s*(\()|(?<![\w.])assert\s+(?=\w)|\b(?:verify\w*|fail)\s*(\()"
        r"|\.(?:andExpect|should\w*)\s*(\()|\bexpect\w*\s*(\()"
    ),
    "csharp": re.compile(r"\b\w{0,40}Assert\.\w+\s*(?:<[^<>\n]{0,80}>)?\s*(\()|\.Should\w*\s*(\()|\.Verify\w*\s*(\()"),
}

SKIPS_INSIDE = {
    "javascript": re.compile(r"(?<![\w$.])(?:this|t|ctx|context|test)\.(skip|todo|fixme)\s*\("),
    "rust": None,
    "go": re.compile(r"(?<![\w.])[tbf]\.(Skip|Skipf|SkipNow)\s*\("),
    "java": None,
    "csharp": re.compile(r"\bAssert\.(Ignore|Inconclusive|Skip)\s*\("),
}

CALLS = re.compile(r"(?<![\w$])([A-Za-z_$][\w$]*+)(?:!|::<[^<>\n]{0,60}>|<[^<>()\n]{0,60}>)?\s{0,8}\(")

WORDS = re.compile(r"[A-Za-z_$][\w$]{1,80}|[0-9]+")
# Words of the languages and their test libraries, which say nothing about what is tested.
COMMON = frozenset(
    WORDS.findall(
        "assert assert_eq expect toBe toEqual it test describe const let var function return async await new true"
        " false null fn func mut pub use Test void public class throws Exception assertEquals assertTrue assertThat"
        " isEqualTo equal strictEqual ok if err nil testing Fatal Fatalf Error Errorf Fact Assert Equal static final"
        " fun val super self"
    )
)


@dataclass
class _OpenBlock:
    """A block that is still being read, and what was found in it so far."""

    block: SourceBlock
    name: str
    skip: SkipMark | None
    times: int
    owner: "_OpenBlock | None" = None  # the test or helper that this block belongs to
    asserts: list[Assertion] = field(default_factory=list)
    calls: list[HelperCall] = field(default_factory=list)
    words: set[str] = field(default_factory=set)


def scan_brace_language(text: str, language: str) -> ScannedTests:
    page = SourceText(text, language)
    blocks = sorted(BLOCKS[language](page), key=lambda block: (block.body, -block.end))
    reader = _BraceReader(page)
    for at, _, what in sorted(_events(page, blocks), key=lambda event: event[:2]):
        reader.leave(at)
        if isinstance(what, SourceBlock):
            reader.enter(what)
        else:
            reader.meet(at, *what)
    reader.leave(len(text) + 1)
    return reader.scan()


_Event = tuple[int, int, SourceBlock | tuple[str, str, int]]


def _events(page: SourceText, blocks: list[SourceBlock]) -> Iterator[_Event]:
    """Yield blocks, assertions, calls and skips; in this order at the same position."""
    yield from ((block.body, 0, block) for block in blocks)
    asserted: set[int] = set()
    for one in ASSERTIONS[page.language].finditer(page.masked):
        asserted.add(one.end())
        yield one.start(), 1, ("assert", "", one.end() - 1 if one.lastindex else -1)
    for one in CALLS.finditer(page.masked):
        if one.end() not in asserted:
            yield one.start(), 2, ("call", one[1], one.end())
    if skips := SKIPS_INSIDE[page.language]:
        for one in skips.finditer(page.masked):
            yield one.start(), 3, ("skip", one[1], one.end())


@dataclass
class _BraceReader:
    page: SourceText
    stack: list[_OpenBlock] = field(default_factory=list)
    cases: dict[str, TestCase] = field(default_factory=dict)
    helpers: dict[str, TestCase] = field(default_factory=dict)
    groups: list[TestGroup] = field(default_factory=list)
    only: list[SkipMark] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    read_to: int = 0

    def enter(self, block: SourceBlock) -> None:
        self._read_words(block.first)
        around = self.stack[-1] if self.stack else None
        owner = around.owner if around else None
        if block.kind is BlockKind.HELPER and owner:  # a function inside a test may be called any number of times
            block = replace(block, kind=BlockKind.LOOP)
        name = around.name if around else ""
        if block.kind in (BlockKind.GROUP, BlockKind.TEST):
            name = (f"{name} > {block.name}" if name else block.name)[-2000:]
        skip = self._place(*block.skip) if block.skip else around.skip if around else None
        times = around.times if around and block.kind is not BlockKind.HELPER else 1
        times = UNBOUNDED if block.kind is BlockKind.LOOP or block.is_table else times
        if block.only is not None:
            self.only.append(self._place(block.only, "only"))
        opened = _OpenBlock(block, name, skip, times, owner)
        if block.kind in (BlockKind.TEST, BlockKind.HELPER):
            opened.owner = opened
        if opened.owner:
            opened.owner.words.update(WORDS.findall(self.page.text, block.first, block.start))
        self.read_to = max(self.read_to, block.body)
        self.stack.append(opened)

    def leave(self, at: int) -> None:
        while self.stack and self.stack[-1].block.end <= at:
            self._read_words(self.stack[-1].block.end)
            done = self.stack.pop()
            if done.block.kind is BlockKind.GROUP:
                self.groups.append(TestGroup(done.name, *self._lines(done.block)))
            elif done.block.kind is BlockKind.TEST:
                self.seen[done.name] += 1  # two tests may have the same name
                name = done.name if self.seen[done.name] == 1 else f"{done.name} ({self.seen[done.name]})"
                self.cases[name] = self._case(done, name)
            elif done.block.kind is BlockKind.HELPER:
                self.helpers[done.block.name] = self._case(done, done.block.name)

    def meet(self, at: int, what: str, word: str, end: int) -> None:
        owner = self.stack[-1].owner if self.stack else None
        if owner is None:
            return
        times = self.stack[-1].times
        if what == "assert":
            owner.asserts.append(self.page.assertion(at, end, times))
        elif what == "call":
            close = min(self.page.close(end - 1), at + 300)
            owner.calls.append(HelperCall(word, "".join(self.page.text[at:close].split()), times))
        elif owner.skip is None:
            owner.skip = self._place(at, word)

    def scan(self) -> ScannedTests:
        return ScannedTests(tuple(self.cases.values()), self.helpers, tuple(self.groups), tuple(self.only))

    def _case(self, done: _OpenBlock, name: str) -> TestCase:
        block = done.block
        first, last = self._lines(block)
        return TestCase(
            name=name,
            first=first,
            line=self.page.line(block.start),
            last=last,
            quote=self.page.quote(block.start),
            asserts=tuple(done.asserts),
            calls=tuple(done.calls),
            skip=done.skip,
            words=frozenset(done.words) - COMMON,
        )

    def _read_words(self, to: int) -> None:
        """Add the words up to this position to the owner of the current block."""
        if self.stack and self.stack[-1].owner:
            self.stack[-1].owner.words.update(WORDS.findall(self.page.text, self.read_to, to))
        self.read_to = max(self.read_to, to)

    def _lines(self, block: SourceBlock) -> tuple[int, int]:
        return self.page.line(block.first), self.page.line(max(block.end - 1, block.start))

    def _place(self, at: int, word: str) -> SkipMark:
        return SkipMark(self.page.line(at), word, self.page.quote(at))


def scan_tests(path: str, text: str) -> ScannedTests | None:
    """Scan a file's tests. Return None if its language or text cannot be parsed."""
    language = language_of(path)
    if language is None:
        return None
    return python_tests.scan_python(text) if language == "python" else scan_brace_language(text, language)
