"""The state of a server: saved, returned to.

reset.py      the state at one moment (`Mark`), and the way back to it
parts.py      what a server keeps outside its store: tables, lists, settings, access files
rewinding.py  queues and index of the store, back to an earlier state
snapshot.py   topics, groups, offsets, messages and timers as a value, as a file, and on a server
load.py       topics, groups and messages to begin with: read, checked, and brought to a server
"""
