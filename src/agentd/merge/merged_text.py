"""Write the change into the main spec: existing units in place, new ones next to similar ones.

A new requirement comes after the last one. A new scenario comes after the last one of its requirement. The first
scenario of a requirement goes inside it if the main spec does so, otherwise at the end of Acceptance Criteria.
"""

from collections.abc import Sequence
from dataclasses import replace

from agentd.documents import BOM, InvalidDocument, Span
from agentd.merge import units
from agentd.merge.decision import MergePlan, MergeSide, RequirementDecision, ScenarioDecision
from agentd.merge.units import ACCEPTANCE_CRITERIA, Key, ScenarioUnit, SpecUnits


class LineEditor:
    """Collect edits and write them in one pass. Lines are given without line endings."""

    def __init__(self, parsed: SpecUnits) -> None:
        self._sheet = parsed
        self._newline = parsed.document.newline
        self._lines = list(parsed.document.lines)
        if self._lines:
            self._lines[0] = self._lines[0].removeprefix(BOM)
            self._lines[-1] += "" if self._lines[-1].endswith("\n") else self._newline
        self._cut: set[int] = set()
        self._instead: dict[int, list[str]] = {}
        self._after: dict[int, list[Sequence[str]]] = {}

    def cut(self, span: Span) -> None:
        """Remove a unit. Of the blank lines before and after it, the longer run is kept."""
        self._cut.update(range(span.start, self._sheet.last_line(span) + 1))

    def replace(self, span: Span, lines: Sequence[str]) -> None:
        """Replace the lines of a span, keeping its trailing blank lines."""
        last = self._sheet.last_line(span)
        contents = self._sheet.document.contents
        written = [line + self._newline for line in lines]
        if last < span.start and span.start <= len(contents) and written and contents[span.start - 1].strip():
            written.append(self._newline)
        if last < span.start:
            before = self._instead.get(span.start - 1, [self._lines[span.start - 2]])
            self._instead[span.start - 1] = before + written
        else:
            self._instead.update({line: [] for line in range(span.start, last + 1)})
            self._instead[span.start] = written

    def put(self, line: int, lines: Sequence[str]) -> None:
        """Insert a unit after this line, behind earlier insertions there. Line 0 is the top."""
        self._after.setdefault(line, []).append(lines)

    def text(self) -> str:
        writer = _LineWriter(self._newline)
        writer.insert(self._after.get(0, ()))
        for number, line in enumerate(self._lines, 1):
            if number in self._cut:
                writer.leave_out()
            else:
                for one in self._instead.get(number, (line,)):
                    writer.keep(one)
            writer.insert(self._after.get(number, ()))
        written = "".join(writer.finished())
        before = self._sheet.document.text
        if before and not before.endswith("\n"):
            written = written.removesuffix(self._newline)
        return BOM + written if before.startswith(BOM) else written


class _LineWriter:
    def __init__(self, newline: str) -> None:
        self._newline = newline
        self._out: list[str] = []
        self._blanks = 0  # blank lines at the end of the output
        self._waiting: list[str] = []
        self._is_leaving = False
        self._needs_blank = False

    def keep(self, line: str) -> None:
        if not line.strip():
            if self._is_leaving:
                self._waiting.append(line)
            else:
                self._add([line], blanks=self._blanks + 1)
            return
        self._settle()
        if self._needs_blank:
            self._part()
        self._needs_blank = False
        self._add([line])

    def leave_out(self) -> None:
        self._settle()
        self._is_leaving = True

    def insert(self, blocks: Sequence[Sequence[str]]) -> None:
        for lines in blocks:
            self._settle()
            self._part()
            self._add([line + self._newline for line in lines])
            self._needs_blank = True

    def finished(self) -> list[str]:
        if self._is_leaving:  # no blank lines are needed at the end of the text
            del self._out[len(self._out) - self._blanks :]
            self._out += self._waiting
        return self._out

    def _add(self, lines: Sequence[str], blanks: int = 0) -> None:
        self._out += lines
        self._blanks = blanks

    def _part(self) -> None:
        """Add a blank line unless the output ends with one."""
        if self._out and not self._blanks:
            self._add([self._newline], blanks=1)

    def _settle(self) -> None:
        """Around removed lines, keep the longer run of blank lines."""
        if self._is_leaving and len(self._waiting) > self._blanks:
            del self._out[len(self._out) - self._blanks :]
            self._add(self._waiting, blanks=len(self._waiting))
        self._is_leaving = False
        self._waiting = []


def write_merged(plan: MergePlan) -> str:
    """Return the new text, after checking that it parses back as decided."""
    editor = LineEditor(plan.main)
    _edit_requirements(plan, editor)
    _edit_scenarios(plan, editor)
    _edit_groups(plan, editor)
    inside, rest = _put_scenarios(plan, editor)
    _put_requirements(plan, editor, inside)
    _put_under_criteria(plan, editor, rest)
    text = editor.text()
    _check(plan, units.read_units(text, plan.main.document.name, plan.main.pattern))
    return text


