"""The jobs of `pocketmq pipeline`: each has a `build(spark, ...)` that returns a report, and a command.

run.py              how a job runs: options, checks before Spark starts, session, exit code
inputs.py           where a job's messages come from: a store or a broker
access_options.py   access keys and TLS on the command line
audit.py            gaps, disorder and damage in a store
duplicates.py       messages stored more than once
lag.py              how far groups are behind
latency.py          from sent to consumed, from message traces
replay.py           sends messages again
export.py           messages to Parquet
"""
