"""pocketmq.pipeline.records

batch_encoder.py  Columns to the bytes of sends
boundaries.py     Where records begin in bytes of a commit log or of pull replies, and where a f
columns.py        The columns of a message
properties.py     Property texts to columns
records.py        Records to columns
slices.py         Arrow arrays of texts and bytes without a Python loop over them
"""
