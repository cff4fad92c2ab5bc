"""Secrets are taken out of what is kept, in every form they are written in; everything else stays as it is."""

import base64
import json
import re
from urllib.parse import quote

import pytest

from agentd.agents.redaction import LineRedactor, Redactor
from assertions import assert_grows_linearly

# Put together here, so that this file holds no text that looks like a live key.
BODY = "Zx9" + "aB3dE5fG7hJ9" * 4
KEY = 'q7/W+e=r"t\\y&u%i o|é-Zz19'
KNOWN = {
    "openai": "sk-" + BODY,
    "openai project": "sk-proj-" + BODY,
    "anthropic": "sk-ant-api03-" + BODY,
    "google": "AIza" + BODY[:35],
    "google login": "ya29." + BODY,
    "github": "ghp_" + BODY[:36],
    "github server": "ghs_" + BODY[:36],
    "github fine": "github_pat_" + BODY,
    "gitlab": "glpat-" + BODY[:20],
    "slack": "xoxb-" + "1234567890-" + BODY[:24],
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "npm": "npm_" + BODY[:36],
    "stripe": "sk_live_" + BODY[:24],
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + BODY,
}
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + (BODY + "+/=\n") * 12 + "-----END RSA PRIVATE KEY-----"
NOTHING_PASSED = Redactor({})


# ---- what we passed on


def ways_to_write(secret: str) -> dict[str, str]:
    """As programs do it; base64 alone, and within `user:secret` and longer texts."""
    ways = {
        "as it is": secret,
        "JSON": json.dumps(secret),
        "JSON with letters kept": json.dumps(secret, ensure_ascii=False),
        "JSON in JSON": json.dumps(json.dumps(secret)),
        "an address": quote(secret, safe=""),
        "a path": quote(secret),
        "an address in lower case": re.sub("%..", lambda match: match[0].lower(), quote(secret, safe="")),
    }
    for before in ("", "u", "us", "use", "user:"):
        data = f"{before}{secret}".encode()
        ways[f"base64 after {before!r}"] = base64.b64encode(data).decode()
        ways[f"base64 for addresses after {before!r}"] = base64.urlsafe_b64encode(data + b"?more").decode()
    return ways


@pytest.mark.parametrize("way", ways_to_write(KEY))
def test_passed_key_is_redacted_in_every_encoding(way: str) -> None:
    written = ways_to_write(KEY)[way]
    cleaned = Redactor({"MY_API_KEY": KEY}).clean(f"before <{written}> after")
    assert cleaned.startswith("before <") and cleaned.endswith("> after")
    assert "[redacted]" in cleaned
    rest = cleaned.removeprefix("before <").removesuffix("> after").replace("[redacted]", "")
    assert all(rest.find(written[start : start + 6]) < 0 for start in range(6, len(written) - 12))


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "APIKEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "db_passwd",
        "MY_PWD",
        "GOOGLE_CREDENTIALS",
        "PROXY_AUTH",
        "AUTH_TOKENS_2",
    ],
)
def test_secret_is_recognized_by_its_variable_name(name: str) -> None:
    assert Redactor({name: "hunter2-hunter2"}).clean("it is hunter2-hunter2.") == "it is [redacted]."


@pytest.mark.parametrize("name", ["HOME", "PATH", "PWD", "TERM", "KEYBOARD", "GOOGLE_CLOUD_PROJECT", "LC_MONETARY"])
def test_ordinary_variables_are_not_redacted(name: str) -> None:
    assert Redactor({name: "/home/developer"}).clean("cd /home/developer") == "cd /home/developer"


def test_short_value_is_not_redacted() -> None:
    assert Redactor({"MY_TOKEN": "letters"}).clean("seven letters") == "seven letters"


def test_overlapping_secrets_are_redacted_completely() -> None:
    redactor = Redactor({"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-ijklmnop"})
    assert redactor.clean("abcdefgh-ijklmnop abcdefgh") == "[redacted] [redacted]"


def test_every_line_of_a_multiline_key_is_redacted() -> None:
    redactor = Redactor({"DEPLOY_KEY": "first-line-of-it\nsecond-line-of-it\n"})
    assert redactor.clean("| second-line-of-it |") == "| [redacted] |"


def test_proxy_credentials_are_redacted() -> None:
    redactor = Redactor({"https_proxy": "http://dev:s3cret%40place@proxy.example:3128"})
    assert redactor.clean("407 for dev:s3cret%40place") == "407 for [redacted]"
    assert redactor.clean("password s3cret@place") == "password [redacted]"
    assert redactor.clean("proxy.example:3128") == "proxy.example:3128"


def test_proxy_without_scheme_is_parsed() -> None:
    redactor = Redactor({"ALL_PROXY": "dev:p4ssw0rd-long@proxy.example:3128"})
    assert redactor.clean("dev:p4ssw0rd-long@proxy.example, p4ssw0rd-long") == "[redacted]@proxy.example, [redacted]"


# ---- what looks like a secret anywhere


