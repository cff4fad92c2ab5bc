"""`agentd trust`: show what this repository wants to run, with nothing hidden, and trust it on request."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from agentd.cli import output, text_table
from agentd.domain import NotTrusted, Refusal, printable
from agentd.project import (
    Config,
    Project,
    TrustKind,
    TrustState,
    TrustStatus,
    find_project,
    grant_trust,
    load_config,
    revoke_trust,
    trust_refusal,
    trust_states,
    untrusted_items,
)

COMMANDS = {"trust": (190, "Review and trust the commands this repository wants to run.")}

trust_option = click.option("--trust", "trusting", is_flag=True, help="Trust this repository's commands and continue.")

_COLOURS = {TrustStatus.TRUSTED: "green", TrustStatus.NEW: "yellow", TrustStatus.CHANGED: "red"}
_PROMPT_LINES = 40  # a longer prompt is cut; a command is always shown in full
_HIDDEN_SPACES = 16
_HIDDEN_LINES = 4
# Printable according to Unicode, but invisible: fillers, joiners, selectors and blanks.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


@click.command("trust")
@click.option("--yes", "-y", is_flag=True, help="Trust everything shown, without asking.")
@click.option("--revoke", is_flag=True, help="Revoke all trust in this repository.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, yes: bool, revoke: bool, as_json: bool) -> int:
    """Show the commands this repository wants to run, and ask whether to trust them.

    Checks, agents, worktree setup and prompts come with the repository, so agentd uses none of
    them until you have reviewed them. Anything that changes must be trusted again.
    """
    project = find_project()
    if revoke:
        return _revoke(project, as_json)
    settings = load_config(project.config_file, flags=ctx.find_root().obj or ())
    states = trust_states(project, settings, os.environ)
    untrusted = _untrusted(states)
    must_ask = bool(untrusted) and not yes
    if must_ask and not output.interactive(as_json, yes):
        return _refuse(project, states, untrusted, as_json)
    if must_ask:
        output.report(_listing(states))
        if not _confirm(untrusted):
            raise Refusal("nothing was trusted", "run agentd trust to be asked again")
    _grant(project, untrusted)
    listing = [] if must_ask or not states else [_listing(states)]
    data = _data(project, states, untrusted)
    return output.show_result(
        "trust", as_json, data, lambda: "\n".join([*listing, *output.prose(_summary(states, untrusted))])
    )


def ensure_trust(project: Project, settings: Config, trusting: bool, interactive: bool) -> None:
    """Make sure everything the workflow may run is trusted, by asking or by --trust; else raise NotTrusted."""
    untrusted = untrusted_items(project, settings, os.environ)
    if not untrusted:
        return
    if trusting:
        output.report("Trusted by --trust: " + ", ".join(_visible(state.item.key) for state in untrusted))
    elif not interactive:
        raise trust_refusal(project, untrusted, os.environ)
    else:
        output.report(_listing(untrusted))
        if not _confirm(untrusted):
            raise NotTrusted("nothing was trusted, so nothing was run")
    _grant(project, untrusted)


def _refuse(project: Project, states: Sequence[TrustState], untrusted: Sequence[TrustState], as_json: bool) -> int:
    verb = "is" if len(untrusted) == 1 else "are"
    error = NotTrusted(
        f"{len(untrusted)} of {len(states)} {verb} not trusted", "review the items above, then run agentd trust --yes"
    )
    output.show_result("trust", as_json, _data(project, states, ()), lambda: _listing(states), error.exit_code, error)
    if as_json:
        return error.exit_code
    raise error


def _revoke(project: Project, as_json: bool) -> int:
    count = revoke_trust(project, os.environ)
    data = {"project": str(project.root), "revoked": count}
    message = f"Revoked {count}. Nothing in this repository is trusted now." if count else "Nothing was trusted here."
    return output.show_result("trust", as_json, data, lambda: message)


def _grant(project: Project, untrusted: Sequence[TrustState]) -> None:
    if untrusted:
        grant_trust(project, [state.item for state in untrusted], os.environ)


def _confirm(untrusted: Sequence[TrustState]) -> bool:
    return click.confirm(
        f"Trust {'this one' if len(untrusted) == 1 else f'these {len(untrusted)}'}?", default=False, err=True
    )


def _untrusted(states: Sequence[TrustState]) -> list[TrustState]:
    return [state for state in states if state.status is not TrustStatus.TRUSTED]


def _data(project: Project, states: Sequence[TrustState], granted: Sequence[TrustState]) -> dict[str, Any]:
    """Return the states before this command, and what it granted."""
    return {
        "project": str(project.root),
        "items": [
            {
                "kind": str(state.item.kind),
                "name": state.item.name,
                "status": str(state.status),
                "hash": state.item.hash,
                "text": state.item.text,
                "was": state.was.text if state.was else None,
            }
            for state in states
        ],
        "given": [state.item.hash for state in granted],
        "trusted": len(granted) == len(_untrusted(states)),
    }


# ---- text output ---------------------------------------------------------------------------


def _summary(states: Sequence[TrustState], granted: Sequence[TrustState]) -> str:
    if not states:
        return "This repository has nothing that needs your trust."
    if not granted:
        return "Everything is trusted."
    return "Trusted. You will be asked again about anything that changes; agentd trust --revoke undoes this."


def _listing(states: Sequence[TrustState]) -> str:
    return "\n".join(line for state in states for line in (*_lines(state), ""))


def _lines(state: TrustState) -> Iterator[str]:
    status = output.paint(str(state.status), fg=_COLOURS[state.status], bold=True)
    yield f"{output.paint(_visible(state.item.key), bold=True)}  {status}"
    listing = list(_diff_lines(state))
    if state.item.kind is TrustKind.PROMPT and len(listing) > _PROMPT_LINES:
        untrusted = len(listing) - _PROMPT_LINES
        listing = [*listing[:_PROMPT_LINES], ("…", f"{untrusted} more lines: read agentd/prompts/{state.item.name}")]
    for mark, text in _collapse_blank_lines(listing):
        for part in _wrapped(_visible(text)):
            yield f"  {mark.ljust(3)} | {part}"


def _diff_lines(state: TrustState) -> Iterator[tuple[str, str]]:
    """Yield lines with their mark: none, `was`/`now`, or a diff sign."""
    new = state.item.text.removesuffix("\n").split("\n")
    if not state.was:
        yield from (("", line) for line in new)
    elif state.was.text is None:
        yield "was", f"another text, too long to store, trusted {state.was.at}"
        yield from (("now", line) for line in new)
    elif len(new) == 1 and "\n" not in state.was.text:
        yield from (("was", state.was.text), ("now", new[0]))
    else:
        yield from _text_diff(state.was.text.removesuffix("\n").split("\n"), new)


def _text_diff(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    import difflib  # deferred: only needed for a changed text

    for tag, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            yield from (("", line) for line in new[new_from:new_to])
            continue
        yield from (("-", line) for line in old[old_from:old_to])
        yield from (("+", line) for line in new[new_from:new_to])


def _collapse_blank_lines(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Collapse runs of empty lines, which could push text out of sight."""
    blank = 0
    for number, (mark, text) in enumerate(lines):
        blank = 0 if text.strip() else blank + 1
        ends = number + 1 == len(lines) or lines[number + 1][1].strip()
        if blank < _HIDDEN_LINES:
            yield mark, text
        elif ends:
            yield mark, f"⟨{blank - _HIDDEN_LINES + 1} more empty lines⟩"


def _visible(text: str) -> str:
    """Escape everything that could act on the terminal, reverse the text or be invisible."""
    text = text.replace("\t", "\\t").replace("\r", "\\r").replace("\x1b", "\\e")
    text = _INVISIBLE.sub(lambda states: f"\\u{ord(states[0]):04X}", printable(text))
    return re.sub(rf" {{{_HIDDEN_SPACES},}}", lambda states: f"⟨{len(states[0])} spaces⟩", text)


def _wrapped(text: str) -> Iterator[str]:
    """Split into pieces that fit the terminal, at words if possible, so a long line cannot pass for our own output."""
    width = _width() - 8
    while text_table.display_width(text) > width:
        end = used = 0
        while (used := used + text_table.display_width(text[end])) <= width:
            end += 1
        end = text.rfind(" ", 1, end + 1) + 1 or end
        yield text[:end]
        text = text[end:]
    yield text


def _width() -> int:
    """Return the width of the terminal in use: stderr for a question; unlimited for a file."""
    return max(output.width() or (80 if sys.stderr.isatty() else sys.maxsize), 40)
