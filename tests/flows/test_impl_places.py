"""Where the code of a change is written: in place, on a branch, in a work tree of its own, in a sub-folder."""

import copy
from pathlib import Path

import pytest

from agentd.change.folder import read_state
from agentd.domain.terms import Phase
from agentd.engine.steps import code_trees
from agentd.engine.tools.tree_diff import changed_files, tree_diff
from plans import GREETING, GREETING_DOCUMENTS, GREETING_ID
from playbooks import APPROVED, implement, usage, write
from program import AGENTD
from scenario import CHECK as TESTS
from scenario import IN_PLACE, Scenario

AUTOMATED = "human_in_loop = false\nself_review_iterations = 0\n"


def planned(box: Scenario, way: str) -> Path:
    """A plan made and approved by the command itself; the tree that the change lives in."""
    box.change_id, box.description = GREETING_ID, GREETING
    box.write("tests/__init__.py", "")
    box.write(".gitignore", "__pycache__/\n")
    documents = [write(f"agentd/changes/greet/{name}", text) for name, text in GREETING_DOCUMENTS.items()]
    steps = {
        "plan-gen": [*documents, usage(0.01)],
        "challenge": APPROVED,
        "review": APPROVED,
        "implement-greeting": implement(),
    }
    box.with_agents(steps, TESTS, AUTOMATED)
    end = box.agentd("plan", "greet", GREETING, "--skip-clarify", "--git", way)
    assert end.code == 0, end.out + end.err
    return box.worktree("greet") if way == "worktree" else box.root


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_code_is_written_and_checked_in_the_changes_tree(way: str, project: Scenario) -> None:
    tree = planned(project, way)
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"], end.json["git"]["setup"]) == (0, "complete", way), end.out
    assert (tree / "greeting.py").is_file() and (tree / "tests/test_greeting.py").is_file()
    assert (project.root / "greeting.py").exists() == (way == "branch")
    assert project.git("branch", "--show-current", cwd=tree) == "agentd/greet"
    assert read_state(tree / "agentd/changes/greet").checks[0]["counts"]["passed"] == 2, "the tests there were run"
    assert project.git("rev-parse", "refs/agentd/greet/base"), "all work trees share them"
    if way == "worktree":
        assert project.git("status", "--short") == "", "nothing of it lies in the main tree"
    else:
        project.paste("git add -A && git commit -qm code && git switch -q main")
        away = project.run("impl", "--review", "--json")
        assert away.code == 1 and "git switch agentd/greet" in away.json["error"]["hint"]


def test_untrusted_config_in_a_worktree_names_the_trust_command_there(project: Scenario) -> None:
    tree = planned(project, "worktree")
    page = tree / "agentd/config.toml"
    page.write_text(page.read_text().replace("-m unittest", "-m  unittest"))
    refused = project.run("impl", "--json")
    hint = refused.json["error"]["hint"]
    assert (refused.code, hint) == (3, f"(cd {tree} && agentd trust)")
    project.paste(hint.replace("agentd trust", f"{AGENTD} trust --yes"))
    assert project.run("impl").code == 0


