"""What every step works with: the run and its prompts, the settings of the two judges, the size of the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentd.agents import get_adapter
from agentd.change import Change, document_hash, fixed_documents, write_fixes
from agentd.documents import (
    PROPOSAL_FILE,
    TASKS_FILE,
    Finding,
    Scope,
    decode_text,
    parse_proposal,
    parse_tasks,
    spec_order,
)
from agentd.domain import ChallengeVerdict, Complexity, FormatInvalid, NoticeIssued, ReviewVerdict, Role, events
from agentd.engine.calls import agent_selection, document_backup, retries
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.calls.run_context import RunContext, change_project
from agentd.engine.context.context_files import judge_context, planner_context
from agentd.engine.prompts.prompt_renderer import render_prompt
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import tools_of
from agentd.project import Config
from agentd.storage import files

PLANNER, JUDGE = "GEMINI.md", "AGENTS.md"
_REPORTED = ("id", "severity", "title", "where", "verified", "by", "state")


@dataclass(frozen=True)
class StepContext:
    run: RunContext
    environ: Mapping[str, str]

    @property
    def change(self) -> Change:
        return self.run.change

    @property
    def config(self) -> Config:
        return self.run.config

    @property
    def round(self) -> int:
        """The current planning round: the author's work and the verdict on it are one round."""
        return 1 + len(self.change.records("challenge"))

    def path(self, name: str) -> str:
        """Return the path of a document of the change, relative to the project root."""
        return f"agentd/changes/{self.change.id}/{name}"

    def prompt(self, name: str, role: Role, stage: Stage, **values: Any) -> str:
        return render_prompt(
            change_project(self.change),
            self.environ,
            name,
            change_id=self.change.id,
            folder=f"agentd/changes/{self.change.id}",
            context=self.path(JUDGE if role.is_judge else PLANNER),
            tools=self._tools(role, stage),
            **values,
        )

    def reminder(self, role: Role, stage: Stage, missing: str, tool: str) -> str:
        return self.prompt("reminder", role, stage, missing=missing, tool=self._tools(role, stage)[tool])

    def _tools(self, role: Role, stage: Stage) -> dict[str, str]:
        """Map the tools of the stage to the names that the role's CLI gives them."""
        tool_name = get_adapter(self.config.agent_for(role).kind).tool_name
        return {tool.name: tool_name(tool.name) for tool in tools_of(stage)}

    def write_context(self, role: Role, stage: Stage, **material: Any) -> None:
        """Write the file that the agent in this role reads first. `material` is what only a reviewer gets."""
        context, name = (judge_context, JUDGE) if role.is_judge else (planner_context, PLANNER)
        loaded = get_adapter(self.config.agent_for(role).kind).brings
        text = context(self.change, tools=self._tools(role, stage), loaded=loaded, **material)
        with self.change.writing(self.run.token):
            files.write(self.change.folder / name, text.encode())

    def call_agent(self, role: Role, stage: Stage, **request: Any) -> tuple[CallRequest, CallResult]:
        """Call the agent in this role until its work is done; a model fitting the plan is selected."""
        call = CallRequest(role=role, stage=stage, complexity=plan_complexity(self.change), **request)
        return call, retries.perform_call(self.run, call)

    def hashes(self, *names: str) -> dict[str, str]:
        return {name: document_hash(self.change.folder / name) for name in names}

    def changed_since(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the hashes of the plan documents that differ from `before`."""
        return {name: digest for name, digest in self.change.hashes().items() if before.get(name) != digest}

    def fix_format(self) -> None:
        """Fix mechanical format faults in what an agent wrote, without calling an agent."""
        for name, (_, new) in fixed_documents(self.change, self.config.validation).items():
            document_backup.record_written(self.run.folder, name, new)
        for name in write_fixes(self.change, self.config.validation, self.run.token):
            self.run.emit(NoticeIssued(code="format-fixed", message=f"agentd fixed the format of {name}"))

    def report_finding(self, finding: Finding, **values: Any) -> None:
        """Emit the event of a finding; `values` are the step's names, or replace what the finding says."""
        self.run.emit(events.FindingReported(**{name: getattr(finding, name) for name in _REPORTED} | values))

    def planner_session(self) -> str | None:
        """Return the planner's session to resume; None if there is none or it is from another machine."""
        session = self.change.read().session_id
        if session is None or get_adapter(self.config.agent_for(Role.PLANNER).kind).sessions == "none":
            return None
        if agent_selection.is_local_session(self.change, session):
            return session
        message = "the planner's session was made on another machine, so a new session continues from the documents"
        self.run.emit(NoticeIssued(code="session-elsewhere", message=message))
        return None

    def save_session(self, session: str) -> None:
        """Store the planner's session, which later steps resume."""
        agent_selection.remember_session(self.change, session)
        self.run.update(lambda old: replace(old, session_id=session))


@dataclass(frozen=True)
class JudgeSpec:
    """One of the two judges. `kind` names its step, record and verdict; in `answer` the author answers it."""

    kind: str
    role: Role
    author: Role
    stage: Stage
    prefix: str  # of the ids of its findings
    page: str
    answer: str
    command: str
    verdicts: type[ChallengeVerdict] | type[ReviewVerdict]


CHALLENGER_SPEC = JudgeSpec(
    kind="challenge",
    role=Role.CHALLENGER,
    author=Role.PLANNER,
    stage=Stage.CHALLENGE,
    prefix="C",
    page="CHALLENGE.md",
    answer="reproposal",
    command="plan",
    verdicts=ChallengeVerdict,
)
REVIEWER_SPEC = JudgeSpec(
    kind="review",
    role=Role.REVIEWER,
    author=Role.IMPLEMENTER,
    stage=Stage.REVIEW,
    prefix="V",
    page="REVIEW.md",
    answer="resolve",
    command="impl",
    verdicts=ReviewVerdict,
)
JUDGE_SPECS = {judge.kind: judge for judge in (CHALLENGER_SPEC, REVIEWER_SPEC)}


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The size of a plan according to its documents; `specs` are in the order in which they are written."""

    specs: tuple[str, ...] = ()
    scope: Scope | None = None
    files: int = 0
    tasks: int = 0

    @property
    def complexity(self) -> Complexity:
        return Complexity.of(len(self.specs), self.tasks, self.files)

    @property
    def is_small(self) -> bool:
        return self.scope is Scope.PATCH and len(self.specs) <= 1


def read_plan_facts(change: Change) -> PlanFacts | None:
    """Return None while there is no readable proposal; validation reports what is wrong with one."""
    try:
        impact = parse_proposal(_read_document(change, PROPOSAL_FILE)).impact
    except FormatInvalid:
        return None
    try:
        tasks = len(parse_tasks(_read_document(change, TASKS_FILE)).tasks)
    except FormatInvalid:
        tasks = 0
    return PlanFacts(spec_order(impact).ids, impact.scope, impact.affected_files or 0, tasks)


def _read_document(change: Change, name: str) -> str:
    path = change.folder / name
    if not path.is_file():
        raise FormatInvalid(f"there is no {name}")
    return decode_text(files.read(path), name)


def plan_complexity(change: Change) -> Complexity:
    """Return what selects the model: medium before there is a proposal."""
    facts = read_plan_facts(change)
    return facts.complexity if facts else Complexity.MEDIUM
