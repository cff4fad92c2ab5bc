"""`agentd completion`: print a shell completion script."""

import os

import click
from click.shell_completion import get_completion_class

from agentd.cli import output
from agentd.domain import UsageError

COMMANDS = {"completion": (240, "Print a shell completion script.")}

SHELLS = {
    "bash": 'add to ~/.bashrc:  eval "$(agentd completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(agentd completion zsh)"',
    "fish": "save as ~/.config/fish/completions/agentd.fish:  agentd completion fish",
}


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(list(SHELLS)))
@output.json_option
@click.pass_context
def command(ctx: click.Context, shell: str | None, as_json: bool) -> int:
    """Print the completion script for bash, zsh or fish (default: your shell).

    \b
    bash  eval "$(agentd completion bash)"   in ~/.bashrc
    zsh   eval "$(agentd completion zsh)"    in ~/.zshrc
    fish  agentd completion fish > ~/.config/fish/completions/agentd.fish
    """
    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(shell) if shell in SHELLS else None
    if kind is None:
        raise UsageError("which shell?", f"agentd completion {' | '.join(SHELLS)}")
    root = ctx.find_root().command
    script = kind(root, {}, "agentd", "_AGENTD_COMPLETE").source()
    data = {"shell": shell, "script": script, "install": SHELLS[shell]}
    return output.show_result("completion", as_json, data, lambda: script)
