"""Messages as Arrow arrays, both ways: stored records to columns, and columns to the bytes of sends.

    columns.py          names, Spark types and Arrow types of every table's columns
    boundaries.py       where the next record begins after a split or damage
    scans.py            records and property pairs as tables of numbers: the rule, and the choice of C
    records.py          records to columns
    properties.py       property texts to columns: one property, or the map of all
    slices.py           Arrow arrays of texts and bytes without a Python loop
    batch_encoder.py    columns to the bytes of sends

numpy, pyarrow and `pocketmq.protocol` only: no Spark, no files, no sockets.
"""
