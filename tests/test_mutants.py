"""The mutation check: its list fits the code, and it tells a mutant that tests notice from one that they do not."""

from dataclasses import replace
from pathlib import Path

import pytest

import mutants
from mutants import MUTANTS, SOURCE, TESTS, Mutant

COUNTING = next(one for one in MUTANTS if one.what == "zero is singular")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.file}: {one.what}")
def test_every_mutant_fits_the_code_and_its_tests_exist(mutant: Mutant) -> None:
    assert (SOURCE / mutant.file).read_text().count(mutant.old) == 1
    compile(mutant.mutated(), mutant.file, "exec")
    assert mutant.mutated() != mutant.source()
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (TESTS / path).read_text() or not name


def test_every_mutant_has_a_description_of_its_own() -> None:
    assert len({(one.file, one.what) for one in MUTANTS}) == len(MUTANTS)


def test_a_mutant_is_killed_by_a_test_that_fails_and_survives_one_that_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (SOURCE / "domain/humanize.py").read_bytes()
    blind = tmp_path / "test_blind.py"
    blind.write_text(
        "def test_one():\n    from agentd.domain import pluralize\n    assert pluralize(1, 'task') == '1 task'\n"
    )
    survivor = replace(COUNTING, tests=(str(blind),), what="not noticed")
    assert mutants.main([], [COUNTING, survivor]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"killed    src/agentd/domain/humanize.py:{COUNTING.line}  {COUNTING.what}"
    assert out[1] == f"SURVIVED  src/agentd/domain/humanize.py:{COUNTING.line}  not noticed"
    assert out[3] == "2 mutants: 1 killed, 1 survived"
    assert (SOURCE / "domain/humanize.py").read_bytes() == source


def test_tests_that_fail_without_a_mutant_are_no_kill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    red = tmp_path / "test_red.py"
    red.write_text("def test_red():\n    assert False\n")
    assert mutants.main([], [replace(COUNTING, tests=(str(red),))]) == 2
    assert "must pass" in capsys.readouterr().err


def test_a_text_that_no_longer_occurs_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main([], [replace(COUNTING, old="no such text")]) == 2
    assert "must occur exactly once, but it occurs 0 times" in capsys.readouterr().err


def test_mutants_are_listed_and_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main(["--list", "zero is singular"]) == 0
    assert capsys.readouterr().out == f"{COUNTING.place}  {COUNTING.what}\n"
    assert mutants.main(["no such mutant"]) == 2
