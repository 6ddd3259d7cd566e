"""Messages as Arrow arrays, both ways: stored records to columns, and columns to the bytes of sends.

    columns.py          names, Spark types and Arrow types of every table's columns
    boundaries.py       where records begin in a buffer, and where a log file may be split
    lanes.py            the same for megabytes of a log at a time, without a Python loop
    sound_records.py    the sound records of a log file, found by a loop in C if it could be built
    native.c            the loops of this room in C
    native_loops.py     that module, if it could be built
    records.py          records to columns
    stored_properties.py  properties in a buffer, the usual ones found in C
    properties.py       property texts to columns: one property, or the map of all
    uniform_properties.py  property texts with equal names, as a grid
    slices.py           Arrow arrays of texts and bytes without a Python loop
    batch_encoder.py    columns to the bytes of sends

numpy, pyarrow and `pocketmq.protocol` only: no Spark, no files, no sockets.
"""
