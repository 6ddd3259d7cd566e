"""The server inside the process that tests.

loop_thread.py       a thread with an event loop
lifetime.py          `with` and `async with` for a server or a cluster
embedded.py          EmbeddedServer: name server and broker in a thread
clock.py             ServerClock: the server's time, and moving it if it is virtual
ports.py             the ports beside the remoting ones
grpc_port.py         the port for gRPC clients
admin_port.py        the HTTP port, and what it shows
settings.py          keywords to settings, on top of defaults for tests
after_death.py       what is done if this process is killed
parent.py            what is done if the process that started this one ends
temporary_store.py   where the files of a temporary store are kept
"""
