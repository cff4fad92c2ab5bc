"""The example change in a real repository, implementation begun, and its code as somebody wrote it."""

import shutil
from dataclasses import replace

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.project import git
from agentd.project.layout import find_project
from plans import EXAMPLE
from scenario import Scenario

CODE = {
    "src/notes/models/user.py": "class User: ...\n",
    "src/notes/models/identity.py": "class Identity: ...\n",
    "src/notes/auth/start.py": "def start(): ...\n",
    "src/notes/auth/callback.py": "def callback(): ...\n",
    "src/notes/api/auth.py": "routes = []\n",
    "src/notes/api/me.py": "def me(): return 401\n",
}
TESTS = '''"""Sign-in."""


def test_first_sign_in_creates_a_user():
    """covers: user-model:R1"""
    assert users() == 1


# covers: user-model:R2
def test_second_provider_joins():
    assert identities() == 2


def test_start_covers_auth_flow_R1():
    assert start().status == 302


def test_used_state_is_refused():
    assert callback().status == 400  # covers: auth-flow:R2, api-endpoints:R5


def test_me():
    """covers: api-endpoints:R2"""
    assert me() == 401
'''


def planned(box: Scenario, prefix: str = "") -> Change:
    """The plan of the example, and the code it begins from."""
    change = lifecycle.create_change(find_project(str(box.root / prefix)), "add-oauth", "Let people sign in")
    for name in ("proposal.md", "tasks.md", "specs"):
        source, target = EXAMPLE / name, change.folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    root = f"{prefix}/" if prefix else ""
    box.write(f"{root}agentd/specs/api-endpoints.md", (EXAMPLE / "base/api-endpoints.md").read_text())
    box.write(f"{root}src/notes/api/me.py", "def me(token): ...\n")
    return change


def begun(box: Scenario, prefix: str = "") -> Change:
    """Implementation starts: the tree as it is becomes the base."""
    change = planned(box, prefix)
    base = git.snapshot(change.tree)
    change.update(lambda old: replace(old, base=replace(old.base, tree=base)))
    return change


def implemented(box: Scenario, prefix: str = "") -> Change:
    """All of it, with a test for each requirement."""
    change = begun(box, prefix)
    for name, text in {**CODE, "tests/test_auth_flow.py": TESTS}.items():
        box.write(f"{prefix}/{name}" if prefix else name, text)
    return change


def trees(change: Change) -> tuple[str | None, str]:
    return change.read().base.tree, git.snapshot(change.tree)
