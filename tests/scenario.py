"""A project in a temporary repository, brought to any point of a workflow, and the real program run in it.

A flow test needs nothing but this module: `Scenario` and, by their names, the actions and documents it is made of.
"""

import atexit
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change, read_state
from agentd.change.state import ChangeState, GitLocation
from agentd.documents.records import Finding, ReviewRecord, current_findings
from agentd.domain import clock, events, yaml12
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import FindingState, GitSetup, Severity
from agentd.project import git
from agentd.project.config.loader import load_config
from agentd.project.layout import find_project
from agentd.project.trust.items import trust_items
from agentd.project.trust.store import grant_trust
from agentd.storage import files
from plans import (
    BAD_CODE,
    EXAMPLE,
    GOOD_CODE,
    GREETING,
    GREETING_DOCUMENTS,
    GREETING_ID,
    NOTES,
    OLD_TEST,
    SHORT_TITLES,
    SHORT_TITLES_ID,
    SIGN_IN,
    SIGN_IN_DOCUMENTS,
    SIGN_IN_ID,
    notes_tasks,
    proposal_text,
)
from playbooks import (
    APPROVED,
    NEEDS_CHANGES,
    NEEDS_REVISION,
    Action,
    Steps,
    answer,
    call,
    edit,
    edit_spec,
    finding,
    implement,
    plan_steps,
    previous,
    report,
    report_in_text,
    say,
    usage,
    write,
)
from program import AGENTD, PATIENCE, CrashPoint, Program, environment

VARIABLES = ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
IN_PLACE = '[git]\nsetup = "in-place"\n'  # nobody is asked where a change should live
NO_REVIEWS = "self_review_iterations = 0\n"
PATIENT = "[limits]\ncalls_per_step = 500\n"
ROLES = '[roles]\nplanner = "play"\nchallenger = "play"\nimplementer = "play"\nreviewer = "play"\n'
PLAY = '[agents.play]\nkind = "scripted"\nplaybook = "playbook.json"\n'
RETRY_AT_ONCE = "[workflow]\nretry_delay_secs = 0.05\n"
UNITTEST = f"{sys.executable} -m unittest -q"
CHECK = f'[[checks]]\nname = "tests"\ncommand = "{UNITTEST}"\nrequired = true\ntimeout = 60\n'
__all__ = [  # what a flow test needs
    "APPROVED",
    "BAD_CODE",
    "CHECK",
    "EXAMPLE",
    "GOOD_CODE",
    "IN_PLACE",
    "NEEDS_CHANGES",
    "NEEDS_REVISION",
    "NO_REVIEWS",
    "PATIENT",
    "Action",
    "CrashPoint",
    "Result",
    "Scenario",
    "answer",
    "call",
    "edit",
    "edit_spec",
    "finding",
    "implement",
    "plan_steps",
    "previous",
    "report",
    "report_in_text",
    "say",
    "usage",
    "write",
]


@dataclass(frozen=True)
class Result:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def hint(self) -> str:
        """Of the error in its JSON: what to type next."""
        return str(self.json["error"]["hint"])