# ---- in place


def _edit_requirements(plan: MergePlan, editor: LineEditor) -> None:
    for decision in plan.requirements:
        there = decision.theirs
        if there is None:
            continue
        if decision.is_removed:
            for span in there.own if decision.text is MergeSide.YOURS else ():
                editor.cut(span)
            continue
        if decision.heading is MergeSide.YOURS:
            editor.replace(Span(there.line, there.line), [_heading(plan, decision)])
        if decision.text is MergeSide.YOURS and decision.entry:
            body = units.requirement_body(plan.intent.parsed, decision.entry, there.level)
            editor.replace(Span(there.line + 1, there.own[0].end), body)
            for span in there.own[1:]:
                editor.cut(span)


def _heading(plan: MergePlan, decision: RequirementDecision) -> str:
    """Return the new heading: as the change writes it, or the existing one with the new name."""
    assert decision.theirs, "a renamed requirement exists"
    if decision.entry and decision.entry.title == decision.title:
        return units.heading_at_level(plan.intent.parsed.document.content(decision.entry.line), decision.theirs.level)
    return units.requirement_heading(plan.main, decision.theirs, decision.id, decision.title)


def _edit_scenarios(plan: MergePlan, editor: LineEditor) -> None:
    names = plan.intent.names
    for decision in plan.scenarios:
        there = decision.theirs
        if there is None:
            continue
        if decision.take is MergeSide.YOURS and decision.is_removed:
            editor.cut(there.span)
        elif decision.take is MergeSide.YOURS and decision.entry:
            lines = units.scenario_lines(plan.intent.parsed, decision.entry, there.level, names, there.field is None)
            editor.replace(Span(there.span.start + 1, there.span.end), lines[1:])
        elif there.field is not None:
            kept = _referred(plan, there)
            content = plan.main.document.content(there.field)
            line = units.reference_line(content, kept, names)
            if line != content:
                editor.replace(Span(there.field, there.field), [line])


def _referred(plan: MergePlan, there: ScenarioUnit) -> ScenarioUnit:
    """Return a scenario of the main spec with the requirements that it will name after the change."""
    names, removed = plan.intent.names, plan.intent.removed
    refs = tuple(dict.fromkeys(names.get(ref, ref) for ref in there.written))
    kept = tuple(ref for ref in refs if ref not in removed) or refs
    return replace(there, refs=kept)


def _edit_groups(plan: MergePlan, editor: LineEditor) -> None:
    """Rename or remove headings under Acceptance Criteria along with the requirement they name."""
    names = plan.intent.names
    for id_, section in plan.main.groups:
        line = section.heading.line
        if id_ in plan.intent.removed:
            editor.cut(Span(line, section.own.end))
        elif names.get(id_, id_) != id_:
            content = plan.main.document.content(line)
            editor.replace(Span(line, line), [content.replace(id_, names[id_], 1)])


# ---- new ones


def _new_requirements(plan: MergePlan) -> list[RequirementDecision]:
    decisions = [one for one in plan.requirements if one.entry and one.theirs is None and one.text is MergeSide.YOURS]
    return sorted(decisions, key=lambda one: one.entry.line if one.entry else 0)


def _new_scenarios(plan: MergePlan) -> list[ScenarioUnit]:
    """Return the new scenarios in the order of the change, grouped by requirement."""
    found = [one.entry for one in plan.scenarios if one.entry and one.theirs is None and one.take is MergeSide.YOURS]
    groups: dict[str, list[ScenarioUnit]] = {}
    for one in sorted(found, key=lambda one: one.span.start):
        groups.setdefault(one.requirement, []).append(one)
    return [one for group in groups.values() for one in group]


def _put_requirements(plan: MergePlan, editor: LineEditor, inside: dict[str, list[list[str]]]) -> None:
    parsed = plan.intent.parsed
    last = max(plan.main.requirements.values(), key=lambda one: one.line, default=None)
    blocks: list[list[str]] = []
    for decision in _new_requirements(plan):
        assert decision.entry, "a new requirement is in the change"
        level = last.level if last else decision.entry.level
        lines = units.requirement_lines(parsed, decision.entry, parsed.document.content(decision.entry.line), level)
        for scenario in inside.get(decision.id, ()):
            lines += ["", *scenario]
        blocks.append(lines)
    if not blocks:
        return
    line = requirements_end(plan.main, editor)
    for lines in blocks:
        editor.put(line, lines)


def requirements_end(parsed: SpecUnits, editor: LineEditor) -> int:
    """Return the line after which to add a requirement. Add a Requirements section if there is none."""
    document = parsed.document
    last = max(parsed.requirements.values(), key=lambda one: one.line, default=None)
    if last:
        return parsed.last_line(Span(last.line, last.end))
    section = document.section("Requirements")
    if section:
        return parsed.last_line(section.span)
    overview, criteria = document.section("Overview"), document.section(ACCEPTANCE_CRITERIA)
    end = overview.span.end if overview else criteria.heading.line - 1 if criteria else len(document.lines)
    line = parsed.last_line(Span(1, end))
    editor.put(line, ["## Requirements"])
    return line


