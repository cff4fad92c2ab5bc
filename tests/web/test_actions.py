"""What is posted from a page: decisions, stop and resume, comments, and forms that nobody meant to send."""

import json
import re
from typing import Any

import pytest
from httpx2 import Response
from markup import parse_markup
from starlette.applications import Starlette
from starlette.testclient import TestClient

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.documents.comments import CommentSeverity
from agentd.domain.terms import Phase
from agentd.project.layout import find_project
from agentd.web import actions, displayed
from agentd.web import site as sites
from crash import restorable
from playbooks import NEEDS_CHANGES, implement
from scenario import CHECK, Scenario, replace_text

FOUND = (("High", "It breaks"), ("Medium", "It is slow"))
SPEC = "specs/user-model.md"
ME, WHY, HX = "person:dev", "Good enough.", {"HX-Request": "true"}
SELECTED: dict[str, Any] = {
    "document": "proposal.md",
    "quote": "People are users",
    "before": "",
    "after": ".",
    "line": "18",
}


def client() -> TestClient:
    app = Starlette(routes=[*actions.action_routes(sites.create_site(find_project(), "csrf"))])
    return TestClient(app, base_url="http://127.0.0.1:4000", follow_redirects=False)


def post(path: str, headers: dict[str, str] | None = None, **fields: Any) -> Response:
    return client().post(f"/changes/add-oauth/{path}", data=fields, headers=HX if headers is None else headers)


def decide(change: Change, choice: str = "accept", **fields: Any) -> Response:
    known = {"choice": choice, "reason": WHY, "shown": json.dumps(displayed.displayed_state(change))}
    return post("decide", **{**known, **fields})


def thread(change: Change) -> list[tuple[str, str, list[tuple[str, str]]]]:
    found = comment_store.read_comments(change)
    return [(one.id, str(one.severity), [(said.by, said.text) for said in one.thread]) for one in found]


# ---- decisions


