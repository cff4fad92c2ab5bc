"""How tests, helpers and loops are written in languages with braces."""

import re
from collections.abc import Callable, Iterator

from agentd.trace.brace_languages import annotated_blocks, go_blocks, rust_blocks
from agentd.trace.script_tests import script_blocks
from agentd.trace.source_blocks import SourceBlock, SourceText

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
# Words of the languages and of their test libraries, which say nothing about what is tested.
COMMON = frozenset(
    WORDS.findall(
        "assert assert_eq expect toBe toEqual it test describe const let var function return async await new true"
        " false null fn func mut pub use Test void public class throws Exception assertEquals assertTrue assertThat"
        " isEqualTo equal strictEqual ok if err nil testing Fatal Fatalf Error Errorf Fact Assert Equal static final"
        " fun val super self"
    )
)

__all__ = ["ASSERTIONS", "BLOCKS", "CALLS", "COMMON", "SKIPS_INSIDE", "WORDS"]
