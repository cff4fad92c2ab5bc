"""Three-way merge of a change's spec into the main spec, by requirement and scenario. Pure.

units         a spec split into the units that are compared; conflict markers
decision      what the change asks for, and what happens to each unit
spec_changes  the result as data: touches and conflicts
merged_text   the main spec with the change merged in
three_way     the operations: merge, rebase, list what a change touches
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.merge.merged_text import LineEditor
    from agentd.merge.spec_changes import SpecConflict, SpecTouch, TouchKind, UnitKind
    from agentd.merge.three_way import merge_spec, rebase_spec, stamp_version, touched_units
    from agentd.merge.units import (
        ACCEPTANCE_CRITERIA,
        ScenarioUnit,
        SpecUnits,
        conflict_markers_in,
        find_conflict_markers,
        read_units,
    )
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
