"""Filters: which messages of a queue a subscription matches, by tag or by SQL92.

tag_filter.py        by tag: the tags code of a queue entry
consumer_filters.py  the SQL92 expressions of the groups, kept in consumerFilter.json
sql_filter.py        by SQL92: one compiled expression, evaluated for each message
sql_grammar.py       the grammar, read with the library lark
sql_operands.py      the compiled parts of an expression; numbers as Java reads them from text
bloom_filter.py      bit positions that official brokers expect in consumerFilter.json
"""
