"""Whatever a text is made of: reading its tests never fails, and takes time in proportion to its size."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentd.trace import matrix
from agentd.trace.matrix import covering_tests as covering
from agentd.trace.source_blocks import mask_source
from agentd.trace.text_tests import scan_tests
from agentd.trace.weakened_tests import weakened
from assertions import assert_grows_linearly

PATHS = ("test_a.py", "a.test.ts", "a_test.rs", "a_test.go", "ATest.java", "ATests.cs", "a_spec.rb")
LANGUAGES = ("javascript", "rust", "go", "java", "csharp")
KNOWN = matrix.known_requirements(["auth-flow:R1", "a:R2"])
PIECES = (
    "it('x', () => {", "describe.only(", "test.each([", "${", "`", "'", '"', '"""', "/*", "*/", "//", "/", "[/", "\\",
    "#[test]", "#[", "fn a(", "mod m {", 'r#"', "func TestA(", "t.Error(", "for ", "@Test", "void a() {", "[Fact]",
    "class A {", "expect(a)", ".toBe(1)", "assert ", "assert!(", "assertEquals(1, a)", "def test_a():\n    ", "\n",
    "@pytest.mark.skip\n", "covers: auth-flow:R1, ", "covers_auth_flow_R1", "Covers", "(", ")", "{", "}", "[", "]",
    ";", " ", "é", "\0", "=> ", "const a = (b) =>",
)  # fmt: skip

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join)


@given(texts, texts, st.sampled_from(PATHS))
@example("def test_a():\n    assert " + "-" * 5000 + "1\n", "", "test_a.py")
@example("def test_a():\n    assert " + "(" * 300 + ")" * 300 + "\n", "x" * 10, "test_a.py")
def test_arbitrary_text_never_crashes_the_scanner(before: str, after: str, path: str) -> None:
    weakened(path, before, after)
    weakened(path, before, None)
    covering(path, before, KNOWN, {"a:R2"})
    assert weakened(path, before, before) == []


@given(texts, st.sampled_from(LANGUAGES))
def test_masking_keeps_every_other_character_in_place(text: str, language: str) -> None:
    masked = mask_source(text, language)
    assert len(masked) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, masked, strict=True))


@pytest.mark.parametrize("path", PATHS[:-1])
@pytest.mark.parametrize("piece", [*PIECES, "it('x', () => { expect(a).toBe(1) })\n", "assert x\n"])
def test_scanning_takes_linear_time(path: str, piece: str) -> None:
    assert_grows_linearly(lambda text: scan_tests(path, text), "", piece, count=150)


@pytest.mark.parametrize("piece", [*PIECES, "covers a:R2 and "])
def test_finding_marks_takes_linear_time(piece: str) -> None:
    assert_grows_linearly(lambda text: matrix.find_marks(text, KNOWN), "", piece)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("test_a.py", "def test_{0}():\n    assert f({0}) == {0}\n\n"),
        ("a.test.js", "it('is {0}', () => {{ expect(f({0})).toBe({0}) }})\n"),
        ("a_test.go", 'func Test{0}(t *testing.T) {{ if f({0}) {{ t.Error("x") }} }}\n'),
    ],
)
def test_comparing_many_tests_of_one_file_takes_linear_time(path: str, unit: str) -> None:
    def compare(text: str) -> None:
        assert weakened(path, text, text + "\n") == []

    assert_grows_linearly(compare, "", "".join(unit.format(number) for number in range(3)), count=25)


@pytest.mark.parametrize(
    ("language", "text", "left"),
    [
        ("javascript", "x`a${b}c'`y", "x    b    y"),
        ("javascript", "a = /['\"`]/; b / c / d", "a =        ; b / c / d"),
        ("rust", "f(r#\"a\"b\"#, 'x', &'a y)", "f(        ,    , &'a y)"),
        ("go", "f(`a\"\nb`, 'x')", "f(   \n  ,    )"),
        ("java", 'f("""\na"b""", "c") // d', "f(   \n      ,    )     "),
        ("csharp", 'f(@"a\\", "b") /* c */', "f(     ,    )        "),
    ],
)
def test_masking_keeps_code(language: str, text: str, left: str) -> None:
    assert mask_source(text, language) == left
