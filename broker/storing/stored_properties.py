"""Property text as the official broker stores it, from a map (`core/properties.py` has the rule)."""

from pocketmq.core.properties import BUCKETS, encode_stored


def stored_properties(properties: dict[str, str], *, is_5: bool, first_buckets: int | None = None) -> bytes:
    """The bytes for a record (`MessageDecoder.messageProperties2String`).

    `first_buckets` is the size of the official map if the official broker did not read the properties from a text.
    """
    return encode_stored(properties, first_buckets or BUCKETS[is_5], is_5)
