"""`pocketmq admin COMMAND`: the commands of mqadmin 5.5.0, with its names, options and columns.

`admin_commands.tsv` has mqadmin's own words for each command and option, and where the command is: a coroutine function
of `(admin: AdminClient, given: Options)` in one of the files of this folder. To add a command, add such a line and that
function. Where mqadmin shows a stack trace, this program prints one line on standard error and exits with 2.
Keys and TLS are options of the group: `pocketmq admin --tls clusterList`.
"""

import csv
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import click
from pocketmq.client.access import Access
from pocketmq.client.access_options import access_options

from ..mistakes import USER_ERROR, one_line
from ..options import client_keywords, run_command
from .options import OptionRow, Options

ACTION: Final = "command"
NAMESRV: Final = "n"
CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"]}


@cache
def command_rows() -> dict[str, list[OptionRow]]:
    """Each command's rows of the table: first the command itself, then its options."""
    rows: dict[str, list[OptionRow]] = {}
    text = (files(__package__) / "admin_commands.tsv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        rows.setdefault(row["command"], []).append(OptionRow(**row))
    return rows


class OneLineCommand(click.Command):
    """A command that prints a mistake of the user as one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            click.echo(f"pocketmq: {self.name}: {one_line(error.format_message())}", err=True)
            ctx.exit(USER_ERROR)


class AdminGroup(click.Group):
    """The commands of the table. As in mqadmin, names may be written in any case."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(command_rows())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for name in command_rows():
            if name.lower() == cmd_name.lower():
                return _command(name)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            click.echo(f"pocketmq: The sub command {one_line(args[0])} not exist.", err=True)
            ctx.exit(USER_ERROR)


@click.command(cls=AdminGroup, context_settings=CONTEXT)
@access_options
@click.pass_context
def admin(ctx: click.Context, *, access: Access) -> None:
    """Look into a cluster and change it: the commands of mqadmin."""
    ctx.obj = access


def _command(name: str) -> click.Command:
    about, *options = command_rows()[name]

    @click.pass_obj
    def act(access: Access, /, **values: Any) -> None:
        given = Options(name, options, values, client_keywords(values.pop("namesrv_addr"), access))
        given.check_choices()
        run_command(_run(_function(about.need), given))

    parameters: list[click.Parameter] = [_option(row) for row in options if row.short != NAMESRV]
    parameters.append(
        click.Option(
            ["-n", "--namesrvAddr", "--namesrv", "namesrv_addr"],
            metavar="ADDR[;ADDR]",
            envvar="NAMESRV_ADDR",
            default="127.0.0.1:9876",
            show_default=True,
            help="Name servers; also from NAMESRV_ADDR.",
        )
    )
    return OneLineCommand(name, CONTEXT, act, parameters, help=about.text)


def _option(row: OptionRow) -> click.Option:
    words = [f"-{row.short}"] if row.short else []
    if row.name and " " not in row.name:
        words.append(f"--{row.name}")
    if row.kind == "flag":
        return click.Option([*words, row.variable], is_flag=True, help=row.text)
    return click.Option(
        [*words, row.variable], required=row.need == "required", metavar="TEXT", help=row.text
    )


Action = Callable[[Any, Options], Awaitable[None]]


def _function(place: str) -> Action:
    module, _, function = place.partition(":")
    action: Action = getattr(import_module(f".{module}", __package__), function)
    return action


async def _run(action: Action, given: Options) -> None:
    from pocketmq.client.admin.client import AdminClient  # not for `--help`

    async with AdminClient(**given.client) as admin:
        await action(admin, given)
