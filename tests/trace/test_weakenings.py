"""Twenty ways to make a test prove less, each caught and named."""

from textwrap import dedent

import pytest

from agentd.trace.weakened_tests import ChangedFile, weakened, weakened_in_all

PYTHON = """
    import pytest
    from shop import cart


    @pytest.fixture
    def full():
        return cart(3)


    def test_total(full):
        assert full.total == 30
        assert full.count == 3
        assert full.currency == "EUR"


    class TestEmpty:
        def test_is_free(self):
            assert cart(0).total == 0

        def test_has_no_items(self):
            assert cart(0).items == []


    def check(basket):
        assert basket.valid
        assert basket.owner == "dev"


    def test_owner(full):
        check(full)
"""
UNITTEST = """
    import unittest
    from shop import cart


    class CartTest(unittest.TestCase):
        def test_total(self):
            self.assertEqual(cart(3).total, 30)
            self.assertIn("EUR", cart(3).currencies)

        def test_refuses(self):
            with self.assertRaises(ValueError):
                cart(-1)
"""
SCRIPT = """
    import { describe, it, expect } from 'vitest'
    import { cart } from '../src/cart'

    describe('cart', () => {
      it('adds up', () => {
        const full = cart(3)
        expect(full.total).toBe(30)
        expect(full.count).toBe(3)
      })

      it(`knows "it's" empty`, async () => {
        // it('is commented out', () => { expect(1).toBe(1) })
        expect(await cart(0).items).toEqual([])
      })
    })
"""
NODE = """
    const test = require('node:test');
    const assert = require('node:assert');
    const { add } = require('./add');

    test('adds', () => {
      assert.strictEqual(add(1, 2), 3);
      assert.ok(add(1, 1));
    });
"""
RUST = """
    pub fn add(a: i32, b: i32) -> i32 { a + b }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn adds() {
            assert_eq!(add(1, 2), 3);
            assert!(add(1, 1) > 1, "it's {}", 'x');
        }

        #[tokio::test]
        async fn adds_later() {
            assert_eq!(later(1).await, 2);
        }
    }
"""
GO = """
    package shop

    import "testing"

    func TestAdd(t *testing.T) {
    \tif got := Add(1, 2); got != 3 {
    \t\tt.Errorf("got %d", got)
    \t}
    \tif got := Add(0, 0); got != 0 {
    \t\tt.Fatal("not zero")
    \t}
    }

    func TestName(t *testing.T) {
    \trequire.Equal(t, "shop", Name())
    }
"""
JAVA = """
    package shop;

    class CartTest {
        @Test
        void addsUp() throws Exception {
            assertEquals(30, new Cart(3).total());
            assertThat(new Cart(3).count()).isEqualTo(3);
        }

        @Test
        @DisplayName("free { when empty")
        void isFree() {
            assertEquals(0, new Cart(0).total());
        }
    }
"""
CSHARP = """
    public class CartTests
    {
        [Fact]
        public void AddsUp()
        {
            Assert.Equal(30, new Cart(3).Total);
            Assert.Equal(3, new Cart(3).Count);
        }
    }
"""

FILES = {
    "tests/test_cart.py": PYTHON,
    "tests/cart_test.py": UNITTEST,
    "src/__tests__/cart.spec.ts": SCRIPT,
    "test/add.test.js": NODE,
    "src/add.rs": RUST,
    "shop/add_test.go": GO,
    "src/test/java/shop/CartTest.java": JAVA,
    "CartTests.cs": CSHARP,
}
PY, UNIT, TS, JS, RS, GOLANG, JV, CS = FILES

