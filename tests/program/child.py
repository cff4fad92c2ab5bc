"""`python -P child.py PYTHON ARGUMENTS…`: agentd with these arguments, which takes PYTHON for its interpreter."""

import sys

if __name__ == "__main__":
    sys.executable = sys.argv.pop(1)
    sys.argv[0] = "agentd"

    from agentd.cli import main

    main()
