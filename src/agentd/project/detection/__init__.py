"""What `init` finds out by itself: the checks a project has, and the agents that can sit in its roles.

scan          a bounded look at the project's files
python, node  how these two are tested
checks        the proposal as a whole
agents        which agents are here, who sits where, and what a person should know about it
"""
