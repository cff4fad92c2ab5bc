"""Test runners, recognized by their output. Each `read_*` function returns a RunnerSummary or None (pure).

A failure that does not belong to a test (a file that cannot be imported, a package that does not build, a crash) is
counted but has no name, so the run cannot be compared with another.
"""
