"""`agentd demo`: a change from one sentence to the archive in a sample project, before your eyes."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from agentd.cli import output, terminal_prompts, text_table
from agentd.cli.live_display import watch_run
from agentd.demo import (
    ACTS,
    DEMO_CHANGE_ID,
    DemoFailed,
    DemoResult,
    DemoWorkspace,
    ScriptedPerson,
    commit_command,
    continue_command,
    inside_workspace,
    play_act,
    play_clarification,
    read_demo_result,
    set_up_sample,
    show_command,
    typed_command,
)
from agentd.documents import Finding
from agentd.domain import Interrupted, SetupError, UsageError, format_usd
from agentd.engine import PlannedStep, Question, defer_interrupts, interruptible
from agentd.project import GitFailed

_HEAD = (
    "agentd at work on a small sample project. Everything here is real: git, files, tests, the MCP server and every "
    "process. Only the models are a script, so no network is used, and what it costs is as if: nothing is paid."
)
_GO_ON = ("cd your-project", "agentd init", 'agentd plan my-change "what should change"')
_LOOK = (f"agentd status {DEMO_CHANGE_ID}", f"agentd view {DEMO_CHANGE_ID}")
_GONE = "its folder is gone; agentd demo --keep leaves it to look at, agentd demo --into DIR takes another"
_NOTHING = "nothing is left of it; agentd demo begins anew"
_WIDEST = 100  # columns of prose


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave the folder, and print where it is.")
@click.option("--into", type=click.Path(file_okay=False), metavar="DIR", help="Take this empty folder, and leave it.")
@click.option("--pause", is_flag=True, help="Wait for Enter at each decision.")
@click.option("--open", "viewing", is_flag=True, help="Look at the change in the viewer at the end, until Ctrl-C.")
def command(keep: bool, into: str | None, pause: bool, viewing: bool) -> int:
    """Show the whole way of one change in a sample project: no key, no network, under a minute.

    It happens in a folder of its own, which is gone at the end, and touches nothing of yours.
    """
    if pause and not output.interactive(as_json=False, yes=False):
        raise UsageError("--pause waits for Enter, and this is no terminal", "agentd demo")
    place, stays = DemoWorkspace(_folder(into)), keep or into is not None
    try:
        with interruptible():
            _show(place, pause)
            if viewing:
                _view(place)
        _go_on(place if stays else None)
    except (OSError, GitFailed) as error:
        if stays:
            raise
        raise SetupError(str(error), _GONE) from error  # no hint may lead into what is removed now
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted("the demo was interrupted", _left(place) if stays else _NOTHING) from None
    finally:
        if not stays:
            with defer_interrupts():
                shutil.rmtree(place.folder)
    return 0


def _folder(into: str | None) -> Path:
    """Resolved, as git and agentd name it."""
    if into is None:
        return Path(tempfile.mkdtemp(prefix="agentd-demo-")).resolve()
    folder = Path(into).resolve()
    if folder.exists() and any(folder.iterdir()):
        if DemoWorkspace(folder).git_config.is_file():
            words = f"{into} is not empty: an earlier demo has left what is there"
            raise UsageError(words, f"rm -r {shlex.quote(into)}, or name another folder")
        raise UsageError(f"{into} is not empty", "name an empty folder, or one that is not there yet")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _show(place: DemoWorkspace, pause: bool) -> None:
    _say(_wrapped(_HEAD), "")
    with inside_workspace(place):
        check = set_up_sample(place)
        words = f"The sample is tally, which splits what friends spend. It lies in {place.project}"
        _say(_wrapped(f"{words}, and agentd init has found its tests: {check}"))
        for number, act in enumerate(ACTS, 1):
            _say("", output.paint(_wrapped(f"{number}. {act.title}", hang="   "), bold=True), _wrapped(act.why))
            _say(output.paint(f"$ {typed_command(act)}", fg="cyan"))
            play_act(place, act, _ask, show_command)
            _say(*(output.paint(f"$ {line}", fg="cyan") for line in commit_command(act)))
            if pause and act.pauses:
                terminal_prompts.confirm_when_ready("\nEnter goes on, Ctrl-C ends the demo.")
        _say("", *_report(read_demo_result(place)))


def _ask() -> None:
    """The planner's questions, each with the answer that the demo gives for the person."""
    ahead = [PlannedStep("clarify", 1, 1, "Questions", "clarify")]
    with watch_run(f"agentd plan {DEMO_CHANGE_ID}", lambda: ahead, "live") as view:

        def seen(question: Question, answer: str) -> None:
            with view.pause():
                _say(*_asked(question, answer))

        play_clarification(ScriptedPerson(seen), view)


