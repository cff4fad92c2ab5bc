"""Check the outcome of an act, from the files it left."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentd.change import read_records, read_state
from agentd.demo import workspace
from agentd.demo.story import ACTS, DEMO_CHANGE_ID, StoryPoint
from agentd.demo.workspace import DemoWorkspace
from agentd.documents import Finding, ReviewRecord, current_findings
from agentd.domain import ChallengeVerdict, CheckStatus, Phase, ReviewVerdict, Severity
from agentd.project import git

SPECS = {"splitting": "R4", "balances": "R2", "settling": "R2"}  # with the last requirement of each


def find_mistakes(place: DemoWorkspace, point: StoryPoint) -> list[str]:
    """Return what is wrong at this point of the story; [] if everything is as expected."""
    return list(_LOOKS[point](place))


def change_folder(place: DemoWorkspace) -> Path:
    """Return the folder of the change, open or archived."""
    home = place.project / "agentd"
    archived = sorted((home / "archive").glob(f"*-{DEMO_CHANGE_ID}"))
    return archived[-1] if archived else home / "changes" / DEMO_CHANGE_ID


def last_demo_record(place: DemoWorkspace, kind: str) -> ReviewRecord | None:
    return next(reversed(read_records(change_folder(place), kind)), None)


def judge_finding(place: DemoWorkspace, kind: str) -> Finding | None:
    """Return the high finding of the first round whose evidence agentd verified."""
    first = read_records(change_folder(place), kind)[:1]
    found = (one for record in first for one in record.findings if one.by == record.by)
    return next((one for one in found if one.severity is Severity.HIGH and one.verified), None)


def failed_tests(place: DemoWorkspace) -> list[str]:
    """Return the tests that failed in the check agentd ran for the first review."""
    rows = [row for record in read_records(change_folder(place), "review")[:1] for row in record.checks or ()]
    return [name for row in rows if row["status"] == CheckStatus.FAILED for name in row["failed_tests"]]


def _clarified(place: DemoWorkspace) -> Iterator[str]:
    yield from _phase(place, Phase.DRAFTING)
    if not (change_folder(place) / "clarifications.md").is_file():
        yield "the answers were not written to clarifications.md"


def _challenged(place: DemoWorkspace) -> Iterator[str]:
    yield from _judged(place, Phase.PROPOSED, "challenge", ChallengeVerdict.NEEDS_REVISION)
    yield from (
        f"there is no spec {name}" for name in SPECS if not (change_folder(place) / f"specs/{name}.md").is_file()
    )
    if judge_finding(place, "challenge") is None:
        yield "the challenger has no high finding whose evidence holds"


def _approved(place: DemoWorkspace) -> Iterator[str]:
    yield from _judged(place, Phase.CHALLENGED, "challenge", ChallengeVerdict.APPROVED)
    yield from _left_open(place, "challenge")


def _reviewed(place: DemoWorkspace) -> Iterator[str]:
    yield from _judged(place, Phase.IMPLEMENTING, "review", ReviewVerdict.NEEDS_CHANGES)
    if not failed_tests(place):
        yield "no test has failed"
    if judge_finding(place, "review") is None:
        yield "the reviewer has no high finding whose evidence holds"


def _complete(place: DemoWorkspace) -> Iterator[str]:
    yield from _judged(place, Phase.COMPLETE, "review", ReviewVerdict.APPROVED)
    yield from _left_open(place, "review")
    yield from _tests(place)


def _archived(place: DemoWorkspace) -> Iterator[str]:
    yield from _phase(place, Phase.ARCHIVED)
    for name, requirement in SPECS.items():
        path = place.project / "agentd" / "specs" / f"{name}.md"
        if not path.is_file() or f"### {requirement}:" not in path.read_text("utf-8"):
            yield f"agentd/specs/{name}.md lacks {requirement}"
    yield from _tests(place)


_LOOKS: Mapping[StoryPoint, Callable[[DemoWorkspace], Iterator[str]]] = {
    StoryPoint.CLARIFIED: _clarified,
    StoryPoint.CHALLENGED: _challenged,
    StoryPoint.APPROVED: _approved,
    StoryPoint.REVIEWED: _reviewed,
    StoryPoint.COMPLETE: _complete,
    StoryPoint.ARCHIVED: _archived,
}


def _phase(place: DemoWorkspace, wanted: Phase) -> Iterator[str]:
    phase = read_state(change_folder(place)).phase
    if phase is not wanted:
        yield f"the change is {phase}, and should be {wanted}"


def _judged(place: DemoWorkspace, phase: Phase, kind: str, verdict: str) -> Iterator[str]:
    yield from _phase(place, phase)
    record = last_demo_record(place, kind)
    if record is None or record.verdict != verdict:
        yield f"the verdict of the {kind} is {record.verdict if record else 'missing'}, and should be {verdict}"


def _left_open(place: DemoWorkspace, kind: str) -> Iterator[str]:
    left = [one.id for one in current_findings(read_records(change_folder(place), kind)) if one.state.is_open]
    if left:
        yield f"findings are still open: {', '.join(left)}"


def _tests(place: DemoWorkspace) -> Iterator[str]:
    """Run the sample's tests with plain unittest, without agentd."""
    done = workspace.run_python("-m", "unittest", "discover", "-s", str(place.project), "-t", str(place.project))
    if done.code:
        yield f"the tests of the sample fail:\n{done.told}"


_WORDS = {"A": "new", "M": "changed", "D": "gone"}


@dataclass(frozen=True)
class DemoResult:
    """`files` by path, with what happened to each since the setup; `cost` is simulated."""

    files: Mapping[str, str]
    in_plan: Finding | None
    in_code: Finding | None
    failed_tests: tuple[str, ...]
    cost: float
    log: tuple[str, ...]


def read_demo_result(place: DemoWorkspace) -> DemoResult:
    top = str(place.project)
    kept = sum(bool(act.commit) for act in ACTS)
    rows = git.run(top, "diff", "--name-status", "--no-renames", f"HEAD~{kept}", "HEAD").splitlines()
    return DemoResult(
        files={path: _WORDS[mark] for mark, path in (row.split("\t") for row in rows)},
        in_plan=judge_finding(place, "challenge"),
        in_code=judge_finding(place, "review"),
        failed_tests=tuple(name.rpartition(".")[2] for name in failed_tests(place)),
        cost=read_state(change_folder(place)).total_cost,
        log=tuple(git.run(top, "log", "--format=%h %s").splitlines()),
    )
