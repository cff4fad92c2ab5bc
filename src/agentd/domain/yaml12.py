"""Parse and write YAML by the 1.2 core schema, as plain data.

`no` is a string, a timestamp is a string, and duplicate keys are errors. Anchors are refused: they can exhaust memory,
and no file that agentd reads needs them.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml import events
from yaml._yaml import CParser

from agentd.domain.errors import AgentdError

DEPTH = 100
WIDTH = 150


class InvalidYaml(AgentdError):
    """The text is not valid YAML 1.2; the caller names the file."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class FlowList(list[Any]):
    """A list written on one line: `[a, b]`."""


_CORE: tuple[tuple[str, str, str, Callable[[str], Any]], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN", lambda text: None),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text[0] in "tT"),
    ("int", r"[-+]?[0-9]+", "-+0123456789", int),
    ("int", r"0o[0-7]+|0x[0-9a-fA-F]+", "0", lambda text: int(text, 0)),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789", float),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.", lambda t: float(t.replace(".", "", 1))),
)
_NOT_TEXT = {"", *(char for _, _, first, _ in _CORE for char in first)}
_PLAIN = tuple((re.compile(pattern), make) for _, pattern, _, make in _CORE)
# Unicode line breaks, which YAML parsers treat differently unless they are escaped.
_ODD_BREAKS = re.compile("[\x85\u2028\u2029]")
_STR_TAG = "tag:yaml.org,2002:str"


def load(text: str) -> Any:
    """Return the document as plain data; None if it is empty."""
    try:
        return _build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        last = text.count("\n") + (not text.endswith("\n"))  # the parser may report a line past the end
        raise InvalidYaml(error.problem or "not YAML", min(mark.line + 1, last) if mark else 1) from None
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise InvalidYaml(str(error).splitlines()[0], 1) from None


def _build(text: str) -> Any:
    """Build data from events without recursion, so that deep nesting cannot overflow the stack."""
    root: list[Any] = []
    open_values: list[Any] = [root]
    keys: list[Any] = [_NO_KEY]  # for each open mapping, the key whose value comes next
    parser = CParser(text)
    while True:
        event: Any = parser.get_event()
        kind = type(event)
        line = event.start_mark.line + 1
        if kind is events.ScalarEvent:
            value = _scalar(event, line)
        elif kind is events.SequenceStartEvent or kind is events.MappingStartEvent:
            if len(open_values) > DEPTH:
                raise InvalidYaml(f"nested more than {DEPTH} deep", line)
            open_values.append([] if kind is events.SequenceStartEvent else {})
            keys.append(_NO_KEY)
            continue
        elif kind is events.SequenceEndEvent or kind is events.MappingEndEvent:
            value = open_values.pop()
            keys.pop()
        elif kind is events.AliasEvent:
            raise InvalidYaml("anchors and aliases are not read here; write the value out", line)
        elif kind is events.StreamEndEvent:
            return root[0] if root else None
        elif kind is events.DocumentStartEvent and root:
            raise InvalidYaml("a second document starts here", line)
        else:
            continue
        target = open_values[-1]
        if type(target) is list:
            target.append(value)
        elif keys[-1] is _NO_KEY:
            keys[-1] = _key(value, target, line)
        else:
            target[keys[-1]] = value
            keys[-1] = _NO_KEY


_NO_KEY = object()


def _key(value: Any, target: dict[Any, Any], line: int) -> Any:
    if isinstance(value, list | dict):
        raise InvalidYaml("a key must be a plain word", line)
    if value in target:
        raise InvalidYaml(f"the key '{value}' occurs twice", line)
    return value


def _scalar(event: events.ScalarEvent, line: int) -> Any:
    if event.tag not in (None, "!", _STR_TAG):
        raise InvalidYaml(f"the tag {event.tag} is not read here", line)
    if event.tag is None and event.implicit[0] and event.value[:1] in _NOT_TEXT:
        for pattern, make in _PLAIN:
            if pattern.fullmatch(event.value):
                return make(event.value)
    return event.value


class _Dumper(yaml.SafeDumper):
    """Write block style with lists indented under their key, which the C dumper does not support."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first, _ in _CORE:
    _starts = [*_first, ""] if _tag == "null" else list(_first)
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _starts)


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if _ODD_BREAKS.search(text):
        style = '"'
    return dumper.represent_scalar(_STR_TAG, text, style=style)


def _represent_flow(dumper: yaml.SafeDumper, items: FlowList) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(str, _represent_str)
_Dumper.add_representer(FlowList, _represent_flow)


def dump(data: Any) -> str:
    """Return the data as YAML: block style, keys in order, long lines folded."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text
