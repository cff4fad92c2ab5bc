"""Which task, file and test covers each requirement, and which tests assert less than before.

matrix           requirements with their scenarios, tasks, files and tests; `covers` marks; gaps as findings
matrix_builder   builds the matrix from a change's folder and two git trees
test_cases       the tests of a file as data; what looks like a test, and in which language
python_tests, text_tests        find the tests in a text: Python by syntax tree, brace languages by scanning
source_blocks, brace_languages  brackets, calls and blocks of brace languages, for text_tests
weakened_tests   matches old tests with new ones, and reports what they no longer assert
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.trace.matrix import TraceMatrix, TraceRow, trace_findings
    from agentd.trace.matrix_builder import build_matrix, check_trees_exist, find_weakenings, has_fewer_tests
    from agentd.trace.weakened_tests import Weakening
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
