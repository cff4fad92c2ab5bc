"""The tests of a text, in the language that its path names."""

from agentd.trace import python_tests, text_tests
from agentd.trace.cases import Scan
from agentd.trace.looks import language_of


def scan(path: str, text: str) -> Scan | None:
    """None: this is no text that we could look into."""
    language = language_of(path)
    if language is None:
        return None
    return python_tests.scan(text) if language == "python" else text_tests.scan(text, language)
