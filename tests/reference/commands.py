"""commands.md: every command with its arguments, options and defaults, from click's own objects."""

from collections.abc import Iterator

import click

from agentd.cli.app import ALIASES, app, command_groups
from reference.markdown import code, paragraphs, plain, table

_HEAD = """# Commands

Every command takes `-h` and `--help`, and, before it or behind, `-q` or `--quiet` (no progress and no notes) and `-v`
or `--verbose` (all that agents do). `ID` is the id of a change: lower-case letters, digits and dashes, at most 64.
What the exit codes mean is in [exit-codes.md](exit-codes.md).

"""
_DETAILS = ("option", "value", "default", "meaning")


def page() -> str:
    groups = command_groups()
    return _HEAD + "\n".join(
        [
            *(_overview(title, names) for title, names in groups.items()),
            f"## Before the command\n\n{_options(app)}",
            *(_command(name) for names in groups.values() for name in names),
            _aliases(),
        ]
    )


def named(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found, f"there is no command {name}"
    return found


def _overview(title: str, names: dict[str, str]) -> str:
    rows = [[f"[agentd {name}](#agentd-{name})", plain(words)] for name, words in names.items()]
    return f"## {title}\n\n{table(('command', ''), rows)}"


def _command(name: str) -> str:
    command = named(name)
    needed = [one for one in command.params if isinstance(one, click.Argument) or one.required]
    usage = " ".join(["agentd", name, *map(_usage, needed)])
    return f"## agentd {name}\n\n```sh\n{usage}\n```\n\n{paragraphs(command.help or '')}\n\n{_options(command)}"


def _usage(parameter: click.Parameter) -> str:
    """A value that must be there as it is, one that may be left out in brackets."""
    if isinstance(parameter, click.Option):
        return f"{parameter.opts[0]} {_value(parameter)}"
    return _value(parameter) if parameter.required else f"[{_value(parameter)}]"


def _options(command: click.Command) -> str:
    rows = [list(_row(one)) for one in command.params if isinstance(one, click.Option) and not one.hidden]
    return table(_DETAILS, rows) if rows else ""


def _row(option: click.Option) -> Iterator[str]:
    names = [", ".join(sorted(option.opts, key=len)), *option.secondary_opts]
    yield code(" / ".join(names))
    yield "" if option.is_flag else code(_value(option)) + (", more than once" if option.multiple else "")
    yield "required" if option.required else _default(option)
    yield plain(option.help or "")


def _value(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return "|".join(map(str, parameter.type.choices))
    words = parameter.metavar or (parameter.name or "").upper()
    low, high = (getattr(parameter.type, name, None) for name in ("min", "max"))
    return words + (f" ({low}…{high})" if high is not None else f" (at least {low})" if low is not None else "")


def _default(option: click.Option) -> str:
    """What says nothing, or that nothing is said, is left out."""
    default = option.default
    if option.secondary_opts and default is True:
        return code(option.opts[0])
    return code(default) if isinstance(default, str | int | float) and not isinstance(default, bool) else ""


def _aliases() -> str:
    rows = [[code(f"agentd {old}"), code(f"agentd {new}")] for old, new in ALIASES.items()]
    return f"## Words of older versions\n\nThey still work, and are not listed.\n\n{table(('word', 'is'), rows)}"
