"""The loops of the store that a C compiler makes faster: each is here in Python and, if it could be built, in C.
What is stored and read is the same.

native.c            the functions in C; built at the installation if there is a compiler, never required
choice.py           which of the two is used; POCKETMQ_ACCELERATOR=off: Python
element_records.py  the records of a batch of any messages, with what queue and index need of each
batch_records.py    the records of a batch whose messages are alike
index_units.py      the units of many keys in a file of the key index
id_hashes.py        the hashes of unique ids
gathered_records.py the records that units of a queue name, copied out of the log
repeated_struct.py  structs of many equal parts
plain_records.py    the records of a log file, as long as they have the plain form
"""
