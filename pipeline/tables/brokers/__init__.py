"""Requests to name servers and brokers, and sends, from ordinary functions without an event loop. No Spark.

broker_client.py    connections, routes, offsets and commits, with retries
wait_log.py         logs once what a client waits for
reachable.py        whether brokers and topics answer, before a job starts
read_planner.py     from options to queues, positions and ranges
group_offsets.py    progress committed to a group that is nobody else's
pulls.py            one pull, quick or with retries
range_reader.py     pulls one range of a queue
batch_sender.py     sends batches and single messages
"""
