"""`pocketmq completion SHELL`: the script with which TAB completes commands, options, topics and groups."""

from typing import Final

import click
from click.shell_completion import get_completion_class

SHELLS: Final = ("bash", "zsh", "fish")
_USE: Final = {
    "bash": 'eval "$(pocketmq completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(pocketmq completion zsh)"     in ~/.zshrc',
    "fish": "pocketmq completion fish | source     in ~/.config/fish/config.fish",
}


@click.command(epilog="\b\n" + "\n".join(_USE.values()))
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print what makes TAB complete pocketmq's words in a shell."""
    of_shell = get_completion_class(shell)
    assert of_shell is not None
    click.echo(of_shell(ctx.find_root().command, {}, "pocketmq", "_POCKETMQ_COMPLETE").source())
