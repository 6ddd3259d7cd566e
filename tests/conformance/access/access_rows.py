"""Requests of several users to a protected broker: rows for a transcript.

A row is a request as one user sends it: with that user's key, with an unknown key, with a wrong signature, or
with none.
"""

import json
from collections.abc import Iterator, Mapping

from conformance.requests.transcripts import Row, remark_of
from conformance.servers.raw_client import RawClient, pull_fields, topic_fields
from conformance.servers.remoting import Reply

PLAIN_ACL = """\
globalWhiteRemoteAddresses: []
accounts:
  - accessKey: adminadmin
    secretKey: 12345678
    whiteRemoteAddress:
    admin: true
  - accessKey: normalnormal
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - readable=SUB
      - writable=PUB
      - both=PUB|SUB
      - denied=DENY
    groupPerms:
      - good_group=SUB
      - bad_group=DENY
  - accessKey: trustedhost
    secretKey: 12345678
    whiteRemoteAddress: 127.0.0.*
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
"""

_AUTH = "org.apache.rocketmq.auth"
AUTH_SETTINGS: dict[str, object] = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
    "initAuthenticationUser": '{"username":"root","password":"rootpassword"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"innerpassword"}',
}


def shown(row: Row, reply: Reply) -> str:
    """Bodies only of requests about users and rights; others are compared elsewhere."""
    if row.code == 11 and reply.code in (0, 19):
        return "may read"
    return f"{remark_of(reply)!r} {reply.body.decode() if 3000 <= row.code <= 3010 else ''}"


# -- requests


Who = tuple[str, str | None] | None


def _send(who: Who, topic: str) -> Row:
    fields: dict[str, object] = {"a": "p", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1}
    return Row(who, 310, {**fields, "h": 0, "i": "", "j": 0, "k": False, "l": 0, "m": False}, b"hello")


def _pull(who: Who, topic: str, group: str) -> Row:
    return Row(who, 11, pull_fields(group, topic, maxMsgNums=1))


def _heartbeat(who: Who, group: str, *topics: str) -> Row:
    subscription = {"topic": "", "subString": "*", "subVersion": 1, "tagsSet": [], "codeSet": []}
    consumer: dict[str, object] = {"groupName": group, "consumeType": "CONSUME_PASSIVELY"}
    consumer |= {"messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET"}
    consumer |= {"unitMode": False, "subscriptionDataSet": [{**subscription, "topic": one} for one in topics]}
    body = {"clientID": "c1", "producerDataSet": [], "consumerDataSet": [consumer]}
    return Row(who, 34, {"x": "y"}, json.dumps(body).encode())


def _topic(who: Who, topic: str) -> Row:
    return Row(who, 17, topic_fields(topic, 1))


def _key(secret: str, key: str = "freshkey", **permissions: object) -> Row:
    """50: an account is made or changed."""
    fields = {"admin": False, "whiteRemoteAddress": "", "defaultTopicPerm": "PUB", "defaultGroupPerm": "DENY"}
    return Row(ADMIN, 50, {"accessKey": key, "secretKey": secret, **permissions, **fields})


TOPICS = ("readable", "writable", "both", "denied", "other")
GROUPS = ("good_group", "bad_group", "any_group")
ADMIN = ("adminadmin", "12345678")
DENIED_KEY: dict[str, object] = {"topic": "denied", "key": "k", "maxNum": 1, "beginTimestamp": 0}
DENIED_KEY |= {"endTimestamp": 9}


