"""A decision counts only for what was read: documents, verdicts, code."""

from dataclasses import replace

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.change.inbox import Decision, Inbox, InboxReply
from agentd.documents.comments import CommentSeverity
from agentd.documents.records import current_findings
from agentd.domain.terms import Phase
from agentd.engine.context.implementer_brief import implementer_brief
from agentd.engine.steps.code_trees import current_tree
from agentd.engine.workflows import read_digest
from agentd.project import git
from agentd.storage import files
from crash import restorable
from plans import BAD_CODE
from playbooks import APPROVED, NEEDS_CHANGES, implement, report_in_text
from processes import wait_until
from scenario import Result, Scenario, replace_text
from terminal import DOWN, ENTER, at_question

FOUND = (("High", "It breaks"), ("Medium", "It is slow"))
TOLD = "C1 (high, open) by agent:play\n  It breaks\n  So.\n\nC2 (medium, open) by agent:play\n  It is slow\n  So.\n"
WHY = "Good enough."
SPEC = "specs/user-model.md"


def kept_states(change: Change) -> list[str]:
    return [str(one.state) for one in current_findings(change.records("review"))]


def code_of(change: Change) -> str:
    return read_digest.code_tree_without_agentd(change, current_tree(change))


def read(change: Change) -> str:
    return read_digest.reading_digest(read_digest.current_reading(change))


def decide(box: Scenario, flag: str, digest: str, *more: str) -> Result:
    return box.agentd("plan", "add-oauth", flag, WHY, "--seen", digest, "--json", *more)


def error_of(ended: Result) -> tuple[int, str]:
    return ended.code, ended.json["error"]["message"]


# ---- what was read


def test_read_digest_covers_documents_verdicts_and_open_findings(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert read_digest.current_reading(change) == {
        **change.hashes(),
        "challenges": "1",
        read_digest.FINDINGS_KEY: files.hash_bytes(TOLD.encode()),
    }
    assert read_digest.plan_hashes_of(read_digest.current_reading(change)) == change.hashes()


def test_digest_is_independent_of_order() -> None:
    assert (
        read_digest.reading_digest({"a": "1", "b": "2"})
        == read_digest.reading_digest({"b": "2", "a": "1"})
        != read_digest.reading_digest({"a": "1b", "": "2"})
    )


def test_differences_include_changed_added_and_removed_entries() -> None:
    assert sorted(read_digest.differing_names({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "3", "d": "4"})) == [
        "b",
        "c",
        "d",
    ]


def test_code_digest_excludes_files_agentd_writes(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}).change
    assert project.run("impl", "--rounds", "0").code == 1
    before, tree = read_digest.current_reading(change), current_tree(change)
    assert (
        list(before) == [*change.hashes(), "reviews", read_digest.FINDINGS_KEY, read_digest.CODE_TREE_KEY]
        and before["reviews"] == "1"
    )
    project.write("agentd/changes/greet/GEMINI.md", "Another word.\n")
    project.write("agentd/specs/other.md", "Another spec.\n")
    project.commit("agentd's own")
    assert read_digest.current_reading(change) == before and current_tree(change) != tree
    project.write("notes.txt", "mine\n")
    assert read_digest.differing_names(before, read_digest.current_reading(change)) == [read_digest.CODE_TREE_KEY]


def test_code_digest_of_a_subfolder_project_excludes_only_its_own_files(project: Scenario) -> None:
    change = project.greeting_approved({}).change
    inner = change.project._replace(prefix="inner")
    project.write("inner/agentd/notes.txt", "one\n")
    project.write("inner/code.py", "one\n")
    one = code_of(Change(inner, change.id, change.tree, change.folder))
    project.write("inner/agentd/notes.txt", "two\n")
    assert code_of(Change(inner, change.id, change.tree, change.folder)) == one
    for name in ("inner/code.py", "agentd/notes.txt"):
        project.write(name, "two\n")
        two = code_of(Change(inner, change.id, change.tree, change.folder))
        assert two != one
        one = two


# ---- decisions about a plan


