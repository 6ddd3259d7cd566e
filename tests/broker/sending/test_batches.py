"""Batches: two brokers get the same, one of them has no native core; nothing may tell them apart."""

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.send import SendBatchMessage
from pocketmq.store import VirtualClock

from broker_fakes import ask, close_broker, make_broker
from plain_core import in_plain_python
from stored_files import stored_files

IDS = st.text("0123456789ABCDEF", min_size=1, max_size=4).map(lambda text: text.rjust(32, "7"))
ODD_IDS = st.sampled_from(["short", "z" * 32, "ü" * 16, "-" * 32])
OWN = st.fixed_dictionaries(
    {},
    optional={
        "KEYS": st.sampled_from(["a", "b  c", " ", "schl\u00fcssel \U0001f511"]),
        "TAGS": st.sampled_from(["A", "gr\u00fcn"]),
        "UNIQ_KEY": st.just("an other"),
        "INSTANCE_ID": st.just("i"),
        "INNER_MULTI_DISPATCH": st.just("%LMQ%a,%LMQ%b"),
    },
)
"""Properties that the other messages of the batch do not have."""
BATCHES = st.fixed_dictionaries(
    {
        "messages": st.lists(
            st.tuples(st.binary(max_size=9) | st.just(b"same size"), IDS, st.just({}) | OWN), max_size=20
        ),
        "odd": st.none() | st.tuples(st.integers(0, 3), ODD_IDS),
        "flag": st.sampled_from([0, 7]),
        "shared": st.sampled_from([{}, {"TAGS": "A"}, {"KEYS": "k", "own": "ü"}, {"WAIT": "false"}]),
        "final": st.sampled_from([b"", b"\x02"]),
        "of_batch": st.sampled_from([{}, {"WAIT": "true"}, {"WAIT": "false", "UNIQ_KEY": "8" * 32}]),
        "changes": st.sampled_from([{}, {"queue_id": 2}, {"sys_flag": 1}, {"reconsume_times": 3}]),
        "topic": st.sampled_from(["orders", "other"]),
    }
)


def request_of(batch: Any) -> tuple[Any, bytes]:
    elements = []
    for body, unique_id, own in batch["messages"]:
        if batch["odd"] is not None and batch["odd"][0] == len(elements):
            unique_id = batch["odd"][1]
        text = encode_properties_text(
            {"UNIQ_KEY": unique_id, **batch["shared"], **own}, final_separator=False
        )
        elements.append(BatchElement(batch["flag"], body, text.encode() + batch["final"]))
    fields = {
        "producer_group": "pg",
        "topic": batch["topic"],
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "batch": True,
        "properties": encode_properties_text(batch["of_batch"]),
    }
    return SendBatchMessage(**{**fields, **batch["changes"]}), encode_batch(elements)


@settings(max_examples=15, deadline=None)
@given(st.lists(BATCHES, min_size=1, max_size=6), st.sampled_from([4, 5]), st.booleans())
async def test_batches_leave_and_are_answered_the_same_without_the_native_core(
    requests: list[Any], emulate: int, has_light_queues: bool
) -> None:
    seen: list[list[object]] = []
    for way in (nullcontext, in_plain_python):
        with TemporaryDirectory() as folder, way():
            clock = VirtualClock()
            broker = make_broker(
                Path(folder),
                clock,
                emulate=emulate,
                store={
                    "emulate": emulate,
                    "enable_lmq": has_light_queues,
                    "enable_multi_dispatch": has_light_queues,
                    "max_message_size": 1000,
                    "mapped_file_size_commit_log": 8192,
                    "mapped_file_size_consume_queue": 200,
                    "max_index_num": 30,
                },
            )
            notes: list[object] = []
            for batch in requests:
                answer = await ask(broker, *request_of(batch))
                notes.append((answer.code, answer.remark, answer.fields))
                clock.advance(300)
            statistics = broker.store.statistics
            notes.append(
                (statistics.messages, statistics.bytes, statistics.failed, broker.statistics.put_total_now)
            )
            notes.append(stored_files(broker.config.store.root))
            seen.append(notes)
            close_broker(broker)
    assert seen[0] == seen[1]
