"""The records of a change as far as they can be read, and what is wrong with the others; the same for its state."""

from dataclasses import dataclass

from agentd.change import Change, ChangeState, read_record, record_files, sort_records
from agentd.documents import Finding, ReviewRecord, current_findings
from agentd.domain import AgentdError


@dataclass(frozen=True, slots=True)
class RecordView:
    """`state` None: it cannot be read. `problems` say what else cannot be, each with its file."""

    state: ChangeState | None
    records: tuple[ReviewRecord, ...]
    problems: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """As they stand by the last word on each; those that wait for a record last."""
        return (*current_findings(self.records), *(self.state.findings if self.state else ()))

    def of(self, kind: str) -> tuple[ReviewRecord, ...]:
        return tuple(one for one in self.records if one.kind == kind)


def read_record_view(change: Change) -> RecordView:
    problems, records, state = [], [], None
    try:
        state = change.read()
    except AgentdError as error:
        problems.append(error.message)
    for path in sorted(record_files(change.folder)):
        try:
            records.append(read_record(path))
        except (AgentdError, OSError) as error:
            problems.append(str(error))
    return RecordView(state, sort_records(records), tuple(problems))
