"""One OpenSpec project of 300 specs and 100 changes, archived by the real openspec and, after an import, by agentd."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from openspec_project import Block, Change, Made, make, read, read_all, words

from agentd.change import lifecycle
from agentd.change.state import ChangeState
from agentd.documents import spec as specs
from agentd.documents.spec_parts import REQUIREMENT_PATTERN
from agentd.domain.state_machine import TransitionEvent
from agentd.engine.archive import archive
from agentd.engine.archive.preview import MergeConflict
from agentd.merge.spec_changes import SpecConflict
from agentd.project import git
from agentd.project.layout import find_project
from exhaustive import Exhaustive
from loopback import clis
from scenario import Result, Scenario, approve_code, move, tree_files

Specs = dict[str, dict[str, Block]]


@dataclass
class Theirs:
    """What the real openspec did: which changes it refused, and how the specs were after each one it took."""

    refused: set[str] = field(default_factory=set)
    after: dict[str, Specs] = field(default_factory=dict)


def openspec(box: Scenario, folder: Path, *arguments: str) -> Result:
    """Without a network where we may, without telemetry, without anything of the caller's."""
    clis.isolate()
    program = clis.need("openspec")
    return box.execute(program, *arguments, cwd=folder, OPENSPEC_TELEMETRY="0", DO_NOT_TRACK="1", CI="1", NO_COLOR="1")


def archived_by_openspec(box: Scenario, folder: Path, made: Made) -> Theirs:
    done = Theirs()
    for change in made.changes:
        ran = openspec(box, folder, "archive", change.id, "--yes")
        there = (folder / "openspec/changes" / change.id).exists()
        assert there == (ran.code != 0), ran.err
        if there:
            done.refused.add(change.id)
        else:
            paths = {name: folder / "openspec/specs" / name / "spec.md" for name in change.deltas}
            done.after[change.id] = {name: read(path.read_text()) for name, path in paths.items()}
    return done


def begun_from(tree: str) -> Callable[[ChangeState], ChangeState]:
    return lambda old: replace(old, base=replace(old.base, tree=tree))


def archived_by_agentd(made: Made, theirs: Theirs) -> dict[str, tuple[SpecConflict, ...]]:
    """Those that openspec took, in the same order; what conflicts is left open."""
    project = find_project()
    conflicts: dict[str, tuple[SpecConflict, ...]] = {}
    for change in made.changes:
        if change.id not in theirs.refused:
            found = lifecycle.open_change(project, change.id)
            move(found, TransitionEvent.CHALLENGE_APPROVED)
            found.update(begun_from(git.snapshot(found.tree)))
            move(found, TransitionEvent.IMPLEMENTATION_STARTED)
            approve_code(found)
            try:
                archive.archive_change(found, REQUIREMENT_PATTERN)
            except MergeConflict as error:
                conflicts[change.id] = error.conflicts
    return conflicts


def units(block: Block | None) -> dict[str, str]:
    """The text of a requirement under "", its scenarios under their names."""
    return {} if block is None else {"": block.text, **block.scenarios}


def differences(ours: Specs, theirs: Specs) -> Iterator[tuple[str, str, str]]:
    for capability in sorted(ours.keys() | theirs.keys()):
        here, there = ours.get(capability, {}), theirs.get(capability, {})
        for name in sorted(here.keys() | there.keys()):
            mine, other = units(here.get(name)), units(there.get(name))
            yield from (
                (capability, name, unit) for unit in mine.keys() | other.keys() if mine.get(unit) != other.get(unit)
            )


def overlaps(box: Scenario) -> set[tuple[str, str]]:
    """Capability and name of each requirement that several open changes touch, as agentd tells it beforehand."""
    rows = [row for one in box.agentd("list", "--json").json["changes"] for row in one["overlaps"]]
    found = set()
    for capability, _, id_ in (name.partition(":") for row in rows for name in row["requirements"]):
        path = box.root / f"agentd/specs/{capability}.md"
        one = specs.parse_spec(path.read_text(), "main").requirement(id_) if path.is_file() else None
        found |= {(capability, one.title)} if one else set()
    return found


