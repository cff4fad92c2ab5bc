"""Where the code of a change is written: in place, on a branch, in a work tree of its own, in a sub-folder."""

import copy
from pathlib import Path

import pytest

from agentd.change.folder import read_state
from agentd.steps import code
from agentd.terms import Phase
from agentd.tools.diff import changed_files, diff
from built import CHECK as TESTS
from built import (
    DESCRIPTION,
    DOCUMENTS,
    YES,
    approved,
    found,
    home,
    honest,
    impl,
    ran,
    record,
    state,
    write,
)
from placed import paste, tree_of
from planned import seat
from plays import IN_PLACE, stage
from program import AGENTD
from support import Box
from working import settle, usage

AUTOMATED = "human_in_loop = false\nself_review_iterations = 0\n"


def planned(box: Box, way: str) -> Path:
    """A plan made and approved by the command itself; the tree that the change lives in."""
    box.write("tests/__init__.py", "")
    box.write(".gitignore", "__pycache__/\n")
    documents = [write(f"agentd/changes/greet/{name}", text) for name, text in DOCUMENTS.items()]
    steps = {"plan-gen": [*documents, usage(0.01)], "challenge": YES, "review": YES, "implement-greeting": honest()}
    stage(box, steps, TESTS, AUTOMATED)
    end = box.agentd("plan", "greet", DESCRIPTION, "--skip-clarify", "--git", way)
    assert end.code == 0, end.out + end.err
    return tree_of(box, "greet") if way == "worktree" else box.root


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_code_is_written_and_proved_where_the_change_lives(way: str, project: Box) -> None:
    tree = planned(project, way)
    end = impl(project, "--json")
    assert (end.code, end.json["phase"], end.json["git"]["setup"]) == (0, "complete", way), end.out
    assert (tree / "greeting.py").is_file() and (tree / "tests/test_greeting.py").is_file()
    assert (project.root / "greeting.py").exists() == (way == "branch")
    assert project.git("branch", "--show-current", cwd=tree) == "agentd/greet"
    assert read_state(tree / "agentd/changes/greet").checks[0]["counts"]["passed"] == 2, "the tests there were run"
    assert project.git("rev-parse", "refs/agentd/greet/base"), "all work trees share them"
    if way == "worktree":
        assert project.git("status", "--short") == "", "nothing of it lies in the main tree"
    else:
        paste(project, "git add -A && git commit -qm code && git switch -q main")
        away = impl(project, "--review", "--json")
        assert away.code == 1 and "git switch agentd/greet" in away.json["error"]["hint"]


def test_what_is_not_trusted_in_a_work_tree_is_looked_at_there(project: Box) -> None:
    tree = planned(project, "worktree")
    page = tree / "agentd/config.toml"
    page.write_text(page.read_text().replace("-m unittest", "-m  unittest"))
    refused = impl(project, "--json")
    hint = refused.json["error"]["hint"]
    assert (refused.code, hint) == (3, f"(cd {tree} && agentd trust)")
    paste(project, hint.replace("agentd trust", f"{AGENTD} trust --yes"))
    assert impl(project).code == 0


