"""The jobs of `pocketmq pipeline` that answer questions: each has a `build(...)` that returns a report, and a command.

run.py              how a job runs: options, checks before Spark starts, session, exit code
on_engine.py        how a job in SQL runs: on DuckDB in this process, or on Spark
inputs.py           where a job's messages come from: a store or a broker
audit.py            gaps, disorder and damage in a store
duplicates.py       messages stored more than once
stats.py            what fills a store or a topic
find.py             messages by key, id, tag, text and time
sql.py              a query of your own
latest.py           the last message of each key
compare.py          two stores or clusters
lag.py              how far groups are behind
lag_rows.py         the same as rows: from files, or from brokers
"""
