"""Batches by plan: two brokers get the same bytes, one decodes each request; nothing may tell them apart.

Batches of random form are in the games of `test_planned_sends.py`.
"""

from pathlib import Path

import pytest
from pocketmq.protocol.wire.command import JSON, ROCKETMQ
from pocketmq.protocol.wire.frame import FrameCutter
from pocketmq.store import VirtualClock

from broker_fakes import WallLoop, close_broker, make_broker
from send_frames import Decoded, a_batch, same_on_both
from wire_without_socket import Wire


@pytest.mark.parametrize("code", [310, 320])
@pytest.mark.parametrize("form", [JSON, ROCKETMQ])
@pytest.mark.parametrize("pairs", [{}, {"KEYS": "k{}", "own": "ü%"}])
async def test_a_repeated_batch_is_not_decoded_and_stored_and_answered_the_same(
    tmp_path: Path, form: int, code: int, pairs: dict[str, str]
) -> None:
    frames = [
        a_batch(
            number=number,
            bodies=[b"x" * (number + 1)] * (number % 5 + 1),
            code=code,
            form=form,
            opaque=100 + number,
            pairs={name: value.format(number % 10) for name, value in pairs.items()},
            e=str(number % 2),
            g=str(1_700_000_000_000 + number),
        )
        for number in range(30)
    ]
    written, brokers, decoded = [], [], Decoded()
    for plans in (True, False):
        broker = make_broker(tmp_path / str(plans), VirtualClock())
        brokers.append(broker)
        wire = Wire(broker, plans=plans)
        if plans:
            wire.server.add_watcher(decoded)
        written.append([await wire.exchange(*frames[:3]), await wire.exchange(*frames[3:])])
        wire.end()
    assert written[0] == written[1]
    # The first two teach the header; these are the first of their queues, too.
    assert decoded.count == 2
    assert decoded.requests == b"".join(frames[2:])
    assert b"".join(written[0]).endswith(decoded.replies)
    same_on_both(*brokers)
    for broker in brokers:
        close_broker(broker)


async def test_the_answer_to_a_batch_waits_for_the_disk_and_not_forever(tmp_path: Path) -> None:
    settings = {"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 4000}
    seen = []
    for plans in (True, False):
        broker = make_broker(tmp_path / str(plans), VirtualClock(), store=settings)
        broker.sending.disk_waiters._loop = loop = WallLoop()  # type: ignore[assignment]
        wire = Wire(broker, plans=plans)
        for number in range(3):
            await wire.exchange(a_batch(number=number, bodies=[b"a", b"b"], opaque=number))
            broker.store.flush_pass()
            seen.append(await wire.exchange())
        held = await wire.exchange(a_batch(number=5, bodies=[b"c"] * 3, opaque=7))
        assert (held, broker.sending.waiting_sends) == (b"", 1)
        loop.run_for(4)
        seen.append(await wire.exchange())
        assert [(one.opaque, one.code) for one in FrameCutter().feed(seen[-1])] == [(7, 10)]
        assert broker.sending.waiting_sends == 0
        close_broker(broker)
    assert seen[:4] == seen[4:]
