"""Mutation check, `make mutants`: each small fault in the core and the guard must make its tests fail.

A mutant is one edit of one source file. It is made in a temporary copy of `src/agentd`, never in the working tree, and
its tests run in process against that copy: a test that starts the `agentd` program cannot catch a mutant.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "agentd"
TESTS = ROOT / "tests"
JOBS = 2
TIMEOUT = 300.0  # seconds; a mutant that takes longer is an endless loop, and so is noticed


class MutationError(Exception):
    """The check itself failed: an outdated list, tests that fail without a mutant, or pytest that could not run."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit: `old` occurs exactly once in `file`, which is relative to `src/agentd`."""

    file: str
    tests: tuple[str, ...]
    """Test files or node ids, relative to `tests`."""
    what: str
    old: str
    new: str

    @property
    def line(self) -> int:
        text = self.source()
        pairs = enumerate(zip(self.old, self.new, strict=False))
        first = next((number for number, (old, new) in pairs if old != new), 0)
        return text.count("\n", 0, text.index(self.old) + first) + 1

    @property
    def place(self) -> str:
        return f"src/agentd/{self.file}:{self.line}"

    def source(self) -> str:
        text = (SOURCE / self.file).read_text()
        if (found := text.count(self.old)) != 1:
            raise MutationError(
                f"src/agentd/{self.file}: the old text of '{self.what}' must occur exactly once, but it occurs "
                f"{found} times; update the list in tests/mutants.py:\n{self.old}"
            )
        return text

    def mutated(self) -> str:
        return self.source().replace(self.old, self.new)


def mutants_of(file: str, tests: str, *edits: tuple[str, str, str]) -> tuple[Mutant, ...]:
    """Mutants of one file with the same tests, separated by `, `. An edit is a description, the old and new text."""
    return tuple(Mutant(file, tuple(tests.split(", ")), *edit) for edit in edits)


