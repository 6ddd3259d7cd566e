"""Functions that a job's SQL may use besides those that DuckDB and Spark share.

    startswith(text, prefix)       unix_micros(time)        array_join(list, separator)
    percentile_approx(number, share)       timestamp_millis(epoch_ms)
    has_bytes(binary, text)        unhex_text(hexadecimal)        text_of(binary): null if it is no UTF-8

Spark has the first five; DuckDB gets them as macros. The last three are made on both sides.
"""

from typing import Final

FOR_DUCKDB: Final = (
    "create macro startswith(t, prefix) as starts_with(t, prefix)",
    "create macro unix_micros(moment) as epoch_us(moment)",
    "create macro array_join(list, separator) as array_to_string(list, separator)",
    "create macro percentile_approx(number, share) as quantile_disc(number, share)",
    # Two digits for each byte, and a match begins at a byte: DuckDB does not search in blobs.
    "create macro has_bytes(bytes, t) as regexp_matches(hex(bytes), concat('^(..)*', hex(encode(t))))",
    "create macro unhex_text(digits) as decode(unhex(digits))",
    "create macro text_of(bytes) as try(decode(bytes))",
    "create macro timestamp_millis(epoch) as to_timestamp(epoch / 1000)",
)
FOR_SPARK: Final = (
    "create or replace temporary function has_bytes(bytes binary, t string) returns boolean "
    "return contains(bytes, cast(t as binary))",
    "create or replace temporary function unhex_text(digits string) returns string "
    "return cast(unhex(digits) as string)",
    "create or replace temporary function text_of(bytes binary) returns string "
    "return case when is_valid_utf8(cast(bytes as string)) then cast(bytes as string) end",
)
