"""`agentd demo`: take a change from one sentence to the archive in a sample project."""

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

COMMANDS = {"demo": (220, "Run a complete change in a sample project, without calling any model.")}

_INTRO = (
    "agentd at work on a small sample project. Everything here is real: git, files, tests, the MCP server and every "
    "process. Only the models are scripted: no network is used, costs are simulated, and nothing is charged."
)
_NEXT_STEPS = ("cd your-project", "agentd init", 'agentd plan my-change "what should change"')
_INSPECT = (f"agentd status {DEMO_CHANGE_ID}", f"agentd view {DEMO_CHANGE_ID}")
_REMOVED_HINT = "the demo folder was removed; agentd demo --keep keeps it, agentd demo --into DIR uses another"
_NOTHING_LEFT = "its folder was removed; run agentd demo to start over"
_MAX_WIDTH = 100  # columns of prose


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the demo folder and print its path.")
@click.option("--into", type=click.Path(file_okay=False), metavar="DIR", help="Use this empty folder, and keep it.")
@click.option("--pause", is_flag=True, help="Wait for Enter at each decision.")
@click.option("--open", "open_viewer", is_flag=True, help="Open the change in the viewer at the end, until Ctrl-C.")
def command(keep: bool, into: str | None, pause: bool, open_viewer: bool) -> int:
    """Run a complete change in a sample project: no API key, no network, under a minute.

    It runs in a temporary folder that is removed at the end, and does not touch your files.
    """
    if pause and not output.interactive(as_json=False, yes=False):
        raise UsageError("--pause needs a terminal", "agentd demo")
    workspace, is_kept = DemoWorkspace(_folder(into)), keep or into is not None
    try:
        with interruptible():
            _show(workspace, pause)
            if open_viewer:
                _view(workspace)
        _print_next_steps(workspace if is_kept else None)
    except (OSError, GitFailed) as error:
        if is_kept:
            raise
        raise SetupError(str(error), _REMOVED_HINT) from error  # the original hint may point into the removed folder
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted("the demo was interrupted", _resume_hint(workspace) if is_kept else _NOTHING_LEFT) from None
    finally:
        if not is_kept:
            with defer_interrupts():
                shutil.rmtree(workspace.folder)
    return 0


