"""`init --register` and `--unregister`: our entry in three files, and every byte as it was afterwards."""

import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest

from scenario import Scenario

CLAUDE, GEMINI, CODEX = ".mcp.json", ".gemini/settings.json", ".codex/config.toml"
FILES = (CLAUDE, GEMINI, CODEX)

FOUND = {
    CLAUDE: b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"db": {"command": "db", "env": {"TOKEN": "hush"}}\r\n\t}\r\n}',
    GEMINI: b'{"theme":"dark","z":[1,\n2],"mcpServers":{}}',
    CODEX: b'# mine\nmodel = "m"  # best\n\n\n[mcp_servers.db]\ncommand = "db"\n# the end',
}


def snapshot(box: Scenario) -> dict[str, bytes | None]:
    """Every file and folder of the work tree but git's own and agentd/."""
    found: dict[str, bytes | None] = {}
    for path in box.root.rglob("*"):
        name = path.relative_to(box.root).as_posix()
        if name.split("/")[0] not in (".git", "agentd"):
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def put(box: Scenario, content: dict[str, bytes]) -> None:
    for name, data in content.items():
        path = box.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def words(box: Scenario, *arguments: str, code: int = 0) -> dict[str, str]:
    ran = box.agentd("init", *arguments, "--no-skills", "--json")
    assert ran.code == code, ran
    registered: dict[str, str] = ran.json["registered"]
    return registered


def all_of(word: str) -> dict[str, str]:
    return dict.fromkeys(FILES, word)


def room(box: Scenario) -> Path:
    return box.root / ".git/agentd/registered"


def test_register_writes_the_entry_for_each_cli(box: Scenario) -> None:
    ran = box.agentd("init", "--register")
    assert ran.code == 0, ran.err
    entry = {"command": "agentd", "args": ["mcp"]}
    assert json.loads((box.root / CLAUDE).read_text()) == {"mcpServers": {"agentd": {"type": "stdio", **entry}}}
    assert json.loads((box.root / GEMINI).read_text()) == {"mcpServers": {"agentd": entry}}
    assert tomllib.loads((box.root / CODEX).read_text()) == {"mcp_servers": {"agentd": entry}}
    assert (box.root / "agentd/config.toml").exists()
    for name in FILES:
        assert f"  {name}" in ran.out
    assert ran.out.count("written") >= 3


def test_nothing_is_registered_without_the_option(box: Scenario) -> None:
    assert words(box) == {}
    assert snapshot(box) == {}


def test_unregister_removes_created_files_and_folders(box: Scenario) -> None:
    assert words(box, "--register") == all_of("written")
    assert words(box, "--register") == all_of("kept")
    assert words(box, "--unregister") == all_of("deleted")
    assert snapshot(box) == {} and not any(room(box).rglob("*"))
    assert words(box, "--unregister") == all_of("absent")


def test_unregister_restores_existing_files_byte_for_byte(box: Scenario) -> None:
    put(box, FOUND)
    os.chmod(box.root / CLAUDE, 0o600)
    before = snapshot(box)
    assert words(box, "--register") == all_of("written")
    claude = json.loads((box.root / CLAUDE).read_text("utf-8-sig"))
    assert list(claude["mcpServers"]) == ["db", "agentd"]
    assert json.loads((box.root / GEMINI).read_text())["mcpServers"]["agentd"]["args"] == ["mcp"]
    assert list(tomllib.loads((box.root / CODEX).read_text())["mcp_servers"]) == ["db", "agentd"]
    written = snapshot(box)
    assert words(box, "--register") == all_of("kept") and snapshot(box) == written
    assert words(box, "--unregister") == all_of("removed")
    assert snapshot(box) == before
    assert os.stat(box.root / CLAUDE).st_mode & 0o777 == 0o600


def test_unregister_keeps_empty_folders_and_files_that_existed(box: Scenario) -> None:
    put(box, {CLAUDE: b"", GEMINI: b"{\n\n}\n"})
    (box.root / ".codex").mkdir()
    before = snapshot(box)
    assert words(box, "--register") == all_of("written")
    words(box, "--unregister")
    assert snapshot(box) == before


