"""Which task, file and test carries each requirement, and which tests prove less than before.

matrix      requirement, scenarios, tasks, files, tests, as data
build       the matrix of a change, from its folder and from two git trees; reading: what git has to tell for that
coverage    which tests say what they cover; marks: how they say it
looks       what looks like a test, and in which language
scanning    the tests of a text as data (cases): python_tests by the syntax tree, text_tests for languages with braces
            masking, blocks, script, braced and dialects are what text_tests reads with
weakened    what changed tests no longer prove; successors: where tests went, proof: how much is left of one
findings    gaps of a matrix and weakened tests, graded
"""
