"""A project's checks: run by agentd itself, read, and compared with how they were before the first edit.

running    one check, with nothing left of it afterwards
output     what is kept of its output, cleaned; the lines that say most
summaries  what a test runner says at its end, a module of `runners` for each
audits     what an audit says, as problems
result     all of that as data, and as the row of a record
comparing  does it block, and what is known from before
findings   what a maker must answer
"""
