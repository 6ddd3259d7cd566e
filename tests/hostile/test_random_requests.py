"""Wrong values in every field and every member of the body, for every served code.

Each request is answered, and none surprises the server: what it does not expect leaves a trace in its log, and these
tests look for traces. Random values are the same in every run by day; at night
they are new, and ten times as many. What the answers say is in `test_bad_requests.py`.
"""

import copy
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.broker import handler_modules as served
from pocketmq.broker.network.dispatch import BROKER, NAME_SERVER

from raw_peer import (
    PULL_MESSAGE,
    Peer,
    Reply,
    ServedProcess,
    registration_fields,
    request,
)

assert served.HANDLER_MODULES, "imported to fill the tables of what is served"

LITE_PULL, POP, NOTIFICATION, END_TRANSACTION = 361, 200050, 200054, 37
MAY_WAIT = (PULL_MESSAGE, LITE_PULL, POP, NOTIFICATION, END_TRANSACTION)
MARKER_OPAQUE, FUZZ_OPAQUE = 1_000_001, 1_000_002


# -- bodies that are right except for one member

BODIES = """
18 {"topicConfigList": [{"topicName": "L", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "order": false}]}
34 {"clientID": "c", "heartbeatFingerprint": 0, "withoutSub": false, "producerDataSet": [{"groupName": "p"}],
    "consumerDataSet": [{"groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "unitMode": false, "subscriptionDataSet": [
        {"topic": "TopicTest", "subString": "a", "tagsSet": ["a"], "codeSet": [97], "subVersion": 1}]}]}
41 {"consumerGroup": "g", "clientId": "c", "onlyThisBroker": false,
    "mqSet": [{"topic": "TopicTest", "brokerName": "broker-a", "queueId": 0}]}
46 {"clientId": "c", "group": "g", "namespace": "",
    "subscriptionData": {"topic": "TopicTest", "subString": "*", "expressionType": "TAG", "codeSet": []}}
103 {"filterServerList": [], "topicConfigSerializeWrapper": {
    "dataVersion": {"counter": 1, "timestamp": 1, "stateVersion": 0}, "topicConfigTable": {
    "R": {"topicName": "R", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "attributes": {"a": "b"}},
    "S": {"topicName": "S", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": 0}},
    "topicQueueMappingInfoMap": {"R": {"topic": "R", "totalQueues": 1, "bname": "b", "currIdMap": {"0": 0}}}}}
200 {"groupName": "g", "consumeEnable": true, "retryQueueNums": 1, "retryMaxTimes": 3,
    "groupRetryPolicy": {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1, 2]}},
    "attributes": {"+lite.sub.model": "x"}, "subscriptionDataSet": [{"topic": "t", "expression": "*"}]}
217 {"brokerDatas": [], "queueDatas": [{"brokerName": "b", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}]}
322 {"counter": 1, "timestamp": 1, "stateVersion": 0}
"""
VALID_BODIES: dict[int, Any] = {
    int(code): json.loads(text) for code, text in re.findall(r"^(\d+) (.*(?:\n .*)*)", BODIES, re.MULTILINE)
}
VALID_BODIES[42] = VALID_BODIES[41]
VALID_BODIES[225] = {"groupConfigList": [VALID_BODIES[200]]}
REGISTRATION = registration_fields("b")
FIELDS: dict[int, dict[str, object]] = {103: REGISTRATION, 217: {"topic": "R"}, 322: REGISTRATION}
ODD: tuple[Any, ...] = (
    *(None, True, -1, 2**31, 2**70, 1.5, "", "\u0000/..", [], [None]),
    *({}, {"x": {}}, {"$ref": "$"}, {"$ref": "@"}),
)


def variants(tree: Any) -> Iterator[Any]:
    """The tree with one part replaced by each odd value, or removed; parts from the root to the leaves."""
    yield from ODD
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, member in list(members):
        for other in variants(member):
            changed = copy.copy(tree)
            changed[key] = other
            yield changed
        less = copy.copy(tree)
        del less[key]
        yield less


@pytest.mark.parametrize("code", sorted(VALID_BODIES))
def test_no_wrong_member_of_a_body_surprises_the_server(served: ServedProcess, code: int) -> None:
    port = served.broker_port if code in BROKER.table else served.namesrv_port
    with Peer(port) as peer, served.no_surprise():
        for body in variants(VALID_BODIES[code]):
            peer.call(code, FIELDS.get(code), json.dumps(body).encode())
        assert peer.call(code, FIELDS.get(code), json.dumps(VALID_BODIES[code]).encode()).code in (0, 1, 29)


# -- every served code

