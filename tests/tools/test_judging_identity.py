"""A finding keeps its id over rounds: one that is found again is the old one, what a person closed stays closed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentd.documents import records
from agentd.documents.records import FindingEdit
from agentd.engine.tools.tool import Stage, ToolRefusal
from agentd.engine.tools.tool_table import call_tool
from agentd.storage import files
from mcp_session import Staged, staged
from playbooks import finding
from scenario import Scenario

TITLE, PLACE = "The callback accepts any `state`", "auth-flow:R2"  # of C1 in the example


@pytest.fixture
def judge(project: Scenario) -> Iterator[Staged]:
    with staged(project, Stage.CHALLENGE) as on:
        yield on


def report(on: Staged, *found: dict[str, Any], verdict: str = "NEEDS_REVISION", **previous: str) -> dict[str, Any]:
    """What is kept of it."""
    words = [{"id": id_, "state": state, "note": "Seen."} for id_, state in previous.items()]
    arguments = {"verdict": verdict, "summary": "So.", "findings": list(found), "previous": words}
    call_tool(on.binding(), "append_review", arguments)
    return dict(on.run_json("report.json"))


def again(title: str = TITLE, requirement: str = PLACE, **more: Any) -> dict[str, Any]:
    return finding(title=title, requirement=requirement, **more)


@pytest.mark.parametrize("title", [TITLE, TITLE.upper(), "the callback  accepts any state."])
def test_repeated_finding_keeps_its_id(judge: Staged, title: str) -> None:
    kept = report(judge, again(title), finding("low", "Another one"))
    assert [one["id"] for one in kept["findings"]] == ["C4"]
    assert kept["previous"] == [{"id": "C1", "state": "open", "note": "So it does."}]


@pytest.mark.parametrize("other", [again(requirement="user-model:R1"), finding(title=TITLE), again("The callback")])
def test_finding_about_something_else_is_new(judge: Staged, other: dict[str, Any]) -> None:
    kept = report(judge, other)
    assert ([one["id"] for one in kept["findings"]], kept["previous"]) == (["C4"], [])


def test_finding_called_fixed_but_reported_again_is_open(judge: Staged) -> None:
    kept = report(judge, again(), C1="fixed", C2="fixed")
    assert {one["id"]: one["state"] for one in kept["previous"]} == {"C1": "open", "C2": "fixed"}
    with pytest.raises(ToolRefusal, match="APPROVED while C1 is high and open"):
        report(judge, again(), verdict="APPROVED", C1="fixed")


def test_titles_without_letters_do_not_match(judge: Staged) -> None:
    write(judge, FindingEdit("P1", "added", {"severity": "low", "title": "???", "what": "Why?"}, "person:ann", ""))
    kept = report(judge, finding("low", "!!!"))
    assert [one["title"] for one in kept["findings"]] == ["!!!"]


def test_finding_closed_by_a_user_stays_closed(judge: Staged) -> None:
    closed = [FindingEdit(id_, "state", "accepted", "person:ann", "") for id_ in ("C1", "C2", "C3")]
    write(judge, *closed)
    with pytest.raises(ToolRefusal, match="NEEDS_REVISION without an open finding"):
        report(judge, again(), C2="open")
    kept = report(judge, again(), verdict="APPROVED", C2="open")
    assert (kept["findings"], kept["previous"]) == ([], [])


def test_finding_reopened_by_a_user_can_be_closed_by_a_judge(judge: Staged) -> None:
    write(judge, *(FindingEdit("C1", "state", word, "person:ann", "") for word in ("accepted", "open")))
    kept = report(judge, verdict="APPROVED", C1="fixed")
    assert [one["id"] for one in kept["previous"]] == ["C1"]


def write(on: Staged, *made: FindingEdit) -> None:
    """A person's edits, in the record of the last round."""
    (record,) = on.change.records()
    path = on.change.folder / "reviews/challenge-1.yaml"
    files.write(path, records.render_record(replace(record, edits=made)).encode())
