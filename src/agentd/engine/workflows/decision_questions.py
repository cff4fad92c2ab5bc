"""Questions to a person: asked at the terminal and through the inbox; the first answer counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentd.change import Change, Decision, Inbox
from agentd.documents import count_open
from agentd.domain import CheckStatus, clock, events, join_words
from agentd.engine.calls.run_context import RunContext
from agentd.engine.workflows import read_digest
from agentd.engine.workflows.verdict_status import challenges, open_findings


@dataclass(frozen=True)
class QuestionOption:
    """One answer. `flag` gives it without a terminal, `command` is the whole command; `asks` prompts for a reason."""

    id: str
    label: str
    flag: str | None = None
    command: str | None = None
    asks: str = ""


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    options: tuple[QuestionOption, ...]
    recommended: str
    also: tuple[QuestionOption, ...] = ()  # answers accepted from the inbox but not offered at the terminal
    why: str = ""
    about: Mapping[str, Any] | None = None  # the state of the change, as in a result

    @property
    def answers(self) -> dict[str, QuestionOption]:
        return {option.id: option for option in (*self.options, *self.also)}


@dataclass(frozen=True)
class DecisionAnswer:
    """`via`: terminal, flag or inbox. `reason`: what the option asks for."""

    id: str
    by: str
    via: str
    reason: str = ""


class Person(Protocol):
    """The person at the terminal."""

    def choose(self, question: Question, otherwise: Callable[[], DecisionAnswer | None]) -> DecisionAnswer:
        """Return the answer given here, or the one `otherwise` returns in the meantime."""
        ...

    def tell(self, lines: Sequence[str]) -> None:
        """Print lines that the next question is about."""
        ...

    def wait(self, text: str) -> None:
        """Wait until the person has done what the text says."""
        ...

    def show(self, path: str) -> None:
        """Show a document."""
        ...


def ask_decision(
    run: RunContext, question: Question, person: Person | None, yes: bool = False
) -> DecisionAnswer | None:
    """Return the person's answer, the recommended one with `yes`, or None."""
    if person is None and not yes:
        return None
    options = tuple(option.id for option in question.options)
    asked = events.DecisionRequested(
        id=question.id, question=question.text, options=options, recommended=question.recommended
    )
    run.emit(asked)
    answer = _ask(run, question, person) if person else DecisionAnswer(question.recommended, "agentd", "flag")
    run.emit(
        events.DecisionMade(
            id=question.id, answer=answer.id, reason=answer.reason or None, by=answer.by, via=answer.via
        )
    )
    return answer


def _ask(run: RunContext, question: Question, person: Person) -> DecisionAnswer:
    """Ask at the terminal and through the inbox at the same time."""
    inbox = Inbox(run.change)
    answers = [{"id": one.id, "label": one.label, "asks": one.asks} for one in question.answers.values()]
    asked = {"id": question.id, "question": question.text, "options": _offered_now(question), "answers": answers}
    inbox.open({**asked, "hashes": read_digest.current_reading(run.change), "at": clock.now()})
    why = "the question was withdrawn"
    try:
        answer = person.choose(question, lambda: _delivered(run, inbox, question))
        why = f"{answer.by} decided first: {answer.id}"
        return answer
    finally:
        inbox.close(why)


def option_rows(question: Question) -> list[dict[str, Any]]:
    """Return the options as every interface shows them."""
    return [
        {
            "id": one.id,
            "label": one.label,
            "recommended": one.id == question.recommended,
            "flag": one.flag,
            "command": one.command,
        }
        for one in question.options
    ]


def _offered_now(question: Question) -> list[dict[str, Any]]:
    """Return the options without commands that would start a second run while this one waits."""
    is_answer = {one.id: bool(one.asks) or one.flag is None for one in question.options}
    return [{**row, "command": row["command"] if is_answer[row["id"]] else None} for row in option_rows(question)]


def _delivered(run: RunContext, inbox: Inbox, question: Question) -> DecisionAnswer | None:
    """Return a valid decision from the inbox; reply to an invalid one with the reason."""
    found = inbox.take()
    if found is None:
        return None
    name, decision = found
    problem = refusal_reason(decision, question, read_digest.current_reading(run.change))
    inbox.reply(name, problem is None, problem or "taken")
    return DecisionAnswer(decision.answer, decision.by, "inbox", decision.reason) if problem is None else None


def refusal_reason(decision: Decision, question: Question, now: Mapping[str, str]) -> str | None:
    """Return why a decision does not count: stale, for another question, without a reason, or not by a person."""
    if decision.question != question.id:
        return f"the question is {question.id} now"
    option = question.answers.get(decision.answer)
    if option is None:
        return f"{decision.answer} is not one of {', '.join(question.answers)}"
    if option.asks and not decision.reason.strip():
        return f"{decision.answer} needs a reason"
    if not decision.by.startswith("person:"):
        return "only a person can decide"
    changed = read_digest.differing_names(decision.hashes, now)
    return f"{read_digest.describe_differences(changed, now)} since this was decided" if changed else None


_WHY = "Why?"


def after_challenge(change: Change, recommended: str = "fix") -> Question:
    start = f"agentd plan {change.id}"
    options = (
        QuestionOption("fix", "Fix and challenge again", "--rounds 1", f"{start} --rounds 1"),
        QuestionOption("view", "Look at it", None, f"agentd view {change.id}"),
        QuestionOption("accept", "Accept with a reason", '--accept "REASON"', f'{start} --accept "REASON"', _WHY),
        QuestionOption("stop", "Stop here", "--rounds 0"),
    )
    id_, text = f"after-challenge-{len(challenges(change))}", f"The challenge found {_found(change)}. What next?"
    others = (QuestionOption("reject", "Reject it", asks=_WHY), QuestionOption("send-back", "Send it back", asks=_WHY))
    return Question(id_, text, options, recommended, others)


def after_review(change: Change) -> Question:
    """A failed required check cannot be accepted; one that failed before the first edit can be declared known."""
    start = f"agentd impl {change.id}"
    options = [
        QuestionOption("fix", "Fix and review again", "--rounds 1", f"{start} --rounds 1"),
        QuestionOption("view", "Look at it", None, f"agentd view {change.id}"),
        QuestionOption("accept", "Accept with a reason", '--accept "REASON"', f'{start} --accept "REASON"', _WHY),
        QuestionOption(
            "plan-wrong", "The plan is wrong", '--plan-wrong "REASON"', f'{start} --plan-wrong "REASON"', _WHY
        ),
        QuestionOption("stop", "Stop here", "--rounds 0"),
    ]
    blocking = blocking_checks(change)
    if blocking:
        options = [one for one in options if one.id != "accept"]
    if any(_failed_before(row) for row in blocking):
        flag = '--known-failures "REASON"'
        options.insert(
            2,
            QuestionOption("known-failures", "It failed before: say why that is known", flag, f"{start} {flag}", _WHY),
        )
    number = len(change.records("review"))
    return Question(f"after-review-{number}", f"The review found {_found(change)}. What next?", tuple(options), "fix")


def blocking_checks(change: Change) -> list[Mapping[str, Any]]:
    """Return the checks that block acceptance, from the last run."""
    return [row for row in change.read().checks if row.get("blocks")]


def _failed_before(row: Mapping[str, Any]) -> bool:
    before = row.get("before") or {}
    return row.get("status") == CheckStatus.FAILED == before.get("status")


def _found(change: Change) -> str:
    counts = [f"{count} {severity}" for severity, count in count_open(open_findings(change)).items() if count]
    return join_words(counts) or "nothing"