def _folder(into: str | None) -> Path:
    """Return the resolved path, as git and agentd print it."""
    if into is None:
        return Path(tempfile.mkdtemp(prefix="agentd-demo-")).resolve()
    folder = Path(into).resolve()
    if folder.exists() and any(folder.iterdir()):
        if DemoWorkspace(folder).git_config.is_file():
            message = f"{into} is not empty: it holds an earlier demo"
            raise UsageError(message, f"rm -r {shlex.quote(into)}, or name another folder")
        raise UsageError(f"{into} is not empty", "use an empty or a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _show(workspace: DemoWorkspace, pause: bool) -> None:
    _print(_wrapped(_INTRO), "")
    with inside_workspace(workspace):
        check = set_up_sample(workspace)
        about = f"The sample project, tally, splits expenses among friends. It is in {workspace.project}"
        _print(_wrapped(f"{about}. agentd init detected its tests: {check}"))
        for number, act in enumerate(ACTS, 1):
            _print("", output.paint(_wrapped(f"{number}. {act.title}", hang="   "), bold=True), _wrapped(act.why))
            _print(output.paint(f"$ {typed_command(act)}", fg="cyan"))
            play_act(workspace, act, _play_questions, show_command)
            _print(*(output.paint(f"$ {line}", fg="cyan") for line in commit_command(act)))
            if pause and act.pauses:
                terminal_prompts.confirm_when_ready("\nPress Enter to continue, Ctrl-C to stop.")
        _print("", *_report(read_demo_result(workspace)))


def _play_questions() -> None:
    """Play the planner's questions, each with its scripted answer."""
    steps = [PlannedStep("clarify", 1, 1, "Questions", "clarify")]
    with watch_run(f"agentd plan {DEMO_CHANGE_ID}", lambda: steps, "live") as view:

        def on_answer(question: Question, answer: str) -> None:
            with view.pause():
                _print(*_question_lines(question, answer))

        play_clarification(ScriptedPerson(on_answer), view)


def _question_lines(question: Question, answer: str) -> Iterator[str]:
    yield output.paint(_wrapped(f"? {question.text}", hang="  "), bold=True)
    yield output.paint(_wrapped(question.why, "  "), dim=True)
    for option in question.options:
        if option.id == answer:
            yield output.paint(_wrapped(f"❯ {option.label}", "  ", "  "), fg="cyan")
        elif not option.asks:
            yield _wrapped(option.label, "    ")


def _report(result: DemoResult) -> Iterator[str]:
    yield output.paint("What was created", bold=True)
    yield from _file_lines(result)
    yield ""
    if result.in_plan and result.in_code:
        yield output.paint("What the reviews found", bold=True)
        yield from _finding_lines("In the plan, by the challenger", result.in_plan)
        yield from (_wrapped(f"In the code, by a test that agentd ran: {name}", "  ") for name in result.failed_tests)
        yield from _finding_lines("In the code, by the reviewer", result.in_code)
        yield ""
    cost = f"{format_usd(result.cost)}, simulated; nothing was charged"
    yield "\n".join(output.label("Cost", cost, _width()))
    yield ""
    yield output.paint("$ git log --oneline", fg="cyan")
    yield from (_wrapped(line, "  ", "  ") for line in result.log)


def _file_lines(result: DemoResult) -> list[str]:
    """List files by folder, each with what happened to it."""
    word_width = max(map(len, result.files.values()), default=0)
    lines, folder = [], ""
    for path, word in sorted(result.files.items(), key=lambda row: os.path.split(row[0])):
        if os.path.dirname(path) != folder:
            folder = os.path.dirname(path)
            lines.append(f"  {folder}/")
        lines.append(f"    {output.paint(word.ljust(word_width), dim=True)}  {os.path.basename(path)}")
    return lines


def _finding_lines(where: str, finding: Finding) -> Iterator[str]:
    yield _wrapped(f"{where}: {finding.title} ({finding.where})", "  ")
    yield _wrapped(finding.what, "    ")


def _view(workspace: DemoWorkspace) -> None:
    """Open the viewer outside the demo's environment, so it uses the user's browser."""
    quiet = () if sys.stdout.isatty() else ("--no-open",)
    try:
        done = show_command("view", DEMO_CHANGE_ID, *quiet, folder=workspace.project)
    except KeyboardInterrupt:
        return  # Ctrl-C is how the viewer ends
    if done.code not in (0, Interrupted.exit_code):
        raise DemoFailed(f"agentd view exited with code {done.code}")


def _resume_hint(workspace: DemoWorkspace) -> str:
    kept = f"the demo so far is in {workspace.folder}"
    command = continue_command(workspace)
    return f"{command} resumes it; {kept}" if command else f"{kept}; agentd demo starts over"


def _print_next_steps(kept: DemoWorkspace | None) -> None:
    if kept:
        _print("", _wrapped(f"The project is kept in {kept.project}. To inspect it:"))
        _print(*(f"  {line}" for line in (f"cd {shlex.quote(str(kept.project))}", *_INSPECT)))
    _print("", output.paint("Now try it in your own project", bold=True), *(f"  {line}" for line in _NEXT_STEPS))


def _wrapped(text: str, indent: str = "", hang: str = "") -> str:
    return "\n".join(f"{indent}{line}" for line in text_table.wrap_text(text, _width() - len(indent), hang))


def _width() -> int:
    return min(output.width() or _MAX_WIDTH, _MAX_WIDTH)


def _print(*lines: str) -> None:
    output.stream(lines)
