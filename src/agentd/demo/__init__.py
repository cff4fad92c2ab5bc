"""A change from one sentence to the archive, played in a sample repository; only the models are a script.

`lay` makes that repository and stops at a point of the story, for pictures and tests. `acts` is the story, `place` is
where it happens, `laying` what lies there at first, `acting` how an act is played, `proof` whether it went as it
should, `made` what came of it.
"""

from agentd.demo.acting import AsPerson, Failed, clarify, going_on, kept_by, lay, play, typed
from agentd.demo.acts import ACTS, ID, Act, Point
from agentd.demo.laying import lay_down
from agentd.demo.made import Made, made
from agentd.demo.place import Place, inside

__all__ = [
    "ACTS",
    "ID",
    "Act",
    "AsPerson",
    "Failed",
    "Made",
    "Place",
    "Point",
    "clarify",
    "going_on",
    "inside",
    "kept_by",
    "lay",
    "lay_down",
    "made",
    "play",
    "typed",
]
