"""A change's spec merged into the main spec: three-way, by requirement and scenario. Pure.

units     a text taken apart into what is compared
intent    what the change's spec says in so many words
deciding  what becomes of each unit
telling   that as data: touches and conflicts
writing   the main spec with the change in it; draft edits by line, fitting makes units fit their new place
rebasing  the change's spec on the main spec of today; marks stand where somebody must decide
"""

from agentd.merge.marking import marks
from agentd.merge.merging import Merged, Rebased, merge, rebase, stamped, touched
from agentd.merge.telling import Conflict, How, Kind, Touch

__all__ = [
    "Conflict",
    "How",
    "Kind",
    "Merged",
    "Rebased",
    "Touch",
    "marks",
    "merge",
    "rebase",
    "stamped",
    "touched",
]
