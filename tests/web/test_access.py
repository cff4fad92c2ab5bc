"""The guard of the viewer against other pages, other names, other programs and broken requests."""

import contextlib
import re
import signal
import socket
from collections.abc import Iterator

import pytest
from small_site import CSRF, SECRET, TICKET, TOKEN

from agentd.web.security import HEADERS, LARGEST, is_local
from raw_http import SMALL_SITE, Answer, Server, open_server

FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def door() -> Iterator[Server]:
    with open_server() as door:
        yield door


@pytest.fixture(scope="module")
def key(door: Server) -> str:
    return door.enter(f"http://{door.host}/enter?token={TOKEN}")


def origin(door: Server) -> str:
    return f"Origin: http://{door.host}"


def is_refused(door: Server, answer: Answer, *statuses: int) -> None:
    """Nothing of the project is in it, and the server is as it was."""
    assert answer.status in statuses, answer.raw[:300]
    assert SECRET.encode() not in answer.raw and TOKEN.encode() not in answer.raw and CSRF.encode() not in answer.raw
    assert b"Traceback" not in answer.raw and "set-cookie" not in answer.headers
    assert door.process.poll() is None


# ---- the way in


def test_entry_link_sets_a_cookie_and_opens_its_page(door: Server) -> None:
    answer = door.ask(f"/enter?token={TOKEN}&next=/changes/add-oauth%3Fa%3D1%26b%3D%22")
    assert answer.status == 200
    assert b'content="0; url=/changes/add-oauth?a=1&amp;b=%22"' in answer.body
    assert b'<a href="/changes/add-oauth?a=1&amp;b=%22">' in answer.body
    name, *flags = answer.headers["set-cookie"].lower().split("; ")
    assert name.startswith(f"agentd-{door.port}=") and set(flags) == {"httponly", "path=/", "samesite=strict"}
    assert TOKEN.encode() not in answer.raw, "the cookie is not the token"
    assert door.ask("/", f"Cookie: {answer.cookie}").body.decode() == SECRET


def test_token_is_reusable_and_ticket_works_once(door: Server) -> None:
    for _ in range(2):
        assert door.ask(f"/enter?token={TOKEN}").status == 200
    first = door.ask(f"/enter?token={TICKET}")
    assert first.status == 200
    is_refused(door, door.ask(f"/enter?token={TICKET}"), 403)
    assert door.ask(f"/enter?token={TICKET}", f"Cookie: {first.cookie}").status == 200, "loaded again by who is in"


TOKENS = {
    "none": "",
    "an empty one": "token=",
    "a wrong one": "token=wrong",
    "all but the last letter": f"token={TOKEN[:-1]}",
    "a letter more": f"token={TOKEN}x",
    "capitals": f"token={TOKEN.upper()}",
    "twice": f"token={TOKEN}&token={TOKEN}",
    "a wrong one after it": f"token={TOKEN}&token=x",
    "another name": f"Token={TOKEN}",
    "a list": f"token[]={TOKEN}",
    "a blank before it": f"token=%20{TOKEN}",
    "a NUL after it": f"token={TOKEN}%00",
    "no text": "token=%ff%fe",
    "half a character": "token=%ed%a0%80",
    "broken escapes": "token=%zz%",
    "the secret of forms": f"token={CSRF}",
    "very many": "&".join([f"token={TOKEN}"] * 50),
    "very long": "token=" + "x" * 50_000,
}


@pytest.mark.parametrize("name", TOKENS)
def test_wrong_token_is_refused(door: Server, name: str) -> None:
    is_refused(door, door.ask(f"/enter?{TOKENS[name]}"), 403)


PLACES = (
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "http://evil.example",
    "HTTP:/evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "",
    " /",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\nSet-Cookie: a=b",
    "/\x00",
    "/\x7f",
    "?x",
    "#x",
    "/" + "x" * 3000,
)


