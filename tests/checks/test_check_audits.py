"""What audits print becomes problems: recorded output, and for cargo audit text in its documented form."""

import json
from pathlib import Path

import pytest

from agentd.checks import audits
from agentd.domain.terms import Severity
from plans import EXAMPLE

DATA = EXAMPLE.parent / "checks"

CARGO = """\
    Fetching advisory database from `https://github.com/RustSec/advisory-db.git`
    Scanning Cargo.lock for vulnerabilities (12 crate dependencies)
Crate:     time
Version:   0.1.43
Title:     Potential segfault in the time crate
Date:      2020-11-18
ID:        RUSTSEC-2020-0071
URL:       https://rustsec.org/advisories/RUSTSEC-2020-0071
Severity:  6.2 (medium)
Solution:  Upgrade to >=0.2.23
Dependency tree:
time 0.1.43
└── notes 0.1.0

Crate:     net2
Version:   0.2.37
Warning:   unmaintained
Title:     `net2` crate has been deprecated; use `socket2` instead
Date:      2020-05-01
ID:        RUSTSEC-2020-0016
URL:       https://rustsec.org/advisories/RUSTSEC-2020-0016
Dependency tree:
net2 0.2.37

error: 1 vulnerability found!
warning: 1 allowed warning found
"""
CARGO_JSON = {
    "database": {"advisory-count": 600},
    "vulnerabilities": {
        "found": True,
        "count": 1,
        "list": [
            {
                "advisory": {"id": "RUSTSEC-2020-0071", "package": "time", "title": "Potential segfault"},
                "versions": {"patched": [">=0.2.23"], "unaffected": []},
                "package": {"name": "time", "version": "0.1.43"},
            }
        ],
    },
    "warnings": {},
}


def sample(name: str) -> str:
    return Path(DATA / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["pip-audit", "pip-audit-desc", "pip-audit-json"])
def test_pip_audit_output_is_parsed(name: str) -> None:
    none, fixed = audits.read_audit(sample(name))
    assert none.title == "jinja2 2.4.1: PYSEC-2014-82"
    assert none.what.endswith("No fixed version is known.")
    assert fixed.title == "jinja2 2.4.1: CVE-2019-10906"
    assert fixed.what.endswith("Fixed in 2.10.1.")
    assert fixed.suggestion == "Upgrade jinja2 to 2.10.1."


@pytest.mark.parametrize(("name", "versions"), [("npm-audit", "4.17.11"), ("npm-audit-json", "<4.17.21")])
def test_npm_audit_output_is_parsed(name: str, versions: str) -> None:
    problem, *others = audits.read_audit(sample(name))
    assert problem.title == f"lodash {versions}: GHSA-35jh-r3h4-6jhm"
    assert problem.what == "Command Injection in lodash. The advisory rates it high. Fixed in 4.17.21."
    assert problem.severity is Severity.MEDIUM, "never high: it does not come from the change"
    assert [other.title.rpartition(": ")[2] for other in others] == ["GHSA-vh95-rmgr-6w4m", "GHSA-xvch-5gv4-984h"]


def test_cargo_audit_output_is_parsed() -> None:
    segfault, unmaintained = audits.read_audit(CARGO)
    assert segfault.title == "time 0.1.43: RUSTSEC-2020-0071"
    assert segfault.suggestion == "Upgrade time to >=0.2.23."
    assert unmaintained.title == "net2 0.2.37: RUSTSEC-2020-0016"
    assert unmaintained.severity is Severity.LOW
    [problem] = audits.read_audit(json.dumps(CARGO_JSON))
    assert (problem.title, problem.suggestion) == (segfault.title, segfault.suggestion)


def test_at_most_twenty_problems_are_listed_and_the_rest_counted() -> None:
    head = "Name Version ID    Fix Versions\n---- ------- ----- ------------\n"
    problems = audits.read_audit(head + "".join(f"a    1       I-{number:03}\n" for number in range(45)))
    assert len(problems) == audits.MAX_PROBLEMS
    assert problems[-1].title == "26 more known vulnerabilities"


def test_other_output_yields_no_problems() -> None:
    others = [path for path in DATA.glob("*.txt") if "audit" not in path.name]
    assert len(others) > 40
    assert [path.name for path in others if audits.read_audit(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "text",
    [
        '{"dependencies": [{"name": [], "vulns": [{"id": {}, "fix_versions": 3}, 4]}, 5]}',
        '{"auditReportVersion": 2, "vulnerabilities": {"a": {"via": [{}, "b"], "fixAvailable": true}, "c": 1}}',
        '{"vulnerabilities": {"list": [{"advisory": [], "package": 1}]}}',
        '{"vulnerabilities": []}',
        "{" * 100_000,
    ],
)
def test_malformed_audit_json_is_tolerated(text: str) -> None:
    assert all(problem.title for problem in audits.read_audit(text))
