"""A decision counts only for what was read: documents, verdicts, code."""

from agentd.change import comments
from agentd.change.folder import Change
from agentd.context import brief
from agentd.documents.comments import Weight
from agentd.steps.code import now
from agentd.terms import Phase
from agentd.workflows import seen
from built import BAD, NO, YES, approved, honest, impl
from built import state as built_state
from felling import kept
from judged import at_question, deciding, judged, rewrite, said, states
from support import Box, Ran

FOUND = (("High", "It breaks"), ("Medium", "It is slow"))
WHY = "Good enough."
SPEC = "specs/user-model.md"


def read(change: Change) -> str:
    return seen.digest(seen.seen(change))


def decide(box: Box, flag: str, digest: str, *more: str) -> Ran:
    return box.agentd("plan", "add-oauth", flag, WHY, "--seen", digest, "--json", *more)


def error_of(ended: Ran) -> tuple[int, str]:
    return ended.code, ended.json["error"]["message"]


# ---- what was read


def test_what_was_read_is_the_documents_and_how_many_verdicts_there_are(project: Box) -> None:
    change = judged(project, *FOUND)
    assert seen.seen(change) == {**change.hashes(), "challenges": "1"}
    assert seen.documents(seen.seen(change)) == change.hashes()


def test_a_digest_is_that_of_the_same_in_any_order_and_of_nothing_else() -> None:
    assert seen.digest({"a": "1", "b": "2"}) == seen.digest({"b": "2", "a": "1"}) != seen.digest({"a": "1b", "": "2"})


def test_what_differs_is_named_whether_it_changed_came_or_went() -> None:
    assert sorted(seen.differing({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "3", "d": "4"})) == ["b", "c", "d"]


def test_code_that_was_read_is_the_tree_without_what_agentd_writes_itself(project: Box) -> None:
    change = approved(project, {"implement-greeting": honest(), "review": NO})
    assert impl(project, "--rounds", "0").code == 1
    before, tree = seen.seen(change), now(change)
    assert list(before) == [*change.hashes(), "reviews", seen.CODE_TREE] and before["reviews"] == "1"
    project.write("agentd/changes/greet/GEMINI.md", "Another word.\n")
    project.write("agentd/specs/other.md", "Another spec.\n")
    project.commit("agentd's own")
    assert seen.seen(change) == before and now(change) != tree
    project.write("notes.txt", "mine\n")
    assert seen.differing(before, seen.seen(change)) == [seen.CODE_TREE]


def test_a_project_in_a_folder_leaves_only_its_own_files_out(project: Box) -> None:
    change = approved(project, {})
    inner = change.project._replace(prefix="inner")
    project.write("inner/agentd/notes.txt", "one\n")
    project.write("inner/code.py", "one\n")
    one = seen._code(Change(inner, change.id, change.tree, change.folder))
    project.write("inner/agentd/notes.txt", "two\n")
    assert seen._code(Change(inner, change.id, change.tree, change.folder)) == one
    for name in ("inner/code.py", "agentd/notes.txt"):
        project.write(name, "two\n")
        two = seen._code(Change(inner, change.id, change.tree, change.folder))
        assert two != one
        one = two


# ---- decisions about a plan


def test_a_decision_about_what_was_read_is_done(project: Box) -> None:
    change = judged(project, *FOUND)
    ended = decide(project, "--accept", read(change))
    assert (ended.code, ended.json["phase"]) == (0, "challenged")
    assert change.read().history[-1].hashes == change.hashes()


def test_a_decision_about_another_text_is_refused_and_nothing_is_written(project: Box) -> None:
    change = judged(project, *FOUND)
    digest = read(change)
    rewrite(change.folder / SPEC, "A user is", "A user, so I say, is")
    before = {path: path.read_bytes() for path in change.folder.rglob("*") if path.is_file()}
    for flag in ("--accept", "--reject", "--send-back"):
        code, words = error_of(decide(project, flag, digest))
        assert (code, words) == (1, "add-oauth is not what was read any more, so nothing was decided")
    assert {path: path.read_bytes() for path in change.folder.rglob("*") if path.is_file()} == before
    assert decide(project, "--accept", read(change)).code == 0


