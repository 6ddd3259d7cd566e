"""pocketmq.broker.filters

bloom_filter.py      Which bits of a bloom filter stand for a group and topic, as official brokers
consumer_filters.py  What groups filter by in SQL92, kept in config/consumerFilter.json so that it
sql_filter.py        SQL92 filters at work
sql_grammar.py       The grammar of SQL92 expressions, read by the library lark into the operands o
sql_numbers.py       Numbers as Java reads them from text
sql_operands.py      The parts of an SQL92 expression, compiled
tag_filter.py        Which messages of a queue a subscription wants
"""
