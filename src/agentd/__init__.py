"""agentd takes a change from one sentence to reviewed specs, tested code and an up-to-date spec archive."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def lazy_exports(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: it imports an exported name when the name is first used.

    The package's `__init__` lists its exports as imports below `if TYPE_CHECKING:`. They are read from its source, so
    that the list exists once and a command imports only the modules it uses.
    """
    exports: dict[str, str] = {}

    def load(name: str) -> Any:
        if not exports:
            exports.update(_read_exports(package))
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(exports[name])
        value = getattr(module, name) if exports[name] != f"{package}.{name}" else module
        setattr(sys.modules[package], name, value)
        return value

    return load


def _read_exports(package: str) -> dict[str, str]:
    """The module of each exported name."""
    import re

    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package)  # type: ignore[union-attr]
    exports = {}
    for module, several, one in re.findall(r"^    from (\S+) import (?:\(([^)]*)\)|(.*))$", source, re.MULTILINE):
        for name in re.findall(r"\w+", several or one):
            exports[name] = f"{package}.{name}" if module == package else module
    exports.pop("lazy_exports")
    return exports
