"""What a server may read and write: real files, links that lead astray, and paths that change under its feet."""

import contextlib
import hashlib
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.engine.tools import path_walk
from agentd.engine.tools.project_files import DirectoryEntry, ProjectFiles
from agentd.engine.tools.tool import ToolRefusal
from program import PATIENCE
from scenario import Scenario

CHANGE = "agentd/changes/add-oauth"
SECRET = "the secret of another place\n"
FILES = {
    "README.md": "notes\n",
    "src/main.py": "print('hello')\n",
    "src/notes/models.py": "class Note: ...\n",
    "specs/top.md": "not of the change\n",
    ".git/config": "[core]\n",
    ".gitignore": "*.pyc\n",
    ".github/ci.yml": "on: push\n",
    ".env": "TOKEN=1\n",
    ".env.local": "TOKEN=2\n",
    "src/.envrc": "TOKEN=3\n",
    f"{CHANGE}/proposal.md": "# Proposal\n",
    f"{CHANGE}/tasks.md": "# Tasks\n",
    f"{CHANGE}/specs/auth-flow.md": "# Spec\n",
    "agentd/changes/other/proposal.md": "# Other\n",
    "agentd/specs/api.md": "# Api\n",
    "agentd/archive/2026-01-01-old/proposal.md": "# Old\n",
}