def _folder() -> Path:
    """For what is made once for each worker, since a copy of it is quicker to make."""
    folder = Path(tempfile.mkdtemp(prefix="agentd-repository-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _empty_repository() -> Path:
    folder = _folder()
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    return folder / ".git"


@cache
def _empty_project() -> Path:
    return Scenario(_folder() / "notes-service")._make_project().root


@dataclass
class Scenario:
    """A git repository with a home of its own, and usually one change in it."""

    root: Path
    home: Path = field(default=Path())
    program: tuple[str, ...] = (AGENTD,)
    change_id: str = SIGN_IN_ID
    description: str = SIGN_IN
    env: dict[str, str] = field(init=False)
    _crash: CrashPoint | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.home = self.home if self.home.parts else self.root.with_name("home")
        self.env = environment(self.home)
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = dev\n\temail = dev@example.invalid\n[init]\n\tdefaultBranch = main\n"
        )
        if not (self.root / ".git").exists():
            shutil.copytree(_empty_repository(), self.root / ".git")

    # ---- the repository

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = self.execute("git", *arguments, cwd=cwd)
        assert done.code == 0, f"git {arguments}: {done.err}"
        return done.out.strip()

    def write(self, name: str, text: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, message: str = "work", cwd: Path | None = None) -> str:
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-qm", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd) if cwd else self.head()

    def head(self) -> str:
        """The commit that is checked out, read from git's files."""
        git_dir = self.root / ".git"
        text = (git_dir / "HEAD").read_text().strip() if git_dir.is_dir() else ""
        ref = git_dir / text.removeprefix("ref: ")
        return ref.read_text().strip() if text and ref.is_file() else self.git("rev-parse", "HEAD")

    @contextmanager
    def entered(self) -> Iterator["Scenario"]:
        """This process in that repository, with its home, as with the fixture `project`."""
        with pytest.MonkeyPatch.context() as patch:
            self.enter(patch)
            yield self

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        patch.chdir(self.root)
        for name, value in self.variables().items():
            patch.setenv(name, value)

    def variables(self) -> dict[str, str]:
        """What makes this process use the scenario's home."""
        return {name: self.env[name] for name in VARIABLES}

    def with_project(self) -> "Scenario":
        """A project that is committed, with nothing configured."""
        if {path.name for path in self.root.iterdir()} != {".git"} or (self.root / ".git/refs/heads/main").exists():
            return self._make_project()
        shutil.copytree(_empty_project(), self.root, dirs_exist_ok=True)
        return self

    def _make_project(self) -> "Scenario":
        self.write("README.md", "notes\n")
        self.write("agentd/config.toml", "schema_version = 1\n")
        self.commit("start")
        return self

    # ---- programs

    def agentd(self, *arguments: str, **options: Any) -> Result:
        return self.execute(*self.program, *arguments, **options)

    def execute(
        self,
        *argv: str,
        cwd: Path | None = None,
        timeout: float = PATIENCE,
        crash: CrashPoint | None = None,
        **env: str,
    ) -> Result:
        """Any program, without a terminal. One that does not end fails the test with what it printed so far."""
        pipe = subprocess.PIPE
        with Program(
            argv,
            cwd=cwd or self.root,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            crash=crash,
        ) as program:
            try:
                out, err = program.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                program.kill()
                printed = "\n".join(("", *program.communicate()))
                words = f"{shlex.join(argv)} has not ended after {timeout:g} s; it printed so far:{printed}"
                raise AssertionError(words) from None
        return Result(program.returncode, out, err)

    def start(self, *arguments: str, **options: Any) -> Program:
        """agentd, at work while the test goes on."""
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        place = {"cwd": self.root, "env": self.env}
        return Program([*self.program, *arguments], **{**place, **quiet, **options})

    def python(self, code: str, *arguments: str, cwd: Path | None = None) -> Result:
        """A process of its own that uses the package."""
        return self.execute(sys.executable, "-c", code, *arguments, cwd=cwd)

    def paste(self, command: str, cwd: Path | None = None) -> None:
        """Type into a shell what agentd has printed."""
        done = self.execute("sh", "-ec", command, cwd=cwd)
        assert done.code == 0, f"{command}: {done.out}{done.err}"

    # ---- agents and settings

    def configure(self, text: str) -> "Scenario":
        """That configuration, committed and trusted."""
        self.write("agentd/config.toml", text)
        self.commit("settings")
        project = find_project()
        grant_trust(project, trust_items(project, load_config(project.config_file)), os.environ)
        return self

    @property
    def config_text(self) -> str:
        return (self.root / "agentd/config.toml").read_text()

    def with_agents(self, steps: Steps, more: str = "", workflow: str = "") -> "Scenario":
        """A project in which every role plays these steps; the example's main spec is there."""
        self.write("playbook.json", json.dumps({"steps": steps}))
        self.write("agentd/specs/api-endpoints.md", (EXAMPLE / "base" / "api-endpoints.md").read_text())
        self.write("agentd/.gitignore", "/changes/*/GEMINI.md\n/changes/*/AGENTS.md\n.*.tmp\n")
        return self.configure(f"schema_version = 1\n{RETRY_AT_ONCE}{workflow}{IN_PLACE}{ROLES}{PLAY}{more}")

    def replay(self, steps: Steps) -> None:
        """From now on the agents play these."""
        self.write("playbook.json", json.dumps({"steps": steps}))
        self.configure(self.config_text)

    def assign(self, role: str, agent: str) -> None:
        self.configure(self.config_text.replace(f'{role} = "play"', f'{role} = "{agent}"'))

    # ---- a plan of the change add-oauth

    def proposed(
        self,
        challenge: list[Action] = APPROVED,
        later: Steps | None = None,
        more: str = "",
        rounds: int = 0,
    ) -> "Scenario":
        """Its plan is generated and valid, and nobody has judged it; `later` is played where it fits."""
        self.with_agents({"challenge": challenge, **(later or {})}, more, f"planning_iterations = {rounds}\n")
        return self._generated(SIGN_IN_DOCUMENTS, "proposal, 1 spec and 2 tasks generated and valid")

    def challenged(
        self, verdict: str = "NEEDS_REVISION", *findings: tuple[str, str], **later: list[Action]
    ) -> "Scenario":
        """Its plan was judged so. Findings are a severity and a title; the first is C1. `challenge_2` is what the
        next challenger does."""
        steps = {name.replace("_", "/"): actions for name, actions in later.items()}
        self.proposed(report_in_text("APPROVED"), steps)
        self._judge_plan(verdict, findings)
        return self

    def _judge_plan(self, verdict: str, findings: Sequence[tuple[str, str]]) -> None:
        from agentd.engine.steps import verdict_record
        from agentd.engine.steps.step_context import StepContext

        change = self.change
        with open_run(change) as run:
            ctx = StepContext(run, os.environ)
            record = ReviewRecord(
                change_id=change.id,
                kind="challenge",
                round=1,
                verdict=verdict,
                reported=verdict,
                overruled=None,
                summary="Looked at.",
                by="agent:play",
                model=None,
                session=None,
                made_by="agent:play",
                at=clock.now(),
                judged=change.hashes(),
                findings=tuple(_finding(f"C{number}", *one) for number, one in enumerate(findings, 1)),
            )
            verdict_record.save_record(ctx, record)
            verdict_record.finish_record(ctx, record, 1)

    def _generated(self, documents: Mapping[str, str], why: str = "test") -> "Scenario":
        change = lifecycle.create_change(find_project(), self.change_id, self.description)
        for name, text in documents.items():
            _write(change.folder / name, text)
        move(change, TransitionEvent.PLAN_GENERATED, why=why)
        return self

    # ---- code of the change greet

    def greeting_proposed(
        self,
        steps: Steps,
        more: str = CHECK,
        workflow: str = "",
        documents: Mapping[str, str] = GREETING_DOCUMENTS,
    ) -> "Scenario":
        """A Python project with a test, and a plan that nobody has judged."""
        self.change_id, self.description = GREETING_ID, GREETING
        self.write("tests/__init__.py", "")
        self.write("tests/test_there.py", OLD_TEST)
        self.write(".gitignore", "__pycache__/\nplaybook.json\n")
        self.with_agents({"review": APPROVED, **steps}, more, workflow)
        return self._generated(documents)

    def greeting_approved(
        self,
        steps: Steps,
        more: str = CHECK,
        workflow: str = "",
        documents: Mapping[str, str] = GREETING_DOCUMENTS,
    ) -> "Scenario":
        """The same with a plan that is approved: `impl` can start."""
        self.greeting_proposed(steps, more, workflow, documents)
        move(self.change, TransitionEvent.CHALLENGE_APPROVED)
        return self

    # ---- changes that are complete, with specs about notes

    def with_notes(self, prefix: str = "", start: str = "start") -> "Scenario":
        """A project with a spec, in a sub-folder if wished; committed, if the commit has a name."""
        self.write("README.md", "notes\n")
        self.write(f"{prefix}agentd/config.toml", "schema_version = 1\n")
        self.write(f"{prefix}agentd/specs/notes.md", NOTES)
        if start:
            self.commit(start)
        return self

    def notes_proposed(self, change_id: str, specs: Mapping[str, str], place: GitLocation | None = None) -> Change:
        """A plan that nobody has judged; the specs as the project has them now are kept as its base."""
        project = find_project()
        change = lifecycle.create_change(project, change_id, f"Better notes by {change_id}", place)
        known: dict[str, str | None] = {}
        _write(change.folder / "proposal.md", proposal_text(change_id, list(specs)))
        _write(change.folder / "tasks.md", notes_tasks(change_id))
        for name, text in specs.items():
            _write(change.folder / "specs" / f"{name}.md", text)
            main = project.specs_in(change.tree) / f"{name}.md"
            known[name] = files.hash_bytes(main.read_bytes()) if main.is_file() else None
            if main.is_file():
                files.write(change.folder / "base" / f"{name}.md", main.read_bytes())
        change.update(lambda old: replace(old, base=replace(old.base, specs=known)))
        move(change, TransitionEvent.PLAN_GENERATED)
        return change

    def notes_complete(self, change_id: str, specs: Mapping[str, str], place: GitLocation | None = None) -> Change:
        """The same with code that was approved: one file of its own."""
        change = self.notes_proposed(change_id, specs, place)
        move(change, TransitionEvent.CHALLENGE_APPROVED)
        base = git.snapshot(change.tree)
        change.update(lambda old: replace(old, base=replace(old.base, tree=base)))
        move(change, TransitionEvent.IMPLEMENTATION_STARTED)
        _write(Path(change.tree, f"{change_id}.py"), "DONE = True\n")
        approve_code(change)
        return change

    def complete_short_titles(self, place: GitLocation | None = None) -> Path:
        """A complete change of the spec about notes, committed in its worktree, which is returned."""
        change = self.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES}, place)
        self.commit("the change", cwd=Path(change.tree))
        return Path(change.tree)

    def on_branch(self, change_id: str) -> GitLocation:
        """On its own branch in this worktree."""
        target = self.git("branch", "--show-current")
        self.git("switch", "-q", "-c", f"agentd/{change_id}")
        return GitLocation(GitSetup.BRANCH, f"agentd/{change_id}", ".", target)

    def in_worktree(self, change_id: str) -> GitLocation:
        """In a worktree of its own beside this one."""
        tree = self.worktree(change_id)
        self.git("worktree", "add", "-q", "-b", f"agentd/{change_id}", str(tree))
        target = self.git("branch", "--show-current")
        return GitLocation(GitSetup.WORKTREE, f"agentd/{change_id}", find_project().tree_name(str(tree)), target)

    def worktree(self, change_id: str = SIGN_IN_ID) -> Path:
        """Where the worktree of a change would be."""
        return self.root.with_name(f"{self.root.name}-agentd") / change_id

    # ---- running a workflow

    def killed_at(self, write: int, moment: str = "before", below: Path | None = None) -> "Scenario":
        """The next `run` is killed with -9 at its write of that number below the change's folder."""
        self._crash = CrashPoint(moment, write, str(below or self.folder))
        return self

    def run(self, command: str, *flags: str) -> Result:
        """A command on the change; `plan` of a new one gets its description."""
        crash, self._crash = self._crash, None
        about = [self.description, "--skip-clarify"] if command == "plan" else []
        return self.agentd(command, self.change_id, *about, *flags, crash=crash)

    @contextmanager
    def deciding(self, *arguments: str, name: str = "dev") -> Iterator[Program]:
        """Another person decides by flag."""
        git_name = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": name}
        with self.start("plan", self.change_id, *arguments, env={**self.env, **git_name}) as program:
            try:
                yield program
            finally:
                program.kill()

    @contextmanager
    def start_at_once(self, *commands: Sequence[str]) -> Iterator[list[Program]]:
        """All of them started before one is waited for."""
        started = [self.start(*arguments) for arguments in commands]
        try:
            yield started
        finally:
            for one in started:
                one.kill()
                one.communicate()

    # ---- what is there

    @property
    def folder(self) -> Path:
        return self.root / "agentd" / "changes" / self.change_id

    @property
    def change(self) -> Change:
        project = find_project(str(self.root))
        tree = project.repo.top
        return Change(project, self.change_id, tree, project.changes_in(tree) / self.change_id)

    def state(self) -> ChangeState:
        return read_state(self.folder)

    @property
    def challenge_page(self) -> Path:
        return self.folder / "CHALLENGE.md"

    @property
    def inbox(self) -> Path:
        """Where decisions for a run of the change lie."""
        return self.local_state / "inbox" / self.change_id

    def journal(self, kind: type[events.Event]) -> list[Any]:
        return journal_of(self.change, kind)

    def started_steps(self) -> list[str]:
        """Every call so far, in order: `tasks-review#2` is the second of its kind in a round."""
        started = self.journal(events.StepStarted)
        return [one.step + (f"#{one.number}" if one.number > 1 else "") for one in started]

    def finished_steps(self) -> list[str]:
        """The steps that are done, in order, without the checks."""
        rows = [step for step in self.state().steps if step.name != "checks" and step.status == "done"]
        return [step.name + (f"#{step.number}" if step.number > 1 else "") for step in rows]

    def review_record(self, number: int = 1) -> dict[str, Any]:
        found: dict[str, Any] = yaml12.load((self.folder / f"reviews/review-{number}.yaml").read_text())
        return found

    def review_findings(self, number: int = 1) -> list[tuple[str, str, str]]:
        """Of that review: by whom, how severe, what."""
        return [(one["by"], one["severity"], one["title"]) for one in self.review_record(number)["findings"]]

    def finding_states(self) -> dict[str, str]:
        return {one.id: str(one.state) for one in current_findings(self.change.records())}

    def warnings(self) -> list[tuple[str, str]]:
        found = [(one.code, one.message) for one in self.journal(events.WarningIssued)]
        return [one for one in found if one[0] != "price-unknown"]  # scripted agents have no price

    def decisions(self) -> list[tuple[str, str, str, str | None]]:
        return [(one.answer, one.by, one.via, one.reason) for one in self.journal(events.DecisionMade)]

    @property
    def local_state(self) -> Path:
        return self.root / ".git" / "agentd"