# what was done, the file, words before, words after, what is told
WEAKENINGS = (
    ("an assertion taken out", PY, "    assert full.count == 3\n", "", "test_total has 2 assertions, 3 before"),
    (
        "a test deleted",
        PY,
        "        assert cart(0).total == 0\n\n    def test_has_no_items(self):\n",
        "",
        "test_has_no_items was deleted",
    ),
    ("a test renamed so that nobody runs it", PY, "def test_total(", "def _test_total(", "test_total was deleted"),
    (
        "a skip mark",
        PY,
        "def test_total",
        '@pytest.mark.skip(reason="flaky")\ndef test_total',
        "test_total is skipped now (skip)",
    ),
    (
        "an expected failure",
        PY,
        "def test_total",
        "@pytest.mark.xfail\ndef test_total",
        "test_total is skipped now (xfail)",
    ),
    (
        "a skip in the body",
        PY,
        "    check(full)\n",
        '    pytest.skip("later")\n    check(full)\n',
        "test_owner is skipped now (skip)",
    ),
    (
        "a whole module skipped",
        PY,
        "from shop",
        "pytestmark = pytest.mark.skipif(True, reason='')\nfrom shop",
        "skipped now (skipif)",
    ),
    (
        "a return before the assertions",
        PY,
        "    assert full.total",
        "    return\n    assert full.total",
        "test_total has 0 assertions",
    ),
    (
        "an assertion about nothing",
        PY,
        "assert full.total == 30",
        "assert True",
        "test_total has 2 assertions, 3 before",
    ),
    ("a helper made weaker", PY, "    assert basket.valid\n", "", "check has 1 assertion, 2 before"),
    (
        "a second test of that name",
        PY,
        "def check(",
        "def test_total(full):\n    assert full.total\n\n\ndef check(",
        "test_total has 1",
    ),
    (
        "a unittest skipped",
        UNIT,
        "    def test_total",
        '    @unittest.skip("x")\n    def test_total',
        "test_total is skipped now (skip)",
    ),
    (
        "an expected error no longer expected",
        UNIT,
        "with self.assertRaises(ValueError):",
        "if True:",
        "test_refuses has 0 assertions, 1",
    ),
    ("it.skip", TS, "it('adds up'", "it.skip('adds up'", "adds up is skipped now (skip)"),
    ("describe.only", TS, "describe('cart'", "describe.only('cart'", "only this one runs now"),
    ("xit", TS, "it(`knows", "xit(`knows", "is skipped now (xit)"),
    (
        "an expectation commented out",
        TS,
        "    expect(full.count)",
        "    // expect(full.count)",
        "adds up has 1 assertion, 2 before",
    ),
    ("an option that skips", JS, "test('adds', ()", "test('adds', { skip: true }, ()", "adds is skipped now (skip)"),
    ("todo", JS, "test('adds', ()", "test.todo('adds', ()", "adds is skipped now (todo)"),
    ("an assert in node", JS, "  assert.ok(add(1, 1));\n", "", "adds has 1 assertion, 2 before"),
    ("#[ignore]", RS, "    fn adds()", "    #[ignore]\n    fn adds()", "adds is skipped now (ignore)"),
    ("a macro taken out", RS, "        assert_eq!(add(1, 2), 3);\n", "", "adds has 1 assertion, 2 before"),
    ("an attribute taken away", RS, "    #[test]\n", "", "adds was deleted"),
    ("t.Skip", GOLANG, "\trequire.Equal", '\tt.Skip("slow")\n\trequire.Equal', "TestName is skipped now (Skip)"),
    ("an error no longer told", GOLANG, '\t\tt.Fatal("not zero")\n', "", "TestAdd has 1 assertion, 2 before"),
    ("a Go test deleted", GOLANG, "func TestName(t *testing.T)", "func name()", "TestName was deleted"),
    ("@Disabled", JV, "    @Test\n    void", "    @Disabled\n    @Test\n    void", "addsUp is skipped now (Disabled)"),
    (
        "a Java assertion taken out",
        JV,
        "        assertEquals(30, new Cart(3).total());\n",
        "",
        "addsUp has 1 assertion, 2",
    ),
    ("a fact that is skipped", CS, "[Fact]", '[Fact(Skip = "slow")]', "AddsUp is skipped now (Skip)"),
    (
        "a C# assertion taken out",
        CS,
        "        Assert.Equal(3, new Cart(3).Count);\n",
        "",
        "AddsUp has 1 assertion, 2 before",
    ),
)


@pytest.mark.parametrize(
    ("path", "old", "new", "told"), [row[1:] for row in WEAKENINGS], ids=[row[0] for row in WEAKENINGS]
)
def test_weakening_is_found_and_named(path: str, old: str, new: str, told: str) -> None:
    before = dedent(FILES[path])
    assert before.count(old) == 1, "the sample has these words once"
    after = before.replace(old, new)
    (found,) = weakened(path, before, after)
    assert told in found.what
    assert found.path == path
    if found.line:
        assert after.split("\n")[found.line - 1].strip() == found.quote
    else:
        assert found.quote in before


@pytest.mark.parametrize("path", FILES)
def test_insignificant_changes_are_not_reported(path: str) -> None:
    before = dedent(FILES[path])
    assert weakened(path, before, before) == []
    assert weakened(path, before, before.replace("\n\n", "\n\n\n")) == [], "blank lines"
    assert weakened(path, None, before) == [], "a new file"


@pytest.mark.parametrize("path", FILES)
def test_deleted_file_is_reported_once_with_its_tests(path: str) -> None:
    (found,) = weakened(path, dedent(FILES[path]), None)
    assert found.what.startswith("the file was deleted with ") and found.line == 0


@pytest.mark.parametrize("path", FILES)
def test_emptied_file_is_reported(path: str) -> None:
    found = weakened(path, dedent(FILES[path]), "\n")
    assert found and all("deleted" in one.what for one in found)


def test_deleted_test_file_of_another_language_is_reported() -> None:
    (found,) = weakened("spec/cart_spec.rb", "it 'adds' do\nend\n", None)
    assert found.what == "the file was deleted"
    moved = [
        ChangedFile("spec/cart_spec.rb", "it 'adds' do\nend\n", None),
        ChangedFile("spec/shop/cart_spec.rb", None, "it 'adds' do\nend\n"),
    ]
    assert weakened_in_all(moved) == []
    assert weakened("tests/data/basket.sh", "x\n", None) == [], "not every file in tests/ is a test"


