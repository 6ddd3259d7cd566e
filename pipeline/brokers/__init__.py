"""pocketmq.pipeline.brokers

batch_sender.py  Batches to brokers
range_reader.py  One range of a queue over the wire
read_planner.py  From options to queues, positions and ranges
wire.py          The wire for code without an event loop
"""