@pytest.mark.parametrize("kind", KNOWN)
@pytest.mark.parametrize(
    "frame",
    [
        "{}",
        "key={}",
        '"{}"',
        "a line\n{}\n",
        "\x1b[32m{}\x1b[0m",
        "\x1b[38;5;112m{}",
        "https://h/?key={}&x=1",
        "k%3D{}",
    ],
)
def test_well_known_secret_formats_are_redacted(kind: str, frame: str) -> None:
    secret = KNOWN[kind]
    for text in (frame.format(secret), json.dumps(frame.format(secret)), json.dumps(json.dumps(frame.format(secret)))):
        cleaned = NOTHING_PASSED.clean(text)
        assert cleaned == text.replace(secret, "[redacted]")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("clone https://dev:pa55@github.example/x.git", "clone https://[redacted]@github.example/x.git"),
        ("https:\\/\\/dev:pa55@h\\/x", "https:\\/\\/[redacted]@h\\/x"),
        ("postgres://app:p@ss:w0rd@db:5432/notes", "postgres://[redacted]@db:5432/notes"),
        ("https://:pa55@h", "https://[redacted]@h"),
        (f"https://{BODY}@github.example/x", "https://[redacted]@github.example/x"),
        (f"Authorization: Bearer {BODY}", "Authorization: Bearer [redacted]"),
        (f'{{"authorization": "bearer {BODY}"}}', '{"authorization": "bearer [redacted]"}'),
        ("Authorization: Basic ZGV2OnBhNTU=", "Authorization: Basic [redacted]"),
        ('"x-api-key": "0123456789abcdef"', '"x-api-key": "[redacted]"'),
        (f"curl -H 'x-goog-api-key: {BODY}'", "curl -H 'x-goog-api-key: [redacted]'"),
    ],
)
def test_credentials_in_urls_and_headers_are_redacted(text: str, cleaned: str) -> None:
    assert NOTHING_PASSED.clean(text) == cleaned


@pytest.mark.parametrize("write", [str, json.dumps, lambda text: json.dumps(json.dumps(text))])
@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_private_key_is_redacted_across_lines_and_on_one_line(write: object, kind: str) -> None:
    assert callable(write)
    text = write(f"here\n{PEM.replace('RSA ', kind)}\nand on: it works.")
    cleaned = NOTHING_PASSED.clean(text)
    assert BODY[:12] not in cleaned and "PRIVATE" not in cleaned
    assert "here" in cleaned and "it works." in cleaned


def test_truncated_private_key_is_redacted() -> None:
    assert BODY[:12] not in NOTHING_PASSED.clean(json.dumps(f"here {PEM[:300]}"))


def test_private_key_is_redacted_line_by_line() -> None:
    lines = LineRedactor(NOTHING_PASSED)
    headed = PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n", 1)
    cleaned = [lines.clean(line) for line in f"before it\n{headed}\nafter it".split("\n")]
    assert cleaned[0] == "before it" and cleaned[-1] == "after it"
    assert set(cleaned[1:-1]) == {"[redacted]"}


def test_unterminated_private_key_redacts_only_key_like_text() -> None:
    lines = LineRedactor(NOTHING_PASSED)
    assert lines.clean('if text.startswith("-----BEGIN PRIVATE KEY-----"):') == 'if text.startswith("[redacted]"):'
    assert lines.clean('    raise Refused("no")') == '    raise Refused("no")'
    assert lines.clean("word") == "word"


ORDINARY = (
    "The quick brown fox reads sk-learn and task-force-and-a-long-kebab-name-without-figures.",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 7c860212f1e0a3b4c5d6e7f8091a2b3c4d5e6f70",
    "session 0dd3f1ce-1ef9-4f4c-9f58-6d90f1a3a1f0, thread 01a1e0af-37ed-7c91-a70b-a2d1b6d94b23",
    "git clone git@github.example:org/repo.git && git clone ssh://git@github.example/org/repo.git",
    "http://127.0.0.1:8080/x?mail=dev@example.invalid and https://example.invalid:443?mail=a@b",
    "docker://alpine:3.19@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Bearer authentication is required; a bearer token; Bearer authentication/authorization",
    "basic understanding; Authorization: none; the x-api-key header is missing",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQq9z\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "spec-review-auth-flow, implement-user-model, eyJ is how JSON begins in base64: eyJhIjoxfQ",
    "AKIARA is a name; npm_config_registry=x; ghp_ and glpat- are prefixes; pypi-publish",
    '{"type": "text", "text": "äöü → 日本語 \\n\\t \\u0000"}',
    "tests/test_auth_flow.py::test_used_state_is_refused - assert 302 == 400",
)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_unchanged(text: str) -> None:
    redactor = Redactor({"MY_API_KEY": KEY, "HOME": "/home/dev", "HTTP_PROXY": "http://127.0.0.1:3128"})
    assert redactor.clean(text) == text
    assert redactor.clean(json.dumps(text)) == json.dumps(text)


@pytest.mark.parametrize("text", [*KNOWN.values(), PEM, "https://a:b@c", f"Bearer {BODY}"])
def test_redaction_is_idempotent(text: str) -> None:
    once = NOTHING_PASSED.clean(text)
    assert NOTHING_PASSED.clean(once) == once


HOSTILE = (
    "sk-",
    "-sk-a",
    "eyJ",
    "eyJabcdefghi.",
    "[1meyJ",
    "eyJabcdefgh.eyJ",
    "://",
    "://a:",
    "://a:b",
    "://aaaaaaaaaaaaaaaaaaaa",
    "a@",
    "Bearer ",
    "bearer a",
    "authorization: ",
    "x-api-key: ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----a-",
    "-----BEGIN ",
    "-----END PRIVATE KEY-----",
    "ghp_",
    "xoxb-",
    "npm_a",
    "%3D",
    "\\n",
    "a",
    "abcdefgh",
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_redaction_takes_linear_time(unit: str) -> None:
    redactor = Redactor({"MY_API_KEY": "abcdefgh" * 4})
    assert_grows_linearly(redactor.clean, "", unit, count=2000)
    assert_grows_linearly(LineRedactor(redactor).clean, "", unit, count=2000)
