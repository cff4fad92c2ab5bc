"""Honest work on tests is no alarm."""

from textwrap import dedent

import pytest

from agentd.trace.weakened_tests import ChangedFile, weakened, weakened_in_all

HONEST = {
    "a renamed test": (
        "test_a.py",
        """
        def test_sum():
            basket = cart(3)
            assert basket.total == 30
            assert basket.count == 3
        """,
        """
        def test_that_a_basket_adds_up():
            basket = cart(3)
            assert basket.total == 30
            assert basket.count == 3
        """,
    ),
    "one test split into two": (
        "test_a.py",
        """
        def test_cart():
            basket = cart(3, currency="EUR")
            assert basket.total == 30
            assert basket.count == 3
            empty = cart(0)
            assert empty.items == []
            assert empty.is_free
        """,
        """
        def test_full_cart():
            basket = cart(3, currency="EUR")
            assert basket.total == 30
            assert basket.count == 3

        def test_empty_cart():
            empty = cart(0)
            assert empty.items == []
            assert empty.is_free
        """,
    ),
    "assertions moved into a helper of the file": (
        "test_a.py",
        """
        def test_cart():
            basket = cart(3)
            assert basket.total == 30
            assert basket.count == 3
            assert basket.owner
        """,
        """
        def _looks_right(basket, total, count):
            assert basket.total == total
            assert basket.count == count
            assert basket.owner

        def test_cart():
            _looks_right(cart(3), 30, 3)
        """,
    ),
    "three copies made one with parameters": (
        "test_a.py",
        """
        def test_one():
            assert price(1) == 10

        def test_two():
            assert price(2) == 20

        def test_three():
            assert price(3) == 30
        """,
        """
        import pytest

        @pytest.mark.parametrize(("count", "total"), [(1, 10), (2, 20), (3, 30)])
        def test_price(count, total):
            assert price(count) == total
        """,
    ),
    "three assertions made a loop": (
        "test_a.py",
        "def test_price():\n    assert price(1) == 10\n    assert price(2) == 20\n    assert price(3) == 30\n",
        "def test_price():\n    for count, total in CASES:\n        assert price(count) == total\n",
    ),
    "two assertions made one about a tuple": (
        "test_a.py",
        "def test_cart():\n    assert cart.total == 30\n    assert cart.count == 3\n",
        "def test_cart():\n    assert (cart.total, cart.count) == (30, 3)\n",
    ),
    "an object compared as a whole": (
        "test_a.py",
        "def test_cart():\n    assert read().total == 30\n    assert read().count == 3\n",
        "def test_cart():\n    assert read() == Cart(total=30, count=3)\n",
    ),
    "unittest made pytest": (
        "test_a.py",
        """
        class TestCart(unittest.TestCase):
            def test_total(self):
                self.assertEqual(cart(3).total, 30)
                self.assertTrue(cart(3).valid)
        """,
        """
        def test_total():
            assert cart(3).total == 30
            assert cart(3).valid
        """,
    ),
    "tests put into a class": (
        "test_a.py",
        "def test_total():\n    assert cart(3).total == 30\n\ndef test_free():\n    assert cart(0).total == 0\n",
        """
        class TestCart:
            def test_total(self):
                assert cart(3).total == 30

            def test_free(self):
                assert cart(0).total == 0
        """,
    ),
    "two tests merged into one": (
        "test_a.py",
        "def test_total():\n    assert cart(3).total == 30\n\ndef test_owner():\n    assert user(7).name == 'dev'\n",
        "def test_total():\n    assert cart(3).total == 30\n    assert user(7).name == 'dev'\n",
    ),
    "an assertion helper that is imported": (
        "test_a.py",
        "def test_answer():\n    assert answer.status == 200\n    assert answer.body == {}\n",
        "from helpers import assert_fine\n\ndef test_answer():\n    assert_fine(answer)\n",
    ),
    "a test that stays skipped": (
        "test_a.py",
        "@pytest.mark.skip\ndef test_a():\n    assert a() == 1\n",
        "@pytest.mark.skip\ndef test_a():\n    assert a() == 2\n",
    ),
    "an assertion that moves from a helper to its test": (
        "test_a.py",
        "def check(x):\n    assert x.valid\n    assert x.owner\n\ndef test_a():\n    check(a())\n",
        "def check(x):\n    assert x.valid\n\ndef test_a():\n    check(a())\n    assert a().owner\n",
    ),
    "a skip taken away": (
        "test_a.py",
        "@pytest.mark.skip\ndef test_a():\n    assert a()\n",
        "def test_a():\n    assert a()\n",
    ),
    "a test deleted that never ran": (
        "test_a.py",
        "@pytest.mark.skip\ndef test_a():\n    assert a()\n\ndef test_b():\n    assert b()\n",
        "def test_b():\n    assert b()\n",
    ),
    "a new test that is skipped from the start": (
        "test_a.py",
        "def test_b():\n    assert b()\n",
        "def test_b():\n    assert b()\n\n@pytest.mark.skip\ndef test_a():\n    assert a()\n",
    ),
    "a loop of promises and a helper in TypeScript": (
        "src/cart.test.ts",
        """
        describe('cart', () => {
          it('adds up', () => {
            expect(price(1)).toBe(10)
            expect(price(2)).toBe(20)
          })
        })
        """,
        """
        const same = (count: number, total: number) => {
          expect(price(count)).toBe(total)
        }

        describe('prices of a cart', () => {
          it('adds up', () => {
            same(1, 10)
            same(2, 20)
          })
        })
        """,
    ),
    "it.each": (
        "src/cart.test.ts",
        "it('one', () => { expect(price(1)).toBe(10) })\nit('two', () => { expect(price(2)).toBe(20) })\n",
        "it.each([[1, 10], [2, 20]])('price of %d', (count, total) => { expect(price(count)).toBe(total) })\n",
    ),
    "expectations made one about an object": (
        "src/cart.test.js",
        "test('reads', () => {\n  expect(read().a).toBe(1);\n  expect(read().b).toBe(2);\n});\n",
        "test('reads', () => {\n  expect(read()).toEqual({ a: 1, b: 2 });\n});\n",
    ),
    "a describe block around tests": (
        "src/cart.test.js",
        "test('reads', () => {\n  expect(read().a).toBe(1);\n});\n",
        "describe('file', () => {\n  test('reads', () => {\n    expect(read().a).toBe(1);\n  });\n});\n",
    ),
    "a table in Go": (
        "add_test.go",
        """
        func TestAdd(t *testing.T) {
            if Add(1, 2) != 3 { t.Error("3") }
            if Add(2, 2) != 4 { t.Error("4") }
        }
        """,
        """
        func TestAdd(t *testing.T) {
            for _, one := range []struct{ a, b, want int }{{1, 2, 3}, {2, 2, 4}} {
                if Add(one.a, one.b) != one.want { t.Errorf("%v", one) }
            }
        }
        """,
    ),
    "a helper in Rust": (
        "src/lib.rs",
        """
        #[cfg(test)]
        mod tests {
            #[test]
            fn adds() { assert_eq!(add(1, 2), 3); assert_eq!(add(2, 1), 3); }
        }
        """,
        """
        #[cfg(test)]
        mod tests {
            fn both_ways(a: i32, b: i32, sum: i32) { assert_eq!(add(a, b), sum); assert_eq!(add(b, a), sum); }

            #[test]
            fn adds() { both_ways(1, 2, 3); }
        }
        """,
    ),
    "a parameterized test in Java": (
        "CartTest.java",
        """
        class CartTest {
            @Test void one() { assertEquals(10, price(1)); }
            @Test void two() { assertEquals(20, price(2)); }
        }
        """,
        """
        class CartTest {
            @ParameterizedTest
            @CsvSource({"1, 10", "2, 20"})
            void price(int count, int total) { assertEquals(total, price(count)); }
        }
        """,
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_refactoring_is_not_reported(name: str) -> None:
    path, before, after = HONEST[name]
    assert weakened(path, dedent(before), dedent(after)) == []


def test_test_moved_to_another_file_is_not_reported_as_deleted() -> None:
    one, two = "def test_one():\n    assert price(1) == 10\n\n", "def test_two():\n    assert tax(2) == 7\n\n"
    pairs = [ChangedFile("tests/test_all.py", one + two, one), ChangedFile("tests/test_tax.py", None, two)]
    assert weakened_in_all(pairs) == []
    assert len(weakened_in_all(pairs[:1])) == 1, "without the other file it is"


def test_helper_moved_to_another_file_still_counts() -> None:
    helper = "def same(a, b):\n    assert a.x == b.x\n    assert a.y == b.y\n\n"
    test = "def test_copy():\n    same(read(), copy())\n"
    pairs = [
        ChangedFile("tests/test_copy.py", helper + test, "from compare import same\n\n" + test),
        ChangedFile("tests/compare.py", None, helper),
    ]
    assert weakened_in_all(pairs) == []


def test_non_test_code_may_lose_its_assertions() -> None:
    assert weakened("src/shop/cart.py", "def total():\n    assert x\n    assert y\n", "def total():\n    pass\n") == []


def test_unparsable_test_file_is_left_to_the_checks() -> None:
    before = "def test_a():\n    assert a()\n"
    assert weakened("test_a.py", before, "def test_a(:\n") == []
    gone = [ChangedFile("test_a.py", before, ""), ChangedFile("test_b.py", "", "def test_a(:\n")]
    assert weakened_in_all(gone) == [], "it may stand there"
