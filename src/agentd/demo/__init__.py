"""The demo: one change from a sentence to the archive in a sample repository; only the models are scripted.

story          the acts; playback plays them; verification checks that each went as it should
workspace      the folder it happens in; sample_setup prepares it
demo_result    what the demo made; child_process runs the real program
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.demo.playback import (
        DemoFailed,
        ScriptedPerson,
        commit_command,
        continue_command,
        play_act,
        play_clarification,
        typed_command,
    )
    from agentd.demo.sample_setup import set_up_sample
    from agentd.demo.story import ACTS, DEMO_CHANGE_ID
    from agentd.demo.verification import DemoResult, read_demo_result
    from agentd.demo.workspace import DemoWorkspace, inside_workspace, show_command
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
