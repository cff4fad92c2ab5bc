"""What a test says it covers, in any language, and to which test the words belong."""

import pytest

from agentd.trace import matrix
from agentd.trace.matrix import covering_tests as covering

KNOWN = matrix.known_requirements(["auth-flow:R1", "auth-flow:R2", "auth-flow:R12", "user-model:R1", "user:AUTH-R3"])

SAID = {
    "# covers: auth-flow:R1": ["auth-flow:R1"],
    "// Covers: AUTH-FLOW:r1": ["auth-flow:R1"],
    "/* covers: auth-flow:R1, auth-flow:R2 */": ["auth-flow:R1", "auth-flow:R2"],
    '"""Used states are refused (covers: auth-flow:R2)."""': ["auth-flow:R2"],
    "-- covers: auth-flow:R1 and user-model:R1.": ["auth-flow:R1", "user-model:R1"],
    "it('signs in [covers: auth-flow:R12]', () => {})": ["auth-flow:R12"],
    '@pytest.mark.covers("auth-flow:R1", "auth-flow:R2")': ["auth-flow:R1", "auth-flow:R2"],
    '@Tag("covers: user:AUTH-R3")': ["user:AUTH-R3"],
    "# covers: auth-flow:R1, R2": ["auth-flow:R1", "auth-flow:R2"],
    "def test_covers_auth_flow_R1():": ["auth-flow:R1"],
    "def test_state_covers_auth_flow_r12():": ["auth-flow:R12"],
    "def test_covers_auth_flow_R1_and_user_model_R1():": ["auth-flow:R1", "user-model:R1"],
    "def test_covers_auth_flow_R1_when_late():": ["auth-flow:R1"],
    "void startsCoversAuthFlowR1() {": ["auth-flow:R1"],
    "func TestStart_Covers_auth_flow_R2(t *testing.T) {": ["auth-flow:R2"],
    "def test_covers_user_auth_R3():": ["user:AUTH-R3"],
    "# it discovers: auth-flow:R1": [],
    "# covers auth flow well": [],
    "def test_covers_everything():": [],
    "# covers: R1": [],
    "covers": [],
}


@pytest.mark.parametrize("text", SAID)
def test_coverage_marks_are_parsed(text: str) -> None:
    assert [one.requirement for one in matrix.find_marks(text, KNOWN)] == SAID[text]
    assert all(one.known for one in matrix.find_marks(text, KNOWN))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# covers: auth-flow:R9", "auth-flow:R9"),
        ("# covers: gone:R1", "gone:R1"),
        ("# covers: auth-flow:R1-R2", "auth-flow:R1-R2"),
        ("def test_covers_auth_flow_R9():", "auth-flow:R9"),
    ],
)
def test_mark_of_an_unknown_requirement_is_reported_verbatim(text: str, told: str) -> None:
    (mark,) = matrix.find_marks(f"\n{text}\n", KNOWN)
    assert (mark.requirement, mark.line, mark.known) == (told, 2, False)


PYTHON = '''"""covers: user-model:R1"""
import pytest

class TestStart:
    """covers: auth-flow:R12"""

    # covers: auth-flow:R1
    @pytest.mark.slow

    def test_first(self):
        assert start()

    def test_second(self):
        """The rest. covers: auth-flow:R2"""
        assert start()

def covers_nothing():
    pass
'''
TYPESCRIPT = """describe('start (covers: auth-flow:R12)', () => {
  /**
   * covers: auth-flow:R1
   */
  it('first', () => {
    expect(start()).toBe(1)
  })
  it('second', () => {
    expect(start()).toBe(1) // covers: auth-flow:R2
  })
})
"""
RUST = """#[cfg(test)]
mod tests {
    /// covers: auth-flow:R1
    #[test]
    fn first() { assert!(start()); }

    #[test]
    fn second_covers_auth_flow_R2() { assert!(start()); }
}
"""
GO = """package auth

// covers: auth-flow:R1
func TestFirst(t *testing.T) { t.Error("x") }

func TestSecond(t *testing.T) {
	t.Log("covers: auth-flow:R2")
}
"""
JAVA = """class StartTest {
    // covers: auth-flow:R1
    @Test
    void first() { assertTrue(start()); }

    @Test
    @Tag("covers: auth-flow:R2")
    void second() { assertTrue(start()); }
}
"""


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        (
            "tests/test_start.py",
            PYTHON,
            [
                "1 user-model:R1",
                "4 TestStart auth-flow:R12",
                "10 test_first auth-flow:R1",
                "13 test_second auth-flow:R2",
            ],
        ),
        (
            "a.test.ts",
            TYPESCRIPT,
            ["1 start (covers: auth-flow:R12) auth-flow:R12", "5 first auth-flow:R1", "8 second auth-flow:R2"],
        ),
        ("src/a.rs", RUST, ["5 first auth-flow:R1", "8 second_covers_auth_flow_R2 auth-flow:R2"]),
        ("a_test.go", GO, ["4 TestFirst auth-flow:R1", "6 TestSecond auth-flow:R2"]),
        ("StartTest.java", JAVA, ["4 first auth-flow:R1", "8 second auth-flow:R2"]),
        ("spec/a_spec.rb", "# covers: auth-flow:R1\nit 'x' do\nend\n", ["1 auth-flow:R1"]),
    ],
)
def test_mark_belongs_to_the_test_around_or_below_it(path: str, text: str, told: list[str]) -> None:
    tests, notes = covering(path, text, KNOWN, ())
    assert [
        f"{one.line} {one.name} {', '.join(one.covers)}".replace("  ", " ")
        for one in sorted(tests, key=lambda t: t.line)
    ] == told
    assert notes == []


def test_skipped_test_and_file_without_tests_cover_nothing() -> None:
    skipped = "import pytest\n\n@pytest.mark.skip\ndef test_a():\n    '''covers: auth-flow:R1'''\n    assert a()\n"
    tests, (note,) = covering("tests/test_a.py", skipped, KNOWN, ())
    assert tests == [] and note.what == "test_a is skipped, so nothing here covers auth-flow:R1"
    tests, (note,) = covering("tests/helpers.py", "# covers: auth-flow:R1\n", KNOWN, ())
    assert tests == [] and note.line == 1 and "is not next to a test" in note.what


def test_marks_of_unknown_and_removed_requirements_are_notes() -> None:
    text = "# covers: auth-flow:R9, user-model:R1\ndef test_a():\n    assert a()\n"
    tests, notes = covering("tests/test_a.py", text, KNOWN, {"user-model:R1"})
    assert tests == []
    assert [one.what for one in notes] == ["auth-flow:R9 is in no spec", "user-model:R1 is removed by this change"]


@pytest.mark.parametrize("path", ["README.md", "tests/data/notes.md", "src/auth.py", "tests/answer.json"])
def test_marks_in_other_files_are_ignored(path: str) -> None:
    assert covering(path, "# covers: auth-flow:R1\n", KNOWN, ()) == ([], [])
