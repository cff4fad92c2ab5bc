"""One agent call: select the agent, check the budget, run the process, count the cost, retry or remind.

A call is counted in STATE.yaml before it starts (the row of its step) and after it ends (`llm_calls`). In between its
cost so far is on disk, so the next run can settle what a killed run left open. That run also lets the guard finish its
comparison, and only then reads the configuration.

An interrupted step is done again. Before each planner call its documents are saved in the run's folder
(`before.json`), and the server records every text it writes for the agent (`written.jsonl`). After a failure, Ctrl-C or
kill -9 the agent's texts are reverted; what a person wrote stays.

The agent's processes run under a reaper that also holds the run lock: if agentd is killed, the reaper ends them all
before the change is free for the next run.
"""
