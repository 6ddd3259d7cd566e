"""How `pocketmq tail` prints a message: as a line, its body alone, in full, or as JSON.

text   Orders queue 0 offset 12: the body as text, on one line: a line feed is shown as \\n
body   the bytes of the body, and a line end
full   the line, and below it times, ids and properties
json   one object a line, with the names of the HTTP port; `text` is null for a body that is not UTF-8
"""

import base64
from collections.abc import Callable
from typing import Any, Final

import orjson
from pocketmq.client import MessageExt

from ..mistakes import printable
from ..times import local_time


def text_form(message: MessageExt) -> bytes:
    """One line, which a terminal only shows; bytes that are not UTF-8 become U+FFFD."""
    body = printable(message.body.decode("utf-8", "replace"))
    return f"{message.topic} queue {message.queue_id} offset {message.queue_offset}: {body}\n".encode()


def body_form(message: MessageExt) -> bytes:
    """The body as it is."""
    return message.body + b"\n"


def full_form(message: MessageExt) -> bytes:
    """All of a message, for people."""
    rows = [
        ("id", message.message_id),
        ("born", f"{local_time(message.born_timestamp)} at {message.born_host}"),
        ("stored", f"{local_time(message.store_timestamp)} at {message.store_host}"),
    ]
    if message.reconsume_times:
        rows.append(("reconsume times", str(message.reconsume_times)))
    if message.flag:
        rows.append(("flag", str(message.flag)))
    rows += sorted(message.properties.items())
    lines = "".join(f"    {printable(name)}: {printable(value or '')}\n" for name, value in rows)
    return text_form(message) + lines.encode("utf-8", "replace")


def json_form(message: MessageExt) -> bytes:
    """All of a message, for programs."""
    seen: dict[str, Any] = {
        "topic": message.topic,
        "broker_name": message.broker_name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "message_id": message.message_id,
        "offset_message_id": message.offset_message_id,
        "tags": message.tags,
        "keys": message.keys,
        "flag": message.flag,
        "born_timestamp": message.born_timestamp,
        "born_host": message.born_host,
        "store_timestamp": message.store_timestamp,
        "store_host": message.store_host,
        "reconsume_times": message.reconsume_times,
        "properties": message.properties,
        "text": _utf8(message.body),
        "body_base64": base64.b64encode(message.body).decode(),
    }
    return orjson.dumps(seen) + b"\n"


def _utf8(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


FORMS: Final[dict[str, Callable[[MessageExt], bytes]]] = {
    "text": text_form,
    "body": body_form,
    "full": full_form,
    "json": json_form,
}
"""Value of `--output` -> form."""
