"""`pocketmq explain`: where a group starts reading a topic, and which rule decides."""

from typing import Any

import click
from pocketmq.client import ClientError, PullConsumer, RequestRefused
from pocketmq.protocol.requests.offset import Verdict, encode_verdicts
from pocketmq.protocol.wire.response_codes import ResponseCode

from .options import client_options, run_command


@click.command()
@click.option("-g", "--group", required=True, help="The consumer group.")
@click.option("-t", "--topic", required=True)
@click.option("--json", "as_json", is_flag=True, help="The verdicts as JSON, with every number.")
@client_options
def explain(*, group: str, topic: str, as_json: bool, client: dict[str, Any]) -> None:
    """Say where GROUP starts reading TOPIC, queue by queue, and why.

    Asking changes nothing. The broker must be a PocketMQ; official brokers do not explain their answers.
    """
    run_command(_explain(group, topic, client, as_json=as_json))


async def _explain(group: str, topic: str, client: dict[str, Any], *, as_json: bool) -> None:
    async with PullConsumer(group, **client) as puller:
        try:
            verdicts = await puller.explain(topic)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise ClientError("this broker is not a PocketMQ: it cannot explain its answer") from refusal
            raise
    if as_json:
        click.echo(encode_verdicts(verdicts))
        return
    for verdict in verdicts:
        click.echo(_text(verdict))


def _text(verdict: Verdict) -> str:
    timestamp = "by time" if verdict.from_timestamp is None else str(verdict.from_timestamp)
    answer = "not found" if verdict.offset is None else f"offset {verdict.offset}"
    return (
        f"{verdict.topic} queue {verdict.queue_id} [{verdict.min_offset}, {verdict.max_offset})\n"
        f"  rule {verdict.rule}: {verdict.because}\n"
        f"  the broker answers {answer}\n"
        f"  LAST_OFFSET starts at {verdict.from_last}, FIRST_OFFSET at {verdict.from_first}, TIMESTAMP {timestamp}"
    )
