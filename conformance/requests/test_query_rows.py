"""Questions about messages, groups, clients and figures: ours answers each row as the official broker of the same line.

Compared are code, remark, header fields and body; times, ports, rates and the figures of a moment are masked, and what
Java keeps in hashed order is sorted. Where the official broker falls over the question and answers with the words of a
Java exception, only the code is compared.
"""

import difflib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.access.access_rows import Row
from conformance.examples.stored import stored
from conformance.official.servers import OfficialServer
from conformance.requests import query_rows
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply
from conformance.servers.server import Server

NOW_MS = re.compile(r"\b1[6-9]\d{11}\b")
PEER = re.compile(r"127\.0\.0\.1:\d{4,}")
AT_SOURCE = re.compile(r", (java\.base/|org\.apache\.|com\.alibaba)\S+\(\S+\)$")
RATE = re.compile(r"\b\d+\.\d+(E-?\d+)?\b")
MOMENT = re.compile(r'"(delayTime|sum)": -?\d+|"\w+Str": "[^"]*"')
FELL_OVER = re.compile(r"java\.\S+(Exception|Error)\b|Cannot invoke ")
RECORDS = (12, 33)
SIZE_ALONE = (60,)
"""Whose times are no text that can be masked."""
KEYS_ALONE = (28,)
"""Whose values are figures of the machine and of the moment."""


def read_json(text: str) -> object:
    """fastjson's dialect: whole objects, and numbers, as keys. Objects become sorted lists of pairs."""
    value, end = _value(text, 0)
    assert end == len(text), f"after the value: {text[end:]}"
    return value


def _value(text: str, at: int) -> tuple[object, int]:
    if text[at] == "[":
        items, at = [], at + 1
        while text[at] != "]":
            item, at = _value(text, at + (text[at] == ","))
            items.append(item)
        return sorted(items, key=repr), at + 1
    if text[at] == "{":
        pairs, at = [], at + 1
        while text[at] != "}":
            key, at = _value(text, at + (text[at] == ","))
            assert text[at] == ":"
            member, at = _value(text, at + 1)
            pairs.append((key, member))
        return {"object": sorted(pairs, key=repr)}, at + 1
    return json.JSONDecoder().raw_decode(text, at)


def plain(value: object) -> str:
    """What `read_json` made, as text again."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain(key)}: {plain(member)}" for key, member in value["object"]) + "}"
    return "[" + ", ".join(map(plain, value)) + "]" if isinstance(value, list) else json.dumps(value)


def told_body(code: int, body: bytes) -> str:
    if code in RECORDS:
        return "; ".join(
            str((m.topic, m.queue, m.offset, m.position, m.body, m.properties)) for m in stored(body)
        )
    if code in SIZE_ALONE:
        return f"{len(body)} bytes"
    text = body.decode()
    if not text.startswith(("{", "[")):
        return text
    if code in KEYS_ALONE:
        return str(sorted(json.loads(text)["table"]))
    return plain(read_json(text))


def masked(text: str) -> str:
    return MOMENT.sub("NOW", RATE.sub("RATE", NOW_MS.sub("TIME", PEER.sub("PEER", text))))


def told(server: Server, row: Row, reply: Reply, officially: Reply) -> str:
    question = f"{row.code} {row.fields} -> {reply.code}"
    if FELL_OVER.match(officially.remark):
        return question
    remark = AT_SOURCE.sub("", reply.remark)
    answer = f"{remark!r} {sorted(reply.fields.items())} {told_body(row.code, reply.body)}"
    return f"{question} {masked(answer.replace(str(server.store), 'STORE'))}"


def play(server: Server) -> list[Reply]:
    with server, RawClient(server) as client:
        query_rows.prepared(client)
        return [client.call_unless_busy(row.code, row.body, **row.fields) for row in query_rows.rows()]


@pytest.mark.parametrize("line", ["4.9", "5.5"])
def test_questions_are_answered_as_officially(peers: None, tmp_path: Path, line: str) -> None:
    ours = OurServer(tmp_path / "ours", emulate="4.9" if line == "4.9" else "5")
    with ThreadPoolExecutor() as pool:
        official = OfficialServer(line, tmp_path / "official")
        answers = list(zip(query_rows.rows(), *pool.map(play, (ours, official)), strict=True))
    mine = [told(ours, row, reply, officially) for row, reply, officially in answers]
    theirs = [told(official, row, officially, officially) for row, _, officially in answers]
    differences = "\n".join(difflib.unified_diff(theirs, mine, "official", "ours", lineterm="", n=0))
    assert not differences, differences