def test_identical_entry_elsewhere_is_not_removed(box: Scenario) -> None:
    twin = '"agentd": {\n      "command": "agentd",\n      "args": ["mcp"]\n    }'
    put(box, {GEMINI: f'{{\n  "old": {{\n    {twin}\n  }},\n  "mcpServers": {{\n  }}\n}}\n'.encode()})
    before = snapshot(box)
    assert words(box, "--register")[GEMINI] == "written"
    words(box, "--unregister")
    assert snapshot(box) == before


def test_record_contains_no_user_content(box: Scenario) -> None:
    put(box, FOUND)
    words(box, "--register")
    kept = [path.read_text() for path in room(box).rglob("*") if path.is_file()]
    assert len(kept) == 3 and not any("hush" in text for text in kept)


@pytest.mark.parametrize("remembered", [True, False])
def test_later_edits_are_kept(box: Scenario, remembered: bool) -> None:
    words(box, "--register")
    if not remembered:
        shutil.rmtree(room(box))
    claude, gemini, codex = (box.root / name for name in FILES)
    claude.write_text(claude.read_text().replace('"mcpServers": {', '"mcpServers": {\n    "mine": {"command": "m"},'))
    gemini.write_text(gemini.read_text().replace("{", '{\n  "theme": "dark",', 1))
    codex.write_text("# mine\n" + codex.read_text() + "\n# also mine\n[other]\na = 1\n")
    assert words(box, "--unregister") == all_of("removed")
    assert claude.read_text() == '{\n  "mcpServers": {\n    "mine": {"command": "m"}\n  }\n}\n'
    assert gemini.read_text() == '{\n  "theme": "dark"\n}\n'
    assert codex.read_text() == "# mine\n\n# also mine\n[other]\na = 1\n"


def test_created_file_is_deleted_even_if_it_was_reformatted(box: Scenario) -> None:
    words(box, "--register")
    path = box.root / GEMINI
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
    assert words(box, "--unregister")[GEMINI] == "deleted"
    assert not path.parent.exists()


def test_unregister_works_without_local_state(box: Scenario) -> None:
    words(box, "--register")
    shutil.rmtree(box.root / ".git/agentd")
    assert words(box, "--unregister") == all_of("deleted")
    assert snapshot(box) == {}
    put(box, FOUND | {GEMINI: b'{"theme":"dark"}'})
    before = snapshot(box)
    words(box, "--register")
    for record in room(box).rglob("*.json"):
        record.write_text('{"at": "broken"')
    assert words(box, "--unregister") == all_of("removed")
    assert snapshot(box) == before


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (GEMINI, '{\n  // mine\n  "theme": "dark"\n}\n', "line 2 is not plain JSON"),
        (GEMINI, '{"theme": "dark",}', "trailing commas"),
        (CLAUDE, '{"mcpServers": []}', "not a table of servers"),
        (CLAUDE, '{"mcpServers": {"agentd": {"command": "other"}}}', "starts something else"),
        (CODEX, "[broken\n", "not valid TOML"),
        (CODEX, '[mcp_servers.agentd]\nurl = "x"\n', "starts something else"),
    ],
)
def test_uneditable_file_is_refused_and_the_others_are_written(box: Scenario, name: str, text: str, why: str) -> None:
    box.write(name, text)
    ran = box.agentd("init", "--register", "--no-skills")
    assert ran.code == 1 and why in ran.out and not ran.err
    assert f"{name} was not changed. To add the entry yourself:" in ran.out
    assert ('  args = ["mcp"]' if name == CODEX else '"args": ["mcp"]') in ran.out
    assert (box.root / name).read_text() == text
    data = box.agentd("init", "--register", "--no-skills", "--json").json
    assert data["registered"] == all_of("kept") | {name: "refused"} and data["exit_code"] == 1
    assert why in data["refused"][name]["why"] and "mcp" in data["refused"][name]["entry"]
    mentions = "agentd" in text
    assert words(box, "--unregister", code=int(mentions))[name] == ("refused" if mentions else "absent")
    assert ("edit the file yourself" in box.agentd("init", "--unregister").out) is mentions
    assert snapshot(box).keys() == {name, *([name.split("/")[0]] if "/" in name else [])}
    assert (box.root / name).read_text() == text


