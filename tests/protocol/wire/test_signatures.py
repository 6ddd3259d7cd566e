"""What a signature covers. tests/client/hooks/test_acl.py compares signatures of the official client."""

import base64

from pocketmq.protocol.wire.signatures import signature_of, signed_content


def test_signature_is_hmac_sha1():
    # RFC 2202, case 2: HMAC-SHA1 with the key "Jefe".
    right = base64.b64encode(bytes.fromhex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")).decode()
    assert signature_of(b"what do ya want for nothing?", "Jefe") == right


def test_signature_covers_all_other_fields_in_order_and_the_body():
    fields = {"b": "2", "a": "1", "Signature": "x", "late": "3"}
    assert signed_content(fields, b"body") == b"123body"
    assert signed_content(fields, None, unsigned=("late",)) == b"12"


def test_names_of_fields_are_ordered_as_java_orders_strings():
    """A TreeMap compares UTF-16 units: a character beyond the basic plane sorts before U+FFE0."""
    assert signed_content({"\uffe0": "last", "\U0001f600": "first"}, None) == b"firstlast"
