"""An OpenSpec project made by a seed: specs, and changes from one base that often touch the same requirement."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FENCED = "```markdown\n### Requirement: An example only\n#### Scenario: No scenario\n```"
_REQUIREMENT = re.compile(r"###\s*Requirement:\s*(.+)", re.IGNORECASE)
_SCENARIO = re.compile(r"####\s+Scenario:\s*(.+)")


@dataclass(frozen=True)
class Block:
    """A requirement as OpenSpec writes it: its text, and its scenarios by name."""

    text: str
    scenarios: dict[str, str]

    def written(self, name: str) -> str:
        parts = [f"### Requirement: {name}\n{self.text}\n"]
        parts += [f"#### Scenario: {title}\n{body}\n" for title, body in self.scenarios.items()]
        return "\n".join(parts)


@dataclass
class Change:
    id: str
    deltas: dict[str, list[str]] = field(default_factory=dict)
    """The text of each section, by capability."""
    touched: set[tuple[str, str]] = field(default_factory=set)
    """Capability and name of each requirement, renamed ones by both names."""
    blocks: list[tuple[str, str, Block]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    renames: dict[tuple[str, str], str] = field(default_factory=dict)
    """The old name for each capability and new name."""


@dataclass
class Made:
    specs: dict[str, dict[str, Block]]
    changes: list[Change]


def make(root: Path, seed: int, specs: int, changes: int) -> Made:
    """Written below root/openspec."""
    chance = random.Random(seed)
    made = Made({f"capability-{n:03}": _requirements(chance, n) for n in range(specs)}, [])
    for number, (name, requirements) in enumerate(made.specs.items()):
        _write(root / "openspec/specs" / name / "spec.md", _spec(name, requirements, number), crlf=number % 7 == 3)
    hot = list(made.specs)[: max(4, changes * 2 // 5)]
    for number in range(changes):
        change = _change(chance, f"change-{number:03}", made, hot)
        made.changes.append(change)
        folder = root / "openspec/changes" / change.id
        listed = "\n".join(f"- {name} is changed." for name in change.deltas)
        why = f"Somebody asked for {change.id}, and all who were asked agreed that it is wanted."
        _write(
            folder / "proposal.md", f"# Proposal\n\n## Why\n{why}\n\n## What Changes\n{listed}\n\n## Impact\n- Code.\n"
        )
        _write(folder / "tasks.md", f"# Tasks\n\n## 1. Work\n\n- [x] 1.1 Do {change.id}\n- [x] 1.2 Test it\n")
        for name, sections in change.deltas.items():
            _write(folder / "specs" / name / "spec.md", "\n".join(sections), crlf=number % 9 == 4)
    return made


def read(text: str) -> dict[str, Block]:
    """The requirements of a spec as OpenSpec reads them, told apart by name; blank lines do not count."""
    found: dict[str, Block] = {}
    for name, lines in _cut(text.replace("\r\n", "\n").split("\n"), _REQUIREMENT, stop=r"##\s"):
        scenarios = {title: words(body) for title, body in _cut(lines, _SCENARIO)}
        found[name] = Block(words(list(_until(lines, _SCENARIO))), scenarios)
    return found


def read_all(root: Path) -> dict[str, dict[str, Block]]:
    folder = root / "openspec/specs"
    return {path.parent.relative_to(folder).as_posix(): read(path.read_text()) for path in folder.rglob("spec.md")}


# ---- reading


def _plain(lines: list[str]) -> list[bool]:
    inside = False
    found = []
    for line in lines:
        fence = line.startswith("```")
        found.append(not inside and not fence)
        inside ^= fence
    return found


def _cut(lines: list[str], pattern: re.Pattern[str], stop: str = "$^") -> Iterator[tuple[str, list[str]]]:
    name = ""
    body: list[str] = []
    for line, plain in zip(lines, _plain(lines), strict=True):
        match = pattern.match(line) if plain else None
        ends = plain and re.match(stop, line)
        if (match or ends) and name:
            yield name, body
            name = ""
        if match:
            name, body = match[1].strip(), []
        elif name:
            body.append(line)
    if name:
        yield name, body


def _until(lines: list[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for line, plain in zip(lines, _plain(lines), strict=True):
        if plain and pattern.match(line):
            return
        yield line


def words(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines if line.strip())


# ---- making


def _requirements(chance: random.Random, number: int) -> dict[str, Block]:
    names = [f"Rule {letter} of {number}" for letter in "ABCDEF"[: chance.randint(4, 6)]]
    names[0] = f"Use `code` & **marks** in {number}"
    return {name: _block(chance, name) for name in names}


def _block(chance: random.Random, name: str, mark: str = "first") -> Block:
    text = f"The system SHALL keep {name} as {mark} wanted it."
    if chance.random() < 0.1:
        text += f"\n\n{FENCED}\n\nIt SHALL do so always."
    titles = [f"Case {n}" for n in range(1, chance.randint(2, 4))]
    return Block(text, {title: _scenario(title, mark) for title in titles})


def _scenario(title: str, mark: str) -> str:
    return f"- **GIVEN** what {mark} said\n- **WHEN** {title} happens\n- **THEN** {mark} is right"


def _spec(name: str, requirements: dict[str, Block], number: int) -> str:
    body = ("\n" if number % 2 else "\n\n").join(block.written(title) for title, block in requirements.items())
    notes = "\n## Notes\nWritten by hand.\n" if number % 5 == 0 else ""
    purpose = f"What holds for {name}, told in so many words that nobody can call it brief."
    return f"# {name} Specification\n\n## Purpose\n{purpose}\n\n## Requirements\n{body}{notes}"


def _change(chance: random.Random, id_: str, made: Made, hot: list[str]) -> Change:
    change = Change(id_)
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(hot) if chance.random() < 0.7 else chance.choice(list(made.specs))
        if name not in change.deltas:
            _touch(chance, change, name, made.specs[name])
    if chance.random() < 0.1:
        new = f"new-of-{id_}" if chance.random() < 0.5 else "new-of-many"
        purpose = "## Purpose\nA capability that was not there before, in words that are enough for a purpose.\n"
        change.deltas[new] = [purpose, _section("ADDED", _added(chance, change, new, f"Rule of {id_}"))]
    return change


def _touch(chance: random.Random, change: Change, name: str, spec: dict[str, Block]) -> None:
    free = list(spec)
    chance.shuffle(free)
    sections: list[str] = []
    if chance.random() < 0.5:
        # Now and then two changes add what has the same name.
        title = "An addition of many" if chance.random() < 0.15 else f"Addition of {change.id}"
        sections.append(_section("ADDED", _added(chance, change, name, title)))
    if chance.random() < 0.7 or not sections:
        change.kinds.add("MODIFIED")
        sections.append(_section("MODIFIED", _modified(chance, change, name, free.pop(), spec)))
    if chance.random() < 0.2:
        gone = free.pop()
        change.kinds.add("REMOVED")
        change.touched.add((name, gone))
        sections.append(f"## REMOVED Requirements\n\n### Requirement: {gone}\n**Reason**: No longer wanted.\n")
    if chance.random() < 0.2:
        old, new = free.pop(), f"Name by {change.id}"
        change.kinds.add("RENAMED")
        change.touched |= {(name, old), (name, new)}
        change.renames[name, new] = old
        sections.append(
            f"## RENAMED Requirements\n\n- FROM: `### Requirement: {old}`\n- TO: `### Requirement: {new}`\n"
        )
        if chance.random() < 0.4:
            words = _modified(chance, change, name, old, spec, new)
            modified = next((n for n, one in enumerate(sections) if one.startswith("## MODIFIED")), None)
            if modified is None:
                sections.append(_section("MODIFIED", words))
            else:
                sections[modified] += "\n" + words
    change.deltas[name] = sections


def _section(kind: str, words: str) -> str:
    return f"## {kind} Requirements\n\n{words}"


def _added(chance: random.Random, change: Change, name: str, title: str) -> str:
    change.kinds.add("ADDED")
    block = _block(chance, title, change.id)
    change.touched.add((name, title))
    change.blocks.append((name, title, block))
    return block.written(title)


def _modified(chance: random.Random, change: Change, name: str, old: str, spec: dict[str, Block], new: str = "") -> str:
    """The whole block again, as OpenSpec wants it: another text, another scenario, or one more."""
    before = spec[old]
    text, scenarios = before.text, dict(before.scenarios)
    how = chance.choice(("text", "scenario", "more", "all"))
    if how in ("text", "all"):
        text = f"The system SHALL keep {old} as {change.id} wants it."
    if how in ("scenario", "all"):
        title = chance.choice(list(scenarios))
        scenarios[title] = _scenario(title, change.id)
    if how in ("more", "all"):
        scenarios[f"Case of {change.id}"] = _scenario("that", change.id)
    block = Block(text, scenarios)
    change.touched |= {(name, old), (name, new or old)}
    change.blocks.append((name, new or old, block))
    return block.written(new or old)


def _write(path: Path, text: str, crlf: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((text.replace("\n", "\r\n") if crlf else text).encode())
