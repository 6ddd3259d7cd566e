"""`pocketmq clients`: who is connected to the brokers, as what, and with which version."""

from collections.abc import Sequence

import click
import msgspec
from pocketmq.client import AdminClient, ClientError, RequestRefused
from pocketmq.console.values import member_of
from pocketmq.protocol.bodies.client_state import Connection
from pocketmq.protocol.message.topics import PREDEFINED_GROUPS

from ..output import table, view
from .cluster_names import gather_limited, group_names, masters


class ClientRow(msgspec.Struct, frozen=True):
    """One client in one group. `role` is consumer or producer; `address` is host and port as the broker sees them."""

    client_id: str
    role: str
    group: str
    address: str
    language: str
    version: str


async def client_rows(admin: AdminClient) -> list[ClientRow]:
    """Every consumer and producer that a broker knows; one that is connected to several brokers counts once."""
    groups = await group_names(admin, with_system=True)
    found = await gather_limited(groups, lambda name: _consumers(admin, name))
    found += [await _producers(admin, address) for address in (await masters(admin)).values()]
    rows = {(row.role, row.group, row.client_id): row for some in found for row in some}
    return [row for _, row in sorted(rows.items())]


async def _consumers(admin: AdminClient, group: str) -> list[ClientRow]:
    try:
        members = (await admin.consumer_connections(group)).connection_set
    except ClientError:
        return []  # no consumer is connected
    return [_row("consumer", group, one) for one in members]


async def _producers(admin: AdminClient, address: str) -> list[ClientRow]:
    try:
        producers_of = await admin.producers(address)
    except RequestRefused:
        return []  # brokers before 4.9.4 do not list them
    return [
        _row("producer", group, Connection(one.client_id, one.remote_ip, one.language, one.version))
        for group, producers in producers_of.items()
        if group not in PREDEFINED_GROUPS
        for one in producers
    ]


def _row(role: str, group: str, connection: Connection) -> ClientRow:
    one = member_of(connection)
    return ClientRow(one.client_id, role, group, one.address, one.language, one.version)


def _text(rows: Sequence[ClientRow]) -> str:
    if not rows:
        return "no clients"
    return table(
        ("CLIENT", "ROLE", "GROUP", "ADDRESS", "LANGUAGE", "VERSION"),
        [(row.client_id, row.role, row.group, row.address, row.language, row.version) for row in rows],
    )


@click.command()
@view(client_rows, _text)
def clients() -> None:
    """List the clients that are connected, with group, address and version."""
