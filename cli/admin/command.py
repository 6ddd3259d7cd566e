"""`pocketmq admin COMMAND`: the commands of mqadmin 5.5.0, with its names, options and columns.

`admin_commands.tsv` has mqadmin's own words for each command and option, and where the command is: a coroutine function
of `(admin: AdminClient, given: Options)` in one of the files of this folder. To add a command, add such a line and that
function. Where mqadmin shows a stack trace, this program prints one line on standard error and exits with 2.
Keys and TLS are options of the group: `pocketmq admin --tls clusterList`.
"""

import csv
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import click
from pocketmq.client.access import Access
from pocketmq.client.access_options import access_options

from ..mistakes import SpellingGroup
from ..options import NAME_SERVERS, client_keywords, run_command
from .options import OptionRow, Options

ACTION: Final = "command"
CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"]}


@cache
def command_rows() -> dict[str, list[OptionRow]]:
    """Each command's rows of the table: first the command itself, then its options."""
    rows: dict[str, list[OptionRow]] = {}
    text = (files(__package__) / "admin_commands.tsv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        rows.setdefault(row["command"], []).append(OptionRow(**row))
    return rows


class AdminGroup(SpellingGroup):
    """The commands of the table. As in mqadmin, names may be written in any case."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(command_rows())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for name in command_rows():
            if name.lower() == cmd_name.lower():
                return _command(name)
        return None


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
        run_command(_run(about.need, given))

    parameters: list[click.Parameter] = [_option(row) for row in options]
    parameters.append(click.Option(["-n", "--namesrvAddr", "--namesrv", "namesrv_addr"], **NAME_SERVERS))
    return click.Command(name, CONTEXT, act, parameters, help=about.text)


def _option(row: OptionRow) -> click.Option:
    words = [f"-{row.short}"] if row.short else []
    if row.name and " " not in row.name:
        words.append(f"--{row.name}")
    if row.kind == "flag":
        return click.Option([*words, row.variable], is_flag=True, help=row.text)
    return click.Option(
        [*words, row.variable], required=row.need == "required", metavar="TEXT", help=row.text
    )


async def _run(place: str, given: Options) -> None:
    """Call the function `module:function` of this folder."""
    from pocketmq.client.admin.client import AdminClient  # not for `--help`

    module, _, function = place.partition(":")
    action = getattr(import_module(f".{module}", __package__), function)
    async with AdminClient(**given.client) as admin:
        await action(admin, given)