def test_decision_about_the_read_content_is_applied(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    ended = decide(project, "--accept", read(change))
    assert (ended.code, ended.json["phase"]) == (0, "challenged")
    assert change.read().history[-1].hashes == change.hashes()


def test_decision_about_outdated_content_is_refused_and_nothing_written(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    digest = read(change)
    replace_text(change.folder / SPEC, "A user is", "A user, so I say, is")
    before = {path: path.read_bytes() for path in change.folder.rglob("*") if path.is_file()}
    for flag in ("--accept", "--reject", "--send-back"):
        code, words = error_of(decide(project, flag, digest))
        assert (code, words) == (1, "add-oauth has changed since it was read, so nothing was decided")
    assert {path: path.read_bytes() for path in change.folder.rglob("*") if path.is_file()} == before
    assert decide(project, "--accept", read(change)).code == 0


def test_decision_from_before_a_new_verdict_is_refused(project: Scenario) -> None:
    change = project.challenged(
        "NEEDS_REVISION", *FOUND[1:], challenge_2=report_in_text("NEEDS_REVISION", ("High", "It leaks"))
    ).change
    digest = read(change)
    assert project.agentd("plan", "add-oauth", "--rechallenge").code == 1
    assert error_of(decide(project, "--accept", digest))[0] == 1
    assert change.read().phase is Phase.PROPOSED and set(project.finding_states().values()) == {"open"}


def test_decision_for_a_waiting_run_is_bound_to_the_read_content(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    digest = read(change)
    person = at_question(project)
    replace_text(change.folder / SPEC, "A user is", "A user, so I say, is")
    stale = decide(project, "--accept", digest)
    assert error_of(stale) == (1, "add-oauth has changed since it was read, so nothing was decided")
    with project.deciding("--accept", WHY, "--seen", read(change), "--json") as other:
        assert other.wait() == 0
    assert person.waits() == 0
    assert change.read().history[-1].hashes == change.hashes()


def test_comment_added_since_reading_blocks_the_acceptance(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    digest = read(change)
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, "A user is"), "", "person:ann", CommentSeverity.BLOCKER
    )
    assert read(change) == digest, "it says nothing yet"
    comment_store.edit_comment(change, "K1", 0, "Who?", "person:ann")
    assert error_of(decide(project, "--accept", digest))[0] == 1
    assert change.read().phase is Phase.PROPOSED and project.finding_states() == {"C1": "open", "C2": "open"}
    digest = read(change)
    comment_store.set_comment_severity(change, "K1", CommentSeverity.NOTE, "person:ann")
    assert error_of(decide(project, "--accept", digest))[0] == 1
    assert decide(project, "--accept", read(change)).code == 0
    assert project.finding_states() == {"C1": "accepted", "C2": "accepted", "P1": "accepted"}


def test_digest_is_the_same_when_a_comment_becomes_a_finding(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, "A user is"), "Who?", "person:ann", CommentSeverity.BLOCKER
    )
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, "A user is"), "Never mind.", "person:ann"
    )
    digest = read(change)
    assert project.agentd("plan", "add-oauth", "--rounds", "0").code == 1
    assert list(project.finding_states()) == ["C1", "C2", "P1", "P2"] and read(change) == digest
    comment_store.resolve_comment(change, "K2", "person:ann")
    settled = read(change)
    assert settled != digest
    assert project.agentd("plan", "add-oauth", "--rounds", "0").code == 1
    assert project.finding_states()["P2"] == "withdrawn" and read(change) == settled


def test_comment_text_cannot_imitate_another_finding(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    text = f"Who?\n\n{TOLD}"
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, "A user is"), text, "person:ann", CommentSeverity.BLOCKER
    )
    heads = [line for line in read_digest.open_findings_text(change).splitlines() if line[:1].strip()]
    assert [line.split()[0] for line in heads] == ["C1", "C2", "K1"]


def test_waiting_run_also_compares_the_open_findings(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    before = read_digest.current_reading(change)
    person = at_question(project)
    inbox, asked = Inbox(change), Inbox(change).asked()
    assert asked
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, "A user is"), "Who?", "person:ann", CommentSeverity.BLOCKER
    )
    old = Decision(asked["id"], "accept", WHY, "person:ann", before)
    name = inbox.post(old)
    wait_until(lambda: inbox.has_reply(name), "it has a reply")
    assert inbox.reply_to(name) == InboxReply(False, "the findings changed since this was decided")
    name = inbox.post(replace(old, hashes=read_digest.current_reading(change)))
    assert person.waits() == 0
    assert inbox.reply_to(name) == InboxReply(True, "taken")
    assert project.finding_states() == {"C1": "accepted", "C2": "accepted", "P1": "accepted"}, (
        "what was shown is accepted"
    )


def test_comment_added_meanwhile_repeats_the_terminal_question(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    person = at_question(project)
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, "A user is"), "Who?", "person:ann", CommentSeverity.BLOCKER
    )
    person.press(DOWN * 2 + ENTER)
    person.sees("Why?")
    person.press(WHY + ENTER)
    person.sees("the findings changed while the question was open, so it is asked again")
    person.sees(lambda display: display.text.count("What next?") == 2)
    person.press(DOWN * 3 + ENTER)
    assert person.waits() == 1
    assert change.read().phase is Phase.PROPOSED and project.finding_states()["P1"] == "open"


def test_differences_are_described_in_words() -> None:
    now = {"proposal.md": "1", "challenges": "2", read_digest.FINDINGS_KEY: "3"}
    assert (
        read_digest.describe_differences(["proposal.md", read_digest.FINDINGS_KEY], now)
        == "proposal.md, the findings changed"
    )
    assert read_digest.describe_differences(["challenges"], now) == "there is a new verdict"
    assert (
        read_digest.describe_differences(["proposal.md", "challenges"], now)
        == "proposal.md changed and there is a new verdict"
    )
    assert read_digest.describe_differences(["challenges", "reviews"], now) == "the change has moved to another phase"


