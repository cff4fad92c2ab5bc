"""What the demo has made, read from the project that it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass

from agentd.change.folder import read_state
from agentd.demo.acts import ACTS
from agentd.demo.place import Place
from agentd.demo.proof import failed_tests, folder_of, found_by_judge
from agentd.documents.records import Finding
from agentd.project import git

_WORDS = {"A": "new", "M": "changed", "D": "gone"}


@dataclass(frozen=True)
class Made:
    """`files` by their path, with what became of each since the project was set up; `cost` as if models were asked."""

    files: Mapping[str, str]
    in_plan: Finding | None
    in_code: Finding | None
    failed_tests: tuple[str, ...]
    cost: float
    log: tuple[str, ...]


def made(place: Place) -> Made:
    top = str(place.project)
    kept = sum(bool(act.commit) for act in ACTS)
    rows = git.run(top, "diff", "--name-status", "--no-renames", f"HEAD~{kept}", "HEAD").splitlines()
    return Made(
        files={path: _WORDS[mark] for mark, path in (row.split("\t") for row in rows)},
        in_plan=found_by_judge(place, "challenge"),
        in_code=found_by_judge(place, "review"),
        failed_tests=tuple(name.rpartition(".")[2] for name in failed_tests(place)),
        cost=read_state(folder_of(place)).total_cost,
        log=tuple(git.run(top, "log", "--format=%h %s").splitlines()),
    )