def test_moved_test_that_lost_an_assertion_is_reported_at_its_new_place() -> None:
    before = dedent(PYTHON)
    after = before.replace("    assert full.count == 3\n", "")
    (found,) = weakened_in_all(
        [ChangedFile("tests/test_cart.py", before, None), ChangedFile("tests/shop/test_cart.py", None, after)]
    )
    assert (found.path, found.what) == ("tests/shop/test_cart.py", "test_total has 2 assertions, 3 before")


def test_renamed_test_without_assertions_is_reported() -> None:
    before = dedent(PYTHON)
    kept = "    print(full.total, 30, full.count, 3, full.currency, 'EUR')\n"
    start, end = before.index("def test_total"), before.index("class TestEmpty")
    after = before[:start] + f"def test_sum(full):\n{kept}\n\n" + before[end:]
    (found,) = weakened("tests/test_cart.py", before, after)
    assert "test_sum has 0 assertions, 3 before" in found.what


def test_deleted_test_is_not_offset_by_an_unrelated_new_one() -> None:
    before = dedent(PYTHON)
    start, end = before.index("def test_total"), before.index("class TestEmpty")
    after = before[:start] + "def test_paint():\n    assert paint(7).colour == 'red'\n\n\n" + before[end:]
    (found,) = weakened("tests/test_cart.py", before, after)
    assert found.what == "test_total was deleted"


@pytest.mark.parametrize(
    "after",
    [
        "@pytest.mark.skip\ndef test_sum():\n    cart = shop.open(items, owner, currency)\n    assert cart.price\n",
        "def test_sum():\n    cart = shop.open(items, owner, currency)\n    print(cart, colour)\n",
    ],
    ids=["skipped", "without assertions"],
)
def test_a_deleted_test_is_not_made_good_by_a_similar_one_that_proves_nothing(after: str) -> None:
    before = "def test_total():\n    cart = shop.open(items, owner, currency)\n    assert cart.total == 30\n"
    (found,) = weakened("tests/test_cart.py", before, after)
    assert found.what == "test_total was deleted"


def test_a_test_that_is_skipped_and_shortened_is_reported_once() -> None:
    before = "def test_a():\n    assert a()\n    assert b()\n"
    (found,) = weakened("test_a.py", before, "@pytest.mark.skip\ndef test_a():\n    assert a()\n")
    assert found.what == "test_a is skipped now (skip)"


def test_many_deleted_tests_are_reported_in_one_sentence() -> None:
    before = "".join(f"def test_{number}():\n    assert thing{number}()\n\n" for number in range(10))
    (found,) = weakened(
        "test_many.py", before + "def test_left():\n    assert x()\n", "def test_left():\n    assert x()\n"
    )
    assert found.what == "10 tests were deleted: test_0, test_1, test_2 and 7 others"


def test_skipped_class_is_reported_in_one_sentence() -> None:
    before = dedent(PYTHON)
    (found,) = weakened("test_cart.py", before, before.replace("class TestEmpty", "@pytest.mark.skip\nclass TestEmpty"))
    assert found.what == "test_is_free, test_has_no_items are skipped now (skip)"


def test_removal_of_tests_on_allowed_lines_is_not_reported() -> None:
    before = "# covers: a:R1\ndef test_old():\n    assert old()\n"
    assert weakened_in_all([ChangedFile("test_a.py", before, "", frozenset({1}))]) == []
    assert len(weakened_in_all([ChangedFile("test_a.py", before, "")])) == 1


def test_trivial_assertion_does_not_count() -> None:
    (found,) = weakened(
        "test_a.py", "def test_a():\n    assert a()\n    assert True\n", "def test_a():\n    assert True\n"
    )
    assert found.what == "test_a has 0 assertions, 1 before"


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "a.test.js",
            "it('x', () => {\n  expect(a()).toBe(1)\n  expect(b()).toBe(2)\n})\n",
            "it('x', () => {\n  expect(c()).toBe(3)\n})\n",
        ),
        (
            "ATest.java",
            "class ATest {\n  @Test void x() { assertEquals(1, a()); assertTrue(b()); }\n}\n",
            "class ATest {\n  @Test void x() { assertNotNull(c()); }\n}\n",
        ),
    ],
)
def test_two_assertions_replaced_by_one_are_reported(path: str, before: str, after: str) -> None:
    (found,) = weakened(path, before, after)
    assert found.what == "x has 1 assertion, 2 before"


def test_code_within_a_template_literal_hides_nothing_after_it() -> None:
    head = "it('x', () => {\n  const a = `${names.map((n) => { return `<b>${n}</b>` })} it's`\n"
    before = head + "  expect(a).toBe(1)\n  expect(b).toBe(2)\n})\n"
    (found,) = weakened("a.test.js", before, before.replace("  expect(b).toBe(2)\n", ""))
    assert found.what == "x has 1 assertion, 2 before"
