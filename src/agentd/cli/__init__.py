"""The terminal face: parse, call, render. No decisions."""


def main() -> None:
    import sys

    from agentd.cli.app import run

    sys.exit(run(sys.argv[1:]))
