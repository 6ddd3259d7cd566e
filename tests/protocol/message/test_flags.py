"""Permission text and the two-bit transaction number."""

import pytest
from pocketmq.protocol.message import flags


@pytest.mark.parametrize(("perm", "text"), [(7, "RWX"), (6, "RW-"), (4, "R--"), (2, "-W-"), (0, "---")])
def test_permission_is_written_as_official_tools_print_it(perm: int, text: str):
    assert flags.perm_text(perm) == text
    assert flags.is_readable(perm) == ("R" in text)
    assert flags.is_writeable(perm) == ("W" in text)
    assert flags.is_inherited(perm) == ("X" in text)


def test_both_bits_of_the_transaction_type_are_replaced():
    rolled_back = flags.with_transaction_type(
        flags.COMPRESSED | flags.TRANSACTION_PREPARED, flags.TRANSACTION_ROLLBACK
    )
    assert rolled_back == 0xD
    assert flags.transaction_type(rolled_back) == flags.TRANSACTION_ROLLBACK
    assert flags.with_transaction_type(rolled_back, flags.TRANSACTION_NONE) == flags.COMPRESSED


@pytest.mark.parametrize(
    ("transaction", "in_queue"),
    [
        (flags.TRANSACTION_NONE, True),
        (flags.TRANSACTION_PREPARED, False),
        (flags.TRANSACTION_COMMIT, True),
        (flags.TRANSACTION_ROLLBACK, False),
    ],
)
def test_half_messages_and_rollbacks_are_in_no_queue(transaction: int, in_queue: bool):
    assert flags.is_queued(flags.COMPRESSED | flags.BORN_HOST_IPV6 | transaction) == in_queue