@pytest.mark.parametrize("place", PLACES)
def test_entry_link_cannot_redirect_elsewhere(door: Server, place: str) -> None:
    assert not is_local(place)
    written = "".join(f"%{byte:02X}" for byte in place.encode())
    is_refused(door, door.ask(f"/enter?token={TOKEN}&next={written}"), 400)
    is_refused(door, door.ask(f"/enter?token={TOKEN}&next=/&next={written}"), 400)


@pytest.mark.parametrize("place", ['/"><script>alert(1)</script>', "/'x", "/a;url=//evil.example", "/ä", "/a//b", "/<"])
def test_redirect_target_is_escaped(door: Server, place: str) -> None:
    written = "".join(f"%{byte:02X}" for byte in place.encode())
    body = door.ask(f"/enter?token={TOKEN}&next={written}").body.decode()
    assert "<script" not in body and body.count('"') == body.replace("&quot;", "").count('"')
    (target,) = re.findall(r'<a href="(/[^"<>]*)">Open</a>', body)
    assert f'content="0; url={target}"' in body


@pytest.mark.parametrize("path", ["/", "/static/STATE.yaml", "/events", "/form", "/nothing", "/enter/", "//", "/../x"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_request_without_the_cookie_is_refused(door: Server, method: str, path: str) -> None:
    answer = door.ask(path, origin(door), f"X-CSRF-Token: {CSRF}", method=method)
    is_refused(door, answer, 403)
    assert method == "HEAD" or b"agentd view" in answer.body


def cookies(door: Server, key: str) -> dict[str, list[str]]:
    name, _, value = key.removeprefix("Cookie: ").partition("=")
    return {
        "a wrong value": [f"Cookie: {name}=wrong"],
        "an empty one": [f"Cookie: {name}="],
        "the token": [f"Cookie: {name}={TOKEN}"],
        "a letter less": [f"{key[:-1]}"],
        "a letter more": [f"{key}x"],
        "another port's": [f"Cookie: agentd-{door.port + 1}={value}"],
        "no port": [f"Cookie: agentd={value}"],
        "only the value": [f"Cookie: {value}"],
        "quoted": [f'Cookie: {name}="{value}"'],
        "in another header": [f"X-Cookie: {name}={value}", f"Authorization: {value}"],
        "broken": ["Cookie: ;;;==;a;=b;\xff\xfe=\xff; " + name],
        "no text": [f"Cookie: {name}=\xff\xfe\x80"],
        "very many": ["Cookie: " + "; ".join(f"{name}={n}" for n in range(2000))],
        "in the query": [],
    }


@pytest.mark.parametrize("name", list(cookies(Server(None, "http://a:1/"), "Cookie: a=b")))  # type: ignore[arg-type]
def test_wrong_cookie_is_refused(door: Server, key: str, name: str) -> None:
    is_refused(door, door.ask(f"/?{key.removeprefix('Cookie: ')}", *cookies(door, key)[name]), 403)


def test_cookie_among_others_is_found(door: Server, key: str) -> None:
    ours = key.removeprefix("Cookie: ")
    for cookie in (f"a=b; {ours}", f"{ours};a", f"{ours.split('=')[0]}=tossed; {ours}", f"\xff=\xff;{ours}"):
        assert door.ask("/", f"Cookie: {cookie}").status == 200


def test_every_start_has_its_own_cookie(key: str) -> None:
    with open_server() as other:
        value = other.enter(f"http://{other.host}/enter?token={TOKEN}").partition("=")[2]
        assert value != key.partition("=")[2] and len(value) >= 32


# ---- names


HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1:{port}0",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.2:{port}",
    "0.0.0.0:{port}",
    "[::1]:{port}",
    "localhost.:{port}",
    "localhost",
    "x@127.0.0.1:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "127.0.0.1:{port},evil.example",
    "127.0.0.1:{port}/",
    "",
)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", f"/enter?token={TOKEN}"])
def test_foreign_host_header_is_refused(door: Server, key: str, host: str, path: str) -> None:
    """A stranger's name that he lets point to this machine."""
    head = f"GET {path} HTTP/1.1\r\nHost: {host.format(port=door.port)}\r\n{key}\r\nConnection: close\r\n\r\n"
    is_refused(door, door.raw(head.encode()), 421)


def test_missing_or_duplicate_host_header_is_refused(door: Server, key: str) -> None:
    is_refused(door, door.ask("/", key, host="-"), 400, 421)
    is_refused(door, door.ask("/", key, "Host: evil.example"), 400, 421)
    is_refused(door, door.ask("/", key, f"Host: {door.host}"), 400, 421)
    is_refused(door, door.raw(f"GET / HTTP/1.0\r\n{key}\r\n\r\n".encode()), 421)


def test_absolute_request_target_does_not_bypass_the_host_check(door: Server, key: str) -> None:
    is_refused(door, door.ask(f"http://{door.host}/", key, host="evil.example"), 421)
    is_refused(door, door.ask("http://evil.example/", key), 404)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}"])
