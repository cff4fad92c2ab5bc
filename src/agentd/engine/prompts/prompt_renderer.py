"""Render a prompt from its file and values. A repository's own prompts are used only if they are trusted."""

import re
import traceback
from collections.abc import Collection, Mapping
from importlib import resources

from agentd.domain import AgentdError, Bug, NotTrusted, SetupError, nearest_word, printable
from agentd.project import Project, is_trusted, prompt_item, prompt_overrides

PlainValue = str | int | bool | list["PlainValue"] | dict[str, "PlainValue"]

_FOLDER = "agentd/prompts"  # of a project


class InvalidPrompt(SetupError):
    """A prompt of the project cannot be used; the message names the file and the line."""


def render_prompt(project: Project, environ: Mapping[str, str], name: str, **values: object) -> str:
    """Return the prompt as the agent reads it. It begins with a word and ends with one newline."""
    from jinja2 import FunctionLoader, StrictUndefined  # late: only commands that ask an agent need it
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    file, shipped, overrides = f"{name}.md", _shipped_prompts(), prompt_overrides(project)
    for override in overrides:
        if override not in shipped:
            near = nearest_word(override, shipped)
            hint = f"rename it to {near}, or remove it" if near else f"remove it; there are {', '.join(shipped)}"
            raise InvalidPrompt(f"{_FOLDER}/{printable(override)} is not a prompt that agentd knows", hint)

    def load(file: str) -> tuple[str, str, None] | None:
        """Return the text of a file and its name in messages."""
        if file in overrides:
            return _trusted_text(project, environ, file, overrides[file]), f"{_FOLDER}/{file}", None
        return (shipped[file], file, None) if file in shipped else None

    jinja = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        autoescape=False,  # this is not a page for a browser
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.globals.clear()  # a prompt has its values and nothing else
    plain = {key: _copy_plain(value, key) for key, value in values.items()}
    shown = f"{_FOLDER}/{file}" if file in overrides else file
    try:
        text = tidy_prompt(jinja.get_template(file).render(plain))
    except AgentdError:
        raise
    except Exception as error:  # a template may fail in any way that Python can
        templates = {f"{_FOLDER}/{override}" for override in overrides} | shipped.keys()
        raise _template_error(error, shown, templates, plain) from error
    if not text[:1].isalnum():
        problem = f"it begins with {text[:1]!r}" if text.strip() else "it is empty"
        if file not in overrides:
            raise Bug(f"the prompt {file}: {problem}")
        hint = "begin it with a plain word: some CLIs take /, @, # and - for commands"
        raise InvalidPrompt(f"{shown} line 1: {problem}", hint)
    return text


def _trusted_text(project: Project, environ: Mapping[str, str], file: str, data: bytes) -> str:
    if not is_trusted(project, prompt_item(file, data), environ):
        raise NotTrusted(f"you have not trusted {_FOLDER}/{file}, which this repository wants to send to agents")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidPrompt(f"{_FOLDER}/{file} line {line}: this is not UTF-8 text", "save it as UTF-8") from None


def tidy_prompt(text: str) -> str:
    """Leave at most one empty line, one newline at the end, and nothing that a CLI takes for a file to include."""
    lines = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    apart = re.sub(r"@(?=\S)", "@ ", lines)  # some CLIs include the file named after the sign
    return re.sub(r"\n{3,}", "\n\n", apart).strip() + "\n"


def _shipped_prompts() -> dict[str, str]:
    files = sorted(resources.files(__package__).iterdir(), key=lambda file: file.name)
    return {file.name: file.read_text("utf-8") for file in files if file.name.endswith(".md")}


def _copy_plain(value: object, name: str) -> PlainValue:
    """Return a copy of plain types only, so that a template can reach nothing else."""
    match value:
        case bool():
            return value
        case int():
            return int(value)
        case str():
            return str(value)
        case list() | tuple():
            return [_copy_plain(one, f"{name}[{number}]") for number, one in enumerate(value)]
        case dict() if all(isinstance(key, str) for key in value):
            return {str(key): _copy_plain(one, f"{name}.{key}") for key, one in value.items()}
    raise TypeError(f"{name} is {type(value).__name__}, and prompts take plain values only")


def _template_error(
    error: Exception, file: str, templates: Collection[str], values: Mapping[str, PlainValue]
) -> AgentdError:
    """Name the innermost template in the traceback, which Jinja writes in terms of template lines."""
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    file, line = next((frame for frame in reversed(frames) if frame[0] in templates), (file, 0))
    where = f"{file} line {line}" if line else file
    problem = _problem(error)
    if not file.startswith(_FOLDER):
        return Bug(f"the prompt {where}: {problem}")
    hint = f"fix it, or remove the file to use agentd's own; it can use {', '.join(sorted(values))}"
    return InvalidPrompt(f"{where}: {problem}", hint)


def _problem(error: Exception) -> str:
    from jinja2 import TemplateNotFound, UndefinedError  # late: see above

    message = str(getattr(error, "message", None) or error or type(error).__name__)
    if isinstance(error, TemplateNotFound):
        return f"there is no prompt {printable(message)} to include"
    names = re.findall(r"'([^']*)'", message)
    if isinstance(error, UndefinedError) and names:
        return f"there is no value {printable(names[-1])}"
    if isinstance(error, RecursionError):
        return "it includes itself"
    return printable(message)
