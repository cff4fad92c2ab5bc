"""`agentd doctor` with the three real CLIs: found, their versions read and known, and nothing of theirs touched."""

from pathlib import Path

from loopback import clis
from scenario import Scenario


def test_real_clis_are_found_with_known_versions(project: Scenario) -> None:
    clis.isolate()
    programs = {name: clis.need(name) for name in ("gemini", "codex", "claude")}
    project.env["PATH"] = f"{clis.FOLDER}:{project.env['PATH']}"
    for folder in (".gemini", ".codex", ".claude"):
        (project.home / folder).mkdir()
    (project.home / ".codex/auth.json").write_text("{}")
    before = sorted(project.home.rglob("*"))
    ran = project.agentd("doctor", "--json", GEMINI_API_KEY="dummy", CLAUDECODE="1")
    assert sorted(project.home.rglob("*")) == before
    rows = {(row["about"].removeprefix("agent "), row["name"]): row for row in ran.json["rows"]}
    for name, path in programs.items():
        assert Path(rows[name, "program"]["words"]) == Path(path)
        assert rows[name, "version"]["state"] == "ok" and "known" in rows[name, "version"]["words"]
    states = {name: rows[name, "login"]["state"] for name in programs}
    assert states == {"gemini": "ok", "codex": "ok", "claude": "problem"}
    assert ran.code == 3
    stopped = [role for role, seat in ran.json["roles"].items() if not seat["can_run"]]
    assert stopped == ["implementer"]
