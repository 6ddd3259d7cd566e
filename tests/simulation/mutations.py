"""Mistakes put into the product on purpose: each must be found, or the simulation proves nothing.

`python -m simulation.run --mutate NAME` runs seeds until one fails.
"""

from collections.abc import Callable
from typing import Any

from msgspec import structs
from pocketmq.broker.cluster.durable_log import DurableLog
from pocketmq.broker.cluster.replication_master import ReplicationMaster
from pocketmq.broker.delayed import timer_delivery
from pocketmq.broker.delayed.delay_levels import DelayLevels
from pocketmq.broker.delayed.timer_delivery import TimerDelivery
from pocketmq.broker.network.dispatch import BROKER
from pocketmq.broker.pop import ack_handlers, revive_log
from pocketmq.broker.pop.ordered_pops import OrderedPops
from pocketmq.broker.pulling.pull import Pull
from pocketmq.broker.sending import recall_handlers, retry_handlers
from pocketmq.broker.tables.delay_table import DelayTable
from pocketmq.broker.transactions.ends import Ends
from pocketmq.broker.transactions.transaction_check import TransactionCheck
from pocketmq.client.delivery.send_back import SendBack
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.grpc_endpoint.consuming import receive_handlers
from pocketmq.grpc_endpoint.consuming.delivery import Delivery
from pocketmq.grpc_endpoint.consuming.receipt_handle import ReceiptHandle
from pocketmq.grpc_endpoint.consuming.renewal import Renewal
from pocketmq.grpc_endpoint.producing import send_handlers, transaction_handlers
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from pocketmq.protocol.requests.send import EndTransaction, RecallMessage
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.appending import Appending
from pocketmq.store.durability.recovery import Recovery
from pocketmq.store.files import disk, json_file
from pocketmq.store.files.mapped_file import MappedFile
from pocketmq.store.timer.timer_store import TimerStore, checkpoint_path, write_timer_checkpoint

Change = tuple[Any, Any, Callable[[Any], Any]]
"""A module, class or table, a name in it, and what makes the changed thing of the former one."""


def always(value: Any) -> Callable[[Any], Any]:
    """A function that does nothing but return this."""
    return lambda _: lambda *_, **__: value


class Unforced:
    """The disk, for tables."""

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: None) if name == "force_file" else getattr(disk, name)


def visible_at_once(made: Any) -> Any:
    def init(self: Appending, *arguments: Any) -> None:
        made(self, *arguments)
        self.dispatches_at_once = True

    return init


def without_messages_of_slaves(code_of: Any) -> Any:
    def code(self: Pull, result: Any) -> ResponseCode:
        found: ResponseCode = code_of(self, result)
        return ResponseCode.PULL_RETRY_IMMEDIATELY if self._pulling.is_slave else found

    return code


def ahead(remove: Any) -> Any:
    def offset(self: ProcessQueue, messages: Any) -> int:
        found: int = remove(self, messages)
        return found if found < 0 else self._offset_max + 1

    return offset


async def sent(*_: Any, **__: Any) -> bool:
    return True


def before_the_log(_: Any) -> Any:
    def flush(self: TimerStore, checkpoint: Any) -> None:
        self.log.files.flush(0)
        self.wheel.sync()
        write_timer_checkpoint(checkpoint_path(self._config), checkpoint)

    return flush


def without_waiting(handler: Any) -> Any:
    def at_once(*arguments: Any) -> Any:
        answer, DurableLog.answer_when_durable = DurableLog.answer_when_durable, lambda *call: call[-1]  # type: ignore[method-assign]
        try:
            return handler.function(*arguments)
        finally:
            DurableLog.answer_when_durable = answer  # type: ignore[method-assign]

    return structs.replace(handler, function=at_once)


def committing(decide: Any) -> Any:
    def commit(self: Ends, request: EndTransaction, *half: Any) -> Any:
        if request.commit_or_rollback == TRANSACTION_ROLLBACK:
            request = structs.replace(request, commit_or_rollback=TRANSACTION_COMMIT)
        return decide(self, request, *half)

    return commit


