"""`agentd demo` as a newcomer meets it: no agents, no network, no git name, and nothing left or touched."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentd.change.folder import read_records
from agentd.demo import verification
from agentd.demo.playback import DemoFailed, continue_command, play_act, prepare_demo
from agentd.demo.story import ACTS, DEMO_CHANGE_ID, StoryPoint
from agentd.demo.workspace import DemoWorkspace, inside_workspace
from agentd.domain import yaml12
from assertions import BROWSER, CLIS, is_required
from program import AGENTD, PATIENCE
from scenario import Result, Scenario
from terminal import ENTER, INTERRUPT, Person, start_on_terminal

FAILS_FIRST = "test_a_cent_left_over_goes_to_the_largest_remainder"
PAUSE = "Press Enter to continue"

pytestmark = pytest.mark.usefixtures("forked_servers")


def fresh(home: Path, **more: str) -> dict[str, str]:
    """A machine with git and nothing else of interest: no agents on PATH, no name for git."""
    home.mkdir(parents=True, exist_ok=True)
    git = shutil.which("git")
    assert git
    return {"PATH": os.path.dirname(git), "HOME": str(home), "LANG": "C.UTF-8", **more}


def ran(*argv: str, env: dict[str, str], cwd: Path) -> Result:
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without_network() -> list[str]:
    """A prefix for a command that is to have no network, where the kernel lets us."""
    for prefix in (["unshare", "--map-root-user", "--net"], ["unshare", "--net"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
        ):
            return prefix
    assert not is_required(CLIS, BROWSER), "the demo cannot be shown without a network: unshare --net is not allowed"
    return []


@dataclass(frozen=True)
class Shown:
    """A whole demo without a terminal, and what lies there afterwards."""

    root: Path
    home: Path

    @property
    def place(self) -> DemoWorkspace:
        return DemoWorkspace(self.root / "shown")

    @property
    def out(self) -> str:
        return (self.root / "out").read_text()

    @property
    def err(self) -> str:
        return (self.root / "err").read_text()

    def run(self, *argv: str) -> Result:
        return ran(*argv, env=fresh(self.home), cwd=self.place.project)

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.code == 0, done.err
        return done.out.strip()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Run once, also where several processes share the tests of this file."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo-shown"
    root.mkdir(exist_ok=True)
    shown = Shown(root, root / "own-home")
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "code").exists():
            shown.home.mkdir()
            (shown.home / ".profile").write_text("# mine\n")
            env = fresh(shown.home, TMPDIR=str(root))
            done = ran(*without_network(), AGENTD, "demo", "--into", "shown", env=env, cwd=root)
            (root / "out").write_text(done.out)
            (root / "err").write_text(done.err)
            (root / "home-after").write_text(repr(contents(shown.home)))
            (root / "code").write_text(str(done.code))
    assert (root / "code").read_text() == "0", shown.out + shown.err
    return shown


# ---- what is shown


def test_introduction_says_that_only_the_models_are_scripted(shown: Shown) -> None:
    first = " ".join(shown.out.splitlines()[:3])
    assert "Only the models are scripted" in first
    assert "nothing is charged" in first


def test_demo_shows_the_whole_workflow_in_order(shown: Shown) -> None:
    marks = [
        "? How is it said who pays more?",
        "❯ Whole-number weights",
        "NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM",
        "APPROVED - Ready for implementation!",
        "NEEDS_CHANGES - Found 2 HIGH",
        "APPROVED - Complete, ready to archive!",
        "to agentd/archive/",
        "What was created",
        "lose a cent",
        FAILS_FIRST,
        "divide by zero",
        "simulated; nothing was charged",
        "Archive split-by-weight",
        "The project is kept in ",
        "agentd status split-by-weight",
        "agentd view split-by-weight",
        "agentd init",
    ]
    at = 0
    for mark in marks:
        at = shown.out.find(mark, at)
        assert at >= 0, f"{mark!r} is missing, or comes too early"


def test_shown_costs_add_up(shown: Shown) -> None:
    rows = re.findall(r"(\d+\.\d\d) USD this run, (\d+\.\d\d) USD for the change", shown.out)
    cents = [(round(float(run) * 100), round(float(change) * 100)) for run, change in rows]
    assert len(cents) == 4
    assert [change - run for run, change in cents[1:]] == [change for _, change in cents[:-1]]


def test_progress_without_a_terminal_is_plain_lines(shown: Shown) -> None:
    assert "\x1b" not in shown.out + shown.err
    assert re.search(r"^\d\d:\d\d:\d\d  Spec 3/3: settling  done", shown.err, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d  Checks  check tests failed", shown.err, re.MULTILINE)
    assert "warning" not in shown.err


# ---- what lies there


def test_demo_change_is_archived_and_its_specs_merged(shown: Shown) -> None:
    specs = shown.place.project / "agentd" / "specs"
    assert re.findall(r"^### (R\d)", (specs / "splitting.md").read_text(), re.MULTILINE) == ["R1", "R2", "R3", "R4"]
    assert {path.name for path in specs.iterdir()} >= {"splitting.md", "balances.md", "settling.md", "CHANGELOG.md"}
    assert "rounded down" in (specs / "splitting.md").read_text()
    assert shown.run(AGENTD, "validate", "--all", "--strict").code == 0
    assert re.search(r"split-by-weight +archived", shown.run(AGENTD, "list", "--all").out)


def test_demo_is_committed_on_main_and_the_tree_is_clean(shown: Shown) -> None:
    assert shown.git("status", "--porcelain") == ""
    assert shown.git("branch", "--show-current") == "main"
    log = shown.git("log", "--format=%s|%an").splitlines()
    assert [line.split("|")[1] for line in log] == ["Demo"] * 5
    assert log[0].startswith("Archive split-by-weight")


def test_sample_tests_pass_with_unittest(shown: Shown) -> None:
    done = shown.run(sys.executable, "-m", "unittest")
    assert done.code == 0, done.err
    assert "Ran 15 tests" in done.err


def test_first_code_fails_the_named_test(shown: Shown, tmp_path: Path) -> None:
    first = read_records(verification.change_folder(shown.place), "review")[0]
    assert [row["failed_tests"] for row in first.checks or ()] == [
        [f"tests.test_splitting.SplitByWeight.{FAILS_FIRST}"]
    ]
    shown.git("archive", "--output", str(tmp_path / "code.tar"), first.judged["tree"])
    subprocess.run(["tar", "-xf", "code.tar"], cwd=tmp_path, check=True)
    done = ran(sys.executable, "-m", "unittest", env=fresh(shown.home), cwd=tmp_path)
    assert done.code == 1
    assert re.findall(r"^(?:FAIL|ERROR): (\w+)", done.err, re.MULTILINE) == [FAILS_FIRST]


def test_challengers_finding_is_verified_and_fixed(shown: Shown) -> None:
    first, second = read_records(verification.change_folder(shown.place), "challenge")
    flaw = first.findings[0]
    assert (first.verdict, flaw.severity, flaw.verified) == ("NEEDS_REVISION", "high", True)
    assert [(one.id, one.answer, one.state) for one in second.previous] == [
        ("C1", "fixed", "fixed"),
        ("C2", "fixed", "fixed"),
    ]


def test_demo_touches_only_its_own_folder(shown: Shown) -> None:
    assert (shown.root / "home-after").read_text() == repr({".profile": b"# mine\n"})
    left = {path.name for path in shown.root.iterdir()} - {"out", "err", "code", "lock", "home-after"}
    assert left == {"own-home", "shown"}
    assert {path.name for path in shown.place.folder.iterdir()} == {"home", "tally"}


# ---- on a terminal


def before_demo(folder: Path, *flags: str) -> tuple[Person, Path]:
    """Somebody before it, and the folder in which it may make its own."""
    room = folder / "room"
    room.mkdir()
    env = fresh(folder / "own-home", TMPDIR=str(room))
    return start_on_terminal([AGENTD, "demo", *flags], env, width=100, height=50), room


def test_pause_and_open_wait_at_each_decision_and_serve_the_viewer(tmp_path: Path) -> None:
    person, room = before_demo(tmp_path, "--pause", "--open")
    person.sees(lambda display: "Questions" in display.text and "scripted-planner" in display.text)
    for number in range(1, 5):
        person.sees(lambda display, number=number: display.text.count(PAUSE) == number)  # type: ignore[misc]
        person.press(ENTER)
    person.sees("http://127.0.0.1:")
    assert [path.name for path in room.iterdir() if path.is_dir()], "the project is there while it is viewed"
    person.press(INTERRUPT)
    assert person.waits() == 0
    assert "Now try it in your own project" in person.display.text
    assert list(room.iterdir()) == []
    assert contents(tmp_path / "own-home") == {}


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    person, room = before_demo(tmp_path)
    person.sees("Spec 1/3: splitting")
    person.press(INTERRUPT)
    assert person.waits() == 130
    assert "its folder was removed" in person.display.text
    assert "to continue" not in person.display.text, "only the demo itself says how it ended"
    assert list(room.iterdir()) == []
    assert left_running(room) == []


def test_closed_terminal_leaves_nothing_behind(tmp_path: Path) -> None:
    person, room = before_demo(tmp_path)
    person.sees("Spec 1/3: splitting")
    os.close(person.handle)
    person.program.wait()
    assert list(room.iterdir()) == []
    assert left_running(room) == []


def test_keep_preserves_and_names_the_folder_after_ctrl_c(tmp_path: Path) -> None:
    person, room = before_demo(tmp_path, "--keep")
    person.sees("scripted-planner")
    person.press(INTERRUPT)
    assert person.waits() == 130
    [folder] = room.iterdir()
    assert (folder / "tally" / "agentd" / "config.toml").is_file()
    told = person.display.text.rpartition("Error:")[2].replace("\n", "")  # a path may be broken in two
    assert folder.name in told and "agentd plan split-by-weight --trust" in " ".join(told.split())


def test_command_shown_after_ctrl_c_continues_the_demo(tmp_path: Path) -> None:
    place = DemoWorkspace(tmp_path / "kept")
    assert continue_command(place) == ""
    prepare_demo(place.folder, StoryPoint.CLARIFIED)
    env = fresh(tmp_path / "own-home")
    env["PATH"] = f"{Path(AGENTD).parent}:{env['PATH']}"
    command = continue_command(place)
    assert command == f"cd {place.project} && agentd plan split-by-weight --trust"
    done = ran("sh", "-c", f"{command} --json", env=env, cwd=tmp_path)
    assert (done.code, done.json["phase"]) == (0, "challenged"), done.err
    assert continue_command(place) == f"cd {place.project} && agentd impl split-by-weight --trust"


def test_finished_demo_has_no_command_to_continue(shown: Shown) -> None:
    assert continue_command(shown.place) == ""
    for command in ("status", "view"):
        flags = ("--export", str(shown.root / "page.html")) if command == "view" else ()
        assert shown.run(AGENTD, command, DEMO_CHANGE_ID, *flags).code == 0
    (shown.root / "page.html").unlink()


def left_running(folder: Path) -> list[str]:
    """After a moment: what was asked to end needs one."""
    end = time.monotonic() + PATIENCE
    while (left := processes_in(folder)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def processes_in(folder: Path) -> list[str]:
    """Commands that name the folder, or stand in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if str(folder) in command or str(folder) in os.readlink(process / "cwd"):
                found.append(command)
        except OSError:
            continue  # it has ended, or is another's
    return found