def lay(root: Path) -> None:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "secret.txt").write_text(SECRET)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project, and beside it a place that is none of its business."""
    place = Path(os.path.realpath(tmp_path)) / "notes"
    lay(place)
    return place


@pytest.fixture
def ground(root: Path) -> ProjectFiles:
    return ProjectFiles(str(root), CHANGE, others_hidden=True)


def refused(ground: ProjectFiles, path: str, call: str = "read") -> ToolRefusal:
    with pytest.raises(ToolRefusal) as caught:
        getattr(ground, call)(path)
    calm(caught.value)
    return caught.value


def calm(refusal: ToolRefusal) -> None:
    """One short line that any client can be sent."""
    assert len(str(refusal).splitlines()) == 1 and len(str(refusal)) < 1200 and str(refusal).encode()


def code(ground: ProjectFiles, path: str, call: str = "read") -> str:
    return refused(ground, path, call).code


def names(ground: ProjectFiles, path: str) -> list[str]:
    return [entry.name for entry in ground.entries(path).entries]


def outside(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root.parent / "outside").iterdir()}


@contextlib.contextmanager
def not_hanging() -> Iterator[None]:
    """A call that hangs is a failure, not a long wait."""

    def over(*_: object) -> None:
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(int(PATIENCE))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Where a path leads


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "README.md"),
        ("src/main.py", "src/main.py"),
        ("./src//notes/./models.py", "src/notes/models.py"),
        ("proposal.md", f"{CHANGE}/proposal.md"),
        ("specs/auth-flow.md", f"{CHANGE}/specs/auth-flow.md"),
        ("specs/top.md", "specs/top.md"),
        (f"{CHANGE}/proposal.md", f"{CHANGE}/proposal.md"),
        ("agentd/specs/api.md", "agentd/specs/api.md"),
        ("agentd/archive/2026-01-01-old/proposal.md", "agentd/archive/2026-01-01-old/proposal.md"),
        (".gitignore", ".gitignore"),
        (".github/ci.yml", ".github/ci.yml"),
    ],
)
def test_path_is_resolved_in_the_change_first_then_from_the_root(ground: ProjectFiles, path: str, place: str) -> None:
    file = ground.read(path)
    assert file.data.decode() == FILES[place]
    assert file.place == place
    assert file.path == path.replace("./", "").replace("//", "/")


def test_change_takes_precedence_when_both_have_the_name(ground: ProjectFiles, root: Path) -> None:
    (root / "proposal.md").write_text("of the root\n")
    assert ground.read("proposal.md").data == b"# Proposal\n"
    assert ProjectFiles(str(root), None, others_hidden=False).read("proposal.md").data == b"of the root\n"


def test_file_of_the_change_does_not_hide_a_folder_of_the_root(ground: ProjectFiles, root: Path) -> None:
    (root / CHANGE / "src").write_text("a file named like a folder\n")
    assert ground.read("src/main.py").data == FILES["src/main.py"].encode()


def test_change_without_a_folder_can_still_read_the_project(root: Path) -> None:
    ground = ProjectFiles(str(root), "agentd/changes/add-new", others_hidden=True)
    assert ground.read("README.md").place == "README.md"
    assert code(ground, "proposal.md") == "not-found"


def test_change_folder_linked_outside_does_not_block_the_project(ground: ProjectFiles, root: Path) -> None:
    os.rename(root / CHANGE, root / "aside")
    (root / CHANGE).symlink_to(root.parent / "outside")
    assert ground.read("README.md").data == b"notes\n"
    assert code(ground, "secret.txt") == "not-found"
    assert code(ground, f"{CHANGE}/secret.txt") == "outside"


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("", "empty"),
        ("a\0b", "control"),
        ("a\nb", "line break"),
        ("a\u2028b", "line break"),
        ("a\x1b[31mb", "control"),
        ("src\\main.py", "backslash"),
        ("a\ud800", "half a character"),
        ("a" * 1025, "1024"),
        ("a/" * 512 + "a", "1024"),
        ("a" * 256, "255"),
        ("ü" * 128, "255"),
        ("a/" * 101, "100"),
    ],
)
def test_invalid_path_is_a_bad_argument(ground: ProjectFiles, path: str, what: str) -> None:
    for call in ("read", "entries", "digest"):
        refusal = refused(ground, path, call)
        assert refusal.code == "bad-argument"
        assert what in refusal.what
    with pytest.raises(ToolRefusal, match="bad-argument"):
        ground.write(path, b"")


def test_maximum_length_name_is_not_found(ground: ProjectFiles) -> None:
    assert code(ground, "a" * 255) == "not-found"
    assert code(ground, "/".join(["a" * 200] * 5)) == "not-found"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/", "//etc/passwd", "..", "../outside/secret.txt", "src/../README.md", "src/..", "./.././x"],
)
def test_absolute_paths_and_dot_segments_are_outside(ground: ProjectFiles, path: str) -> None:
    assert code(ground, path) == code(ground, path, "entries") == code(ground, path, "digest") == "outside"
    with pytest.raises(ToolRefusal, match="outside"):
        ground.write(path, b"")


HIDDEN = [
    ".git",
    ".GIT",
    ".Git",
    ".git.",
    ".git ",
    ".git. . ",
    ".g\u200cit",
    "\u200d.git",
    ".git\ufeff",
    ".g\u206ait",
    ".gi\u00adt",
    ".git\U000e0001",
    ".git\ufe0f",
    ".ｇit",
    "git~1",
    "GIT~1",
    "git~2.",
    ".git::$INDEX",
    ".git::$INDEX_ALLOCATION",
    ".git:stream",
    ".env",
    ".ENV",
    ".env.local",
    ".envrc",
    ".\u200benv",
    ".env ",
    ".env::$DATA",
    "env~1",
    "ENV~1.LOC",
]


@pytest.mark.parametrize("name", HIDDEN, ids=ascii)
def test_git_and_secrets_are_hidden_under_every_spelling(ground: ProjectFiles, root: Path, name: str) -> None:
    """Each name is made on disk too: hidden means hidden, not absent."""
    for folder in (root, root / "src", root / CHANGE):
        if not (folder / name).exists():
            (folder / name).mkdir()
            (folder / name / "config").write_text(SECRET)
    for path in (name, f"src/{name}", f"{name}/config", f"src/{name}/config", f"missing/{name}/x"):
        assert code(ground, path) == "outside"
        assert code(ground, path, "entries") == "outside"
    for place in (".", "src", CHANGE):
        assert name not in names(ground, place)
    assert code(ground, "config") == "not-found"


def test_names_similar_to_hidden_ones_are_readable(ground: ProjectFiles, root: Path) -> None:
    for name in ("git", "env", ".gitmodules", ".gi", "env.py", "git~", "a.git", "a.env", "x:y", ".hidden"):
        (root / name).write_text("fine\n")
        assert ground.read(name).data == b"fine\n"
        assert name in names(ground, ".")


@pytest.mark.parametrize(
    "path",
    [
        "agentd/changes/other",
        "agentd/changes/other/proposal.md",
        "agentd/changes/OTHER/proposal.md",
        "agentd/Changes/other/proposal.md",
        "AGENTD/changes/other",
        "agentd/chang\u200ces/other",
        "agentd/changes./other",
        "agentd/changes/Add-OAuth/proposal.md",
        "agentd/changes/missing",
    ],
    ids=ascii,
)
def test_bound_server_sees_no_other_change(ground: ProjectFiles, root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    assert code(ground, path) == code(ground, path, "entries") == "outside"


def test_changes_folder_lists_only_the_bound_change(ground: ProjectFiles, root: Path) -> None:
    (root / "agentd/changes/README").write_text("x")
    assert names(ground, "agentd/changes") == ["add-oauth"]
    assert names(ground, "agentd") == ["archive", "changes", "specs"]
    unbound = ProjectFiles(str(root), None, others_hidden=False)
    assert names(unbound, "agentd/changes") == ["README", "add-oauth", "other"]
    assert unbound.read("agentd/changes/other/proposal.md").data == b"# Other\n"


def test_missing_path_suggests_the_nearest_names(ground: ProjectFiles, root: Path) -> None:
    assert "src/main.py" in refused(ground, "src/mian.py").instead
    assert "specs/auth-flow.md" in refused(ground, "specs/auth-flwo.md").instead
    assert "proposal.md" in refused(ground, "propsal.md").instead
    assert "README.md" in refused(ground, "REDME.md").instead
    assert "src" in refused(ground, "scr/notes/x.py").instead
    assert refused(ground, "src/qqqqqq").instead == "list_directory of src shows what is there"
    assert "src/main.py is a file" in refused(ground, "src/main.py/x").what
    (root / "src/.env.test").write_text("x")
    (root / "src/mainn").symlink_to("/etc")
    assert ".env" not in str(refused(ground, "src/env.test"))
    assert "src/mainn" not in refused(ground, "src/maiin").instead


def test_files_and_folders_are_not_confused(ground: ProjectFiles) -> None:
    assert str(refused(ground, "src")) == "is-directory: src is a folder; use list_directory"
    assert str(refused(ground, "README.md", "entries")) == "not-a-directory: README.md is a file; use read_file"
    assert code(ground, ".") == "is-directory"


# What is in a file


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"caf\xe9", b"\x89PNG\r\n"])
def test_non_text_file_is_binary(ground: ProjectFiles, root: Path, data: bytes) -> None:
    (root / "data").write_bytes(data)
    assert code(ground, "data") == "binary"


def test_text_is_returned_byte_for_byte(ground: ProjectFiles, root: Path) -> None:
    for data in (b"", b"\xef\xbb\xbfbom\r\nx", "ünï\u2028€😀".encode()):
        (root / "data").write_bytes(data)
        assert ground.read("data").data == data


def test_files_up_to_ten_megabytes_are_read(ground: ProjectFiles, root: Path) -> None:
    (root / "big.txt").write_bytes(b"x" * 10_000_000)
    assert len(ground.read("big.txt").data) == 10_000_000
    (root / "big.txt").write_bytes(b"x" * 10_000_001)
    assert code(ground, "big.txt") == "too-large"


def test_a_sparse_file_of_a_terabyte_is_not_read_to_its_end(
    ground: ProjectFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("huge.bin", f"{CHANGE}/huge.md"):
        with open(root / name, "wb") as file:
            file.truncate(1 << 40)
    sizes: list[int] = []

    def read(handle: int, size: int) -> bytes:
        sizes.append(size)
        return os.read(handle, size)

    monkeypatch.setattr(path_walk, "os", Spied(read=read))
    assert code(ground, "huge.bin") == "too-large"
    assert code(ground, "huge.md", "digest") == "too-large"
    assert DirectoryEntry("huge.bin", "file", 1 << 40) in ground.entries(".").entries
    assert sum(sizes) <= 2 * 10_000_001, "of each no more than may be read"


AS_NOBODY = """
import os, sys
from agentd.engine.tools.project_files import ProjectFiles
from agentd.engine.tools.tool import ToolRefusal
import difflib, hashlib