def former_receipt(take: Any) -> Any:
    def former(self: Renewal, client_id: str, message_id: str, delivered: Any) -> Any:
        take(self, client_id, message_id, delivered)
        return delivered

    return former


def at_once(_: Any) -> Any:
    return lambda log, end, callback: log._call_when_copied(end, None, callback)


def believing(run: Any) -> Any:
    return lambda recovery, **_: run(recovery, clean=True, intact=True, marks_are_ours=True)


def of_another(acknowledge: Any) -> Any:
    return lambda pop, offset: acknowledge(pop, offset ^ 1)


def of_the_topic(_: Any) -> Any:
    return lambda config, topic, unique_id: topic


def twice(store: Any) -> Any:
    return lambda *place: (store(*place), store(*place))[1]


MUTATIONS: dict[str, list[Change]] = {
    # disk and log
    "log is not forced": [(MappedFile, "sync", always(None))],
    "folders are not forced": [(disk, "force_directory", always(None))],
    "tables are not forced": [(json_file, "disk", lambda _: Unforced())],
    "answer does not wait for the disk": [(DurableLog, "call_when_durable", at_once)],
    "messages are visible before they are on disk": [(Appending, "__init__", visible_at_once)],
    "recovery trusts the queues": [(Recovery, "run", believing)],
    # master and slave
    "answer does not wait for the slave": [
        (ReplicationMaster, "_find_replicated", lambda _: lambda master: master.log.end)
    ],
    "slave answers without its messages": [(Pull, "_code", without_messages_of_slaves)],
    # consumers
    "offset is committed ahead of the listener": [(ProcessQueue, "remove", ahead)],
    "failed message is not sent back": [(SendBack, "send_back", lambda _: sent)],
    "dead letter is lost": [(retry_handlers, "dlq_topic", always("%DLQ%nobody"))],
    "message is tried once more than allowed": [
        (retry_handlers, "_limit", lambda limit: lambda *arguments: limit(*arguments) + 1)
    ],
    # later
    "delay is a second short": [
        (DelayTable, "deliver_timestamp", lambda deliver: lambda *delay: deliver(*delay) - 1000)
    ],
    "delayed message is delivered twice": [(DelayLevels, "_store", twice)],
    "timer is saved before the log": [(TimerStore, "flush", before_the_log)],
    # confirmed, and stored; but the message is delivered
    "recall is forgotten": [(TimerDelivery, "_recall", always(iter(())))],
    "recall answer does not wait": [(BROKER.table, RecallMessage.code, without_waiting)],
    # all that are due at the same moment
    "recall takes other messages": [
        (module, "deletion_key", of_the_topic) for module in (timer_delivery, recall_handlers)
    ],
    "rollback commits": [(Ends, "_decide", committing)],
    "nobody is asked about a transaction": [(TransactionCheck, "_send_question", always(None))],
    "ack counts for another message": [
        (ack_handlers, "ack_record", of_another),
        (revive_log, "ack_record", of_another),
    ],
    # gRPC
    "grpc answer does not wait": [(send_handlers, "has_to_wait", always(False))],
    "grpc rollback commits": [
        (transaction_handlers, "_VERDICTS", lambda verdicts: dict.fromkeys(verdicts, TRANSACTION_COMMIT))
    ],
    # to others, while its messages are under way
    "ordered queue stays open": [(OrderedPops, "is_blocked", always(False))],
    "slave delivers to grpc clients": [(receive_handlers, "check_readable", always(None))],
    "nothing is renewed for grpc clients": [(Renewal, "scan", always(None))],
    "ack counts for the receipt before a renewal": [(Renewal, "take", former_receipt)],
    "changed receipt is the former one": [
        (ReceiptHandle, "changed", lambda _: lambda receipt, *__, **___: receipt)
    ],
    # answered, and not stored
    "grpc ack is forgotten": [(Delivery, "prepare_ack", always(None))],
}


def mutate(name: str) -> None:
    """Make this mistake from now on."""
    for place, what, change in MUTATIONS[name]:
        if isinstance(place, dict):
            place[what] = change(place[what])
        else:
            setattr(place, what, change(getattr(place, what)))
