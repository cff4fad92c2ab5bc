"""Which task, file and test covers each requirement, and which tests assert less than before.

matrix           requirement, scenarios, tasks, files and tests as data; matrix_builder builds it from two git trees
coverage         the marks by which tests say what they cover
test_files       what looks like a test, and in which language
test_scan        the tests in a text: python_tests by syntax tree, text_tests for languages with braces
weakened_tests   what changed tests no longer assert; test_pairs matches old tests with new ones
gap_findings     gaps and weakened tests as findings
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.trace.matrix import TraceMatrix, TraceRow, trace_findings
    from agentd.trace.matrix_builder import build_matrix, check_trees_exist, find_weakenings, has_fewer_tests
    from agentd.trace.weakened_tests import Weakening
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
