"""YAML as agentd reads and writes it."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain import yaml12
from agentd.domain.yaml12 import InvalidYaml
from plans import EXAMPLE

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.text(min_size=1)
DATA = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=30)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-19", "2026-01-19"),
        ("2026-01-19T10:30:00Z", "2026-01-19T10:30:00Z"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("! 1", "1"),
    ],
)
def test_scalars_follow_the_yaml_1_2_core_schema(text: str, value: Any) -> None:
    loaded = yaml12.load(f"k: {text}")["k"]
    assert loaded == value and type(loaded) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' occurs twice"),
        ("a: &x 1\nb: *x", 2, "anchors and aliases"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("a: [1", 1, "expected"),
        ("a:\n\t- b", 2, "cannot start any token"),
        ("a: !!python/object:os.system x", 1, "the tag"),
        ("? [a]\n: b", 1, "a key must be a plain word"),
        ("a: \x00", 1, "control characters"),
        ("a: " + "9" * 5000, 1, "digits"),
        ("[" * 200, 1, "nested more than 100 deep"),
        ("[" * 1_000_000, 1, "nested more than 100 deep"),
        ("{a: " * 100_000, 1, "nested more than 100 deep"),
    ],
)
def test_refused_yaml_is_reported_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(InvalidYaml, match=words) as caught:
        yaml12.load(text)
    assert caught.value.line == line


def test_alias_bomb_is_refused_at_its_first_alias() -> None:
    rows = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 100)]
    with pytest.raises(InvalidYaml, match="anchors"):
        yaml12.load("\n".join(rows))


@given(DATA)
def test_any_data_round_trips(data: Any) -> None:
    try:
        text = yaml12.dump(data)
        text.encode()
    except UnicodeEncodeError:
        return  # a lone surrogate is no text
    assert yaml12.load(text) == data


@given(st.text())
def test_arbitrary_text_raises_only_bad_yaml(text: str) -> None:
    with contextlib.suppress(InvalidYaml):
        yaml12.load(text)


@pytest.mark.parametrize("name", ["STATE.yaml", "reviews/challenge-2.yaml", "reviews/review-1.yaml"])
def test_examples_are_in_the_written_format(name: str) -> None:
    text = (EXAMPLE / name).read_text()
    bare = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert yaml12.dump(yaml12.load(text)) == bare
