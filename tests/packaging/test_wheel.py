"""What a person installs: the wheel brings the pages, their style and the scripts of others, with their terms."""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import installing
import pytest
from installing import LEFT_OVER, ROOT

import agentd
from program import environment

STATIC = "agentd/web/static/"
ABOUT = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
IS_REQUIRED = os.environ.get("AGENTD_VENDOR_REQUIRED") == "1"
HAS_SCRIPTS = (ROOT / "src" / STATIC / "vendor" / "mermaid.min.js").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(installing.wheel(tmp_path_factory)) as opened:
        yield opened


def pinned() -> dict[str, str]:
    told: dict[str, str] = json.loads((ROOT / "vendoring" / "package.json").read_text())["sha256"]
    return {Path(name).name: value for name, value in told.items()}


def packaged() -> set[str]:
    """What git would keep of the package, and the scripts of others, which it does not."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "src/agentd"]
    asked = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        kept = {name for name in asked.stdout.splitlines() if (ROOT / name).is_file()}
    else:  # not a repository, as from an sdist
        there = (path.relative_to(ROOT) for path in (ROOT / "src" / "agentd").rglob("*") if path.is_file())
        kept = {str(path) for path in there if "__pycache__" not in path.parts}
    fetched = {f"{STATIC}vendor/{name}" for name in (*pinned(), "LICENCES.txt")}
    return {name.removeprefix("src/") for name in kept} | fetched


def test_wheel_contains_exactly_the_tracked_package_files(wheel: zipfile.ZipFile) -> None:
    about = {f"agentd-{agentd.__version__}.dist-info/{name}" for name in ABOUT}
    names = wheel.namelist()
    assert len(set(names)) == len(names) and set(names) == packaged() | about
    assert {f"{STATIC}style.css", "agentd/web/templates/base.html", "agentd/demo/playbook.yaml"} <= set(names)


def test_sdist_builds_the_same_wheel(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> None:
    with zipfile.ZipFile(installing.wheel_of_sdist(tmp_path_factory)) as other:
        assert {name: other.read(name) for name in other.namelist()} == {
            name: wheel.read(name) for name in wheel.namelist()
        }


def test_sdist_has_everything_needed_to_build_and_no_generated_files(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with tarfile.open(installing.sdist(tmp_path_factory)) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "vendoring/fetch.py", "vendoring/package.json", "LICENSE"} <= names
    assert {f"src/{name}" for name in packaged()} <= names
    assert names & set(LEFT_OVER) == set()


@pytest.mark.skipif(not (HAS_SCRIPTS or IS_REQUIRED), reason="the scripts of others could not be fetched")
def test_vendored_scripts_match_their_pins_and_include_licenses(wheel: zipfile.ZipFile) -> None:
    for name, value in pinned().items():
        assert hashlib.sha256(wheel.read(f"{STATIC}vendor/{name}")).hexdigest() == value
    terms = wheel.read(f"{STATIC}vendor/LICENCES.txt").decode()
    for words in ("htmx.org 2.", "mermaid 11.", "dompurify 3.", "Permission is hereby granted", "Zero-Clause BSD"):
        assert words in terms
    named = re.findall(r"^@?[\w./-]+ \d[\w.-]*: (.*)$", terms, re.MULTILINE)
    assert len(named) > 50 and not [one for one in named if "GPL" in one or "EPL" in one]


def test_wheel_names_no_package_registry(wheel: zipfile.ZipFile) -> None:
    """Neither a public registry nor the one that this machine asks."""
    found = [b"registry.npmjs.org", b"files.pythonhosted.org", b"pypi.org/simple"]
    for argv in (
        ["npm", "config", "get", "registry"],
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
    ):
        asked = subprocess.run(argv, capture_output=True, check=False) if shutil.which(argv[0]) else None
        host = re.match(rb"https?://([^/\s]+)", asked.stdout) if asked else None
        found += [host[1]] if host else []
    texts = {name: wheel.read(name) for name in wheel.namelist()}
    assert [(name, one) for one in found for name, text in texts.items() if one in text] == []


def test_fetched_scripts_are_not_committed() -> None:
    ask = ["git", "check-ignore", "--quiet", f"src/{STATIC}vendor/mermaid.min.js"]
    assert subprocess.run(ask, cwd=ROOT, check=False).returncode in (0, 128)  # 128: not a repository, as from an sdist
    described = (ROOT / "vendoring" / "package.json").read_text()
    assert "http" not in described and not re.search(r'"[~^<>*]', described)


# ---- fetching


def fetching(tmp_path: Path, npm: str | None, **env: str) -> "subprocess.CompletedProcess[str]":
    """In a copy without the scripts; `npm` is what stands in for the program, which none of these asks the network."""
    shutil.copytree(ROOT / "vendoring", tmp_path / "tree" / "vendoring", dirs_exist_ok=True)
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    if npm is not None:
        (programs / "npm").write_text(f"#!/bin/sh\n{npm}\n")
        (programs / "npm").chmod(0o755)
    path = f"{programs}:/bin" if npm is not None else str(programs)
    argv = [sys.executable, str(tmp_path / "tree" / "vendoring" / "fetch.py")]
    return subprocess.run(argv, env={"PATH": path, **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("required", "code"), [("", 0), ("0", 0), ("1", 1)])
@pytest.mark.parametrize("npm", [None, "exit 7"], ids=["no npm", "no network"])
def test_build_continues_without_vendored_scripts_unless_required(
    tmp_path: Path, npm: str | None, required: str, code: int
) -> None:
    ran = fetching(tmp_path, npm, AGENTD_VENDOR_REQUIRED=required)
    assert (ran.returncode, ran.stdout) == (code, "")
    first, second = ran.stderr.splitlines()
    assert first == "Fetching the viewer's scripts"
    assert second.startswith("They were not fetched") and second.endswith(("npm is not installed", "npm ended with 7"))
    assert not (tmp_path / "tree" / "src").exists()


FAKE = """
while [ "$1" != --prefix ]; do shift; done
for one in htmx.org/dist/htmx.min.js mermaid/dist/mermaid.min.js; do
  mkdir -p "$(dirname "$2/node_modules/$one")" && echo evil > "$2/node_modules/$one"
