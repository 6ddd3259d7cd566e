"""What a broker does later, and work that is too long for one turn of the event loop.

timers.py        whatever the broker does later is set here: the timers of the event loop
periodic.py      actions that are repeated
held_answers.py  held requests that are answered in the next loop iterations
slices.py        how much one loop iteration may do; long work in slices, such as reports
"""