def test_project_in_a_subfolder_is_implemented_there(box: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
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
    inner.greeting_approved({"implement-greeting": implement()})
    box.write("beside.txt", "changed by a person\n")
    end = inner.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.out
    assert inner.review_findings() == [] and (inner.root / "greeting.py").is_file()
    assert inner.review_record()["checks"][0]["counts"] == {"passed": 3, "failed": 0, "skipped": 0}
    assert (inner.folder / "tasks.md").read_text().count("status: done") == 2
    assert (box.root / "beside.txt").read_text() == "changed by a person\n"


def test_changes_outside_the_subfolder_are_in_the_reviewers_diff(
    box: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.write("beside.txt", "beside\n")
    inner = copy.copy(box)
    inner.root = box.root / "some service"
    inner.write("agentd/config.toml", "schema_version = 1\n")
    monkeypatch.chdir(inner.root)
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    change = inner.greeting_approved({"implement-greeting": [*implement()]}).change
    assert inner.agentd("implement", "greet").code == 0
    box.write("beside.txt", "not theirs\n")
    box.write("other/ä ö.txt", "nor this\n")
    base, tree = str(inner.state().base.tree), code_trees.current_tree(change)
    names = list(changed_files(change, base, tree))
    assert names == ["greeting.py", "tests/test_greeting.py", "../beside.txt", "../other/ä ö.txt"]
    whole = tree_diff(change, base, tree)
    assert "+++ b/greeting.py" in whole and "+++ b/../beside.txt" in whole and "+not theirs" in whole
    assert "agentd/changes" not in whole
    assert "+nor this" in tree_diff(change, base, tree, "../other/ä ö.txt")


def test_gitattributes_cannot_hide_text_from_the_reviewer(project: Scenario) -> None:
    hide = write(".gitattributes", "*.py -diff\n*.bin -diff\n")
    change = project.greeting_approved({"implement-greeting": [*implement(), hide, write("x.bin", "a\0b")]}).change
    assert project.agentd("implement", "greet").code == 0
    base, tree = str(project.state().base.tree), code_trees.current_tree(change)
    shown = tree_diff(change, base, tree)
    assert "+def greet(name" in shown and "+def greet(name" in tree_diff(change, base, tree, "greeting.py")
    assert "Binary files /dev/null and b/x.bin differ" in shown and "+*.py -diff" in shown


def test_commits_by_the_user_do_not_matter(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.agentd("implement", "greet").code == 0
    project.commit("my own commit of its work")
    end = project.agentd("review", "greet", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete") and project.review_findings() == []
    base, tree = project.review_record()["judged"]["base"], project.review_record()["judged"]["tree"]
    names = project.git("diff", "--name-only", base, tree, "--", ":!agentd").split()
    assert names == ["greeting.py", "tests/test_greeting.py"]


def test_implementer_that_commits_is_reviewed_by_its_files(project: Scenario) -> None:
    """With a script that can be run among them."""
    project.write(
        "agentd/work.sh",
        "cp ../greeting.txt greeting.py; cp ../test.txt tests/test_greeting.py; chmod +x greeting.py\n"
        "git add greeting.py tests && git commit -qm 'agent: done' && echo done\n",
    )
    (made, tests, *_) = implement()
    project.root.with_name("greeting.txt").write_text("#!/usr/bin/env python3\n" + made["text"])
    project.root.with_name("test.txt").write_text(tests["text"])
    project.greeting_approved({})
    shell = '[agents.shell]\nkind = "command"\ncommand = "sh"\nargs = ["agentd/work.sh"]\n'
    project.configure((project.root / "agentd/config.toml").read_text() + shell)
    project.assign("implementer", "shell")
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.out
    assert project.review_findings() == [] and project.git("log", "-1", "--format=%s") == "agent: done"
    assert project.git("ls-tree", project.review_record()["judged"]["tree"], "greeting.py").startswith("100755")


def test_detached_impl_continues_and_wait_reports_the_result(project: Scenario) -> None:
    hold = project.root.with_name("hold")
    hold.touch()
    check = TESTS.replace('command = "', f'command = "while test -e {hold}; do sleep 0.1; done; ').replace(
        "= 60", "= 600"
    )
    project.greeting_approved({"implement-greeting": implement(), "review": APPROVED}, check)
    begun = project.run("impl", "--detach", "--json")
    assert begun.code == 0 and begun.json["state"] == "running" and begun.json["next"] == "agentd wait greet"
    busy = project.run("impl", "--json")
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
    assert project.finished_steps() == ["implement-greeting", "review"] and project.state().phase is Phase.COMPLETE


def test_immediate_decisions_cannot_be_detached(project: Scenario) -> None:
    project.greeting_approved({})
    for words in (("--accept", "why"), ("--dry-run",)):
        end = project.run("impl", "--detach", *words)
        assert end.code == 2 and "leave --detach out" in end.err
    assert IN_PLACE in (project.root / "agentd/config.toml").read_text() and not project.state().steps