def _asked(question: Question, answer: str) -> Iterator[str]:
    yield output.paint(_wrapped(f"? {question.text}", hang="  "), bold=True)
    yield output.paint(_wrapped(question.why, "  "), dim=True)
    for option in question.options:
        if option.id == answer:
            yield output.paint(_wrapped(f"❯ {option.label}", "  ", "  "), fg="cyan")
        elif not option.asks:
            yield _wrapped(option.label, "    ")


def _report(made: DemoResult) -> Iterator[str]:
    yield output.paint("What was made", bold=True)
    yield from _tree(made)
    yield ""
    if made.in_plan and made.in_code:
        yield output.paint("What was found on the way", bold=True)
        yield from _found("In the plan, by the challenger", made.in_plan)
        yield from (_wrapped(f"In the code, by a test that agentd ran: {name}", "  ") for name in made.failed_tests)
        yield from _found("In the code, by the reviewer", made.in_code)
        yield ""
    cost = f"{format_usd(made.cost)}, as if models had been asked; nothing was paid"
    yield "\n".join(output.label("Cost", cost, _width()))
    yield ""
    yield output.paint("$ git log --oneline", fg="cyan")
    yield from (_wrapped(line, "  ", "  ") for line in made.log)


def _tree(made: DemoResult) -> list[str]:
    """Each folder with what lies in it; what became of a file stands before its name, which may be long."""
    room = max(map(len, made.files.values()), default=0)
    lines, folder = [], ""
    for path, word in sorted(made.files.items(), key=lambda row: os.path.split(row[0])):
        if os.path.dirname(path) != folder:
            folder = os.path.dirname(path)
            lines.append(f"  {folder}/")
        lines.append(f"    {output.paint(word.ljust(room), dim=True)}  {os.path.basename(path)}")
    return lines


def _found(where: str, one: Finding) -> Iterator[str]:
    yield _wrapped(f"{where}: {one.title} ({one.where})", "  ")
    yield _wrapped(one.what, "    ")


def _view(place: DemoWorkspace) -> None:
    """As the user, not as the demo: it is their browser."""
    quiet = () if sys.stdout.isatty() else ("--no-open",)
    try:
        done = show_command("view", DEMO_CHANGE_ID, *quiet, folder=place.project)
    except KeyboardInterrupt:
        return  # how a viewer ends
    if done.code not in (0, Interrupted.exit_code):
        raise DemoFailed(f"agentd view ended with exit code {done.code}")


def _left(place: DemoWorkspace) -> str:
    stays = f"what is there so far stays in {place.folder}"
    command = continue_command(place)
    return f"{command} goes on; {stays}" if command else f"{stays}; agentd demo begins anew"


def _go_on(left: DemoWorkspace | None) -> None:
    if left:
        _say("", _wrapped(f"It stays in {left.project}, to look at:"))
        _say(*(f"  {line}" for line in (f"cd {shlex.quote(str(left.project))}", *_LOOK)))
    _say("", output.paint("Now in a project of your own", bold=True), *(f"  {line}" for line in _GO_ON))


def _wrapped(text: str, indent: str = "", hang: str = "") -> str:
    return "\n".join(f"{indent}{line}" for line in text_table.wrap_text(text, _width() - len(indent), hang))


def _width() -> int:
    return min(output.width() or _WIDEST, _WIDEST)


def _say(*lines: str) -> None:
    output.stream(lines)