def test_decision_returns_an_html_fragment(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    answer = decide(change)
    assert (answer.status_code, "<html" in answer.text) == (200, False)
    assert f"Accepted by dev: {WHY}" in answer.text and 'data-ok="yes"' in answer.text
    assert change.read().phase is Phase.CHALLENGED and change.read().history[-1].by == ME


def test_decision_without_a_script_returns_a_page(project: Scenario) -> None:
    answer = decide(project.challenged("NEEDS_REVISION", *FOUND).change, headers={})
    assert answer.status_code == 200 and "<html" in answer.text and f"Accepted by dev: {WHY}" in answer.text


def test_stale_decision_shows_a_word_diff(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = json.dumps(displayed.displayed_state(change))
    replace_text(change.folder / SPEC, "A user is", "A user <script>alert(1)</script> is")
    answer = decide(change, shown=shown)
    assert answer.status_code == 409 and change.read().phase is Phase.PROPOSED
    assert f"What changed in {SPEC} since you read it" in answer.text
    assert re.search(r"<ins>[^/]*&lt;script&gt;", answer.text) and "<script>" not in answer.text
    again = answer.text.split('name="shown" value="')[1].split('"')[0].replace("&#34;", '"')
    assert json.loads(again) == displayed.displayed_state(change)
    assert decide(change, shown=again).status_code == 200
    assert change.read().phase is Phase.CHALLENGED


def test_stale_decision_without_the_old_text_asks_to_read_again(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = {**displayed.displayed_state(change), SPEC: f"sha256:{'0' * 64}"}
    answer = decide(change, shown=json.dumps(shown))
    assert answer.status_code == 409
    assert f'<a href="/changes/add-oauth/read/{SPEC}">read it again</a>' in answer.text
    assert "as it is now" not in answer.text


def test_decision_before_a_new_verdict_asks_to_read_it(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    answer = decide(change, shown=json.dumps({**displayed.displayed_state(change), "challenges": "0"}))
    assert answer.status_code == 409 and "there is a new verdict since" in answer.text
    assert '<a href="/changes/add-oauth/rounds">read it</a>' in answer.text and "as it is now" not in answer.text


def fresh(answer: Response) -> str:
    """What the form says that offers the same decision once more."""
    return answer.text.split('name="shown" value="')[1].split('"')[0].replace("&#34;", '"')


def test_stale_acceptance_shows_the_new_comment(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = json.dumps(displayed.displayed_state(change))
    anchor = comment_store.comment_anchor(change, "proposal.md", "People are users")
    comment_store.add_comment(change, anchor, "Who <b>exactly</b>?", "person:ann", CommentSeverity.BLOCKER)
    answer = decide(change, shown=shown)
    assert answer.status_code == 409 and "the findings changed since this page was made" in answer.text
    assert change.read().phase is Phase.PROPOSED
    told = parse_markup(answer.text)
    assert [one.text.split() for one in told.all("ins")] == [
        ["K1", "(high,", "open)", "by", "person:ann", "Who", "<b>exactly</b>?"]
    ]
    assert told.all("b") == [] and told.all("del") == []
    assert decide(change, shown=fresh(answer)).status_code == 200
    assert project.finding_states() == {"C1": "accepted", "C2": "accepted", "P1": "accepted"}


def test_comment_made_on_the_same_page_does_not_make_a_decision_stale(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = displayed.displayed_state(change)
    for path, fields in (
        ("comments", {**SELECTED, "text": "Who?", "weight": "should"}),
        ("comments/K1/edit", {"number": "0", "text": "Who is that?"}),
        ("comments/K1/reply", {"text": "All."}),
        ("comments/K1/weight", {"weight": "blocker"}),
        ("comments/K1/resolve", {}),
        ("comments/K1/reopen", {}),
    ):
        told = post(path, **fields).json()
        assert list(told["shown"]) == ["the findings"]
        assert told["before"] == {"the findings": shown["the findings"]} != told["shown"]
        shown |= told["shown"]
        assert shown == displayed.displayed_state(change)
    comment_store.reply_to_comment(change, "K1", "Not I.", "person:ann")
    told = post("comments/K1/reply", text="You too.").json()
    assert told["before"]["the findings"] != shown["the findings"], "a page can tell that others spoke meanwhile"
    assert decide(change, shown=json.dumps(shown)).status_code == 409


def test_comment_can_be_added_when_records_are_unreadable(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    (change.folder / "reviews/challenge-1.yaml").write_text("- no record")
    told = post("comments", **SELECTED, text="Who?", weight="should")
    assert (told.status_code, told.json()["shown"]) == (200, {}) and len(comment_store.read_comments(change)) == 1


def test_stale_decision_on_code_shows_a_line_diff(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}).change
    assert project.run("impl", "--rounds", "0").code == 1
    shown = json.dumps(displayed.displayed_state(change))
    with restorable(project):
        project.write("more.py", "print('<img src=x>')\n")
        fields = {"choice": "accept", "reason": WHY, "shown": shown}
        answer = client().post("/changes/greet/decide", data=fields, headers=HX)
        assert answer.status_code == 409 and "the code changed since this page was made" in answer.text
        told = parse_markup(answer.text)
        assert [one.text for one in told.all("span", "path")] == ["more.py"]
        assert [one.text for one in told.all("tr", "added")] == ["1print('<img src=x>')"] and told.all("img") == []
        fields["shown"] = fresh(answer)
        assert client().post("/changes/greet/decide", data=fields, headers=HX).status_code == 200
        assert change.read().phase is Phase.COMPLETE


def test_stale_decision_with_an_unknown_tree_asks_to_read_the_code_again(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}).change
    assert project.run("impl", "--rounds", "0").code == 1
    for tree in ("0" * 40, "--output=x", "", "HEAD"):
        fields = {
            "choice": "accept",
            "reason": WHY,
            "shown": json.dumps({**displayed.displayed_state(change), "the code": tree}),
        }
        answer = client().post("/changes/greet/decide", data=fields, headers=HX)
        assert answer.status_code == 409 and "as it is now" not in answer.text
        assert '<a href="/changes/greet/code">read it again</a>' in answer.text


def test_failed_decision_is_reported_as_conflict(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    replace_text(change.folder / "proposal.md", "## Why", "## Because")
    for headers in (HX, {}):
        answer = decide(change, headers=headers)
        assert answer.status_code == 409 and "the plan cannot be accepted as it is" in answer.text
    project.write("agentd/config.toml", (project.root / "agentd/config.toml").read_text() + CHECK)
    answer = post("resume")
    assert answer.status_code == 409 and "trust" in answer.text


def test_user_input_is_escaped_in_every_response(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    bad = "<img src=x onerror=alert(1)>"
    for answer in (
        decide(change, bad),
        decide(change, shown=json.dumps({bad: "1"})),
        decide(change, headers={}, shown=json.dumps({bad: "1"})),
        client().post(f"/changes/{bad}/stop"),
        decide(change, "send-back", reason=bad),
    ):
        assert "<img" not in answer.text and "&lt;img" in answer.text


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"choice": "view"}, 409, "view cannot be decided about add-oauth now"),
        ({"reason": " "}, 422, "needs a reason"),
        ({"shown": ""}, 400, "the form has no shown"),
        ({"shown": "[]"}, 400, "the form has no shown"),
        ({"shown": '{"a": 1}'}, 400, "the form has no shown"),
        ({"shown": "[" * 100_000}, 400, "the form has no shown"),
    ],
)
def test_impossible_decision_explains_why(project: Scenario, fields: dict[str, str], status: int, words: str) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    answer = decide(change, **fields)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert len(change.read().history) == 2


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "application/x-www-form-urlencoded"),
        (b"\xff\xfe%%%&&==", "application/x-www-form-urlencoded"),
        (b"a=1&" * 1000, "application/x-www-form-urlencoded"),
        (b'{"choice": "accept", "shown": "{}"}', "application/json"),
        (b"choice=accept&reason=x&shown={}", "text/plain"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
    ],
)
def test_malformed_form_is_a_bad_request(project: Scenario, body: bytes, kind: str) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    for path in ("decide", "comments", "comments/K1/edit", "comments/K1/weight"):
        answer = client().post(f"/changes/add-oauth/{path}", content=body, headers={"content-type": kind, **HX})
        assert answer.status_code == 400
    assert len(change.read().history) == 2 and comment_store.read_comments(change) == ()


def test_get_requests_change_nothing(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    for path in ("decide", "stop", "resume", "comments", "comments/K1/resolve"):
        assert client().get(f"/changes/add-oauth/{path}").status_code == 405
    assert len(change.read().history) == 2


@pytest.mark.parametrize(("name", "status"), [("no-such", 404), ("..%2f..", 404), ("No", 422)])
def test_unknown_change_is_reported(project: Scenario, name: str, status: int) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    for path in ("stop", "comments/K1/resolve"):
        assert client().post(f"/changes/{name}/{path}", headers=HX).status_code == status


def test_stop_and_resume_results_are_reported(project: Scenario) -> None:
    project.challenged("REJECTED")
    assert "Nothing is running for add-oauth." in post("stop").text
    answer = post("resume")
    assert answer.status_code == 409 and "add-oauth has nothing to continue" in answer.text
    for amount in ("many", "-1", "0", "inf", "nan"):
        assert post("resume", budget=amount).status_code == 400
    assert post("resume", budget=" ").status_code == 409


# ---- comments


def test_comment_can_be_added_edited_weighed_and_resolved(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    made = post("comments", **SELECTED, text="", weight="note")
    assert made.status_code == 200 and made.json()["id"] == "K1"
    row = made.json()["comment"]
    assert (row["document"], row["quote"], row["weight"], row["state"]) == (
        "proposal.md",
        "People are users",
        "note",
        "open",
    )
    assert post("comments/K1/edit", number="0", text="Who?").json()["comment"]["thread"][0]["text"] == "Who?"
    assert post("comments/K1/reply", text="All.").json()["id"] == "K1"
    assert post("comments/K1/weight", weight="blocker").json()["comment"]["weight"] == "blocker"
    assert thread(change) == [("K1", "blocker", [(ME, "Who?"), (ME, "All.")])]
    assert post("comments/K1/resolve").json()["comment"]["state"] == "resolved"
    assert post("comments/K1/reopen").json()["comment"]["state"] == "open"


def test_edit_of_a_comment_changed_meanwhile_is_a_conflict(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    post("comments", **SELECTED, text="Who\r\nis that?", weight="should")
    assert post("comments/K1/edit", number="0", text="Who is that?", was="Who\nis that? ").status_code == 200
    lost = post("comments/K1/edit", number="0", text="Who are they?", was="Who\nis that?")
    assert lost.status_code == 409
    assert (lost.json()["error"], lost.json()["text"]) == (
        "K1 was edited by someone else in the meantime",
        "Who is that?",
    )
    assert post("comments/K1/edit", number="0", text="Who is that?", was="other").status_code == 200, (
        "it says so already"
    )
    assert post("comments/K1/edit", number="0", text="Who are they?", was="Who is that?").status_code == 200
    assert thread(change) == [("K1", "should", [(ME, "Who are they?")])]


def test_comment_cannot_be_edited_to_empty(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    post("comments", **SELECTED, text="", weight="should")
    assert post("comments/K1/edit", number="0", text=" ").status_code == 200, "there are none yet"
    post("comments/K1/edit", number="0", text="Who?")
    for was in ("Who?", "Who? "):
        answer = post("comments/K1/edit", number="0", text=" \n", was=was)
        assert (answer.status_code, answer.json()["error"]) == (422, "K1 would be empty")
    assert thread(change) == [("K1", "should", [(ME, "Who?")])]
    assert post("comments/K1/remove").status_code == 200 and thread(change) == []


def test_empty_draft_can_be_removed(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    post("comments", **SELECTED, text="", weight="should")
    told = post("comments/K1/remove").json()
    assert (told["id"], told["comment"], told["before"]) == ("K1", None, told["shown"])
    assert comment_store.read_comments(change) == ()


def test_comment_with_others_replies_or_a_finding_cannot_be_removed(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    for _ in range(3):
        post("comments", **SELECTED, text="Who?", weight="should")
    comment_store.reply_to_comment(change, "K1", "All.", "person:ann")
    comment_store.link_findings(change, {"K2": "P1"})
    anchor = comment_store.read_comments(change)[0].anchor
    comment_store.add_comment(change, anchor, "Mine.", "person:ann")
    before = comment_store.read_comments(change)
    refused = {
        "K1": "K1 has replies or was written by someone else",
        "K2": "K2 is now finding P1",
        "K4": "K4 has replies or was written by someone else",
        "K9": "add-oauth has no comment K9",
    }
    for name, words in refused.items():
        answer = post(f"comments/{name}/remove")
        assert (answer.status_code, answer.json()["error"]) == (409, words)
    assert post("comments/K2/weight", weight="note").json()["error"] == "K2 is now finding P1"
    assert post("comments/K2/weight", weight="should").status_code == 200, "as it is"
    assert comment_store.read_comments(change) == before


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"weight": "heavy"}, 400),
        ({"line": "x"}, 400),
        ({"line": "-5"}, 200),
        ({"line": "9" * 18}, 200),
        ({"line": "9" * 5000}, 400),
        ({"document": "STATE.yaml"}, 422),
        ({"document": "../../config.toml"}, 422),
        ({"quote": "nowhere to be found"}, 409),
        ({"text": "long " * 5000}, 422),
    ],
)
def test_invalid_comment_anchor_is_refused(project: Scenario, fields: dict[str, Any], status: int) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    answer = post("comments", **{**SELECTED, "text": "Who?", "weight": "should", **fields})
    assert answer.status_code == status, answer.text
    assert len(comment_store.read_comments(change)) == (status == 200)


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        (
            "http://127.0.0.1:4000/changes/add-oauth/read/proposal.md?at=3#L3",
            "/changes/add-oauth/read/proposal.md?at=3",
        ),
        ("http://127.0.0.1:4000/", "/"),
        ("http://127.0.0.1:4000//evil.example/", "/changes/add-oauth"),
        ("http://evil.example/changes/add-oauth/read/proposal.md", "/changes/add-oauth"),
        ("javascript:alert(1)", "/changes/add-oauth"),
        ("http://[", "/changes/add-oauth"),
        ("", "/changes/add-oauth"),
    ],
)
def test_comment_without_a_script_redirects_back(project: Scenario, referer: str, back: str) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    answer = post("comments", {"referer": referer}, **SELECTED, text="Who?", weight="should")
    assert (answer.status_code, answer.headers["location"]) == (303, back)
    refused = post("comments/K9/resolve", {})
    assert refused.status_code == 409 and "<html" in refused.text and "has no comment K9" in refused.text


def test_archived_change_cannot_be_commented_or_decided(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = json.dumps(displayed.displayed_state(change))
    post("comments", **SELECTED, text="Who?", weight="should")
    assert project.agentd("drop", "add-oauth", "--yes").code == 0
    before = {path: path.read_bytes() for path in (project.root / "agentd").rglob("*") if path.is_file()}
    for answer in (
        post("decide", choice="accept", reason=WHY, shown=shown),
        post("resume"),
        post("comments", **SELECTED, text="Who?", weight="should"),
        post("comments/K1/reply", text="All."),
    ):
        assert answer.status_code == 409 and "add-oauth is dropped" in answer.text
    assert {path: path.read_bytes() for path in (project.root / "agentd").rglob("*") if path.is_file()} == before
