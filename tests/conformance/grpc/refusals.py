"""Requests of clients that are not registered, settings, and the lives of clients."""

from pocketmq.grpc_endpoint.messages import (
    ClientType,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    Resource,
)

from conformance.grpc.rows import ANNOUNCED, GROUPS, RECEIPTS, ROWS, TOPICS
from conformance.grpc.talk import Talk
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_calls import consumer, producer


def prepare(server: Server) -> None:
    with RawClient(server) as raw:
        for name, (kind, read, write, perm) in TOPICS.items():
            raw.update_topic(name, read, perm, writeQueueNums=write, attributes=f"+message.type={kind}")
        for group in GROUPS:
            raw.update_group(group)


async def refuse(talk: Talk) -> None:
    for name, request in ROWS:
        await talk.ask(name, request, client_id="rows@1@0@a")
    async with talk.announced(consumer("g", ["NormalT"]), "member@1@0@a"):
        for name, request in RECEIPTS:
            await talk.ask(name, request, client_id="member@1@0@a")
    for name, settings, about in ANNOUNCED:
        await talk.settle(f"settings: {name}", settings, **{"client_id": "s@1@0@a", **about})
    await _life(talk, "l@1@0@a", "g3")
    await _life(talk, "p@1@0@a", "")


async def _life(talk: Talk, client_id: str, group: str) -> None:
    """Of a consumer in this group, or of a producer."""
    settings = consumer(group, ["NormalT"]) if group else producer("PriorityT")
    kind = ClientType.PUSH_CONSUMER if group else ClientType.PRODUCER
    of = {"group": Resource(name=group)} if group else {}
    await talk.settle(f"life of {client_id}", settings, client_id=client_id)
    await talk.ask("heartbeat", HeartbeatRequest(client_type=kind, **of), client_id=client_id)
    if group:
        await talk.ask("heartbeat without a group", HeartbeatRequest(client_type=kind), client_id=client_id)
    code, named = (203, {"consumerGroup": group}) if group else (204, {"producerGroup": "PriorityT"})
    talk.say_reply("member", code, talk.remoting(code, **named))
    await talk.ask("termination", NotifyClientTerminationRequest(**of), client_id=client_id)
    talk.say_reply("member no more", code, talk.remoting(code, **named))
    await talk.ask("late heartbeat", HeartbeatRequest(client_type=kind, **of), client_id=client_id)