NAMES = [
    "TopicTest",
    "raw",
    "",
    " ",
    "../../x",
    "a/b",
    "%RETRY%raw",
    "%DLQ%raw",
    "x" * 300,
    "\0",
    "Ünï",
    "TBW102",
]
NUMBERS = ["0", "1", "4", "-1", "32", "2147483647", "-2147483648", "2147483648", "9223372036854775807", "1e3"]
JUNK = ["", "x", "null", "1.5", "99999999999999999999999", "true", "\u0663", "{", "-", "0x10", "NaN"]
texts = st.sampled_from(NAMES) | st.sampled_from(NUMBERS) | st.sampled_from(JUNK)
leaves = st.sampled_from(
    [None, True, 0, -1, 5, 2**70, 1.5, 1e308, "", "x", "TopicTest", [], {}, [None], {"a": None}]
)
MEMBERS = (
    "clientID clientId consumerGroup groupName mqSet topic queueId brokerName attributes consumerDataSet "
    "producerDataSet subscriptionDataSet subscriptionData topicConfigList groupConfigList queueDatas tagsSet codeSet "
    "topicConfigSerializeWrapper topicConfigTable dataVersion filterServerList subString readQueueNums perm $ref"
)
members = st.sampled_from(MEMBERS.split())
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(members, inner, max_size=5),
    max_leaves=12,
)
NO_BODIES = [
    b"",
    b"\0",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"x"',
    b"\xff\xfe",
    b"[" * 5000,
    b"{" * 5000,
    b'{"a":' * 5000,
]
bodies = (
    st.sampled_from(NO_BODIES) | trees.map(lambda tree: json.dumps(tree).encode()) | st.binary(max_size=64)
)


def fields_of(request_type: type[msgspec.Struct]) -> st.SearchStrategy[dict[str, str]]:
    """Header fields that are mostly plausible, so that requests get past the first check too: up to three of them are
    nonsense, or are missing although they are required."""

    def likely(kind: object) -> st.SearchStrategy[str]:
        words = NUMBERS[:5] if "int" in str(kind) else ["true", "false"] if "bool" in str(kind) else NAMES[:2]
        return st.sampled_from(words)

    declared = msgspec.structs.fields(request_type)
    plausible = st.fixed_dictionaries(
        {one.encode_name: likely(one.type) for one in declared if one.required},
        optional={one.encode_name: likely(one.type) for one in declared if not one.required},
    )
    if not declared:
        return plausible
    changes = st.dictionaries(
        st.sampled_from([one.encode_name for one in declared]), st.none() | texts, max_size=3
    )
    return st.builds(_changed, plausible, changes)


def _changed(fields: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in {**fields, **changes}.items() if text is not None}


def ask(peer: Peer, code: int, fields: dict[str, str], body: bytes, *, may_wait: bool) -> Reply | None:
    """The answer to one request; a second request follows, whose answer shows that the server still serves."""
    peer.say(request(code, fields, body, opaque=FUZZ_OPAQUE))
    peer.say(request(28 if may_wait else 3333, opaque=MARKER_OPAQUE))
    answers: dict[int, Reply] = {}
    while MARKER_OPAQUE not in answers or not (may_wait or FUZZ_OPAQUE in answers):
        reply = peer.hear()
        assert reply is not None, f"closed on {code} {fields} {body!r}"
        answers[reply.opaque] = reply
    return answers.get(FUZZ_OPAQUE)


NIGHTLY = "POCKETMQ_NIGHTLY" in os.environ
fuzzed = settings(
    max_examples=300 if NIGHTLY else 30,
    deadline=None,
    derandomize=not NIGHTLY,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("code", sorted(BROKER.table))
def test_no_request_to_the_broker_surprises_it(served: ServedProcess, broker: Peer, code: int) -> None:
    @fuzzed
    @given(fields=fields_of(BROKER.table[code].request_type), body=bodies)
    def fuzz(fields: dict[str, str], body: bytes) -> None:
        with served.no_surprise():
            ask(broker, code, fields, body, may_wait=code in MAY_WAIT)

    fuzz()


@pytest.mark.parametrize("code", sorted(NAME_SERVER.table))
def test_no_request_to_the_name_server_surprises_it(served: ServedProcess, code: int) -> None:
    @fuzzed
    @given(fields=fields_of(NAME_SERVER.table[code].request_type), body=bodies)
    def fuzz(fields: dict[str, str], body: bytes) -> None:
        # A connection each: the name server may drop the connection of a silent registered broker.
        with served.no_surprise(), served.name_server() as name_server:
            ask(name_server, code, fields, body, may_wait=False)

    fuzz()