def run_tests(package: Path, tests: Sequence[str], log: Path, timeout: float = TIMEOUT) -> int | None:
    """The exit code of pytest with `package` imported as agentd; None after the timeout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    env["PYTHONPATH"] = os.pathsep.join([str(package.parent), str(TESTS)])
    env["HYPOTHESIS_STORAGE_DIRECTORY"] = str(package.parent / "hypothesis")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", *(str(TESTS / one) for one in tests)]
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return None
    return done.returncode


def check_unmutated(package: Path, tests: Sequence[str]) -> None:
    """Tests that fail without a mutant could not tell anything about one."""
    log = package.parent / f"unmutated-{abs(hash(tests)):x}.log"
    code = run_tests(package, tests, log)
    if code != 0:
        raise MutationError(f"without a mutant, {' '.join(tests)} must pass:\n{log.read_text(errors='replace')}")


def is_killed(package: Path, mutant: Mutant) -> bool:
    """Whether the tests notice the mutant. `package` is an unmutated copy, with compiled files."""
    with tempfile.TemporaryDirectory(prefix="mutant-", dir=package.parent) as folder:
        copy = Path(folder, "agentd")
        shutil.copytree(package, copy)
        changed = copy / mutant.file
        changed.write_text(mutant.mutated())
        for compiled in (changed.parent / "__pycache__").glob(f"{changed.stem}.*.pyc"):
            compiled.unlink()
        log = Path(folder, "pytest.log")
        code = run_tests(copy, mutant.tests, log)
        if code not in (0, 1, None):
            output = log.read_text(errors="replace")
            raise MutationError(f"{mutant.place}, {mutant.what}: pytest ended with exit code {code}:\n{output}")
        return code != 0


def check_all(mutants: Sequence[Mutant], report: Callable[[Mutant, bool], None]) -> list[Mutant]:
    """The mutants that survive."""
    for mutant in mutants:
        mutant.source()  # an outdated list is reported before anything runs
    with tempfile.TemporaryDirectory(prefix="agentd-mutants-") as folder, ThreadPoolExecutor(JOBS) as pool:
        package = Path(folder, "agentd")
        shutil.copytree(SOURCE, package)
        try:
            list(pool.map(lambda tests: check_unmutated(package, tests), dict.fromkeys(one.tests for one in mutants)))
            survivors = []
            for mutant, killed in zip(mutants, pool.map(lambda one: is_killed(package, one), mutants), strict=True):
                report(mutant, killed)
                if not killed:
                    survivors.append(mutant)
            return survivors
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def print_result(mutant: Mutant, killed: bool) -> None:
    print(f"{'killed' if killed else 'SURVIVED':8}  {mutant.place}  {mutant.what}", flush=True)


def main(arguments: Sequence[str] | None = None, mutants: Iterable[Mutant] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests/mutants.py", description="Check that tests notice faults in the code.")
    parser.add_argument("filter", nargs="?", default="", help="only mutants whose place or description contains this")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    options = parser.parse_args(arguments)
    try:
        known = MUTANTS if mutants is None else tuple(mutants)
        chosen = [one for one in known if options.filter in f"{one.place} {one.what}"]
        if options.list:
            print("\n".join(f"{one.place}  {one.what}" for one in chosen))
            return 0
        if not chosen:
            raise MutationError(f"no mutant contains '{options.filter}'")
        survivors = check_all(chosen, print_result)
    except MutationError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"\n{len(chosen)} mutants: {len(chosen) - len(survivors)} killed, {len(survivors)} survived")
    for one in survivors:
        print(f"  {one.place}  {one.what}\n    write a test that fails with it, e.g. in tests/{one.tests[0]}")
    return 1 if survivors else 0


GUARD = "guard/test_guard.py::test_"
HOSTILE = "guard/test_guard_besieged.py::test_"
OTHERS = "guard/test_guard_company.py::test_"
PUT_BACK = f"{GUARD}protected_file_is_restored_exactly_and_reported"
MERGE = "merge/test_merge_conflicts.py, merge/test_merge.py"

# fmt: off
MUTANTS: tuple[Mutant, ...] = (
    *mutants_of("documents/verdict_text.py", "documents/test_verdict_reading.py",
        ("text after a hidden part continues the verdict", "number == line + 1 and following", "following"),
        ("the next line continues a placeholder", "if reading.verdict and number", "if number"),
        ("an indented line does not continue the verdict", "following.lstrip()[:1]", "following[:1]"),
        ("disagreeing verdicts pass", "if reading.verdict is not filled[0].verdict:", "if False:"),
        ("APPROVED may have a remark", "is None and (template or not passes)", "is None"),
        ("a single box counts", "if len(ticked) > 1 or len(boxes) < 2:", "if len(ticked) > 1:"),
        ("one explained box explains all", "explained = all(", "explained = any("),
        ("the value must be nearer to its label", "min(at + 4, end)", "min(at + 3, end)"),
        ("a long text is a verdict", "if match is None or len(text) > MAX_LENGTH:", "if match is None:")),
    *mutants_of("documents/records.py", "documents/test_records.py",
        ("the judge's later word is ignored", "state=previous.state)", "state=findings[previous.id].state)"),
        ("closed findings count as open", "+= finding.state.is_open", "+= 1"),
        ("a person's yes and no are swapped", "discard if FindingState(edit.to).is_open else closed.add",
         "add if FindingState(edit.to).is_open else closed.discard"),
        ("a judge cannot reopen", "            if previous.state.is_open:\n", "            if False:\n")),
    *mutants_of("documents/order.py", "documents/test_task_order.py, documents/test_proposal_document.py",
        ("known dependencies are unknown", "other not in position and other not in known", "other not in position"),
        ("the order of the file is lost", "ids[heapq.heappop(ready)]", "ids[ready.pop()]")),
    *mutants_of("documents/review_edits.py", "documents/test_review_edits.py",
        ("an open code block withdraws findings", "elif self.document.closing:", "elif False:")),
    *mutants_of("domain/terms.py", "domain/test_terms.py",
        ("a dispute closes a finding", "(FindingState.OPEN, FindingState.DISPUTED)", "(FindingState.OPEN,)"),
        ("medium complexity ends too early", "if size <= 10:", "if size < 10:")),
    *mutants_of("domain/state_machine.py", "domain/test_machine.py",
        ("an agent may send the plan back", "        TransitionEvent.PLAN_WRONG,\n", ""),
        ("a plan passes that needs revision", "NEEDS_REVISION: Phase.PROPOSED", "NEEDS_REVISION: Phase.CHALLENGED"),
        ("a blank reason is a reason", "and not why.strip():", "and not why:")),
    *mutants_of("domain/schema.py", "change/test_state.py",
        ("any number is an amount", "if not -1e12 < number < 1e12:", "if False:"),
        ("true is a number", "not isinstance(value, kind) or isinstance(value, bool)", "not isinstance(value, kind)")),
    *mutants_of("domain/humanize.py", "domain/test_figures.py",
        ("zero has four digits", "any(0 < usd < 0.01", "any(0 <= usd < 0.01"),
        ("a cent has four digits", "usd < 0.01 for", "usd <= 0.01 for")),
    *mutants_of("domain/humanize.py", "domain/test_figures.py",
        ("zero is singular", "if count == 1 else", "if count <= 1 else")),
    *mutants_of("engine/calls/budget.py", "calls/test_budget.py",
        ("a reached limit does not stop", "in_flight is None and over.spent == over.allowed", "False"),
        ("a call may not reach its limit", "(in_flight is None and over.spent", "(over.spent"),
        ("the run's limit needs no price", "or budget.per_day or max_cost)", "or budget.per_day)"),
        ("the proposed limit is too low", "while round(limit, 6) <= found", "while round(limit, 6) < found")),
    *mutants_of("engine/calls/budget.py",
        "flows/test_budget_raised.py::test_raised_budget_never_lowers_the_configured_one",
        ("raising may lower the limit", "per_change=max(", "per_change=min("),
        ("raising sets a limit where there is none", " or not budget.per_change:", ":")),
    *mutants_of("checks/comparison.py", "checks/test_check_comparing.py",
        ("an optional check blocks", "blocks = now.required and _blocks", "blocks = _blocks"),
        ("a check that could not run passes", "NOT_RUN:\n        return True", "NOT_RUN:\n        return False"),
        ("a second failure of one name is known", "left[name] > 0 else", "left[name] >= 0 else"),
        ("an incomplete run is comparable", "\n        and now.is_whole\n    )", "\n    )"),
        ("unnamed failures are known", "result.counts.failed == names", "result.counts.failed >= names"),
        ("tests that no longer run pass", "return _has_lost_tests(now, before)\n    if", "return False\n    if"),
        ("an incomplete run has fewer tests", "before.counts and now.is_whole):", "before.counts):"),
        ("all names are shown, and 0 more", "if len(names) > _MAX_NAMES", "if len(names) >= _MAX_NAMES")),
    *mutants_of("checks/comparison.py", "checks/test_check_comparing.py",
        ("a blocking check is a medium finding", "comparison.why, Severity.HIGH,", "comparison.why, Severity.MEDIUM,")),
    *mutants_of("trace/weakened_tests.py", "trace/test_weakenings.py, trace/test_honest_refactorings.py",
        ("a skipped test may not be deleted", "if case.skip or (case.leaf", "if (case.leaf"),
        ("an old skip is reported", "if one.new.case.skip and not one.old.case.skip:", "if one.new.case.skip:"),
        ("a skipped test replaces a deleted one", "[one for one in new if one.case.skip is None]", "list(new)"),
        ("an empty test replaces a deleted one", "return not case.count or any(", "return True or any("),
        ("a skip is reported twice", "if after < before and not new.skip:", "if after < before:"),
        ("a helper is compared alone", "if _sum(file.new) >= _sum(file.old):", "if _sum(file.new) > _sum(file.old):")),
    *mutants_of("validation/rule.py", "validation/test_rules.py",
        ("every rule can be turned off", "self.settings.severity[rule.name] if rule.is_configurable else rule.severity",
         "self.settings.severity.get(rule.name)"),
        ("strict accepts medium findings", "any(strict or finding", "any(strict and finding")),
    *mutants_of("validation/plan_rules.py", "validation/test_rules.py",
        ("the longest document is too long", "if lines > limit:", "if lines >= limit:")),
    *mutants_of("validation/plan_rules.py", "validation/test_rules.py",
        ("a task may leave its folder", 'inside[0] == ".." or ".." in parts:', 'inside[0] == ".." and not parts:'),
        ("a task may write to .GIT", "inside[0].casefold() in", "inside[0] in")),
    *mutants_of("validation/document_rules.py", "validation/test_rules.py",
        ("a removal needs scenarios", "if missing > 0 and not only_removes(spec) and", "if missing > 0 and"),
        ("one scenario may be missing", "if missing > 0 and not only", "if missing > 1 and not only")),
    *mutants_of("validation/fixes.py", "validation/test_fixes.py",
        ("a fix repeats an id", "if id_ not in taken and settings", "if settings"),
        ("a fix guesses between headings", "if len(alike) == 1 and", "if alike and")),
    *mutants_of("merge/decision.py", MERGE,
        ("the same edit on both sides conflicts", "if yours in (base, theirs):", "if yours == base:"),
        ("a removal ignores a new text", "(base.name, base.words) == (theirs.name, theirs.words)",
         "base.name == theirs.name"),
        ("removing the unknown is no conflict", "if is_unknown or not named", "if not named"),
        ("a scenario names what is removed", "tuple(ref for ref in refs if ref not in gone) or refs", "refs"),
        ("a new title conflicts with itself", "return old != new and old in main", "return old in main")),
    *mutants_of("merge/decision.py", MERGE,
        ("a rename to a removed id passes", "if old in removed or new in removed:", "if old in removed:")),
    *mutants_of("merge/units.py", MERGE,
        ("conflict marks are merged", "for line in conflict_markers_in(document):", "for line in ():")),
    *mutants_of("engine/workflows/run_scope.py", "workflows/test_stop_rules.py",
        ("a resumed command gets all rounds again", "max(0, granted - used)", "granted"),
        ("rounds drop below zero", "max(0, old.run.rounds_left - 1)", "old.run.rounds_left - 1")),
    *mutants_of("engine/workflows/verdict_status.py", "workflows/test_stop_rules.py",
        ("a new finding hides a stuck round", "return before <= after", "return before == after"),
        ("a round without an answer is stuck", " or not is_answered(change, len(found), judge_spec.answer):", ":"),
        ("another command's round is stuck", "or not is_ours or not", "or not"),
        ("an unfinished step is a used round", "if step.status is StepStatus.DONE]", "]")),
    *mutants_of("agents/redaction.py", "agents/test_redact.py",
        ("a passed key is not redacted", "text = text.replace(form, MARK)", "text = text"),
        ("a known form is not redacted", "text = pattern.sub(_replacement, text)", "text = text"),
        ("a part of a secret is redacted first", "key=len, reverse=True)", "key=len)"),
        ("a key line by line is not redacted", "self._left = _KEY_LINES", "self._left = 0"),
        ("the shortest secret is not redacted", ">= _MIN_LENGTH)", "> _MIN_LENGTH)")),
    *mutants_of("guard/guard.py", f"{PUT_BACK}[STATE.yaml], {PUT_BACK}[trust]",
        ("the worktree is not put back", "self._put_back(self._without(TREE,", "(self._without(TREE,"),
        ("the user's files are not put back", "in (GIT, POINTER, USER):", "in (GIT, POINTER):")),
    *mutants_of("guard/guard.py", f"{GUARD}linked_worktree_is_guarded",
        ("a linked worktree is not put back", "in (GIT, POINTER, USER):", "in (GIT, USER):"),
        ("the main worktree is not put back", "self._put_back(self._without(PROJECT,", "(self._without(PROJECT,")),
    *mutants_of("guard/guard.py", f"{GUARD}plan_stage_may_write_only_its_own_documents",
        ("a link may replace a document",
         "(one.after is None or stat.S_ISREG(one.after.mode) or one.is_folder) and ", ""),
        ("a spec may have any suffix", ' and path.endswith(".md"))', ")")),
    *mutants_of("guard/guard.py", f"{GUARD}state_agentd_was_writing_when_killed_is_kept",
        ("agentd's own write is undone", "if one.area == TREE and one.path == writing:", "if False:")),
    *mutants_of("guard/guard.py", f"{OTHERS}judge_that_commits_has_changed_head",
        ("a judge may commit", "if head.commit != self._begun.head.commit and", "if False and")),
    *mutants_of("guard/guard.py", f"{HOSTILE}tampered_copies_are_not_used_for_the_next_call",
        ("changed copies are used again", "if self._is_touched:", "if False:")),
    *mutants_of("guard/restore.py", f"{PUT_BACK}[a new link], {GUARD}a_file_put_back_has_its_old_time",
        ("a new file is not kept", "one.path, kept)\n            _remove", "one.path, kept) if not kept else _remove"),
        ("permissions are not put back", "os.fchmod(file.fileno(), stat.S_IMODE(before.seen.mode))", "pass"),
        ("times are not put back", "os.utime(file.fileno(), ns=(before.seen.mtime, before.seen.mtime))", "pass")),
    *mutants_of("guard/snapshot.py", f"{PUT_BACK}[rights], {PUT_BACK}[a link elsewhere]",
        ("permissions are not compared", "if old.seen.mode != seen.mode:", "if False:"),
        ("links are not compared", "return os.readlink(leaf, dir_fd=handle) != old.target", "return False")),
    *mutants_of("guard/snapshot.py", f"{GUARD}write_within_the_timestamp_resolution_is_detected",
        ("a fresh time is trusted", "if seen.ctime > now - _RACY:", "if False:")),
    *mutants_of("guard/snapshot.py", f"{HOSTILE}committed_version_is_restored_when_the_copy_was_forged",
        ("a forged copy is put back", "if hasher.hexdigest() != hash_:", "if False:")),
    *mutants_of("guard/scan.py", f"{HOSTILE}path_cannot_leave_its_root",
        ("a path may leave its root", 'if ".." in parts:', "if False:")),
    *mutants_of("guard/scan.py", f"{GUARD}check_script_is_restored_when_its_folder_became_a_symlink",
        ("a planted link is followed", "os.O_DIRECTORY | os.O_NOFOLLOW | os", "os.O_DIRECTORY | os")),
    *mutants_of("guard/restore.py", f"{GUARD}new_folders_with_a_common_prefix_are_each_reported_once",
        ("a folder hides its neighbors", 'covered = f"{one.path}/" if', "covered = one.path if")),
    *mutants_of("guard/call_record.py", f"{GUARD}violation_is_a_high_finding_that_names_the_kept_copy",
        ("a violation is a low finding", "severity=Severity.HIGH,", "severity=Severity.LOW,")),
    *mutants_of("guard/protected_paths.py", f"{PUT_BACK}[git's attributes]",
        ("git's attributes are not protected", '"hooks", "info"]', '"hooks"]')),
    *mutants_of("guard/check_definitions.py",
        f"{GUARD}a_file_that_becomes_unreadable_is_put_back_even_without_a_section",
        ("a broken file defines nothing", "return data\n\n\ndef _read(", "return None\n\n\ndef _read(")),
    *mutants_of("guard/allowed.py", f"{OTHERS}git_settings_that_run_or_redirect_something_are_restored",
        ("a remote may run a program", ' and not ("url" in name and _HELPER.match(value))', ""),
        ("a known remote may be redirected", "_REMOTE_OLD if owner in there else _REMOTE_NEW", "_REMOTE_NEW")),
    *mutants_of("guard/allowed.py", f"{OTHERS}trust_of_this_repository_is_restored_and_others_are_kept",
        ("an agent may trust this repository", " and _part(old, common) == _part(new, common)", "")),
    *mutants_of("guard/concurrent_runs.py", f"{GUARD}an_own_run_under_way_excuses_no_trespass",
        ("the change's own run excuses its agent", "if change_id == self._own:", "if False:")),
    *mutants_of("guard/call_record.py", f"{HOSTILE}kept_copies_are_not_written_through_a_planted_symlink",
        ("copies are kept behind a link", "in_the_way := find_obstacle(top, folder):", "in_the_way := None:")),
)
# fmt: on

if __name__ == "__main__":
    sys.exit(main())
