"""pocketmq.store.at_rest

check.py     Is a store whole? Reads everything, changes nothing, says what is wrong, where
contents.py  What a store at rest holds, for somebody who wants to look
segments.py  A store that nobody has open, read without changing a byte
findings.py
check_log.py
check_queues.py
check_index.py
check_tables.py
"""
