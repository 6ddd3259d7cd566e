"""The server inside the process that tests.

embedded.py          EmbeddedServer: name server and broker in a thread
settings.py          keywords to settings, on top of defaults for tests
temporary_store.py   where the files of a temporary store are kept
"""