os.chdir(sys.argv[1])
os.geteuid() or os.setuid(65534)
ground = ProjectFiles(".", "agentd/changes/add-oauth", True)
calls = [
    lambda: ground.read("README.md").data,
    lambda: ground.read("src/locked.py"),
    lambda: ground.read("locked/x"),
    lambda: ground.entries("locked"),
    lambda: ground.digest("tasks.md"),
    lambda: ground.write("proposal.md", b"new"),
    lambda: [entry.name for entry in ground.entries("src").entries],
]
for call in calls:
    try:
        print(call())
    except ToolRefusal as refusal:
        print(refusal)
"""


def test_permission_error_is_a_refusal(root: Path) -> None:
    """Seen by a user who may not read them; root, who may read all, becomes nobody for it."""
    (root / "src/locked.py").write_text(SECRET)
    (root / "locked").mkdir()
    for name in ("src/locked.py", "locked", f"{CHANGE}/tasks.md"):
        (root / name).chmod(0)
    (root / CHANGE).chmod(0o555)
    root.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, str(root)], capture_output=True, text=True, check=False)
    (root / "locked").chmod(0o700)
    (root / CHANGE).chmod(0o755)
    assert done.stdout.splitlines() == [
        "b'notes\\n'",
        "failed: src/locked.py cannot be read: Permission denied; tell the person",
        "failed: locked/x cannot be read: Permission denied; tell the person",
        "failed: locked cannot be read: Permission denied; tell the person",
        "failed: tasks.md cannot be read: Permission denied; tell the person",
        "failed: proposal.md cannot be written: Permission denied; tell the person",
        "['locked.py', 'main.py', 'notes']",
    ], done.stderr
    assert (root / CHANGE / "proposal.md").read_text() == "# Proposal\n"


# Links


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("here", "src/main.py", "here"),
        ("src/here", "main.py", "src/here"),
        ("src/notes/here", "../main.py", "src/notes/here"),
        ("src/here", "../src/./notes//../main.py", "src/here"),
        ("here", "{root}/src/main.py", "here"),
        ("src/here", "{root}/src", "src/here/main.py"),
        ("here", "src", "here/main.py"),
        ("here", "src/", "here/main.py"),
        (f"{CHANGE}/here", "../../../src/main.py", "here"),
        ("here", ".", "here/here/here/src/main.py"),
    ],
)
def test_symlink_within_the_project_is_followed(
    ground: ProjectFiles, root: Path, link: str, target: str, path: str
) -> None:
    (root / link).symlink_to(target.format(root=root))
    file = ground.read(path)
    assert file.data == FILES["src/main.py"].encode()
    assert (file.path, file.place) == (path, "src/main.py")


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "/dev/fd/0",
        "/",
        "..",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "src/notes/../../../outside/secret.txt",
        "{root}/../outside/secret.txt",
        "{root}x/secret.txt",
        "{outside}/secret.txt",
        "../notes/README.md",
        ".git/config",
        ".GIT/config",
        "src/../.git/config",
        "{root}/.git/config",
        ".env",
        "src/.envrc",
        "agentd/changes/other/proposal.md",
        "agentd/changes/add-oauth/../other/proposal.md",
        "agentd/changes/other",
    ],
)
@pytest.mark.parametrize("link", ["here", "src/notes/here", f"{CHANGE}/here"])
def test_symlink_leading_outside_is_refused_and_not_listed(
    ground: ProjectFiles, root: Path, link: str, target: str
) -> None:
    Path(f"{root}x").mkdir()
    Path(f"{root}x/secret.txt").write_text(SECRET)
    goal = target.format(root=root, outside=root.parent / "outside")
    if not goal.startswith("/"):
        goal = "../" * link.count("/") + goal
    (root / link).symlink_to(goal)
    assert code(ground, link) == code(ground, link, "entries") == code(ground, f"{link}/config") == "outside"
    assert "here" not in names(ground, os.path.dirname(link) or ".")


def test_folder_behind_a_symlink_follows_the_same_rules(ground: ProjectFiles, root: Path) -> None:
    (root / "changes").symlink_to("agentd/changes")
    (root / "top").symlink_to(".")
    assert names(ground, "changes") == ["add-oauth"]
    assert ground.read("changes/add-oauth/tasks.md").place == f"{CHANGE}/tasks.md"
    assert code(ground, "changes/other/proposal.md") == "outside"
    assert code(ground, "top/agentd/changes/other/proposal.md") == "outside"
    assert code(ground, "top/.git/config") == "outside"
    assert ".git" not in names(ground, "top")


def test_chains_of_twenty_symlinks_are_followed_and_loops_are_refused(ground: ProjectFiles, root: Path) -> None:
    (root / "link0").symlink_to("README.md")
    for number in range(1, 25):
        (root / f"link{number}").symlink_to(f"link{number - 1}")
    assert ground.read("link19").data == b"notes\n"
    assert code(ground, "link20") == "outside"
    (root / "self").symlink_to("self")
    (root / "ping").symlink_to("src/pong")
    (root / "src/pong").symlink_to("../ping")
    (root / "deeper").symlink_to("deeper/deeper/deeper")
    for name in ("self", "ping", "deeper", "self/x"):
        assert code(ground, name) == "outside"
    assert not {"self", "ping", "deeper", "link20"} & set(names(ground, "."))
    assert "link19" in names(ground, ".")


def test_dangling_symlink_is_not_found(ground: ProjectFiles, root: Path) -> None:
    (root / "gone").symlink_to("src/nothing.py")
    (root / "into").symlink_to("README.md/x")
    assert code(ground, "gone") == code(ground, "gone/x", "entries") == code(ground, "into") == "not-found"
    assert not {"gone", "into"} & set(names(ground, "."))


def test_linked_file_and_folder_are_listed_by_their_kind(ground: ProjectFiles, root: Path) -> None:
    (root / "src/a").symlink_to("../README.md")
    (root / "src/b").symlink_to("notes")
    listed = ground.entries("src").entries
    assert listed[:2] == (DirectoryEntry("a", "file", 6), DirectoryEntry("b", "directory", None))


def test_pipes_sockets_and_devices_are_refused_without_hanging(ground: ProjectFiles, root: Path) -> None:
    os.mkfifo(root / "pipe")
    os.mkfifo(root / CHANGE / "pipe.md")
    (root / "to-pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server, not_hanging():
        here = os.getcwd()
        os.chdir(root)  # an address of a socket is short
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
        for name in ("pipe", "sock", "to-pipe", "pipe/x"):
            assert code(ground, name) == "outside"
            assert code(ground, name, "entries") == "outside"
        assert code(ground, "pipe.md", "digest") == "outside"
        with pytest.raises(ToolRefusal, match="outside"):
            ground.write("pipe.md", b"x")
        assert not {"pipe", "sock", "to-pipe"} & set(names(ground, "."))
    assert stat.S_ISFIFO((root / CHANGE / "pipe.md").lstat().st_mode)


# Folders


def test_listing_is_sorted_with_kind_and_size(ground: ProjectFiles) -> None:
    listing = ground.entries(".")
    assert listing.path == "."
    assert listing.entries == (
        DirectoryEntry(".github", "directory", None),
        DirectoryEntry(".gitignore", "file", 6),
        DirectoryEntry("README.md", "file", 6),
        DirectoryEntry("agentd", "directory", None),
        DirectoryEntry("specs", "directory", None),
        DirectoryEntry("src", "directory", None),
    )
    assert listing.left_off == 0
    assert names(ground, "specs") == ["auth-flow.md"]
    assert ground.entries("./specs/").path == "specs"


def test_listing_of_ten_thousand_entries_is_limited_to_five_hundred(
    ground: ProjectFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "many").mkdir()
    for number in range(10_000):
        (root / "many" / f"file-{number:05}.txt").touch()
    os.link(root / "README.md", root / "many/.env")
    for number in range(10):
        (root / "many" / f"a{number}").symlink_to("/etc/passwd")
    looked: list[object] = []

    def lstat(path: bytes, **more: Any) -> os.stat_result:
        looked.append(path)
        return os.lstat(path, **more)

    monkeypatch.setattr(path_walk, "os", Spied(lstat=lstat))
    listing = ground.entries("many")
    assert len(looked) < 600, "only what is listed is looked at"
    assert [entry.name for entry in listing.entries] == [f"file-{number:05}.txt" for number in range(500)]
    assert listing.left_off == 9_500
    assert code(ground, "many/file-0000.txt") == "not-found"


def test_names_that_cannot_be_requested_are_not_listed(ground: ProjectFiles, root: Path) -> None:
    folder = os.fsencode(root / "odd")
    os.mkdir(folder)
    for name in (b"caf\xe9", b"two\nlines", b"back\\slash", b"\x1b[31m", b"plain"):
        with open(folder + b"/" + name, "wb"):
            pass
    os.symlink(b"caf\xe9", folder + b"/linked")
    assert names(ground, "odd") == ["linked", "plain"]
    assert ground.read("odd/linked").data == b""


def test_deep_folders_are_read_up_to_the_limit(ground: ProjectFiles, root: Path) -> None:
    folder = root
    for _ in range(99):
        folder = folder / "d"
        folder.mkdir()
    (folder / "end.txt").write_text("deep\n")
    assert ground.read("d/" * 99 + "end.txt").data == b"deep\n"
    assert names(ground, "d/" * 99) == ["end.txt"]
    (folder / "on").mkdir()
    inner = folder / "on"
    for _ in range(40):
        inner = inner / "d"
        inner.mkdir()
    (root / "short").symlink_to("d/" * 99 + "on")
    assert names(ground, "short") == ["d"]
    assert code(ground, "short/" + "d/" * 40, "entries") == "outside"


IN_ANOTHER_LOCALE = """
import sys
from agentd.engine.tools.project_files import ProjectFiles

