"""What is compared of the answers to `query_rows.py`: code, remark, header fields and body.

Times, ports, rates and momentary figures are masked, and what Java keeps in hash order is sorted.
"""

import json
import re

from conformance.examples.stored import stored
from conformance.requests.transcripts import PEER, Row, remark_of
from conformance.servers.remoting import Reply

NOW_MS = re.compile(r"\b1[6-9]\d{11}\b")
RATE = re.compile(r"\b\d+\.\d+(E-?\d+)?\b")
MOMENT = re.compile(r'"(delayTime|sum)": -?\d+|"\w+Str": "[^"]*"')
RECORDS = (11, 12, 33, 361)
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
    """The result of `read_json`, as text again."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain(key)}: {plain(member)}" for key, member in value["object"]) + "}"
    return "[" + ", ".join(map(plain, value)) + "]" if isinstance(value, list) else json.dumps(value)


def body_text(code: int, body: bytes) -> str:
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


def shown(row: Row, reply: Reply) -> str:
    return masked(f"{remark_of(reply)!r} {sorted(reply.fields.items())} {body_text(row.code, reply.body)}")
