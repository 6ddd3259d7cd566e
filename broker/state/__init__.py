"""What a broker is before it does anything: settings, clock, store, tables, statistics, addresses.

broker_state.py  `BrokerState` and the `Identity` of a running broker
table_saver.py   writes JSON tables that changed, in one thread
refusals.py      refusals several rooms answer with
"""
