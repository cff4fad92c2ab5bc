"""The tests of a text, in the language that its path names."""

from agentd.trace import python_tests, text_tests
from agentd.trace.test_cases import ScannedTests
from agentd.trace.test_files import language_of


def scan_tests(path: str, text: str) -> ScannedTests | None:
    """None: this is no text that we could look into."""
    language = language_of(path)
    if language is None:
        return None
    return python_tests.scan_python(text) if language == "python" else text_tests.scan_brace_language(text, language)
