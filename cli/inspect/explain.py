"""`pocketmq explain`: where a group starts reading a topic, and which rule decides; of any broker.

A PocketMQ explains its answer itself (request 30001). Other brokers are asked what any client may ask: requests 14
(twice at a 5.x broker), 30 and 31 for each queue; 28, 26 and 208 once. None of them changes anything. What follows
from the answers is decided by `pocketmq.broker.first_position.from_outside`.
"""

import asyncio
from typing import Any

import click
import msgspec
from pocketmq.broker.first_position.from_outside import Seen, possible_rules, reason
from pocketmq.broker.first_position.rules import (
    FROM_FIRST,
    FROM_LAST,
    FROM_TIMESTAMP,
    Decision,
    Rule,
    client_start,
)
from pocketmq.client import AdminClient, ClientError, NotOnline, RequestRefused, RouteNotFound
from pocketmq.client.admin.calls import master_of
from pocketmq.console.values import first_position
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.offset import Verdict
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..options import client_options, run_command
from ..output import echo_json, json_option
from .cluster_names import complete_groups, complete_topics, gather_limited


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
        name, address = broker.broker_name or "", master_of(broker)
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


async def verdicts_from_outside(
    admin: AdminClient, group: str, topic: str, broker_name: str, address: str, queues: int
) -> list[Verdict]:
    """One verdict a queue; its `rule` is `B4`, or `B1 or B4` where both would look the same."""
    is_5 = (await admin.broker_runtime(address)).get("brokerVersionDesc", "").startswith("V5")
    may_be_reset = is_5 and await _may_be_reset(admin, address)
    may_have_stored = await _may_have_stored(admin, address, group, topic)

    async def verdict(queue_id: int) -> Verdict:
        queue = MessageQueue(topic, broker_name, queue_id)
        answer, low, high = await asyncio.gather(
            admin.query_offset(group, queue), admin.min_offset(queue), admin.max_offset(queue)
        )
        without_default = None
        if is_5:
            without_default = await admin.query_offset(group, queue, set_zero_if_not_found=False)
        seen = Seen(
            answer=answer,
            answer_without_default=without_default,
            min_offset=low,
            max_offset=high,
            may_have_stored=may_have_stored,
            may_be_reset=may_be_reset,
        )
        return _verdict(group, queue, seen, possible_rules(seen, is_5=is_5))

    return await gather_limited(range(queues), verdict)


async def _may_be_reset(admin: AdminClient, address: str) -> bool:
    try:
        settings = await admin.broker_config(address)
    except ClientError:
        return True  # it does not show its settings
    return settings.get("useServerSideResetOffset", "true") == "true"


async def _may_have_stored(admin: AdminClient, address: str, group: str, topic: str) -> bool:
    """False if the broker lists the topics in which the group has offsets, and this one is not among them.

    Of a group with members the 4.9 line lists only the topics that they subscribe to.
    """
    try:
        stats = await admin.consume_stats_at(address, group)
        members = await admin.consumer_connections(group, address=address)
    except NotOnline:
        subscribed = True
    except ClientError:
        return True
    else:
        subscribed = topic in members.subscription_table
    return not subscribed or any(queue.topic == topic for queue in stats.offset_table)


def _verdict(group: str, queue: MessageQueue, seen: Seen, rules: tuple[Rule, ...]) -> Verdict:
    is_retry = is_retry_topic(queue.topic)
    starts = {}
    for where in (FROM_LAST, FROM_FIRST, FROM_TIMESTAMP):
        start = client_start(
            Decision(rules[0], seen.answer), where, is_retry_topic=is_retry, max_offset=seen.max_offset
        )
        starts[where] = None if start is None else max(start, seen.min_offset)
    return Verdict(
        group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        broker_name=queue.broker_name,
        rule=" or ".join(rule.value for rule in rules),
        because=reason(rules, seen),
        offset=seen.answer,
        from_last=starts[FROM_LAST],
        from_first=starts[FROM_FIRST],
        from_timestamp=starts[FROM_TIMESTAMP],
        min_offset=seen.min_offset,
        max_offset=seen.max_offset,
        stored_offset=seen.answer if rules == (Rule.STORED_OFFSET,) and seen.answer is not None else -1,
    )
