"""Who may send what: all request codes, as several identities, about several resources, and whether access control lets
each pass.

`recorded/decisions_49.txt` and `decisions_55.txt` are the official brokers' answers, a line for each code:

    17 granted ------++ other -------+ cluster -------+ none ++++++++

The columns are `identities(line)` in their order: `+` the request got past access control, `-` it was refused. Each
request is about a topic and a group on which `reader` and `writer` have rights (`granted`), about others (`other`),
about neither (`cluster`), or it has no fields but the signature (`none`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from pocketmq.broker import handler_modules
from pocketmq.broker.network.dispatch import BROKER
from pocketmq.protocol.requests.names import request_codes

from conformance.access.access_rows import AUTH_SETTINGS
from conformance.requests.transcripts import Row
from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply
from conformance.servers.server import Server

assert handler_modules.HANDLER_MODULES, "imported to fill the table of what is served"

RECORDED: Final = Path(__file__).parent / "recorded"
Who = tuple[str, str | None] | None
ROOT: Final[Who] = ("rootuser", "rootpassword")
IDENTITIES: Final[dict[str, Who]] = {
    "nobody": None,
    "stranger": ("stranger", "12345678"),
    "wrong signature": ("rootuser", "wrongpassword"),
    "disabled": ("disabled", "12345678"),
    "no rights": ("norights", "12345678"),
    "reader": ("readerkey", "12345678"),
    "writer": ("writerkey", "12345678"),
    "super": ROOT,
}
RESOURCES: Final = {"granted": ("T", "G"), "other": ("X", "Y"), "cluster": (None, None), "none": (None, None)}
"""Topic and group of each."""
ANSWER_SECONDS: Final = 3
CODES: Final = sorted({*request_codes().values(), *BROKER.table})
PLAIN_ACL: Final = """\
globalWhiteRemoteAddresses: []
accounts:
  - {accessKey: rootuser, secretKey: rootpassword, admin: true}
  - {accessKey: norights, secretKey: 12345678, admin: false, defaultTopicPerm: DENY, defaultGroupPerm: DENY}
  - accessKey: readerkey
    secretKey: 12345678
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms: [T=SUB]
    groupPerms: [G=SUB]
  - accessKey: writerkey
    secretKey: 12345678
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms: [T=PUB]
    groupPerms: [G=PUB]
