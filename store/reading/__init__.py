"""pocketmq.store.reading

message_reader.py  Reading
residency.py       Is a stored message in memory ("hot") or only on disk ("cold")? Three answers,
time_search.py     From a point in time to an offset in a queue (request 29, `getOffsetInQueueByT
get_values.py: what reading returns
positions.py: one place of a queue
"""
