"""pocketmq.broker.state

put_times.py    How long storing took in the last whole minute
statistics.py   What went through this broker
store_owner.py  Is this the store of the broker we are about to be? Asked before anything in i
table_saver.py  What a broker does by itself, and how often
"""
