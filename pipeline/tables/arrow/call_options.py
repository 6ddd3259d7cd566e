"""The keyword options of a call: known names and right types, and errors in the words of the caller.

The options of topics are those of the source `rocketmq`, `pull_batch_size` for `pullBatchSize`. They are checked where
Spark's options are, so an error gets the name that the caller knows here.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ...errors import PATH, OptionError
from ..planning.option_values import NAMESRV
from ..planning.spelling import kafka_hint
from ..planning.topic_options import SOURCE_OPTION_NAMES

STORE_OPTIONS: Final = ("broker_name", "on_corrupt", "verify_crc", "decompress", "commit_log_path")
QUEUE_CHECK: Final = "check_queues"
_FLAGS: Final = ("verify_crc", "decompress", QUEUE_CHECK)
_NAMED_OTHERWISE: Final = {
    NAMESRV: "namesrv_addr",
    "subscribe": "topics",
    "subExpression": "tags, sql92",
    "filterType": "sql92",
}
_LEFT_TO_ARGUMENTS: Final = (
    *("subscribePattern", "assign", "columns", "includeProperties", "pushdown", "storePath"),
    *("startingTimestamp", "endingTimestamp", "minPartitions", "maxRecordsPerPartition", "commitOffsets"),
    *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger"),
)
"""Options of the source for which a call has its own arguments, and those of streams and tasks."""


def snake(name: str) -> str:
    """pullBatchSize as pull_batch_size."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


TOPIC_OPTIONS: Final = {
    snake(name): name
    for name in SOURCE_OPTION_NAMES
    if "." not in name and name not in {*_NAMED_OTHERWISE, *_LEFT_TO_ARGUMENTS}
}
"""The name in a call -> that of the source."""
_IN_CALLS: Final = {name: call for call, name in TOPIC_OPTIONS.items()} | _NAMED_OTHERWISE
_CALL_OF: Final = {PATH: "path", "option since": "since", "option until": "until"} | {
    f"option {name}": call for name, call in _IN_CALLS.items()
}
"""What errors call an option -> its name in a call."""


def check_names(options: Collection[str], allowed: Collection[str]) -> None:
    """`OptionError` for a name that is not allowed."""
    for name in options:
        if name not in allowed:
            near = kafka_hint(name, {}, allowed)
            raise OptionError(f"unknown option {name}", f"{near}; the options are {', '.join(allowed)}")


def check_store_options(options: Mapping[str, Any], *, checks_queues: bool) -> None:
    """`OptionError` for an unknown name, for a flag that is neither true nor false, and for a broker's name that is no
    text. `checks_queues` says whether the table has the option `check_queues`."""
    if QUEUE_CHECK in options and not checks_queues:
        raise OptionError(QUEUE_CHECK, "is for table runs")
    check_names(options, (*STORE_OPTIONS, *([QUEUE_CHECK] if checks_queues else ())))
    for name in _FLAGS:
        if options.get(name) not in (None, True, False):
            raise OptionError(name, f"must be True or False, got {options[name]!r}")
    if not isinstance(options.get("broker_name", ""), str | None):
        raise OptionError("broker_name", f"must be a text, got {options['broker_name']!r}")


@contextmanager
def in_words_of_call() -> Iterator[None]:
    """An error about `option pullBatchSize` as one about `pull_batch_size`."""
    try:
        yield
    except OptionError as error:
        if error.option not in _CALL_OF:
            raise
        raise error.named(_CALL_OF[error.option]) from error
