"""What a step works with: the run, the prompts, the names of things as the agent in a role knows them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from agentd.agents import get_adapter
from agentd.change import Change, document_hash, fixed_documents, write_fixes
from agentd.documents import PROPOSAL_FILE, TASKS_FILE, Scope, decode_text, parse_proposal, parse_tasks, spec_order
from agentd.domain import ChallengeVerdict, Complexity, FormatInvalid, NoticeIssued, ReviewVerdict, Role
from agentd.engine.calls import agent_selection, document_backup
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.calls.run_context import RunContext, change_project
from agentd.engine.context.context_files import judge_context, planner_context
from agentd.engine.prompts.prompt_renderer import Prompts
from agentd.engine.tools.tool_table import Stage, tools_of
from agentd.guard import plan_write_rule
from agentd.project import Config
from agentd.storage import files

PLANNER, JUDGE = "GEMINI.md", "AGENTS.md"


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

    @cached_property
    def _prompts(self) -> Prompts:
        return Prompts(change_project(self.change), self.environ)

    @property
    def round(self) -> int:
        """The maker's work and the verdict on it are one round: the one that comes after the last challenge."""
        return 1 + len(self.change.records("challenge"))

    def path(self, name: str) -> str:
        """A document of the change, from the project's root."""
        return f"agentd/changes/{self.change.id}/{name}"

    def main_spec(self, spec: str) -> str:
        """The project's own spec of that id, from the project's root; "" if there is none."""
        name = f"agentd/specs/{spec}.md"
        return name if self.project_file(name).is_file() else ""

    def project_file(self, name: str) -> Path:
        return change_project(self.change).root / name

    def prompt(self, name: str, role: Role, stage: Stage, **values: Any) -> str:
        return self._prompts.render(
            name,
            change_id=self.change.id,
            folder=f"agentd/changes/{self.change.id}",
            context=self.path(JUDGE if role.is_judge else PLANNER),
            tools=self.tools(role, stage),
            **values,
        )

    def reminder(self, role: Role, stage: Stage, missing: str, tool: str) -> str:
        return self.prompt("reminder", role, stage, missing=missing, tool=self.tools(role, stage)[tool])

    def tools(self, role: Role, stage: Stage) -> dict[str, str]:
        """What the agent in that role calls the tools of the stage."""
        tool_name = get_adapter(self.config.agent_for(role).kind).tool_name
        return {tool.name: tool_name(tool.name) for tool in tools_of(stage)}

    def write_context(self, role: Role, stage: Stage) -> None:
        """What the agent in that role is to know before it begins, as things are now."""
        name, text = (JUDGE, judge_context) if role.is_judge else (PLANNER, planner_context)
        brought = get_adapter(self.config.agent_for(role).kind).brings
        data = text(self.change, tools=self.tools(role, stage), brought=brought).encode()
        with self.change.writing(self.run.token):
            files.write(self.change.folder / name, data)

    def planner_work(
        self,
        step: str,
        prompt: str,
        *,
        effect: Callable[[], bool] | None,
        number: int = 1,
        reminder: str = "",
        resume: str | None = None,
        on_session: Callable[[str], None] | None = None,
    ) -> CallRequest:
        """A call of the planner in this round; it may write the documents of its own change."""
        return CallRequest(
            step=step,
            round=self.round,
            number=number,
            role=Role.PLANNER,
            stage=Stage.PLAN,
            prompt=prompt,
            effect=effect,
            reminder=reminder,
            complexity=plan_complexity(self.change),
            resume=resume,
            on_session=on_session,
            may_edit=plan_write_rule(self.change.id),
        )

    def hashes(self, *names: str) -> dict[str, str]:
        return {name: document_hash(self.change.folder / name) for name in names}

    def fix_format(self) -> None:
        """Mechanical faults in what the agent wrote are put right on the spot, without an agent."""
        for name, (_, new) in fixed_documents(self.change, self.config.validation).items():
            document_backup.record_written(self.run.folder, name, new)
        for name in write_fixes(self.change, self.config.validation, self.run.token):
            self.run.emit(NoticeIssued(code="mended", message=f"agentd fixed the format of {name}"))

    # ---- the planner's own session

    def is_planner_remembered(self) -> bool:
        """The planner's CLI keeps sessions."""
        return get_adapter(self.config.agent_for(Role.PLANNER).kind).sessions != "none"

    def planner_session(self) -> str | None:
        """To be resumed; None: there is none, or it was made on another machine."""
        session = self.change.read().session_id
        if session is None or not self.is_planner_remembered():
            return None
        if agent_selection.is_local_session(self.change, session):
            return session
        message = "the planner's session was made on another machine, so a new one continues from the documents"
        self.run.emit(NoticeIssued(code="session-elsewhere", message=message))
        return None

    def keep_session(self, session: str) -> None:
        """The planner's own from now on."""
        agent_selection.remember_session(self.change, session)
        self.run.update(lambda old: replace(old, session_id=session))


@dataclass(frozen=True)
class JudgeSpec:
    """`kind` is the record's, the step's and the verdict's; `answer` is the step in which the maker answers."""

    kind: str
    judge: Role
    maker: Role
    stage: Stage
    prefix: str  # of the findings' ids
    page: str
    answer: str
    command: str  # which workflow it is of
    verdicts: type[ChallengeVerdict] | type[ReviewVerdict]


CHALLENGER_SPEC = JudgeSpec(
    kind="challenge",
    judge=Role.CHALLENGER,
    maker=Role.PLANNER,
    stage=Stage.CHALLENGE,
    prefix="C",
    page="CHALLENGE.md",
    answer="reproposal",
    command="plan",
    verdicts=ChallengeVerdict,
)
REVIEWER_SPEC = JudgeSpec(
    kind="review",
    judge=Role.REVIEWER,
    maker=Role.IMPLEMENTER,
    stage=Stage.REVIEW,
    prefix="V",
    page="REVIEW.md",
    answer="resolve",
    command="impl",
    verdicts=ReviewVerdict,
)
JUDGE_SPECS = {judge_spec.kind: judge_spec for judge_spec in (CHALLENGER_SPEC, REVIEWER_SPEC)}


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """`specs` in the order in which they are written."""

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
    """None while there is no proposal that can be read."""
    text = _text(change, PROPOSAL_FILE)
    if text is None:
        return None
    try:
        impact = parse_proposal(text).impact
    except FormatInvalid:
        return None
    return PlanFacts(spec_order(impact).ids, impact.scope, impact.affected_files or 0, _tasks(change))


def plan_complexity(change: Change) -> Complexity:
    """What picks the model: medium before a proposal exists."""
    found = read_plan_facts(change)
    return found.complexity if found else Complexity.MEDIUM


def _tasks(change: Change) -> int:
    text = _text(change, TASKS_FILE)
    try:
        return len(parse_tasks(text).tasks) if text is not None else 0
    except FormatInvalid:
        return 0


def _text(change: Change, name: str) -> str | None:
    path = change.folder / name
    try:
        return decode_text(files.read(path), name) if path.is_file() else None
    except FormatInvalid:
        return None  # validation tells what is wrong with it