ground = ProjectFiles(sys.argv[1], "agentd/changes/add-oauth", True)
print(ascii([entry.name for entry in ground.entries("w").entries]))
print(ground.read("w/\\u00fc\\u20ac.md").data)
"""


def test_names_are_utf8_regardless_of_the_locale(root: Path) -> None:
    (root / "w").mkdir()
    (root / "w" / "ü€.md").write_text("x")
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    argv = [sys.executable, "-c", IN_ANOTHER_LOCALE, str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.stdout == "['\\xfc\\u20ac.md']\nb'x'\n", done.stderr


# Writing


def test_document_is_written_completely_and_identified_by_its_hash(ground: ProjectFiles, root: Path) -> None:
    assert ground.digest("proposal.md") == "sha256:" + hashlib.sha256(b"# Proposal\n").hexdigest()
    ground.write("proposal.md", b"\xff new\0")
    assert (root / CHANGE / "proposal.md").read_bytes() == b"\xff new\0"
    assert ground.digest("proposal.md") == "sha256:" + hashlib.sha256(b"\xff new\0").hexdigest()
    ground.write("clarifications.md", b"x")
    ground.write("specs/user-model.md", b"y")
    assert (root / CHANGE / "specs/user-model.md").read_bytes() == b"y"
    assert sorted(os.listdir(root / CHANGE)) == ["clarifications.md", "proposal.md", "specs", "tasks.md"]
    assert sorted(os.listdir(root / CHANGE / "specs")) == ["auth-flow.md", "user-model.md"]


def test_specs_folder_is_created(root: Path) -> None:
    (root / "agentd/changes/new").mkdir()
    ground = ProjectFiles(str(root), "agentd/changes/new", others_hidden=True)
    assert ground.digest("specs/a.md") is None
    assert ground.digest("proposal.md") is None
    ground.write("specs/a.md", b"a")
    assert (root / "agentd/changes/new/specs/a.md").read_bytes() == b"a"


def test_written_document_keeps_its_mode_and_does_not_change_hard_links(ground: ProjectFiles, root: Path) -> None:
    path = root / CHANGE / "proposal.md"
    path.chmod(0o640)
    os.link(path, root / "kept")
    ground.write("proposal.md", b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (root / "kept").read_text() == "# Proposal\n"


@pytest.mark.parametrize(
    "name",
    [
        "STATE.yaml",
        "proposal.txt",
        ".hidden.md",
        "specs",
        ".",
        "specs/deep/x.md",
        "src/x.md",
        "Specs/x.md",
        f"{CHANGE}/x.md",
        "a" * 198 + ".md",
    ],
)
def test_only_documents_can_be_written(ground: ProjectFiles, root: Path, name: str) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(ToolRefusal, match=r"^not-writable: .*; send a name such as proposal\.md"):
        ground.write(name, b"x")
    assert sorted(root.rglob("*")) == before


def test_nothing_can_be_written_without_a_change(root: Path) -> None:
    ground = ProjectFiles(str(root), None, others_hidden=False)
    with pytest.raises(ToolRefusal, match="bad-argument: no change is named; send change_id"):
        ground.write("proposal.md", b"x")
    assert code(ground, "proposal.md", "digest") == "bad-argument"


def test_missing_change_folder_is_reported(root: Path) -> None:
    ground = ProjectFiles(str(root), "agentd/changes/gone", others_hidden=True)
    with pytest.raises(ToolRefusal, match=r"not-found: the change has no folder agentd/changes/gone"):
        ground.write("proposal.md", b"x")
    assert not (root / "agentd/changes/gone").exists()


@pytest.mark.parametrize(
    "target", ["{root}/README.md", "../../../README.md", "{outside}/secret.txt", "nowhere", "tasks.md"]
)
def test_document_that_is_a_symlink_is_neither_followed_nor_replaced(
    ground: ProjectFiles, root: Path, target: str
) -> None:
    path = root / CHANGE / "proposal.md"
    path.unlink()
    path.symlink_to(target.format(root=root, outside=root.parent / "outside"))
    with pytest.raises(ToolRefusal, match=r"outside: proposal\.md is a link"):
        ground.write("proposal.md", b"x")
    assert "is a link" in refused(ground, "proposal.md", "digest").what
    assert path.is_symlink()
    assert (root / "README.md").read_text() == "notes\n"
    assert (root / CHANGE / "tasks.md").read_text() == "# Tasks\n"
    assert outside(root) == {"secret.txt": SECRET}
    assert not (root / CHANGE / "nowhere").exists()


@pytest.mark.parametrize("part", ["agentd", "agentd/changes", CHANGE, f"{CHANGE}/specs"])
@pytest.mark.parametrize("inside", [True, False])
def test_nothing_is_written_through_a_linked_folder(ground: ProjectFiles, root: Path, part: str, inside: bool) -> None:
    aside = (root if inside else root.parent) / "aside"
    os.rename(root / part, aside)
    (root / part).symlink_to(aside)
    before = sorted(aside.rglob("*"))
    with pytest.raises(ToolRefusal, match="outside"):
        ground.write("specs/new.md", b"x")
    assert code(ground, "specs/auth-flow.md", "digest") == "outside"
    assert sorted(aside.rglob("*")) == before


def test_folder_in_place_of_a_document_is_kept(ground: ProjectFiles, root: Path) -> None:
    (root / CHANGE / "empty.md").mkdir()
    with pytest.raises(ToolRefusal, match="is-directory"):
        ground.write("empty.md", b"x")
    assert code(ground, "empty.md", "digest") == "is-directory"
    assert sorted(os.listdir(root / CHANGE)) == ["empty.md", "proposal.md", "specs", "tasks.md"]


def test_file_in_place_of_the_specs_folder_is_kept(root: Path) -> None:
    (root / "agentd/changes/new").mkdir()
    (root / "agentd/changes/new/specs").write_text("x")
    ground = ProjectFiles(str(root), "agentd/changes/new", others_hidden=True)
    with pytest.raises(ToolRefusal, match="not-found"):
        ground.write("specs/a.md", b"a")
    assert code(ground, "specs/a.md", "digest") == "not-found"
    assert (root / "agentd/changes/new/specs").read_text() == "x"


def test_full_disk_keeps_the_old_document(ground: ProjectFiles, root: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.raises(ToolRefusal, match=r"^failed: proposal.md cannot be written: .*; tell the person$"):
            ground.write("proposal.md", b"x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (root / CHANGE / "proposal.md").read_text() == "# Proposal\n"
    assert sorted(os.listdir(root / CHANGE)) == ["proposal.md", "specs", "tasks.md"]


WRITE_FOR_EVER = """
import sys
from agentd.engine.tools.project_files import ProjectFiles

