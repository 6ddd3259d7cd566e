"""Runs the tests of the client on an existing server; `POCKETMQ_TEST_NAMESRV` is the address of its name server, and
`POCKETMQ_TEST_CERTIFICATES` is set if it shows and checks those of `tests/client/certificates`.

Every test begins on an empty server: before each test the topics, groups and offsets of the last one are deleted.
Tests that use a `node` need our server in the same process and are left out. `conformance/clients/test_client_suite.py`
runs the suite this way on the official servers.
"""

import json
import os
import re
import time

from raw_peer import GET_CLUSTER_INFO, GET_MAX_OFFSET, Peer

NAMESRV_ADDR = os.environ.get("POCKETMQ_TEST_NAMESRV", "")
CHECKS_CERTIFICATES = bool(os.environ.get("POCKETMQ_TEST_CERTIFICATES"))
ALL_TOPICS, ALL_GROUPS = 21, 201
DELETE_AT_BROKER, DELETE_AT_NAME_SERVER, DELETE_GROUP = 215, 216, 207
DELAY_OFFSETS, DELAY_LEVELS, DELAYS_END_SECONDS = 45, (1, 2, 3), 12.0
BUILT_IN_GROUPS = ("CID_", "TOOLS_CONSUMER", "SELF_TEST", "FILTERSRV_CONSUMER", "__")


def empty(namesrv_addr: str) -> None:
    """Delete every topic and group that a test made."""
    with Peer(int(namesrv_addr.rpartition(":")[2])) as name_server:
        cluster = name_server.call(GET_CLUSTER_INFO).body.decode()
        port = int(cluster.partition("127.0.0.1:")[2].partition('"')[0])
        with Peer(port) as broker:
            _wait_for_delayed_messages(broker)
            groups = json.loads(broker.call(ALL_GROUPS).body)["subscriptionGroupTable"]
            for group in groups:
                if not group.startswith(BUILT_IN_GROUPS):
                    broker.call(DELETE_GROUP, {"groupName": group, "cleanOffset": True, "removeOffset": True})
            for topic in json.loads(broker.call(ALL_TOPICS).body)["topicConfigTable"]:
                if not _is_built_in(topic):
                    broker.call(DELETE_AT_BROKER, {"topic": topic})
                    name_server.call(DELETE_AT_NAME_SERVER, {"topic": topic})


def _wait_for_delayed_messages(broker: Peer) -> None:
    """A message that the last test delayed by up to ten seconds (a first retry) would arrive during this test."""
    deadline = time.monotonic() + DELAYS_END_SECONDS
    while time.monotonic() < deadline:
        # Official brokers write numbers as keys, without quotes.
        delivered = dict(re.findall(rb'"?(\d+)"?:(\d+)', broker.call(DELAY_OFFSETS).body))
        places = [{"topic": "SCHEDULE_TOPIC_XXXX", "queueId": level - 1} for level in DELAY_LEVELS]
        stored = [int(broker.call(GET_MAX_OFFSET, place).fields["offset"]) for place in places]
        sent = [int(delivered.get(b"%d" % level, 0)) for level in DELAY_LEVELS]
        if all(end <= count for end, count in zip(stored, sent, strict=True)):
            return
        time.sleep(0.1)


def _is_built_in(topic: str) -> bool:
    names = ("TBW102", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "SCHEDULE_TOPIC_XXXX")
    names += ("BenchmarkTest", "broker-a")
    prefixes = ("RMQ_SYS", "rmq_sys", "TRANS_CHECK", "DefaultCluster")
    return topic in names or topic.startswith(prefixes)
