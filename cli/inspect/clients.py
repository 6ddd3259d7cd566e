"""`pocketmq clients`: who is connected to the brokers, as what, and with which version."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec
from pocketmq.client import AdminClient, ClientError, RequestRefused
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.topics import PREDEFINED_GROUPS

from ..options import client_options
from ..output import json_option, run_view, table, watch_option
from .cluster_names import gather_limited, group_names, masters


class ClientRow(msgspec.Struct, frozen=True):
    """One client in one group. `role` is consumer or producer; `address` is host and port as the broker sees them."""

    client_id: str
    role: str
    group: str
    address: str
    language: str
    version: str


@click.command()
@json_option
@watch_option
@client_options
def clients(*, as_json: bool, watch_seconds: float | None, client: dict[str, Any]) -> None:
    """List the clients that are connected, with group, address and version."""
    run_view(client, client_rows, _text, as_json=as_json, watch_seconds=watch_seconds)


async def client_rows(admin: AdminClient) -> list[ClientRow]:
    """Every consumer and producer that a broker knows; one that is connected to several brokers counts once."""
    rows: dict[tuple[str, str, str], ClientRow] = {}
    for found in await gather_limited(
        await group_names(admin, with_system=True), lambda name: _consumers(admin, name)
    ):
        for row in found:
            rows[row.role, row.group, row.client_id] = row
    for address in (await masters(admin)).values():
        for row in await _producers(admin, address):
            rows[row.role, row.group, row.client_id] = row
    return [row for _, row in sorted(rows.items())]


async def _consumers(admin: AdminClient, group: str) -> list[ClientRow]:
    try:
        members = (await admin.consumer_connections(group)).connection_set
    except ClientError:
        return []  # no consumer is connected
    return [
        ClientRow(
            member.client_id or "",
            "consumer",
            group,
            (member.client_addr or "").lstrip("/"),
            member.language or "",
            version_name(member.version),
        )
        for member in members
    ]


async def _producers(admin: AdminClient, address: str) -> list[ClientRow]:
    try:
        producers_of = await admin.producers(address)
    except RequestRefused:
        return []  # brokers before 4.9.4 do not list them
    return [
        ClientRow(
            producer.client_id or "",
            "producer",
            group,
            (producer.remote_ip or "").lstrip("/"),
            producer.language or "",
            version_name(producer.version),
        )
        for group, producers in producers_of.items()
        if group not in PREDEFINED_GROUPS
        for producer in producers
    ]


def _text(rows: Sequence[ClientRow]) -> str:
    if not rows:
        return "no clients"
    return table(
        ("CLIENT", "ROLE", "GROUP", "ADDRESS", "LANGUAGE", "VERSION"),
        [(row.client_id, row.role, row.group, row.address, row.language, row.version) for row in rows],
    )
