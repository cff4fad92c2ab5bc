"""Test runners, recognized by what they print. Each module has `read`: lines of output -> Found, or None (pure).

A failure that is no test's by name (a file that cannot be imported, a package that does not build, a crash) is counted
and has no name: by that it can be told that a run cannot be compared with another.
"""
