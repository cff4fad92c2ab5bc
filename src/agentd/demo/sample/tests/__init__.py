"""The tests of tally."""
