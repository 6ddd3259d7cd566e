"""Offset message ids and packed hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.offset_id import (
    MessageId,
    decode_message_id,
    encode_message_id,
    encode_message_ids,
    pack_host,
    unpack_host,
)


@given(st.ip_addresses(), st.integers(0, 65535), st.integers(0, 2**63 - 1))
def test_round_trip_of_both_address_families(address, port, offset):
    host = pack_host(str(address), port)
    text = encode_message_id(host, offset)
    assert len(text) == (32 if address.version == 4 else 56)
    assert decode_message_id(text.lower()) == MessageId(host, offset)
    assert unpack_host(host) == (str(address), port)
    assert encode_message_ids(host, [offset, 7]) == f"{text},{encode_message_id(host, 7)}"


@pytest.mark.parametrize("text", ["", "00", "Z" * 32, "0" * 31, "0" * 33, " 0" * 16])
def test_other_text_is_refused(text):
    with pytest.raises(BodyError, match="not an offset message id"):
        decode_message_id(text)
