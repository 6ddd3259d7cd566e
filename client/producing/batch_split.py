"""A list of messages as one batch: which lists are refused, and how a long one is cut.

The official client refuses what is larger than max_message_size and leaves cutting to its user; here the list is cut
into runs that fit, in order. `pocketmq.protocol.message.batch` encodes a run. Official classes:
MessageBatch.generateFromList, DefaultMQProducer.batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ValidationFailed
from ..values.message import DELAY_PROPERTIES

_ELEMENT_HEAD_BYTES: Final = 22
"""Everything of an encoded element but body and properties."""


class ForBatch(Protocol):
    """The parts of a message that decide whether it may be in a batch."""

    @property
    def topic(self) -> str: ...

    @property
    def properties(self) -> Mapping[str, str]:
        """As they are sent, with WAIT and delays; not only the user's own."""
        ...


def check_batch(messages: Sequence[ForBatch]) -> None:
    """Raises ValidationFailed unless the messages may travel as one batch: one topic, all waiting for the store or
    none, no delays, no retry topic. `validators.check_message` checks each message on its own.

    4.9 clients refuse delay levels only, and accept timer properties.
    """
    if not messages:
        raise _refusal("no messages")
    first = messages[0]
    waits = _waits_for_store(first)
    for message in messages:
        if any(_positive(message.properties.get(name)) for name in DELAY_PROPERTIES):
            raise _refusal("Delayed messages are not supported for batching")
        if is_retry_topic(message.topic):
            raise _refusal("Retry Group is not supported for batching")
        if message.topic != first.topic:
            raise _refusal("The topic of the messages in one batch should be the same")
        if _waits_for_store(message) != waits:
            raise _refusal("The waitStoreMsgOK of the messages in one batch should the same")


def split_batch(elements: Iterable[BatchElement], max_message_size: int) -> Iterator[list[BatchElement]]:
    """Runs whose encoded batch has at most `max_message_size` bytes, each as long as it can be.

    A message whose body fits, but whose element does not, is a run of its own, to be sent as an ordinary message.
    Raises ValidationFailed for a body that does not fit, before the run that would hold it. The UNIQ_KEY of an element
    counts.
    """
    run: list[BatchElement] = []
    run_bytes = 0
    for element in elements:
        if len(element.body) > max_message_size:
            raise ValidationFailed(
                f"the message body size over max value, MAX: {max_message_size}", ResponseCode.MESSAGE_ILLEGAL
            )
        size = element_bytes(element)
        if run and run_bytes + size > max_message_size:
            yield run
            run, run_bytes = [], 0
        run.append(element)
        run_bytes += size
    if run:
        yield run


def element_bytes(element: BatchElement) -> int:
    """Bytes of an element in the encoded batch."""
    return _ELEMENT_HEAD_BYTES + len(element.body) + len(element.properties)


def _waits_for_store(message: ForBatch) -> bool:
    """Official isWaitStoreMsgOK: true unless the property says otherwise."""
    return message.properties.get(names.WAIT, "true").lower() == "true"


def _positive(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return int(text) > 0
    except ValueError as error:
        raise _refusal(f"a delay of {text!r}") from error


def _refusal(reason: str) -> ValidationFailed:
    return ValidationFailed(f"Failed to initiate the MessageBatch: {reason}")
