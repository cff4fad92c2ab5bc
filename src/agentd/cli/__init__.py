"""The terminal face: parse, call, render. No decisions."""


def main() -> None:
    import sys

    try:
        from agentd.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))
