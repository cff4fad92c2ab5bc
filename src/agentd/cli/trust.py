"""`agentd trust`: what this repository wants to run, shown so that nothing can hide in it, trusted if you say so."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from agentd.cli import output, text_table
from agentd.domain import NotTrusted, Refusal
from agentd.project import (
    Config,
    Project,
    TrustKind,
    TrustState,
    TrustStatus,
    find_project,
    grant_trust,
    load_config,
    printable,
    revoke_trust,
    trust_refusal,
    trust_states,
    untrusted_items,
)

trust_option = click.option(
    "--trust", "trusting", is_flag=True, help="Trust the commands of this repository and go on."
)

_COLOURS = {TrustStatus.TRUSTED: "green", TrustStatus.NEW: "yellow", TrustStatus.CHANGED: "red"}
_PROMPT_LINES = 40  # a prompt is a page to read in an editor; a command is always shown whole
_HIDDEN_SPACES = 16
_HIDDEN_LINES = 4
# Printable by the book, but nothing is seen of them: fillers, joiners, selectors and blanks.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


@click.command("trust")
@click.option("--yes", "-y", is_flag=True, help="Trust what is shown without being asked.")
@click.option("--revoke", is_flag=True, help="Take back all trust in this repository.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, yes: bool, revoke: bool, as_json: bool) -> int:
    """Show the commands this repository wants to run, and trust them if you say so.

    Checks, agents, the set-up of work trees and prompts come with a repository, so none of them
    is used before you have seen it. Whatever changes must be trusted again.
    """
    project = find_project()
    if revoke:
        return _revoke(project, as_json)
    settings = load_config(project.config_file, flags=ctx.find_root().obj or ())
    found = trust_states(project, settings, os.environ)
    left = _untrusted(found)
    asking = bool(left) and not yes
    if asking and not output.interactive(as_json, yes):
        return _refuse(project, found, left, as_json)
    if asking:
        output.report(_listing(found))
        if not _asked(left):
            raise Refusal("nothing was trusted", "agentd trust asks again")
    _give(project, left)
    shown = [] if asking or not found else [_listing(found)]
    data = _data(project, found, left)
    return output.show_result("trust", as_json, data, lambda: "\n".join([*shown, *output.prose(_closing(found, left))]))


def ensure_trust(project: Project, settings: Config, trusting: bool, interactive: bool) -> None:
    """Before a workflow: what it may run is trusted, by asking on a terminal or by `--trust`; else NotTrusted."""
    left = untrusted_items(project, settings, os.environ)
    if not left:
        return
    if trusting:
        output.report("Trusted by --trust: " + ", ".join(_visible(one.item.key) for one in left))
    elif not interactive:
        raise trust_refusal(project, left, os.environ)
    else:
        output.report(_listing(left))
        if not _asked(left):
            raise NotTrusted("nothing was trusted, so nothing was run")
    _give(project, left)


def _refuse(project: Project, found: Sequence[TrustState], left: Sequence[TrustState], as_json: bool) -> int:
    are = "is" if len(left) == 1 else "are"
    error = NotTrusted(f"{len(left)} of {len(found)} {are} not trusted", "read what is shown, then agentd trust --yes")
    output.show_result("trust", as_json, _data(project, found, ()), lambda: _listing(found), error.exit_code, error)
    if as_json:
        return error.exit_code
    raise error


def _revoke(project: Project, as_json: bool) -> int:
    count = revoke_trust(project, os.environ)
    data = {"project": str(project.root), "revoked": count}
    words = f"Taken back: {count}. Nothing of this repository is trusted now." if count else "Nothing was trusted here."
    return output.show_result("trust", as_json, data, lambda: words)


def _give(project: Project, left: Sequence[TrustState]) -> None:
    if left:
        grant_trust(project, [one.item for one in left], os.environ)


def _asked(left: Sequence[TrustState]) -> bool:
    return click.confirm(f"Trust {'this one' if len(left) == 1 else f'these {len(left)}'}?", default=False, err=True)


def _untrusted(found: Sequence[TrustState]) -> list[TrustState]:
    return [one for one in found if one.status is not TrustStatus.TRUSTED]


def _data(project: Project, found: Sequence[TrustState], given: Sequence[TrustState]) -> dict[str, Any]:
    """How it stood when it was looked at, and what is trusted since."""
    return {
        "project": str(project.root),
        "items": [
            {
                "kind": str(one.item.kind),
                "name": one.item.name,
                "status": str(one.status),
                "hash": one.item.hash,
                "text": one.item.text,
                "was": one.was.text if one.was else None,
            }
            for one in found
        ],
        "given": [one.item.hash for one in given],
        "trusted": len(given) == len(_untrusted(found)),
    }


# ---- what a person sees ---------------------------------------------------------------------------


def _closing(found: Sequence[TrustState], given: Sequence[TrustState]) -> str:
    if not found:
        return "This repository wants nothing run that would need your trust."
    if not given:
        return "All of it is trusted."
    return "Trusted. What changes will be asked about again; agentd trust --revoke takes it back."


def _listing(found: Sequence[TrustState]) -> str:
    return "\n".join(line for one in found for line in (*_lines(one), ""))


def _lines(one: TrustState) -> Iterator[str]:
    status = output.paint(str(one.status), fg=_COLOURS[one.status], bold=True)
    yield f"{output.paint(_visible(one.item.key), bold=True)}  {status}"
    shown = list(_marked(one))
    if one.item.kind is TrustKind.PROMPT and len(shown) > _PROMPT_LINES:
        left = len(shown) - _PROMPT_LINES
        shown = [*shown[:_PROMPT_LINES], ("…", f"{left} more lines: read agentd/prompts/{one.item.name}")]
    for mark, text in _dense(shown):
        for part in _folded(_visible(text)):
            yield f"  {mark.ljust(3)} | {part}"


def _marked(one: TrustState) -> Iterator[tuple[str, str]]:
    """Lines, each with what it is: nothing, `was` and `now`, or the marks of a difference."""
    new = one.item.text.removesuffix("\n").split("\n")
    if not one.was:
        yield from (("", line) for line in new)
    elif one.was.text is None:
        yield "was", f"another text, too long to be kept, trusted {one.was.at}"
        yield from (("now", line) for line in new)
    elif len(new) == 1 and "\n" not in one.was.text:
        yield from (("was", one.was.text), ("now", new[0]))
    else:
        yield from _difference(one.was.text.removesuffix("\n").split("\n"), new)


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    import difflib  # late: only a changed text needs it

    for tag, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            yield from (("", line) for line in new[new_from:new_to])
            continue
        yield from (("-", line) for line in old[old_from:old_to])
        yield from (("+", line) for line in new[new_from:new_to])


def _dense(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Many empty lines would push what follows out of sight."""
    blank = 0
    for number, (mark, text) in enumerate(lines):
        blank = 0 if text.strip() else blank + 1
        ends = number + 1 == len(lines) or lines[number + 1][1].strip()
        if blank < _HIDDEN_LINES:
            yield mark, text
        elif ends:
            yield mark, f"⟨{blank - _HIDDEN_LINES + 1} more empty lines⟩"


def _visible(text: str) -> str:
    """Nothing in it acts on a terminal, runs backwards, or cannot be seen."""
    text = text.replace("\t", "\\t").replace("\r", "\\r").replace("\x1b", "\\e")
    text = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04X}", printable(text))
    return re.sub(rf" {{{_HIDDEN_SPACES},}}", lambda found: f"⟨{len(found[0])} spaces⟩", text)


def _folded(text: str) -> Iterator[str]:
    """In pieces that fit the terminal, so that a long line cannot pass for one of ours; between words where it can."""
    room = _width() - 8
    while text_table.display_width(text) > room:
        end = used = 0
        while (used := used + text_table.display_width(text[end])) <= room:
            end += 1
        end = text.rfind(" ", 1, end + 1) + 1 or end
        yield text[:end]
        text = text[end:]
    yield text


def _width() -> int:
    """Of the terminal that shows it, which is stderr where a question is asked; a file has no end."""
    return max(output.width() or (80 if sys.stderr.isatty() else sys.maxsize), 40)