# ---- changes in any repository


def move(change: Change, event: TransitionEvent, by: str = "agentd", why: str = "test") -> None:
    """Move a change along the table without doing the work."""
    change.update(lambda old: old.with_transition(event, by=by, why=why, at=clock.now(), hashes=change.hashes()))


def approve_code(change: Change) -> None:
    """The code as it is now is approved."""
    specs = {name: digest for name, digest in change.hashes().items() if name.startswith("specs/")}
    hashes = {"tree": git.snapshot(change.tree), "base": str(change.read().base.tree), **specs}
    at = clock.now()
    change.update(
        lambda old: old.with_transition(
            TransitionEvent.REVIEW_APPROVED, by="agent:codex", why="test", at=at, hashes=hashes
        )
    )


def journal_of(change: Change, kind: type[events.Event]) -> list[Any]:
    return [one.event for one in change.journal().since(0)[0] if isinstance(one.event, kind)]


@contextmanager
def open_run(change: Change, watch: Callable[[events.JournalEntry], None] = lambda entry: None) -> Iterator[Any]:
    """A plan of the change under way in this process."""
    from agentd.domain.terms import Workflow
    from agentd.engine.calls import run_context as runs

    command = f"agentd plan {change.id}"
    with runs.begin_run(change, lambda: load_config(change.project.config_file), Workflow.PLAN, command, watch) as run:
        yield run


def replace_text(path: Path, old: str, new: str) -> None:
    """A person's edit: the old text is there once."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old} stands {text.count(old)} times in:\n{text}"
    path.write_text(text.replace(old, new))


def record_edits(record: ReviewRecord) -> list[tuple[str, str, Any, str]]:
    return [(one.id, one.field, one.to, one.by) for one in record.edits]


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def tree_files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a worktree but git's own, with its rights."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and name.parts[0] != ".git":
            found[str(name)] = (path.stat().st_mode, path.read_bytes())
    return found


def project_files(root: Path) -> dict[str, bytes]:
    """Every file of the project and of its local state, but the index, which any command may bring up to date."""
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    local = ".git/agentd/"
    own = [name for name in found if name.startswith(local) or not name.startswith(".git/")]
    return {name: found[name].read_bytes() for name in own if not name.startswith(f"{local}index.json")}


def _finding(id_: str, severity: str, title: str) -> Finding:
    grade = Severity(severity.lower())
    return Finding(
        id=id_,
        severity=grade,
        title=title,
        what="So.",
        suggestion="",
        requirement=None,
        where=None,
        evidence=None,
        verified=True,
        by="agent:play",
        state=FindingState.OPEN,
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
