"""The documentation says what the code does: the reference is made from it, and every command that is shown exists."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import reference
from agentd.agents import playbook
from agentd.cli.app import ALIASES, all_commands, app
from agentd.demo.playback import typed_command as played
from agentd.demo.story import ACTS
from agentd.domain import yaml12
from agentd.domain.state_machine import TRANSITIONS, TransitionEvent
from agentd.project.config.config_schema import SCHEMA
from reference import commands, endings, layout, machine, settings
from reference.types_in_words import rows_of

ROOT = reference.ROOT
PAGES = [ROOT / "README.md", *sorted(path for path in reference.DOCS.rglob("*.md") if "adr" not in path.parts)]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def fenced(path: Path, *languages: str) -> list[str]:
    return [text for language, text in _FENCED.findall(path.read_text()) if language in languages]


def shown(path: Path) -> Iterator[str]:
    """Every command of agentd on a page: lines of its shell blocks and workflows, and what stands in backticks."""
    text = path.read_text()
    for line in "\n".join(fenced(path, "sh", "yaml")).splitlines():
        start = line.find("agentd ")
        if start >= 0 and line[:start].strip() in ("", "- run:"):
            yield line[start:]
    for span in _SPAN.findall(_FENCED.sub("", text)):
        if re.match(r"agentd\s+[a-z-]", span):
            yield " ".join(span.split())


def typed(line: str) -> None:
    """The words of a command as click takes them, without running it; what click refuses, this raises."""
    words = [word for word in shlex.split(re.split(r"\s(?:>|\|\|?|&&)\s", line)[0]) if not word.startswith("[")][1:]
    group = click.Context(app)
    options, words, _ = app.make_parser(group).parse_args(words)
    if not words:
        assert options, f"{line}: no command"
        return
    assert words[0] in {*all_commands(), *ALIASES}, f"{line}: there is no command {words[0]}"
    command = commands.named(words[0])
    context = click.Context(command, info_name=words[0])
    values, left, order = command.make_parser(context).parse_args(words[1:])
    assert not left, f"{line}: {left} is too much"
    for parameter in order:
        value = values.get(parameter.name or "")
        if isinstance(parameter.type, click.Choice) and isinstance(value, str) and "|" not in value:
            parameter.type.convert(value, parameter, context)


def written(path: Path) -> Iterator[Any]:
    yield from (yaml12.load(text) for text in fenced(path, "yaml"))


# ---- what is made


@pytest.mark.parametrize("name", reference.PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert (reference.DOCS / name).read_text() == reference.PAGES[name](), f"docs/{name} is stale: run `make docs`"


def test_reference_lists_every_command_with_every_option() -> None:
    page = (reference.DOCS / "reference/commands.md").read_text()
    for name in all_commands():
        part = page.partition(f"## agentd {name}\n")[2].partition("\n## ")[0]
        options = [one for one in commands.named(name).params if isinstance(one, click.Option) and not one.hidden]
        missing = [word for one in options for word in one.opts if word not in part]
        assert part and not missing, f"{name} lacks {missing}"


def test_every_config_key_is_documented() -> None:
    words = settings.told()
    keys = {f"{one.name}.{key}".lstrip("."): one for one in settings.sections() for key in one.keys}
    assert {key.partition(".")[0] for key in keys} == set(SCHEMA.keys)
    dumb = [key for key, one in keys.items() if not (words.keys.get(key) or words.sections.get(one.name))]
    assert dumb == []


def test_every_exit_code_is_documented() -> None:
    assert set(endings.MEANINGS) == {0, *(one.exit_code for one in endings.tree())}


def test_local_state_is_documented_as_used_by_the_source() -> None:
    assert set(layout.ROOM) == layout.rooms_used()


def test_every_key_of_state_and_records_is_documented() -> None:
    for cls, said in layout.SAID.items():
        told = {name for name, _, words in rows_of(cls) if words}
        assert not told & set(said), f"the source says it of {cls.__name__} by itself"
        assert told | set(said) == {name for name, *_ in rows_of(cls)}


def test_state_diagram_has_every_transition_except_drop() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+): (.*)$", machine.picture(), re.MULTILINE)
    drawn = {(phase, event, to) for phase, to, events in arrows for event in events.split(", ")}
    moves = {
        (str(p), str(e), str(to))
        for p, row in TRANSITIONS.items()
        for e, to in row.items()
        if e is not TransitionEvent.DROPPED
    }
    assert drawn == moves


# ---- what is written


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_documented_command_is_valid(path: Path) -> None:
    for line in shown(path):
        try:
            typed(line)
        except (click.UsageError, ValueError) as error:
            pytest.fail(f"{named(path)}: {line}: {error}")


def test_tutorial_contains_the_commands_of_the_demo() -> None:
    """The heart of it is what `agentd demo` types, word for word."""
    lines = "\n".join(fenced(reference.DOCS / "tutorial.md", "sh")).splitlines()
    assert [line for line in lines if line in {played(act) for act in ACTS}] == [played(act) for act in ACTS]


@pytest.mark.parametrize("line", ["agentd plann ID", "agentd plan ID --fast", "agentd plan ID --git nowhere"])
def test_invalid_documented_command_is_detected(line: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        typed(line)


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_link_target_exists(path: Path) -> None:
    for target in _LINK.findall(_FENCED.sub("", path.read_text())):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{named(path)}: {target}"
        if anchor:
            found = {
                re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in _HEADING.findall(there.read_text())
            }
            assert anchor in found, f"{named(path)}: {target}"


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md" and page.is_file():
            seen.add(page)
            waiting += [(page.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(page.read_text())]
    assert set(PAGES) - seen == set()


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_documented_configuration_is_valid(path: Path) -> None:
    for text in fenced(path, "toml"):
        assert [problem.message for problem in SCHEMA.problems(tomllib.loads(text), ())] == []


def test_documented_playbook_is_valid() -> None:
    [text] = fenced(reference.DOCS / "how-to/bring-your-own-agent.md", "yaml")
    assert playbook.parse_playbook(text, "playbook.yaml").entries


def test_documented_ci_workflows_are_pinned_and_have_few_permissions() -> None:
    page = reference.DOCS / "how-to/ci.md"
    programs = json.loads((ROOT / "tests/loopback/package.json").read_text())["dependencies"]
    pinned = {f"{name}@{version}" for name, version in programs.items()} | {'"$AGENTD"'}
    for text, workflow in zip(fenced(page, "yaml"), written(page), strict=True):
        used = re.findall(r"uses: (\S+)", text)
        assert used and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one) for one in used)
        installed = re.findall(r"(?:pipx install|npm install --global) (.+)", text)
        assert installed and {word for line in installed for word in line.split()} <= pinned
        assert workflow["permissions"] in ({}, {"contents": "read"})
        assert "pull_request_target" not in text
        assert "secrets." not in text or "pull_request" not in text
        scripts = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
        assert not [script for script in scripts if "${{" in script], "an input would become part of a script"


def test_files_named_in_the_readme_exist() -> None:
    spans = _SPAN.findall(_FENCED.sub("", (ROOT / "README.md").read_text()))
    files = [span for span in spans if re.fullmatch(r"(?:src|tests|docs)/\S+", span)]
    assert files and [name for name in files if not (ROOT / name).exists()] == []
