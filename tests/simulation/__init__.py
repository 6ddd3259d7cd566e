"""Deterministic simulation: real name server, brokers and clients on one loop without sockets, disks or time.

plan.py       what a seed decides: the cluster, the clients, the faults
machines.py   computers: clocks, disks, lives, threads that take turns
loop.py       the event loop, whose time jumps
network.py    connections in memory
patches.py    what the product asks the system for
books.py      what was sent and consumed, and what must be true of it
clients.py    the programs that clients run
world.py      one run
run.py        many runs; shrinks a failing one
"""
