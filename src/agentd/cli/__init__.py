"""The command line: parse, call, render. Each command is a module, imported when it is used."""


def main() -> None:
    import sys

    try:
        from agentd.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))
