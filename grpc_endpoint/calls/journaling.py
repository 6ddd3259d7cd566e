"""Calls in the journal (`--journal DIR`), where they are recorded as the requests of remoting clients are.

An entry has the number of the rpc, topic, group, queue and client id, both times, the number of the `Code` (0 for OK),
and size and CRC-32 of request and reply. Settings that make a client a member of a group, and heartbeats, are recorded
with their content, in the form of a remoting heartbeat: who reads the journal finds the members of both protocols in
one place. Loaded when there is a journal.
"""

import msgspec
from pocketmq.broker.network.journal import DETAIL_BYTES, JournalWatcher, Recorded
from pocketmq.protocol.bodies.client import SQL92, TAG, ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.command import Command

from ..messages import ClientType, FilterType, HeartbeatRequest, Settings, SubscriptionEntry, TelemetryCommand

SERVER_NAME = "gRPC"
"""The port, where the journal names those of the broker and the name server."""
_TELEMETRY = RPC_NUMBERS["Telemetry"]
_HEARTBEAT = RPC_NUMBERS["Heartbeat"]
_PUSH = (ClientType.PUSH_CONSUMER, ClientType.LITE_PUSH_CONSUMER)


class RpcJournalWatcher(JournalWatcher):
    """Watches the gRPC port for the journal."""

    def detail(self, recorded: Recorded, command: Command) -> str | None:
        """Settings and heartbeats as the heartbeat of a remoting client; `None` for all else."""
        body = bytes(command.body or b"")
        if command.code == _TELEMETRY:
            sent = TelemetryCommand.FromString(body)
            return _announced(recorded.client_id, sent.settings) if sent.HasField("settings") else None
        if command.code == _HEARTBEAT:
            name = HeartbeatRequest.FromString(body).group.name
            return _as_json(recorded.client_id, [_consumer(name)] if name else [], [])
        return None


def _announced(client_id: str | None, settings: Settings) -> str:
    subscription = settings.subscription
    consumers: list[dict[str, object]] = []
    if subscription.HasField("group"):
        entries = [_subscription(entry) for entry in subscription.subscriptions]
        is_push = settings.client_type in _PUSH
        consumers = [_consumer(subscription.group.name, entries, is_push=is_push)]
    producers: list[dict[str, object]] = [{"groupName": topic.name} for topic in settings.publishing.topics]
    return _as_json(client_id, consumers, producers)


def _consumer(
    group: str, subscriptions: list[dict[str, object]] | None = None, *, is_push: bool | None = None
) -> dict[str, object]:
    """What all gRPC consumers are: members that share the messages, and begin at the end of a queue."""
    found: dict[str, object] = {
        "groupName": group,
        "messageModel": MessageModel.CLUSTERING,
        "consumeFromWhere": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    }
    if is_push is not None:
        kind = ConsumeType.CONSUME_PASSIVELY if is_push else ConsumeType.CONSUME_ACTIVELY
        found |= {"consumeType": kind, "subscriptionDataSet": subscriptions or []}
    return found


def _subscription(entry: SubscriptionEntry) -> dict[str, object]:
    kind = SQL92 if entry.expression.type == FilterType.SQL else TAG
    return {"topic": entry.topic.name, "subString": entry.expression.expression, "expressionType": kind}


def _as_json(
    client_id: str | None, consumers: list[dict[str, object]], producers: list[dict[str, object]]
) -> str:
    data = {"clientID": client_id, "consumerDataSet": consumers, "producerDataSet": producers}
    return msgspec.json.encode(data)[:DETAIL_BYTES].decode("utf-8", "replace")
