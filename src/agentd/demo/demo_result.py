"""What the demo has made, read from the project that it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass

from agentd.change import read_state
from agentd.demo.story import ACTS
from agentd.demo.verification import change_folder, failed_tests, judge_finding
from agentd.demo.workspace import DemoWorkspace
from agentd.documents import Finding
from agentd.project import git

_WORDS = {"A": "new", "M": "changed", "D": "gone"}


@dataclass(frozen=True)
class DemoResult:
    """`files` by their path, with what became of each since the project was set up; `cost` as if models were asked."""

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