def plain_acl_rows() -> Iterator[Row]:
    """For a broker of the 4.9 line with `PLAIN_ACL`."""
    admin, normal = ADMIN, ("normalnormal", "12345678")
    trusted = ("trustedhost", None)
    yield from (_topic(admin, topic) for topic in TOPICS)
    for who in (None, ("nobodyatall", "12345678"), ("normalnormal", "wrongsecret"), ("normalnormal", None)):
        yield _send(who, "writable")
    yield _topic(normal, "mine")
    yield _topic(trusted, "theirs")
    for who in (normal, admin):
        for topic in TOPICS:
            yield _send(who, topic)
            yield from (_pull(who, topic, group) for group in GROUPS)
        for group in GROUPS:
            yield _send(who, f"%RETRY%{group}")
            yield _heartbeat(who, group, "readable", f"%RETRY%{group}")
            yield Row(who, 38, {"consumerGroup": group})
            yield Row(who, 35, {"clientID": "c1", "consumerGroup": group})
            for topic in ("readable", "denied"):
                commit = {"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 0}
                yield Row(who, 15, commit)
        yield _heartbeat(who, "good_group", "denied")
        yield Row(who, 12, DENIED_KEY)
        yield Row(who, 200, {}, b'{"groupName":"made_group"}')
        yield Row(who, 207, {"groupName": "made_group"})
        yield Row(who, 25, {}, b"fileReservedTime=70\n")
        yield Row(who, 26)
        yield Row(who, 30, {"topic": "denied", "queueId": 0})
    yield _key("freshsecret")
    fresh = ("freshkey", "freshsecret")
    yield _send(fresh, "other")
    yield _pull(fresh, "other", "any_group")
    yield _key("othersecret", topicPerms="other=SUB")
    yield _send(fresh, "other")
    yield _send(("freshkey", "othersecret"), "other")
    yield _key("othersecret", "short")
    yield _key("othersecret", "freshkey2", topicPerms="other")
    yield _key("othersecret", "freshkey2", topicPerms="a=READ")
    yield Row(admin, 51, {"accessKey": "freshkey"})
    yield _send(("freshkey", "othersecret"), "other")
    yield Row(admin, 51, {"accessKey": "freshkey"})
    yield Row(admin, 53, {"globalWhiteAddrs": "10.0.0.*,127.0.0.1", "aclFileFullPath": ""})


ROOT = ("root", "rootpassword")
ALICE = ("alice", "alicepassword")
BOB = ("bob", "bobpassword")


def user_rows() -> Iterator[Row]:
    """For a broker of 5.x with `AUTH_SETTINGS`."""
    yield from _users_made()
    yield from _rights_given()
    yield from _rights_used()
    yield from _rights_taken()


def _user(name: str, code: int = 3001, who: Who = ROOT, **info: object) -> Row:
    return Row(who, code, {"username": name}, json.dumps(info).encode())


def _acl(subject: str, *entries: dict[str, object], code: int = 3006, kind: str | None = None) -> Row:
    policy: dict[str, object] = {"entries": list(entries)}
    if kind is not None:
        policy["policyType"] = kind
    return Row(ROOT, code, {"subject": subject}, json.dumps({"policies": [policy]}).encode())


def _entry(
    resource: str, *actions: str, decision: str = "Allow", ips: tuple[str, ...] = ()
) -> dict[str, object]:
    made: dict[str, object] = {"resource": resource, "actions": list(actions), "decision": decision}
    if ips:
        made["sourceIps"] = list(ips)
    return made


def _users_made() -> Iterator[Row]:
    for who in (None, ("stranger", "12345678"), ("root", "wrong"), ("root", None), ("", "x")):
        yield _send(who, "writable")
        yield Row(who, 28)
        yield Row(who, 3004, {"username": "root"})
    yield _user("alice", password="alicepassword")
    yield _user("alice", password="alicepassword")
    yield _user("bob", password="")
    yield _user("bob")
    yield _user("", password="x")
    yield _user("bob", password="bobpassword", userType="Super", userStatus="enable")
    yield _user("carol", password="carolpassword", userType="Nonsense", userStatus="disable")
    yield _send(("carol", "carolpassword"), "writable")
    yield _user("carol", 3002, userStatus="enable")
    yield _user("nobody", 3002, password="x")
    yield _user("carol", 3002, password="newpassword")
    yield Row(("carol", "newpassword"), 28)
    yield Row(ROOT, 3004, {"username": "alice"})
    yield Row(ROOT, 3004, {"username": "nobody"})
    yield Row(ROOT, 3004, {"username": " "})
    yield Row(ROOT, 3005, {"filter": "nobodylikethis"})
    yield Row(ROOT, 3005, {"filter": "alic"})
    yield _user("eve", who=ALICE, password="evepassword")


def _rights_given() -> Iterator[Row]:
    yield _acl("User:alice", _entry("Topic:writable", "Pub"))
    yield _acl("User:alice", _entry("Topic:both", "Pub", "Sub"), _entry("Group:good_group", "Sub"))
    yield _acl("User:alice", _entry("Topic:read*", "All"), _entry("Topic:readable", "Pub", decision="Deny"))
    yield _acl("User:alice", _entry("Topic:elsewhere", "Pub", ips=("10.0.0.0/8", "192.168.1.1")))
    yield _acl("User:alice", _entry("Topic:here", "Pub", ips=("127.0.0.0/24",)))
    yield _acl("User:alice", _entry("Cluster:*", "Get"))
    yield _acl("User:alice", _entry("Topic:*", "Get"), _entry("Group:*", "List"), kind="Default")
    for bad in (
        _entry("Topic:a", "Any"),
        _entry("Topic:a"),
        _entry("Nonsense:a", "Pub"),
        _entry("", "Pub"),
        _entry("Topic:a", "Nonsense"),
        _entry("Topic:a", "Pub", decision="Maybe"),
        _entry("Topic:a", "Pub", ips=("nowhere",)),
    ):
        yield _acl("User:carol", bad)
    yield _acl("User:nobody", _entry("Topic:a", "Pub"))
    yield _acl("Nobody", _entry("Topic:a", "Pub"))
    yield _acl("User:carol")
    yield Row(ROOT, 3006, {"subject": "User:carol"}, b"{}")
    yield Row(ROOT, 3009, {"subject": "User:alice"})
    yield Row(ROOT, 3009, {"subject": "User:carol"})
    yield Row(ROOT, 3009, {"subject": "User:nobody"})
    yield Row(ROOT, 3010, {"subjectFilter": "ali", "resourceFilter": "writable"})
    yield Row(ROOT, 3010, {"subjectFilter": "nobody", "resourceFilter": ""})


def _rights_used() -> Iterator[Row]:
    for topic in (*TOPICS, "elsewhere", "here"):
        yield _topic(ROOT, topic)
        yield _topic(ALICE, topic)
    for who in (ALICE, BOB):
        for topic in (*TOPICS, "elsewhere", "here"):
            yield _send(who, topic)
            yield _pull(who, topic, "good_group")
        yield _pull(who, "both", "bad_group")
        yield _heartbeat(who, "good_group", "both")
        yield _heartbeat(who, "good_group", "other")
        yield _heartbeat(who, "bad_group", "both")
        # In this order: without a stored offset the answer waits for the message's dispatch.
        for code in (15, 14):
            offsets = {"consumerGroup": "good_group", "topic": "both", "queueId": 0, "commitOffset": 0}
            yield Row(who, code, offsets)
        yield Row(who, 38, {"consumerGroup": "good_group"})
        yield Row(who, 35, {"clientID": "c1", "consumerGroup": "bad_group"})
        yield Row(who, 12, DENIED_KEY)
        yield Row(who, 30, {"topic": "other", "queueId": 0, "committed": True})
        yield Row(who, 202, {"topic": "other"})
        yield Row(who, 208, {"consumerGroup": "good_group", "topic": "other"})
        yield Row(who, 203, {"consumerGroup": "good_group"})
        yield Row(who, 200, {}, b'{"groupName":"made_group"}')
        yield Row(who, 207, {"groupName": "made_group", "cleanOffset": True})
        yield Row(who, 215, {"topic": "other"})
        yield Row(who, 25, {}, b"fileReservedTime=70\n")
        yield Row(who, 26)
        yield Row(who, 28)
        yield Row(who, 315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "no"})
        yield Row(who, 3004, {"username": "alice"})
        yield Row(who, 9999)


