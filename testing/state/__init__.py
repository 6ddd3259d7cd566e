"""The state of a server: saved, returned to.

mark.py              the state at one moment
reset.py             the way back to it
rewinding.py         queues and index of the store, back to an earlier state
discarding.py        their files, deleted in a thread
parts.py             tables and lists of the server's parts
settings_values.py   settings, read and written back
access_files.py      files with access keys, read and written back
snapshot.py          topics, groups, offsets, messages and timers as a value and a file
restoring.py         takes a snapshot of a server, brings one to a server
yaml_file.py         a YAML file, or one line that says what is wrong with it
load.py              topics, groups and messages to begin with, read and checked
loading.py           brings them to a server
"""
