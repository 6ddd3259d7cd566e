"""Reads messages, and answers questions about offsets and times. Nothing is changed, and only small records are copied.

get_values.py      the statuses and results that reading returns
message_reader.py  messages of a queue from an offset on (pull), and by key (query)
positions.py       one offset of a queue: its unit, store time, hot or cold; min and max offset
time_search.py     the offset for a point in time
residency.py       whether a stored message counts as in memory
"""
