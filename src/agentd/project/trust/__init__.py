"""Commands from a repository run only if this user has trusted them, each by its hash.

`items` says what a repository wants run, `store` what the user has trusted, `standing` holds one against the other.
Call `ensure` before anything of a repository is run; commands that only read never need it.
"""