def _put_scenarios(plan: MergePlan, editor: LineEditor) -> tuple[dict[str, list[list[str]]], list[ScenarioUnit]]:
    """Insert new scenarios next to similar ones. Return those of new requirements, and those left over."""
    main, parsed, names = plan.main, plan.intent.parsed, plan.intent.names
    siblings = _last_of_each(plan)
    level = _inside_level(plan.main)
    holders = {one.id: one.theirs for one in plan.requirements if one.theirs}
    fresh = {one.id for one in _new_requirements(plan)}
    inside: dict[str, list[list[str]]] = {}
    rest: list[ScenarioUnit] = []
    for one in _new_scenarios(plan):
        sibling, holder = siblings.get(one.requirement), holders.get(one.requirement)
        if sibling:
            lines = units.scenario_lines(parsed, one, sibling.level, names, sibling.field is None)
            editor.put(main.last_line(sibling.span), lines)
        elif level and holder:
            lines = units.scenario_lines(parsed, one, level, names, is_named_by_place=True)
            editor.put(main.last_line(Span(holder.line, holder.end)), lines)
        elif level and one.requirement in fresh:
            lines = units.scenario_lines(parsed, one, level, names, is_named_by_place=True)
            inside.setdefault(one.requirement, []).append(lines)
        else:
            rest.append(one)
    return inside, rest


def _last_of_each(plan: MergePlan) -> dict[str, ScenarioUnit]:
    found: dict[str, ScenarioUnit] = {}
    for decision in plan.scenarios:
        one = decision.theirs
        if one and (one.requirement not in found or found[one.requirement].span.start < one.span.start):
            found[one.requirement] = one
    return found


def _inside_level(main: SpecUnits) -> int:
    """Return the heading level of scenarios inside requirements, or 0 if the main spec lists them separately."""
    named = [one for one in main.scenarios.values() if one.refs]
    return named[0].level if named and all(one.is_inside for one in named) else 0


def _put_under_criteria(plan: MergePlan, editor: LineEditor, scenarios: list[ScenarioUnit]) -> None:
    if not scenarios:
        return
    main, parsed, names = plan.main, plan.intent.parsed, plan.intent.names
    section = main.document.section(ACCEPTANCE_CRITERIA)
    if section is None:
        end = main.last_line(main.document.span)
        top, level = end, 3
        editor.put(end, [f"## {ACCEPTANCE_CRITERIA}"])
    else:
        top, end = main.last_line(Span(section.heading.line, section.own.end)), main.last_line(section.span)
        there = [one.level for one in main.scenarios.values() if one.span.start in section.span]
        level = there[-1] if there and not main.groups else section.heading.level + 1
    for one in scenarios:
        # Below a heading that names a requirement, a scenario of the whole spec would be parsed as the requirement's.
        line = top if main.groups and not one.refs else end
        editor.put(line, units.scenario_lines(parsed, one, level, names, is_named_by_place=False))


# ---- verification


def _check(plan: MergePlan, result: SpecUnits) -> None:
    requirements, scenarios = _expected(plan)
    wrong = [id_ for id_, one in result.requirements.items() if requirements.pop(id_, None) != (one.title, one.words)]
    wrong += [f"Scenario: {key[1]}" for key, one in result.scenarios.items() if scenarios.pop(key, None) != one.value]
    wrong += [*requirements, *(f"Scenario: {title}" for _, title in scenarios)]
    if wrong:
        problem = f"'{wrong[0]}' would not read back as intended after the merge; write it in a plainer form"
        raise InvalidDocument(plan.intent.parsed.document.name, 1, problem)


def _expected(plan: MergePlan) -> tuple[dict[str, tuple[str, str]], dict[Key, tuple[tuple[str, ...], str]]]:
    requirements: dict[str, tuple[str, str]] = {}
    for decision in plan.requirements:
        there, entry = decision.theirs, decision.entry
        if (decision.is_removed and decision.text is MergeSide.YOURS) or (
            there is None and decision.text is MergeSide.THEIRS
        ):
            continue
        title = decision.title if decision.heading is MergeSide.YOURS or there is None else there.title
        words = (
            entry.words
            if entry and (decision.text is MergeSide.YOURS or there is None)
            else there.words
            if there
            else ""
        )
        requirements[decision.id] = (title, words)
    scenarios: dict[Key, tuple[tuple[str, ...], str]] = {}
    for one in plan.scenarios:
        found = _expected_scenario(plan, one)
        if found:
            scenarios[found.key] = found.value
    return requirements, scenarios


def _expected_scenario(plan: MergePlan, decision: ScenarioDecision) -> ScenarioUnit | None:
    if decision.take is MergeSide.YOURS:
        return None if decision.is_removed else decision.entry
    return _referred(plan, decision.theirs) if decision.theirs else None
