"""What a page request costs: state and configuration are read once, and nothing is written."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from agentd.change import comment_store, index, lifecycle, overlaps, state
from agentd.change.folder import Change
from agentd.project.config import loader
from agentd.project.layout import find_project
from agentd.web import application, displayed
from agentd.web import site as sites
from playbooks import NEEDS_CHANGES, implement
from scenario import CHECK, Scenario, answer, previous, replace_text, report

CHANGE = "add-oauth"


class Reads(Counter[str]):
    """How often each change's STATE.yaml was parsed, and the configuration was put together."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        parse, merge = state.parse_state, loader.merge_layers

        def parse_state(text: str) -> Any:
            found = re.search(r"^change_id: (.*)$", text, re.MULTILINE)
            self[found[1] if found else "?"] += 1
            return parse(text)

        def merge_layers(*layers: Any) -> Any:
            self["config"] += 1
            return merge(*layers)

        patch.setattr(state, "parse_state", parse_state)
        patch.setattr(loader, "merge_layers", merge_layers)


def files_below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of every file. git renews the time of an object that it would have written again."""
    found = {}
    for path in sorted(folder.rglob("*")):
        is_object = "/.git/objects/" in str(path)
        time = 0 if is_object else path.lstat().st_mtime_ns
        found[str(path)] = (path.read_bytes() if path.is_file() else b"", time)
    return found


@pytest.fixture
def planned(project: Scenario) -> Scenario:
    """A plan in its second round, with a comment."""
    project.challenged(
        "NEEDS_REVISION",
        ("high", "It breaks"),
        reproposal=[answer("C1", "disputed", "It cannot break.")],
        challenge_2=report("NEEDS_REVISION", previous=previous(C1="open")),
    )
    assert project.run("plan", "--rounds", "1").code == 1
    anchor = comment_store.comment_anchor(project.change, "proposal.md", "People are users")
    comment_store.add_comment(project.change, anchor, "Who?", "person:ann")
    return project


@pytest.fixture
def reviewed(project: Scenario) -> Scenario:
    """Code with a failed review and an edit that no commit has."""
    project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}, CHECK)
    assert project.run("impl", "--rounds", "0").code == 1
    project.write("more.py", "MORE = 1\n")
    return project


def pages_of(change: Change) -> list[str]:
    """Every page of the change that its tabs lead to, and those that these lead to."""
    client, start = open_client(), f"/changes/{change.id}"
    found = dict.fromkeys(["/", start, f"{start}/bar"])
    for path in (start, f"{start}/rounds", f"{start}/specs", f"{start}/read/proposal.md"):
        links = re.findall(rf'href="({start}[^"#]*)', client.get(path).text)
        found.update(dict.fromkeys(link.replace("&amp;", "&") for link in links if "export" not in link))
    return list(found)


def open_client() -> TestClient:
    app = application.build_app(sites.create_site(find_project(), "csrf"))
    return TestClient(app, base_url="http://127.0.0.1:4000")


@pytest.fixture(params=["planned", "reviewed"])
def scenario(request: pytest.FixtureRequest) -> Iterator[Scenario]:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def test_page_reads_state_and_config_once_and_writes_nothing(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = scenario.change
    lifecycle.create_change(find_project(), "other", "Another change")
    Path(change.project.local_state_path("index.json")).unlink(missing_ok=True)
    before = files_below(scenario.root)
    paths = pages_of(change)
    assert {"/", f"/changes/{change.id}/run", f"/changes/{change.id}/trace"} < set(paths) and len(paths) > 8
    reads, client = Reads(monkeypatch), open_client()
    for path in paths:
        reads.clear()
        index._learned.clear()
        overlaps._load_pattern.cache_clear()
        assert client.get(path).status_code == 200
        assert reads[change.id] == 1 and reads["config"] <= 1, (path, dict(reads))
        assert files_below(scenario.root) == before, path


def test_broken_state_and_config_are_read_once_too(planned: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    (planned.folder / "STATE.yaml").write_text(f"change_id: {CHANGE}\nphase: [\n")
    planned.write("agentd/config.toml", "[budget]\nper_change = 'much'\n")
    reads, before = Reads(monkeypatch), files_below(planned.root)
    assert "cannot be read" in open_client().get("/").text
    page = open_client().get(f"/changes/{CHANGE}")
    assert page.status_code == 200 and "STATE.yaml" in page.text
    assert reads[CHANGE] == 2 and reads["config"] <= 2, "once for each page"
    assert files_below(planned.root) == before


def test_stale_page_shows_the_difference_to_what_this_server_showed(planned: Scenario) -> None:
    client, change = open_client(), planned.change
    page = client.get(f"/changes/{CHANGE}/read/proposal.md").text
    shown = page.split('name="shown" value="')[1].split('"')[0].replace("&#34;", '"')
    replace_text(change.folder / "proposal.md", "People are users", "Persons are users")
    fields = {"choice": "reject", "reason": "No.", "shown": shown}
    told = client.post(f"/changes/{CHANGE}/decide", data=fields, headers={"HX-Request": "true"})
    assert told.status_code == 409
    assert re.search("<del>[^/]*People", told.text) and re.search("<ins>[^/]*Persons", told.text)


def test_stale_page_of_an_earlier_server_names_what_changed(planned: Scenario) -> None:
    change = planned.change
    replace_text(change.folder / "proposal.md", "People are users", "Folks are users")
    shown = json.dumps(displayed.displayed_state(change))
    displayed._texts.clear()
    replace_text(change.folder / "proposal.md", "Folks are users", "Persons are users")
    fields = {"choice": "reject", "reason": "No.", "shown": shown}
    told = open_client().post(f"/changes/{CHANGE}/decide", data=fields, headers={"HX-Request": "true"})
    assert told.status_code == 409 and "What changed in proposal.md since you read it" in told.text
    assert f'<a href="/changes/{CHANGE}/read/proposal.md">read it again</a>' in told.text


def test_shown_texts_and_code_are_bounded(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(displayed, "_MOST_TEXT", 100)
    monkeypatch.setattr(displayed, "_MOST_CODE", 10_000)
    digests = [displayed.remember_text(bytes([number]) * 40) for number in range(10)]
    assert list(displayed._texts) == digests[-2:]
    change = project.proposed(report("APPROVED"), {}).change
    for number in range(20):
        project.write("noise.txt", "".join(chr(33 + (number * one) % 90) for one in range(5_000)))
        with displayed.page_request(change.project):
            tree = displayed.git.snapshot(change.tree)
            assert displayed.git.run(change.tree, "cat-file", "-t", tree) == "tree"
    folder = Path(displayed._object_folder(change.project.repo.common))
    assert sum(path.stat().st_size for path in folder.glob("??/*")) < 30_000
    displayed.forget()
    assert not folder.exists()
