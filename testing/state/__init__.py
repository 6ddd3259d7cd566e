"""The state of a server: remembered, returned to.

mark.py              the state at one moment
reset.py             the way back to it
settings_values.py   settings, read and written back
"""
