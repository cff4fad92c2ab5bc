"""The terminal as the documentation shows it, drawn by the real program; AGENTD_PICTURES says where to."""

import hashlib
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from terminal_picture import WIDTH, Painted, Picture, taken

import reference
from agentd.demo.playback import prepare_demo
from agentd.demo.story import DEMO_CHANGE_ID, StoryPoint
from agentd.demo.workspace import DemoWorkspace, demo_environment
from program import environment as scrubbed

NAMES = ("plan", "status", "cost", "demo")
FOLDER = os.environ.get("AGENTD_PICTURES") and Path(os.environ["AGENTD_PICTURES"]).absolute()  # from where we start
SECONDS = 2  # that a step takes, as far as the pictures know


def drawn(picture: Picture, name: str, tmp_path: Path, *words: str) -> None:
    """The file, once it has been looked at: well formed, nobody asked, and what must be there is there to be read."""
    made = Path(FOLDER or tmp_path) / f"{name}.svg"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(picture.svg(name), encoding="utf-8")
    text = made.read_text(encoding="utf-8")
    read = squeezed("".join(ElementTree.fromstring(text).itertext()))
    assert [word for word in (picture.title, *words) if squeezed(word) not in read] == []
    assert set(re.findall(r"\w+://[^\s\"'<]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"url\((?!#)|@import|<script|<image|<foreignObject|href", text)
    assert str(tmp_path) not in read and os.path.expanduser("~") not in read


def squeezed(text: str) -> str:
    return "".join(text.split())  # each word may be drawn by itself


def steadied(picture: Picture) -> Picture:
    """Without what is different every time: how long things took and when they were, the names of commits."""
    rows = [line for line in picture.lines if re.match(r"  [✓!✗] .* \d+:\d\d\b", line)]
    picture.steady(r"(?<=· )\d+:\d\d$", lambda found: clock(SECONDS * len(rows)))
    picture.steady(r"(?<=  )\d+:\d\d(?=  |$)", lambda found: clock(SECONDS))
    picture.steady(r"just now|\d+ ?\w+ ago", lambda found: "just now")
    picture.steady(r"(?<=^  )[0-9a-f]{7}(?= (.*))", lambda found: hashlib.sha256(found[1].encode()).hexdigest()[:7])
    return picture


def clock(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02}"


def test_plan_status_and_cost_screenshots_are_rendered(tmp_path: Path) -> None:
    place = prepare_demo(tmp_path / "sample", StoryPoint.CLARIFIED)
    plan = steadied(shown(place, "plan", DEMO_CHANGE_ID, "--rounds", "0"))
    assert plan.code == 1
    steps = ("✓ Proposal", "✓ Spec 3/3: settling", "! Challenge")
    assert "not started" not in plan.text, "it ended as it was asked to"
    drawn(plan, "plan", tmp_path, *steps, "NEEDS_REVISION - Found 1 HIGH", "C1  high", "lose a cent", f"· {clock(22)}")
    status = steadied(shown(place, "status", DEMO_CHANGE_ID))
    drawn(status, "status", tmp_path, "NEEDS_REVISION", "C2  medium", "just now", f"agentd plan {DEMO_CHANGE_ID}")
    cost = shown(place, "cost", DEMO_CHANGE_ID)
    drawn(cost, "cost", tmp_path, "left of 10.00 USD", "TOKENS IN", "spec-gen-settling", "0.05 USD", "as-if")
    assert (status.code, cost.code) == (0, 0)


def shown(place: DemoWorkspace, *arguments: str) -> Picture:
    return taken(place.project, demo_environment(place, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}), *arguments)


def test_demo_screenshot_is_rendered(tmp_path: Path) -> None:
    picture = steadied(taken(tmp_path, scrubbed(tmp_path / "home"), "demo"))
    assert picture.code == 0, picture.text
    picture.begin("What the reviews found")
    found = ("by the challenger: Parts that are rounded one by one lose a cent", "divide by zero")
    drawn(picture, "demo", tmp_path, *found, "nothing was charged", "git log", "Now try it in your own project")


# ---- what makes them fit to be shown


def test_screenshot_keeps_colors_after_normalization() -> None:
    painted = Painted(WIDTH, 10)
    painted.feed("\x1b[2mCost\x1b[0m  \x1b[1m\x1b[31m5\x1b[0m and 5")
    picture = Picture("agentd", 0, painted.cells)
    picture.steady("5", lambda found: "<7&")
    svg = picture.svg("small")
    texts = {one.text: one.get("class") for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    fills = dict(re.findall(r"^\.(small-r\d+) \{ fill: (#\w+)", svg, re.MULTILINE))
    assert {words: fills[name or ""] for words, name in texts.items() if words in ("Cost", "<7&")} == {
        "Cost": "#81888f",
        "<7&": "#ff7b72",
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_screenshot_is_shown_in_the_docs_with_alt_text(name: str) -> None:
    told = [
        alt
        for page in reference.DOCS.rglob("*.md")
        for alt, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text())
        if (page.parent / target).resolve() == reference.DOCS / "pictures" / f"{name}.svg"
    ]
    assert told and all(len(alt) > 20 for alt in told)
    assert (reference.DOCS / "pictures" / f"{name}.svg").is_file(), "make pictures"