ground = ProjectFiles(sys.argv[1], "agentd/changes/add-oauth", True)
ground.write("proposal.md", b"a" * 3_000_000)
print("ready", flush=True)
while True:
    for letter in (b"b", b"c"):
        ground.write("proposal.md", letter * 3_000_000)
"""


def test_killed_writer_leaves_a_whole_document(root: Path) -> None:
    for delay in (0.0, 0.003, 0.01, 0.02, 0.05):
        argv = [sys.executable, "-c", WRITE_FOR_EVER, str(root)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
            assert writer.stdout and writer.stdout.readline() == b"ready\n"
            time.sleep(delay)
            writer.kill()
        data = (root / CHANGE / "proposal.md").read_bytes()
        assert len(data) == 3_000_000 and len(set(data)) == 1


class Spied:
    """The `os` that the walk uses, with some of its calls watched."""

    def __init__(self, **calls: Any) -> None:
        self._calls = SimpleNamespace(**calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._calls, name, None) or getattr(os, name)


def test_write_syncs_the_text_before_the_rename_and_the_folder_after(
    ground: ProjectFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def fsync(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "text")
        os.fsync(handle)

    def replace(*args: Any, **more: Any) -> None:
        done.append("name")
        os.replace(*args, **more)

    monkeypatch.setattr(path_walk, "os", Spied(fsync=fsync, replace=replace))
    ground.write("proposal.md", b"x")
    assert done == ["text", "name", "folder"]


# What changes while it is read


FLIP = """
import itertools, os, sys

