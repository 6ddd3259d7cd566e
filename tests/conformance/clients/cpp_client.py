"""The C++ client (old header, code 10) through its Python package `rocketmq` 0.4.4; run by `test_foreign_clients.py`.

Arguments: name server, topic, group. Sends ten messages in three ways, consumes what it sent, prints what it did.
"""

import sys
import threading
from typing import Any

from rocketmq.client import Message, Producer, PushConsumer


def main() -> None:
    namesrv, topic, group = sys.argv[1:4]
    producer = Producer(group + "_p")
    producer.set_namesrv_addr(namesrv)
    producer.start()
    for at in range(10):
        message = Message(topic)
        message.set_keys(f"key{at}")
        message.set_tags("even" if at % 2 == 0 else "odd")
        message.set_property("number", str(at))
        message.set_body(f"body {at}")
        if at == 8:
            producer.send_oneway(message)
        elif at == 9:
            producer.send_orderly(message, 1)
        else:
            result = producer.send_sync(message)
            print(f"SENT {result.status.name} {result.offset >= 0}", flush=True)
    seen: set[str] = set()
    done = threading.Event()

    def text(value: Any) -> str:
        return value.decode() if isinstance(value, bytes) else str(value)

    def consume(message: Any) -> None:
        body = text(message.body)
        if body == "body 3" and message.reconsume_times == 0:
            print("AGAIN", flush=True)
            raise ValueError("deliver this one again")
        seen.add(body)
        print(f"SEEN {body} {text(message.tags)} {text(message.keys)} {text(message['number'])}", flush=True)
        if len(seen) == 10:
            done.set()

    consumer = PushConsumer(group)
    consumer.set_namesrv_addr(namesrv)
    consumer.subscribe(topic, consume)
    consumer.start()
    is_done = done.wait(60)
    consumer.shutdown()
    producer.shutdown()
    print("DONE" if is_done else "TIMEOUT", flush=True)


if __name__ == "__main__":
    main()
