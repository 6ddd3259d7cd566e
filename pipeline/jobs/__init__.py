"""The jobs of `pocketmq pipeline`: on DuckDB in this process or on Spark, or without an engine.

sql/          questions in SQL, on DuckDB or on Spark
report/       tables on a terminal, pages of HTML
answers/      audit, duplicates, stats, find, sql, latest, compare, lag
behaviour/    what clients really did, and latency
moving/       dlq, replay, export, ingest, mirror: jobs that send messages or write tables
"""
