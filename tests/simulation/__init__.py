"""Deterministic simulation: real name servers, brokers and clients on one loop without sockets, disks or time.

plan.py           what a seed decides: the cluster, the clients, the faults
machines.py       computers: clocks, disks, lives, threads that take turns
loop.py           the event loop, whose time jumps
network.py        connections in memory
patches.py        what the product asks the system for
books.py          what was sent and consumed, and what must be true of it
receipts.py       what gRPC consumers received and acknowledged
recalls.py        timed messages that were recalled
dead_letters.py   a group that refuses some messages for good
clients.py        the programs that clients run
grpc_channel.py   a connection of a gRPC client
grpc_program.py   what programs of gRPC clients have in common
grpc_producer.py  sends, transactions
grpc_consumer.py  receives, acks, changed times
grpc_in_order.py  the same in order, one message after another
settings.py       the broker.conf of each broker
watching.py       what the books see of the product
faults.py         what becomes of machines and network by the events of the plan
world.py          one run
run.py            many runs; shrinks a failing one
mutations.py      mistakes put into the product, which must be found
"""
