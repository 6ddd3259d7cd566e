"""The native core and, beside each of its functions, the same rule in plain Python.

    sends.py            a pass of frames  ->  sends and ends as numbers and spans; sends  ->  messages
    properties.py       a property text   ->  the text that a record stores
    copies.py           records           ->  what messages that are stored anew have of them
    records.py          messages          ->  records, queue entries and index keys
    key_hash.py         the hash of an index key
    replies.py          what was stored   ->  the replies of a pass
    index_entries.py    index keys        ->  entries of an index file
    plain_records.py, gathered_records.py  the log  ->  its records, or those of a pull
    scan.c              a log, replies, property texts  ->  numbers; in Python: `pipeline/tables/records/scans.py`
    choice.py           which of the two runs: *.c and *.h are the same in C

Bytes in; bytes and numbers out. It knows the layouts of the protocol, but no broker, topic, socket or file name.
"""