"""
SETTINGS: Final[dict[str, dict[str, object]]] = {
    "4.9": {"aclEnable": True},
    "5.5": {**AUTH_SETTINGS, "initAuthenticationUser": '{"username":"rootuser","password":"rootpassword"}'},
}
REFUSED: Final = re.compile(
    r"AclException|username cannot be null|is not found\.$|check signature failed|is disabled\.$"
    r"|has no permission to access|Authorization failed|parse authorization context error|:\S* not found\.$"
)
"""How each line says that access control refuses. Any other answer, and none, means that the request got past it."""
VALUES: Final = {
    "suspendTimeoutMillis": "0",
    "pollTime": "0",
    "maxMsgNums": "1",
    "commitOrRollback": "8",
    "expressionType": "TAG",
    "subscription": "*",
    "defaultTopic": "TBW102",
    "c": "TBW102",
    "clusterName": "DefaultCluster",
    "brokerClusterName": "DefaultCluster",
    "globalWhiteAddrs": "10.9.9.9",
    "accessKey": "freshkey",
    "secretKey": "freshsecret",
    "whiteRemoteAddress": "",
    "defaultTopicPerm": "DENY",
    "defaultGroupPerm": "DENY",
    "topicPerms": "",
    "groupPerms": "",
    "username": "somebody",
    "subject": "User:somebody",
    "properties": "",
    "i": "",
    "topicFilterType": "SINGLE_TAG",
    "perm": "6",
    "readQueueNums": "1",
    "writeQueueNums": "1",
}
"""Of header fields that are neither a topic nor a group."""
NAMED: Final = re.compile("topic|group", re.IGNORECASE)
"""Header fields that are sent although the request does not need them."""
QUEUE: Final = '{"topic":"TOPIC","brokerName":"broker-a","queueId":0}'
LOCK: Final = f'{{"consumerGroup":"GROUP","clientId":"c1","mqSet":[{QUEUE}]}}'
BODIES: Final = {
    34: '{"clientID":"c1","producerDataSet":[],"consumerDataSet":[{"groupName":"GROUP","consumeType":'
    '"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","unitMode":false,'
    '"subscriptionDataSet":[{"topic":"TOPIC","subString":"*","subVersion":1,"tagsSet":[],"codeSet":[]}]}]}',
    41: LOCK,
    42: LOCK,
    200: '{"groupName":"GROUP"}',
    3001: '{"password":"somepassword"}',
    3002: '{"password":"somepassword"}',
}


class Line(NamedTuple):
    """The decisions about one code: resource -> a sign for each identity."""

    code: int
    signs: dict[str, str]

    def __str__(self) -> str:
        return f"{self.code} " + " ".join(f"{name} {signs}" for name, signs in self.signs.items())


def identities(line: str) -> dict[str, Who]:
    """4.9 has no way to disable an access key."""
    return {name: who for name, who in IDENTITIES.items() if (line, name) != ("4.9", "disabled")}


def before_start(server: Server, line: str) -> None:
    if line == "4.9":
        for folder in (server.home / "conf", server.store / "conf"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "plain_acl.yml").write_text(PLAIN_ACL, encoding="utf-8")


def play(server: Server, line: str) -> list[Line]:
    """Start `server`, ask everything, close it."""
    before_start(server, line)
    found = []
    with server:
        client = _Client(server)
        if line == "5.5":
            for row in _users():
                reply = client.call(row)
                assert reply is not None, row
                assert reply.code == 0, (row, reply)
        for code in CODES:
            signs, asked = dict[str, str](), dict[object, str]()
            for resource, request in requests(code):
                if str(request) not in asked:  # many requests name neither a topic nor a group
                    rows = [Row(who, code, *request) for who in identities(line).values()]
                    asked[str(request)] = "".join(map(client.sign, rows))
                signs[resource] = asked[str(request)]
            found.append(Line(code, signs))
        client.close()
    return found


def requests(code: int) -> Iterator[tuple[str, tuple[dict[str, object], bytes]]]:
    """Fields and body for each resource."""
    declared = BROKER.table[code].request_type if code in BROKER.table else None
    names = _declared(declared)
    for resource, (topic, group) in RESOURCES.items():
        if resource == "none":
            fields: dict[str, object] = {}
        else:
            values = {name: _value(name, kind, topic, group) for name, kind in names.items()}
            fields = {name: value for name, value in values.items() if value is not None}
        body = BODIES.get(code, "").replace("TOPIC", topic or "T").replace("GROUP", group or "G")
        yield resource, (fields, body.encode())


def _declared(kind: type[Any] | None) -> dict[str, str]:
    """Header fields and their types. A request that we do not serve gets those that name something."""
    if kind is None:
        return {"topic": "str", "group": "str", "consumerGroup": "str"}
    return {
        one.encode_name: str(one.type)
        for one in msgspec.structs.fields(kind)
        if one.required or one.encode_name in VALUES or NAMED.search(one.encode_name)
    }


def _value(name: str, kind: str, topic: str | None, group: str | None) -> str | None:
    if name in VALUES:
        return VALUES[name]
    if "str" in kind and (name == "b" or "topic" in name.lower()):
        return topic
    if "str" in kind and (name == "a" or "group" in name.lower()):
        return group
    return "0" if "int" in kind else "false" if "bool" in kind else "1"


def _users() -> Iterator[Row]:
    for name in ("disabled", "norights", "readerkey", "writerkey"):
        info = {"password": "12345678", "userStatus": "disable" if name == "disabled" else "enable"}
        yield Row(ROOT, 3001, {"username": name}, json.dumps(info).encode())
    for name, actions in (
        ("readerkey", ("Sub", "Get", "List")),
        ("writerkey", ("Pub", "Create", "Update", "Delete")),
    ):
        entries = [
            {"resource": resource, "actions": list(actions), "decision": "Allow"}
            for resource in ("Topic:T", "Group:G", "Cluster:*")
        ]
        policy = {"policies": [{"entries": entries}]}
        yield Row(ROOT, 3006, {"subject": f"User:{name}"}, json.dumps(policy).encode())


class _Client:
    """Asks on one connection; a request that is not answered costs it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._raw = self._new()

    def _new(self) -> RawClient:
        client = RawClient(self._server)
        client.connection.settimeout(ANSWER_SECONDS)
        return client

    def close(self) -> None:
        self._raw.__exit__(None, None, None)

    def call(self, row: Row) -> Reply | None:
        try:
            return self._raw.call_unless_busy(row.code, row.body, **row.signed_fields())
        except (TimeoutError, ConnectionError, EOFError):
            self.close()
            self._raw = self._new()
            return None

    def sign(self, row: Row) -> str:
        reply = self.call(row)
        return "-" if reply is not None and REFUSED.search(reply.remark) else "+"


def recorded_file(line: str) -> Path:
    return RECORDED / f"decisions_{line.replace('.', '')}.txt"


def recorded(line: str) -> dict[int, Line]:
    found = {}
    for text in recorded_file(line).read_text(encoding="utf-8").splitlines():
        code, *words = text.split()
        found[int(code)] = Line(int(code), dict(zip(words[::2], words[1::2], strict=True)))
    return found
