"""Redact secrets in a call's stored output: values passed to the agent, and text that looks like a secret (pure).

Runs in linear time: no pattern backtracks over text it has already matched.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

MARK = "[redacted]"
_MIN_LENGTH = 8  # shorter values are likely to be ordinary words
_KEY_LINES = 200  # private keys have fewer

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:[A-Z]*KEY|[A-Z]*TOKEN|SECRET|PASS|PASSW(?:OR)?D|PASSPHRASE|(?<=_)PWD|CREDENTIAL|CREDS|O?AUTH|AUTHORIZATION"
    r"|COOKIE|JWT|PAT)S?(?:_|$)",
    re.IGNORECASE,
)


def _token(prefix: str, rest: str) -> str:
    """Return a pattern for a token that follows no letter or digit, except in an escape (`%3D`, a color code).

    The pattern starts with the prefix and then looks back, because searching for literal letters is much faster.
    """
    escapes = (r"\\[abfnrtv]", r"\\u[0-9A-Fa-f]{4}", "%[0-9A-Fa-f]{2}", r"[\[;]\dm", r"[\[;]\d\dm", r"[\[;]\d\d\dm")
    after_escape = "".join(f"|(?<={escape}{prefix})" for escape in escapes)
    return f"{prefix}(?:(?<![A-Za-z0-9]{prefix}){after_escape}){rest}"


_KEY_HEAD = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_TAIL = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"[A-Za-z0-9+/=\s\\:,.]"

# Texts without the word (in lower case) are not searched. The group `keep` is not redacted.
_FORMS = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("private key", rf"{_KEY_HEAD}{_KEY_BODY}*(?:-(?!-){_KEY_BODY}*)*(?:{_KEY_TAIL})?"),
        ("@", r"""(?P<keep>:(?:\\?/){2})[^\s/?#@:"'<>\\]{0,256}:[^\s/?#"'<>\\]{1,1024}(?=@(?!sha256:))"""),
        ("@", r"""(?P<keep>:(?:\\?/){2})[A-Za-z0-9_.~%+-]{20,512}(?=@)"""),
        ("sk-", _token("sk-", r"(?=[A-Za-z0-9_-]{0,80}?[0-9])[A-Za-z0-9_-]{20,}")),
        ("k_live_", _token("[rs]k_live_", r"[A-Za-z0-9]{16,}")),
        ("k_test_", _token("[rs]k_test_", r"[A-Za-z0-9]{16,}")),
        ("aiza", r"AIza[A-Za-z0-9_-]{30,}"),
        ("ya29", _token(r"ya29\.", r"[A-Za-z0-9_-]{20,}")),
        ("gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
        ("gh", _token("gh[pousr]_", r"[A-Za-z0-9]{20,}")),
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
        ("glpat-", r"glpat-[A-Za-z0-9_.-]{16,}"),
        ("xox", _token("xox[a-z]", r"(?:\.xox[a-z])?-[A-Za-z0-9-]{10,}")),
        ("xapp-", _token("xapp-", r"[A-Za-z0-9-]{10,}")),
        ("npm_", _token("npm_", r"[A-Za-z0-9]{30,}")),
        ("pypi-", _token("pypi-", r"[A-Za-z0-9_-]{40,}")),
        ("hf_", _token("hf_", r"[A-Za-z0-9]{30,}")),
        ("akia", _token("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
        ("asia", _token("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
        ("eyj", _token("eyJ", r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")),
        (
            "bearer",
            r"(?i:(?P<keep>bearer(?:\s|%20|\+){1,8}))(?:(?=[\w.~+/=%-]{0,200}?[0-9])[\w.~+/=%-]{16,}|[\w.~+/=%-]{32,})",
        ),
        (
            "authorization",
            r"""(?i:(?P<keep>authorization\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?(?:basic|token|digest|apikey)\s{1,8}))[^\s"'\\]{6,}""",
        ),
        ("api-key", r"""(?i:(?P<keep>x-(?:goog-)?api-key\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?))[^\s"'\\,;]{8,}"""),
    )
)
_USER = re.compile(r"://([^/?#\s]+)@")
_LONG_USER = 20  # without a password, a user name this long is a token
_HEAD = re.compile(_KEY_HEAD)
_TAIL = re.compile(_KEY_TAIL)
_KEY_LINE = re.compile(r"[\w+/=\s:,|>*-]*")


class Redactor:
    """Redact text, given the variables passed to the agent. `reach` is the maximum length of a secret in bytes."""

    def __init__(self, environ_passed: Mapping[str, str]) -> None:
        forms = {form for secret in _secrets(environ_passed) for form in _forms(secret)}
        self._forms = sorted(forms, key=len, reverse=True)  # longest first, because one may contain another
        self.reach = max(16 * 1024, *(len(form.encode("utf-8", "replace")) + 8 for form in self._forms), 0)

    def clean(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, MARK)
        small = text.lower()
        for word, pattern in _FORMS:
            if word in small:
                text = pattern.sub(_replacement, text)
        return text


class LineRedactor:
    """Redact text line by line, including private keys that span lines."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._left = 0

    def clean(self, line: str) -> str:
        if self._left and (tail := _TAIL.search(line)):
            self._left = 0
            return MARK + self.clean(line[tail.end() :])
        if self._left and _KEY_LINE.fullmatch(line):
            self._left -= 1
            return MARK
        self._left = 0
        if (heads := list(_HEAD.finditer(line))) and not _TAIL.search(line, heads[-1].end()):
            self._left = _KEY_LINES
        return self._redactor.clean(line)


def _replacement(match: re.Match[str]) -> str:
    return (match.groupdict().get("keep") or "") + MARK


def _secrets(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield values of variables with secret-looking names, and credentials in URLs."""
    for name, value in environ.items():
        secrets = [value, *value.splitlines()] if _SECRET_NAME.search(name) else []
        address = value if "://" in value or not name.lower().endswith("_proxy") else f"://{value}"
        if (match := _USER.search(address)) and (":" in match[1] or len(match[1]) >= _LONG_USER):
            user = match[1]
            secrets += [user, unquote(user), user.partition(":")[2], unquote(user.partition(":")[2])]
        yield from (secret.strip() for secret in secrets if len(secret.strip()) >= _MIN_LENGTH)


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret unchanged, and as encoded in JSON, URLs and base64."""
    yield secret
    for plain in (True, False):
        once = json.dumps(secret, ensure_ascii=plain)[1:-1]
        yield once
        yield json.dumps(once)[1:-1]  # JSON inside JSON, as in a tool result
        yield once.replace("/", r"\/")
    data = secret.encode("utf-8", "surrogateescape")
    for written in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield written
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), written)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode()
        yield from _base64_parts(data, encode)


def _base64_parts(data: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the secret's part in the base64 of a longer text such as `user:secret`, at each alignment."""
    for before in range(3):
        text = encode(bytes(before) + data).decode()
        whole = (before + len(data)) * 8 // 6  # characters that do not depend on what follows
        yield text[-(-before * 8 // 6) : whole]
