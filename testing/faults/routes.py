"""Wrong routes: answers of the name server to GET_ROUTEINFO_BY_TOPIC, and of the gRPC port to QueryRoute, changed on
their way out.

The route table itself stays as it is, and so do all connections. Rules of this file apply in the order they were added,
each to what the one before it made.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.flags import PERM_READ, PERM_WRITE
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..requests.logged_request import LoggedRequest
from .rule import AnyRule
from .sending import ReadyReply

ROUTE: Final = GetRouteInfoByTopic.code
RPC_ROUTE: Final = RPC_NUMBERS["QueryRoute"]
_QUEUES: Final = 4
Brokers = Mapping[str, BrokerData]
"""Every broker that a route may name."""


class RouteRule(AnyRule):
    """One wrong route, until it is removed. Its hits are the requests whose answers it changed."""

    def __init__(
        self,
        rule_id: int,
        name: str,
        change: "RouteChange",
        words: dict[str, Any],
        remove: Callable[[AnyRule], None],
    ) -> None:
        super().__init__(rule_id, name, words, remove)
        self.change = change


RouteChange = Callable[[str, str, TopicRouteData, Brokers], TopicRouteData]
"""Topic, name server, its route (empty if it has none), all brokers -> the route that the client gets."""


def without_broker(name: str) -> RouteChange:
    """Routes do not name the broker."""

    def change(topic: str, name_server: str, route: TopicRouteData, brokers: Brokers) -> TopicRouteData:
        if all(data.broker_name != name for data in route.broker_datas):
            return route
        return msgspec.structs.replace(
            route,
            queue_datas=[data for data in route.queue_datas if data.broker_name != name],
            broker_datas=[data for data in route.broker_datas if data.broker_name != name],
        )

    return change


def with_brokers(
    wanted_topic: str, names: Sequence[str] | Mapping[str, Sequence[str]] | None, queues: int | None = None
) -> RouteChange:
    """The topic is on these brokers, with so many queues; None: as it is. A mapping has the brokers by name server; one
    that is not in it says what it knows."""

    def change(topic: str, name_server: str, route: TopicRouteData, brokers: Brokers) -> TopicRouteData:
        if topic != wanted_topic or (isinstance(names, Mapping) and name_server not in names):
            return route
        known = {data.broker_name: data for data in route.queue_datas}
        model = next(iter(route.queue_datas), QueueData("", _QUEUES, _QUEUES, PERM_READ | PERM_WRITE))
        wanted = names[name_server] if isinstance(names, Mapping) else names
        if wanted is None:
            wanted = [name for name in known if name]
        queue_datas = []
        for name in wanted:
            data = msgspec.structs.replace(known.get(name, model), broker_name=name)
            if queues is not None:
                data = msgspec.structs.replace(data, read_queue_nums=queues, write_queue_nums=queues)
            queue_datas.append(data)
        groups = {data.broker_name: data for data in route.broker_datas}
        broker_datas = [
            groups.get(name) or brokers[name] for name in wanted if name in groups or name in brokers
        ]
        return msgspec.structs.replace(route, queue_datas=queue_datas, broker_datas=broker_datas)

    return change


def changed_reply(
    rules: Sequence[RouteRule], request: LoggedRequest, name_server: str, brokers: Brokers, reply: ReadyReply
) -> ReadyReply | None:
    """The reply with the routes that the rules want; None if they want no other."""
    if request.code == RPC_ROUTE:
        return _changed_rpc_reply(rules, request, reply)
    if reply.command.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
        return None
    try:
        before = (
            TopicRouteData.decode(reply.body, max_bytes=len(reply.body)) if reply.body else TopicRouteData()
        )
    except BodyError:
        return None
    route = _changed(rules, request, name_server, before, brokers)
    if route == before:
        return None
    if not route.broker_datas:
        remark = f"No topic route info in name server for the topic: {request.topic or ''}"
        return ReadyReply(_command(reply.command, ResponseCode.TOPIC_NOT_EXIST, remark), b"")
    standard = request.fields.get("acceptStandardJsonOnly", "").lower() == "true"
    body = route.encode_for(request.version, accept_standard_json_only=standard)
    return ReadyReply(_command(reply.command, ResponseCode.SUCCESS, None), body)


def _changed(
    rules: Sequence[RouteRule],
    request: LoggedRequest,
    name_server: str,
    route: TopicRouteData,
    brokers: Brokers,
) -> TopicRouteData:
    for rule in rules:
        former, route = route, rule.change(request.topic or "", name_server, route, brokers)
        if route != former:
            rule.hit(request)
    return route


def _changed_rpc_reply(
    rules: Sequence[RouteRule], request: LoggedRequest, reply: ReadyReply
) -> ReadyReply | None:
    """The same for a gRPC client. A broker that its route does not name has no address for it, and is left out."""
    from pocketmq.grpc_endpoint import messages as m

    if reply.command.code:
        return None
    route = m.QueryRouteResponse.FromString(bytes(reply.body))
    queues: dict[str, dict[int, list[m.MessageQueue]]] = {}
    for queue in route.message_queues:  # those of a master, and once more of each slave
        queues.setdefault(queue.broker.name, {}).setdefault(queue.broker.id, []).append(queue)
    perm = PERM_READ | PERM_WRITE
    counts = {name: max(map(len, of_ids.values())) for name, of_ids in queues.items()}
    before = TopicRouteData(
        queue_datas=[QueueData(name, count, count, perm) for name, count in counts.items()],
        broker_datas=[BrokerData(broker_name=name) for name in queues],
    )
    after = _changed(rules, request, "", before, {})
    if after == before:
        return None
    changed = m.QueryRouteResponse(status=route.status)
    for data in after.queue_datas:
        for known in queues.get(data.broker_name or "", {}).values():
            if data.read_queue_nums == counts[data.broker_name or ""]:
                changed.message_queues.extend(known)
                continue
            for number in range(data.read_queue_nums):
                known[0].id = number
                changed.message_queues.extend(known[:1])
    if changed.message_queues:
        return ReadyReply(reply.command, changed.SerializeToString())
    status = m.Status(
        code=m.Code.TOPIC_NOT_FOUND, message=f"No topic route info for the topic: {request.topic}"
    )
    return ReadyReply(
        _command(reply.command, status.code, status.message),
        m.QueryRouteResponse(status=status).SerializeToString(),
    )


def _command(former: Command, code: int, remark: str | None) -> Command:
    return msgspec.structs.replace(former, code=int(code), remark=remark)