def test_seen_option_without_a_decision_is_refused(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    ended = project.agentd("plan", "add-oauth", "--seen", "1")
    assert ended.code == 2 and "--seen belongs to a decision" in ended.err


# ---- decisions about code


def test_decision_on_code_changed_since_reading_is_refused(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}).change
    assert project.run("impl", "--rounds", "0").code == 1
    digest = read(change)
    with restorable(project) as put_back:
        project.write("greeting.py", BAD_CODE)
        for flag in ("--accept", "--plan-wrong"):
            assert error_of(project.run("impl", flag, WHY, "--seen", digest, "--json"))[0] == 1
        put_back()
        assert read(change) == digest
        accepted = project.run("impl", "--accept", WHY, "--seen", digest, "--json")
    assert (accepted.code, accepted.json["phase"]) == (0, "complete")
    assert error_of(project.run("impl", "--send-back", WHY, "--seen", digest, "--json"))[0] == 1, (
        "there it was incomplete"
    )
    assert project.run("impl", "--send-back", WHY, "--seen", read(change), "--json").code == 0


def test_code_changed_by_its_own_checks_is_not_accepted(project: Scenario) -> None:
    writes = "[[checks]]\nname = 'writes'\ncommand = 'echo new >> made.txt'\nrequired = true\ntimeout = 60\n"
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}, writes).change
    assert project.run("impl", "--rounds", "0").code == 1
    told = error_of(project.run("impl", "--accept", WHY, "--seen", read(change), "--json"))
    assert told == (1, "the code of greet changed while its checks ran, so it was not accepted")
    assert change.read().phase is Phase.IMPLEMENTING and set(kept_states(change)) == {"open"}
    project.write(".gitignore", "made.txt\n")
    assert project.run("impl", "--accept", WHY, "--seen", read(change), "--json").code == 0


def test_code_digest_is_an_existing_git_tree(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}).change
    assert project.run("impl", "--rounds", "0").code == 1
    tree = read_digest.current_reading(change)[read_digest.CODE_TREE_KEY]
    names = git.run(change.tree, "ls-tree", "-r", "--name-only", tree).splitlines()
    assert "greeting.py" in names and not [name for name in names if name.startswith("agentd/")]
    assert git.run(change.tree, "status", "--porcelain", "agentd"), "the index is as it was"


# ---- an approval by a person


def test_approved_plan_can_also_be_accepted_by_the_user(project: Scenario) -> None:
    change = project.challenged("APPROVED", ("low", "A comma")).change
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
    assert last.hashes == change.hashes() and project.finding_states() == {"C1": "accepted"}


def test_acceptance_reason_and_notes_reach_the_implementer(project: Scenario) -> None:
    heard = [{"expect": "    Good, but greet Bob first.\n\n    And mind the comma."}, *implement()]
    change = project.greeting_approved(
        {"implement-greeting": heard, "review": APPROVED, "challenge": report_in_text("APPROVED")}
    ).change
    assert project.agentd("plan", "greet", "--rechallenge").code == 0
    anchor = comment_store.comment_anchor(change, "proposal.md", "Add a greeting")
    comment_store.add_comment(change, anchor, "And mind the comma.", "person:ann", CommentSeverity.NOTE)
    assert project.agentd("plan", "greet", "--accept", "Good, but greet Bob first.").code == 0
    ended = project.run("impl")
    assert (ended.code, project.state().phase) == (0, Phase.COMPLETE), ended.err


def test_acceptance_reason_is_dropped_when_the_plan_is_sent_back(project: Scenario) -> None:
    change = project.greeting_approved({"challenge": report_in_text("APPROVED")}).change
    assert project.agentd("plan", "greet", "--rechallenge").code == 0
    assert project.agentd("plan", "greet", "--accept", "Greet Bob first.").code == 0
    assert implementer_brief(change, ["2.1"])["notes"] == ["Greet Bob first."]
    assert project.agentd("plan", "greet", "--send-back", "No, nobody first.").code == 0
    assert implementer_brief(change, ["2.1"])["notes"] == []


def test_accepted_blocker_comment_does_not_overrule_the_reviewer(
    project: Scenario,
) -> None:
    heard = [{"expect": "    Who is greeted?"}, *implement()]
    change = project.greeting_approved({"implement-greeting": heard, "review": APPROVED}).change
    anchor = comment_store.comment_anchor(change, "proposal.md", "Add a greeting")
    comment_store.add_comment(change, anchor, "Who is greeted?", "person:ann", CommentSeverity.BLOCKER)
    assert project.agentd("plan", "greet", "--accept", WHY).code == 0
    assert change.records() == ()
    ended = project.run("impl")
    assert (ended.code, project.state().phase) == (0, Phase.COMPLETE), ended.err
    assert [(one.id, str(one.state)) for one in current_findings(change.records())] == [("P1", "accepted")]
