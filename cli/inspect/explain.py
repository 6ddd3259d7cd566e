"""`pocketmq explain`: where a group starts reading a topic, and which rule decides; of any broker.

A PocketMQ explains its answer itself (request 30001). Of other brokers
`explain_official.py` finds out what can be known.
"""

from typing import Any

import click
import msgspec
from pocketmq.client import AdminClient, NotOnline, RequestRefused, RouteNotFound
from pocketmq.client.connections.route import MASTER_ID
from pocketmq.console.values import first_position
from pocketmq.protocol.requests.offset import Verdict
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..options import client_options, run_command
from .cluster_names import complete_groups, complete_topics
from .explain_official import verdicts_from_outside
from .output import echo_json, json_option


@click.command()
@click.option("-g", "--group", shell_complete=complete_groups, required=True, help="The consumer group.")
@click.option("-t", "--topic", shell_complete=complete_topics, required=True)
@json_option
@client_options
def explain(*, group: str, topic: str, as_json: bool, client: dict[str, Any]) -> None:
    """Say where GROUP starts reading TOPIC, queue by queue, and why.

    Asking changes nothing. Official brokers do not explain their answers: of them it says which rule it must be, or
    between which two nothing decides from outside.
    """
    run_command(_explain(group, topic, client, as_json=as_json))


async def _explain(group: str, topic: str, client: dict[str, Any], *, as_json: bool) -> None:
    async with AdminClient(**client) as admin:
        verdicts = await verdicts_of(admin, group, topic)
        if as_json:
            where = await _consume_from_where(admin, group)
            echo_json([first_position(verdict, verdict.broker_name, where) for verdict in verdicts])
            return
    brokers = {verdict.broker_name for verdict in verdicts}
    for verdict in verdicts:
        click.echo(_text(verdict, with_broker=len(brokers) > 1))


async def verdicts_of(admin: AdminClient, group: str, topic: str) -> list[Verdict]:
    """One verdict for each queue of the topic that can be read, at every broker that has a master."""
    route = await admin.topic_route(topic)
    queues_at = {data.broker_name: data.read_queue_nums for data in route.queue_datas}
    verdicts: list[Verdict] = []
    for broker in sorted(route.broker_datas, key=lambda data: data.broker_name or ""):
        name, address = broker.broker_name or "", (broker.broker_addrs or {}).get(MASTER_ID)
        if address is None:
            continue
        try:
            told = await admin.verdicts(address, group, topic)
            verdicts += [msgspec.structs.replace(verdict, broker_name=name) for verdict in told]
        except RequestRefused as refusal:
            if refusal.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            verdicts += await verdicts_from_outside(
                admin, group, topic, name, address, queues_at.get(name, 0)
            )
    return verdicts


async def _consume_from_where(admin: AdminClient, group: str) -> str | None:
    try:
        return (await admin.consumer_connections(group)).consume_from_where
    except (NotOnline, RouteNotFound):
        return None


def _text(verdict: Verdict, *, with_broker: bool) -> str:
    at = f"{verdict.broker_name} " if with_broker else ""
    timestamp = (
        "searches by its time" if verdict.from_timestamp is None else f"starts at {verdict.from_timestamp}"
    )
    answer = "not found" if verdict.offset is None else f"offset {verdict.offset}"
    return (
        f"{verdict.topic} {at}queue {verdict.queue_id} [{verdict.min_offset}, {verdict.max_offset})\n"
        f"  rule {verdict.rule}: {verdict.because}\n"
        f"  the broker answers {answer}\n"
        f"  LAST_OFFSET starts at {verdict.from_last}, FIRST_OFFSET at {verdict.from_first}, TIMESTAMP {timestamp}"
    )
