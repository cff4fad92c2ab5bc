"""The demo: one change from a sentence to the archive in a sample repository; only the models are scripted.

story          the acts
playback       set up the sample project and play the acts
verification   check the outcome of each act; read what the demo created
workspace      the demo's folder, and running the real program there
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
        set_up_sample,
        typed_command,
    )
    from agentd.demo.story import ACTS, DEMO_CHANGE_ID
    from agentd.demo.verification import DemoResult, read_demo_result
    from agentd.demo.workspace import DemoWorkspace, inside_workspace, show_command
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