# ---- what is refused, and what is never pretended


def test_pause_without_a_terminal_is_refused(tmp_path: Path) -> None:
    done = ran(AGENTD, "demo", "--pause", env=fresh(tmp_path / "own-home", TMPDIR=str(tmp_path)), cwd=tmp_path)
    assert done.code == 2
    assert "needs a terminal" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["own-home"]


def test_non_empty_folder_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("words")
    done = ran(AGENTD, "demo", "--into", ".", env=fresh(tmp_path / "own-home"), cwd=tmp_path)
    assert done.code == 2
    assert "is not empty" in done.err
    assert contents(tmp_path) == {"mine": b"words"}


def test_act_with_a_wrong_outcome_fails_even_with_the_right_exit_code(tmp_path: Path) -> None:
    place = prepare_demo(tmp_path / "laid", StoryPoint.CLARIFIED)
    assert verification.find_mistakes(place, StoryPoint.CLARIFIED) == []
    review = next(act for act in ACTS if act.point is StoryPoint.REVIEWED)
    with (
        inside_workspace(place),
        pytest.raises(DemoFailed, match="the change is drafting, and should be implementing"),
    ):
        play_act(place, review)  # refused with exit code 1, which is what a review that asks for changes ends with
    with (
        inside_workspace(place),
        pytest.raises(DemoFailed, match="ended with exit code 1, and should have ended with 0"),
    ):
        play_act(place, ACTS[-1])
    (place.project / "tally" / "splitting.py").write_text("")
    assert any("the tests of the sample fail" in one for one in verification.find_mistakes(place, StoryPoint.COMPLETE))


