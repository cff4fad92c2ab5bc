"""A project's checks: run by agentd, parsed, and compared with the baseline.

runner      runs one check and parses the test runner's summary; `runners` has a module per language
audits      what an audit reports, as problems
result      the result as data, and as a row of a record
comparison  whether a check blocks, which failures are known from the baseline, and the findings to answer
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.checks.comparison import CheckComparison, check_findings, compare_check
    from agentd.checks.result import CheckResult, ResultCounts, result_from_row
    from agentd.checks.runner import run_check
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
