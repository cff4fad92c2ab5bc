"""Whatever stands in a file, a flag or a variable: it is a configuration or a BadConfig, never anything else."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.errors import BadConfig
from agentd.project.config.config_schema import SCHEMA
from agentd.project.config.loader import load_config

KEYS = [
    *SCHEMA.keys,
    "models",
    "kind",
    "complexity",
    "planner",
    "gemini",
    "mine",
    "id",
    "name",
    "command",
    "''",
    "x.y",
]
KEY = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4).map(".".join)
VALUE = st.recursive(
    st.sampled_from(
        [
            "1",
            "-1",
            "0",
            "1e400",
            "nan",
            "true",
            "''",
            "'codex'",
            "'low'",
            "'('",
            '"\\u0000"',
            "1979-05-27",
            "07:32:00",
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key} = {value}" for key, value in pairs) + "}"
        ),
    ),
    max_leaves=6,
)
LINE = st.one_of(
    st.tuples(KEY, VALUE).map(" = ".join),
    KEY.map("[{}]".format),
    KEY.map("[[{}]]".format),
)
PAGE = st.lists(LINE, max_size=6).map("\n".join)


def outcome(
    project: bytes, *, user: bytes = b"", flags: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, other = Path(folder, "config.toml"), Path(folder, "user.toml")
        file.write_bytes(project)
        other.write_bytes(user)
        message = ""
        try:
            config = load_config(file, flags=flags, environ=environ or {}, user_file=other)
            assert all(value.key and value.source for value in config.values())
        except BadConfig as error:
            message = error.message
    assert not message or all(line.isprintable() and ": " in line for line in message.split("\n"))


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))))
def test_arbitrary_bytes_give_a_config_or_bad_config(data: bytes) -> None:
    outcome(data)


@given(PAGE, PAGE)
def test_arbitrary_toml_gives_a_config_or_bad_config(project: str, user: str) -> None:
    outcome(project.encode(), user=user.encode())


@given(st.lists(st.one_of(st.text(max_size=20), st.tuples(KEY, VALUE).map("=".join)), max_size=4))
def test_arbitrary_flags_give_a_config_or_bad_config(flags: list[str]) -> None:
    outcome(b"", flags=flags)


NAME = KEY.map(lambda key: "AGENTD_" + key.upper().replace(".", "__"))


@given(st.dictionaries(NAME, st.one_of(st.text(max_size=20), VALUE), max_size=4))
def test_arbitrary_environment_gives_a_config_or_bad_config(environ: dict[str, str]) -> None:
    outcome(b"[agents.mine]\nkind = 'codex'", environ=environ)


def test_extreme_nesting_and_length_give_a_config_or_bad_config() -> None:
    outcome(b"x = " + b"[" * 10_000)
    outcome(b"x = 1" + b"0" * 5_000)
    outcome(b".".join([b"x"] * 1_500) + b" = 1")
    outcome(b"[" + b".".join([b"x"] * 1_500) + b"]\ny = 1")
    outcome(b"", flags=["x=" + "[" * 10_000, ".".join(["x"] * 1_500) + "=1", "checks=" + "[" * 80 + "]" * 80])