def lost_by_openspec(box: Scenario, conflict: SpecConflict, change: Change, theirs: Theirs) -> bool:
    """What agentd would not overwrite without a word is no longer in the specs of openspec after this change."""
    capability, _, rest = conflict.name.partition(":")
    id_, _, scenario = rest.partition("/")
    base = specs.parse_spec((box.root / f"agentd/changes/{change.id}/base/{capability}.md").read_text(), "base")
    found = base.requirement(id_)
    assert found and conflict.theirs is not None, conflict
    new = next((new for (where, new), old in change.renames.items() if (where, old) == (capability, found.title)), "")
    block = theirs.after[change.id][capability].get(new or found.title)
    kept = units(block).get(scenario)
    return kept != words(conflict.theirs.split("\n")[1:])


def is_reverted(made: Made, taken: list[Change], unit: tuple[str, str, str], ours: Specs, theirs: Specs) -> bool:
    """A change wrote it, both archived that, and a later block of openspec brought back what was there before.

    Here the two merge without a conflict: each changed another part of the requirement.
    """
    capability, name, part = unit
    old = next((one.renames[capability, name] for one in taken if (capability, name) in one.renames), name)
    wrote = [
        block for one in taken for where, title, block in one.blocks if where == capability and title in (name, old)
    ]
    before = words(units(made.specs[capability].get(old)).get(part, "").split("\n"))
    here, there = units(ours[capability].get(name)).get(part), units(theirs[capability].get(name)).get(part)
    return there == before and here in [words(units(block).get(part, "").split("\n")) for block in wrote]


def test_agentd_and_openspec_archives_differ_only_where_openspec_loses_content(
    project: Scenario, tmp_path: Path, exhaustive: Exhaustive
) -> None:
    """What openspec refuses is archived by neither. What agentd refuses is a conflict that it names, and stays open."""
    clis.need("openspec")
    spec_count, change_count = exhaustive.size(300, 12), exhaustive.size(100, 12)
    made = make(project.root, seed=13, specs=spec_count, changes=change_count)
    assert {kind for one in made.changes for kind in one.kinds} == {"ADDED", "MODIFIED", "REMOVED", "RENAMED"}
    project.commit("an OpenSpec project")
    apart = tmp_path / "theirs"
    shutil.copytree(project.root / "openspec", apart / "openspec")
    before = tree_files(project.root / "openspec")

    imported = project.agentd("import", "openspec", "--json")
    assert imported.code == 0, imported.err
    assert (len(imported.json["specs"]), len(imported.json["changes"])) == (spec_count, change_count)
    assert project.agentd("export", "openspec", "--into", str(tmp_path / "back")).code == 0
    originals = {name: data for name, data in before.items() if name.startswith("specs/")}
    assert tree_files(tmp_path / "back/openspec").keys() == originals.keys()
    assert all((tmp_path / "back/openspec" / name).read_bytes() == data for name, (_, data) in originals.items())

    met = overlaps(project)
    theirs = archived_by_openspec(project, apart, made)
    assert len(theirs.refused) <= exhaustive.size(30, 6), "most are archived by both, else there is nothing to compare"
    conflicts = archived_by_agentd(made, theirs)
    assert project.agentd("export", "openspec", "--into", str(tmp_path / "ours")).code == 0
    assert tree_files(project.root / "openspec") == before
    ours, others = read_all(tmp_path / "ours"), read_all(apart)

    by_id = {one.id: one for one in made.changes}
    assert conflicts
    for id_, found in conflicts.items():
        assert all(lost_by_openspec(project, one, by_id[id_], theirs) for one in found), id_
    open_still = {touched for id_ in conflicts for touched in by_id[id_].touched}
    taken = [one for one in made.changes if one.id not in theirs.refused and one.id not in conflicts]
    unlike = list(differences(ours, others))
    apart_from_conflicts = [unit for unit in unlike if unit[:2] not in open_still]
    assert len(unlike) > len(apart_from_conflicts) >= exhaustive.size(1, 0)
    assert [unit for unit in apart_from_conflicts if not is_reverted(made, taken, unit, ours, others)] == []
    renames = {key: old for one in taken for key, old in one.renames.items()}
    assert {(where, renames.get((where, name), name)) for where, name, _ in apart_from_conflicts} <= met

    judged = openspec(project, tmp_path / "ours", "validate", "--specs", "--strict", "--json")
    assert (judged.code, judged.json["summary"]["totals"]["failed"]) == (0, 0)
