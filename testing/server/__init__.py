"""The server inside the process that tests.

embedded.py      EmbeddedServer: name server and broker in a thread
in_thread.py     what it has in common with a cluster: the thread, and how it is watched
loop_thread.py   a thread with an event loop, and `with` for what lives in one
settings.py      keywords to settings, on top of defaults for tests; the folder of a temporary store
admin_port.py    the HTTP port
stand_in_views.py  what it shows beside a broker: faults, requests, time, state
after_death.py   what is done if this process is killed
parent.py        what is done if the process that started this one ends
"""
