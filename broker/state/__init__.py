"""What a broker is before it does anything: settings, clock, store, tables, statistics, addresses.

broker_state.py    `BrokerState` and the `Identity` of a running broker
store_owner.py     refuses the store of another broker
table_saver.py     writes JSON tables that changed, in one thread
periodic.py        actions that are repeated
turns.py           held requests that are answered in the next loop iterations
slices.py          long work in slices, such as reports
timers.py          whatever the broker does later is set here: the timers of the event loop
virtual_timers.py  the timers of a clock that stands still until it is moved
joint_timers.py    the timers of several brokers with one such clock
virtual_time.py    moves that clock: advance, advance_to_next, run
statistics.py      messages and bytes by topic, by group and in all
traffic.py         one series: sums, snapshots, windows
put_times.py       how long appends took
refusals.py        refusals several rooms answer with
"""