def _rights_taken() -> Iterator[Row]:
    yield _acl("User:alice", _entry("Topic:writable", "Sub"), code=3007)
    yield _send(ALICE, "writable")
    yield Row(ROOT, 3008, {"subject": "User:alice", "policyType": "Custom", "resource": "Topic:both"})
    yield _send(ALICE, "both")
    yield Row(ROOT, 3008, {"subject": "User:alice", "resource": "Topic:notthere"})
    yield Row(ROOT, 3009, {"subject": "User:alice"})
    yield Row(ROOT, 3008, {"subject": "User:alice"})
    yield Row(ROOT, 3009, {"subject": "User:alice"})
    yield Row(ROOT, 3008, {"subject": "User:alice"})
    yield Row(ROOT, 3008, {"subject": "User:nobody"})
    yield Row(BOB, 3003, {"username": "carol"})
    yield Row(ROOT, 3003, {"username": "nobody"})
    yield Row(ROOT, 3003, {"username": ""})
    yield Row(ROOT, 3003, {"username": "alice"})
    yield _send(ALICE, "writable")


class SigningClient(RawClient):
    """Signs as the first user, who may do all."""

    def call(self, code: int, body: bytes = b"", **fields: object) -> Reply:
        signed: Mapping[str, str] = Row(ROOT, code, dict(fields), body).signed_fields()
        return super().call(code, body, **signed)

    def make_user(self, name: str, password: str) -> None:
        user = {"username": name, "password": password, "userType": "Normal"}
        assert self.call(3001, json.dumps(user).encode(), username=name).code == 0

    def allow(self, user: str, *resources: str) -> None:
        """To send to and to consume of them."""
        entries = [_entry(resource, "Pub", "Sub") for resource in resources]
        rights = json.dumps({"policies": [{"entries": entries}]}).encode()
        assert self.call(3006, rights, subject=f"User:{user}").code == 0
