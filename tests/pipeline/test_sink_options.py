"""Options and columns of the sink: an error is one line that names the option or column and what is allowed."""

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sink.sink_options import check_columns, read_sink_options


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"nameServer": "x"}, "namesrv.addr must be host:port"),
        ({"topic": "a/b"}, "topic: .*illegal characters"),
        ({"producerGroup": "a b"}, "producerGroup: .*illegal characters"),
        ({"sendRetries": "-1"}, "sendRetries must be a whole number, 0 or more"),
        ({"batchBytes": "5000000"}, "batchBytes must be a whole number, from 1 to 4194304"),
        ({"subscribe": "T"}, "unknown option subscribe;"),
        ({"batchrow": "5"}, "unknown option batchrow; similar: batchRows"),
        ({"kafka.bootstrap.servers": "h:1"}, "here it is rocketmq.namesrv.addr"),
        ({"kafka.enable.idempotence": "true"}, "here it is guarantee=idempotent"),
    ],
)
def test_an_error_names_the_option_of_the_sink_and_what_is_allowed(
    options: dict[str, str], named: str
) -> None:
    with pytest.raises(OptionError, match=named):
        read_sink_options({"nameServer": "x:1", **options})


@pytest.mark.parametrize(
    ("fields", "options", "named"),
    [
        ([("topic", "string")], {}, "body is required"),
        ([("body", "int")], {"topic": "T"}, "body must be binary or string, got int"),
        ([("body", "string")], {}, "column topic or option topic is required"),
        ([("body", "string"), ("bodyCRC", "int")], {"topic": "T"}, "unknown column bodyCRC"),
        ([("value", "string")], {"topic": "T"}, "unknown column value; here it is body"),
        ([("body", "string"), ("partition", "int")], {"topic": "T"}, "partition; here it is queueId"),
        (
            [("body", "string"), ("brokerName", "string")],
            {"topic": "T"},
            "queueId is required with column brokerName",
        ),
        (
            [("body", "string"), ("messageId", "binary")],
            {"topic": "T"},
            "messageId must be string, got binary",
        ),
        (
            [("body", "string"), ("delayTimeLevel", "int")],
            {"topic": "T", "guarantee": "transactional"},
            "delayed",
        ),
        (
            [("body", "string"), ("delayTimeLevel", "int"), ("deliverTimestamp", "timestamp")],
            {"topic": "T"},
            "select one of them",
        ),
    ],
)
def test_a_wrong_sink_column_is_named(
    fields: list[tuple[str, str]], options: dict[str, str], named: str
) -> None:
    with pytest.raises(OptionError, match=named):
        check_columns(fields, read_sink_options({"nameServer": "x:1", **options}))
