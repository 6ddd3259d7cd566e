"""pocketmq.pipeline.jobs

access.py      Keys and TLS of a job's command line
audit.py       Order, gaps and damage of a store
duplicates.py  Messages stored more than once
export.py      Messages to Parquet for repeated questions
inputs.py      Where a job's messages come from
lag.py         How far groups are behind
latency.py     From sent to consumed, out of message traces
replay.py      Messages sent again
run.py         How a job is run
"""
