"""`agentd view`: pages on which a person reads a change, comments on it and decides.

serving     one address until Ctrl-C; security: who is let in; token_file
app         the application: pages (what is shown), actions (what is done), live (what happens meanwhile)
site        what all pages share; frame: what stands around those of a change; telling: values in words
deciding    what can be decided now, and how that is done
waiting, reading, margin, moved, rounds, comparing, traced, checked, coded, outlooks, spent, running, recorded
            what a page shows, read from the change as plain values
export      a change as one file
"""
