"""A run as a process of its own: one planning step of add-oauth, ended as a command ends."""

import sys
from pathlib import Path

from agentd.change import lifecycle
from agentd.cli import app, output
from agentd.domain.errors import AgentdError
from agentd.engine.calls import retries
from agentd.project.layout import find_project

sys.path.insert(0, str(Path(__file__).parents[1]))
from agent_calls import planner_request
from scenario import open_run


def main() -> int:
    app.run(["--version"])  # streams as the program prepares them
    change = lifecycle.open_change(find_project(), "add-oauth")
    try:
        with open_run(change) as run:
            work = planner_request(run)
            done = retries.perform_call(run, work)
            retries.finish_step(run, work, done, {})
    except AgentdError as error:
        return output.fail(error, [], ())
    return 0


if __name__ == "__main__":
    sys.exit(main())