@pytest.mark.parametrize(
    ("point", "kind", "id_"), [(StoryPoint.APPROVED, "challenge", "C1"), (StoryPoint.COMPLETE, "review", "V1")]
)
def test_open_findings_are_reported_as_wrong(
    shown: Shown, tmp_path: Path, point: StoryPoint, kind: str, id_: str
) -> None:
    place = DemoWorkspace(tmp_path / "copy")
    shutil.copytree(shown.place.folder, place.folder)
    said = [one for one in verification.find_mistakes(place, point) if "open" in one]
    record = verification.change_folder(place) / "reviews" / f"{kind}-2.yaml"
    record.write_text(record.read_text().replace("state: fixed", "state: open", 1))
    assert (said, verification.find_mistakes(place, point)[-1]) == ([], f"findings are still open: {id_}")


def test_users_git_and_config_variables_are_ignored(
    box: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.write("mine.txt", "words")
    box.commit()
    inner, own = box.root / ".git", tmp_path / "xdg"
    own.joinpath("agentd").mkdir(parents=True)
    own.joinpath("agentd", "config.toml").write_text("this is no TOML")
    leading = {
        "GIT_DIR": inner,
        "GIT_WORK_TREE": box.root,
        "GIT_INDEX_FILE": inner / "index",
        "GIT_OBJECT_DIRECTORY": inner / "objects",
        "GIT_AUTHOR_NAME": "Me",
        "XDG_CONFIG_HOME": own,
        "AGENTD_ROLES__PLANNER": "nobody",
    }
    for name, value in leading.items():
        monkeypatch.setenv(name, str(value))
    before = contents(box.root), contents(own)
    place = prepare_demo(tmp_path / "laid", StoryPoint.CLARIFIED)
    assert (contents(box.root), contents(own)) == before
    with inside_workspace(place):
        assert not set(leading) & set(os.environ)
    log = ran("git", "log", "--format=%an", env=fresh(tmp_path / "own-home"), cwd=place.project)
    assert set(log.out.split()) == {"Demo"}


def test_project_can_be_set_up_at_any_point_of_the_demo(tmp_path: Path) -> None:
    before = dict(os.environ), os.getcwd()
    place = prepare_demo(tmp_path / "laid", StoryPoint.REVIEWED)
    assert (dict(os.environ), os.getcwd()) == before
    with inside_workspace(place):
        done = ran(AGENTD, "status", DEMO_CHANGE_ID, "--json", env=dict(os.environ), cwd=place.project)
        valid = ran(AGENTD, "validate", "--all", "--strict", env=dict(os.environ), cwd=place.project)
    assert done.json["phase"] == "implementing"
    state = yaml12.load((verification.change_folder(place) / "STATE.yaml").read_text())
    assert state["phase"] == "implementing"
    assert [one.id for one in read_records(verification.change_folder(place), "review")[0].findings] == ["V1", "V2"]
    assert valid.code == 0, valid.out
