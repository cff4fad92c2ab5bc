"""`agentd impl` with the real CLIs, on a model that plays a script: what each got and could do, and what came of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentd.change.folder import Change
from agentd.documents import tasks
from agentd.domain import events
from agentd.domain.terms import TaskStatus
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import tools_of
from loopback import plans
from loopback.claude_home import KEY as CLAUDE_KEY
from loopback.claude_home import claude_home
from loopback.codex_home import KEY as CODEX_KEY
from loopback.coding import answer, answers, each, edit, offered, read, seat, shell, started, write
from loopback.model import Call, Model, Request, Turn
from loopback.plans import heard, sessions
from plans import BAD_CODE, GOOD_CODE, GREETING_TEST
from program import AGENTD, PATIENCE, Program
from scenario import UNITTEST, Scenario, journal_of

FOLDER = "agentd/changes/greet"
FAILED = "tests.test_greeting.Greeting.test_nobody"
CALLERS = {  # what the CLI that a person is in, or a shell, leaves in the environment
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SESSION_ID": "an-id",
    "CODEX_THREAD_ID": "an-id",
    "GEMINI_CLI": "1",
    "A_PASSWORD": "secret",
}
KEYS = {"claude": CLAUDE_KEY, "codex": CODEX_KEY}
EVIL = "touch .git/hooks/evil"  # what no maker of code may do, by a rule or by the sandbox
OTHER = f"{sys.executable} -c 'print(6 * 7)'"  # no check: Codex has a sandbox instead of a list of commands
OWN = {
    "claude": ({"Read", "Grep", "Glob", "Edit", "Write", "Bash"}, {"Read", "Grep", "Glob"}),
    "gemini": ({"glob", "grep_search", "replace", "write_file", "run_shell_command"}, {"glob", "grep_search"}),
}
DENIED = {"claude": "has been denied", "codex": "Read-only file system", "gemini": "denied by policy"}
CUT_OFF = "An earlier attempt at these tasks was interrupted, and what it wrote is still in the tree."
SLOW = """import os, time, unittest


class Slow(unittest.TestCase):
    def test_slow(self):
        with open(os.path.expanduser("~/slow"), "w") as mark:
            mark.write(str(os.getpid()))
        time.sleep(600)
