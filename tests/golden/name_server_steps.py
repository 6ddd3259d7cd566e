"""What brokers, clients and tools send to a name server in one long conversation: `STEPS`, in this order.

Only the requests are here; `name_server_dialogue.py` sends them and has the official answers. After adding a step,
record the answers again. The requests are built by hand, not with PocketMQ's own code.
"""

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

V4_9_3, V4_9_8, V5_5_0 = 399, 409, 513

Fields = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One request on a named connection; `heard` first lets things settle, `close` ends the connection
    instead.

    `{a}` to `{f}` in header values stand for addresses that listen during the conversation: what the
    name server says to them is part of the answers. `since` 5: only said to the 5.x line.
    """

    title: str
    code: int = 0
    fields: Fields = field(default_factory=dict)
    body: bytes = b""
    on: str = "client"
    version: int = V5_5_0
    close: bool = False
    since: int = 4


def text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def version_of(counter: int, state: int = 0) -> Fields:
    return {"counter": counter, "stateVersion": state, "timestamp": 1_700_000_000_000}


def topic(name: str, queues: int = 4, perm: int = 6, flag: int = 0, **more: object) -> Fields:
    return {
        "attributes": {}, "order": False, "perm": perm, "readQueueNums": queues, "topicFilterType": "SINGLE_TAG",
        "topicName": name, "topicSysFlag": flag, "writeQueueNums": queues, **more,
    }  # fmt: skip


def body(
    counter: int, *topics: Fields, filters: tuple[str, ...] = (), state: int = 0, **more: object
) -> bytes:
    wrapper = {
        "dataVersion": version_of(counter, state),
        "topicConfigTable": {each["topicName"]: each for each in topics},
        **more,
    }
    return text({"filterServerList": list(filters), "topicConfigSerializeWrapper": wrapper})


def compressed(counter: int, topics: list[str], mappings: list[Fields] | None) -> bytes:
    """The zlib form: length-prefixed version, topic lines, filter servers and, in 5.x, queue mappings."""

    def counted(part: bytes) -> bytes:
        return struct.pack(">i", len(part)) + part

    parts = [counted(text(version_of(counter))), struct.pack(">i", len(topics))]
    parts += [counted(line.encode()) for line in topics]
    parts.append(counted(b"[]"))
    if mappings is not None:
        parts.append(struct.pack(">i", len(mappings)))
        parts += [counted(text(each)) for each in mappings]
    return zlib.compress(b"".join(parts), 9)


def who(name: str, address: str, broker_id: int, cluster: str = "one") -> Fields:
    return {"brokerName": name, "brokerAddr": address, "clusterName": cluster, "brokerId": broker_id}


def register(
    title: str, name: str, address: str, broker_id: int, content: bytes, *, on: str, **more: Any
) -> Step:
    fields = {**who(name, address, broker_id, more.pop("cluster", "one")), "haServerAddr": f"{address}-ha"}
    step = {key: more.pop(key) for key in ("version", "since") if key in more}
    return Step(title, 103, {**fields, "bodyCrc32": 0, "compressed": False, **more}, content, on, **step)


def route(title: str, name: str, version: int = V5_5_0, **more: Any) -> Step:
    """A question for a route; `zone` asks for that zone alone."""
    zone = more.pop("zone", None)
    fields = {"__ZONE_MODE": True, "__ZONE_NAME": zone} if zone is not None else {}
    return Step(title, 105, {"topic": name, **fields, **more}, version=version)


T1, T2 = topic("T1"), topic("T2", 8)
MAPPING = {
    "bname": "b1", "currIdMap": {"0": 0, "1": 1}, "dirty": False, "epoch": 7, "scope": "__global__", "topic": "T1",
    "totalQueues": 2,
}  # fmt: skip

FRESH = [
    route("route of an unknown topic", "nowhere"),
    Step("route without a topic", 105),
    Step("cluster info of nothing", 106),
    Step("all topics of nothing", 206),
    Step("system topics of nothing", 304),
    Step("topics of an unknown cluster", 224, {"cluster": "nowhere"}),
    Step("unknown code", 9999),
    Step("member group of an unknown broker", 901, {"clusterName": "one", "brokerName": "b1"}, since=5),
    Step("heartbeat of an unknown broker", 904, who("b1", "{a}", 0), since=5),
    Step("data version of an unknown broker", 322, who("b1", "{a}", 0), text(version_of(1))),
    Step("unregister an unknown broker", 104, who("b1", "{a}", 0)),
]
REGISTRATION = [
    register("first registration with one topic", "lonely", "10.0.0.9:1", 0, body(1, T1), on="lonely"),
    Step("cluster info after that", 106),
    Step("a broker that never stood leaves", 104, who("lonely", "10.0.0.9:1", 0), on="lonely"),
    Step("cluster info after it left", 106),
    register("master with two topics", "b1", "{a}", 0, body(1, T1, T2), on="b1"),
    *(
        route(f"route for version {version}", "T1", version)
        for version in (0, V4_9_3, 401, V4_9_8, V5_5_0)
    ),
    route("route, standard JSON asked for", "T1", 0, acceptStandardJsonOnly="true"),
    route("route, standard JSON refused", "T1", 0, acceptStandardJsonOnly="false"),
    register("slave", "b1", "{b}", 1, body(9, T1, topic("T3")), on="b2"),
    route("route with a slave", "T1"),
    route("topic only a slave told of", "T3"),
    Step("member group", 901, {"clusterName": "one", "brokerName": "b1"}, since=5),
    Step("member group, wrong cluster name", 901, {"clusterName": "two", "brokerName": "b1"}, since=5),
    register("wrong crc", "b3", "10.0.0.3:1", 0, body(1, T1, T2), on="b3", bodyCrc32=5),
    register("right crc", "b3", "10.0.0.3:1", 0, body(1, T1, T2), on="b3",
             bodyCrc32=zlib.crc32(body(1, T1, T2)) & 0x7FFFFFFF),
    register("same version, a queue count changed", "b3", "10.0.0.3:1", 0, body(1, T1, topic("T2", 3)), on="b3"),
    route("queue count under the same version", "T2"),
    register("same version, a new topic", "b3", "10.0.0.3:1", 0, body(1, T1, topic("T4")), on="b3"),
    route("new topic under the same version", "T4"),
    register("next version with one topic", "b3", "10.0.0.3:1", 0, body(2, topic("T2", 3)), on="b3"),
    route("queue count under the next version", "T2"),
    route("topic not named in the next version", "T4"),
    register("compressed, 5.x", "b4", "10.0.0.4:1", 0,
             compressed(1, ["T5 4 5 6 SINGLE_TAG {}", "T6 4 4 4 MULTI_TAG {}"], [MAPPING]), on="b4",
             compressed=True, since=5),
    register("compressed, 4.9", "b5", "10.0.0.5:1", 0,
             compressed(1, ["T5 4 5 6 SINGLE_TAG", "T6 4 4 4 MULTI_TAG"], None), on="b5",
             compressed=True, version=V4_9_8),
    route("topic of compressed registrations", "T5"),
    register("damaged compressed body", "b6", "10.0.0.6:1", 0, b"\x00\x01garbage", on="b6", compressed=True),
    register("damaged body", "b6", "10.0.0.6:1", 0, b"{nonsense", on="b6"),
    register("before 3.0.11 the body is the wrapper", "b6", "10.0.0.6:1", 0,
             text({"dataVersion": version_of(3), "topicConfigTable": {"T1": T1, "T7": topic("T7")}}),
             on="b6", version=30),
    route("topic of the old body", "T7"),
    register("no body", "b7", "10.0.0.7:1", 0, b"", on="b7"),
    Step("data version of a broker without body", 322, who("b7", "10.0.0.7:1", 0), text(version_of(1)), on="b7"),
    Step("registration without an address", 103, {"brokerName": "b8", "clusterName": "one"}, body(1, T1, T2)),
    Step("cluster info", 106),
    Step("all topics", 206),
    Step("topics of a cluster", 224, {"cluster": "one"}),
    Step("system topics", 304),
]  # fmt: skip
VERSIONS = [
    Step("same data version", 322, who("b1", "{a}", 0), text(version_of(1)), on="b1"),
    Step("other data version", 322, who("b1", "{a}", 0), text(version_of(2)), on="b1"),
    Step("other state version", 322, who("b1", "{a}", 0), text(version_of(1, 4)), on="b1"),
    Step("data version, other cluster", 322, who("b1", "{a}", 0, "two"), text(version_of(1)), on="b1"),
    Step("data version without body", 322, who("b1", "{a}", 0), on="b1"),
    Step("heartbeat", 904, who("b1", "{a}", 0), on="b1", since=5),
    Step(
        "heartbeat without id", 904, {"clusterName": "one", "brokerAddr": "{a}", "brokerName": "b1"}, since=5
    ),
]
ADDRESSES = [
    register("another broker name", "m1", "{c}", 0, body(1, T1, T2), on="m1"),
    register("same address under another id", "m1", "{c}", 2, body(1, T1, T2), on="m1"),
    Step("cluster info after the id changed", 106),
    register("another address for that id", "m1", "10.0.0.22:1", 2, body(5, T1, T2, state=3), on="m1b"),
    register(
        "the first address with a smaller state version", "m1", "{c}", 2, body(5, T1, T2, state=1), on="m1"
    ),
    Step("cluster info after the conflict", 106),
    Step("data version after the conflict", 322, who("m1", "{c}", 2), text(version_of(5, 1))),
    register("an empty master", "m1", "{c}", 0, body(1), on="m1"),
    register("same address, other cluster", "m1", "{c}", 0, body(1), on="m1", cluster="two"),
    Step("cluster info of two clusters", 106),
    Step("m1 leaves", 104, who("m1", "{c}", 0), on="m1"),
    Step("m1 leaves cluster two", 104, who("m1", "{c}", 0, "two"), on="m1"),
    Step("slave of m1 leaves, named with a wrong id", 104, who("m1", "10.0.0.22:1", 7), on="m1b"),
    Step("cluster info after leaving", 106),
    Step("connection of m1 ends", on="m1", close=True),
    Step("connection of m1b ends", on="m1b", close=True),
    Step("cluster info after the connections", 106),
]
PERMISSIONS = [
    Step("wipe write permission", 205, {"brokerName": "b1"}),
    route("route after the wipe", "T1"),
    Step("wipe of an unknown broker", 205, {"brokerName": "nobody"}),
    register("registration after the wipe, same version", "b1", "{a}", 0, body(1, T1, T2), on="b1"),
    route("route after that registration", "T1"),
    Step("add write permission", 327, {"brokerName": "b1"}),
    route("route after adding", "T1"),
    Step("add for an unknown broker", 327, {"brokerName": "nobody"}),
    Step("add without a name", 327, {}),
]
TOPICS = [
    Step("topic of an unknown broker", 217, {"topic": "N1"},
         text({"queueDatas": [{"brokerName": "nobody", "perm": 6, "readQueueNums": 2, "writeQueueNums": 2}]}), since=5),
    route("its route", "N1"),
    Step("new topic", 217, {"topic": "N1"},
         text({"queueDatas": [{"brokerName": "b1", "perm": 6, "readQueueNums": 2, "writeQueueNums": 2,
                               "topicSysFlag": 3}]}), since=5),
    route("its route", "N1"),
    Step("known topic, one broker unknown", 217, {"topic": "N1"},
         text({"queueDatas": [{"brokerName": "b3", "perm": 4, "readQueueNums": 1, "writeQueueNums": 1,
                               "topicSysFlag": 3},
                              {"brokerName": "nobody", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}]}), since=5),
    route("its route", "N1"),
    Step("topic without queues", 217, {"topic": "N2"}, text({"queueDatas": []}), since=5),
    Step("topic without body", 217, {"topic": "N2"}, since=5),
    Step("delete of a cluster's topic, unknown cluster", 216, {"topic": "T1", "clusterName": "nowhere"}),
    Step("delete of a cluster's topic", 216, {"topic": "T5", "clusterName": "one"}),
    route("its route", "T5"),
    Step("delete of a topic", 216, {"topic": "T1"}),
    route("its route", "T1"),
    Step("delete of an unknown topic", 216, {"topic": "T1"}),
    Step("delete without a topic", 216),
    register("registration brings it back", "b1", "{a}", 0, body(1, T1, T2), on="b1"),
    route("its route", "T1"),
    register("unit topics", "u1", "10.0.0.30:1", 0,
             body(1, topic("U1", flag=1), topic("U2", flag=2), topic("U3", flag=3)), on="u1"),
    Step("unit topics", 311),
    Step("unit subscriptions", 312),
    Step("unit subscriptions of ordinary topics", 313),
]  # fmt: skip
SETTINGS = [
    Step("value of an unknown key", 101, {"namespace": "n", "key": "k"}),
    Step("put", 100, {"namespace": "n", "key": "k", "value": "wörth"}),
    Step("value", 101, {"namespace": "n", "key": "k"}),
    Step("put without a key", 100, {"namespace": "n", "value": "v"}),
    Step("put without a value", 100, {"namespace": "n", "key": "empty"}),
    Step("value that was never given", 101, {"namespace": "n", "key": "empty"}),
    Step("list", 219, {"namespace": "n"}),
    Step("list of an unknown namespace", 219, {"namespace": "m"}),
    Step("delete", 102, {"namespace": "n", "key": "k"}),
    Step("delete again", 102, {"namespace": "n", "key": "k"}),
    Step("delete in an unknown namespace", 102, {"namespace": "m", "key": "k"}),
    Step("list after deleting", 219, {"namespace": "n"}),
    Step("delete the other", 102, {"namespace": "n", "key": "empty"}),
    Step("list of an emptied namespace", 219, {"namespace": "n"}),
    Step("value in an emptied namespace", 101, {"namespace": "n", "key": "k"}),
    Step("order configuration", 100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "b1:4;b3:4"}),
    route("order configuration is not shown", "T1"),
    register("order configuration goes to brokers", "b1", "{a}", 0, body(1, T1, T2), on="b1"),
    Step("show it", 318, body=b"orderMessageEnable=true\n"),
    route("order configuration is shown", "T1"),
    route("topic without one", "T2"),
    Step("no body", 318),
    Step("unknown key", 318, body=b"nonsense=1\n"),
    Step("forbidden key", 318, body=b"kvConfigPath=/tmp/x\n"),
    Step("forbidden key among others", 318, body=b"productEnvName=x\nconfigStorePath=/tmp/x\n"),
    Step("forbidden home", 318, body=b"rocketmqHome=/tmp/x\n", since=5),
    Step("forbidden list", 318, body=b"configBlackList=a\n", since=5),
    Step("unreadable body", 318, body=b"a=\\u12\n"),
    Step("unreadable value", 318, body=b"listenPort=many\n"),
    Step("hide topics of clusters", 318, body=b"enableTopicList=false\n", since=5),
    *(Step("hidden list", code, {"cluster": "one"}, since=5) for code in (224, 311, 312, 313)),
    Step("system topics are not hidden", 304, since=5),
    Step("hide all topics", 318, body=b"enableTopicList=true\nenableAllTopicList=false\n", since=5),
    Step("hidden list", 206, since=5),
    Step("cluster list is back", 224, {"cluster": "one"}, since=5),
    Step("do not return the order configuration", 318,
         body=b"returnOrderTopicConfigToBroker=false\nenableAllTopicList=true\n", since=5),
    register("no order configuration", "b1", "{a}", 0, body(1, T1, T2), on="b1", since=5),
    Step("not ready", 318, body=b"needWaitForService=true\nwaitSecondsForService=3600\n", since=5),
    route("route before the service is ready", "T1"),
    Step("ready", 318, body=b"needWaitForService=false\norderMessageEnable=false\n", since=5),
    Step("topics leave with a registration", 318, body=b"deleteTopicWithBrokerRegistration=true\n", since=5),
    register("registration without T2", "b1", "{a}", 0, body(2, T1), on="b1", since=5),
    route("T2 without b1", "T2"),
    Step("topics stay again", 318, body=b"deleteTopicWithBrokerRegistration=false\n", since=5),
    Step("settings", 319),
]  # fmt: skip
FILTERS = [
    register("filter servers", "b1", "{a}", 0, body(3, T1, T2, filters=("10.0.0.1:30", "10.0.0.1:31")), on="b1"),
    route("route with filter servers", "T1", V4_9_3),
    register("filter servers gone", "b1", "{a}", 0, body(3, T1, T2), on="b1"),
    route("route without", "T1"),
    register("queue mappings", "b1", "{a}", 0, body(4, T1, T2, topicQueueMappingInfoMap={"T1": MAPPING}), on="b1"),
    route("route with queue mappings", "T1"),
    route("the same for an old client", "T1", 0),
    register("names beyond ASCII", "brök", "10.0.0.40:1", 0, body(1, topic("Z1"), topic("Z2")), on="z",
             cluster="集群"),
    route("names beyond ASCII for a new client", "Z1"),
    route("names beyond ASCII for an old client", "Z1", 0),
    Step("cluster info beyond ASCII", 106),
]  # fmt: skip
ZONES = [
    register("zone of b10", "b10", "10.0.1.0:1", 0, body(1, topic("R1"), topic("R2")), on="r10",
             __ZONE_NAME="east"),
    register("zone of b11", "b11", "10.0.1.1:1", 0, body(1, topic("R1"), topic("R2")), on="r11",
             __ZONE_NAME="west"),
    register("b12 without zone", "b12", "10.0.1.2:1", 0,
             body(1, topic("R1"), topic("R2"), filters=("10.0.1.2:30",)), on="r12"),
    register("a slave alone in zone west", "b13", "10.0.1.3:1", 1, body(1, topic("R1"), topic("R2")), on="r13",
             enableActingMaster=True, __ZONE_NAME="west"),
    route("all zones", "R1"),
    route("zone named, mode off", "R1", __ZONE_NAME="east"),
    route("zone mode without a zone", "R1", zone=" "),
    route("one zone", "R1", zone="EAST"),
    route("an empty zone", "R1", zone="north"),
    Step("zones in the cluster info", 106),
    *(Step("end", on=name, close=True) for name in ("r10", "r11", "r12", "r13")),
]  # fmt: skip
ACTING = [
    Step("acting masters", 318, body=b"supportActingMaster=true\nnotifyMinBrokerIdChanged=true\n", since=5),
    register("slave 2 first", "act", "{e}", 2, body(1, T1, topic("A1")), on="act2", enableActingMaster=True, since=5),
    route("it stands in as master", "A1"),
    register("slave 1 comes", "act", "{f}", 1, body(1, T1, topic("A1")), on="act1", enableActingMaster=True, since=5),
    route("the smallest id stands in", "A1"),
    register("the master comes", "act", "{d}", 0, body(1, T1, topic("A1")), on="act0", enableActingMaster=True,
             heartbeatTimeoutMillis=10000, since=5),
    route("the master serves", "A1"),
    Step("the master leaves", 104, who("act", "{d}", 0), on="act0", since=5),
    route("the smallest id stands in again, not writable", "A1"),
    register("slave 1 says it again", "act", "{f}", 1, body(1, T1, topic("A1")), on="act1", enableActingMaster=True,
             since=5),
    Step("connection of slave 1 ends", on="act1", close=True, since=5),
    route("slave 2 stands in", "A1"),
    register("topic of the members", "act", "{e}", 2, body(2, T1, topic("rmq_sys_SYNC_BROKER_MEMBER_act")), on="act2",
             enableActingMaster=True, since=5),
    route("nobody stands in there", "rmq_sys_SYNC_BROKER_MEMBER_act"),
    register("a slave that takes no part", "act", "{e}", 2, body(3, T1, topic("A1")), on="act2", since=5),
    route("nobody stands in", "A1"),
    Step("no acting masters", 318, body=b"supportActingMaster=false\n", since=5),
    Step("end", on="act2", close=True, since=5),
]  # fmt: skip
ENDS = [
    Step("connection of the master ends", on="b1", close=True),
    route("only the slave is left", "T1"),
    Step("connection of the slave ends", on="b2", close=True),
    route("b1 is gone", "T1"),
    Step("b3 unregisters", 104, who("b3", "10.0.0.3:1", 0), on="b3"),
    Step("b3 unregisters again", 104, who("b3", "10.0.0.3:1", 0), on="b3"),
    route("T2 is gone", "T2"),
    Step("what is left", 106),
]
STEPS = (
    FRESH
    + REGISTRATION
    + VERSIONS
    + ADDRESSES
    + PERMISSIONS
    + TOPICS
    + SETTINGS
    + FILTERS
    + ZONES
    + ACTING
    + ENDS
)
