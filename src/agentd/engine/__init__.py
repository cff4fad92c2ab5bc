"""Runs a change through its workflows.

tools      what agents may do: every MCP tool, its stage rights and its arguments
context    what an agent reads before it begins; prompts: what it is asked
calls      one agent call: selection, budget, retries, sessions, ledger
steps      one module per kind of step: its prompt, its effect, what its result becomes on disk
workflows  plan and impl: which steps in which order, when to stop, what to ask a person
archive    merge the specs, move the folder, undo, rebase
workflow_run    one run of a command, from start to recorded outcome; detached_run: in its own process
project_setup   what `init` writes
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.engine.archive.archive import ArchivePlan, archive_change, prepare_archive, undo_archive
    from agentd.engine.archive.branch_check import GitCommands
    from agentd.engine.archive.preview import (
        CHANGELOG_FILE,
        MergeConflict,
        SpecPreview,
        change_spec_files,
        describe_spec_change,
        main_spec_path,
        preview_spec,
        read_optional,
    )
    from agentd.engine.archive.rebase import RebasedSpec, preview_rebase, rebase_change
    from agentd.engine.calls.agent_selection import ensure_agent_installed
    from agentd.engine.calls.budget import CostTotals, effective_budget, group_costs
    from agentd.engine.calls.call_costs import Spending, change_spending, day_spending
    from agentd.engine.calls.interrupts import defer_interrupts, interruptible
    from agentd.engine.calls.run_context import change_project
    from agentd.engine.detached_run import run_detached, start_detached
    from agentd.engine.project_setup import SetupResult, commit_setup, ignored_files, set_up_project, uncommitted_files
    from agentd.engine.steps.check_run import CHECKS_STEP, check_baseline
    from agentd.engine.steps.code_trees import files_edited_since_review, specs_edited_since_review
    from agentd.engine.steps.planner import saved_questions
    from agentd.engine.steps.step_context import JUDGE_SPECS, REVIEWER_SPEC
    from agentd.engine.tools.question_tools import clarifications_from_rows
    from agentd.engine.tools.tool import Stage, ToolRefusal, check_arguments
    from agentd.engine.tools.tool_scope import ToolScope, open_run_scope
    from agentd.engine.tools.tool_table import TOOLS, call_tool, tools_of
    from agentd.engine.tools.tree_diff import ChangedPath, changed_files, diff_by_file
    from agentd.engine.workflow_run import (
        RunResult,
        current_result,
        open_or_create_change,
        planned_steps,
        run_workflow,
        settled_result,
    )
    from agentd.engine.workflows.change_start import NewChange, commit_pending, inspect_repository, list_names
    from agentd.engine.workflows.cost_forecast import RunForecast, StepForecast, forecast_code, forecast_plan
    from agentd.engine.workflows.decision_questions import DecisionAnswer, Question, blocking_checks
    from agentd.engine.workflows.dependencies import pending_dependencies
    from agentd.engine.workflows.person_decisions import belongs_to_workflow, deliver_decision, pending_question
    from agentd.engine.workflows.progress import (
        ProgressBoard,
        ProgressCost,
        ProgressRow,
        StepAnswer,
        StepProgress,
        StepSource,
    )
    from agentd.engine.workflows.read_digest import (
        CODE_TREE_KEY,
        FINDINGS_KEY,
        VERDICTS_KEY,
        check_reading,
        current_reading,
        describe_differences,
        differing_names,
        open_findings_text,
        reading_digest,
    )
    from agentd.engine.workflows.run_request import PersonDecision, RunOptions, RunRequest
    from agentd.engine.workflows.run_result import build_result, next_command, next_request
    from agentd.engine.workflows.step_lists import PlannedStep, impl_steps, plan_steps
    from agentd.engine.workflows.task_batches import IMPLEMENT_STEP
    from agentd.engine.workflows.verdict_status import (
        is_plan_as_decided,
        is_plan_edited,
        last_record,
        open_findings,
    )
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