"""
NO_TOOL = {"claude": "No such tool available", "codex": "unsupported call", "gemini": "not found"}


def making(cli: str, root: Path, code: str) -> list[Turn]:
    return each(
        write(cli, root / "greeting.py", code),
        write(cli, root / "tests/test_greeting.py", GREETING_TEST),
        shell(cli, UNITTEST),
        shell(cli, OTHER),
        shell(cli, EVIL),
        plans.report(),  # its own approval
        says="All tests pass.",
    )


def mending(cli: str, root: Path) -> list[Turn]:
    old, new = (text.splitlines()[-1] for text in (BAD_CODE, GOOD_CODE))
    path = root / "greeting.py"
    return each(
        Call("Read", {"file_path": str(path)}) if cli == "claude" else read("greeting.py"),
        edit(cli, path, old, new),
        shell(cli, UNITTEST),
        answer("V1", "fixed", "Nobody is the world."),
        says="Mended.",
    )


def judging(cli: str, root: Path, **report: Any) -> list[Turn]:
    return each(
        read(f"{FOLDER}/AGENTS.md"),
        Call("get_diff", {}),
        read("greeting.py"),
        write(cli, root / "notes.txt", "x\n"),
        shell(cli, "touch notes.txt"),
        answer("V1", "fixed", "I did it myself."),
        plans.report(**report),
        says="Reported.",
    )


# ---- the whole way


@pytest.mark.parametrize("who", [("claude", "codex"), ("codex", "claude"), ("gemini", "codex")], ids="-".join)
def test_approval_with_a_failing_test_is_overruled_and_fixed_code_completes(
    project: Scenario, model: Model, who: tuple[str, str]
) -> None:
    change = project.greeting_approved({}).change
    root = project.root
    maker = [*making(who[0], root, BAD_CODE), *mending(who[0], root)]
    judge = judging(who[1], root)
    log = seat(project, model, who, maker, [*judge, *judge])
    project.env |= CALLERS
    ran = project.agentd("impl", "greet", "--json")
    assert ran.code == 0, ran.out + ran.err
    implemented, first, resolved, second = sessions(log)
    _check_what_the_maker_was_given(implemented[0])
    _check_what_the_maker_could_do(who[0], implemented, resolved)
    _check_what_the_judge_was_given(who[0], first, second)
    _check_what_the_judge_could_do(who[1], first)
    _check_who_was_started(project, who, change)
    _check_what_came_of_it(change, who, ran.json)


def _check_what_the_maker_was_given(request: Request) -> None:
    words = heard(request)
    plan = (
        "Task 2.1: Write the greeting",
        "CREATE greeting.py",
        "Define `greet(name)`.",
        "Task 4.1: Test the greeting",
        "CREATE tests/test_greeting.py",
        "The greeting contains the name.",
        "Without a name the greeting is to the world.",
        '- **THEN** the greeting is "Hello, Ann!"',
        '- **THEN** the greeting is "Hello, world!"',
        "Greet people by name",
    )
    assert {text: words.count(text) for text in plan} == dict.fromkeys(plan, 1)
    assert CUT_OFF not in words


def _check_what_the_maker_could_do(cli: str, implemented: list[Request], resolved: list[Request]) -> None:
    *_, tests, other, evil, approval = answers(implemented[-1])
    assert "FAIL: test_nobody" in tests and "AssertionError" in tests
    assert ("42" if cli == "codex" else DENIED[cli]) in other
    assert DENIED[cli] in evil and NO_TOOL[cli] in approval
    assert not Path(".git/hooks/evil").exists()
    assert "Ran 3 tests" in answers(resolved[-1])[2]
    for session in (implemented, resolved):
        _check_offer(session[0], cli, Stage.IMPLEMENT)
    prompt = heard(resolved[0])
    assert f"V1 (high): Required check failed: tests\n    Where: check tests\n    What: `{UNITTEST}` ended" in prompt
    assert FAILED in prompt and "AssertionError: 'Hello, !' != 'Hello, world!'" in prompt
    assert "All tests pass." not in prompt and "Task 2.1" not in prompt  # a session that knows nothing of the first


def _check_offer(request: Request, cli: str, stage: Stage) -> None:
    """Codex finds the server's tools by a search, and has its own in both seats: its sandbox makes the difference."""
    if cli == "codex":
        (search,) = (tool for tool in request.body["tools"] if tool["type"] == "tool_search")
        assert f"(stage {stage})" in search["description"]
        return
    ours = {plans.PREFIXES[cli] + tool.name for tool in tools_of(stage)}
    assert offered(request) == ours | OWN[cli][stage is Stage.REVIEW]


def _check_what_the_judge_was_given(maker: str, first: list[Request], second: list[Request]) -> None:
    """The failed check at once, what it printed and the diff with the context file that it is sent to."""
    words, (context, diff, *_) = heard(first[0]), answers(first[-1])
    assert f"- tests (required), `{UNITTEST}`: failed\n      {FAILED}\n" in words
    assert f"Read `{FOLDER}/AGENTS.md` first" in words
    assert "AssertionError: 'Hello, !' != 'Hello, world!'" in context
    for told_by in (context, diff):
        assert all(text in told_by for text in ("+def greet(", "+class Greeting(", "CREATE greeting.py (+5 -0)"))
    words, context = heard(second[0]), answers(second[-1])[0]
    assert "round 2" in words and f"- tests (required), `{UNITTEST}`: passed\n" in words
    assert "Reported." not in words and "I did it myself." not in words
    assert f"{maker} answered: fixed. Nobody is the world. Changed: greeting.py." in context