done
"""


def test_file_that_does_not_match_its_pin_is_never_used(tmp_path: Path) -> None:
    ran = fetching(tmp_path, FAKE)
    assert ran.returncode == 1 and "htmx.org/dist/htmx.min.js is not the one" in ran.stderr
    assert not (tmp_path / "tree" / "src").exists()


@pytest.mark.skipif(not (HAS_SCRIPTS or IS_REQUIRED), reason="the scripts of others could not be fetched")
def test_present_scripts_are_not_fetched_again(tmp_path: Path) -> None:
    vendor = tmp_path / "tree" / "src" / STATIC / "vendor"
    shutil.copytree(ROOT / "src" / STATIC / "vendor", vendor)
    assert fetching(tmp_path, "exit 7", AGENTD_VENDOR_REQUIRED="1").returncode == 0
    (vendor / "htmx.min.js").write_text("of another version")
    assert fetching(tmp_path, "exit 7", AGENTD_VENDOR_REQUIRED="1").returncode == 1


# ---- a registry that does not answer


@pytest.fixture
def mute() -> Iterator[tuple[dict[str, str], list[str]]]:
    """The environment that leads npm to a registry which hangs up on everybody, and what it was asked for."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=hang_up, args=(server, asked), daemon=True).start()
        yield {"npm_config_registry": f"http://127.0.0.1:{server.getsockname()[1]}/"}, asked
        server.shutdown(socket.SHUT_RDWR)


def hang_up(server: socket.socket, asked: list[str]) -> None:
    while True:
        try:
            caller, _ = server.accept()
        except OSError:
            return
        with caller:
            asked.append(caller.recv(4096).decode(errors="replace").partition("\r\n")[0])


def clone(folder: Path) -> Path:
    """The tree as git has it, without the scripts, with a virtual environment that only notes what it runs."""
    shutil.copytree(ROOT / "vendoring", folder / "vendoring")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    program = folder / ".venv" / "bin" / "agentd"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "agentd $*"\n')
    program.chmod(0o755)
    (folder / ".venv" / ".ready").touch()
    return folder


def test_demo_of_a_clone_works_when_no_registry_answers(tmp_path: Path, mute: tuple[dict[str, str], list[str]]) -> None:
    env, asked = mute
    env = {**environment(tmp_path / "home"), **env}
    argv = ["make", "--no-print-directory", "demo", f"PYTHON={sys.executable}"]
    made = subprocess.run(argv, cwd=clone(tmp_path / "clone"), env=env, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stdout) == (0, "agentd demo\n"), made.stderr
    assert made.stderr.splitlines() == [
        "Fetching the viewer's scripts",
        "They were not fetched, so its pages go without htmx and mermaid: npm ended with 1",
    ]
    assert asked and max(asked.count(one) for one in asked) <= 2, "one more try of each, no more"


def test_editable_build_does_not_fetch_scripts_but_wheel_build_does(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, mute: tuple[dict[str, str], list[str]]
) -> None:
    env, asked = mute
    env = {**installing.offline(tmp_path_factory), **env}
    source = tmp_path / "source"
    shutil.copytree(installing.tree(tmp_path_factory), source, ignore=shutil.ignore_patterns("vendor"))
    uv = installing.program("uv")
    editable = [uv, "pip", "install", "--no-deps", "--target", str(tmp_path / "there"), "--editable", str(source)]
    done = subprocess.run(editable, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, asked) == (0, []), done.stderr
    done = subprocess.run([uv, "build", "--wheel", str(source)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and asked, done.stderr
    assert "They were not fetched" in done.stderr