name, one, two = sys.argv[1:]
number = itertools.count()
print("ready", flush=True)
while True:
    for aside in (one, two):
        try:
            os.rename(aside, name)
        except OSError:  # the one we race with made a folder there
            os.rename(name, f"{one}-{next(number)}")
            continue
        os.rename(name, aside)
"""


@contextlib.contextmanager
def flipping(name: Path, one: Path, two: Path) -> Iterator[None]:
    """Another process puts now the one, now the other in the place of that name, as fast as it can."""
    argv = [sys.executable, "-c", FLIP, str(name), str(one), str(two)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            died = process.poll()
            process.kill()
    assert died is None, "the flipping itself failed"


SEEN = {"outside", "not-found"}  # the answers while a name is flipped


def reads(ground: ProjectFiles, path: str, seconds: float = 2.5) -> tuple[set[bytes], set[str]]:
    """Everything that was read, and every code that was answered, in thousands of tries: until all was seen."""
    data, codes, tries, end = set[bytes](), set[str](), 0, time.monotonic() + seconds
    while time.monotonic() < end or tries < 5000 or not data or not codes >= SEEN:
        tries += 1
        try:
            data.add(ground.read(path).data)
        except ToolRefusal as refusal:
            codes.add(refusal.code)
    return data, codes


def test_folder_swapped_for_a_symlink_never_leaks_the_secret(ground: ProjectFiles, root: Path) -> None:
    os.rename(root / "src", root / "real")
    (root / "real/secret.txt").write_text("public\n")
    (root / "link").symlink_to(root.parent / "outside")
    with flipping(root / "src", root / "real", root / "link"), not_hanging():
        data, codes = reads(ground, "src/secret.txt")
    assert data == {b"public\n"}
    assert codes == SEEN


def test_file_swapped_for_a_symlink_never_leaks_the_secret(ground: ProjectFiles, root: Path) -> None:
    (root / "real").write_text("public\n")
    (root / "link").symlink_to(root.parent / "outside/secret.txt")
    with flipping(root / "file.txt", root / "real", root / "link"), not_hanging():
        data, codes = reads(ground, "file.txt")
    assert data == {b"public\n"}
    assert codes == SEEN


def test_symlink_swapped_from_inside_to_outside_never_leaks_the_secret(ground: ProjectFiles, root: Path) -> None:
    (root / "in").symlink_to("src/notes")
    (root / "out").symlink_to("../outside")
    (root / "src/notes/secret.txt").write_text("public\n")
    with flipping(root / "way", root / "in", root / "out"), not_hanging():
        data, codes = reads(ground, "way/secret.txt")
    assert data == {b"public\n"}
    assert codes == SEEN


def test_file_swapped_for_a_pipe_never_hangs(ground: ProjectFiles, root: Path) -> None:
    (root / "real").write_text("public\n")
    os.mkfifo(root / "pipe")
    with flipping(root / "file.txt", root / "real", root / "pipe"), not_hanging():
        data, codes = reads(ground, "file.txt")
    assert data == {b"public\n"}
    assert codes == SEEN


def test_listing_of_a_swapped_folder_never_names_outside_files(ground: ProjectFiles, root: Path) -> None:
    os.rename(root / "src", root / "real")
    (root / "link").symlink_to(root.parent / "outside")
    seen: set[tuple[str, ...]] = set()
    with flipping(root / "src", root / "real", root / "link"), not_hanging():
        tries = 0
        while tries < 5000 or not seen:
            tries += 1
            with contextlib.suppress(ToolRefusal):
                seen.add(tuple(names(ground, "src")))
    assert seen == {("main.py", "notes")}


@pytest.mark.parametrize("part", [CHANGE, f"{CHANGE}/specs"])
def test_folder_swapped_for_a_symlink_never_allows_an_outside_write(
    ground: ProjectFiles, root: Path, part: str
) -> None:
    (root.parent / "outside" / "specs").mkdir()
    (root.parent / "outside" / "auth-flow.md").write_text(SECRET)
    (root.parent / "outside" / "specs" / "auth-flow.md").write_text(SECRET)
    before = {path: path.stat().st_mtime_ns for path in (root.parent / "outside").rglob("*")}
    os.rename(root / part, root / "real")
    (root / "link").symlink_to(root.parent / "outside")
    written, codes, end = 0, set[str](), time.monotonic() + 3
    with flipping(root / part, root / "real", root / "link"), not_hanging():
        while time.monotonic() < end or not written or "outside" not in codes:
            try:
                ground.write("specs/auth-flow.md", b"written\n")
                written += 1
            except ToolRefusal as refusal:
                codes.add(refusal.code)
    assert {path: path.stat().st_mtime_ns for path in (root.parent / "outside").rglob("*")} == before
    assert not list(root.rglob("*.tmp"))


def test_no_file_descriptor_stays_open(ground: ProjectFiles, root: Path) -> None:
    (root / "here").symlink_to("src/../src/notes")
    (root / "out").symlink_to("../outside")
    os.mkfifo(root / "pipe")
    before = len(os.listdir("/dev/fd"))
    for path in ("here/models.py", "src", "src/x", "out", "pipe", "README.md/x", "proposal.md", "here", "specs/x.md"):
        for call in ("read", "entries", "digest"):
            with contextlib.suppress(ToolRefusal):
                getattr(ground, call)(path)
    with contextlib.suppress(ToolRefusal):
        ground.write("specs/x.md", b"x")
    assert len(os.listdir("/dev/fd")) == before


# Any path at all


PIECES = [
    *("..", ".", "", "src", "main.py", "README.md", ".git", "config", ".env", "agentd", "changes", "add-oauth"),
    *("other", "proposal.md", "specs", "auth-flow.md", "in", "out", "up", "loop", "pipe", "to-git", "to-other"),
    *("secret.txt", "etc", "passwd", "\u200d.git", "a" * 255, "\\", "\0", "\ud800", "~", "C:", " ", "%2e%2e"),
]
PATHS = st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=8).map("/".join) | st.text()


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project full of links, the good ones and the bad ones."""
    root = Path(os.path.realpath(tmp_path_factory.mktemp("maze"))) / "notes"
    lay(root)
    for folder in (root, root / "src", root / CHANGE):
        up = os.path.relpath(root, folder)
        links = {"in": f"{up}/src", "out": f"{up}/../outside", "up": "..", "loop": "loop", "to-git": f"{up}/.git"}
        for name, target in {**links, "to-other": f"{up}/agentd/changes/other", "etc": "/etc"}.items():
            (folder / name).symlink_to(target)
        os.mkfifo(folder / "pipe")
    return root