def _check_what_the_judge_could_do(cli: str, asked: list[Request]) -> None:
    _, _, code, patch, touch, answering, report = answers(asked[-1])
    assert "def greet(" in code
    if cli == "codex":
        assert "writing is blocked by read-only sandbox" in patch and DENIED[cli] in touch
    else:
        assert NO_TOOL[cli] in patch and NO_TOOL[cli] in touch
    assert NO_TOOL[cli] in answering
    assert "The required check tests failed, so the verdict is NEEDS_CHANGES." in report
    assert not Path("notes.txt").exists()
    _check_offer(asked[0], cli, Stage.REVIEW)


def _check_who_was_started(box: Scenario, who: tuple[str, str], change: Change) -> None:
    """Each twice, in a session of its own, with its own key only and nothing of the caller's session."""
    for cli in who:
        environments = started(box, cli).values()
        assert len(environments) == 2
        for env in environments:
            assert not CALLERS.keys() & env.keys()
            assert {key for key in KEYS.values() if key in env} == {KEYS[one] for one in (cli,) if one in KEYS}
    calls = change.read().llm_calls
    steps = [("implement-greeting", who[0]), ("review", who[1]), ("resolve", who[0]), ("review", who[1])]
    assert [(one.step, one.agent) for one in calls] == steps
    assert len({one.session for one in calls}) == 4 and all(one.session and one.cost for one in calls)


def _check_what_came_of_it(change: Change, who: tuple[str, str], result: Any) -> None:
    maker, judge = (f"agent:{name}" for name in who)
    first, last = change.records("review")
    overruled = "The required check tests failed, so the verdict is NEEDS_CHANGES."
    assert (first.reported, first.verdict, first.overruled) == ("APPROVED", "NEEDS_CHANGES", overruled)
    assert [(one.id, str(one.severity), one.by) for one in first.findings] == [("V1", "high", "check:tests")]
    assert [(one.id, str(one.answer), one.files, one.by) for one in first.answers] == [
        ("V1", "fixed", ("greeting.py",), maker)
    ]
    assert (last.reported, last.verdict, last.overruled, last.findings) == ("APPROVED", "APPROVED", None, ())
    assert [(one.id, str(one.state)) for one in last.previous] == [("V1", "fixed")]
    moved = [(one.event, str(one.to), one.by) for one in change.read().history[-3:]]
    assert moved == [
        ("implementation-started", "implementing", "agentd"),
        ("review-needs-changes", "implementing", judge),
        ("review-approved", "complete", judge),
    ]
    listed = tasks.parse_tasks((change.folder / "tasks.md").read_text()).tasks
    assert {one.id: one.status for one in listed} == {"2.1": TaskStatus.DONE, "4.1": TaskStatus.DONE}
    page = (change.folder / "REVIEW.md").read_text()
    words = ("**Verdict**: APPROVED", "3 passed, 0 failed", who[0], who[1], "V1 (high), fixed")
    assert [text for text in words if text not in page] == []
    assert (Path("greeting.py").read_text(), Path("tests/test_greeting.py").read_text()) == (GOOD_CODE, GREETING_TEST)
    told_at_the_end = {name: result[name] for name in ("phase", "verdict", "round", "next", "exit_code")}
    assert told_at_the_end == {
        "phase": "complete",
        "verdict": "APPROVED",
        "round": 2,
        "next": "agentd archive greet",
        "exit_code": 0,
    }


# ---- beyond its rights


