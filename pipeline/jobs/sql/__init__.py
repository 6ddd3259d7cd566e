"""Questions in SQL, on DuckDB or on Spark: one text for both.

engine.py           what a job asks of an engine, and which engine runs it
duckdb_engine.py    DuckDB, in this process
spark_engine.py     Spark
message_input.py    where messages come from: a store or brokers
arrow_frame.py      Arrow tables in the place of Spark's data frames
"""
