"""How `pocketmq tail` prints a message: as a line, its body alone, in full, or as JSON.

text   Orders queue 0 offset 12: the body as text, on one line: a line feed is shown as \\n
body   the bytes of the body, and a line end
full   the line, and below it times, ids and properties
json   one object a line, that of the HTTP port; `text` is null for a body that is not UTF-8
"""

from collections.abc import Callable
from typing import Final

import msgspec
from pocketmq.client import MessageExt
from pocketmq.console.broker_values import message_value

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
    return msgspec.json.encode(message_value(message.record, message.broker_name, message.body)) + b"\n"


FORMS: Final[dict[str, Callable[[MessageExt], bytes]]] = {
    "text": text_form,
    "body": body_form,
    "full": full_form,
    "json": json_form,
}
"""Value of `--output` -> form."""
