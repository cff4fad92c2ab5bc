"""The judge's report: what it may contain, and what verdict results from it."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from agentd.documents import (
    Evidence,
    Finding,
    InvalidDocument,
    closed_by_people,
    count_open,
    current_findings,
    decode_text,
)
from agentd.domain import (
    ChallengeVerdict,
    Choice,
    FindingState,
    ListOf,
    ReviewVerdict,
    Severity,
    Text,
    clock,
    join_words,
)
from agentd.engine.tools.reading_tools import short_name
from agentd.engine.tools.tool import CHANGE, PATH, REFERENCE, Stage, ToolRefusal, fields, integer, tool
from agentd.engine.tools.tool_scope import ToolScope
from agentd.project import git
from agentd.storage import files

Verified = tuple[str | None, Evidence | None, str | None]
"""Where the finding is, the evidence with its line corrected, and why it is not verified (None: it is)."""


def verify_evidence(given: dict[str, Any] | None, read: Callable[[str], str | None]) -> Verified:
    if given is None:
        return None, None, "no evidence was given"
    file, line, quote = given["file"], given.get("line"), given.get("quote")
    text = read(file)
    found, because = (None, "the file is not there") if text is None else _look_up(text.splitlines(), line, quote)
    line = found or line
    return f"{file}:{line}" if line else file, Evidence(file=file, line=line, quote=quote), because


def _look_up(lines: list[str], line: int | None, quote: str | None) -> tuple[int | None, str | None]:
    if quote is None:
        if line is None:
            return None, "neither line nor quote was given"
        return (line, None) if line <= len(lines) else (None, f"the file has {len(lines)} lines")
    wanted = " ".join(quote.split())
    hits = [number for number, one in enumerate(lines, 1) if quote in one]
    hits = hits or [number for number, one in enumerate(lines, 1) if wanted in " ".join(one.split())]
    if not hits:
        return None, "the quote is not in the file"
    return min(hits, key=lambda number: abs(number - (line or number))), None


def evidence_reader(binding: ToolScope) -> Callable[[str], str | None]:
    """Return a function that reads files as the judge saw them: the plan from disk, code from the tree under review."""
    assert binding.change
    change = binding.change
    tree = (binding.run_data("run.json") or {}).get("tree")
    ground = binding.ground(change)
    prefix = change.project.prefix
    own = f"agentd/changes/{change.id}/"

    def read(path: str) -> str | None:
        try:
            ground.check(path)
            if tree and not short_name(path, change) and not path.startswith(own):
                text = git.run(change.tree, "show", f"{tree}:{os.path.join(prefix, path)}", failing="")
                return text or None
            return decode_text(ground.read(path).data, path)
        except (ToolRefusal, InvalidDocument):
            return None

    return read


REPORT_FILE = "report.json"
RUN_FILE = "run.json"  # written by the step: base and tree, failed checks, the last finding id in use
_PREFIX = {Stage.CHALLENGE: "C", Stage.REVIEW: "V"}


@tool(
    (Stage.CHALLENGE, Stage.REVIEW),
    "Report your verdict. Send new findings only, each with evidence (file, line, a quote copied from the file), "
    "and in `previous` your word on every finding of earlier rounds. APPROVED needs every high finding settled; "
    "any other verdict needs an open finding. Sent again, the last accepted report counts.",
    fields(
        CHANGE
        | {
            "verdict": Text(1, 40, line=True),
            "summary": Text(1, 2000),
            "findings": ListOf(
                fields(
                    {
                        "severity": Choice(*Severity),
                        "title": Text(1, 120, line=True),
                        "what": Text(1, 2000),
                        "suggestion": Text(1, 2000),
                        "requirement?": REFERENCE,
                        "evidence?": fields(
                            {
                                "file": PATH,
                                "line?": integer(1, 100_000_000),
                                "quote?": Text(1, 500, line=True),
                            }
                        ),
                    }
                ),
                0,
                50,
            ),
            "previous?": ListOf(
                fields(
                    {
                        "id": Text(1, 12, line=True),
                        "state": Choice("fixed", "open", "withdrawn"),
                        "note": Text(1, 1000),
                    }
                ),
                0,
                200,
            ),
        },
        {
            "verdict": f"challenge: {', '.join(ChallengeVerdict)}; review: {', '.join(ReviewVerdict)}",
            "findings": "new ones only; an empty array if there are none",
            "previous": "findings of earlier rounds; one that is not mentioned stays open",
        },
    ),
)
def append_review(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    reported = _verdict(binding.stage, arguments["verdict"])
    records = change.records(binding.stage)
    earlier = {finding.id: finding for finding in current_findings(records)}
    words = _words(arguments.get("previous", ()), earlier)
    rows, again = split_findings(arguments["findings"], earlier)
    settled = closed_by_people(records)
    words = {id_: word for id_, word in {**words, **again}.items() if id_ not in settled}
    new = _findings(binding, rows, earlier)
    run = binding.run_data(RUN_FILE) or {}
    facts = {id_: {"state": state} for id_, state in (run.get("settled") or {}).items() if _is_fact(earlier.get(id_))}
    left = [one for one in earlier.values() if _state(one, {**words, **facts}).is_open]
    left_open = [*left, *new]
    own = Counter(run.get("own") or ())
    _check(reported, left_open, own.total())
    overruled = _overruled(binding, reported)
    verdict = str(ReviewVerdict.NEEDS_CHANGES) if overruled else reported
    report = {
        "verdict": verdict,
        "reported": reported,
        "overruled": overruled,
        "summary": arguments["summary"].strip(),
        "findings": [asdict(one) for one in new],
        "previous": [{"id": id_, **word} for id_, word in words.items()],
        "at": clock.now(),
    }
    with binding.writing(change):
        files.write(binding.run_file(REPORT_FILE), json.dumps(report, ensure_ascii=False, indent=2).encode())
    given = [{"id": one.id, "title": one.title, "where": one.where, "verified": one.verified} for one in new]
    for row, one in zip(given, new, strict=True):
        if one.unverified_because:
            row["unverified_because"] = one.unverified_because
    return {
        "verdict": verdict,
        "reported": reported,
        "overruled": overruled,
        "findings": given,
        "open": {str(severity): count + own[str(severity)] for severity, count in count_open(left_open).items()},
    }


def _verdict(stage: Stage, word: str) -> str:
    kind = ChallengeVerdict if stage is Stage.CHALLENGE else ReviewVerdict
    try:
        return str(kind(word))
    except ValueError:
        raise ToolRefusal("bad-verdict", f"{word[:40]} is no verdict of a {stage}", f"send {', '.join(kind)}") from None


def _words(previous: Iterable[dict[str, Any]], earlier: dict[str, Finding]) -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = {}
    for one in previous:
        if one["id"] not in earlier:
            known = ", ".join(earlier) or "none"
            raise ToolRefusal("finding-unknown", f"there is no finding {one['id']}", f"these exist: {known}")
        words[one["id"]] = {"state": one["state"], "note": one["note"].strip()}
    return words


def split_findings(
    rows: list[dict[str, Any]], earlier: dict[str, Finding]
) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
    """Separate new findings from repeated ones, which keep their earlier id and are reopened."""
    known = {_likeness(one.title, one.requirement): one.id for one in earlier.values()}
    new, again = [], {}
    for row in rows:
        likeness = _likeness(row["title"], row.get("requirement"))
        id_ = known.get(likeness) if likeness[0] else None
        if id_:
            again[id_] = {"state": str(FindingState.OPEN), "note": row["what"].strip()[:1000]}
        else:
            new.append(row)
    return new, again


def _likeness(title: str, requirement: str | None) -> tuple[str, str | None]:
    return " ".join(re.findall(r"\w+", title.casefold())), requirement


def _state(finding: Finding, words: dict[str, dict[str, str]]) -> FindingState:
    return FindingState(words[finding.id]["state"]) if finding.id in words else finding.state


def _findings(binding: ToolScope, rows: list[dict[str, Any]], earlier: Iterable[str]) -> list[Finding]:
    prefix = _PREFIX[binding.stage]
    used = [int(match[1]) for one in earlier if (match := re.fullmatch(rf"{prefix}(\d{{1,9}})", one))]
    used.append(int((binding.run_data(RUN_FILE) or {}).get("last_id") or 0))  # agentd's own findings of this round
    read = evidence_reader(binding)
    found = []
    for number, row in enumerate(rows, max(used, default=0) + 1):
        where, evidence, because = verify_evidence(row.get("evidence"), read)
        found.append(
            Finding(
                id=f"{prefix}{number}",
                severity=Severity(row["severity"]),
                title=row["title"].strip(),
                what=row["what"].strip(),
                suggestion=row["suggestion"].strip(),
                requirement=row.get("requirement"),
                where=where,
                evidence=evidence,
                verified=because is None,
                by="",  # filled in by the step, which knows the agent
                state=FindingState.OPEN,
                unverified_because=because,
            )
        )
    return found


def _is_fact(one: Finding | None) -> bool:
    """Return whether the finding comes from a check, so that only agentd decides its state."""
    return one is not None and one.by.startswith("check:")


def _check(reported: str, left_open: list[Finding], own: int) -> None:
    """Refuse a verdict that contradicts the findings.

    Findings of failed checks do not count: agentd overrules the report, and closes them when the check passes.
    """
    high = [one.id for one in left_open if one.severity is Severity.HIGH and not one.by.startswith("check:")]
    if reported == "APPROVED" and high:
        what = f"APPROVED while {', '.join(high)} is high and open"
        raise ToolRefusal("open-high", what, "send another verdict, or settle it in previous with a note")
    if reported != "APPROVED" and not left_open and not own:
        raise ToolRefusal("finding-needed", f"{reported} without an open finding", "say in a finding what is wrong")


def _overruled(binding: ToolScope, reported: str) -> str | None:
    """Return why failed checks overrule an approval, or None."""
    if binding.stage is not Stage.REVIEW or reported != "APPROVED":
        return None
    failed = (binding.run_data(RUN_FILE) or {}).get("failed_checks") or []
    return overruled_because(failed) if failed else None


def overruled_because(failed: Sequence[str]) -> str:
    word = "check" if len(failed) == 1 else "checks"
    return f"The required {word} {join_words(failed)} failed, so the verdict is NEEDS_CHANGES."
