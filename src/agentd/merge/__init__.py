"""A change's spec merged into the main spec: three-way, by requirement and scenario. Pure.

units     a text taken apart into what is compared
intent    what the change's spec says in so many words
deciding  what becomes of each unit
telling   that as data: touches and conflicts
writing   the main spec with the change in it; draft edits by line, fitting makes units fit their new place
rebasing  the change's spec on the main spec of today; marks stand where somebody must decide
"""

from agentd.merge.conflict_markers import find_conflict_markers
from agentd.merge.spec_changes import SpecConflict, SpecTouch, TouchKind, UnitKind
from agentd.merge.three_way import MergeResult, RebaseResult, merge_spec, rebase_spec, stamp_version, touched_units

__all__ = [
    "MergeResult",
    "RebaseResult",
    "SpecConflict",
    "SpecTouch",
    "TouchKind",
    "UnitKind",
    "find_conflict_markers",
    "merge_spec",
    "rebase_spec",
    "stamp_version",
    "touched_units",
]
