"""Find the files that define a check: what its command runs, as far as the words of the command show.

Tests are not definitions: authors are supposed to edit them. In some files only one section counts.
"""

import configparser
import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_DEEP = 5  # maximum nesting of commands within commands

_SEPARATORS = set("();<>|&\n")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_BEFORE = {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "command", "builtin"}
_WRAPPERS = {"env", "nice", "nohup", "sudo", "stdbuf", "xvfb-run", "ionice", "timeout", "npx", "bunx", "uvx"}
_RUNNERS = {
    *((program, "run") for program in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda")),
    *((program, "exec") for program in ("bundle", "pnpm", "yarn", "npm", "mise")),
    ("pnpm", "dlx"),
    ("yarn", "dlx"),
}
# options of the wrappers and runners above that take a value
_VALUED = {
    *("--with", "--extra", "--group", "--python", "-p", "--env-file", "--project", "--directory", "--package"),
    *("-u", "-n", "-k", "-s", "--signal", "--kill-after"),
}
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}
_SCRIPTED = re.compile(r"(?:python|pypy|node|nodejs|ruby|perl|php|deno|tsx|ts-node|Rscript|lua)[\d.]*")
_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".rb")  # `uv run x.py`
_SCRIPT_VALUED = {"-W", "-X", "-r", "--require", "--import", "--loader", "-I", "-o", "-O", "--rcfile"}
_INSTALLED = {".venv", "venv", "env", "node_modules", ".tox", ".nox"}  # installed files are not definitions

SECTIONS = {
    "npm": ("scripts",),
    "pytest": ("tool", "pytest"),
    "tox": ("tool", "tox"),
}


class CheckDefinition(NamedTuple):
    """A file, relative to the top of the worktree. If `section` is empty, the whole file counts."""

    path: str
    section: str = ""


class _SearchRoot(NamedTuple):
    top: str  # of the worktree
    folder: str  # where the command runs, relative to the top

    def place(self, word: str) -> str | None:
        """Return a word of the command as a path relative to the top, or None if it is not a path in the worktree."""
        if not word or any(mark in word for mark in "$`*?~\0"):
            return None
        path = os.path.normpath(os.path.join(self.top, self.folder, word))
        inside = os.path.relpath(path, self.top)
        return None if inside == ".." or inside.startswith("../") else inside.removeprefix("./")

    def upward(self) -> Iterator["_SearchRoot"]:
        """Yield this folder, then each folder above it up to the top."""
        folder = "" if self.folder == "." else self.folder
        yield self._replace(folder=folder)
        while folder:
            folder = os.path.dirname(folder)
            yield self._replace(folder=folder)

    def files(self, *names: str, section: str = "") -> Iterator[CheckDefinition]:
        for name in names:
            if place := self.place(name):
                yield CheckDefinition(place, section)


def files_defining(command: str, top: str, folder: str) -> list[CheckDefinition]:
    """Return the files that define `command`, a check run in `folder` of the worktree `top`, with link targets."""
    found = []
    for one in _read(command, _SearchRoot(top, folder), _DEEP):
        real = os.path.relpath(os.path.realpath(os.path.join(top, one.path)), top)
        found += [one] if real.startswith("..") else [one, CheckDefinition(real, one.section)]
    return [one for one in dict.fromkeys(found) if not os.path.isdir(os.path.join(top, one.path))]


