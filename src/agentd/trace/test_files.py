"""What looks like a test, by path or content, and in which language a file is written."""

import posixpath
import re

_LANGUAGES = {
    "python": ("py", "pyi"),
    "javascript": ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"),
    "rust": ("rs",),
    "go": ("go",),
    "java": ("java", "kt", "kts", "groovy", "scala"),
    "csharp": ("cs",),
}
_BY_ENDING = {ending: language for language, endings in _LANGUAGES.items() for ending in endings}
_PROSE = ("md", "markdown", "rst", "txt", "adoc", "html", "csv", "json", "yaml", "yml", "toml", "lock", "snap", "svg")
_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "e2e", "testing"})
_NAME = re.compile(
    r"(?:tests?|conftest)[._-].*|.+[._-](?:tests?|specs?|e2e|cy)\.[^.]+|.+(?:Tests?|TestCase|Spec|IT)\.[a-z]+|tests?\.[a-z]+"
)
_CONTENT = re.compile(
    r"#\[(?:\w+::)*test\b|#\[cfg\(test\)\]|\bimport pytest\b|\b(?:import|from) unittest\b|^\s*(?:async )?def test_"
    r"|['\"](?:node:test|vitest|@jest/globals|@playwright/test|mocha|chai)['\"]|\*testing\.[TBF]\b"
    r"|@(?:Parameterized)?Test\b|\[(?:Fact|Theory|Test|TestMethod)\b",
    re.MULTILINE,
)


def language_of(path: str) -> str | None:
    """None: its tests are not looked into."""
    return _BY_ENDING.get(path.rpartition(".")[2].lower())


def looks_like_test_path(path: str) -> bool:
    if path.rpartition(".")[2].lower() in _PROSE:
        return False
    return is_named_as_test(path) or not _FOLDERS.isdisjoint(posixpath.dirname(path).lower().split("/"))


def is_named_as_test(path: str) -> bool:
    return bool(_NAME.fullmatch(posixpath.basename(path)))


def may_hold_tests(path: str) -> bool:
    """Source in which tests could stand beside the code."""
    return language_of(path) is not None or looks_like_test_path(path)


def is_test(path: str, text: str) -> bool:
    return looks_like_test_path(path) or (language_of(path) is not None and bool(_CONTENT.search(text)))
