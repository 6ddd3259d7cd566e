"""Reading messages and questions about them. Nothing is copied, nothing is changed.

get_values.py      what reading returns: statuses and results
message_reader.py  messages of a queue from an offset on (pull), and by key (query)
positions.py       one place of a queue: ends, unit, store time, hot or cold
time_search.py     the offset for a point in time
residency.py       whether a stored message counts as in memory
"""