def test_own_host_names_are_accepted(door: Server, key: str, host: str) -> None:
    assert door.ask("/", key, host=host.format(port=door.port)).status == 200


def test_other_loopback_address_accepts_only_its_own_names() -> None:
    with open_server((*SMALL_SITE, "127.0.0.2")) as other:
        for name, status in (("127.0.0.1", 421), ("localhost", 421), ("127.0.0.2", 403)):
            assert other.ask(host=f"{name}:{other.port}").status == status


# ---- other pages


ORIGINS = (
    "http://evil.example",
    "http://evil.example:{port}",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://127.0.0.1:{port}.evil.example",
    "http://127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "null",
    "file://",
    "",
)


@pytest.mark.parametrize("sent", ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_foreign_origin_is_refused(door: Server, key: str, sent: str, method: str) -> None:
    header = f"Origin: {sent.format(port=door.port)}"
    path = "/form" if method == "POST" else "/"
    is_refused(door, door.ask(path, key, header, f"X-CSRF-Token: {CSRF}", method=method), 403)
    is_refused(door, door.ask(path, key, header, origin(door), f"X-CSRF-Token: {CSRF}", method=method), 403)
    is_refused(door, door.ask(f"/enter?token={TOKEN}", header), 403)


SITES = ("cross-site", "same-site", "none", "SAME-ORIGIN", "", "same-origin, cross-site")


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("mode", ["cors", "no-cors", "websocket"])
def test_cross_site_subresource_request_is_refused(door: Server, key: str, site: str, mode: str) -> None:
    fetched = (f"Sec-Fetch-Site: {site}", f"Sec-Fetch-Mode: {mode}")
    for path in ("/", "/static/STATE.yaml", "/events", f"/enter?token={TOKEN}"):
        is_refused(door, door.ask(path, key, *fetched), 403)


@pytest.mark.parametrize("site", [site for site in SITES if site != "none"])
def test_cross_site_navigation_is_allowed_only_to_the_entry_page(door: Server, key: str, site: str) -> None:
    opening = (f"Sec-Fetch-Site: {site}", "Sec-Fetch-Mode: navigate")
    is_refused(door, door.ask("/", key, *opening), 403)
    assert door.ask(f"/enter?token={TOKEN}", *opening).status == 200
    is_refused(door, door.ask("/enter?token=wrong", *opening), 403)


def test_same_origin_navigation_is_allowed(door: Server, key: str) -> None:
    for site in ("none", "same-origin"):
        assert door.ask("/", key, f"Sec-Fetch-Site: {site}", "Sec-Fetch-Mode: navigate").status == 200
    assert door.ask("/", key, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors").status == 200
    is_refused(door, door.ask("/", key, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"), 403)


# ---- forms


def test_valid_form_body_arrives_unchanged(door: Server, key: str) -> None:
    body = f"csrf={CSRF}&words=a%20%C3%A4+b&words=".encode()
    assert door.ask("/form", key, origin(door), FORM, method="POST", body=body).body == body
    told = f"X-CSRF-Token: {CSRF}"
    for raw in (b"", b"\x00\xff" * 1000, b"x" * LARGEST):
        assert door.ask("/form", key, origin(door), told, method="POST", body=raw).body == raw
    assert door.ask("/form", key, "Sec-Fetch-Site: same-origin", told, method="POST", body=b"x").body == b"x"


def forged(door: Server) -> dict[str, tuple[list[str], bytes]]:
    ours = [origin(door), FORM]
    return {
        "none": (ours, b"words=x"),
        "no body": (ours, b""),
        "an empty one": (ours, b"csrf="),
        "a wrong one": (ours, b"csrf=wrong"),
        "a letter less": (ours, f"csrf={CSRF[:-1]}".encode()),
        "a letter more": (ours, f"csrf={CSRF}x".encode()),
        "the token": (ours, f"csrf={TOKEN}".encode()),
        "twice": (ours, f"csrf={CSRF}&csrf={CSRF}".encode()),
        "no text": (ours, b"csrf=%ff%fe\xff"),
        "too many fields": (ours, b"a=b&" * 2000 + f"csrf={CSRF}".encode()),
        "as plain text": ([ours[0], "Content-Type: text/plain"], f"csrf={CSRF}".encode()),
        "as JSON": ([ours[0], "Content-Type: application/json"], f'{{"csrf": "{CSRF}"}}'.encode()),
        "as files": (
            [ours[0], "Content-Type: multipart/form-data; boundary=x"],
            f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{CSRF}\r\n--x--\r\n'.encode(),
        ),
        "of no type": ([ours[0]], f"csrf={CSRF}".encode()),
        "a wrong header over a right field": ([*ours, "X-CSRF-Token: wrong"], f"csrf={CSRF}".encode()),
        "an empty header": ([*ours, "X-CSRF-Token:"], f"csrf={CSRF}".encode()),
        "two headers": ([*ours, f"X-CSRF-Token: {CSRF}", f"X-CSRF-Token: {CSRF}"], b""),
        "a header of no text": ([*ours, "X-CSRF-Token: \xff\xfe"], b""),
        "neither origin nor site": ([FORM], f"csrf={CSRF}".encode()),
        "opened by hand": ([FORM, "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"], f"csrf={CSRF}".encode()),
        "from a page of the same host": ([*ours, "Sec-Fetch-Site: same-site"], f"csrf={CSRF}".encode()),
        "from elsewhere": ([*ours, "Sec-Fetch-Site: cross-site"], f"csrf={CSRF}".encode()),
    }


@pytest.mark.parametrize("name", list(forged(Server(None, "http://a:1/"))))  # type: ignore[arg-type]
def test_forged_form_is_refused(door: Server, key: str, name: str) -> None:
    headers, body = forged(door)[name]
    is_refused(door, door.ask("/form", key, *headers, method="POST", body=body), 403)
    is_refused(door, door.ask(f"/form?csrf={CSRF}", key, *headers, method="POST", body=body), 403)


def test_body_over_the_limit_is_refused(door: Server, key: str) -> None:
    told = f"X-CSRF-Token: {CSRF}"
    is_refused(door, door.ask("/form", key, origin(door), told, method="POST", body=b"x" * (LARGEST + 1)), 413)
    head = f"POST /form HTTP/1.1\r\nHost: {door.host}\r\n{key}\r\n{origin(door)}\r\n{told}\r\n"
    said = f"{head}Content-Length: {LARGEST + 1}\r\nConnection: close\r\n\r\n".encode()
    is_refused(door, door.raw(said), 413)
    chunked = f"{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    is_refused(door, door.raw(chunked + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 20 + b"0\r\n\r\n"), 413)


def test_chunked_body_arrives_whole(door: Server, key: str) -> None:
    head = f"POST /form HTTP/1.1\r\nHost: {door.host}\r\n{key}\r\n{origin(door)}\r\n{FORM}\r\nConnection: close\r\n"
    chunks = [f"csrf={CSRF[:7]}".encode(), f"{CSRF[7:]}&wor".encode(), b"ds=x"]
    body = b"".join(f"{len(one):x}\r\n".encode() + one + b"\r\n" for one in chunks) + b"0\r\n\r\n"
    answer = door.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body)
    assert answer.body == f"csrf={CSRF}&words=x".encode()


def test_large_body_without_the_cookie_is_not_read(door: Server) -> None:
    head = f"POST /form HTTP/1.1\r\nHost: {door.host}\r\n{origin(door)}\r\nContent-Length: 900000\r\n\r\n".encode()
    assert door.raw(head, until=b"\r\n\r\n").status == 403, "before a byte of it has come"


# ---- methods, headers, noise


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get"])
@pytest.mark.parametrize("path", ["/", "/form", "/static/STATE.yaml", f"/enter?token={TOKEN}"])
def test_other_methods_are_not_allowed(door: Server, key: str, method: str, path: str) -> None:
    asking = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-csrf-token")
    answer = door.ask(path, key, origin(door), *asking, f"X-CSRF-Token: {CSRF}", method=method)
    is_refused(door, answer, 405)
    assert answer.headers["allow"] == "GET, HEAD, POST" and b"csrf" not in answer.raw.lower()


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_entry_page_accepts_only_get(door: Server, method: str) -> None:
    is_refused(door, door.ask(f"/enter?token={TOKEN}", origin(door), method=method), 405)


ASKED = {
    "a page": ("/", 200),
    "a file": ("/static/STATE.yaml", 200),
    "a missing page": ("/nothing", 404),
    "a missing file": ("/static/nothing.css", 404),
    "a broken page": ("/broken", 500),
    "the way in": (f"/enter?token={TOKEN}", 200),
    "a wrong token": ("/enter?token=x", 403),
    "a wrong place": (f"/enter?token={TOKEN}&next=//x", 400),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("is_in", [True, False], ids=["in", "out"])
def test_every_response_has_the_security_headers(door: Server, key: str, name: str, is_in: bool) -> None:
    path, status = ASKED[name]
    answer = door.ask(path, *([key] if is_in else []))
    if is_in and name == "a wrong token":
        status = 200  # who is in already stays in
    assert answer.status == (status if is_in or path.startswith("/enter") else 403)
    assert HEADERS.items() <= answer.headers.items()
    is_file = name == "a file" and is_in
    assert answer.headers["cache-control"] == ("no-cache" if is_file else "no-store")
    assert ("etag" in answer.headers) is is_file
    assert "server" not in answer.headers and b"access-control" not in answer.raw.lower()


def test_content_security_policy_forbids_external_sources() -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["content-security-policy"].split("; "))
    assert policy.pop("img-src") == "'self' data:"
    assert {policy.pop(name) for name in ("default-src", "base-uri", "frame-ancestors")} == {"'none'"}
    assert policy.keys() == {"script-src", "style-src", "font-src", "connect-src", "form-action"}
    assert set(policy.values()) == {"'self'"}


def test_cached_file_is_not_sent_again(door: Server, key: str) -> None:
    tag = door.ask("/static/STATE.yaml", key).headers["etag"]
    again = door.ask("/static/STATE.yaml", key, f"If-None-Match: {tag}")
    assert (again.status, again.body, again.headers["cache-control"]) == (304, b"", "no-cache")


PATHS = ("/%00", "/static/%00", "/static/x%0a", "/static/../small_site.py", "/static/%2e%2e/%2e%2e/small_site.py")
NOISE = {
    "a long path": b"GET /static/" + b"x" * 20_000 + b" HTTP/1.1\r\n",
    "no text in the path": b"GET /static/%ff%fe%ed%a0%80 HTTP/1.1\r\n",
    "bytes in the path": b"GET /\xff\xfe HTTP/1.1\r\n",
    "no path": b"GET  HTTP/1.1\r\n",
    "a star": b"GET * HTTP/1.1\r\n",
    "no version": b"GET /\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
}


@pytest.mark.parametrize("path", PATHS)
def test_path_traversal_or_unknown_path_is_a_client_error(door: Server, key: str, path: str) -> None:
    is_refused(door, door.ask(path, key), 400 if "%0" in path else 404)


@pytest.mark.parametrize("name", NOISE)
def test_malformed_request_is_a_client_error(door: Server, key: str, name: str) -> None:
    rest = f"Host: {door.host}\r\n{key}\r\nConnection: close\r\n\r\n".encode()
    assert door.raw(NOISE[name] + rest, until=b"\r\n\r\n").status in (400, 404)
    assert door.ask("/", key).status == 200


FLOODS = {
    "many headers": "".join(f"X-{n}: x\r\n" for n in range(20_000)),
    "a long header": "X: " + "x" * 200_000 + "\r\n",
    "many cookies": "".join(f"Cookie: a{n}=b\r\n" for n in range(2000)),
    "two lengths": "Content-Length: 5\r\nContent-Length: 500\r\n",
    "a length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "a length that is no number": "Content-Length: 5x\r\n",
    "a huge length": f"Content-Length: {'9' * 5000}\r\n",
    "a NUL": "X: a\0b\r\n",
    "bytes": "X: \xff\xfe\r\nCookie: \xff\r\nOrigin2: \xff\r\n",
    "an upgrade": "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n",
}


@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_flood_of_headers_is_handled(door: Server, key: str, name: str, method: str) -> None:
    head = f"{method} / HTTP/1.1\r\nHost: {door.host}\r\n{FLOODS[name]}Connection: close\r\n\r\n"
    assert door.raw(head.encode("latin-1"), wait=2).status in (400, 403, 0)
    assert door.ask("/", key).status == 200


def test_smuggled_request_is_not_served(door: Server, key: str) -> None:
    inner = f"GET / HTTP/1.1\r\nHost: {door.host}\r\nConnection: close\r\n\r\n".encode()
    head = f"POST /form HTTP/1.1\r\nHost: {door.host}\r\n{key}\r\n{origin(door)}\r\nX-CSRF-Token: {CSRF}\r\n".encode()
    for body in (b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"Content-Length: 0\r\n\r\n"):
        assert SECRET.encode() not in door.raw(head + body + inner, wait=5).raw


# ---- the end


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
@pytest.mark.parametrize("path", ["", "/events", "/slow"])
def test_server_exits_immediately_despite_open_connections(number: signal.Signals, code: int, path: str) -> None:
    with open_server() as door, contextlib.ExitStack() as stack:
        key = door.enter(f"http://{door.host}/enter?token={TOKEN}")
        if path:
            line = stack.enter_context(socket.create_connection(("127.0.0.1", door.port)))
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: {door.host}\r\n{key}\r\n\r\n".encode())
            begun = line.makefile("r") if path == "/events" else door.process.stdout
            assert begun and begun.readline() in ("HTTP/1.1 200 OK\n", "at work\n")
        assert door.stop(number) == (code, ""), "it waits neither for the stream nor for the work"


def test_control_characters_in_a_logged_error_are_removed() -> None:
    with open_server() as door:
        assert door.ask("/broken", door.enter(f"http://{door.host}/enter?token={TOKEN}")).status == 500
        _, err = door.stop(signal.SIGTERM)
    assert "is what a document said" in err and "\x1b" not in err and TOKEN not in err
