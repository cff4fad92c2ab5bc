"""What `init` detects: the checks that a project has.

project_scan      a bounded scan of the project's files
check_proposals   the checks proposed from them
"""
