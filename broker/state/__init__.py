"""What a broker is before it does anything: settings, clock, store, tables, statistics, addresses.

broker_state.py  `BrokerState` and the `Identity` of a running broker
table_saver.py   writes JSON tables that changed, in one thread
part.py          what the part of a broker in each room has of the state; refusals several rooms answer with
"""
