"""mqadmin 5.5.0's commands to an official 5.5.0 broker, and what it printed: `pocketmq admin` is compared every day.

Raw frames prepare the broker's content, so only recording needs Java:

    PYTHONPATH=tests python -m conformance.recorders.record_mqadmin

Each answer is compared after `settled` and its mask, with its lines in any order: Java prints sets and maps as its hash
tables hold them. `test_admin_commands.py` compares the commands that need clients online, side by side.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from conformance.admin.admin_masks import in_any_order
from conformance.admin.admin_shells import MADE_OF_AN_OFFSET, settled
from conformance.admin.test_admin_commands import (
    BROKER,
    CHANGES,
    LOOKS,
    OFFLINE,
    TOPIC,
    Mask,
    without_numbers,
)
from conformance.requests.query_answers import NOW_MS
from conformance.servers.raw_client import RawClient
from conformance.servers.server import NAMESRV_ADDR

RECORDED = Path(__file__).with_name("mqadmin_55.txt")
ID = "7F00000100002A9F{:016d}"
UNIQUE = ID.format(1)
MADE_BY_CLIENT = re.compile(r"\b(?!7F000001)[0-9A-F]{32}\b")
"""The id of a message that the tool sends begins with the address of its machine."""
NEEDS_CLIENTS = re.compile(r"<\w+>|-g members|key-batch1|getBrokerConfig|brokerStatus|^producer")
MORE: dict[str, Mask] = {
    f"queryMsgByUniqueKey -t {TOPIC} -i {UNIQUE}": LOOKS[f"queryMsgByUniqueKey -t {TOPIC} -i <tagged>"],
    f"queryMsgById -t {TOPIC} -i {UNIQUE}": in_any_order,
    "getConsumerConfig -g offline": str,
    "consumerProgress -g offline -t " + TOPIC: str,
    f"topicStatus -t %RETRY%{OFFLINE}": without_numbers,
}


def prepared(client: RawClient) -> None:
    client.update_topic(TOPIC, 4)
    client.update_topic(f"%RETRY%{OFFLINE}", 1)
    client.update_group(OFFLINE)
    for number in range(8):
        properties = {"UNIQ_KEY": ID.format(number), "WAIT": "true"}
        if number % 2:
            properties |= {"TAGS": "TagA", "KEYS": f"keyA key{number}", "colour": "red"}
        client.send(TOPIC, number % 4, b"body %d" % number, properties, born_ms=1_600_000_000_000 + number)
    for queue_id in range(4):
        client.settle(TOPIC, queue_id, 2)
        assert client.commit(OFFLINE, TOPIC, queue_id, 1).code == 0


def lines() -> Iterator[tuple[str, Mask]]:
    """Commands, and what else is removed from the answer."""
    yield from ((line, mask) for line, mask in LOOKS.items() if not NEEDS_CLIENTS.search(line))
    yield from MORE.items()
    for line in CHANGES:
        yield line.replace("@", "made"), str


def play(shell: Callable[..., str], broker: str = BROKER, name_server: str = NAMESRV_ADDR) -> list[str]:
    """The answers of a tool, as they are compared; `broker` and `name_server` are where ours really listen."""
    answers = []
    for line, mask in lines():
        text = shell(*line.replace(BROKER, broker).split()).replace(broker, BROKER)
        text = MADE_BY_CLIENT.sub("<id>", text.replace(name_server, NAMESRV_ADDR))
        text = settled(text.replace(_host_in_ids(broker), _host_in_ids(BROKER)))
        text = in_any_order(NOW_MS.sub("TIME", MADE_OF_AN_OFFSET.sub("", mask(text))))
        answers.append(f"$ {line}\n" + "".join(f"    {row}\n" for row in text.splitlines() if row))
    return answers


def _host_in_ids(address: str) -> str:
    """127.0.0.1 and the port, as message ids begin."""
    return f"7F000001{int(address.rpartition(':')[2]):08X}"
