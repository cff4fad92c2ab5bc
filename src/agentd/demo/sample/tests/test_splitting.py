"""How an expense is split."""

import unittest

from tally.splitting import split_equally


class SplitEqually(unittest.TestCase):
    def test_the_parts_are_equal(self):
        """covers: splitting:R1"""
        self.assertEqual(split_equally(900, ["ann", "bo", "cy"]), {"ann": 300, "bo": 300, "cy": 300})

    def test_the_cents_left_over_go_to_the_first_people(self):
        """covers: splitting:R1"""
        self.assertEqual(split_equally(1001, ["ann", "bo", "cy"]), {"ann": 334, "bo": 334, "cy": 333})

    def test_no_cent_is_lost(self):
        """covers: splitting:R2"""
        for amount in range(50):
            self.assertEqual(sum(split_equally(amount, ["ann", "bo", "cy"]).values()), amount)

    def test_nobody_cannot_share(self):
        """covers: splitting:R1"""
        with self.assertRaises(ValueError):
            split_equally(100, [])