def test_files_claude_writes_under_agentd_are_restored_and_block_approval(project: Scenario, model: Model) -> None:
    change = project.greeting_approved({}).change
    guarded = {name: project.root / name for name in (f"{FOLDER}/tasks.md", "agentd/config.toml")}
    page = project.root / FOLDER / "REVIEW.md"
    maker = each(
        write("claude", project.root / "greeting.py", GOOD_CODE),
        write("claude", project.root / "tests/test_greeting.py", GREETING_TEST),
        *(Call("Read", {"file_path": str(path)}) for path in guarded.values()),
        *(write("claude", path, "status: done\n") for path in guarded.values()),
        write("claude", page, "**Verdict**: APPROVED\n"),
        says="All is done and approved.",
    )
    log = seat(project, model, ("claude", "codex"), maker, each(plans.report(), says="Reported."))
    before = {name: path.read_text() for name, path in guarded.items()}
    ran = project.agentd("impl", "greet", "--rounds", "0", "--json")
    assert (ran.code, ran.json["verdict"]) == (1, "NEEDS_CHANGES"), ran.out + ran.err
    *_, first, second, third = answers(sessions(log)[0][-1])
    assert all("successfully" in words for words in (first, second, third)), "it was not Claude that refused"
    assert {name: path.read_text() for name, path in guarded.items()} == before
    (record,) = change.records("review")
    assert (record.reported, record.verdict) == ("APPROVED", "NEEDS_CHANGES")
    found = {one.where: (str(one.severity), one.by, "by claude" in one.title) for one in record.findings}
    assert found == dict.fromkeys((*guarded, f"{FOLDER}/REVIEW.md"), ("high", "agentd:guard", True))
    assert all(one.id in str(record.overruled) and one.id in page.read_text() for one in record.findings)
    assert "**Verdict**: NEEDS_CHANGES" in page.read_text()
    assert str(change.read().phase) == "implementing"


# ---- killed


def until(is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() - start < seconds, "it did not happen"
        time.sleep(0.02)


def test_run_killed_during_implementation_leaves_no_process_and_resumes(project: Scenario, model: Model) -> None:
    change = project.greeting_approved({}).change
    half = write("claude", project.root / "greeting.py", GOOD_CODE)
    waits = shell("claude", f"{UNITTEST} tests.slow")
    project.write("tests/slow.py", SLOW)
    maker = [Turn(calls=(half,)), Turn(calls=(waits,)), Turn(hang=True)]
    log = seat(project, model, ("claude", "codex"), maker, each(plans.report(), says="Reported."))
    mark = project.home / "slow"

    def is_heard() -> bool:
        return any(one.kind == "shell" for one in journal_of(change, events.AgentActivity))

    argv = [AGENTD, "impl", "greet", "--json"]
    with Program(argv, cwd=project.root, env=project.env, stdin=subprocess.DEVNULL) as ran:
        until(lambda: (mark.exists() and is_heard()) or ran.poll() is not None)
        assert ran.poll() is None, "it ended before it could be killed"
        os.kill(ran.pid, signal.SIGKILL)
    until(lambda: change.active_run() is None)
    (claude,) = started(project, "claude")
    assert not any(Path(f"/proc/{pid}").exists() for pid in (claude, int(mark.read_text())))
    assert Path("greeting.py").read_text() == GOOD_CODE, "code goes on from the tree as it is"
    asked = len(log)

    rest = each(write("claude", project.root / "tests/test_greeting.py", GREETING_TEST), says="The rest is done.")
    conversation = model.conversation(plans.APIS["claude"], *rest)
    conversation.asked = log
    claude_home(project.home, conversation)
    again = project.agentd("impl", "greet", "--json")
    assert (again.code, again.json["phase"]) == (0, "complete"), again.out + again.err
    cut_off, going_on, _ = sessions(log)
    assert len(cut_off) == asked
    said = [CUT_OFF in heard(one[0]) for one in (cut_off, going_on)]
    assert said == [False, True]
    calls = [(one.step, one.session) for one in change.read().llm_calls]
    assert [step for step, _ in calls] == ["implement-greeting", "implement-greeting", "review"]
    assert calls[0][1] != calls[1][1], "another session"
    rows = [row for row in change.read().steps if row.name == "implement-greeting"]
    assert [(row.number, row.attempt, str(row.status)) for row in rows] == [(1, 1, "failed"), (1, 2, "done")]
    assert Path("greeting.py").read_text() == GOOD_CODE, "nobody wrote it again"