def test_a_decision_from_before_another_verdict_is_refused(project: Box) -> None:
    change = judged(project, *FOUND[1:], challenge_2=said("NEEDS_REVISION", ("High", "It leaks")))
    digest = read(change)
    assert project.agentd("plan", "add-oauth", "--rechallenge").code == 1
    assert error_of(decide(project, "--accept", digest))[0] == 1
    assert change.read().phase is Phase.PROPOSED and set(states(project).values()) == {"open"}


def test_a_decision_handed_to_a_waiting_run_is_bound_to_what_was_read_too(project: Box) -> None:
    change = judged(project, *FOUND)
    digest = read(change)
    person = at_question(project)
    rewrite(change.folder / SPEC, "A user is", "A user, so I say, is")
    stale = decide(project, "--accept", digest)
    assert error_of(stale) == (1, "add-oauth is not what was read any more, so nothing was decided")
    with deciding(project, "--accept", WHY, "--seen", read(change), "--json") as other:
        assert other.wait() == 0
    assert person.waits() == 0
    assert change.read().history[-1].hashes == change.hashes()


def test_what_was_read_belongs_to_a_decision(project: Box) -> None:
    judged(project, *FOUND)
    ended = project.agentd("plan", "add-oauth", "--seen", "1")
    assert ended.code == 2 and "--seen says what a decision is about" in ended.err


# ---- decisions about code


def test_code_that_changed_since_it_was_read_is_not_decided_upon(project: Box) -> None:
    change = approved(project, {"implement-greeting": honest(), "review": NO})
    assert impl(project, "--rounds", "0").code == 1
    digest = read(change)
    with kept(project) as put_back:
        project.write("greeting.py", BAD)
        for flag in ("--accept", "--plan-wrong"):
            assert error_of(impl(project, flag, WHY, "--seen", digest, "--json"))[0] == 1
        put_back()
        assert read(change) == digest
        accepted = impl(project, "--accept", WHY, "--seen", digest, "--json")
    assert (accepted.code, accepted.json["phase"]) == (0, "complete")
    assert error_of(impl(project, "--send-back", WHY, "--seen", digest, "--json"))[0] == 1, "there it was incomplete"
    assert impl(project, "--send-back", WHY, "--seen", read(change), "--json").code == 0


# ---- an approval by a person


def test_a_plan_that_its_judge_approved_is_accepted_by_a_person_too(project: Box) -> None:
    change = judged(project, ("low", "A comma"), word="APPROVED")
    assert change.read().phase is Phase.CHALLENGED
    assert project.agentd("plan", "add-oauth", "--accept", WHY).code == 0
    last = change.read().history[-1]
    assert (last.origin, last.to, last.event, last.by, last.why) == (
        "challenged",
        "challenged",
        "accepted",
        "person:dev",
        WHY,
    )
    assert last.hashes == change.hashes() and states(project) == {"C1": "accepted"}


def test_what_a_person_said_when_they_accepted_reaches_the_implementer(project: Box) -> None:
    heard = [{"expect": "    Good, but greet Bob first.\n\n    And mind the comma."}, *honest()]
    change = approved(project, {"implement-greeting": heard, "review": YES, "challenge": said("APPROVED")})
    assert project.agentd("plan", "greet", "--rechallenge").code == 0
    anchor = comments.anchored(change, "proposal.md", "Add a greeting")
    comments.add(change, anchor, "And mind the comma.", "person:ann", Weight.NOTE)
    assert project.agentd("plan", "greet", "--accept", "Good, but greet Bob first.").code == 0
    ended = impl(project)
    assert (ended.code, built_state(project).phase) == (0, Phase.COMPLETE), ended.err


def test_words_about_a_plan_that_went_back_since_do_not(project: Box) -> None:
    change = approved(project, {"challenge": said("APPROVED")})
    assert project.agentd("plan", "greet", "--rechallenge").code == 0
    assert project.agentd("plan", "greet", "--accept", "Greet Bob first.").code == 0
    assert brief(change, ["2.1"])["notes"] == ["Greet Bob first."]
    assert project.agentd("plan", "greet", "--send-back", "No, nobody first.").code == 0
    assert brief(change, ["2.1"])["notes"] == []
