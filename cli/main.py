"""The program `pocketmq`: its commands, each imported when it is used.

A command is one line of `COMMANDS`; nothing of it is imported for the others, so that `pocketmq serve` starts quickly.
"""

from importlib import import_module
from typing import Final

import click

COMMANDS: Final = {
    "serve": "pocketmq.broker.serve_command:serve",
    "admin": "pocketmq.cli.admin.command:admin",
    "exec": "pocketmq.cli.exec:exec_command",
    "demo": "pocketmq.cli.demo:demo",
    "explain": "pocketmq.cli.explain:explain",
    "send": "pocketmq.cli.send:send",
    "tail": "pocketmq.cli.tail:tail",
    "store": "pocketmq.cli.store_command:store_command",
    "bench": "pocketmq.cli.bench.command:bench",
    "pipeline": "pocketmq.cli.pipeline:pipeline",
}
"""Name -> where the click command is."""


class LazyGroup(click.Group):
    """A click group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=LazyGroup)
@click.version_option(package_name="pocketmq", message="%(package)s %(version)s")
def main() -> None:
    """A pocket-sized RocketMQ."""