def test_a_project_in_a_sub_folder_is_built_there(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beside it is nobody's business."""
    box.write("beside.txt", "beside\n")
    box.commit("start")
    inner = copy.copy(box)
    inner.root = box.root / "service"
    inner.write("README.md", "service\n")
    inner.write("agentd/config.toml", "schema_version = 1\n")
    monkeypatch.chdir(inner.root)
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    approved(inner, {"implement-greeting": honest()})
    box.write("beside.txt", "changed by a person\n")
    end = impl(inner, "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.out
    assert found(inner) == [] and (inner.root / "greeting.py").is_file()
    assert record(inner)["checks"][0]["counts"] == {"passed": 3, "failed": 0, "skipped": 0}
    assert (home(inner) / "tasks.md").read_text().count("status: done") == 2
    assert (box.root / "beside.txt").read_text() == "changed by a person\n"


def test_what_an_implementer_changes_outside_its_sub_folder_is_in_the_reviewers_diff(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.write("beside.txt", "beside\n")
    inner = copy.copy(box)
    inner.root = box.root / "some service"
    inner.write("agentd/config.toml", "schema_version = 1\n")
    monkeypatch.chdir(inner.root)
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    change = approved(inner, {"implement-greeting": [*honest()]})
    assert inner.agentd("implement", "greet").code == 0
    box.write("beside.txt", "not theirs\n")
    box.write("other/ä ö.txt", "nor this\n")
    base, tree = str(state(inner).base.tree), code.now(change)
    names = list(changed_files(change, base, tree))
    assert names == ["greeting.py", "tests/test_greeting.py", "../beside.txt", "../other/ä ö.txt"]
    whole = diff(change, base, tree)
    assert "+++ b/greeting.py" in whole and "+++ b/../beside.txt" in whole and "+not theirs" in whole
    assert "agentd/changes" not in whole
    assert "+nor this" in diff(change, base, tree, "../other/ä ö.txt")


def test_no_attribute_hides_text_from_the_reviewer(project: Box) -> None:
    hide = write(".gitattributes", "*.py -diff\n*.bin -diff\n")
    change = approved(project, {"implement-greeting": [*honest(), hide, write("x.bin", "a\0b")]})
    assert project.agentd("implement", "greet").code == 0
    base, tree = str(state(project).base.tree), code.now(change)
    shown = diff(change, base, tree)
    assert "+def greet(name" in shown and "+def greet(name" in diff(change, base, tree, "greeting.py")
    assert "Binary files /dev/null and b/x.bin differ" in shown and "+*.py -diff" in shown


def test_commits_that_a_person_makes_meanwhile_do_not_matter(project: Box) -> None:
    approved(project, {"implement-greeting": honest()})
    assert project.agentd("implement", "greet").code == 0
    project.commit("my own commit of its work")
    end = project.agentd("review", "greet", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete") and found(project) == []
    base, tree = record(project)["judged"]["base"], record(project)["judged"]["tree"]
    names = project.git("diff", "--name-only", base, tree, "--", ":!agentd").split()
    assert names == ["greeting.py", "tests/test_greeting.py"]


def test_an_implementer_that_commits_its_work_is_judged_by_its_files(project: Box) -> None:
    """With a script that can be run among them."""
    project.write(
        "agentd/work.sh",
        "cp ../greeting.txt greeting.py; cp ../test.txt tests/test_greeting.py; chmod +x greeting.py\n"
        "git add greeting.py tests && git commit -qm 'agent: done' && echo done\n",
    )
    (made, tests, *_) = honest()
    project.root.with_name("greeting.txt").write_text("#!/usr/bin/env python3\n" + made["text"])
    project.root.with_name("test.txt").write_text(tests["text"])
    approved(project, {})
    shell = '[agents.shell]\nkind = "command"\ncommand = "sh"\nargs = ["agentd/work.sh"]\n'
    settle(project, (project.root / "agentd/config.toml").read_text() + shell)
    seat(project, "implementer", "shell")
    end = impl(project, "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.out
    assert found(project) == [] and project.git("log", "-1", "--format=%s") == "agent: done"
    assert project.git("ls-tree", record(project)["judged"]["tree"], "greeting.py").startswith("100755")


def test_in_the_background_it_goes_on_and_wait_tells_the_end(project: Box) -> None:
    hold = project.root.with_name("hold")
    hold.touch()
    check = TESTS.replace('command = "', f'command = "while test -e {hold}; do sleep 0.1; done; ').replace(
        "= 60", "= 600"
    )
    approved(project, {"implement-greeting": honest(), "review": YES}, check)
    begun = impl(project, "--detach", "--json")
    assert begun.code == 0 and begun.json["state"] == "running" and begun.json["next"] == "agentd wait greet"
    busy = impl(project, "--json")
    assert busy.code == 5, "one command at a time"
    hold.unlink()
    ended = project.agentd("wait", "greet", "--json")
    assert (ended.code, ended.json["state"]) == (0, "ended"), ended.out
    told = ended.json["result"]
    assert (told["command"], told["phase"], told["message"]) == (
        "impl",
        "complete",
        "APPROVED - Complete, ready to archive!",
    )
    assert ran(project) == ["implement-greeting", "review"] and state(project).phase is Phase.COMPLETE


def test_what_is_decided_at_once_does_not_go_to_the_background(project: Box) -> None:
    approved(project, {})
    for words in (("--accept", "why"), ("--dry-run",)):
        end = impl(project, "--detach", *words)
        assert end.code == 2 and "leave --detach out" in end.err
    assert IN_PLACE in (project.root / "agentd/config.toml").read_text() and not state(project).steps
