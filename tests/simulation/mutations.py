"""Mistakes put into the product on purpose: each must be found, or the simulation proves nothing.

`python -m simulation.run --mutate NAME` runs seeds until one fails. Each function changes the product once, after
`patches.install`.
"""

import sys
from collections.abc import Callable
from typing import Any

from msgspec import structs
from pocketmq.broker.cluster.durable_log import DurableLog
from pocketmq.broker.cluster.replication_master import ReplicationMaster
from pocketmq.broker.delayed import timer_delivery
from pocketmq.broker.delayed.delay_levels import DelayLevels
from pocketmq.broker.delayed.timer_delivery import TimerDelivery
from pocketmq.broker.network.dispatch import BROKER
from pocketmq.broker.pop import ack_handlers
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

MUTATIONS: dict[str, Callable[[], None]] = {}


def mutation(function: Callable[[], None]) -> Callable[[], None]:
    MUTATIONS[function.__name__.replace("_", " ")] = function
    return function


def replace(former: Any, changed: Any) -> None:
    """Wherever a module of the product has it by name."""
    for name, module in list(sys.modules.items()):
        if name.startswith("pocketmq."):
            for attribute, value in list(vars(module).items()):
                if value is former:
                    setattr(module, attribute, changed)


# -- disk and log


@mutation
def log_is_not_forced() -> None:
    MappedFile.sync = lambda self, descriptor=None: None  # type: ignore[method-assign]


@mutation
def folders_are_not_forced() -> None:
    disk.force_directory = lambda path: None


@mutation
def tables_are_not_forced() -> None:
    class Unforced:
        def __getattr__(self, name: str) -> Any:
            return (lambda *_: None) if name == "force_file" else getattr(disk, name)

    json_file.disk = Unforced()  # type: ignore[assignment]


@mutation
def answer_does_not_wait_for_the_disk() -> None:
    def at_once(self: DurableLog, end: int, callback: Any) -> None:
        self._call_when_copied(end, None, callback)

    DurableLog.call_when_durable = at_once  # type: ignore[method-assign]


@mutation
def messages_are_visible_before_they_are_on_disk() -> None:
    made = Appending.__init__

    def init(self: Appending, *arguments: Any) -> None:
        made(self, *arguments)
        self.dispatches_at_once = True

    Appending.__init__ = init  # type: ignore[method-assign]


@mutation
def recovery_trusts_the_queues() -> None:
    run = Recovery.run
    Recovery.run = lambda self, **_: run(self, clean=True, intact=True, marks_are_ours=True)  # type: ignore[method-assign]


# -- master and slave


@mutation
def answer_does_not_wait_for_the_slave() -> None:
    ReplicationMaster._find_replicated = lambda self: self.log.end  # type: ignore[method-assign]


@mutation
def slave_answers_without_its_messages() -> None:
    code_of = Pull._code

    def code(self: Pull, result: Any) -> ResponseCode:
        found = code_of(self, result)
        return ResponseCode.PULL_RETRY_IMMEDIATELY if self._pulling.is_slave else found

    Pull._code = code  # type: ignore[method-assign]


# -- consumers


@mutation
def offset_is_committed_ahead_of_the_listener() -> None:
    remove = ProcessQueue.remove

    def ahead(self: ProcessQueue, messages: Any) -> int:
        offset = remove(self, messages)
        return offset if offset < 0 else self._offset_max + 1

    ProcessQueue.remove = ahead  # type: ignore[method-assign]


@mutation
def failed_message_is_not_sent_back() -> None:
    async def sent(*_: Any, **__: Any) -> bool:
        return True

    SendBack.send_back = sent  # type: ignore[method-assign]


@mutation
def dead_letter_is_lost() -> None:
    retry_handlers.dlq_topic = lambda group: "%DLQ%nobody"


@mutation
def message_is_tried_once_more_than_allowed() -> None:
    limit = retry_handlers._limit
    retry_handlers._limit = lambda *arguments: limit(*arguments) + 1


# -- later


