"""A prompt from its file and its values. Of a repository's own files only trusted ones are used."""

import re
import traceback
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING

from agentd.domain import AgentdError, Bug, NotTrusted, SetupError, nearest_word, printable
from agentd.project import Project, is_trusted, prompt_item, prompt_overrides

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment


PlainValue = str | int | bool | list["PlainValue"] | dict[str, "PlainValue"]

_OWN = "agentd/prompts"  # of a project
_QUOTED = re.compile(r"'([^']*)'")


class InvalidPrompt(SetupError):
    """A prompt of the project that cannot be used; it names the file and the line."""


class Prompts:
    """The prompts that are in force in a project, for this user."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self._project = project
        self._environ = environ

    def render(self, name: str, **values: object) -> str:
        """What the agent reads. It begins with a word and ends with one newline."""
        file = f"{name}.md"
        own = self._own()
        plain = {key: _plain(value, key) for key, value in values.items()}
        try:
            text = tidy_prompt(self._jinja(own).get_template(file).render(plain))
        except AgentdError:
            raise
        except Exception as error:  # a template may fail in any way that Python can
            raise _told(error, own, file, plain) from error
        if not text[:1].isalnum():
            raise _begins_badly(text, own, file)
        return text

    def _own(self) -> Mapping[str, bytes]:
        """The project's own files, each of a name that agentd knows."""
        own = prompt_overrides(self._project)
        known = _shipped()
        for name in own:
            if name not in known:
                near = nearest_word(name, known)
                hint = f"rename it to {near}, or remove it" if near else f"remove it; there are {', '.join(known)}"
                raise InvalidPrompt(f"{_OWN}/{printable(name)} is not a prompt that agentd knows", hint)
        return own

    def _jinja(self, own: Mapping[str, bytes]) -> "SandboxedEnvironment":
        from jinja2 import FunctionLoader, StrictUndefined  # late: only commands that ask an agent need it
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        jinja = ImmutableSandboxedEnvironment(
            loader=FunctionLoader(lambda file: self._source(own, file)),
            undefined=StrictUndefined,
            autoescape=False,  # this is no page for a browser
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        jinja.globals.clear()  # a prompt has its values and nothing else
        return jinja

    def _source(self, own: Mapping[str, bytes], file: str) -> tuple[str, str, None] | None:
        """The text of a file and what it is called in a message."""
        if file not in own:
            known = _shipped()
            return (known[file], file, None) if file in known else None
        if not is_trusted(self._project, prompt_item(file, own[file]), self._environ):
            raise NotTrusted(f"you have not trusted {_OWN}/{file}, which this repository wants agents to be asked")
        try:
            return own[file].decode("utf-8-sig"), f"{_OWN}/{file}", None
        except UnicodeDecodeError as error:
            line = own[file].count(b"\n", 0, error.start) + 1
            raise InvalidPrompt(
                f"{_OWN}/{file} line {line}: this is not UTF-8 text", "write it anew as UTF-8"
            ) from None


def tidy_prompt(text: str) -> str:
    """One empty line at most, one newline at the end, and nothing that a CLI would take for a file to add."""
    lines = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    apart = re.sub(r"@(?=\S)", "@ ", lines)  # some CLIs put the file in that follows the sign
    return re.sub(r"\n{3,}", "\n\n", apart).strip() + "\n"


def _shipped() -> dict[str, str]:
    files = sorted(resources.files(__package__).iterdir(), key=lambda file: file.name)
    return {file.name: file.read_text("utf-8") for file in files if file.name.endswith(".md")}


def _plain(value: object, name: str) -> PlainValue:
    """Copied down to plain types, so that a template finds nothing else to hold on to."""
    match value:
        case bool():
            return value
        case int():
            return int(value)
        case str():
            return str(value)
        case list() | tuple():
            return [_plain(one, f"{name}[{number}]") for number, one in enumerate(value)]
        case dict() if all(isinstance(key, str) for key in value):
            return {str(key): _plain(one, f"{name}.{key}") for key, one in value.items()}
    raise TypeError(f"{name} is {type(value).__name__}, and prompts take plain values only")


# ---- what went wrong, and where


def _told(error: Exception, own: Mapping[str, bytes], file: str, values: Mapping[str, PlainValue]) -> AgentdError:
    file, line = _place(error, own, file)
    where = f"{file} line {line}" if line else file
    problem = _problem(error)
    if not file.startswith(_OWN):
        return Bug(f"the prompt {where}: {problem}")
    hint = f"fix it, or remove the file to use agentd's own; it can use {', '.join(sorted(values))}"
    return InvalidPrompt(f"{where}: {problem}", hint)


def _place(error: Exception, own: Mapping[str, bytes], file: str) -> tuple[str, int]:
    """The innermost template in the traceback, which Jinja writes in terms of their lines."""
    shown = {f"{_OWN}/{name}" for name in own} | _shipped().keys()
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    found = [(name, line) for name, line in frames if name in shown]
    if found:
        return found[-1]
    return (f"{_OWN}/{file}" if file in own else file), 0


def _problem(error: Exception) -> str:
    from jinja2 import TemplateNotFound, UndefinedError  # late: see above

    message = str(getattr(error, "message", None) or error or type(error).__name__)
    if isinstance(error, TemplateNotFound):
        return f"there is no prompt {printable(message)} to include"
    named = _QUOTED.findall(message)
    if isinstance(error, UndefinedError) and named:
        return f"there is no value {printable(named[-1])}"
    if isinstance(error, RecursionError):
        return "it includes itself"
    return printable(message)


def _begins_badly(text: str, own: Mapping[str, bytes], file: str) -> AgentdError:
    if file not in own:
        return Bug(f"the prompt {file} begins with {text[:1]!r}")
    what = f"it begins with {text[:1]!r}" if text.strip() else "it is empty"
    hint = "begin it with a plain word: some CLIs take /, @, # and - for commands"
    return InvalidPrompt(f"{_OWN}/{file} line 1: {what}", hint)