def defining_section(name: str, path: str, data: bytes | None) -> object:
    """Return the part of a file that defines a check: None if the file is missing, all of it if it cannot be parsed."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8-sig")
        if path.endswith((".json", ".toml")):
            tree: Any = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
            for key in SECTIONS[name]:
                tree = tree.get(key) if isinstance(tree, dict) else None
            return tree
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
        return {title: dict(parser[title]) for title in parser.sections() if name in re.split(r"\W", title)} or None
    except (ValueError, RecursionError, configparser.Error):
        return data


def _read(command: str, ground: _SearchRoot, deep: int) -> Iterator[CheckDefinition]:
    for words in _commands(command):
        words = _bare(words)
        if words[:1] in (["cd"], ["pushd"]):
            ground = ground._replace(folder=ground.place(words[1] if len(words) > 1 else "") or ground.folder)
        elif words and deep:
            yield from _run(words, ground, deep)


def _commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, without redirections."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="".join(sorted(_SEPARATORS)))
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = list(lexer)
    except ValueError:  # unbalanced quote
        tokens = command.split()
    words: list[str] = []
    is_target = False
    for token in tokens:
        if not set(token) <= _SEPARATORS or not token:
            if not is_target:
                words.append(token)
            is_target = False
        elif set(token) & {"<", ">"}:
            is_target = True
        else:
            yield words
            words, is_target = [], False
    yield words


def _bare(words: list[str]) -> list[str]:
    """Strip assignments, keywords and programs that only start another one."""
    while words:
        program = os.path.basename(words[0])
        if _ASSIGNED.fullmatch(words[0]) or words[0] in _BEFORE:
            words = words[1:]
        elif (program, *words[1:2]) in _RUNNERS:
            words = _after_options(words[2:])
        elif program in _WRAPPERS:
            words = _after_options(words[1:])
            if program == "timeout":
                words = words[1:]
        else:
            break
    return words


def _after_options(words: list[str], valued: set[str] = _VALUED) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in valued else words[1:]
    return words


def _run(words: list[str], ground: _SearchRoot, deep: int) -> Iterator[CheckDefinition]:
    program, rest = os.path.basename(words[0]), words[1:]
    if "/" in words[0] or program.endswith(_SCRIPTS):
        place = ground.place(words[0])
        if place and not _INSTALLED & set(place.split("/")):
            yield CheckDefinition(place)
    if program in ("source", ".") and rest:
        yield from ground.files(rest[0])
    elif program == "eval":
        yield from _read(" ".join(rest), ground, deep - 1)
    elif program in _SHELLS:
        yield from _shell(rest, ground, deep)
    elif _SCRIPTED.fullmatch(program) or (program == "coverage" and rest[:1] == ["run"]):
        yield from _script(program, rest[program == "coverage" :], ground, deep)
    elif program in _TOOLS:
        yield from _TOOLS[program](rest, ground)


def _shell(rest: list[str], ground: _SearchRoot, deep: int) -> Iterator[CheckDefinition]:
    """Handle `bash x.sh` and `bash -c "command"`."""
    takes_command = any(re.fullmatch(r"-[a-z]*c[a-z]*", word) for word in rest[: _options(rest)])
    rest = _after_options(rest, _SCRIPT_VALUED)
    if rest and takes_command:
        yield from _read(rest[0], ground, deep - 1)
    elif rest:
        yield from ground.files(rest[0])


def _script(program: str, rest: list[str], ground: _SearchRoot, deep: int) -> Iterator[CheckDefinition]:
    """Handle `python x.py`, and `python -m x` as the program x. Files given to a test runner are tests."""
    options = rest[: _options(rest)]
    if "-m" in rest and not program.startswith(("node", "ruby", "perl")):
        module = rest[rest.index("-m") + 1 :] or ["-"]
        yield from _in_its_place(module[0].replace(".", "/"), ground)
        yield from _run(module, ground, deep)
        return
    if program == "deno" and rest[:1] == ["test"]:
        return
    if program == "deno" and rest[:1] == ["run"]:
        rest = rest[1:]
    if any(word in ("-c", "-e", "-p", "--eval", "--print") or word.startswith("--test") for word in options):
        return
    rest = _after_options(rest, _SCRIPT_VALUED)
    if rest:
        yield from ground.files(rest[0])


def _in_its_place(module: str, ground: _SearchRoot) -> Iterator[CheckDefinition]:
    """Yield the files that would shadow the module. A package that already exists is the project's own code."""
    yield from ground.files(f"{module}.py")
    if not os.path.isdir(os.path.join(ground.top, ground.folder, module)):
        yield from ground.files(f"{module}/__init__.py", f"{module}/__main__.py")


def _options(words: list[str]) -> int:
    """Return the number of words before the first one that is not an option."""
    return len(words) - len(_after_options(words, _SCRIPT_VALUED))


def _option(rest: list[str], *names: str) -> str | None:
    """Return the value of an option given as `-f x` or `--file=x`."""
    for number, word in enumerate(rest):
        if word in names:
            return rest[number + 1] if number + 1 < len(rest) else None
        for name in names:
            if name.startswith("--") and word.startswith(f"{name}="):
                return word.partition("=")[2]
    return None


def _moved(rest: list[str], ground: _SearchRoot, *names: str) -> _SearchRoot:
    folder = _option(rest, *names)
    return ground._replace(folder=ground.place(folder) or ground.folder) if folder else ground


def _make(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    ground = _moved(rest, ground, "-C", "--directory")
    named = _option(rest, "-f", "--file", "--makefile")
    yield from ground.files(*([named] if named else ["GNUmakefile", "makefile", "Makefile"]))


def _npm(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    for one in _moved(rest, ground, "--prefix", "-C", "--dir", "--cwd").upward():
        yield from one.files("package.json", section="npm")


def _pytest(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    """Yield pytest's settings files. It searches from the given files upward, so a new one closer to them would win."""
    named = _option(rest, "-c", "--config-file")
    yield from ground.files(*([named] if named else []))
    starts = [ground]
    for word in rest:
        place = ground.place(word.partition("::")[0])
        if place and not word.startswith("-") and os.path.exists(os.path.join(ground.top, place)):
            is_folder = os.path.isdir(os.path.join(ground.top, place))
            starts.append(ground._replace(folder=place if is_folder else os.path.dirname(place)))
    for one in dict.fromkeys(above for start in starts for above in start.upward()):
        yield from one.files("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
        yield from one.files("pyproject.toml", "tox.ini", "setup.cfg", section="pytest")


def _tox(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    named = _option(rest, "-c", "--conf")
    yield from ground.files(*([named] if named else ["tox.ini", "tox.toml"]))
    yield from ground.files("pyproject.toml", "setup.cfg", section="tox")


def _just(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    named = _option(rest, "-f", "--justfile")
    yield from ground.files(*([named] if named else []))
    for one in ground.upward():
        yield from one.files("justfile", ".justfile", "Justfile")


def _cargo(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    for one in ground.upward():
        yield from one.files(".cargo/config.toml", ".cargo/config")


def _nox(rest: list[str], ground: _SearchRoot) -> Iterator[CheckDefinition]:
    yield from ground.files(_option(rest, "-f", "--noxfile") or "noxfile.py")


_TOOLS: dict[str, Callable[[list[str], _SearchRoot], Iterator[CheckDefinition]]] = {
    **dict.fromkeys(("make", "gmake"), _make),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _npm),
    **dict.fromkeys(("pytest", "py.test"), _pytest),
    "tox": _tox,
    "just": _just,
    "cargo": _cargo,
    "nox": _nox,
}
