"""The form of a plan is settled before anybody builds on it or judges it."""

from collections.abc import Sequence

from agentd.domain import FormatInvalid
from agentd.engine.steps import format_fix
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows.decision_questions import Question, QuestionOption, ask_decision
from agentd.engine.workflows.run_options import RunOptions
from agentd.validation import RuleFinding

_NAMED = 5  # faults named in an error; `agentd validate` lists them all


def repair_format(desk: StepContext, wishes: RunOptions) -> None:
    """Validation without an agent; what is left is mended by the planner or by the person."""
    most = desk.config.workflow.format_iterations
    while found := format_fix.format_faults(desk):
        format_fix.report_faults(desk, found)
        if wishes.person:
            wishes.person.tell(_lines(found))
        answered = ask_decision(desk.run, _form_question(desk, found), wishes.person)
        answer = answered.id if answered else "planner"
        if answer == "stop":
            raise _unformed(f"Stopped with {_faults(found)} left in the plan", desk.change.id, found)
        if answer == "person" and wishes.person:
            wishes.person.wait(f"Mend {_files(found)}, then press Enter")
        elif wishes.person is None and format_fix.fixes_used(desk.change.read()) >= most:
            raise _unformed(f"Format validation still failing after {most} iterations", desk.change.id, found)
        else:
            format_fix.run_format_fix(desk, found)


def _form_question(desk: StepContext, found: Sequence[RuleFinding]) -> Question:
    options = (
        QuestionOption("planner", "The planner mends it"),
        QuestionOption("person", "I mend it"),
        QuestionOption("stop", "Stop here"),
    )
    number = format_fix.fixes_used(desk.change.read()) + 1
    return Question(f"format-{number}", f"The plan has {_faults(found)} in its form. What next?", options, "planner")


def _unformed(message: str, change_id: str, found: Sequence[RuleFinding]) -> FormatInvalid:
    hint = f"mend them (agentd validate {change_id} lists all), then: agentd plan {change_id}"
    return FormatInvalid("\n".join([message, *_lines(found)]), hint)


def _lines(found: Sequence[RuleFinding]) -> list[str]:
    lines = [f"  {one.file}:{one.line} {one.rule}: {one.message}" for one in found[:_NAMED]]
    return [*lines, f"  and {len(found) - _NAMED} more"] if len(found) > _NAMED else lines


def _faults(found: Sequence[RuleFinding]) -> str:
    return "1 fault" if len(found) == 1 else f"{len(found)} faults"


def _files(found: Sequence[RuleFinding]) -> str:
    return ", ".join(dict.fromkeys(one.file for one in found))
