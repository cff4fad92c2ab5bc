"""Commands from a repository run only if this user has trusted them, each by its hash.

`items` lists what a repository wants to run; `store` records what the user has trusted and compares the two.
Call `ensure_trusted` before running anything from a repository; read-only commands never need it.
"""