def ids(root: Path) -> set[tuple[int, int]]:
    """Every file and folder below, and the root itself, as the system knows them."""
    return {(seen.st_dev, seen.st_ino) for path in (root, *root.rglob("*")) for seen in [path.lstat()]}


@given(path=PATHS)
def test_arbitrary_path_opens_only_allowed_files(maze: Path, path: str) -> None:
    hidden = ids(maze / ".git") | ids(maze / "agentd/changes/other") | ids(maze / ".env")
    allowed = ids(maze) - hidden

    def spy(*args: Any, **more: Any) -> int:
        handle = os.open(*args, **more)
        seen = os.fstat(handle)
        assert (seen.st_dev, seen.st_ino) in allowed, f"{path!r} opened {args}"
        return handle

    ground = ProjectFiles(str(maze), CHANGE, others_hidden=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_walk, "os", Spied(open=spy))
        for call in (ground.read, ground.entries, ground.digest):
            try:
                call(path)
            except ToolRefusal as refusal:
                calm(refusal)


@given(path=PATHS | st.sampled_from(["proposal.md", "specs/x.md", "out/x.md", "specs/../x.md"]), data=st.binary())
def test_arbitrary_name_writes_only_documents(maze: Path, path: str, data: bytes) -> None:
    def others() -> dict[Path, int]:
        found = [*maze.parent.rglob("*")]
        return {one: one.lstat().st_mtime_ns for one in found if not one.is_relative_to(maze / CHANGE)}

    before = others()
    ground = ProjectFiles(str(maze), CHANGE, others_hidden=True)
    try:
        ground.write(path, data)
    except ToolRefusal as refusal:
        calm(refusal)
    else:
        assert path.endswith(".md")
        assert ground.digest(path) == "sha256:" + hashlib.sha256(data).hexdigest()
    assert others() == before


def test_project_agents_md_is_not_hidden_by_the_changes_own(project: Scenario) -> None:
    project.write("AGENTS.md", "of the project\n")
    project.write("agentd/changes/add-oauth/AGENTS.md", "of agentd\n")
    ground = ProjectFiles(str(project.root), "agentd/changes/add-oauth", True)
    assert ground.read("AGENTS.md").data == b"of the project\n"
    assert ground.read("agentd/changes/add-oauth/AGENTS.md").data == b"of agentd\n"