def test_symlinks_and_files_in_the_way_are_refused(box: Scenario, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mcp.json").write_text("{}")
    (box.root / CLAUDE).symlink_to(outside / "mcp.json")
    (box.root / ".gemini").symlink_to(outside)
    (box.root / ".codex").write_text("a file")
    ran = box.agentd("init", "--register", "--json")
    assert ran.code == 1 and ran.json["registered"] == all_of("refused")
    whys = {name: one["why"] for name, one in ran.json["refused"].items()}
    assert "symbolic link" in whys[CLAUDE] and ".gemini is a symbolic link" in whys[GEMINI]
    assert "not a folder" in whys[CODEX]
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"mcp.json": "{}"}
    assert words(box, "--unregister") == all_of("absent")
    assert (box.root / CLAUDE).is_symlink() and (box.root / ".gemini").is_symlink()


def test_non_utf8_text_and_folder_in_place_of_a_file_are_refused(box: Scenario) -> None:
    put(box, {CLAUDE: b'{"a": "\xff agentd"}'})
    (box.root / GEMINI).mkdir(parents=True)
    assert words(box, "--register", code=1) == {CLAUDE: "refused", GEMINI: "refused", CODEX: "written"}
    assert words(box, "--unregister", code=1) == {CLAUDE: "refused", GEMINI: "absent", CODEX: "deleted"}


def test_unregister_does_not_set_up_a_project(box: Scenario) -> None:
    put(box, {CLAUDE: b'{"mcpServers": {"agentd": {"command": "agentd", "args": ["mcp"]}, "x": {}}}'})
    ran = box.agentd("init", "--unregister")
    assert ran.code == 0 and "removed" in ran.out
    assert snapshot(box) == {CLAUDE: b'{"mcpServers": {"x": {}}}'}
    assert not (box.root / "agentd").exists() and not (box.root / ".git/agentd").exists()


@pytest.mark.parametrize("other", ["--register", "--force", "--commit"])
def test_unregister_cannot_be_combined_with_other_options(box: Scenario, other: str) -> None:
    ran = box.agentd("init", "--unregister", other)
    assert ran.code == 2 and "agentd init --unregister" in ran.err
    assert snapshot(box) == {} and not (box.root / "agentd").exists()


def test_each_worktree_and_subfolder_has_its_own_record(box: Scenario) -> None:
    put(box, {CLAUDE: b"{ }"})
    box.commit("start")
    other = box.root.parent / "other"
    box.git("worktree", "add", "-q", str(other))
    inner = box.root / "packages/api"
    inner.mkdir(parents=True)
    (other / CLAUDE).write_bytes(b"{\n}")
    (inner / CLAUDE).write_bytes(b"")
    places = {box.root: b"{ }", other: b"{\n}", inner: b""}
    for place in places:
        ran = box.agentd("init", "--here", "--register", "--no-skills", "--json", cwd=place)
        assert ran.json["registered"] == all_of("written")
    for place, data in places.items():
        assert box.agentd("init", "--here", "--unregister", cwd=place).code == 0
        assert (place / CLAUDE).read_bytes() == data
        assert not (place / ".gemini").exists() and not (place / ".codex").exists()


def test_committed_entries_can_be_unregistered_in_a_clone(box: Scenario) -> None:
    """Who cloned the repository has no record of ours, and still gets rid of the entry."""
    put(box, {CLAUDE: b'{\n  "a": 1\n}\n'})
    words(box, "--register")
    box.commit("registered")
    clone = box.root.parent / "clone"
    box.git("clone", "-q", str(box.root), str(clone))
    ran = box.agentd("init", "--unregister", "--json", cwd=clone)
    assert ran.json["registered"] == {CLAUDE: "removed", GEMINI: "deleted", CODEX: "deleted"}
    assert (clone / CLAUDE).read_bytes() == b'{\n  "a": 1\n}\n'
    assert not (clone / ".gemini").exists()


def test_help_describes_register_and_unregister(box: Scenario) -> None:
    out = " ".join(box.agentd("init", "--help").out.split())
    assert (
        "--register Register agentd's MCP server with the agent CLIs that you use yourself." in out
        and "--unregister Undo --register" in out
    )