@mutation
def delay_is_a_second_short() -> None:
    deliver = DelayTable.deliver_timestamp
    DelayTable.deliver_timestamp = lambda self, level, ms: deliver(self, level, ms) - 1000  # type: ignore[method-assign]


@mutation
def delayed_message_is_delivered_twice() -> None:
    store = DelayLevels._store

    def twice(self: DelayLevels, *place: Any) -> Any:
        store(self, *place)
        return store(self, *place)

    DelayLevels._store = twice  # type: ignore[method-assign]


@mutation
def timer_is_saved_before_the_log() -> None:
    def flush(self: TimerStore, checkpoint: Any) -> None:
        self.log.files.flush(0)
        self.wheel.sync()
        write_timer_checkpoint(checkpoint_path(self._config), checkpoint)

    TimerStore.flush = flush  # type: ignore[method-assign]


@mutation
def recall_is_forgotten() -> None:
    """Confirmed, and stored; but the message is delivered."""
    TimerDelivery._recall = lambda *_: iter(())  # type: ignore[method-assign, assignment, return-value]


@mutation
def recall_answer_does_not_wait() -> None:
    handler = BROKER.table[RecallMessage.code]

    def at_once(*arguments: Any) -> Any:
        answer, DurableLog.answer_when_durable = DurableLog.answer_when_durable, lambda *call: call[-1]  # type: ignore[method-assign]
        try:
            return handler.function(*arguments)
        finally:
            DurableLog.answer_when_durable = answer  # type: ignore[method-assign]

    BROKER.table[RecallMessage.code] = structs.replace(handler, function=at_once)


@mutation
def recall_takes_other_messages() -> None:
    """All that are due at the same moment."""
    for module in (timer_delivery, recall_handlers):
        module.deletion_key = lambda config, topic, unique_id: topic


@mutation
def rollback_commits() -> None:
    decide = Ends._decide

    def commit(self: Ends, request: EndTransaction, *half: Any) -> Any:
        if request.commit_or_rollback == TRANSACTION_ROLLBACK:
            request = structs.replace(request, commit_or_rollback=TRANSACTION_COMMIT)
        return decide(self, request, *half)

    Ends._decide = commit  # type: ignore[method-assign]


@mutation
def nobody_is_asked_about_a_transaction() -> None:
    TransactionCheck._send_question = lambda self, half, properties: None  # type: ignore[method-assign]


@mutation
def ack_counts_for_another_message() -> None:
    acknowledge = ack_handlers.ack_record

    def other(pop: Any, offset: int) -> Any:
        return acknowledge(pop, offset ^ 1)

    replace(acknowledge, other)


# -- gRPC


@mutation
def grpc_answer_does_not_wait() -> None:
    send_handlers._when_durable = lambda producing, peer, reply, *_: reply


@mutation
def grpc_rollback_commits() -> None:
    verdicts = transaction_handlers._VERDICTS
    for verdict in verdicts:
        verdicts[verdict] = TRANSACTION_COMMIT


@mutation
def ordered_queue_stays_open() -> None:
    """To others, while its messages are under way."""
    OrderedPops.is_blocked = lambda self, *_: False  # type: ignore[method-assign]


@mutation
def slave_delivers_to_grpc_clients() -> None:
    receive_handlers.check_readable = lambda *_: None


@mutation
def nothing_is_renewed_for_grpc_clients() -> None:
    Renewal.scan = lambda self: None  # type: ignore[method-assign]


@mutation
def ack_counts_for_the_receipt_before_a_renewal() -> None:
    take = Renewal.take

    def former(self: Renewal, client_id: str, message_id: str, delivered: Any) -> Any:
        take(self, client_id, message_id, delivered)
        return delivered

    Renewal.take = former  # type: ignore[method-assign]


@mutation
def changed_receipt_is_the_former_one() -> None:
    ReceiptHandle.changed = lambda self, *_, **__: self  # type: ignore[method-assign]


@mutation
def grpc_ack_is_forgotten() -> None:
    """Answered, and not stored."""
    Delivery.acknowledged = lambda self: None  # type: ignore[method-assign]
