"""A change from one sentence to the archive, played in a sample repository; only the models are a script.

`lay` makes that repository and stops at a point of the story, for pictures and tests. `acts` is the story, `place` is
where it happens, `laying` what lies there at first, `acting` how an act is played, `proof` whether it went as it
should, `made` what came of it.
"""

from agentd.demo.demo_result import DemoResult, read_demo_result
from agentd.demo.playback import (
    DemoFailed,
    ScriptedPerson,
    commit_command,
    continue_command,
    play_act,
    play_clarification,
    prepare_demo,
    typed_command,
)
from agentd.demo.sample_setup import set_up_sample
from agentd.demo.story import ACTS, DEMO_CHANGE_ID, Act, StoryPoint
from agentd.demo.workspace import DemoWorkspace, inside_workspace

__all__ = [
    "ACTS",
    "DEMO_CHANGE_ID",
    "Act",
    "DemoFailed",
    "DemoResult",
    "DemoWorkspace",
    "ScriptedPerson",
    "StoryPoint",
    "commit_command",
    "continue_command",
    "inside_workspace",
    "play_act",
    "play_clarification",
    "prepare_demo",
    "read_demo_result",
    "set_up_sample",
    "typed_command",
]
