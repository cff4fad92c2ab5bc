"""The pages of docs/reference/ and the picture of the state machine, made from the code: `make docs` writes them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from reference import commands, endings, happenings, layout, machine, settings, toolbox

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
MADE = "<!-- Made from the code by `make docs`; do not edit. -->\n\n"
DECIDES = "explanation/how-it-decides.md"


def _decides() -> str:
    return machine.into((DOCS / DECIDES).read_text(encoding="utf-8"))


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": lambda: MADE + commands.page(),
    "reference/config.md": lambda: MADE + settings.page(),
    "reference/exit-codes.md": lambda: MADE + endings.page(),
    "reference/mcp-tools.md": lambda: MADE + toolbox.page(),
    "reference/events.md": lambda: MADE + happenings.page(),
    "reference/files.md": lambda: MADE + layout.page(),
    DECIDES: _decides,
}
"""How each text is made, by its path below docs/."""


def write() -> None:
    for name, made in PAGES.items():
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(made(), encoding="utf-8")
