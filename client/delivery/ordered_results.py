"""After an ordered listener: commit, keep, roll back, or pause the queue.

    auto-commit  status                     then
    yes          SUCCESS, COMMIT, ROLLBACK  commit, go on (the last two are logged as a mistake)
    yes          SUSPEND, pause needed      the batch is delivered again after the pause
    yes          SUSPEND, else              commit, go on: all its messages went to the dead letters
    no           SUCCESS                    go on; the messages stay taken
    no           COMMIT                     commit everything taken, go on
    no           ROLLBACK                   everything taken is delivered again after the pause
    no           SUSPEND, pause needed      the batch is delivered again after the pause
    no           SUSPEND, else              go on; the messages stay taken

A pause is needed unless every message of the batch used up its tries and was sent to the retry topic, from where the
broker moves it to the dead letters. For SUSPEND the caller sends what `exhausted` returns and gives `settle` what
could not be sent; the whole batch is delivered again then, also what was sent. Tries are counted in the client alone
and start anew with the next owner. Official class: ConsumeMessageOrderlyService.processConsumeResult.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from ..rebalancing.process_queue import ProcessQueue
from ..settings.checks import OFF
from ..values.listener_returns import ConsumeOrderlyStatus
from ..values.message import MessageExt

MAX_TIME_CONSUME_CONTINUOUSLY_MS: Final = 60_000
"""A queue gives way to others after this long."""
LOCK_RETRY_DELAY_MS: Final = 100
"""No lock at the start of a task: ask the broker for it after this time; LOST_LOCK_DELAY_MS in the middle of one."""
LOST_LOCK_DELAY_MS: Final = 10
LOCKED_RESUME_DELAY_MS: Final = 10
"""The lock came: go on after this time; NOT_LOCKED_RESUME_DELAY_MS if it did not."""
NOT_LOCKED_RESUME_DELAY_MS: Final = 3_000
_MIN_SUSPEND_MS: Final = 10
_MAX_SUSPEND_MS: Final = 30_000
_NO_LIMIT: Final = 2**31 - 1


class OrderedOutcome(msgspec.Struct, frozen=True):
    """`offset` to store, replacing the stored one, -1 for none. `pauses`: the task ends, and another starts after
    `suspend_ms`; else it takes the next batch."""

    offset: int
    pauses: bool


def ordered_reconsume_limit(setting: int) -> int:
    """Tries of an ordered consumer: `max_reconsume_times`, without limit if it is not set."""
    return _NO_LIMIT if setting == OFF else setting


def exhausted(messages: Sequence[MessageExt], max_times: int) -> list[MessageExt]:
    """The messages that used up their tries and have to be sent to the dead letters now."""
    return [message for message in messages if message.reconsume_times >= max_times]


def settle(
    queue: ProcessQueue,
    messages: Sequence[MessageExt],
    status: ConsumeOrderlyStatus,
    *,
    auto_commit: bool = True,
    max_times: int = _NO_LIMIT,
    not_sent: Sequence[MessageExt] = (),
) -> OrderedOutcome:
    """Act on the status of a batch just taken. `not_sent`: those of `exhausted` that could not be sent."""
    if status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
        if _count_tries(messages, max_times, not_sent):
            queue.consume_again(messages)
            return OrderedOutcome(-1, True)
        return OrderedOutcome(queue.commit() if auto_commit else -1, False)
    if auto_commit or status is ConsumeOrderlyStatus.COMMIT:
        return OrderedOutcome(queue.commit(), False)
    if status is ConsumeOrderlyStatus.ROLLBACK:
        queue.rollback()
        return OrderedOutcome(-1, True)
    return OrderedOutcome(-1, False)


def suspend_ms(context_ms: int, setting_ms: int) -> int:
    """The pause before a batch is delivered again: the context's, or with -1 the setting's, within 10 ms and 30 s."""
    wanted_ms = setting_ms if context_ms == -1 else context_ms
    return min(max(wanted_ms, _MIN_SUSPEND_MS), _MAX_SUSPEND_MS)


def _count_tries(messages: Sequence[MessageExt], max_times: int, not_sent: Sequence[MessageExt]) -> bool:
    """Count a try of each message that will be delivered again; whether there are any."""
    stuck = {message.queue_offset for message in not_sent}
    pauses = False
    for message in messages:
        if message.reconsume_times < max_times or message.queue_offset in stuck:
            message.reconsume_times += 1
            pauses = True
    return pauses
